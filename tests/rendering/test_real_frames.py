"""Micrographs whose places are known: one mosaic, looked at by numbers."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import cv2
import numpy as np
import pytest

from smalti.rendering.mosaic import Mosaic
from tests.rendering.scene import Frames, shift

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[3] / "shared" / "data"))


@pytest.fixture(scope="module")
def tiles() -> list[tuple[np.ndarray, np.ndarray]]:
    folder = DATA / "dendritic_cols0-2"
    if not (folder / "positions.csv").is_file():
        pytest.skip(f"no real data: {folder}/positions.csv is absent, set SMALTI_DATA to its root")
    with (folder / "positions.csv").open(newline="") as lines:
        rows = [row for row in csv.DictReader(lines) if int(row["row"]) in (6, 7)]
    return [
        (cv2.imread(str(folder / "frames" / row["file"])), shift(float(row["x_px"]), float(row["y_px"])))
        for row in rows
    ]


@pytest.mark.parametrize("blend", ["multiband", "feather"])
def test_six_tiles_become_one_picture_without_gaps_or_shifts(tiles, blend):
    (height, width), world = tiles[0][0].shape[:2], {k: matrix for k, (_, matrix) in enumerate(tiles)}
    mosaic = Mosaic(Frames({k: frame for k, (frame, _) in enumerate(tiles)}), world, width, height)
    canvas, image = mosaic.canvas(), mosaic.image(max_size=10**6, blend=blend)
    assert len(tiles) == 6
    # The tiles form a ragged block; inside it nothing is missing.
    assert (image[250:-250, 250:-250, 3] == 255).all()
    for k, (frame, matrix) in enumerate(tiles):
        x, y = np.rint(matrix[:2, 2] - (canvas.left, canvas.top)).astype(int)
        # Around the whole frame, overlaps with neighbours included, the mosaic shows what the frame shows.
        shown = image[y + 8 : y + height - 8, x + 8 : x + width - 8, 0]
        found = cv2.matchTemplate(frame[..., 0], np.ascontiguousarray(shown), cv2.TM_CCOEFF_NORMED)
        assert np.unravel_index(found.argmax(), found.shape) == (8, 8), f"tile {k} is shifted"
        # The mosaic's grid is off the tile's by up to half a pixel, and the grain is as fine as a pixel.
        assert found.max() > 0.85, f"tile {k} is blurred"
