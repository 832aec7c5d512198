"""Sums with pairs of literals: which pairs are candidates, and the best sum of literals and pairs."""

from dataclasses import dataclass, replace

import numpy as np

from anchorline.errors import InfeasibleError, ParameterError
from anchorline.grid import DROP_GRID
from anchorline.guarantees import flip_sum_limit
from anchorline.optimize import Problem, Solution, Status, spread_out
from anchorline.optimize.evidence import WEIGHT_GRID, Evidence, remainders
from anchorline.optimize.pairs import PairProblem, solve_with_pairs
from anchorline.optimize.rows import SampleRows
from anchorline.search.case import Case
from anchorline.spaces.base import Law, Pairs

MAX_PAIRS = 1000  # candidates; all pairs of 45 literals
MAX_MEMBERS = 1000  # literals whose pairs are looked at, because their number grows with the square
_ROUNDING = 1e-12  # of a covariance, as a share of the typical drop


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The pairs that a sum may contain, as indices (m, 2) of literals, and the number of all pairs."""

    members: np.ndarray
    n_possible: int

    @property
    def counts(self) -> tuple[int, int]:
        """Number of candidates, and of all pairs."""
        return len(self.members), self.n_possible


@dataclass(frozen=True, slots=True, eq=False)
class PairChoice:
    """The best sum of literals and pairs: its contributions are those of all literals, then of its ``pairs``.

    ``singles`` are the indices of the literals that contribute alone.
    """

    solution: Solution
    pairs: tuple[tuple[int, int], ...]
    singles: np.ndarray


def check_pairs(case: Case) -> None:
    """Raise `ParameterError` if the space has no parity: an attribute must be a literal that breaks in one way."""
    if case.settings.pairs == "parity" and not case.law.one_to_one:
        raise ParameterError(
            "pairs='parity' was given, but in this space an attribute has several literals or changes in several "
            "ways. Parity needs one literal per attribute and one way to break it, as on the hypercube. "
            "Type pairs='and', or Table(..., literals='intervals')."
        )


def n_possible_pairs(law: Law) -> int:
    """Return the number of pairs of literals that speak about different attributes.

    Examples
    --------
    >>> n_possible_pairs(Law.of_literals(5, flip_probability=0.5))
    10
    """
    sizes = np.bincount(law.groups, minlength=1)
    return int((law.n_literals**2 - (sizes.astype(np.int64) ** 2).sum()) // 2)


def find_candidates(case: Case, problem: Problem, rows: SampleRows, with_effect: np.ndarray | None) -> Candidates:
    r"""Return the pairs of different attributes that a sum may contain.

    Unless noise is kept (``with_effect`` is None), both literals of a pair must have an effect on the output that
    can be distinguished from zero: alone, or inside the pair. A pair is :math:`F_i + F_j w(F_i)`, with w = 1 -
    F_i for a conjunction and w = 1 - 2 F_i for a parity. Let r be what literals of other attributes than that of
    j leave of the drops. If j does not matter, its flips are independent of :math:`w(F_i) r`, and
    :math:`|\sum (F_j - p_j) w(F_i) r|` exceeds `flip_sum_limit` with probability at most delta, shared by all
    pairs. So with probability :math:`1 - \delta`, no pair with a literal that does not matter is returned.

    If there are more than `MAX_PAIRS`, those with the largest interactions are returned:
    :math:`|\sum (F_i - p_i)(F_j - p_j) r|`, in units of the standard deviations.
    """
    law, members = case.law, _strongest(problem)
    flips = rows.flips[:, members]
    strengths, stands_out = _interactions(case, problem, rows, flips, members)
    allowed = law.groups[members][:, None] != law.groups[members]
    if with_effect is not None:
        matters = np.isin(members, with_effect)[:, None] | stands_out
        allowed &= matters & matters.T
    first, second = np.nonzero(np.triu(allowed, 1))
    if len(first) > MAX_PAIRS:
        kept = np.sort(np.argsort(-strengths[first, second], kind="stable")[:MAX_PAIRS])
        first, second = first[kept], second[kept]
    return Candidates(np.column_stack([members[first], members[second]]), n_possible_pairs(law))


def _strongest(problem: Problem) -> np.ndarray:
    """Return the literals whose pairs are looked at: all, or those that fit best alone, in order."""
    evidence, d = problem.evidence, problem.n_literals
    if d <= MAX_MEMBERS:
        return np.arange(d)
    means = evidence.flip_means
    spread = np.maximum(means * (1 - means), 1e-300)
    gains = (evidence.cross_moments - means * evidence.drop_mean) ** 2 / spread
    return np.sort(np.argsort(-gains, kind="stable")[:MAX_MEMBERS])


def _interactions(
    case: Case, problem: Problem, rows: SampleRows, flips: np.ndarray, members: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the strength of every interaction, and whether literal i stands out inside its pair with j.

    Both are (m, m) for the literals ``members`` (m,), of which ``flips`` (n, m) are the flips.
    """
    law, evidence, k = case.law, problem.evidence, case.settings.k
    rates, table = law.literal_probabilities[members], flips.astype(np.float64)
    share = (1 - case.settings.confidence) / max(1, 2 * n_possible_pairs(law))
    factor = 2.0 if case.settings.pairs == "parity" else 1.0

    def tested(excluded: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums F_i F_j r for the literals at these places, and whether each stands out."""
        rest, largest, chosen = _remainder(evidence, rows, k - 1, excluded)
        joint = (table[:, places] * rest[:, None]).T @ table
        alone, total = rest @ table, rest.sum()
        sums = alone[places, None] - factor * joint - rates[places, None] * (total - factor * alone)
        limits = _limits(rows, evidence, rates[places], float(rest @ rest), largest, share)
        centered = joint - rates[places, None] * alone - np.outer(alone[places], rates)
        strength = np.abs(centered + total * np.outer(rates[places], rates))
        return np.stack([strength, np.abs(sums) > limits[:, None]]), chosen

    found, chosen = tested(np.zeros(law.n_literals, dtype=bool), np.arange(len(members)))
    for group in np.unique(law.groups[chosen]):  # a remainder must do without the attribute of its literal
        places = np.flatnonzero(law.groups[members] == group)
        found[1, places] = tested(law.groups == group, places)[0][1]
    spread = np.sqrt(rates * (1 - rates))
    return found[0] / np.outer(spread, spread), found[1] > 0


def _remainder(
    evidence: Evidence, rows: SampleRows, size: int, excluded: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray]:
    """Return what is left of every drop, times its weight, by literals that are not excluded; its limit; and them.

    It is rounded to the grid of the drops, on which sums are exact in any order.
    """
    (rest,) = remainders(evidence, size, excluded[None])
    means, chosen = evidence.flip_means, rest.chosen
    covariance = evidence.second_moments[np.ix_(chosen, chosen)] - np.outer(means[chosen], means[chosen])
    cross = evidence.cross_moments[chosen] - means[chosen] * evidence.drop_mean
    left, flips = rows.drops - evidence.drop_mean, rows.flips
    for j, slope in zip(chosen.tolist(), np.linalg.solve(covariance, cross).tolist(), strict=True):
        left = left - slope * (flips[:, j] - means[j])
    left = np.rint(left * DROP_GRID) / DROP_GRID
    return left if rows.weights is None else left * rows.weights, rest.largest, chosen


def _limits(
    rows: SampleRows, evidence: Evidence, rates: np.ndarray, square_sum: float, largest: float, share: float
) -> np.ndarray:
    """Return the limit of a sum of flips times a remainder, by literal; on all neighbors, only rounding counts."""
    n, typical = len(rows.drops), np.sqrt(evidence.drop_square)
    if rows.weights is not None:
        return np.full(len(rates), (_ROUNDING + n / WEIGHT_GRID) * typical + 4 / DROP_GRID)
    kinds, places = np.unique(rates, return_inverse=True)
    return np.array([flip_sum_limit(rate, square_sum, largest, share) for rate in kinds.tolist()])[places]


def solve_pairs(
    case: Case, problem: Problem, rows: SampleRows, candidates: Candidates, literals: np.ndarray
) -> PairChoice:
    """Return the best sum of the literals with these indices and of the candidate pairs."""
    n, d = len(literals), problem.n_literals
    solution = solve_with_pairs(_posed(case, problem, rows, candidates, literals), case.settings.limits)
    if solution.status is Status.INFEASIBLE:
        raise InfeasibleError(Status.INFEASIBLE.value)
    used = np.flatnonzero(solution.contributions[n:])
    singles = spread_out(solution.contributions[:n], literals, d)
    contributions = np.concatenate([singles, solution.contributions[n + used]])
    stated = tuple((int(i), int(j)) for i, j in candidates.members[used])
    return PairChoice(replace(solution, contributions=contributions), stated, np.flatnonzero(singles))


def _posed(
    case: Case, problem: Problem, rows: SampleRows, candidates: Candidates, literals: np.ndarray
) -> PairProblem:
    """Return the problem whose columns are these literals and the candidate pairs."""
    pairs = Pairs(candidates.members, parity=case.settings.pairs == "parity")
    flips = pairs.joined_to(rows.flips)
    columns = np.concatenate([literals, problem.n_literals + np.arange(len(pairs))])
    groups = problem.groups
    if groups is not None:  # a pair belongs to no attribute
        groups = np.concatenate([groups[literals], groups.max(initial=0) + 1 + np.arange(len(pairs))])
    evidence = Evidence.from_sample(flips[:, columns], rows.drops, rows.weights)
    places = np.full(problem.n_literals, -1)
    places[literals] = np.arange(len(literals))
    return PairProblem(replace(problem, evidence=evidence, groups=groups), places[candidates.members])


def stated_problem(case: Case, problem: Problem, rows: SampleRows) -> Problem:
    """Return the problem on all literals and on the pairs that the case states."""
    if not case.pairs:
        return problem
    flips = case.law.pairs.joined_to(rows.flips)
    return replace(problem, evidence=Evidence.from_sample(flips, rows.drops, rows.weights), groups=None)
