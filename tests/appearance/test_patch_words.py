"""Patches on a grid: inside the mask only, blind to light, alike where the place is the same."""

from __future__ import annotations

import numpy as np
import pytest

from smalti.appearance.patch_words import (
    CELL,
    DESCRIPTOR_LENGTH,
    STRIDE_PX,
    GridWords,
    describe_patches,
    grid_signatures,
)
from smalti.appearance.visual_words import count_words, learn_words
from smalti.errors import InputError
from tests.frames.scenes import make_scene

SIDE = 150
PATCH_PX = 3 * CELL * STRIDE_PX
SCENE = make_scene(400, 800, colours=1)
WHOLE = np.ones((SIDE, SIDE), dtype=bool)
ROWS, COLUMNS = np.mgrid[:SIDE, :SIDE]
ROUND = np.hypot(COLUMNS - 75, ROWS - 75) < 70


def view(x, y):
    return SCENE[y : y + SIDE, x : x + SIDE]


def likeness(one, other):
    return float(np.mean(np.sum(one * other, axis=1)))


def test_descriptors_are_of_length_one_without_negative_entries():
    found = describe_patches(view(0, 0), WHOLE)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-5)
    assert found.min() >= 0


def test_there_is_a_patch_at_every_stride_that_it_fits_in():
    assert len(describe_patches(view(0, 0), WHOLE)) == ((SIDE - PATCH_PX) // STRIDE_PX + 1) ** 2


def test_what_lies_outside_the_mask_does_not_matter():
    image = view(0, 0)
    beside = np.where(ROUND, image, 255 - image).astype(np.uint8)
    np.testing.assert_allclose(describe_patches(beside, ROUND), describe_patches(image, ROUND), atol=1e-6)
    assert 0 < len(describe_patches(image, ROUND)) < len(describe_patches(image, WHOLE))


def test_no_mask_is_a_mask_that_shows_everything():
    np.testing.assert_array_equal(describe_patches(view(0, 0), None), describe_patches(view(0, 0), WHOLE))


def test_the_light_does_not_matter():
    image = view(0, 0).astype(np.float32)
    lamp = 0.3 + 0.6 * np.exp(-(((COLUMNS - 40) / 80.0) ** 2) - ((ROWS - 110) / 80.0) ** 2)
    lit = describe_patches((image * lamp).astype(np.uint8), WHOLE)
    assert likeness(lit, describe_patches(view(0, 0), WHOLE)) > 0.97
    assert likeness(lit, describe_patches(view(300, 100), WHOLE)) < 0.93


def test_a_patch_is_the_same_wherever_it_lies_in_the_frame():
    here, there = describe_patches(view(0, 0), WHOLE), describe_patches(view(20, 0), WHOLE)
    a_side = round(len(here) ** 0.5)
    here, there = here.reshape(a_side, a_side, -1)[:, 4:], there.reshape(a_side, a_side, -1)[:, :-4]
    # The frame's edge disturbs what is next to it.
    here, there = here[2:-2, 2:-2].reshape(-1, DESCRIPTOR_LENGTH), there[2:-2, 2:-2].reshape(-1, DESCRIPTOR_LENGTH)
    assert likeness(here, there) > 0.995


def test_patches_turn_with_the_scene():
    upright = describe_patches(view(0, 0), WHOLE).reshape(-1, 3, 3, 8)
    a_side = round(len(upright) ** 0.5)
    turned = describe_patches(np.ascontiguousarray(np.rot90(view(0, 0))), WHOLE).reshape(a_side, a_side, 3, 3, 8)
    # A quarter turn: cells and patches turn alike, orientations move on by two of eight, against the clock.
    back = np.rot90(np.rot90(turned, -1, axes=(0, 1)), -1, axes=(2, 3))
    back = np.roll(back, 2, axis=-1).reshape(-1, DESCRIPTOR_LENGTH)
    assert likeness(back, upright.reshape(-1, DESCRIPTOR_LENGTH)) > 0.999


@pytest.mark.parametrize(
    ("image", "mask"),
    [
        (view(0, 0), ~WHOLE),
        (np.full((SIDE, SIDE), 90, np.uint8), WHOLE),
        (np.full((SIDE, SIDE), 90, np.uint8), ROUND),
        (view(0, 0)[:40, :40], WHOLE[:40, :40]),
        (view(0, 0)[:3, :3], WHOLE[:3, :3]),
    ],
    ids=["nothing shown", "flat", "flat in a round field", "smaller than a patch", "smaller than a stride"],
)
def test_where_nothing_can_be_told_there_is_no_patch(image, mask):
    assert describe_patches(image, mask).shape == (0, DESCRIPTOR_LENGTH)


PLACES = [(40 * k, 0) for k in range(12)] + [(40 * k + 10, 15) for k in range(12)]


def dull_views():
    """Two passes over the scene, of low contrast, each frame under its own light and with its own noise."""
    rng = np.random.default_rng(4)
    for x, y in PLACES:
        lamp = 0.6 + 0.4 * np.exp(-((COLUMNS - rng.uniform(0, SIDE)) ** 2 + (ROWS - rng.uniform(0, SIDE)) ** 2) / 9e3)
        dull = (90 + 0.15 * view(x, y)) * lamp + rng.normal(0, 2, (SIDE, SIDE))
        yield np.clip(dull, 0, 255).astype(np.uint8), ROUND


def signatures(views, **options):
    return grid_signatures(lambda numbers: (views[n] for n in numbers), len(views), **options)


def test_frames_of_one_place_are_more_alike_than_frames_of_different_places():
    found = signatures(list(dull_views()))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-12)
    alike = found[:12] @ found[12:].T
    same = np.diag(alike)
    apart = [alike[i, j] for i in range(12) for j in range(12) if abs(i - j) > 3]
    assert np.mean([one > two for one in same for two in apart]) > 0.97


def test_the_same_seed_gives_the_same_signatures_and_another_does_not():
    views = list(dull_views())[::8]
    found = signatures(views, seed=3)
    np.testing.assert_array_equal(signatures(views, seed=3), found)
    assert not np.array_equal(signatures(views, seed=4), found)


def test_words_are_learned_on_a_sample_spread_over_a_long_sequence(monkeypatch):
    monkeypatch.setattr("smalti.appearance.patch_words.SAMPLED_FRAMES", 4)
    asked = []

    def look(numbers):
        asked.append(list(numbers))
        return [(view(10 * n, 0), ROUND) for n in asked[-1]]

    assert len(grid_signatures(look, 10)) == 10
    assert asked == [[0, 3, 6, 9], list(range(10))]


def test_words_learned_on_a_sample_count_every_patch_of_any_frame():
    views = list(dull_views())
    words = GridWords.learn(views[::6])
    assert 1 < len(words.words) <= 600
    counts = words.count(*views[5])
    assert counts.sum() == len(describe_patches(*views[5]))


def test_a_long_sequence_is_learned_from_a_fair_choice_of_its_patches(monkeypatch):
    monkeypatch.setattr("smalti.appearance.patch_words.TRAINING_DESCRIPTORS", 100)
    frames = [(np.full((1, 1), n, np.uint8), WHOLE[:1, :1]) for n in range(50)]
    seen = []

    def describe(gray, mask):
        return np.full((40, 3), gray[0, 0], np.float32)

    monkeypatch.setattr(
        "smalti.appearance.patch_words.learn_words", lambda chosen, *_: seen.append(chosen[:, 0]) or chosen[:5]
    )
    GridWords.learn(frames, describe=describe)
    assert len(seen[0]) == 100
    assert abs(seen[0].mean() - 24.5) < 5
    assert len(np.unique(seen[0])) > 30


def test_a_frame_that_shows_nothing_looks_like_the_mean_of_all():
    views = [*list(dull_views())[::4], (np.zeros((SIDE, SIDE), np.uint8), ~WHOLE)]
    found = signatures(views)
    mean = found[:-1].mean(axis=0)
    assert found[-1] @ mean / np.linalg.norm(mean) > 0.9


def test_a_sequence_without_any_patch_is_refused():
    with pytest.raises(InputError, match="no frame shows a patch"):
        signatures([(view(0, 0), ~WHOLE)])


def test_words_are_counted_by_what_is_nearest():
    descriptors = np.random.default_rng(0).normal(size=(50, 4)).astype(np.float32)
    words = learn_words(descriptors, 6, np.random.default_rng(1))
    nearest = np.linalg.norm(descriptors[:, None] - words, axis=2).argmin(axis=1)
    np.testing.assert_array_equal(count_words(words, descriptors), np.bincount(nearest, minlength=6))
