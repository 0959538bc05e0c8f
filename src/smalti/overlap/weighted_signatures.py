"""The paper's external model: signatures of visual words, weighted by training on the agent's answers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, issparse
from scipy.special import expit, logit

from smalti.errors import ModelError
from smalti.overlap.signature_distances import signature_set_of
from smalti.overlap.similar_pairs import finder_of
from smalti.overlap.threshold_scan import MOST_FRAMES_OF_A_MATRIX, Batches
from smalti.overlap.weight_training import fit_weights
from smalti.records import PairNumbers

SHARPNESS = 3.0
"""β of the logistic function."""


class WeightedSignatures:
    """P^ext = h_β(1 - Σ_d w_d (s_d^i - s_d^j)²) with weights w ≥ 1 (Eq. bow_probability)."""

    def __init__(
        self,
        signatures: NDArray[np.float64] | csr_array,
        *,
        sharpness: float = SHARPNESS,
        weights: NDArray[np.float64] | None = None,
        most_frames_of_a_matrix: int = MOST_FRAMES_OF_A_MATRIX,
    ) -> None:
        """Take signatures (N, D), rows of length 1, as a dense or sparse array."""
        self.signatures = _checked(signatures)
        self.sharpness = sharpness
        self._signature_set = signature_set_of(self.signatures)
        self._finder = finder_of(self._signature_set, most_frames_of_a_matrix)
        self.weights = np.ones(self._signature_set.words) if weights is None else weights

    @property
    def frames(self) -> int:
        """N."""
        return self._signature_set.frames

    def probabilities(self) -> NDArray[np.float64]:
        """Return P^ext of all pairs (N, N)."""
        return self._probability(self._signature_set.all_distances(self.weights))

    def of_pairs(self, pairs: PairNumbers) -> NDArray[np.float64]:
        """Return P^ext of the pairs (n, 2)."""
        return self._probability(self._signature_set.distances(self.weights, pairs))

    def pairs_above(self, least: NDArray[np.float64], starts: NDArray[np.int64]) -> Batches:
        """Yield the pairs whose P^ext reaches least[I, J], by pair of blocks, then i, then j."""
        level = logit(np.clip(least, 0.0, 1.0 - 1e-12)) / self.sharpness
        level[least > 1.0] = np.inf
        for pairs, similarity in self._finder.reaching(self.weights, level, starts):
            yield pairs, expit(self.sharpness * similarity)

    def learn(self, overlapping: PairNumbers, apart: PairNumbers) -> WeightedSignatures:
        """Return the model whose weights fit these answers best.

        Differs from the paper: the bounds w ≥ 1 are used directly, without a logarithm of w. Without a "no" answer the
        weights stay at one. The search always starts from one and sorts the answers by pair. So the weights are a
        function of the set of answers, bit for bit.
        """
        weights = np.ones(self._signature_set.words)
        if len(apart):
            overlapping, apart = _sorted(overlapping), _sorted(apart)
            differences = self._signature_set.differences(np.concatenate([overlapping, apart]), apart)
            label = np.repeat([1.0, -1.0], [len(overlapping), len(apart)])
            # Inverse class frequency: few refused pairs weigh as much as the many consecutive pairs.
            importance = np.where(label > 0, 0.5 / max(len(overlapping), 1), 0.5 / len(apart))
            weights[differences.words] = fit_weights(differences, label, importance, self.sharpness)
        return self._with(weights)

    def pooled(self, neighbours: csr_array) -> WeightedSignatures:
        """Return the untrained model of pooled signatures: each frame's is the sum of its neighbours' signatures.

        `neighbours` (N, N) is the weight of each frame in another's sum, itself included.
        """
        around = neighbours @ self.signatures
        if issparse(around):
            around = csr_array(around)
            return WeightedSignatures(csr_array(diags_array(1.0 / _lengths(around)) @ around), sharpness=self.sharpness)
        return WeightedSignatures(around / _lengths(around)[:, None], sharpness=self.sharpness)

    def _with(self, weights: NDArray[np.float64]) -> WeightedSignatures:
        """Return the model of the same frames with other weights."""
        other = WeightedSignatures.__new__(WeightedSignatures)
        other.signatures, other.sharpness, other.weights = self.signatures, self.sharpness, weights
        other._signature_set, other._finder = self._signature_set, self._finder
        return other

    def _probability(self, distance: NDArray[np.float64]) -> NDArray[np.float64]:
        probability: NDArray[np.float64] = expit(self.sharpness * (1.0 - distance))
        return probability


def _sorted(pairs: PairNumbers) -> PairNumbers:
    pairs = pairs.reshape(-1, 2)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]


def _checked(signatures: NDArray[np.float64] | csr_array) -> NDArray[np.float64] | csr_array:
    """Return a copy of the signatures; check that they are finite and of length one."""
    checked: NDArray[np.float64] | csr_array
    if issparse(signatures):
        checked = csr_array(signatures.astype(np.float64))
        entries = checked.data
    else:
        checked = entries = np.array(signatures, dtype=np.float64)
    if checked.ndim != 2 or not np.isfinite(entries).all():
        raise ModelError(f"signatures must be finite and of shape (N, D), got {checked.shape}")
    lengths = _lengths(checked)
    if not np.allclose(lengths, 1.0, atol=1e-6):
        frame = int(np.argmax(np.abs(lengths - 1.0)))
        raise ModelError(f"signature of frame {frame} has length {lengths[frame]:.3g}, expected 1")
    return checked


def _lengths(signatures: NDArray[np.float64] | csr_array) -> NDArray[np.float64]:
    """Return the length of every signature (N,)."""
    if issparse(signatures):
        return np.sqrt(np.asarray((signatures**2).sum(axis=1), dtype=np.float64).ravel())
    return np.asarray(np.linalg.norm(signatures, axis=1))
