"""Convert WGS 84 latitude and longitude to metres of a UTM zone: transverse Mercator by Krüger's series.

The grid's exceptions around Norway and Svalbard are left out: a mosaic needs some plane, and its EPSG code says which.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from smalti.errors import UsageError
from smalti.records import Points

_AXIS_M = 6378137.0
_FLATTENING = 1 / 298.257223563
_SCALE = 0.9996
_FALSE_EAST_M = 500_000.0
_FALSE_NORTH_M = 10_000_000.0  # of southern zones
_THIRD_FLATTENING = _FLATTENING / (2 - _FLATTENING)
_ECCENTRICITY = np.sqrt(_FLATTENING * (2 - _FLATTENING))

# Krüger's α: a row for each multiple of the angle, columns are the powers n¹ to n⁶ of the third flattening.
_ALPHA = np.array(
    [
        [1 / 2, -2 / 3, 5 / 16, 41 / 180, -127 / 288, 7891 / 37800],
        [0, 13 / 48, -3 / 5, 557 / 1440, 281 / 630, -1983433 / 1935360],
        [0, 0, 61 / 240, -103 / 140, 15061 / 26880, 167603 / 181440],
        [0, 0, 0, 49561 / 161280, -179 / 168, 6601661 / 7257600],
        [0, 0, 0, 0, 34729 / 80640, -3418889 / 1995840],
        [0, 0, 0, 0, 0, 212378941 / 319334400],
    ]
) @ (_THIRD_FLATTENING ** np.arange(1, 7))

# The radius of the circle with the length of the meridian.
_MEAN_RADIUS_M = _AXIS_M / (1 + _THIRD_FLATTENING) * np.polyval([1 / 256, 1 / 64, 1 / 4, 1], _THIRD_FLATTENING**2)


@dataclass(frozen=True, slots=True)
class Zone:
    """A UTM zone, 1 to 60, of the northern or the southern hemisphere."""

    number: int
    south: bool = False

    def __post_init__(self) -> None:
        if not 1 <= self.number <= 60:
            raise UsageError(f"there is no UTM zone {self.number}: zones are numbered 1 to 60")

    @property
    def epsg(self) -> int:
        """The code of WGS 84 / UTM zone."""
        return (32700 if self.south else 32600) + self.number

    @property
    def central_meridian_deg(self) -> float:
        """The longitude of the zone's middle."""
        return 6.0 * self.number - 183.0

    def degrees_from_middle(self, lon_deg: ArrayLike) -> np.ndarray:
        """Return longitudes relative to the central meridian, from -180 up to 180 degrees."""
        return _wrap(np.asarray(lon_deg, dtype=np.float64) - self.central_meridian_deg)


def choose_zone(lat_deg: ArrayLike, lon_deg: ArrayLike) -> Zone:
    """Return the zone of the median position; a few wild positions do not move it."""
    latitudes, longitudes = np.asarray(lat_deg, dtype=np.float64), np.asarray(lon_deg, dtype=np.float64)
    # Relative to their mean direction, positions on both sides of the date line are neighbours.
    about = np.degrees(np.angle(np.exp(1j * np.radians(longitudes)).sum()))
    middle = float(_wrap(about + np.median(_wrap(longitudes - about))))
    return Zone(int((middle + 180) // 6) + 1, south=bool(np.median(latitudes) < 0))


def utm_from_geographic(lat_deg: ArrayLike, lon_deg: ArrayLike, zone: Zone) -> Points:
    """Return metres east and north (n, 2), with an error below a micrometre within 50 degrees of the zone's middle."""
    latitude = np.radians(np.asarray(lat_deg, dtype=np.float64))
    longitude = np.radians(zone.degrees_from_middle(lon_deg))
    # The tangent of the conformal latitude maps the ellipsoid to a sphere.
    tangent = np.sinh(np.arctanh(np.sin(latitude)) - _ECCENTRICITY * np.arctanh(_ECCENTRICITY * np.sin(latitude)))
    # ξ' + iη', the transverse Mercator of that sphere.
    north = np.arctan2(tangent, np.cos(longitude))
    east = np.arcsinh(np.sin(longitude) / np.hypot(tangent, np.cos(longitude)))
    spherical = north + 1j * east
    # ξ + iη = ζ' + Σ αⱼ sin 2jζ' makes the scale constant on the central meridian.
    multiples = 2 * np.arange(1, 7)
    plane = spherical + np.sin(spherical[..., None] * multiples) @ _ALPHA
    metres = _SCALE * _MEAN_RADIUS_M * np.stack([plane.imag, plane.real], axis=-1)
    shifted: Points = metres + np.array([_FALSE_EAST_M, _FALSE_NORTH_M if zone.south else 0.0])
    return shifted


def _wrap(degrees: np.ndarray) -> np.ndarray:
    wrapped: np.ndarray = (degrees + 180) % 360 - 180
    return wrapped
