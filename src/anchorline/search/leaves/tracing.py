"""The error for every number of terms, over the whole neighborhood of a sum of trees."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anchorline.guarantees import exact_estimate
from anchorline.search.case import Case
from anchorline.search.investigate import gather, pose, solve_posed
from anchorline.search.leaves.solving import solve_row
from anchorline.search.sampling import MAX_PATTERNS, cancelling_event
from anchorline.search.trace import TracedPoint, check_trace, measure_points, trace

if TYPE_CHECKING:  # loaded for models that have trees
    from anchorline.search.leaves.row import LeafRow


def trace_sums(case: Case, ks: Sequence[int]) -> list[TracedPoint]:
    """Return the best sum for every k: from the leaves of trees without a sample, otherwise as `trace` does.

    Errors are exact where they are sums over few pairs of leaves, and the others are measured on fresh rows.
    """
    leaves = case.leaves
    if leaves is None:
        return trace(case, ks)
    check_trace(case, ks)
    settings = replace(case.settings, keep_noise=True)  # a frontier compares all sums
    case, n_fresh = replace(case, settings=settings), settings.n_fresh_without_search
    points = [_solved(case, leaves, k) for k in sorted(set(ks))]
    if not n_fresh:
        return points
    exact = [_exact_errors(case, leaves, point, len(points)) for point in points]
    if not all(len(errors) == 2 for errors in exact):
        _, rows = gather(case, case.stream("certify", n_fresh), keep=True)
        assert rows is not None  # just kept
        points = measure_points(case, points, rows)
    return [replace(point, **errors) for point, errors in zip(points, exact, strict=True)]


def _solved(case: Case, leaves: "LeafRow", k: int) -> TracedPoint:
    square = None if case.settings.n_certify == 0 else leaves.drop_square
    problem = pose(case, leaves.evidence(square), k)
    choice = solve_row(case, leaves, problem)
    return TracedPoint(k, solve_posed(problem, replace(case.settings, k=k)) if choice is None else choice.solution)


def _exact_errors(case: Case, leaves: "LeafRow", point: TracedPoint, n_points: int) -> dict[str, Any]:
    """Return the errors of one of some sums that are sums over few pairs of leaves."""
    contributions, found = point.solution.contributions, {}
    if leaves.drop_square is not None:
        problem = pose(case, leaves.evidence(leaves.drop_square), point.k)
        found["fidelity_error"] = problem.objective(contributions)
    if (contributions != 0).sum() <= MAX_PATTERNS:
        inside = leaves.drop_square_given(cancelling_event(contributions, case.law), n_points)
        found |= {} if inside is None else {"relevance_error": inside}
    return {
        name: exact_estimate(max(0.0, error), leaves.n_leaves, method="leaves") for name, error in found.items()
    }
