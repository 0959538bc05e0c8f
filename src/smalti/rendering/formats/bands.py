"""What every format is given: the pixels as they arrive, and what the file says beside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from numpy.typing import NDArray

from smalti.errors import UsageError


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """A raster as it arrives from the top: `pixels` yields (band_height, width[, 4]); the last band may be lower.

    A picture is uint8 (h, w, 4), RGBA, its alpha unassociated; a map is (h, w) of uint16, uint32 or float32. A band is
    still read while the next one is made, so every band is an array of its own.
    """

    width: int
    height: int
    band_height: int  # a power of two, 64 to 2048
    pixels: Iterator[NDArray[Any]]


@dataclass(frozen=True, slots=True)
class Caption:
    """What a file says beside its pixels."""

    name: str = "mosaic"
    # 2×3: from the centre of pixel (x, y) to metres east and north.
    world_from_pixel: tuple[tuple[float, float, float], tuple[float, float, float]] | None = None
    epsg: int | None = None  # of these metres; None: a local plane
    pixel_size_um: float | None = None  # the side of a pixel

    def __post_init__(self) -> None:
        # GeoTIFF has no room for others, and its readers take 32767 for "none".
        if self.epsg is not None and not 1024 <= self.epsg <= 32766:
            raise UsageError(f"EPSG {self.epsg}: give the code of a projected system in metres, 1024 to 32766")

    @property
    def pixel_sides_um(self) -> tuple[float, float] | None:
        """Width and height of a pixel: as given, else by the place in the world, else unknown."""
        if self.pixel_size_um is not None:
            return self.pixel_size_um, self.pixel_size_um
        if self.world_from_pixel is None:
            return None
        (a, b, _), (d, e, _) = self.world_from_pixel
        return 1e6 * math.hypot(a, d), 1e6 * math.hypot(b, e)


Writer: TypeAlias = Callable[[Path, Bands, Caption], None]
