"""The state of a mosaic after answers: which links to reject, and the noise of the others.

The state is a function of the set of links, whatever their order. Everything is computed anew from the estimate of the
chain, which is made once. So forgetting, replaying and adding several answers at once are exact to the last bit.

A link with a very large χ² against all others is *rejected*: kept, named, not used. All links are compared at once. The
worst are rejected first. Then rejected links that agree with the accepted ones are readmitted. A person's answer is
never rejected.

`estimate` is the entry, `final_estimate` is what people get. `_LinkSelection` rejects, learns the noise and readmits.
Helper functions come last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from smalti.engine.camera_learning import USUAL_DEVIATION, learn_camera
from smalti.engine.equations import System
from smalti.engine.estimate import ENOUGH_GAIN, Estimate, anneal, refine_on_landmarks
from smalti.engine.initialisation import first_guess
from smalti.engine.link_confirmation import contested_links
from smalti.engine.link_consensus import find_agreeing
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
    learn_method_noise,
    learn_noise,
    learn_robust_weights,
)
from smalti.records import Pair, PairNumbers, pair_key

ROUNDS = 6
"""The most rounds of learning the noise; they begin with the noise of the chain."""

LEARNING_GAIN = 1e-2
"""As a share of the cost: a step that gains less ends the solve of a round. Maps and noise converge together, usually
with one step per round."""

CONVERGED_LOG_NOISE = 0.1
"""Learning ends when the logarithm of no noise changes by more."""

MEDIAN_CHI2 = 7.344
"""The median of χ² with 8 degrees of freedom."""

PRIOR_CHI2 = 4 * (20 * MEDIAN_CHI2,)
"""χ² of four imagined loop closures, as a prior: a chain drifts by more than its noise."""

READMITTED_SHARE = 0.1
"""A rejected link is readmitted below this share of the limit of χ²: it must agree better than an accepted one."""

WORST_TOGETHER = 4.0
"""Links whose χ² is within this factor of the worst one are rejected together."""

PRIOR_CONFIRMED = 10
"""As a prior, so many confirmed and accepted links are added before the share of wrong links is computed."""

TRUSTED_PROBABILITY = 0.9
"""If all unconfirmed links are right with this probability, their variances stay as they are."""

PASSES = 12
"""The most passes of rejecting and readmitting."""

SUSPICIOUS, EXPLAINED, NO_WORSE = 2.0, 0.7, 1.25
"""Factors of the chain's noise. Above SUSPICIOUS times the expected noise, the camera prior or some links may be wrong.
Without them, less than EXPLAINED times the noise must remain. When the camera prior is tightened again, the noise may
grow to NO_WORSE times."""

NEGLIGIBLE_WEIGHT = 0.05
"""A link with a smaller robust weight disagrees with the others."""

LEAST_RESTORED_WEIGHT = 0.1
"""The smallest robust weight of a link of the chain when answers are added. Before these answers, its neighbours may
have been wrong instead of it."""

MOST_REJECTED, PLAINLY_WRONG = 0.33, 10.0
"""If more than this share of the loops would be rejected, the chain is wrong and not the loops. The exception: each
rejected link lowers the cost by so many times the price of a rejection. A bent chain does not do that."""

LOOP_NOISE_FACTORS = (3.0, 1.0)
"""Factors of the loops' noise while outliers are searched. Consecutive frames are rarely matched wrongly, so loops
count less; a factor of 1 is for a matcher that is often wrong."""

CHAIN_PREFERENCE = 0.02
"""The rejection of a link of the chain costs so much more, as a share: it decides where two links contradict each other
and nothing else tells which is wrong."""

OFTEN_WRONG = 0.05
"""If a smaller share of all links is rejected, links are hardly ever wrong."""

LARGEST_INFLATION, FEW_LOOPS = 4.0, 3
"""The largest factor of the chain's noise that so few loops can cause: each of them may be wrong."""


def estimate(chain: Estimate, loops: Sequence[Link], person_pairs: Set[Pair] = frozenset()) -> Estimate:
    """Return the state of the chain's links and of `loops`; links of `person_pairs` are never rejected."""
    if not loops:
        return chain
    everything = {link.pair: link for link in (*chain.system.links, *loops)}
    return _LinkSelection(chain, everything, {link.pair for link in loops}, frozenset(person_pairs)).run()


def estimate_again(
    chain: Estimate,
    loops: Sequence[Link],
    others: Sequence[Link],
    rejected: Set[Pair],
    person_pairs: Set[Pair] = frozenset(),
) -> Estimate:
    """Return the state after the chain's estimate was made again, without the links `others` of the chain.

    The links that were `rejected` before are rejected to begin with.
    """
    everything = {link.pair: link for link in (*chain.system.links, *others, *loops)}
    selection = _LinkSelection(chain, everything, {link.pair for link in loops}, frozenset(person_pairs))
    return selection.run_from(frozenset(rejected))


def final_estimate(state: Estimate) -> Estimate:
    """Return the state of the finished mosaic: of what is certain, refined on all landmarks."""
    return refine_on_landmarks(without_contested(state))


def without_contested(state: Estimate) -> Estimate:
    """Return the state without the links that a rejected one contradicts, where nothing tells which of them is wrong.

    The frames behind them are separate parts, so that the mosaic is that of what is certain. Where links are hardly
    ever wrong, the accepted ones are believed.
    """
    base = state.system
    ends = np.array([(pair.i, pair.j) for pair in state.rejected], dtype=np.int64).reshape(-1, 2)
    if not len(ends) or len(ends) < OFTEN_WRONG * (len(ends) + len(base.links)):
        return state
    contested = contested_links(state.frames, base.ends, ends)
    contested &= np.array([link.pair not in state.person_pairs for link in base.links])
    if not contested.any():
        return state
    kept = np.flatnonzero(~contested)
    links = [base.links[n] for n in kept]
    system = System.of(base.frames, base.outline, base.family, links, base.reference, base.lens)
    noise_model = replace(
        state.noise_model,
        motion_weights=_carried_over(state.noise_model.motion_weights, base.step_ends, system.step_ends),
        robust_weights=state.noise_model.robust_weights[kept],
    )
    groups = state.groups[kept]
    weights = noise_model.weights(groups, system.links)
    solution = solve(system, weights, first_guess(system, weights, base, state.solution.node_maps))
    rejected = {**state.rejected, **{base.links[n].pair: base.links[n] for n in np.flatnonzero(contested)}}
    inflation = None if state.variance_inflation is None else state.variance_inflation[kept]
    return Estimate(solution, groups, noise_model, rejected, state.person_pairs, inflation)


@dataclass
class _LinkSelection:
    """Decides which links to reject."""

    chain: Estimate
    everything: Mapping[Pair, Link]
    of_loop: Set[Pair]
    person_pairs: frozenset[Pair]

    def run(self) -> Estimate:
        """Reject, learn and readmit until nothing changes; return the best result of several starts."""
        everything = self._solve(frozenset(), self.chain)
        state = self._learn(everything)
        selected = self._reconsider(state)
        if self._is_suspicious(state) or np.any(state.noise_model.robust_weights < NEGLIGIBLE_WEIGHT):
            # Least squares spreads the error of outliers over inliers. Start again without the links that closing
            # cycles, or most other links, contradict.
            searched = {self._disagreeing_with_cycles(): None}
            searched |= {self._disagreeing_with_most(everything, factor): None for factor in LOOP_NOISE_FACTORS}
            tried = [self._try(rejected, everything, state) for rejected in searched if rejected]
            better = [one for one in tried if one is not None]
            selected = min([selected, *better], key=self._selection_cost) if better else selected
            selected = self._exchange_rejected(selected)
        return _inflate_unconfirmed(selected)

    def run_from(self, rejected: frozenset[Pair]) -> Estimate:
        """Reject, learn and readmit, beginning with some rejected links or with those that cycles contradict."""
        starts = {rejected: None, self._disagreeing_with_cycles(): None}
        selected = [self._reconsider(self._learn(self._solve(start, self.chain))) for start in starts]
        return _inflate_unconfirmed(min(selected, key=self._selection_cost))

    def _try(self, rejected: frozenset[Pair], everything: Estimate, with_all: Estimate) -> Estimate | None:
        """Return the state that starts without some links; None if rejecting them explains too little."""
        without = self._solve(rejected, self.chain)
        explained = everything.solution.rows.cost - without.solution.rows.cost
        if explained < LARGEST_CHI2 * len(rejected):
            return None
        state = self._learn(without)
        if explained < PLAINLY_WRONG * LARGEST_CHI2 * len(rejected):
            # A bent chain contradicts all loops, whichever of them are rejected. Then no loop is wrong.
            few = len(self.of_loop & rejected) <= MOST_REJECTED * len(self.of_loop)
            quieter = state.noise_model.noise[CHAIN] < EXPLAINED * with_all.noise_model.noise[CHAIN]
            if not few or not (quieter or not self._is_suspicious(state)):
                return None
        return self._reconsider(state)

    def _reconsider(self, state: Estimate) -> Estimate:
        """Reject links that contradict the others and readmit those that agree, until nothing changes."""
        for _ in range(PASSES):
            changed = self._contradicting(state) or self._agreeing(state)
            if not changed:
                break
            state = self._learn(self._solve(frozenset(state.rejected) ^ changed, state))
        return state

    def _exchange_rejected(self, state: Estimate) -> Estimate:
        """At frames with no fewer rejected than accepted links, exchange both sets where that lowers the cost.

        One wrong link may have caused the rejection of two right ones, or of one of the chain.
        """
        cost = self._selection_cost(state) if state.rejected else 0.0
        for frame in sorted({frame for pair in state.rejected for frame in (pair.i, pair.j)}):
            rejected = {pair for pair in state.rejected if frame in (pair.i, pair.j)}
            accepted = {pair for pair in state.system.place_of if frame in (pair.i, pair.j)}
            if len(rejected) < len(accepted) or accepted & self.person_pairs:
                continue
            tried = self._reconsider(self._learn(self._solve(frozenset(state.rejected) - rejected | accepted, state)))
            if (left := self._selection_cost(tried)) < cost:
                state, cost = tried, left
        return state

    def _selection_cost(self, state: Estimate) -> float:
        """Return the cost of the accepted links with the chain's noise model, plus the price of all rejections.

        A noise model learned from wrong links would explain these links.
        """
        known = self._solve(frozenset(state.rejected), state)
        of_chain = len(state.rejected.keys() - self.of_loop)
        return known.solution.rows.cost + LARGEST_CHI2 * (len(state.rejected) + CHAIN_PREFERENCE * of_chain)

    def _is_suspicious(self, state: Estimate) -> bool:
        return state.noise_model.noise[CHAIN] > SUSPICIOUS * CHAIN_INFLATION * self.chain.local_noise

    def _disagreeing_with_most(self, everything: Estimate, loop_noise_factor: float) -> frozenset[Pair]:
        """Return the links with large residuals to the maps that most links agree on; loops count as noisier."""
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

    def _disagreeing_with_cycles(self) -> frozenset[Pair]:
        """Return the links that are not among those that agree by cycles that close."""
        links = list(self.everything.values())
        pairs = frozenset(self.everything)
        # The factor of a method that the chain does not use is not known yet.
        noise = self.chain.local_noise * self.chain.noise_model.factors(links)
        agreeing = find_agreeing(links, noise, self.person_pairs, lambda some: self._solve(pairs - some, self.chain))
        return pairs - agreeing

    def _solve(self, rejected: frozenset[Pair], before: Estimate) -> Estimate:
        """Return the state of all links except the rejected ones, starting from the maps of `before`.

        It uses the noise model of the chain. So nothing remains that was learned from a rejected link.
        """
        base = self.chain.system
        links = list(self.everything.values())
        if rejected:
            links = [link for link in links if link.pair not in rejected]
        system = System.of(base.frames, base.outline, base.family, links, base.reference, base.lens)
        groups = np.where(_are_among(system, self.of_loop), MATCHER, CHAIN)
        groups[_are_among(system, self.person_pairs)] = PERSON
        noise_model = _aligned(self.chain, system)
        weights = noise_model.weights(groups, system.links)
        start = first_guess(system, weights, before.system, before.solution.node_maps)
        solution = solve(system, weights, start, ENOUGH_GAIN)
        rejected_links = {pair: self.everything[pair] for pair in sorted(rejected)}
        return Estimate(solution, groups, noise_model, rejected_links, self.person_pairs)

    def _learn(self, state: Estimate) -> Estimate:
        """Learn the noise from a set of links, and solve until convergence.

        A camera that hardly moves from frame to frame may seem more level than it is. Where loop closures contradict
        the chain strongly, the camera prior is loosened. If that explains the contradiction, the prior is then
        tightened as far as the loops allow.
        """
        learned = self._rounds(state)
        if self._is_suspicious(learned):
            loosened = replace(state.noise_model, camera=state.noise_model.camera.loosened_to(USUAL_DEVIATION))
            weights = loosened.weights(state.groups, state.system.links)
            solution = solve(state.system, weights, state.solution.node_maps, ENOUGH_GAIN)
            tried = self._rounds(replace(state, solution=solution, noise_model=loosened))
            if tried.noise_model.noise[CHAIN] < EXPLAINED * learned.noise_model.noise[CHAIN]:
                learned = self._tighten_camera(tried)
        weights = learned.noise_model.weights(learned.groups, learned.system.links)
        solution = solve(learned.system, weights, learned.solution.node_maps)
        return replace(learned, solution=solution)

    def _tighten_camera(self, free: Estimate) -> Estimate:
        """Tighten a loosened camera prior to the learned deviations, as long as the chain's noise does not grow."""
        best, tightest = free, np.array(self.chain.noise_model.camera.deviations)
        # A loosened camera also fits noise, so the expected noise of a chain is always allowed.
        most = NO_WORSE * max(free.noise_model.noise[CHAIN], CHAIN_INFLATION * self.chain.local_noise)
        for _ in range(ROUNDS):
            # The learned deviations include the growth of the noise.
            counted = learn_camera(best.check, best.noise_model).camera.deviations
            deviations = np.maximum(np.array(counted) / best.noise_model.growth, tightest)
            camera = best.noise_model.camera.with_deviations(np.minimum(best.noise_model.camera.deviations, deviations))
            noise_model = replace(best.noise_model, camera=camera)
            weights = noise_model.weights(best.groups, best.system.links)
            solution = solve(best.system, weights, best.solution.node_maps, ENOUGH_GAIN)
            tighter = self._rounds(replace(best, solution=solution, noise_model=noise_model), 1)
            if tighter.noise_model.noise[CHAIN] > most:
                break
            best = tighter
        return best

    def _rounds(self, state: Estimate, rounds: int = ROUNDS) -> Estimate:
        """Learn noise and robust weights, for at most so many rounds."""
        loops, local = np.isin(state.groups, (MATCHER, PERSON)), self.chain.local_noise
        most = CHAIN_INFLATION * local * LARGEST_INFLATION * max(1.0, np.sqrt(loops.sum() / FEW_LOOPS))
        for _ in range(rounds):
            check, noise_model = state.check, state.noise_model
            of_chain = min(learn_chain_noise(check, loops, noise_model.noise[CHAIN], CHAIN_INFLATION * local), most)
            matcher = learn_noise(check, state.groups, noise_model, MATCHER, local, LOG_DEVIATION)
            person = learn_noise(check, state.groups, noise_model, PERSON, 1.0, LOG_DEVIATION)
            noise = (of_chain, matcher, person)
            rescaled = (np.array(noise_model.noise) / noise)[state.groups] ** 2
            changed = replace(noise_model, noise=noise)
            if noise_model.methods:
                # The chain's noise beyond its local one is shared by all methods, and hides their factors.
                counted = np.where(state.groups == MATCHER, MATCHER, -1)
                prior = self.chain.noise_model.with_methods_of(state.system)
                changed = replace(changed, methods=learn_method_noise(check, counted, noise_model, noise, prior))
                links = state.system.links
                rescaled = rescaled * (noise_model.factors(links) / changed.factors(links)) ** 2
            learned = learn_robust_weights(check, changed, rescaled)
            weights = learned.weights(state.groups, state.system.links)
            solution = solve(state.system, weights, state.solution.node_maps, LEARNING_GAIN)
            state = replace(state, solution=solution, noise_model=learned)
            if np.abs(np.log(np.divide(learned.noise, noise_model.noise))).max() < CONVERGED_LOG_NOISE:
                break
        return state

    def _group(self, pair: Pair) -> int:
        if pair in self.person_pairs:
            return PERSON
        return MATCHER if pair in self.of_loop else CHAIN

    def _limit(self, state: Estimate) -> float:
        """Return the limit of χ², scaled by the median χ² of the accepted loops."""
        chi2, system = state.contradictions, state.system
        loops = _are_among(system, self.of_loop)
        samples = np.append(chi2[loops] * 8.0 / np.maximum(system.ranks[loops], 1), PRIOR_CHI2)
        return LARGEST_CHI2 * max(1.0, float(np.median(samples)) / MEDIAN_CHI2)

    def _contradicting(self, state: Estimate) -> frozenset[Pair]:
        """Return the links with the worst χ²; never links whose rejection would split a part."""
        limit, system = self._limit(state), state.system
        chi2 = state.contradictions
        # Consecutive frames are rarely matched wrongly, so a loop is rejected before a link of the chain.
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
        """Return the rejected links that agree best with the accepted ones."""
        surprises = {
            pair: state.surprise(link, self._group(pair))
            for pair, link in state.rejected.items()
            if state.part[pair.i] == state.part[pair.j]
        }
        # Links that agree less may disagree once these are readmitted.
        limit = min(READMITTED_SHARE * self._limit(state), WORST_TOGETHER * min(surprises.values(), default=0.0))
        return frozenset(pair for pair, chi2 in surprises.items() if chi2 <= limit)


def _are_among(system: System, pairs: Set[Pair]) -> NDArray[np.bool_]:
    """Tell which links (L,) belong to one of some pairs."""
    keys = np.array([(pair.i, pair.j) for pair in pairs], dtype=np.int64).reshape(-1, 2)
    return np.isin(pair_key(*system.ends.T), pair_key(*keys.T))


def _aligned(before: Estimate, system: System) -> NoiseModel:
    """Return the noise model for the links of another system; small robust weights are restored."""
    motion_weights = _carried_over(before.noise_model.motion_weights, before.system.step_ends, system.step_ends)
    robust_weights = _carried_over(before.noise_model.robust_weights, before.system.ends, system.ends)
    return replace(
        before.noise_model,
        motion_weights=motion_weights,
        robust_weights=np.maximum(robust_weights, LEAST_RESTORED_WEIGHT),
    ).with_methods_of(system)


def _inflate_unconfirmed(state: Estimate) -> Estimate:
    """Return the state with inflated variances of unconfirmed links, where confirmed ones were found to be wrong.

    If a share p of the confirmed links was rejected, with a median residual of d, an unconfirmed link has a variance of
    σ² + p d². No map changes, because nothing shows a better position. But the predicted error must include this
    variance, unless all unconfirmed links are probably right.
    """
    system = state.system
    wrong = [link for link in state.rejected.values() if state.part[link.pair.i] == state.part[link.pair.j]]
    if not wrong or system.confirmed.all():
        return state
    share = len(wrong) / (len(wrong) + np.sum(system.confirmed) + PRIOR_CONFIRMED)
    if (1.0 - share) ** np.sum(~system.confirmed) > TRUSTED_PROBABILITY:
        return state
    residual = float(np.median([state.centre_residual(link) for link in wrong]))
    # Inverse deviations of the links' shifts, in 1 / units.
    shift_information = (
        np.linalg.norm(system.roots @ system.family.by_entry[:2].T, axis=(1, 2)) * state.solution.weights.links
    )
    checked = system.confirmed | np.array([link.pair in state.person_pairs for link in system.links])
    return replace(state, variance_inflation=np.where(checked, 1.0, 1.0 + share * (residual * shift_information) ** 2))


def _stay_joined(system: System, without: Set[Pair]) -> bool:
    """Tell whether the parts stay the same without some links."""
    kept = [link for link in system.links if link.pair not in without]
    return int(replace(system, links=tuple(kept)).part.max()) == int(system.part.max())


def _carried_over(values: NDArray[np.float64], before: PairNumbers, now: PairNumbers) -> NDArray[np.float64]:
    """Return the values of the pairs `now` (m, 2), given those of the pairs `before` (n, 2); 1 for new pairs."""
    carried = np.ones((len(now), *values.shape[1:]))
    _, old, new = np.intersect1d(pair_key(*before.T), pair_key(*now.T), assume_unique=True, return_indices=True)
    carried[new] = values[old]
    return carried
