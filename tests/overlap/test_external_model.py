"""External models: what they say, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from smalti.active_loop import ActiveLoop
from smalti.errors import ModelError
from smalti.overlap.external_model import ExternalModel, FixedProbabilities, NoExternalModel, PositionSensor
from smalti.overlap.weighted_signatures import WeightedSignatures
from smalti_lab.experiments.worlds import OUTLINE, raster

NO_PAIRS = np.empty((0, 2), dtype=np.int64)


def test_no_external_model_gives_every_pair_one() -> None:
    np.testing.assert_array_equal(NoExternalModel(4).probabilities(), np.ones((4, 4)))


def test_fixed_probabilities_are_returned_as_given() -> None:
    matrix = np.array([[1.0, 0.25], [0.25, 1.0]])
    np.testing.assert_array_equal(FixedProbabilities(matrix).probabilities(), matrix)


def test_fixed_probabilities_do_not_follow_later_changes_of_the_array_they_were_made_of() -> None:
    matrix = np.array([[1.0, 0.25], [0.25, 1.0]])
    model = FixedProbabilities(matrix)
    matrix[0, 1] = 0.9
    assert model.probabilities()[0, 1] == 0.25


@pytest.mark.parametrize(
    "model",
    [
        NoExternalModel(3),
        FixedProbabilities(np.eye(3)),
        PositionSensor(np.zeros((3, 2)), np.eye(2), (1.0, 1.0)),
    ],
)
def test_models_that_cannot_learn_return_themselves(model: ExternalModel) -> None:
    assert model.learn(np.array([[0, 1]]), np.array([[0, 2]])) is model


@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 2)])
def test_fixed_probabilities_that_are_not_square_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match=r"expected \(N, N\)"):
        FixedProbabilities(np.zeros(shape))


@pytest.mark.parametrize("wrong", [-1e-6, 1.0 + 1e-6, math.nan])
def test_fixed_probabilities_out_of_range_are_refused(wrong: float) -> None:
    with pytest.raises(ModelError, match="between 0 and 1"):
        FixedProbabilities(np.array([[1.0, wrong], [wrong, 1.0]]))


def test_fixed_probabilities_that_are_not_symmetric_are_refused() -> None:
    with pytest.raises(ModelError, match="symmetric"):
        FixedProbabilities(np.array([[1.0, 0.25], [0.5, 1.0]]))


def sensed_frames() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    positions = np.array([[0.0, 0.0], [9.0, 3.0], [-6.0, 12.0], [14.0, -10.0], [2.0, 1.0]])
    rng = np.random.default_rng(8)
    roots = rng.normal(size=(5, 2, 2)) * np.array([1.0, 2.0, 4.0, 0.5, 8.0])[:, None, None]
    covariances = roots @ np.swapaxes(roots, 1, 2) + 0.1 * np.eye(2)
    headings = np.array([0.0, 0.6, -1.2, 2.5, 1.0])
    return positions, covariances, headings


def directed_by_sampling(i: int, j: int, footprint: tuple[float, float], samples: int) -> float:
    """How often the centre of i falls in j, by drawing both true positions."""
    positions, covariances, headings = sensed_frames()
    rng = np.random.default_rng([i, j])
    centre_i = rng.multivariate_normal(positions[i], covariances[i], size=samples)
    centre_j = rng.multivariate_normal(positions[j], covariances[j], size=samples)
    x_axis = np.array([math.cos(headings[j]), math.sin(headings[j])])
    y_axis = np.array([-math.sin(headings[j]), math.cos(headings[j])])
    offset = centre_i - centre_j
    inside = (np.abs(offset @ x_axis) <= footprint[0] / 2) & (np.abs(offset @ y_axis) <= footprint[1] / 2)
    return float(inside.mean())


def test_position_sensor_agrees_with_drawn_positions_for_headings_and_unequal_covariances() -> None:
    footprint, samples = (24.0, 11.0), 60_000
    positions, covariances, headings = sensed_frames()
    found = PositionSensor(positions, covariances, footprint, headings).probabilities()
    for i in range(5):
        for j in range(i + 1, 5):
            both = [directed_by_sampling(a, b, footprint, samples) for a, b in ((i, j), (j, i))]
            # Five standard errors of the mean of two estimates, each of variance 1/(4·samples) at most.
            assert found[i, j] == pytest.approx(np.mean(both), rel=0, abs=5 * math.sqrt(1 / (8 * samples)))


def test_position_sensor_is_symmetric() -> None:
    positions, covariances, headings = sensed_frames()
    found = PositionSensor(positions, covariances, (24.0, 11.0), headings).probabilities()
    np.testing.assert_array_equal(found, found.T)


def test_position_sensor_takes_one_covariance_for_all_frames() -> None:
    positions, _, headings = sensed_frames()
    one = np.array([[4.0, 1.0], [1.0, 3.0]])
    shared = PositionSensor(positions, one, (24.0, 11.0), headings)
    each = PositionSensor(positions, np.tile(one, (5, 1, 1)), (24.0, 11.0), headings)
    np.testing.assert_array_equal(shared.probabilities(), each.probabilities())


def test_position_sensor_without_headings_takes_the_frames_along_the_sensors_axes() -> None:
    positions, covariances, _ = sensed_frames()
    unturned = PositionSensor(positions, covariances, (24.0, 11.0))
    turned_by_zero = PositionSensor(positions, covariances, (24.0, 11.0), np.zeros(5))
    np.testing.assert_array_equal(unturned.probabilities(), turned_by_zero.probabilities())


def test_turning_sensor_and_headings_together_changes_no_probability() -> None:
    positions, covariances, headings = sensed_frames()
    angle = 0.7
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    found = PositionSensor(positions, covariances, (24.0, 11.0), headings).probabilities()
    turned = PositionSensor(
        positions @ turn.T, turn @ covariances @ turn.T, (24.0, 11.0), headings + angle
    ).probabilities()
    np.testing.assert_allclose(turned, found, rtol=0, atol=1e-12)


@pytest.mark.parametrize("positions", [np.zeros((4, 3)), np.zeros(4), np.array([[0.0, math.nan]] * 4)])
def test_position_sensor_refuses_positions_that_are_not_finite_points(positions: np.ndarray) -> None:
    with pytest.raises(ModelError, match="positions"):
        PositionSensor(positions, np.eye(2), (1.0, 1.0))


def test_position_sensor_refuses_headings_of_another_length() -> None:
    with pytest.raises(ModelError, match="headings"):
        PositionSensor(np.zeros((4, 2)), np.eye(2), (1.0, 1.0), np.zeros(3))


@pytest.mark.parametrize("shape", [(3, 2, 2), (4, 2)])
def test_position_sensor_refuses_covariances_of_another_shape(shape: tuple[int, ...]) -> None:
    with pytest.raises(ModelError, match="covariance"):
        PositionSensor(np.zeros((4, 2)), np.ones(shape), (1.0, 1.0))


def test_position_sensor_refuses_covariances_that_are_not_finite() -> None:
    with pytest.raises(ModelError, match="covariance"):
        PositionSensor(np.zeros((4, 2)), np.full((2, 2), math.nan), (1.0, 1.0))


@pytest.mark.parametrize(
    "external",
    [
        NoExternalModel(9),
        FixedProbabilities(np.eye(11)),
        PositionSensor(np.zeros((9, 2)), np.eye(2), (1.0, 1.0)),
        WeightedSignatures(np.eye(9)),
    ],
)
def test_a_model_of_another_number_of_frames_is_refused_when_the_loop_starts(external: ExternalModel) -> None:
    world = raster(10)
    with pytest.raises(ModelError, match="the sequence has 10"):
        ActiveLoop.start(10, OUTLINE, world.chain(world.agent(1)), external=external)
