"""Keypoints: the strongest, inside the mask, the same every time, and where the picture has them."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from smalti.registration.keypoints import (
    FEWEST_WANTED,
    LEAST_CONTRAST,
    MOST_WANTED,
    NO_KEYPOINTS,
    PIXELS_PER_KEYPOINT,
    REDUCED_FROM,
    find_keypoints,
    match_keypoints,
)
from tests.registration.scenes import gray, keypoints

HEIGHT, WIDTH = 180, 240


def texture(height: int, width: int, seed: int = 3) -> np.ndarray:
    noise = np.random.default_rng(seed).integers(0, 256, (height, width), dtype=np.uint8)
    return cv2.normalize(cv2.GaussianBlur(noise, (0, 0), 1.0), None, 0, 255, cv2.NORM_MINMAX)


def blob(x: float, y: float, radius: float = 4.0) -> np.ndarray:
    rows, columns = np.mgrid[:90, :120]
    return np.rint(40 + 180 * np.exp(-((columns - x) ** 2 + (rows - y) ** 2) / (2 * radius**2))).astype(np.uint8)


def assert_same(one, other):
    np.testing.assert_array_equal(one.points, other.points)
    np.testing.assert_array_equal(one.descriptors, other.descriptors)
    np.testing.assert_array_equal(one.strengths, other.strengths)


def test_a_frame_has_keypoints_strongest_first():
    found = keypoints(0)
    assert len(found) > 300
    assert (np.diff(found.strengths) <= 0).all()


def test_points_descriptors_and_strengths_have_a_row_each():
    found = keypoints(0)
    assert found.points.shape == (len(found), 2)
    assert found.descriptors.shape == (len(found), 128)
    assert found.strengths.shape == (len(found),)
    assert (found.points.dtype, found.descriptors.dtype) == (np.float32, np.uint8)


def test_the_same_image_gives_the_same_keypoints_to_the_last_bit():
    assert_same(find_keypoints(gray(1)), find_keypoints(gray(1).copy()))


def test_the_number_of_threads_does_not_matter():
    image, threads = texture(400, 500), cv2.getNumThreads()
    try:
        cv2.setNumThreads(1)
        alone = find_keypoints(image)
        cv2.setNumThreads(4)
        assert_same(find_keypoints(image), alone)
    finally:
        cv2.setNumThreads(threads)


@pytest.mark.parametrize("level", [0, 255])
def test_an_image_of_one_colour_has_none(level):
    found = find_keypoints(np.full((HEIGHT, WIDTH), level, np.uint8))
    assert len(found) == 0
    assert found.descriptors.shape == NO_KEYPOINTS.descriptors.shape == (0, 128)


def test_a_single_pixel_has_none():
    assert len(find_keypoints(np.full((1, 1), 9, np.uint8))) == 0


def test_all_lie_inside_the_mask():
    mask = np.zeros((HEIGHT, WIDTH), bool)
    mask[40:140, 30:110] = True
    found = find_keypoints(gray(0), mask)
    assert len(found) > 50
    columns, rows = np.rint(found.points).astype(int).T
    assert mask[rows, columns].all()


def test_a_mask_of_nothing_leaves_none():
    assert len(find_keypoints(gray(0), np.zeros((HEIGHT, WIDTH), bool))) == 0


def test_a_mask_of_everything_changes_nothing():
    assert_same(find_keypoints(gray(0), np.ones((HEIGHT, WIDTH), bool)), keypoints(0))


def strengths_without_limit(image: np.ndarray) -> np.ndarray:
    found = cv2.SIFT.create(0, 3, LEAST_CONTRAST, enable_precise_upscale=True).detect(image, None)
    return np.sort(np.array([keypoint.response for keypoint in found], np.float32))[::-1]


@pytest.mark.parametrize(("height", "width", "wanted"), [(300, 400, FEWEST_WANTED), (600, 660, 1320)])
def test_as_many_as_the_area_asks_for_and_these_the_strongest(height, width, wanted):
    assert np.clip(height * width / PIXELS_PER_KEYPOINT, FEWEST_WANTED, MOST_WANTED) == wanted
    image = texture(height, width)
    every = strengths_without_limit(image)
    assert len(every) > 1.2 * wanted
    found = find_keypoints(image)
    assert len(found) == wanted
    np.testing.assert_allclose(found.strengths, every[:wanted], rtol=1e-6)


def test_large_frames_are_reduced_but_not_their_keypoints():
    image = texture(600, 750)
    assert image.size >= REDUCED_FROM
    found, moved = find_keypoints(image), find_keypoints(image[:, 8:])
    assert len(found) == 1500
    assert (found.points.max(axis=0) > (740, 590)).all()
    points, on_moved = match_keypoints(found, moved)
    shift = points - on_moved
    assert len(points) > 500
    np.testing.assert_allclose(np.median(shift, axis=0), (8, 0), atol=0.02)


def test_a_large_frame_with_little_detail_is_not_reduced():
    image = np.full((600, 750), 128, np.uint8)
    image[200:400, 300:500] = texture(200, 200)
    assert len(find_keypoints(image)) == len(strengths_without_limit(image)[: int(image.size / PIXELS_PER_KEYPOINT)])


def test_keypoints_are_spread_over_the_frame():
    found = find_keypoints(texture(600, 660))
    some = found.spread(200)
    assert len(some) == 200
    assert set(map(tuple, some.points)) <= set(map(tuple, found.points))
    # Every cell of a grid of 12 x 12 gives its strongest first.
    cells = {tuple((12 * point / (660, 600)).astype(int)) for point in some.points}
    assert len(cells) > len({tuple((12 * point / (660, 600)).astype(int)) for point in found.points[:200]})
    assert found.spread(len(found)) is found


def test_descriptors_have_length_one_but_for_rounding():
    lengths = np.linalg.norm(keypoints(0).unit_descriptors, axis=1)
    assert np.abs(lengths - 1).max() < 0.02


@pytest.mark.parametrize(("x", "y"), [(60.0, 40.0), (60.3, 40.7)])
def test_a_blob_is_found_where_its_centre_is(x, y):
    strongest = find_keypoints(blob(x, y)).points[0]
    np.testing.assert_allclose(strongest, [x, y], atol=0.1)


def test_a_blob_that_moves_moves_its_keypoint_as_far():
    before, after = (find_keypoints(blob(*centre)).points[0] for centre in ((60.0, 40.0), (63.5, 38.25)))
    np.testing.assert_allclose(after - before, [3.5, -1.75], atol=0.1)
