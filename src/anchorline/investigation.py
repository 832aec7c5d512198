"""From an instance and a model to findings: the only place where the two sides meet.

Flips, model inputs and drops on one side; evidence, problem and solution on the other.
Three streams of neighbors that never mix: "search" finds the sum, "choose" tells it from the
runner-up, "certify" measures it.
"""

from dataclasses import dataclass

import numpy as np

from anchorline.assessment import Assessment, assess, assess_until, fidelity_range, flipped_sums
from anchorline.errors import InfeasibleError, ParameterError
from anchorline.evidence import Evidence
from anchorline.guarantees import betting_interval, split_delta
from anchorline.optimize import Problem, Solution, Status, solve
from anchorline.optimize.exact import Candidate, solve_runners_up
from anchorline.predictor import Predictor, batches
from anchorline.sampling import DrawnFlips, EnumeratedFlips, Flips, stream_key
from anchorline.settings import AUTO_MOST_QUERIES, Settings
from anchorline.spaces.base import Neighborhood

MOST_ENUMERATED = 22  # literals; 2^22 rows is the most anyone should wait for
_FIRST_LOOK = 1000


@dataclass(frozen=True, slots=True)
class Findings:
    """A problem, its solution, what it is worth, and how the neighbors were had."""

    problem: Problem
    solution: Solution
    assessment: Assessment | None
    exhaustive: bool
    stopped_because: str | None = None


def investigate(neighborhood: Neighborhood, predictor: Predictor, settings: Settings) -> Findings:
    """Search with as many neighbors as asked, or all, or until it is clear; then certify on fresh ones."""
    flips = _plan(neighborhood, settings)
    if flips is None:
        return _investigate_until_clear(neighborhood, predictor, settings)
    problem = _pose(gather(neighborhood, predictor, flips), predictor, settings)
    solution = _solve(problem, settings)
    exhaustive = isinstance(flips, EnumeratedFlips)
    n_fresh = flips.n_rows if exhaustive and settings.n_certify != 0 else settings.n_fresh
    if n_fresh == 0 or solution.status is Status.RELAXED:  # a relaxation is no explanation: nothing to certify
        return Findings(problem, solution, None, exhaustive)
    assessment = assess(
        neighborhood,
        predictor,
        solution.contributions,
        flip_probability=settings.flip_probability,
        n_samples=n_fresh,
        seed=settings.seed,
        most_enumerated=_most_enumerated(settings, exhaustive, n_fresh),
        confidence=settings.confidence,
    )
    return Findings(problem, solution, assessment, exhaustive)


def gather(neighborhood: Neighborhood, predictor: Predictor, flips: Flips, start: int = 0) -> Evidence:
    """Ask about the rows of flips from ``start`` on, in fixed batches; memory does not grow with rows."""
    evidence: Evidence | None = None
    for first, last in batches(flips.n_rows, start):
        table, weights = flips.rows(first, last)
        answer = predictor.answer(neighborhood.realize(table, None), last - first)
        part = Evidence.from_sample(table, answer.drops, weights)
        evidence = part if evidence is None else evidence + part
    assert evidence is not None  # at least one row
    return evidence


def _plan(neighborhood: Neighborhood, settings: Settings) -> Flips | None:
    """Enumerate where asked, or where it costs no more queries than drawing; else draw. None: until clear."""
    d, n = len(neighborhood.literals), settings.n_samples
    possible = neighborhood.deterministic and d <= MOST_ENUMERATED
    if settings.sampling == "enumerate" and not possible:
        raise ParameterError(
            f"sampling='enumerate' needs at most {MOST_ENUMERATED} literals, here are {d}; use sampling='draw'."
        )
    cheap = possible and 2**d <= (_FIRST_LOOK if n == "auto" else n)
    if settings.sampling == "enumerate" or (settings.sampling == "auto" and cheap):
        return EnumeratedFlips(d, settings.flip_probability)
    return None if n == "auto" else _stream(neighborhood, settings, "search", int(n))


def _stream(neighborhood: Neighborhood, settings: Settings, name: str, n_rows: int) -> DrawnFlips:
    key = stream_key(settings.seed, neighborhood.key, name)
    return DrawnFlips(key, n_rows, len(neighborhood.literals), settings.flip_probability)


def _most_enumerated(settings: Settings, exhaustive: bool, n_fresh: int) -> int:
    if settings.sampling == "draw":
        return 0
    return 2**MOST_ENUMERATED if exhaustive else n_fresh // 2


def _pose(evidence: Evidence, predictor: Predictor, settings: Settings) -> Problem:
    return Problem(evidence, settings.k, predictor.scaled_prediction, box=settings.box, origin=predictor.origin)


def _solve(problem: Problem, settings: Settings) -> Solution:
    p = settings.flip_probability
    steps = {"step": 18 / 19 / (4 * p * (1 - p))} if settings.solver == "iht" else {}
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
    most = settings.max_queries or AUTO_MOST_QUERIES
    n, look = min(_FIRST_LOOK, max(1, (most - 1) // 8)), 1
    evidence, drops = None, np.zeros(0)
    while True:
        done = 0 if evidence is None else evidence.n_rows
        more = gather(neighborhood, predictor, _stream(neighborhood, settings, "search", n), done)
        evidence = more if evidence is None else evidence + more
        problem = _pose(evidence, predictor, settings)
        solution = _solve(problem, settings)
        best = solve_runners_up(problem, settings.limits)
        chooser = _stream(neighborhood, settings, "choose", n)
        drops = np.append(drops, _drops(neighborhood, predictor, chooser, done))
        delta = split_delta(1 - settings.confidence, look)
        clear = len(best) < 2 or _separated(best, chooser, drops, problem.prediction, delta)
        if clear or 2 * n * 2 > most // 2:
            break
        n, look = 2 * n, look + 1
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


def _drops(neighborhood: Neighborhood, predictor: Predictor, flips: DrawnFlips, start: int) -> np.ndarray:
    parts = [
        predictor.answer(neighborhood.realize(flips.rows(first, last)[0], None), last - first).drops
        for first, last in batches(flips.n_rows, start)
    ]
    return np.concatenate(parts)


def _separated(
    best: list[Candidate], flips: DrawnFlips, drops: np.ndarray, prediction: float, delta: float
) -> bool:
    """Whether the runner-up's loss exceeds the best one's on fresh rows, contributions frozen, with 1 - delta."""
    losses, ranges = [], []
    for candidate in best[:2]:
        sums = [
            flipped_sums(flips.rows(first, last)[0], candidate.contributions)
            for first, last in batches(flips.n_rows)
        ]
        losses.append((drops - np.concatenate(sums)) ** 2)
        ranges.append(fidelity_range(prediction, candidate.contributions))
    shifted = losses[1] - losses[0] + ranges[0]  # in [0, sum of the ranges]
    return betting_interval(shifted, sum(ranges), 1 - delta).low > ranges[0]
