"""The error for every number of terms: one search sample, one fresh sample, all limits together."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from anchorline.errors import ParameterError
from anchorline.guarantees import Estimate
from anchorline.optimize import Problem, Solution, as_resolved
from anchorline.optimize.exact import solve_path
from anchorline.optimize.rows import SampleRows
from anchorline.search.assess import Measured, estimate_drop, estimate_fidelity
from anchorline.search.case import Case, flips_not_independent
from anchorline.search.investigate import gather, plan, pose, solve_posed
from anchorline.search.sampling import EnumeratedFlips
from anchorline.settings import Settings, check_budget


@dataclass(frozen=True, slots=True)
class TracedPoint:
    """The best sum of at most k terms, and its errors on fresh rows; None if too few rows were in the event."""

    k: int
    solution: Solution
    fidelity_error: Estimate | None = None
    relevance_error: Estimate | None = None


def checked_ks(ks: Any) -> list[int]:
    """Return the numbers of terms as a list."""
    if not isinstance(ks, Iterable):
        raise ParameterError(f"ks is {ks!r}, but it must be a list of numbers of terms. Type ks=range(1, 9).")
    return list(ks)


def check_trace(case: Case, ks: Sequence[int]) -> None:
    """Raise `ParameterError` if the settings of a case do not allow a frontier."""
    settings = case.settings
    if not ks or settings.n_samples == "auto" or settings.objective != "fidelity":
        raise ParameterError("A frontier needs at least one k, n_samples as a number, and objective='fidelity'.")
    if case.flips_follow:
        raise flips_not_independent("A frontier was asked for")
    if settings.pairs is not None:
        raise ParameterError(
            f"A frontier was asked for with pairs={settings.pairs!r}, but it compares sums of single facts. Leave "
            "out pairs, or call explain(..., pairs=..., k=k) for every k."
        )


def trace(case: Case, ks: Sequence[int]) -> list[TracedPoint]:
    """Solve for every k on one search sample, and measure all the sums on one fresh sample.

    Fidelity uses all fresh rows, relevance those in each sum's own event: given their number, they are
    independent draws from it. The failure probability is shared by all limits.
    """
    check_trace(case, ks)
    settings, flips = case.settings, plan(case)
    assert flips is not None  # n_samples is a number
    exhaustive = isinstance(flips, EnumeratedFlips)
    check_budget(settings, flips.n_rows, exhaustive)
    evidence, rows = gather(case, flips, keep=exhaustive)
    each = [replace(settings, k=k) for k in sorted(set(ks))]
    solutions = _solve_all([pose(case, evidence, setting.k) for setting in each], each)
    if settings.n_fresh and not exhaustive:
        _, rows = gather(case, case.stream("certify", settings.n_fresh), keep=True)
    points = [TracedPoint(setting.k, solution) for setting, solution in zip(each, solutions, strict=True)]
    return points if rows is None else measure_points(case, points, rows)


def _solve_all(problems: list[Problem], each: list[Settings]) -> list[Solution]:
    if each[0].solver == "exact":
        pairs = zip(problems, solve_path(problems, each[0].limits), strict=True)
        return [as_resolved(problem, solution) for problem, solution in pairs]
    return [solve_posed(problem, setting) for problem, setting in zip(problems, each, strict=True)]


def measure_points(case: Case, points: list[TracedPoint], rows: SampleRows) -> list[TracedPoint]:
    """Return the points with their errors on fresh rows; all limits hold together."""
    flips = rows.flips  # unpacked once for all points
    confidence = 1 - (1 - case.settings.confidence) / (2 * len(points))
    measured = []
    for point in points:
        u = point.solution.contributions
        everywhere = Measured.from_rows(rows, flips, u)
        inside = everywhere.inside(u)
        fidelity = estimate_fidelity(everywhere, u, case.predictor, confidence)
        relevance = estimate_drop(inside, case.predictor, confidence) if len(inside.drops) else None
        measured.append(replace(point, fidelity_error=fidelity, relevance_error=relevance))
    return measured
