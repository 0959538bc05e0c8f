"""External models asked pair by pair: the same numbers as their matrix, and no pair missed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from smalti.errors import ModelError
from smalti.overlap.external_model import (
    ExternalModel,
    FixedProbabilities,
    NoExternalModel,
    PairwiseModel,
    PositionSensor,
    pairwise,
)
from smalti.overlap.weighted_signatures import WeightedSignatures

FRAMES = 61
ALL_PAIRS = np.column_stack(np.triu_indices(FRAMES, 1))


class Foreign:
    """A model that has only what a plug-in must have; it learns a factor, how often it was taught."""

    def __init__(self, matrix: np.ndarray, taught: int = 0) -> None:
        self.matrix, self.taught = matrix, taught

    def probabilities(self) -> np.ndarray:
        return self.matrix * 0.5**self.taught

    def learn(self, overlapping: np.ndarray, apart: np.ndarray) -> Foreign:
        return Foreign(self.matrix, self.taught + 1)


def some_matrix() -> np.ndarray:
    matrix = np.random.default_rng(1).random((FRAMES, FRAMES))
    matrix = (matrix + matrix.T) / 2
    matrix[matrix < 0.3] = 0.0
    return matrix


def some_signatures(share: float, words: int = 40) -> np.ndarray:
    rng = np.random.default_rng(2)
    raw = rng.exponential(size=(FRAMES, words)) * (rng.random((FRAMES, words)) < share)
    raw[:, 0] += 0.2
    # Some frames that look alike, so that every level has pairs.
    raw[30:] += 2.0 * raw[: FRAMES - 30]
    return raw / np.linalg.norm(raw, axis=1, keepdims=True)


def some_weights(words: int = 40) -> np.ndarray:
    rng = np.random.default_rng(3)
    return 1.0 + 3.0 * rng.exponential(size=words) * (rng.random(words) < 0.4)


def some_sensor(deviation: float, most_frames_of_a_matrix: int) -> PositionSensor:
    rng = np.random.default_rng(4)
    roots = deviation * rng.normal(size=(FRAMES, 2, 2))
    positions = np.cumsum(rng.normal(size=(FRAMES, 2)), axis=0)
    covariances = roots @ np.swapaxes(roots, 1, 2)
    headings = rng.uniform(0, 6, FRAMES)
    return PositionSensor(positions, covariances, (5.0, 4.0), headings, most_frames_of_a_matrix=most_frames_of_a_matrix)


MODELS: dict[str, PairwiseModel] = {
    "nothing": NoExternalModel(FRAMES),
    "matrix": FixedProbabilities(some_matrix()),
    "foreign": pairwise(Foreign(some_matrix())),
    "dense signatures": WeightedSignatures(some_signatures(0.9)),
    "dense signatures, trained": WeightedSignatures(some_signatures(0.9), weights=some_weights()),
    "sparse signatures": WeightedSignatures(csr_array(some_signatures(0.1))),
    "sparse signatures, trained": WeightedSignatures(some_signatures(0.1), weights=some_weights()),
    "index": WeightedSignatures(some_signatures(0.1), most_frames_of_a_matrix=9),
    "index, trained": WeightedSignatures(some_signatures(0.1), weights=some_weights(), most_frames_of_a_matrix=9),
    "index, dense": WeightedSignatures(some_signatures(0.9), weights=some_weights(), most_frames_of_a_matrix=9),
    "sensor": some_sensor(1.0, 1000),
    "sensor without errors": some_sensor(0.0, 1000),
    "sensor, listed": some_sensor(1.0, 9),
    "sensor without errors, listed": some_sensor(0.0, 9),
}


# A matrix in memory, an index and a list of positions are gone through each in its own way.
each_way_of_looking = pytest.mark.parametrize(
    "name", ["nothing", "matrix", "dense signatures, trained", "index, trained", "sensor", "sensor, listed"]
)


def cut(block: int) -> np.ndarray:
    return np.append(np.arange(0, FRAMES, block), FRAMES)


def level_of_pairs(least: np.ndarray, starts: np.ndarray) -> np.ndarray:
    block = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return least[block[ALL_PAIRS[:, 0]], block[ALL_PAIRS[:, 1]]]


def collect(model: PairwiseModel, least: np.ndarray, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    batches = list(model.pairs_above(least, starts))
    pairs = np.concatenate([np.empty((0, 2), dtype=np.int64), *(pairs for pairs, _ in batches)])
    return pairs, np.concatenate([np.empty(0), *(bound for _, bound in batches)])


def random_least(seed: int, blocks: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    least = rng.uniform(size=(blocks, blocks))
    least[rng.random(least.shape) < 0.15] = 0.0
    least[rng.random(least.shape) < 0.15] = np.inf
    return least


@pytest.mark.parametrize("name", MODELS)
def test_single_pairs_have_the_probability_of_the_matrix(name: str) -> None:
    model = MODELS[name]
    expected = model.probabilities()[ALL_PAIRS[:, 0], ALL_PAIRS[:, 1]]
    np.testing.assert_allclose(model.of_pairs(ALL_PAIRS), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_every_pair_that_reaches_its_level_is_found_and_hardly_any_other(name: str) -> None:
    model = MODELS[name]
    exact = model.of_pairs(ALL_PAIRS)
    # Blocks of a frame each, some that do not divide the frames, all frames at once.
    for seed, block in enumerate((1, 8, FRAMES)):
        starts = cut(block)
        least = random_least(seed, len(starts) - 1)
        pairs, bound = collect(model, least, starts)
        level = level_of_pairs(least, starts)
        found = set(map(tuple, pairs.tolist()))
        assert len(found) == len(pairs)
        assert found >= set(map(tuple, ALL_PAIRS[exact >= level].tolist()))
        assert found <= set(map(tuple, ALL_PAIRS[exact >= level - 1e-4].tolist()))
        assert (bound >= model.of_pairs(pairs)).all()
        assert (bound <= model.of_pairs(pairs) + 1e-4).all()


@each_way_of_looking
def test_pairs_come_by_pair_of_blocks_then_by_frames_however_the_frames_are_cut(name: str) -> None:
    for starts in (cut(20), cut(8)):
        pairs, _ = collect(MODELS[name], np.full((len(starts) - 1, len(starts) - 1), 0.1), starts)
        block = np.repeat(np.arange(len(starts) - 1), np.diff(starts))[pairs]
        order = np.lexsort((pairs[:, 1], pairs[:, 0], block[:, 1], block[:, 0]))
        np.testing.assert_array_equal(order, np.arange(len(pairs)))


@each_way_of_looking
def test_a_level_of_zero_asks_for_all_pairs_and_infinity_for_none(name: str) -> None:
    starts = cut(8)
    blocks = len(starts) - 1
    everything, _ = collect(MODELS[name], np.zeros((blocks, blocks)), starts)
    assert len(everything) == len(ALL_PAIRS)
    nothing, _ = collect(MODELS[name], np.full((blocks, blocks), np.inf), starts)
    assert len(nothing) == 0


@each_way_of_looking
def test_batches_are_no_larger_than_they_may_be(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("smalti.overlap.threshold_scan", "smalti.overlap.position_sensor", "smalti.overlap.similar_pairs"):
        monkeypatch.setattr(f"{room}.PAIRS_AT_ONCE", 100)
    starts = cut(8)
    batches = list(MODELS[name].pairs_above(np.zeros((len(starts) - 1, len(starts) - 1)), starts))
    assert len(batches) > 1
    # A sensor may add one more pair of blocks to a batch that is not full.
    assert max(len(pairs) for pairs, _ in batches) <= 100 + 64
    assert sum(len(pairs) for pairs, _ in batches) == len(ALL_PAIRS)


@pytest.mark.parametrize("deviation", [0.0, 1.0])
@pytest.mark.parametrize("block", [3, 20])
def test_a_sensor_of_frames_that_are_all_near_misses_nothing(
    block: int, deviation: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("smalti.overlap.position_sensor.MOST_NEAR", 10)
    model, starts = some_sensor(deviation, 9), cut(block)
    exact = model.of_pairs(ALL_PAIRS)
    for seed in range(3):
        least = random_least(seed, len(starts) - 1)
        pairs, bound = collect(model, least, starts)
        assert len(pairs) >= np.count_nonzero(exact >= level_of_pairs(least, starts))
        assert len(pairs) <= np.count_nonzero(exact >= level_of_pairs(least, starts) - 1e-4)
        assert (bound >= model.of_pairs(pairs)).all()


def test_a_sensor_asked_for_less_likely_pairs_lists_more() -> None:
    model, starts = some_sensor(1.0, 9), cut(8)
    exact = model.of_pairs(ALL_PAIRS)
    for level in (0.9, 0.6, 0.1, 0.002, 0.5):
        pairs, _ = collect(model, np.full((len(starts) - 1, len(starts) - 1), level), starts)
        assert len(pairs) == np.count_nonzero(exact >= level)


def test_levels_below_the_diagonal_are_not_read() -> None:
    starts = cut(8)
    least = np.full((len(starts) - 1, len(starts) - 1), np.inf)
    least[np.tril_indices_from(least, -1)] = 0.0
    for name, model in MODELS.items():
        assert len(collect(model, least, starts)[0]) == 0, name


def test_another_cut_of_the_same_matrix_is_not_answered_by_the_largest_entries_of_the_first() -> None:
    model = FixedProbabilities(some_matrix())
    for block in (20, 7, 20):
        starts = cut(block)
        least = np.full((len(starts) - 1, len(starts) - 1), 0.8)
        assert len(collect(model, least, starts)[0]) == np.count_nonzero(model.of_pairs(ALL_PAIRS) >= 0.8)


def test_a_level_between_two_single_precision_numbers_misses_nothing() -> None:
    below = float(np.nextafter(np.float32(0.7), np.float32(0)))
    for level in np.linspace(below, float(np.float32(0.7)), 7):
        model = FixedProbabilities(np.full((2, 2), level))
        assert len(list(model.pairs_above(np.full((1, 1), level), np.array([0, 2])))) == 1


def test_knowing_nothing_takes_no_memory_for_a_million_frames() -> None:
    starts = np.arange(0, 1_000_001, 1000)
    least = np.full((1000, 1000), np.inf)
    least[3, 900] = 1.0
    pairs, bound = collect(NoExternalModel(1_000_000), least, starts)
    assert len(pairs) == 1_000_000
    assert pairs[0].tolist() == [3000, 900_000]
    assert (bound == 1.0).all()


def test_a_model_that_can_be_asked_by_pair_is_asked_itself() -> None:
    model = NoExternalModel(3)
    assert pairwise(model) is model


def test_a_foreign_model_goes_on_learning() -> None:
    model = pairwise(Foreign(some_matrix()))
    taught = model.learn(np.array([[0, 1]]), np.array([[0, 2]]))
    assert hasattr(taught, "pairs_above")
    np.testing.assert_array_equal(taught.of_pairs(ALL_PAIRS), model.of_pairs(ALL_PAIRS) / 2)


@pytest.mark.parametrize("shape", [(2, 3), (2, 2, 2)])
def test_a_foreign_model_whose_matrix_is_not_square_is_refused(shape: tuple[int, ...]) -> None:
    model: ExternalModel = Foreign(np.zeros(shape))
    with pytest.raises(ModelError, match=r"expected \(N, N\)"):
        pairwise(model)


def test_trained_models_of_a_family_do_not_mix_their_matrices() -> None:
    untrained = WeightedSignatures(some_signatures(0.1))
    overlapping = ALL_PAIRS[::50]
    models = [untrained, *(untrained.learn(overlapping, ALL_PAIRS[n : n + 3]) for n in (1, 9, 33))]
    starts = cut(16)
    least = np.full((len(starts) - 1, len(starts) - 1), 0.3)
    for model in [*models, *models]:
        assert len(collect(model, least, starts)[0]) == np.count_nonzero(model.of_pairs(ALL_PAIRS) >= 0.3)


def test_many_frames_are_shared_among_cores_without_a_change_of_a_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for least_frames in (10_000, 0):
        monkeypatch.setattr("smalti.overlap.sparse_signatures.FRAMES_TO_SHARE", least_frames)
        model = WeightedSignatures(some_signatures(0.1), weights=some_weights())
        found.append(collect(model, np.zeros((1, 1)), cut(FRAMES)))
    np.testing.assert_array_equal(found[0][1], found[1][1])
