"""How large the error is now, as far as the mosaic itself can tell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.overlap.bounds import quick_probability
from smalti.suggestion.view import View


def predicted_error(view: View, part: NDArray[np.int64] | None = None) -> float:
    """Return the RMS distance, in pixels, that overlapping frames are expected to be apart from the truth.

    √ of the mean of tr Σ_γ over all pairs, weighted by how likely each pair is to overlap. It needs no ground truth.
    With `part` (N,), the mosaic of every frame, pairs of two mosaics do not count: only a guess says how they lie.
    """
    frames = view.frames
    upper = np.triu_indices(frames, 1)
    weight = overlap_probability(view)[upper]
    if part is not None:
        weight = weight * (part[upper[0]] == part[upper[1]])
        if not weight.any():
            return 0.0  # every frame is a mosaic of its own
    spread = view.centres.spread_squared
    mean_spread = (spread[upper] + spread.T[upper]) / 2
    return float(np.sqrt(np.sum(weight * mean_spread) / np.sum(weight)))


def overlap_probability(view: View) -> NDArray[np.float64]:
    """Return for all pairs (N, N) how likely they are to overlap, given everything that is known.

    Differs from the paper: P^ext·P^pos ranks pairs but is not a probability. Here P^pos is the prior, and P^ext, read
    as a probability for a pair of which nothing else is known, is evidence against the mean of P^pos over all pairs.
    Answered pairs are certain.
    """
    centres, frames = view.centres, view.frames
    directed = quick_probability(centres.mean, centres.cov, centres.outline)
    position = (directed + directed.T) / 2
    base_rate = float((position.sum() - frames) / (frames * (frames - 1)))
    external = view.external_probabilities
    apart = (1.0 - position) * (1.0 - external) * base_rate
    together = position * external * (1.0 - base_rate)
    with np.errstate(invalid="ignore"):
        probability = np.nan_to_num(together / (together + apart))
    for pair in view.settled:
        probability[pair.i, pair.j] = probability[pair.j, pair.i] = 0.0
    for pair in view.adjustment.links:
        probability[pair.i, pair.j] = probability[pair.j, pair.i] = 1.0
    return probability
