"""First maps for Gauss-Newton: the previous ones, or turns, scales and positions by linear least squares on all links.

From a chain that has drifted by radians, Gauss-Newton diverges or needs hundreds of steps. Turns alone are a linear
problem in c = exp(iθ): a link measures c_j = g c_i, where g is its turn. The logarithms of scales are linear as well.
With turns and scales known, so are positions. Three sparse systems with one unknown per frame give these. Stretch and
perspective stay as they were.

`first_guess` is the entry; `_agree_linearly` solves the three systems; `_joined` moves parts that a new link joins.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from smalti.engine.equations import System
from smalti.engine.linearisation import Weights, linearise
from smalti.engine.links import linear_part
from smalti.engine.normal_equations import accumulate
from smalti.geometry.homographies import ROTATION, SCALE, similarity_part
from smalti.records import Homographies
from smalti.sparse.block_products import Blocks
from smalti.sparse.cholesky import BlockCholesky

REGULARISATION = 1e-13
"""As a share of the largest squared weight, added to the diagonal: determines frames with almost no information."""

FAR_OFF = 30.0
"""If the cost is more than so many times its expectation, the linear solution is tried as a start."""

Complex = NDArray[np.complex128]
Numbers = Complex | NDArray[np.float64]


def first_guess(system: System, weights: Weights, before: System, node_maps: Homographies) -> Homographies:
    """Return first maps: those of a previous system, with parts that are joined now moved to each other.

    If their cost is too large, return the linear solution, provided that it is better.
    """
    start = node_maps if np.array_equal(before.part, system.part) else _joined(system, before, node_maps)
    maps = np.ascontiguousarray(start[: system.frames])
    shared = start[system.frames :] if len(start) > system.frames else np.eye(3)[None][: system.nodes - system.frames]
    rows = linearise(system, weights, np.concatenate([maps, shared]))
    if rows is not None and rows.cost <= FAR_OFF * rows.residual.size:
        return start
    agreed = np.concatenate([_agree_linearly(system, weights.links, maps), shared])
    others = linearise(system, weights, agreed) if np.isfinite(agreed).all() else None
    better = others is not None and (rows is None or others.cost < rows.cost)
    return agreed if better else start


def _agree_linearly(system: System, weights: NDArray[np.float64], maps: Homographies) -> Homographies:
    """Return maps (N, 3, 3) with turns, scales and positions by linear least squares on links with weights (L,)."""
    linear = linear_part(system.measured)
    turned = (linear[:, 0, 0] + linear[:, 1, 1]) + 1j * (linear[:, 1, 0] - linear[:, 0, 1])
    turn = turned / np.maximum(np.abs(turned), 1e-12)
    log_scale = 0.5 * np.log(np.maximum(np.abs(np.linalg.det(linear)), 1e-12))
    by_entry = system.family.by_entry
    information = np.linalg.norm(system.roots @ by_entry.T, axis=1) * weights[:, None]
    place_information, turn_information = (
        np.maximum(information[:, :2].max(axis=1), 1e-9),
        np.maximum(information[:, min(ROTATION, len(by_entry) - 1)], 1e-9),
    )

    fixed = system.references
    before = _place_turn_scale(maps)
    _, angle, scale = before
    if system.family.freedom > ROTATION:
        angle = np.angle(_solve(system, turn, np.zeros(len(turn)), turn_information, fixed, np.exp(1j * angle[fixed])))
    if system.family.freedom > SCALE:
        ones = np.ones(len(turn))
        scale = np.exp(_solve(system, ones, log_scale, turn_information, fixed, np.log(scale[fixed])).real)
    c: Complex = scale * np.exp(1j * angle)
    offset = system.offsets[:, 0] + 1j * system.offsets[:, 1]
    away = c[system.ends[:, 0]] * offset
    # A link's shift is known in units of frame i, which is `scale` units of the mosaic.
    place_weights = place_information / scale[system.ends[:, 0]]
    place = _solve(system, np.ones(len(turn)), away, place_weights, fixed, before[0][fixed])
    return _moved_to(maps, before, place, c)


def _solve(
    system: System, factor: Numbers, shift: Numbers, weights: NDArray[np.float64], fixed: NDArray[np.int64], at: Numbers
) -> Complex:
    """Return the unknowns (N,) of x_j = factor x_i + shift by least squares, with frames `fixed` at the values `at`."""
    frames, nodes = system.frames, system.nodes
    strongest = float(weights.max(initial=0.0)) ** 2
    diagonal, gradient = np.zeros((nodes, 2, 2)), np.zeros((nodes, 2))
    off_diagonal = np.zeros((len(system.pattern.edges), 2, 2))
    diagonal[:, [0, 1], [0, 1]] = REGULARISATION * strongest
    # Fix the gauge of every part, as strongly as the strongest link.
    diagonal[fixed[:, None], [0, 1], [0, 1]] = strongest
    diagonal[frames:, [0, 1], [0, 1]] = 1.0  # the shared node is not estimated here
    gradient[fixed] = -strongest * _parts(at)
    by_i, by_j = -_as_real(weights * factor), _as_real(weights)
    accumulate(system.ends, system.every, by_i, by_j, _parts(-weights * shift), diagonal, off_diagonal, gradient)
    cholesky = BlockCholesky(system.pattern, diagonal, off_diagonal, least_pivot_share=0.0)
    real, imaginary = -cholesky.solve(gradient[..., None])[:frames, :, 0].T
    return np.asarray(real + 1j * imaginary)


def _parts(numbers: Numbers) -> NDArray[np.float64]:
    """Return real and imaginary parts (n, 2)."""
    return np.column_stack([numbers.real, numbers.imag])


def _as_real(factor: Numbers) -> Blocks:
    """Return complex factors (n,) as matrices (n, 2, 2) that act on real and imaginary parts."""
    return np.stack([factor.real, -factor.imag, factor.imag, factor.real], axis=1).reshape(-1, 2, 2)


def _place_turn_scale(maps: Homographies) -> tuple[Complex, NDArray[np.float64], NDArray[np.float64]]:
    """Return the centres of frames, as complex numbers, their turns and their scales."""
    scaled = maps / maps[:, 2:, 2:]
    linear = linear_part(scaled)
    angle = np.arctan2(linear[:, 1, 0] - linear[:, 0, 1], linear[:, 0, 0] + linear[:, 1, 1])
    scale = np.sqrt(np.maximum(np.abs(np.linalg.det(linear)), 1e-12))
    return scaled[:, 0, 2] + 1j * scaled[:, 1, 2], angle, scale


def _moved_to(
    maps: Homographies,
    before: tuple[Complex, NDArray[np.float64], NDArray[np.float64]],
    place: Complex,
    c: Complex,
) -> Homographies:
    """Return maps with new positions `place` and new scales and turns `c`, by a similarity on each frame."""
    old_place, angle, old_scale = before
    turned = c / (old_scale * np.exp(1j * angle))
    shift = place - turned * old_place
    similarity = np.tile(np.eye(3), (len(maps), 1, 1))
    similarity[:, 0, 0] = similarity[:, 1, 1] = turned.real
    similarity[:, 1, 0], similarity[:, 0, 1] = turned.imag, -turned.imag
    similarity[:, 0, 2], similarity[:, 1, 2] = shift.real, shift.imag
    moved = similarity @ maps
    return np.ascontiguousarray(moved / moved[:, 2:, 2:])


def _joined(system: System, before: System, node_maps: Homographies) -> Homographies:
    """Return the previous maps, with parts that are joined now moved to each other by the links that join them."""
    first = system.first_maps()
    maps = node_maps[: system.frames].copy()
    old, new = before.part, system.part
    for part in range(int(new.max()) + 1):
        inside = np.flatnonzero(new == part)
        largest = int(np.argmax(np.bincount(old[inside])))
        placed = set(inside[old[inside] == largest].tolist())
        moved = True
        while moved and len(placed) < len(inside):
            moved = False
            for n, (i, j) in enumerate(system.ends.tolist()):
                if new[i] != part or (i in placed) == (j in placed):
                    continue
                known, other = (i, j) if i in placed else (j, i)
                group = np.flatnonzero((old == old[other]) & (new == part))
                forth = similarity_part(system.measured[n] if known == i else system.measured_back[n])
                shift = maps[known] @ forth @ np.linalg.inv(similarity_part(maps[other]))
                maps[group] = similarity_part(shift) @ maps[group]
                placed.update(group.tolist())
                moved = True
                break
        if len(placed) < len(inside):
            maps[inside] = first[inside]
    return np.ascontiguousarray(maps / maps[:, 2:, 2:])
