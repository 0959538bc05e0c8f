from __future__ import annotations

import numpy as np
import pytest

from smalti.rendering.seams.seam_candidates import NONE, SLOTS, Candidates
from smalti.rendering.seams.seam_labels import MARGIN, choose_frames


def candidates_of(merits: np.ndarray, colours: np.ndarray) -> Candidates:
    """Frames 0 to n - 1 everywhere, (h, w, n) and (h, w, n, 4)."""
    height, width, count = merits.shape
    places = np.full((height, width, SLOTS), NONE, dtype=np.int32)
    all_merits, all_colours = (
        np.zeros((height, width, SLOTS), np.float32),
        np.zeros((height, width, SLOTS, 4), np.float32),
    )
    places[..., :count], all_merits[..., :count], all_colours[..., :count, :] = np.arange(count), merits, colours
    return Candidates(places, all_merits, all_colours)


def two_frames(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Frame 0 is better on the left, frame 1 on the right; both show the same."""
    x = np.linspace(0, 1, width)
    merits = np.stack(np.broadcast_arrays(1 - x, x), axis=-1)[None].repeat(height, axis=0)
    colours = np.full((height, width, 2, 4), 100.0)
    colours[..., 3] = 4.0
    return merits, colours


def test_frames_that_agree_meet_in_the_middle_by_a_straight_seam():
    chosen = choose_frames(candidates_of(*two_frames(30, 40)))
    assert (chosen[:, :15] == 0).all()
    assert (chosen[:, 25:] == 1).all()
    assert (np.diff(chosen, axis=1) != 0).sum(axis=1).tolist() == [1] * 30


@pytest.mark.parametrize("off", [1, 3, 6])
def test_a_seam_goes_around_what_the_frames_do_not_agree_on(off):
    merits, colours = two_frames(40, 60)
    colours[12:28, 24 + off : 36 + off, 1, :3] += 60.0
    chosen = choose_frames(candidates_of(merits, colours))
    assert len(np.unique(chosen[12:28, 24 + off : 36 + off])) == 1
    assert set(np.unique(chosen)) == {0, 1}


def test_a_seam_prefers_places_without_detail():
    merits, colours = two_frames(40, 60)
    colours[..., 3] = 40.0
    colours[:, 25:27, :, 3] = 0.0
    chosen = choose_frames(candidates_of(merits, colours))
    seams = np.argmax(chosen == 1, axis=1)
    assert ((seams >= 25) & (seams <= 27)).mean() > 0.9


def test_the_sharper_of_two_frames_is_shown():
    merits, colours = np.ones((20, 20, 2)), np.full((20, 20, 2, 4), 100.0)
    colours[..., 0, 3], colours[..., 1, 3] = 3.0, 12.0
    assert (choose_frames(candidates_of(merits, colours)) == 1).all()


def test_what_only_one_of_three_frames_shows_is_not_shown():
    merits, colours = np.ones((40, 40, 3)), np.full((40, 40, 3, 4), 100.0)
    merits[..., 0] = 1.2
    colours[10:20, 10:20, 0, :3] = 220.0
    chosen = choose_frames(candidates_of(merits, colours))
    assert (chosen[10:20, 10:20] != 0).all()
    assert (chosen[30:, 30:] == 0).all()


def test_cells_without_candidates_show_nothing_and_divide_nobody():
    merits, colours = two_frames(30, 40)
    candidates = candidates_of(merits, colours)
    candidates.indices[:, :5] = NONE
    candidates.indices[:, 5:12, 1] = NONE
    chosen = choose_frames(candidates)
    assert (chosen[:, :5] == NONE).all()
    assert (chosen[:, 5:12] == 0).all()
    assert (chosen[:, 12:] != NONE).all()


@pytest.mark.parametrize("size", [50, 64])
def test_windows_with_a_margin_meet_exactly(size):
    rng = np.random.default_rng(7)
    shape = (130, 150)
    candidates = candidates_of(rng.uniform(0, 1, (*shape, 4)), rng.uniform(0, 60, (*shape, 4, 4)))
    candidates.indices[rng.uniform(size=shape) < 0.1] = NONE
    whole = choose_frames(candidates)
    for top in range(0, shape[0], size):
        for left in range(0, shape[1], size):
            outer = slice(max(top - MARGIN, 0), top + size + MARGIN), slice(max(left - MARGIN, 0), left + size + MARGIN)
            part = choose_frames(
                Candidates(candidates.indices[outer], candidates.merits[outer], candidates.colours[outer])
            )
            inner = part[top - outer[0].start :, left - outer[1].start :][:size, :size]
            np.testing.assert_array_equal(inner, whole[top : top + size, left : left + size])
