"""The covariance by which questions are chosen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from smalti.adjustment.adjustment import Adjustment
from smalti.adjustment.covariance import Covariance
from smalti.adjustment.link import fit_link
from smalti.adjustment.local_covariance import LocalCovariance
from smalti.adjustment.refinement import normal_blocks
from smalti.errors import UsageError
from smalti.experiments.worlds import OUTLINE, raster
from smalti.geometry.affine import compose, invert
from smalti.geometry.family import AFFINE, FAMILIES, Family
from smalti.records import Landmarks, Pair


def adjusted(
    frames: int, loops: tuple[int, ...], family: Family = AFFINE, sigma: float = 1.0, seed: int = 1
) -> Adjustment:
    world = raster(frames)
    agent = world.agent(seed, sigma)
    pairs = [Pair(n, n + 1) for n in range(frames - 1)] + [Pair(n, frames - 1 - n) for n in loops]
    return Adjustment(frames, OUTLINE, [fit_link(agent.landmarks(pair), family) for pair in pairs], family=family)


def dense_centre(adjustment: Adjustment, i: int, j: int) -> np.ndarray:
    """Covariance of γ_ij from the dense pseudo-inverse of JᵀJ, which holds no frame at all."""
    maps, tangent = adjustment.unit_maps, adjustment.family.tangent
    diagonal, off_diagonal = normal_blocks(adjustment, maps)
    n, f = diagonal.shape[:2]
    dense = np.zeros((n, f, n, f))
    for frame in range(n):
        dense[frame, :, frame] = diagonal[frame]
    for (a, b), block in zip(adjustment.ends, off_diagonal, strict=True):
        dense[a, :, b], dense[b, :, a] = block, block.T
    inverse = np.linalg.pinv(dense.reshape(n * f, n * f), rcond=1e-13, hermitian=True).reshape(n, f, n, f)

    def seen(increment_i: np.ndarray, increment_j: np.ndarray) -> np.ndarray:
        moved = [np.vstack([m, [0, 0, 1]]) for m in (maps[i], maps[j])]
        steps = [np.eye(3) + np.vstack([np.tensordot(d, tangent, 1), np.zeros(3)]) for d in (increment_i, increment_j)]
        return np.linalg.solve(moved[1] @ steps[1], moved[0] @ steps[0] @ [0, 0, 1.0])[:2]

    step = 1e-6
    jacobian = np.zeros((2, 2 * f))
    for c in range(2 * f):
        d = np.zeros(2 * f)
        d[c] = step
        jacobian[:, c] = (seen(d[:f], d[f:]) - seen(-d[:f], -d[f:])) / (2 * step)
    joint = np.block([[inverse[i, :, i], inverse[i, :, j]], [inverse[j, :, i], inverse[j, :, j]]])
    return jacobian @ joint @ jacobian.T


def packed(cov: np.ndarray) -> np.ndarray:
    return np.array([cov[0, 0], cov[0, 1], cov[1, 1]])


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_centre_has_the_covariance_of_the_dense_pseudo_inverse(family):
    adjustment = adjusted(10, (0, 2), family)
    covariance = LocalCovariance(adjustment)
    for i, j in ((0, 9), (9, 0), (3, 4), (4, 3), (1, 6)):
        expected = dense_centre(adjustment, i, j)
        np.testing.assert_allclose(covariance.centre(i, j)[1], expected, rtol=1e-5, atol=1e-6 * np.trace(expected))


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_all_pairs_at_once_are_the_pairs_one_by_one(family):
    frames = 261
    adjustment = adjusted(frames, (0, 20, 77), family)
    covariance = LocalCovariance(adjustment)
    rng = np.random.default_rng(3)
    near = [(n, n + 1) for n in (0, 127, 128, frames - 2)]
    for i, j in near + [(int(a), int(b)) for a, b in rng.choice(frames, (20, 2)) if a != b]:
        mean, cov = covariance.centre(i, j)
        np.testing.assert_allclose(covariance.centres.mean[i, j], mean, rtol=1e-9, atol=1e-7)
        np.testing.assert_allclose(
            covariance.centres.cov[i, j], packed(cov), rtol=1e-5, atol=1e-7 * np.trace(cov), err_msg=f"({i}, {j})"
        )


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_a_chain_has_the_covariance_of_the_paper(family):
    adjustment = adjusted(12, (), family)
    local, paper = LocalCovariance(adjustment).centres, Covariance(adjustment).centres
    np.testing.assert_allclose(local.mean, paper.mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(local.cov, paper.cov, rtol=1e-6, atol=1e-7 * paper.cov.max())


def test_loops_leave_it_within_three_percent_of_the_paper():
    adjustment = adjusted(40, (0, 7, 15))
    local, paper = LocalCovariance(adjustment).centres, Covariance(adjustment).centres
    apart = ~np.eye(40, dtype=bool)
    ratio = np.sqrt(local.determinant[apart] / paper.determinant[apart])
    assert ratio.min() >= 0.97
    assert ratio.max() <= 1.03


def test_with_small_noise_and_loops_it_is_that_of_the_paper():
    adjustment = adjusted(30, (0, 5, 11), sigma=1e-3)
    local, paper = LocalCovariance(adjustment).centres, Covariance(adjustment).centres
    np.testing.assert_allclose(local.cov, paper.cov, rtol=2e-3, atol=1e-3 * np.median(paper.cov[..., 0]))


def test_a_thousand_frames_leave_the_digits_of_neighbours():
    # Six points, noise 1 px: a frame's centre lies in its neighbour to within a third of a square pixel, everywhere.
    covariance = LocalCovariance(adjusted(1000, ()))
    n = np.arange(999)
    along = covariance.centres.cov[n + 1, n]
    straight = np.delete(along, 499, axis=0)  # where the way turns, other points are shared
    np.testing.assert_allclose(straight[:, [0, 2]], 1 / 3, rtol=1e-6)
    np.testing.assert_allclose(straight[:, 1], 0.0, atol=1e-6)
    assert (covariance.centres.determinant[n, n + 1] > 0).all()


def test_three_thousand_frames_leave_six_digits_of_neighbours_at_the_far_end():
    # The same six points between all neighbours of a straight way.
    frames, step = 3000, np.array([100.0 / 3.0, 0.0])
    seen = np.array([[x, y] for x in (0.0, 50.0) for y in (0.0, 50.0, 100.0)])
    link = fit_link(Landmarks(Pair(0, 1), seen + step, seen))
    chain = Adjustment(frames, OUTLINE, [replace(link, pair=Pair(n, n + 1)) for n in range(frames - 1)])
    n = np.array([0, 1, 700, 1498, 1500, 2700, 2997, 2998])
    found = LocalCovariance(chain).of_pairs(np.column_stack([n + 1, n])).cov[:, 0]
    # 1/6 at the points' mean, 25 px from the centre, and as much again for the tilt.
    np.testing.assert_allclose(found[:, [0, 2]], 1 / 3, rtol=1e-6)
    np.testing.assert_allclose(found[:, 1], 0.0, atol=1e-6)


def test_a_thousand_frames_are_why_the_paper_s_covariance_does_not_choose_the_questions():
    covariance = Covariance(adjusted(1000, ()))
    _, single = covariance.centre(999, 998)
    assert single[0, 0] == pytest.approx(1 / 3, rel=1e-5)  # pair by pair it is right, but too slow for all
    # Which of the last neighbours are off by how much is a matter of rounding, and so of the processor.
    last = np.arange(950, 1000)
    assert np.median(np.abs(covariance.centres.cov[last, last - 1, 0] - 1 / 3)) > 1 / 3


def test_places_relative_to_each_other_do_not_depend_on_the_reference():
    world = raster(30)
    agent = world.agent(2)
    links = [fit_link(agent.landmarks(Pair(n, n + 1))) for n in range(29)]
    first, last = (LocalCovariance(Adjustment(30, OUTLINE, links, reference=r)).centres for r in (0, 29))
    np.testing.assert_allclose(first.cov, last.cov, rtol=1e-6, atol=1e-9)


def test_the_mean_is_the_centre_on_the_linear_mosaic():
    adjustment = adjusted(20, (0, 4))
    mean, _ = LocalCovariance(adjustment).centre(2, 17)
    maps = adjustment.mosaic_from_frame
    expected = compose(invert(maps[17]), maps[2]) @ np.append(OUTLINE.centre, 1.0)
    np.testing.assert_allclose(mean, expected, rtol=0, atol=1e-8)


def test_a_frame_beyond_the_sequence_is_refused():
    covariance = LocalCovariance(adjusted(5, ()))
    for i, j in ((-1, 2), (2, 5)):
        with pytest.raises(UsageError, match="frames 0 to 4 only"):
            covariance.centre(i, j)


def test_a_linear_solution_that_mirrors_a_frame_still_has_a_covariance():
    adjustment = adjusted(20, (0, 4))
    maps = adjustment.unit_maps.copy()
    maps[7, 0] *= -1
    adjustment.unit_maps = maps
    covariance = LocalCovariance(adjustment)
    assert np.isfinite(covariance.centres.cov).all()
    np.testing.assert_allclose(covariance.centres.cov[3, 15], packed(covariance.centre(3, 15)[1]), rtol=1e-5)
