"""From an opened case to findings: search for the sum, compare it with others, certify it.

Three streams of neighbors never mix: "search" finds the sum, "choose" compares it with the runner-up, and
"certify" measures it.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from anchorline.errors import InfeasibleError, ParameterError
from anchorline.guarantees import achievable_epsilon, flip_sum_limit, split_delta
from anchorline.optimize import Problem, Solution, Status, as_resolved, guess, restricted, solve, spread_out
from anchorline.optimize.estimation import EstimatedEvidence
from anchorline.optimize.evidence import WEIGHT_GRID, Evidence, Remainder, remainders
from anchorline.optimize.exact import Shared
from anchorline.optimize.rows import SampleRows
from anchorline.optimize.wide import WideEvidence
from anchorline.search.assess import Assessment, assess, assess_exactly, assess_until
from anchorline.search.case import Case, check_flips
from anchorline.search.moments import with_known_moments
from anchorline.search.pairs import Candidates, check_pairs, find_candidates, solve_pairs
from anchorline.search.sampling import MAX_PATTERNS, EnumeratedFlips, Flips
from anchorline.search.select import Rivals, best_sums, compare, fewest_facts, find_rivals, most_relevant
from anchorline.settings import AUTO_MAX_QUERIES, Settings, check_budget

MAX_ENUMERATED = 22  # literals that change in one way; querying more than 2^22 rows takes too long
MIN_ENUMERATED = 1e-6  # flip probability; weights are rounded to 2^-50, too coarse for products of smaller ones
_FIRST_LOOK = 1000
_BETTER = 1e-9  # of the error without any fact: more than the tolerance of a proof
_FEW_NODES, _FEW_ROWS = 50, 5  # rows per literal; with more, noise rarely fits better and proofs are short
_SMALL = 0.01  # of the error without any fact: a difference that does not matter
_ROUNDING = 1e-12  # of a covariance, as a share of the typical drop


@dataclass(frozen=True, slots=True)
class Findings:
    """A problem, its solution, the measured quality of the solution, and how the neighbors were obtained.

    ``n_left_out`` counts the literals that the search left out, because their effect may be zero.
    ``theorem_epsilon`` is what the uniform-convergence theorem adds to the objective, or None where it does not
    apply. ``pairs`` are those of the solution, and ``n_pairs`` the numbers of candidate pairs and of all pairs, or
    None. ``n_unclear`` counts the facts of the solution whose effect may be zero, which only a budget leaves in.
    """

    problem: Problem
    solution: Solution
    assessment: Assessment | None
    exhaustive: bool
    stopped_because: str | None = None
    rivals: Rivals | None = None
    theorem_epsilon: float | None = None
    n_left_out: int = 0
    pairs: tuple[tuple[int, int], ...] = ()
    n_pairs: tuple[int, int] | None = None
    n_unclear: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """The sum that was chosen, and the indices of the literals that it and its rivals may contain.

    ``n_left_out`` counts the other literals if the best of all sums contains some of them, so that it is not the
    chosen one; otherwise it is 0.
    """

    solution: Solution
    literals: np.ndarray
    n_left_out: int = 0
    pairs: tuple[tuple[int, int], ...] = ()
    n_pairs: tuple[int, int] | None = None


def investigate(case: Case) -> Findings:
    """Search with the requested number of neighbors, with all, or until the result is clear; then certify it."""
    check_flips(case)
    settings, flips = case.settings, plan(case)
    if flips is None:
        return _investigate_until_clear(case)
    exhaustive = isinstance(flips, EnumeratedFlips)
    check_budget(settings, flips.n_rows, exhaustive)
    if settings.pairs is not None:
        check_pairs(case)
    evidence, rows = gather(case, flips, keep=exhaustive or settings.needs_rows)
    problem = pose(case, evidence)
    chooser = None
    if settings.n_choose and not exhaustive:
        _, chooser = gather(case, case.stream("choose", settings.n_choose), keep=True)
    choice = _choose(case, problem, rows, chooser)
    choice = replace(choice, solution=as_resolved(problem, choice.solution))
    rivals: Rivals | None = None
    if settings.alternatives:
        rivals = find_rivals(problem, choice.solution, choice.literals, chooser, settings)
    return conclude(case, problem, choice, rows, rivals, exhaustive=exhaustive)


def conclude(
    case: Case,
    problem: Problem,
    choice: Choice,
    rows: SampleRows | None = None,
    rivals: Rivals | None = None,
    *,
    exhaustive: bool = False,
) -> Findings:
    """Certify a solution on fresh neighbors, or on the rows of the search if they are ``exhaustive``."""
    solution = choice.solution
    assessment, reason = certify(case.stating(choice.pairs), solution, rows, exhaustive=exhaustive)
    n_columns = problem.n_literals + (0 if choice.n_pairs is None else choice.n_pairs[1])
    epsilon = _theorem_epsilon(problem, solution.status, case.settings, n_columns, exhaustive=exhaustive)
    found = (choice.n_left_out, choice.pairs, choice.n_pairs)
    n_unclear = 0
    if case.settings.budget is not None:  # then such facts may be kept; pairs are not tested, so they count
        n_unclear = int((~np.isin(solution.support, with_effect(case, problem))).sum())
    return Findings(problem, solution, assessment, exhaustive, reason, rivals, epsilon, *found, n_unclear)


def _choose(case: Case, problem: Problem, rows: SampleRows | None, chooser: SampleRows | None) -> Choice:
    """Return the sum that the objective asks for."""
    settings = case.settings
    if settings.pairs is not None:
        assert rows is not None  # kept for the pairs
        return solve_with_pairs(case, problem, rows)
    if rows is None or settings.objective == "fidelity":
        return solve_without_noise(case, problem)
    everything = np.arange(problem.n_literals)
    if settings.objective == "shortest":
        return Choice(fewest_facts(rows, problem, case.law, settings), everything)
    fitted = solve_posed(problem, settings)
    return Choice(most_relevant(rows, chooser or rows, problem, fitted, case.law, settings), everything)


def certify(
    case: Case, solution: Solution, rows: SampleRows | None = None, *, exhaustive: bool = False
) -> tuple[Assessment | None, str | None]:
    """Measure the solution on fresh neighbors, or exactly on all of them; otherwise return why it was not.

    With a budget, ``rows`` of the search also count where the solution plays no part: for the baselines.
    """
    settings, n_facts = case.settings, np.count_nonzero(solution.contributions)
    if settings.n_certify == 0 or solution.status is Status.RELAXED:  # a relaxation is not an explanation
        return None, None
    if n_facts > MAX_PATTERNS:
        return None, f"not measured, because {n_facts} facts are more than the {MAX_PATTERNS} a reader could hold"
    if rows is not None and exhaustive:
        return assess_exactly(case, rows, solution.contributions), None
    if settings.n_fresh == 0:
        return None, "not measured, because max_queries left no query for it"
    assessment = assess(
        case,
        solution.contributions,
        n_samples=settings.n_fresh,
        n_wide=settings.n_wide,
        max_enumerated=0 if settings.sampling == "draw" else settings.n_wide,
        confidence=settings.certificate_confidence,
        searched=None if settings.budget is None else rows,
    )
    return assessment, None


def gather(case: Case, flips: Flips, *, start: int = 0, keep: bool = False) -> tuple[Evidence, SampleRows | None]:
    """Query the model about the rows of draws from ``start`` on and sum up the evidence; ``keep`` the rows too.

    The evidence is summed over the outcomes of the attributes, which are fewer than the literals about them.
    Unless rows are kept, memory does not grow with their number.
    """
    evidence: Evidence | None = None
    kept: list[SampleRows] = []
    law, kind = case.law, WideEvidence if case.is_wide else Evidence
    for batch in case.query(flips, start):
        answer = batch.answer
        part = kind.from_sample(law.outcomes(batch.draws), answer.drops, batch.weights)
        evidence = part if evidence is None else evidence + part
        if keep:
            kept.append(SampleRows.pack(batch.flips, answer.drops, batch.weights, answer.stays, answer.clipped))
    assert evidence is not None  # at least one row
    evidence = evidence if law.one_to_one else evidence.mapped(law.incidence)
    return evidence, SampleRows.joined(kept) if keep else None


def plan(case: Case) -> Flips | None:
    """Enumerate if requested, or if that takes no more queries than drawing; otherwise draw. None: until clear."""
    settings, d, n = case.settings, case.n_literals, case.settings.n_samples
    p = settings.flip_probability
    everything = EnumeratedFlips(case.law)
    possible = case.neighborhood.deterministic and everything.n_rows <= 2**MAX_ENUMERATED and p >= MIN_ENUMERATED
    if settings.sampling == "enumerate" and not possible:
        raise ParameterError(
            f"sampling='enumerate' needs at most {MAX_ENUMERATED} literals and a flip probability of at least "
            f"{MIN_ENUMERATED:g}; this case has {d} and {p:.3g}. Type sampling='draw'."
        )
    max_rows = _FIRST_LOOK if n == "auto" else n if settings.budget is None else settings.budget
    max_rows = max_rows if settings.max_queries is None else min(max_rows, settings.max_queries - 1)
    fits = possible and everything.n_rows <= max_rows
    if settings.sampling == "enumerate" or (settings.sampling == "auto" and fits):
        return everything
    return None if n == "auto" else case.stream("search", int(n))


def pose(case: Case, evidence: Evidence, k: int | None = None) -> Problem:
    """Return the problem that the evidence and the settings pose, by default with the settings' k."""
    predictor, settings, law = case.predictor, case.settings, case.law
    if settings.moments == "known" and evidence.weight == evidence.n_rows:  # otherwise these are all neighbors
        evidence = with_known_moments(evidence, law)
    return Problem(
        evidence,
        settings.k if k is None else k,
        predictor.scaled_prediction,
        box=settings.box,
        origin=predictor.origin,
        groups=None if law.one_to_one else law.groups,
    )


def solve_posed(problem: Problem, settings: Settings, shared: Shared | None = None) -> Solution:
    """Solve by the settings' solver and limits; raise `InfeasibleError` if no sum reaches the prediction."""
    p, nodes = settings.flip_probability, settings.nodes_for(problem.n_literals)
    more: dict[str, Any] = {"time_limit": settings.time_limit, "node_limit": nodes}
    if settings.solver == "iht":
        more["step"] = 18 / 19 / max(4 * p * (1 - p), 1e-9)
    elif shared is not None:
        more["shared"] = shared
    solution = solve(problem, settings.solver, **more)
    if solution.status is Status.INFEASIBLE:
        raise InfeasibleError(Status.INFEASIBLE.value)
    return as_resolved(problem, solution)


def solve_without_noise(case: Case, problem: Problem, look: int = 1) -> Choice:
    """Return the best sum whose facts all have an effect; with a budget, only if it has hardly more error.

    With few rows, their best sum is found first. Where a first guess with any facts already fits better,
    the best of all sums has a fact whose effect may be zero, and need not be found to be left out. Where flips
    depend on each other, its proof may take thousands of nodes: if it takes more than a few, it is left, too.
    """
    settings, d, literals, shared, part = case.settings, problem.n_literals, None, None, None
    is_plain = settings.solver == "exact" and settings.budget is None and not settings.keep_noise
    if is_plain and (case.flips_follow or problem.evidence.n_rows < _FEW_ROWS * d):
        literals, (objective, support, shared) = effective(case, problem, look), guess(problem)
        if case.flips_follow or not np.isin(support, literals).all():
            part = _solve_among(case, problem, literals)
            if part is not None and objective < part.objective - _BETTER * problem.evidence.drop_square:
                return Choice(part, literals, d - len(literals))
    if case.flips_follow and part is not None and part.status is Status.OPTIMAL:
        limit = _FEW_NODES if settings.node_limit is None else min(_FEW_NODES, settings.node_limit)
        settings = replace(settings, node_limit=limit)
    solution = solve_posed(problem, settings, shared)
    if settings.keep_noise or solution.status is Status.RELAXED:
        return Choice(solution, np.arange(d))
    literals = effective(case, problem, look) if literals is None else literals
    is_proven = settings is case.settings or solution.status is Status.OPTIMAL
    if is_proven and np.isin(solution.support, literals).all():
        return Choice(solution, literals)
    part = part or _solve_among(case, problem, literals)
    if part is None:  # in a small box, a prediction needs more terms than there are facts with an effect
        return Choice(solution, np.arange(d))
    if settings.budget is not None and part.objective - solution.objective > _SMALL * problem.evidence.drop_square:
        return Choice(solution, np.arange(d))  # so few rows show too few of the effects that matter
    return Choice(part, literals, d - len(literals))


def _solve_among(case: Case, problem: Problem, literals: np.ndarray) -> Solution | None:
    """Return the best sum of these literals, with contributions to all; None if none reaches the prediction."""
    try:
        part = solve_posed(restricted(problem, literals), case.settings)
    except InfeasibleError:
        return None
    return replace(part, contributions=spread_out(part.contributions, literals, problem.n_literals))


def effective(case: Case, problem: Problem, look: int = 1) -> np.ndarray:
    """Return the indices of the literals that have an effect: by leaves exactly, otherwise by `with_effect`."""
    leaves = case.leaves
    return with_effect(case, problem, look) if leaves is None else np.flatnonzero(leaves.has_effect)


def solve_with_pairs(case: Case, problem: Problem, rows: SampleRows) -> Choice:
    """Return the best sum of facts and pairs of facts that all have an effect; it may be the best of all sums."""
    literals = None if case.settings.keep_noise else with_effect(case, problem)
    candidates = find_candidates(case, problem, rows, literals)
    n_pairs, d = candidates.counts, problem.n_literals
    best = solve_pairs(case, problem, rows, candidates, np.arange(d))
    if literals is None or np.isin(best.singles, literals).all():
        return Choice(best.solution, np.arange(d), 0, best.pairs, n_pairs)
    try:
        part = solve_pairs(case, problem, rows, candidates, literals)
    except InfeasibleError:  # in a small box, a prediction needs more terms than there are facts with an effect
        return Choice(best.solution, np.arange(d), 0, best.pairs, n_pairs)
    return Choice(part.solution, literals, d - len(literals), part.pairs, n_pairs)


def candidate_pairs(case: Case, problem: Problem, rows: SampleRows) -> Candidates:
    """Return the pairs that a sum may contain."""
    return find_candidates(case, problem, rows, None if case.settings.keep_noise else with_effect(case, problem))


def with_effect(case: Case, problem: Problem, look: int = 1) -> np.ndarray:
    r"""Return the indices of the literals whose effect on the output can be distinguished from zero.

    The effect of a literal is the difference of two means: of the output over neighbors that break it, and over
    neighbors that do not. Let r be what k - 1 literals of other attributes leave of the drops. If the literal does
    not matter, its flips are independent of r, and :math:`|\sum_i F_{ij} r_i|` exceeds `flip_sum_limit` with
    probability at most :math:`\delta / d`. So with probability :math:`1 - \delta`, no literal that does not matter
    is returned. Sampling until the result is clear tests at every ``look``, which share delta. On all neighbors
    only rounding errors count as zero. If values decide which literals break, flips are drawn without replacement,
    given their number, and the limit holds for their share on the sample (Hoeffding 1963, theorem 4).
    """
    settings, evidence, d = case.settings, problem.evidence, problem.n_literals
    evidence = evidence.sample if isinstance(evidence, EstimatedEvidence) else evidence
    n, delta = evidence.n_rows, 1 - settings.confidence
    delta = (split_delta(delta, look) if settings.n_samples == "auto" else delta) / max(d, 1)
    groups, known = case.law.groups, case.law.literal_probabilities
    rates, kinds = np.unique(problem.evidence.flip_means if case.flips_follow else known, return_inverse=True)

    def exceeds(rest: Remainder) -> np.ndarray:
        """Return per literal whether its covariance with the remainder cannot be chance."""
        limits = np.full(len(rates), (_ROUNDING + n / WEIGHT_GRID) * math.sqrt(evidence.drop_square))
        if evidence.weight == n:  # otherwise these are all neighbors, each weighted by its probability
            random = [flip_sum_limit(p, n * rest.variance, rest.largest, delta) / n for p in rates.tolist()]
            limits = np.maximum(limits, random)
        return np.asarray(np.abs(rest.covariances) > limits[kinds])

    (rest,) = remainders(evidence, settings.k - 1, np.zeros((1, d), dtype=bool))
    found, own = exceeds(rest), groups == np.unique(groups[rest.chosen])[:, None]
    for excluded, other in zip(own, remainders(evidence, settings.k - 1, own), strict=True):
        found[excluded] = exceeds(other)[excluded]  # a chosen literal's remainder must do without its attribute
    return np.flatnonzero(found)


def _theorem_epsilon(
    problem: Problem, status: Status, settings: Settings, n_columns: int, *, exhaustive: bool
) -> float | None:
    """Bound how far fidelity may lie above that on the sample; None where the theorem does not apply.

    The theorem's w has a coordinate for the constant, so d is the number of literals and pairs plus one. A sum
    without intercept has the constant ``origin``, which is not a term and yet part of w.
    """
    if exhaustive:
        return 0.0
    if settings.moments == "known" or problem.box is None or status in (Status.RELAXED, Status.HEURISTIC):
        return None  # it needs the box, and k terms
    radius = problem.k * problem.box + (abs(problem.origin) if len(problem.variants) > 1 else 0.0)
    n, delta = problem.evidence.n_rows, 1 - settings.confidence
    if settings.n_samples == "auto":  # doubled until clear: every look has a different number of digits
        delta = split_delta(delta, n.bit_length())
    return achievable_epsilon(n, problem.k, n_columns + 1, delta, max(1.0, radius))


def _investigate_until_clear(case: Case) -> Findings:
    """Double the search until the best sum is separated from the runner-up, then measure until narrow.

    At most half of the queries go to the search, in equal parts to find sums and to compare them.
    """
    settings, max_queries = case.settings, case.settings.max_queries or AUTO_MAX_QUERIES
    problem, choice, clear = _search_until_clear(case, max_queries)
    solution = choice.solution
    epsilon = _theorem_epsilon(problem, solution.status, settings, problem.n_literals, exhaustive=False)
    if np.count_nonzero(solution.contributions) > MAX_PATTERNS:
        _, reason = certify(case, solution)
        return Findings(problem, solution, None, False, reason, None, epsilon, choice.n_left_out)
    assessment, narrow = assess_until(
        case,
        solution.contributions,
        lambda measured: measured.relevance_error.width <= settings.tolerance,
        max_samples=max_queries - case.predictor.n_queries,
        confidence=settings.confidence,
    )
    early = "" if clear else "query limit met before the "
    reasons = [
        f"{early}best support {'' if clear else 'was '}separated from the runner-up",
        f"relevance interval narrower than {settings.tolerance:g}"
        if narrow
        else f"query limit met before the relevance interval was narrower than {settings.tolerance:g}",
    ]
    return Findings(problem, solution, assessment, False, "; ".join(reasons), None, epsilon, choice.n_left_out)


def _search_until_clear(case: Case, max_queries: int) -> tuple[Problem, Choice, bool]:
    """Double the rows until the best sum beats the runners-up on rows that found neither; also whether it does."""
    n, look = min(_FIRST_LOOK, max(1, (max_queries - 1) // 8)), 1
    evidence: Evidence | None = None
    chooser: SampleRows | None = None
    while True:
        done = 0 if evidence is None else evidence.n_rows
        more, _ = gather(case, case.stream("search", n), start=done)
        evidence = more if evidence is None else evidence + more
        problem = pose(case, evidence)
        choice = solve_without_noise(case, problem, look)
        _, fresh = gather(case, case.stream("choose", n), start=done, keep=True)
        assert fresh is not None
        chooser = fresh if chooser is None else SampleRows.joined([chooser, fresh])
        best, complete = best_sums(problem, choice.literals, case.settings.limits)
        rivals = compare(best, chooser, problem.prediction, split_delta(1 - case.settings.confidence, look))
        clear = complete and all(rival.excess.low > 0 for rival in rivals)
        if clear or 4 * n > max_queries // 2:
            return problem, choice, clear
        n, look = 2 * n, look + 1
