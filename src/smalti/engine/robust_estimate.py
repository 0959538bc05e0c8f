"""The state of a mosaic after answers: which links to believe, and how noisy they are.

It is a function of the links alone, whatever the order in which they came: everything is computed anew from the chain,
whose own estimate is made once. So answers can be forgotten, replayed and taken in together, to the last bit.

A link that contradicts all others by far is *rejected*: kept, named, not used. All are judged at once: those that
contradict the rest worst go first, then whoever agrees with what is left comes back. A person's answer is never
rejected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smalti.engine.camera_learning import USUAL_DEVIATION, learn_camera
from smalti.engine.equations import System
from smalti.engine.estimate import ENOUGH_GAIN, Estimate, anneal
from smalti.engine.initialisation import first_guess
from smalti.engine.links import Link
from smalti.engine.solution import solve
from smalti.engine.variance_components import (
    CHAIN,
    CHAIN_INFLATION,
    LARGEST_CHI2,
    LOG_DEVIATION,
    MATCHER,
    PERSON,
    NoiseModel,
    learn_chain_noise,
    learn_noise,
    learn_robust_weights,
)
from smalti.records import Pair, PairNumbers, pair_key

ROUNDS = 6
"""In which noise is learned; they begin where the chain's have ended."""

LEARNING_GAIN = 1e-2
"""Of the cost, from one round to the next: maps and noise settle together, as a rule by one step a round."""

CONVERGED_LOG_NOISE = 0.1
"""Of the logarithm of a noise: when no noise changes by more, answers teach nothing more of it."""

MEDIAN_CHI2 = 7.344
"""Of 8 degrees of freedom."""

PRIOR_CHI2 = 4 * (20 * MEDIAN_CHI2,)
"""What loops may be expected to show before any has: a chain drifts by more than its noise."""

READMITTED_SHARE = 0.1
"""Of that, with which a rejected link comes back: whoever was rejected has to agree more clearly than others."""

WORST_TOGETHER = 4.0
"""Links whose χ² is within this factor of the worst one's are rejected at once."""

PRIOR_CONFIRMED = 10
"""Links that must be checked and found right before a wrong one says little of the others."""

TRUSTED_PROBABILITY = 0.9
"""How likely all links that nobody checks are right, for it to be taken for granted."""

PASSES = 12
"""Of rejecting and coming back, at most."""

SUSPICIOUS, EXPLAINED, NO_WORSE = 2.0, 0.7, 1.25
"""Times the noise that is expected of a chain: with more the camera or some links may be wrong. What must be left of it
without them, and by how much it may grow again as the camera is held."""

NEGLIGIBLE_WEIGHT = 0.05
"""Of a link's weight: with less it disagrees with the others."""

LEAST_RESTORED_WEIGHT = 0.1
"""Of its weight, what a link of the chain has at least when answers come: without them its neighbours may have been
wrong."""

MOST_REJECTED, PLAINLY_WRONG = 0.33, 10.0
"""Of the loops: if more would have to be rejected, it is the chain that is wrong; unless each rejected link explains so
many times what it costs to reject it, which no chain that bends does."""

LOOP_NOISE_FACTORS = (3.0, 1.0)
"""By how much noisier loops count while it is open who is right: consecutive frames are rarely matched wrongly, unless
the matcher lies."""

LARGEST_INFLATION, FEW_LOOPS = 4.0, 3
"""Of the chain's noise, by as few loops: each may be wrong."""


def estimate(chain: Estimate, loops: Sequence[Link], person_pairs: Set[Pair] = frozenset()) -> Estimate:
    """Return the state after answers: the chain's links and those of `loops`, some of which a person insists on."""
    if not loops:
        return chain
    everything = {link.pair: link for link in (*chain.system.links, *loops)}
    of_loop = {link.pair for link in loops}
    return _LinkSelection(chain, everything, of_loop, frozenset(person_pairs)).run()


@dataclass
class _LinkSelection:
    """Finds out which links to believe."""

    chain: Estimate
    everything: Mapping[Pair, Link]
    of_loop: Set[Pair]
    person_pairs: frozenset[Pair]

    def run(self) -> Estimate:
        """Reject, learn, and let come back, until nothing changes; of several beginnings, take the best."""
        everything = self._solve(frozenset(), self.chain)
        state = self._learn(everything)
        selected = self._reconsider(state)
        if self._is_suspicious(state) or np.any(state.noise_model.robust_weights < NEGLIGIBLE_WEIGHT):
            # Least squares spreads what is wrong over what is right. Perhaps most links agree, but for some.
            searched = {self._disagreeing_with_most(everything, factor): None for factor in LOOP_NOISE_FACTORS}
            tried = [self._try(rejected, everything, state) for rejected in searched if rejected]
            better = [one for one in tried if one is not None]
            selected = min([selected, *better], key=self._selection_cost) if better else selected
            selected = self._exchange_rejected(selected)
        return _inflate_unconfirmed(selected)

    def _try(self, rejected: frozenset[Pair], everything: Estimate, with_all: Estimate) -> Estimate | None:
        """Return the state that begins without some links, None if it explains too little to reject them."""
        without = self._solve(rejected, self.chain)
        explained = everything.solution.rows.cost - without.solution.rows.cost
        if explained < LARGEST_CHI2 * len(rejected):
            return None
        state = self._learn(without)
        if explained < PLAINLY_WRONG * LARGEST_CHI2 * len(rejected):
            # A chain that bends contradicts all loops, whichever of them are rejected: then none is wrong.
            few = len(self.of_loop & rejected) <= MOST_REJECTED * len(self.of_loop)
            quieter = state.noise_model.noise[CHAIN] < EXPLAINED * with_all.noise_model.noise[CHAIN]
            if not few or not (quieter or not self._is_suspicious(state)):
                return None
        return self._reconsider(state)

    def _reconsider(self, state: Estimate) -> Estimate:
        """Reject who contradicts the others and let come back who agrees with them, until nobody does."""
        for _ in range(PASSES):
            changed = self._contradicting(state) or self._agreeing(state)
            if not changed:
                break
            state = self._learn(self._solve(frozenset(state.rejected) ^ changed, state))
        return state

    def _exchange_rejected(self, state: Estimate) -> Estimate:
        """Exchange who is rejected at frames most of whose links are, where that explains more.

        One wrong link that came first may have had two right ones rejected.
        """
        cost = self._selection_cost(state) if state.rejected else 0.0
        for frame in sorted({frame for pair in state.rejected for frame in (pair.i, pair.j)}):
            rejected = {pair for pair in state.rejected if frame in (pair.i, pair.j)}
            accepted = {pair for pair in state.system.place_of if frame in (pair.i, pair.j)}
            if len(rejected) <= len(accepted) or accepted & self.person_pairs:
                continue
            tried = self._reconsider(self._learn(self._solve(frozenset(state.rejected) - rejected | accepted, state)))
            if (left := self._selection_cost(tried)) < cost:
                state, cost = tried, left
        return state

    def _selection_cost(self, state: Estimate) -> float:
        """Return what links cost by what the chain has taught, and what it costs to call some wrong.

        A noise and a camera that were learned from lies would explain them.
        """
        known = self._solve(frozenset(state.rejected), state)
        return known.solution.rows.cost + LARGEST_CHI2 * len(state.rejected)

    def _is_suspicious(self, state: Estimate) -> bool:
        return state.noise_model.noise[CHAIN] > SUSPICIOUS * CHAIN_INFLATION * self.chain.local_noise

    def _disagreeing_with_most(self, everything: Estimate, loop_noise_factor: float) -> frozenset[Pair]:
        """Return the links that are far off what most of all agree on; loops count as `doubted` times noisier."""
        state, local = everything, self.chain.local_noise
        noise_model = replace(state.noise_model, noise=(local, loop_noise_factor * local, loop_noise_factor * local))
        _, squares = anneal(state.system, noise_model, state.groups, state.solution.node_maps)
        usual = float(np.median(squares[squares <= np.median(squares) * LARGEST_CHI2]))
        limit = LARGEST_CHI2 * max(1.0, usual / MEDIAN_CHI2)
        rejected: set[Pair] = set()
        for n in np.argsort(-squares, kind="stable"):
            pair = state.system.links[n].pair
            if squares[n] <= limit:
                break
            if pair not in self.person_pairs and _stay_joined(state.system, rejected | {pair}):
                rejected.add(pair)
        return frozenset(rejected)

    def _solve(self, rejected: frozenset[Pair], before: Estimate) -> Estimate:
        """Return the state of all links but the rejected ones, from the maps before.

        It begins with what the chain taught: what a wrong link taught is rejected with it.
        """
        base = self.chain.system
        links = list(self.everything.values())
        if rejected:
            links = [link for link in links if link.pair not in rejected]
        system = System.of(base.frames, base.outline, base.family, links, base.reference, base.lens)
        groups = np.where(_are_among(system, self.of_loop), MATCHER, CHAIN)
        groups[_are_among(system, self.person_pairs)] = PERSON
        noise_model = _aligned(self.chain, system)
        weights = noise_model.weights(groups)
        start = first_guess(system, weights, before.system, before.solution.node_maps)
        solution = solve(system, weights, start, ENOUGH_GAIN)
        rejected_links = {pair: self.everything[pair] for pair in sorted(rejected)}
        return Estimate(solution, groups, noise_model, rejected_links, self.person_pairs)

    def _learn(self, state: Estimate) -> Estimate:
        """Learn the noise from a set of links, and solve to the end.

        A camera that hardly moves from frame to frame may seem more level than it is. Where loops contradict the chain
        by far, it is let go altogether, if that explains them, and then held as still as they allow.
        """
        learned = self._rounds(state)
        if self._is_suspicious(learned):
            loosened = replace(state.noise_model, camera=state.noise_model.camera.loosened_to(USUAL_DEVIATION))
            weights = loosened.weights(state.groups)
            solution = solve(state.system, weights, state.solution.node_maps, ENOUGH_GAIN)
            tried = self._rounds(replace(state, solution=solution, noise_model=loosened))
            if tried.noise_model.noise[CHAIN] < EXPLAINED * learned.noise_model.noise[CHAIN]:
                learned = self._tighten_camera(tried)
        solution = solve(learned.system, learned.noise_model.weights(learned.groups), learned.solution.node_maps)
        return replace(learned, solution=solution)

    def _tighten_camera(self, free: Estimate) -> Estimate:
        """Hold a camera that was let go as still as frames and loops tell, while links agree no worse for it."""
        best, tightest = free, np.array(self.chain.noise_model.camera.deviations)
        # A camera that is free fits noise as well: what is expected of a chain is no disagreement.
        most = NO_WORSE * max(free.noise_model.noise[CHAIN], CHAIN_INFLATION * self.chain.local_noise)
        for _ in range(ROUNDS):
            # What is learned is what counts, and that is larger by as much as the noise.
            counted = learn_camera(best.check, best.noise_model).camera.deviations
            deviations = np.maximum(np.array(counted) / best.noise_model.growth, tightest)
            camera = best.noise_model.camera.with_deviations(np.minimum(best.noise_model.camera.deviations, deviations))
            noise_model = replace(best.noise_model, camera=camera)
            solution = solve(best.system, noise_model.weights(best.groups), best.solution.node_maps, ENOUGH_GAIN)
            tighter = self._rounds(replace(best, solution=solution, noise_model=noise_model), 1)
            if tighter.noise_model.noise[CHAIN] > most:
                break
            best = tighter
        return best

    def _rounds(self, state: Estimate, rounds: int = ROUNDS) -> Estimate:
        """Learn the noise for some rounds."""
        loops, local = np.isin(state.groups, (MATCHER, PERSON)), self.chain.local_noise
        most = CHAIN_INFLATION * local * LARGEST_INFLATION * max(1.0, np.sqrt(loops.sum() / FEW_LOOPS))
        for _ in range(rounds):
            check, noise_model = state.check, state.noise_model
            of_chain = min(learn_chain_noise(check, loops, noise_model.noise[CHAIN], CHAIN_INFLATION * local), most)
            matcher = learn_noise(check, state.groups, noise_model, MATCHER, local, LOG_DEVIATION)
            person = learn_noise(check, state.groups, noise_model, PERSON, 1.0, LOG_DEVIATION)
            noise = (of_chain, matcher, person)
            rescaled = (np.array(noise_model.noise) / noise)[state.groups] ** 2
            learned = learn_robust_weights(check, replace(noise_model, noise=noise), rescaled)
            solution = solve(state.system, learned.weights(state.groups), state.solution.node_maps, LEARNING_GAIN)
            state = replace(state, solution=solution, noise_model=learned)
            if np.abs(np.log(np.divide(learned.noise, noise_model.noise))).max() < CONVERGED_LOG_NOISE:
                break
        return state

    def _group(self, pair: Pair) -> int:
        if pair in self.person_pairs:
            return PERSON
        return MATCHER if pair in self.of_loop else CHAIN

    def _limit(self, state: Estimate) -> float:
        """Return the χ² that may pass, where loops are as surprising as those accepted."""
        chi2, system = state.contradictions, state.system
        loops = _are_among(system, self.of_loop)
        samples = np.append(chi2[loops] * 8.0 / np.maximum(system.ranks[loops], 1), PRIOR_CHI2)
        return LARGEST_CHI2 * max(1.0, float(np.median(samples)) / MEDIAN_CHI2)

    def _contradicting(self, state: Estimate) -> frozenset[Pair]:
        """Return the links that contradict the others worst; frames that a link alone joins stay joined."""
        limit, system = self._limit(state), state.system
        chi2 = state.contradictions
        # Consecutive frames are rarely matched wrongly: of two that contradict each other, the loop goes first.
        weighted_chi2 = np.where(_are_among(system, self.of_loop), chi2, chi2 / LOOP_NOISE_FACTORS[0] ** 2)
        possible = [n for n in np.argsort(-weighted_chi2, kind="stable") if chi2[n] > limit]
        possible = [n for n in possible if system.links[n].pair not in self.person_pairs]
        if not possible:
            return frozenset()
        worst = float(weighted_chi2[possible[0]])
        chosen: set[Pair] = set()
        for n in possible:
            if weighted_chi2[n] < worst / WORST_TOGETHER:
                break
            pair = system.links[n].pair
            if _stay_joined(system, chosen | {pair}):
                chosen.add(pair)
        return frozenset(chosen)

    def _agreeing(self, state: Estimate) -> frozenset[Pair]:
        """Return the rejected links that agree with the accepted ones best."""
        surprises = {
            pair: state.surprise(link, self._group(pair))
            for pair, link in state.rejected.items()
            if state.part[pair.i] == state.part[pair.j]
        }
        # Those that agree less may agree no more once these are back.
        limit = min(READMITTED_SHARE * self._limit(state), WORST_TOGETHER * min(surprises.values(), default=0.0))
        return frozenset(pair for pair, chi2 in surprises.items() if chi2 <= limit)


def _are_among(system: System, pairs: Set[Pair]) -> NDArray[np.bool_]:
    """Tell of all links (L,) whether theirs is one of some pairs."""
    keys = np.array([(pair.i, pair.j) for pair in pairs], dtype=np.int64).reshape(-1, 2)
    return np.isin(pair_key(*system.ends.T), pair_key(*keys.T))


def _aligned(before: Estimate, system: System) -> NoiseModel:
    """Return what is known, for the consecutive links of another system; what was distrusted is heard again."""
    motion_weights = _carried_over(before.noise_model.motion_weights, before.system.step_ends, system.step_ends)
    robust_weights = _carried_over(before.noise_model.robust_weights, before.system.ends, system.ends)
    return replace(
        before.noise_model,
        motion_weights=motion_weights,
        robust_weights=np.maximum(robust_weights, LEAST_RESTORED_WEIGHT),
    )


def _inflate_unconfirmed(state: Estimate) -> Estimate:
    """Return the state with less belief in links that nobody confirms, where others turned out to be wrong.

    If a share p of the links that others check was rejected, because they were off by d as a rule, a link that nobody
    checks has a variance of σ² + p d². Nothing tells where its frames lie instead, so no map changes; but what is said
    of the error has to allow for it, if it is likely that some of these links are wrong.
    """
    system = state.system
    wrong = [link for link in state.rejected.values() if state.part[link.pair.i] == state.part[link.pair.j]]
    if not wrong or system.confirmed.all():
        return state
    share = len(wrong) / (len(wrong) + np.sum(system.confirmed) + PRIOR_CONFIRMED)
    if (1.0 - share) ** np.sum(~system.confirmed) > TRUSTED_PROBABILITY:
        return state
    residual = float(np.median([state.centre_residual(link) for link in wrong]))
    # How well links tell their shift, in units.
    shift_information = (
        np.linalg.norm(system.roots @ system.family.by_entry[:2].T, axis=(1, 2)) * state.solution.weights.links
    )
    checked = system.confirmed | np.array([link.pair in state.person_pairs for link in system.links])
    return replace(state, variance_inflation=np.where(checked, 1.0, 1.0 + share * (residual * shift_information) ** 2))


def _stay_joined(system: System, without: Set[Pair]) -> bool:
    """Tell whether the same frames are joined without some links."""
    kept = [link for link in system.links if link.pair not in without]
    return int(replace(system, links=tuple(kept)).part.max()) == int(system.part.max())


def _carried_over(values: NDArray[np.float64], before: PairNumbers, now: PairNumbers) -> NDArray[np.float64]:
    """Return the values (m, ...) of pairs now (m, 2), of which there were some before (n, 2); 1 for new ones."""
    carried = np.ones((len(now), *values.shape[1:]))
    _, old, new = np.intersect1d(pair_key(*before.T), pair_key(*now.T), assume_unique=True, return_indices=True)
    carried[new] = values[old]
    return carried
