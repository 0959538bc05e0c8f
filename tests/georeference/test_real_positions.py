"""Positions of real surveys, by consumer receivers."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest

from smalti.errors import TableError
from smalti.georeference.positions import read_positions

DATA = Path(os.environ.get("SMALTI_DATA", Path(__file__).parents[3] / "shared" / "data"))
EPSG = {"caliterra": 32614, "brighton": 32615, "obriens": 32618}


def rows_of(name: str, table: str = "gps.csv") -> tuple[Path, list[dict[str, str]]]:
    path = DATA / name / table
    if not path.is_file():
        pytest.skip(f"no real data: {path} is absent, set SMALTI_DATA to its root")
    with path.open(newline="", encoding="utf-8") as lines:
        return path, list(csv.DictReader(lines))


@pytest.mark.parametrize("name", EPSG)
def test_metres_from_degrees_agree_with_the_tables_own_metres(name):
    path, rows = rows_of(name)
    positions = read_positions(path, {k: row["file"] for k, row in enumerate(rows)})
    assert positions.epsg == EPSG[name]
    assert positions.columns == ("lat", "lon")
    found = np.array([positions.metres[k] for k in range(len(rows))])
    table = np.array([[float(row["east_m"]), float(row["north_m"])] for row in rows])
    # The table took degrees times a constant: an affine map of UTM, of scale one to half a percent, rounded to 1 cm.
    table, found = table - table.mean(axis=0), found - found.mean(axis=0)
    found_from_table, *_ = np.linalg.lstsq(table, found, rcond=None)
    np.testing.assert_allclose(np.linalg.svd(found_from_table)[1], 1, atol=0.006)
    assert np.abs(table @ found_from_table - found).max() < 0.02


def test_positions_of_tiles_in_pixels_are_refused():
    path, rows = rows_of("dendritic_cols0-2", "positions.csv")
    with pytest.raises(TableError, match=r"no columns say where .*x_px, y_px.*lat,lon"):
        read_positions(path, {k: row["file"] for k, row in enumerate(rows)})
