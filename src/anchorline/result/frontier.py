"""How many reasons are needed: every k on one search sample, all certified by one fresh sample."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.guarantees import Estimate, estimate_mean, estimate_share, exact_estimate
from anchorline.model.predictor import Predictor
from anchorline.optimize import Problem, Solution, Status
from anchorline.optimize.evidence import SampleRows
from anchorline.optimize.exact import solve_path
from anchorline.result.frames import frame_in
from anchorline.search.assess import drop_range, fidelity_range, flipped_sums
from anchorline.search.investigate import check_budget, gather, plan, pose, solve_posed, stream
from anchorline.search.sampling import CANCELS, EnumeratedFlips
from anchorline.settings import Settings
from anchorline.spaces.base import Literal, Neighborhood


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrontierPoint:
    """The best sum of at most k terms, in the output's own units, and what it is worth.

    ``objective`` and ``lower_bound`` are on the search sample; the two errors were measured on fresh rows
    (None: too few of them in the event). All limits of a frontier hold together.
    """

    k: int
    contributions: np.ndarray
    intercept: float
    status: Status
    objective: float
    lower_bound: float
    fidelity_error: Estimate | None
    relevance_error: Estimate | None

    def __post_init__(self) -> None:
        contributions = np.array(self.contributions, dtype=np.float64)
        contributions.setflags(write=False)
        object.__setattr__(self, "contributions", contributions)

    def __reduce__(self) -> tuple[Any, ...]:  # by the constructor: what is read-only stays so
        return partial(type(self), **{name: getattr(self, name) for name in self.__slots__}), ()

    @property
    def gap(self) -> float:
        """How far the objective may be above the best of at most k terms on the search sample."""
        return max(0.0, self.objective - self.lower_bound)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Frontier:
    """Error against number of terms, for one prediction."""

    prediction: float
    literals: tuple[Literal, ...]
    points: tuple[FrontierPoint, ...]
    n_queries: int
    confidence: float
    n_clipped: int = 0

    def __str__(self) -> str:
        from anchorline.render.characters import printable  # noqa: PLC0415  pictures come after

        lines = [f"{'k':>3}  {'fidelity error':<26}{'relevance error':<26}terms"]
        for point in self.points:
            names = [printable(self.literals[j].text) for j in np.flatnonzero(point.contributions)]
            terms = ", ".join(names) or "(starting level)"
            cells = (_cell(point.fidelity_error), _cell(point.relevance_error))
            lines.append(f"{point.k:>3}  {cells[0]:<26}{cells[1]:<26}{terms}")
        return "\n".join([*lines, *self.warnings])

    @property
    def warnings(self) -> list[str]:
        """What may make the errors look smaller than they are."""
        from anchorline.render.text import clipped_outputs_text  # noqa: PLC0415  pictures come after

        told = f"{clipped_outputs_text(self.n_clipped, self.n_queries)}: errors may be larger than told here."
        return [f"{told} Pass a wider output_range=(lowest, highest)."] if self.n_clipped else []

    def plot(self, ax: Any = None) -> Any:
        """Draw both errors over k with their bands; on ``ax`` or its own; returns the Axes."""
        from anchorline.render.plot import frontier  # noqa: PLC0415  pictures come after

        return frontier(self, ax)

    def to_frame(self, backend: Any = "pandas") -> Any:
        """One row a k, as a frame of the given backend."""
        columns: dict[str, list[Any]] = {
            "k": [point.k for point in self.points],
            "status": [point.status.name for point in self.points],
            "objective": [point.objective for point in self.points],
            "gap": [point.gap for point in self.points],
        }
        for name in ("fidelity_error", "relevance_error"):
            for end in ("value", "low", "high"):
                column = name if end == "value" else f"{name}_{end}"
                columns[column] = [getattr(getattr(point, name), end, None) for point in self.points]
        return frame_in(backend, columns)


def trace_frontier(
    neighborhood: Neighborhood, predictor: Predictor, settings: Settings, ks: Sequence[int]
) -> Frontier:
    """Solve for every k on one search sample, and measure all the sums on one fresh sample.

    Fidelity uses all fresh rows, relevance those in each sum's own event: given their number, they are
    independent draws from it. The failure probability is shared by all limits.
    """
    if not ks or settings.n_samples == "auto" or settings.objective != "fidelity":
        raise ParameterError("A frontier needs at least one k, n_samples as a number, and objective='fidelity'.")
    flips = plan(neighborhood, settings)
    assert flips is not None  # n_samples is a number
    exhaustive = isinstance(flips, EnumeratedFlips)
    check_budget(settings, flips.n_rows, exhaustive)
    evidence, rows = gather(neighborhood, predictor, flips, keep=exhaustive)
    each = [replace(settings, k=k) for k in sorted(set(ks))]
    solutions = _solve_all([pose(evidence, predictor, setting) for setting in each], each)
    if settings.n_fresh and not exhaustive:
        _, rows = gather(
            neighborhood, predictor, stream(neighborhood, settings, "certify", settings.n_fresh), keep=True
        )
    share = 1 - (1 - settings.confidence) / (2 * len(each))
    errors = [(None, None)] * len(each) if rows is None else _all_errors(solutions, predictor, rows, share)
    points = tuple(
        _point(setting.k, solution, predictor, *measured)
        for setting, solution, measured in zip(each, solutions, errors, strict=True)
    )
    return Frontier(
        prediction=predictor.prediction,
        literals=neighborhood.literals,
        points=points,
        n_queries=predictor.n_queries,
        confidence=settings.confidence,
        n_clipped=predictor.n_clipped,
    )


def _solve_all(problems: list[Problem], each: list[Settings]) -> list[Solution]:
    if each[0].solver == "exact":
        return solve_path(problems, each[0].limits)
    return [solve_posed(problem, setting) for problem, setting in zip(problems, each, strict=True)]


def _all_errors(
    solutions: list[Solution], predictor: Predictor, rows: SampleRows, confidence: float
) -> list[tuple[Estimate | None, Estimate | None]]:
    flips = rows.flips  # unpacked once for all
    return [_errors(solution, predictor, rows, flips, confidence) for solution in solutions]


def _errors(
    solution: Solution, predictor: Predictor, rows: SampleRows, flips: np.ndarray, confidence: float
) -> tuple[Estimate | None, Estimate | None]:
    u, prediction = solution.contributions, predictor.scaled_prediction
    sums = flipped_sums(flips, u)
    inside = np.abs(sums) <= CANCELS * np.abs(u).sum()
    losses, squares = (rows.drops - sums) ** 2, rows.drops[inside] ** 2
    if rows.weights is not None:
        weights = rows.weights
        fidelity = exact_estimate(max(0.0, float((weights * losses).sum() / weights.sum())), len(losses))
        within = weights[inside]
        relevance = exact_estimate(float((within * squares).sum() / within.sum()), int(inside.sum()))
        return fidelity, relevance
    fidelity = estimate_mean(losses, fidelity_range(prediction, u), confidence)
    if not inside.any():
        return fidelity, None
    if predictor.is_label:
        return fidelity, estimate_share(int((squares > 0).sum()), len(squares), confidence)
    return fidelity, estimate_mean(squares, drop_range(prediction), confidence)


def _point(
    k: int, solution: Solution, predictor: Predictor, fidelity: Estimate | None, relevance: Estimate | None
) -> FrontierPoint:
    contributions, intercept = predictor.in_own_units(solution.contributions, solution.intercept)
    return FrontierPoint(
        k=k,
        contributions=contributions,
        intercept=intercept,
        status=solution.status,
        objective=solution.objective,
        lower_bound=solution.lower_bound,
        fidelity_error=fidelity,
        relevance_error=relevance,
    )


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    if estimate.exact:
        return f"{estimate.value:.4f}"
    return f"{estimate.value:.4f} ({estimate.low:.4f}-{estimate.high:.4f})"
