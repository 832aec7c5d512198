"""Choose between sums on rows that did not find them: direct relevance, and alternatives."""

from dataclasses import dataclass, replace

import numpy as np

from anchorline.errors import InfeasibleError
from anchorline.guarantees import Estimate, estimate_mean, exact_estimate, flip_sum_limit
from anchorline.optimize import Limits, Problem, Solution, Status, restricted, spread_out
from anchorline.optimize.exact import TOLERANCE, Candidate, solve_runners_up
from anchorline.optimize.relevance import Odds, Rule, measured_relevance, relevant_rules, shortest_rule
from anchorline.optimize.rows import SampleRows
from anchorline.search.assess import fidelity_range, flipped_sums
from anchorline.settings import Settings


@dataclass(frozen=True, slots=True, eq=False)
class Rival:
    """Another sum, and the amount by which its fidelity loss exceeds that of the best one on fresh rows."""

    contributions: np.ndarray
    intercept: float
    objective: float
    excess: Estimate


def most_relevant(
    rows: SampleRows, chooser: SampleRows, problem: Problem, fidelity: Solution, odds: Odds, settings: Settings
) -> Solution:
    """Return the rule that holds the output best on the second sample; the fidelity optimum's support competes.

    ``objective`` and ``lower_bound`` of the solution are relevance errors by the coverage estimator on the search
    sample: for the rule's own support, and for the best rule of any size.
    """
    own = tuple(np.flatnonzero(fidelity.contributions).tolist())
    rules = relevant_rules(rows, problem, odds, settings.limits, own)
    proper = _without_idle_facts(rules, chooser, odds, settings)
    scores = [measured_relevance(chooser, rule.contributions) for rule in proper]
    rule, _ = min(zip(proper, scores, strict=True), key=lambda pair: _rank(pair[0], pair[1], own))
    bound = min(rule.lower_bound for rule in rules)
    most = bound + TOLERANCE * max(problem.evidence.drop_square, bound)
    proven = rule.error <= most
    # Where an attribute has several literals, the bound is not the error of a rule even if the search is complete.
    reached = problem.groups is not None or min(rule.error for rule in rules) <= most
    complete = reached and all(rule.complete for rule in rules)
    return Solution(
        contributions=rule.contributions,
        intercept=rule.intercept,
        objective=rule.error,
        lower_bound=bound,
        status=Status.OPTIMAL if proven else Status.CHOSEN if complete else Status.LIMIT,
    )


def _without_idle_facts(rules: list[Rule], chooser: SampleRows, odds: Odds, settings: Settings) -> list[Rule]:
    r"""Return the rules whose facts all help to hold the output; all rules if there is none.

    A fact is idle if :math:`t^2` does not depend on it while the other facts of the rule hold. Then its flips are
    independent of :math:`t^2 - \overline{t^2}`, and their products add up to more than `flip_sum_limit` with a
    probability of at most delta, split over the facts of all rules. On all neighbors, an idle fact changes
    nothing, and the shorter rule wins anyway.
    """
    if settings.keep_noise or chooser.weights is not None:
        return rules
    squares, flips = chooser.drops**2, chooser.flips
    delta = (1 - settings.confidence) / max(1, sum(len(rule.support) for rule in rules))

    def helps(support: tuple[int, ...], literal: int) -> bool:
        others = [j for j in support if j != literal]
        rows = ~flips[:, others].any(axis=1)
        if not rows.any():
            return False
        rest = squares[rows] - squares[rows].mean()
        kept = odds.probability_unbroken(support) / odds.probability_unbroken(others)  # while the others hold
        limit = flip_sum_limit(1 - kept, float((rest**2).sum()), 1.0, delta)
        return bool((rest * flips[rows, literal]).sum() > limit)

    return [rule for rule in rules if all(helps(rule.support, j) for j in rule.support)] or rules


def _rank(rule: Rule, score: float, own: tuple[int, ...]) -> tuple[float, bool, int]:
    """Rank by score, then by length; if too few rows are left to decide, the fidelity optimum's rule is first."""
    return score, bool(np.isinf(score)) and rule.support != own, len(rule.support)


def fewest_facts(rows: SampleRows, problem: Problem, odds: Odds, settings: Settings) -> Solution:
    """Return the shortest rule whose relevance error on the sample is at most ``settings.max_relevance_error``.

    Status OPTIMAL means that, by proof, no rule of fewer facts reaches that error on this sample.
    """
    assert settings.max_relevance_error is not None
    rule, proven = shortest_rule(rows, problem, odds, settings.max_relevance_error, settings.limits)
    if rule is None:
        raise InfeasibleError(
            f"No rule of at most {settings.k - 1} facts {'has' if proven else 'was found with'} a relevance error "
            f"of at most {settings.max_relevance_error:g} on {len(rows.drops):,} samples. Raise "
            "max_relevance_error, k or n_samples, or use a larger sigma for a closer neighborhood."
        )
    return Solution(
        contributions=rule.contributions,
        intercept=rule.intercept,
        objective=max(rule.error, rule.lower_bound),
        lower_bound=rule.lower_bound,
        status=Status.OPTIMAL if proven else Status.LIMIT,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Rivals:
    """Other sums that the evidence cannot distinguish from the best, and whether the list was cut.

    ``complete`` means that the list ended at a sum that is proven worse, or that there is no other sum. It is
    False if the list ended at the requested number or at a limit of the search, so that more sums may be as good.
    """

    listed: tuple[Rival, ...]
    complete: bool


def best_sums(
    problem: Problem, literals: np.ndarray, limits: Limits, n_best: int = 2
) -> tuple[list[Candidate], bool]:
    """Return the best sums of the literals with these indices, best first, and whether the search was complete."""
    found, complete = solve_runners_up(restricted(problem, literals), limits, n_best)
    d = problem.n_literals
    return [replace(one, contributions=spread_out(one.contributions, literals, d)) for one in found], complete


def find_rivals(
    problem: Problem, best: Solution, literals: np.ndarray, chooser: SampleRows | None, settings: Settings
) -> Rivals:
    """Return other sums of these literals that the evidence cannot distinguish from the best of them."""
    candidates, searched = best_sums(problem, literals, settings.limits, settings.alternatives + 1)
    own = tuple(np.flatnonzero(best.contributions).tolist())
    others = [candidate for candidate in candidates if candidate.terms != own][: settings.alternatives]
    first = Candidate(best.objective, best.contributions, best.intercept)
    if chooser is None:  # all neighbors were enumerated, so nothing is random
        rivals = tuple(
            Rival(c.contributions, c.intercept, c.objective, _exact_excess(problem, c, first)) for c in others
        )
        most = TOLERANCE * problem.evidence.drop_square
        listed = tuple(rival for rival in rivals if rival.excess.value <= most)
    else:
        delta = 1 - settings.certificate_confidence  # the certificate takes the other half
        rivals = compare([first, *others], chooser, problem.prediction, delta)
        listed = tuple(rival for rival in rivals if rival.excess.low <= 0)
    return Rivals(listed, searched and len(listed) < settings.alternatives)


def compare(
    candidates: list[Candidate], chooser: SampleRows, prediction: float, delta: float
) -> tuple[Rival, ...]:
    """Compare each candidate with the first on the same rows, with fixed contributions; delta is split."""
    flips = chooser.flips
    losses = [(chooser.drops - flipped_sums(flips, c.contributions)) ** 2 for c in candidates]
    ranges = [fidelity_range(prediction, c.contributions) for c in candidates]
    rivals = []
    for i, candidate in enumerate(candidates[1:], start=1):
        shifted = losses[i] - losses[0] + ranges[0]  # in [0, sum of the ranges]
        each = 1 - delta / (len(candidates) - 1)
        excess = estimate_mean(shifted, ranges[0] + ranges[i], each).map(lambda mean: mean - ranges[0])
        rivals.append(Rival(candidate.contributions, candidate.intercept, candidate.objective, excess))
    return tuple(rivals)


def _exact_excess(problem: Problem, candidate: Candidate, best: Candidate) -> Estimate:
    difference = candidate.objective - problem.objective(best.contributions)
    return exact_estimate(difference, problem.evidence.n_rows)
