from __future__ import annotations

import numpy as np
import pytest

from smalti.errors import UsageError
from smalti.georeference.utm import Zone, choose_zone, utm_from_geographic

AXIS_M = 6378137.0
FLATTENING = 1 / 298.257223563
ECCENTRICITY = (FLATTENING * (2 - FLATTENING)) ** 0.5
MICROMETRE = 1e-6


def meridian_arc_m(latitude):
    """Length of the meridian from the equator, by quadrature along a straight line; the latitude may be complex."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    along = latitude * (nodes + 1) / 2
    integrand = AXIS_M * (1 - ECCENTRICITY**2) / (1 - (ECCENTRICITY * np.sin(along)) ** 2) ** 1.5
    return (weights * integrand).sum() * latitude / 2


def isometric(latitude):
    sine = np.sin(latitude)
    return np.arctanh(sine) - ECCENTRICITY * np.arctanh(ECCENTRICITY * sine)


def transverse_mercator_m(lat_deg, degrees_from_middle):
    """East and north without any series: the arc of the meridian continued to complex latitudes."""
    wanted = isometric(np.radians(lat_deg)) + 1j * np.radians(degrees_from_middle)
    latitude = 2 * np.arctan(np.exp(wanted)) - np.pi / 2
    for _ in range(50):
        cosine, sine = np.cos(latitude), np.sin(latitude)
        slope = (1 - ECCENTRICITY**2) / ((1 - (ECCENTRICITY * sine) ** 2) * cosine)
        latitude -= (isometric(latitude) - wanted) / slope
    arc = 0.9996 * meridian_arc_m(latitude)
    return np.array([500_000 + arc.imag, arc.real])


# Published to the metre.
PLACES = {
    "CN Tower": (43 + 38 / 60 + 33.24 / 3600, -(79 + 23 / 60 + 13.7 / 3600), 32617, 630084, 4833438),
    "New York": (40.71435, -74.00597, 32618, 583960, 4507523),
    "Aachen": (50.77535, 6.08389, 32632, 294409, 5628898),
    "Cape Town": (-33.92487, 18.42406, 32734, 261878, 6243186),
    "Wellington": (-41.28646, 174.77624, 32760, 313784, 5427057),
}


@pytest.mark.parametrize("place", PLACES)
def test_known_places_have_their_published_coordinates(place):
    lat, lon, epsg, east, north = PLACES[place]
    zone = choose_zone([lat], [lon])
    assert zone.epsg == epsg
    np.testing.assert_allclose(utm_from_geographic([lat], [lon], zone), [[east, north]], atol=1.0)


@pytest.mark.parametrize("lat", [0.0, 47.5, 84.0])
def test_the_central_meridian_is_as_long_as_the_ellipse_times_the_scale(lat):
    ((east, north),) = utm_from_geographic([lat], [9.0], Zone(32))
    assert east == pytest.approx(500_000, abs=1e-9)
    assert north == pytest.approx(0.9996 * meridian_arc_m(np.radians(lat)), abs=1e-6)


@pytest.mark.parametrize(("lat", "offset"), [(-79.0, 50.0), (-33.0, -9.0), (0.0, 30.0), (46.0, 0.7), (83.0, -3.0)])
def test_the_series_equals_the_continued_meridian_arc_below_a_micrometre(lat, offset):
    zone = Zone(32)
    np.testing.assert_allclose(
        utm_from_geographic([lat], [9.0 + offset], zone)[0], transverse_mercator_m(lat, offset), atol=MICROMETRE, rtol=0
    )


@pytest.mark.parametrize(("lat", "lon"), [(30.17, -98.09), (-12.0, -100.5), (65.0, -96.2)])
def test_short_ways_have_the_length_and_bearing_of_the_geodesic_turned_by_the_convergence(lat, lon):
    zone = Zone(14, south=lat < 0)
    step = 1e-4
    phi, sine = np.radians(lat), ECCENTRICITY * np.sin(np.radians(lat))
    normal_m = AXIS_M / np.sqrt(1 - sine**2)
    meridian_m = normal_m * (1 - ECCENTRICITY**2) / (1 - sine**2)
    places = utm_from_geographic([lat, lat, lat + step], [lon, lon + step, lon], zone)
    (east, north) = (places[1:] - places[0]) @ [1, 1j]
    scale = 0.9996 * (1 + ((places[0, 0] - 500_000) / 0.9996) ** 2 / (2 * normal_m * meridian_m))
    assert abs(east) == pytest.approx(scale * normal_m * np.cos(phi) * np.radians(step), rel=2e-6)
    assert abs(north) == pytest.approx(scale * meridian_m * np.radians(step), rel=2e-6)
    convergence = np.arctan(np.tan(np.radians(lon + 99)) * np.sin(phi))
    assert np.angle(east) == pytest.approx(convergence, abs=2e-5)
    assert np.angle(north) - np.pi / 2 == pytest.approx(convergence, abs=2e-5)


def test_southern_zones_count_north_from_ten_million_metres_below_the_equator():
    difference = utm_from_geographic([-20.0], [9.5], Zone(32, south=True)) - utm_from_geographic(
        [-20.0], [9.5], Zone(32)
    )
    np.testing.assert_array_equal(difference, [[0, 10_000_000]])


@pytest.mark.parametrize(("lon", "number"), [(-180.0, 1), (-174.01, 1), (-174.0, 2), (179.99, 60), (180.0, 1)])
def test_zones_are_six_degrees_wide_from_the_date_line(lon, number):
    assert choose_zone([10.0], [lon]) == Zone(number)


def test_a_survey_across_the_date_line_lies_in_one_zone_and_is_small():
    lat, lon = np.full(4, -17.0), np.array([179.999, 179.9995, -179.9994, -179.999])
    zone = choose_zone(lat, lon)
    assert zone == Zone(1, south=True)
    assert np.ptp(utm_from_geographic(lat, lon, zone)[:, 0]) == pytest.approx(213, abs=1)


def test_a_minority_of_wild_places_does_not_choose_the_zone():
    assert choose_zone([-10.0] * 6 + [80.0] * 2, [151.0] * 6 + [0.0] * 2) == Zone(56, south=True)


def test_a_zone_that_does_not_exist_is_refused():
    with pytest.raises(UsageError, match="no UTM zone 61"):
        Zone(61)
