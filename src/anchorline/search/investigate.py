"""From an instance and a model to findings: the only place where the two sides meet.

Flips, model inputs and drops on one side; evidence, problem and solution on the other.
Three streams of neighbors that never mix: "search" finds the sum, "choose" tells it from the
runner-up, "certify" measures it.
"""

from dataclasses import dataclass

import numpy as np

from anchorline.errors import BudgetError, InfeasibleError, ParameterError
from anchorline.guarantees import split_delta
from anchorline.model.predictor import Predictor, batches
from anchorline.optimize import Problem, Solution, Status, solve
from anchorline.optimize.evidence import Evidence, SampleRows
from anchorline.optimize.exact import solve_runners_up
from anchorline.search.assess import Assessment, assess, assess_exactly, assess_until
from anchorline.search.sampling import MAX_PATTERNS, DrawnFlips, EnumeratedFlips, Flips, stream_key
from anchorline.search.select import Rival, compare, fewest_facts, find_rivals, most_relevant
from anchorline.settings import AUTO_MAX_QUERIES, Settings
from anchorline.spaces.base import Neighborhood

MAX_ENUMERATED = 22  # literals; 2^22 rows is the most anyone should wait for
MIN_ENUMERATED = 1e-6  # flip probability; weights are rounded to 2^-50, too coarse for products of less
_FIRST_LOOK = 1000


@dataclass(frozen=True, slots=True)
class Findings:
    """A problem, its solution, what it is worth, and how the neighbors were had."""

    problem: Problem
    solution: Solution
    assessment: Assessment | None
    exhaustive: bool
    stopped_because: str | None = None
    rivals: tuple[Rival, ...] = ()


def investigate(neighborhood: Neighborhood, predictor: Predictor, settings: Settings) -> Findings:
    """Search with as many neighbors as asked, or all, or until it is clear; then certify on fresh ones."""
    flips = plan(neighborhood, settings)
    if flips is None:
        return _investigate_until_clear(neighborhood, predictor, settings)
    exhaustive = isinstance(flips, EnumeratedFlips)
    check_budget(settings, flips.n_rows, exhaustive)
    keep = exhaustive or settings.objective != "fidelity"
    evidence, rows = gather(neighborhood, predictor, flips, keep=keep)
    problem = pose(evidence, predictor, settings)
    chooser = None
    if settings.n_choose and not exhaustive:
        fresh = stream(neighborhood, settings, "choose", settings.n_choose)
        _, chooser = gather(neighborhood, predictor, fresh, keep=True)
    solution = _choose(problem, rows, chooser, settings)
    rivals = find_rivals(problem, solution, chooser, settings) if settings.alternatives else ()
    assessment, why = certify(neighborhood, predictor, settings, solution, rows if exhaustive else None)
    return Findings(problem, solution, assessment, exhaustive, why, rivals)


def check_budget(settings: Settings, n_rows: int, exhaustive: bool) -> None:
    """Refuse what cannot fit into max_queries before the model is asked about any neighbor."""
    asked = 0 if exhaustive else settings.n_choose + (settings.n_certify or 0)
    if settings.max_queries is not None and 1 + n_rows + asked > settings.max_queries:
        raise BudgetError(
            f"{1 + n_rows + asked} queries needed (x, {n_rows} to search, {asked} to choose and to certify), "
            f"max_queries is {settings.max_queries}. Lower n_samples or n_certify, or raise max_queries."
        )


def _choose(problem: Problem, rows: SampleRows | None, chooser: SampleRows | None, settings: Settings) -> Solution:
    """The sum that the objective asks for."""
    if rows is None or settings.objective == "fidelity":
        return solve_posed(problem, settings)
    if settings.objective == "shortest":
        return fewest_facts(rows, problem, settings)
    return most_relevant(rows, chooser or rows, problem, solve_posed(problem, settings), settings)


def certify(
    neighborhood: Neighborhood,
    predictor: Predictor,
    settings: Settings,
    solution: Solution,
    rows: SampleRows | None,
) -> tuple[Assessment | None, str | None]:
    """Measure the solution on fresh neighbors, or exactly on ``rows`` that are all of them; or say why not."""
    n_facts = np.count_nonzero(solution.contributions)
    if settings.n_certify == 0 or solution.status is Status.RELAXED:  # a relaxation is no explanation
        return None, None
    if n_facts > MAX_PATTERNS:
        return None, f"not measured, because {n_facts} facts are more than the {MAX_PATTERNS} a reader could hold"
    if rows is not None:
        p = settings.flip_probability
        return assess_exactly(rows, predictor, solution.contributions, flip_probability=p), None
    if settings.n_fresh == 0:
        return None, "not measured, because max_queries left no query for it"
    assessment = assess(
        neighborhood,
        predictor,
        solution.contributions,
        flip_probability=settings.flip_probability,
        n_samples=settings.n_fresh,
        seed=settings.seed,
        most_enumerated=0 if settings.sampling == "draw" else settings.n_fresh // 2,
        confidence=settings.certificate_confidence,
    )
    return assessment, None


def gather(
    neighborhood: Neighborhood, predictor: Predictor, flips: Flips, *, start: int = 0, keep: bool = False
) -> tuple[Evidence, SampleRows | None]:
    """Ask about the rows of flips from ``start`` on, in fixed batches; keep the rows too where asked.

    Without them, memory does not grow with the number of rows.
    """
    evidence: Evidence | None = None
    kept: list[SampleRows] = []
    for first, last in batches(flips.n_rows, start):
        table, weights = flips.rows(first, last)
        answer = predictor.answer(neighborhood.realize(table, flips.generator(first)), last - first)
        part = Evidence.from_sample(table, answer.drops, weights)
        evidence = part if evidence is None else evidence + part
        kept += [SampleRows.pack(table, answer.drops, weights, answer.stays, answer.clipped)] if keep else []
    assert evidence is not None  # at least one row
    return evidence, SampleRows.joined(kept) if keep else None


def plan(neighborhood: Neighborhood, settings: Settings) -> Flips | None:
    """Enumerate where asked, or where it costs no more queries than drawing; else draw. None: until clear."""
    d, n = len(neighborhood.literals), settings.n_samples
    p = settings.flip_probability
    possible = neighborhood.deterministic and d <= MAX_ENUMERATED and p >= MIN_ENUMERATED
    if settings.sampling == "enumerate" and not possible:
        raise ParameterError(
            f"sampling='enumerate' needs at most {MAX_ENUMERATED} literals and a flip probability of at least "
            f"{MIN_ENUMERATED:g}; here are {d} and {p:.3g}. Type sampling='draw'."
        )
    most = _FIRST_LOOK if n == "auto" else n
    cheap = possible and 2**d <= (most if settings.max_queries is None else min(most, settings.max_queries - 1))
    if settings.sampling == "enumerate" or (settings.sampling == "auto" and cheap):
        return EnumeratedFlips(d, settings.flip_probability)
    return None if n == "auto" else stream(neighborhood, settings, "search", int(n))


def stream(neighborhood: Neighborhood, settings: Settings, name: str, n_rows: int) -> DrawnFlips:
    """Flips of one named stream of the settings' seed."""
    key = stream_key(settings.seed, neighborhood.key, name)
    return DrawnFlips(key, n_rows, len(neighborhood.literals), settings.flip_probability)


def pose(evidence: Evidence, predictor: Predictor, settings: Settings) -> Problem:
    """The problem that the evidence and the settings pose."""
    return Problem(evidence, settings.k, predictor.scaled_prediction, box=settings.box, origin=predictor.origin)


def solve_posed(problem: Problem, settings: Settings) -> Solution:
    """Solve by the settings' solver and limits; `InfeasibleError` where no sum reaches the prediction."""
    p = settings.flip_probability
    steps = {"step": 18 / 19 / max(4 * p * (1 - p), 1e-9)} if settings.solver == "iht" else {}
    limits = {"time_limit": settings.time_limit, "node_limit": settings.node_limit}
    solution = solve(problem, settings.solver, **limits, **steps)  # type: ignore[arg-type]
    if solution.status is Status.INFEASIBLE:
        raise InfeasibleError(Status.INFEASIBLE.value)
    return solution


def _investigate_until_clear(neighborhood: Neighborhood, predictor: Predictor, settings: Settings) -> Findings:
    """Double the search until the best sum is separated from the runner-up, then measure until narrow.

    Half the queries at most go to the search (as many rows to find two sums as to compare them), the
    rest to the certificate.
    """
    most = settings.max_queries or AUTO_MAX_QUERIES
    n, look = min(_FIRST_LOOK, max(1, (most - 1) // 8)), 1
    evidence: Evidence | None = None
    chooser: SampleRows | None = None
    while True:
        done = 0 if evidence is None else evidence.n_rows
        more, _ = gather(neighborhood, predictor, stream(neighborhood, settings, "search", n), start=done)
        evidence = more if evidence is None else evidence + more
        problem = pose(evidence, predictor, settings)
        solution = solve_posed(problem, settings)
        choosers = stream(neighborhood, settings, "choose", n)
        _, fresh = gather(neighborhood, predictor, choosers, start=done, keep=True)
        assert fresh is not None
        chooser = fresh if chooser is None else SampleRows.joined([chooser, fresh])
        delta = split_delta(1 - settings.confidence, look)
        best, complete = solve_runners_up(problem, settings.limits)
        rivals = compare(best, chooser, problem.prediction, delta)
        clear = complete and all(rival.excess.low > 0 for rival in rivals)
        if clear or 4 * n > most // 2:
            break
        n, look = 2 * n, look + 1
    if np.count_nonzero(solution.contributions) > MAX_PATTERNS:
        _, why_not = certify(neighborhood, predictor, settings, solution, None)
        return Findings(problem, solution, None, False, why_not)
    assessment, narrow = assess_until(
        neighborhood,
        predictor,
        solution.contributions,
        flip_probability=settings.flip_probability,
        tolerance=settings.tolerance,
        most_samples=most - predictor.n_queries,
        seed=settings.seed,
        confidence=settings.confidence,
    )
    why = [
        "best support separated from the runner-up"
        if clear
        else "query limit met before the best support was separated from the runner-up",
        f"relevance interval narrower than {settings.tolerance:g}"
        if narrow
        else f"query limit met before the relevance interval was narrower than {settings.tolerance:g}",
    ]
    return Findings(problem, solution, assessment, False, "; ".join(why))
