"""Frontier: the best sum for every number of terms, with its errors."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from anchorline._links import call
from anchorline.guarantees import Estimate
from anchorline.optimize.problem import Status
from anchorline.result.frames import frame_in
from anchorline.spaces.base import Literal


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FrontierPoint:
    """The best sum of at most k terms, in the output's own units, with its errors.

    ``objective`` and ``lower_bound`` refer to the search sample. The two errors were measured on fresh rows, or
    are None if too few of these were in the event. All limits of a frontier hold together.
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

    def __reduce__(self) -> tuple[Any, ...]:  # by the constructor, so that arrays stay read-only
        return partial(type(self), **{name: getattr(self, name) for name in self.__slots__}), ()

    @property
    def gap(self) -> float:
        """The largest amount by which the objective may exceed the best sum of at most k terms on the sample."""
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
    learned_range: bool = False

    def __str__(self) -> str:
        lines = [f"{'k':>3}  {'fidelity error':<26}{'relevance error':<26}terms"]
        for point in self.points:
            names = [call("printable", self.literals[j].text) for j in np.flatnonzero(point.contributions)]
            terms = ", ".join(names) or "(starting level)"
            cells = (_cell(point.fidelity_error), _cell(point.relevance_error))
            lines.append(f"{point.k:>3}  {cells[0]:<26}{cells[1]:<26}{terms}")
        return "\n".join([*lines, *self.warnings])

    @property
    def warnings(self) -> list[str]:
        """Warnings about anything that may make the errors look smaller than they are."""
        if not self.n_clipped:
            return []
        clipped = call("clipped_outputs_text", self.n_clipped, self.n_queries, self.learned_range)
        advice = call("range_advice", self.learned_range)
        return [f"{clipped}, so errors may be larger than shown. {advice}"]

    def plot(self, ax: Any = None) -> Any:
        """Draw both errors over k with their bands on ``ax``, or on new Axes; return the Axes."""
        return call("plot.frontier", self, ax)

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return one row per k, as a frame of the given backend."""
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


def _cell(estimate: Estimate | None) -> str:
    if estimate is None:
        return "-"
    if estimate.exact:
        return f"{estimate.value:.4f}"
    return f"{estimate.value:.4f} ({estimate.low:.4f}-{estimate.high:.4f})"
