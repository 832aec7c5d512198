"""Frontier: how many facts are needed? The best sum of at most k facts, for several k, as figures."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from anchorline.facts import Fact
from anchorline.result.explanation import Output
from anchorline.result.frames import frame_of
from anchorline.result.json_format import Record

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class FrontierPoint:
    """The sum that is stated with at most ``k`` facts; it has fewer if further ones gain nothing.

    ``contributions`` are those of its facts, in the output's own units. ``status`` is that of `Proof`;
    ``objective`` and ``lower_bound`` are mean squared errors on the search's moments.
    """

    k: int
    facts: tuple[Fact, ...]
    contributions: tuple[float, ...]
    status: str
    objective: float
    lower_bound: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Frontier(Record):
    r"""What each further fact gains, for one prediction.

    All figures are those of the search's moments, on which the facts were chosen; nothing here was measured on
    fresh neighbors, so there is no verdict. ``baseline`` is the mean squared drop :math:`E\,t^2`, which is the
    error without facts.
    """

    _KIND: ClassVar[str] = "frontier"

    prediction: float
    output: Output
    points: tuple[FrontierPoint, ...]
    baseline: float
    n_queries: int
    settings: Mapping[str, Any]
    space: Mapping[str, Any]
    versions: Mapping[str, str]

    @property
    def r2(self) -> tuple[float, ...]:
        """R2 of every point: 1 - objective / baseline, as `Fit.r2`, but on the search's moments."""
        if self.baseline <= 0:  # nothing ever changes, and every sum says so
            return (1.0,) * len(self.points)
        return tuple(min(1.0, 1 - point.objective / self.baseline) for point in self.points)

    @property
    def errors(self) -> tuple[float, ...]:
        """Typical error of every point in the output's own units: the root of its objective."""
        return tuple(math.sqrt(max(0.0, point.objective)) for point in self.points)

    def __repr__(self) -> str:
        ks = ", ".join(str(point.k) for point in self.points)
        return f"Frontier({self.output.name!r}, prediction={self.prediction:g}, k = {ks})"

    def _repr_html_(self) -> str:
        from anchorline.render.report import frontier_view

        return frontier_view(self)

    def plot(self, ax: Any = None) -> Any:
        """Draw R2 over the number of facts on ``ax``, or on a new figure of pyplot; return the Axes."""
        from anchorline.render.pictures import plot_frontier

        return plot_frontier(self, ax)

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return one row per k, as a frame of the given backend."""
        from anchorline.render.statements import fact_text

        kinds = {"k": "place", "n_facts": "place", "r2": "number", "error": "number"}
        texts = [" and ".join(fact_text(fact, self.space) for fact in point.facts) for point in self.points]
        rows = [
            (point.k, len(point.facts), r2, error, point.status, text)
            for point, r2, error, text in zip(self.points, self.r2, self.errors, texts, strict=True)
        ]
        return frame_of(backend, kinds | {"status": "text", "facts": "text"}, rows)

    def _contradictions(self) -> Iterator[str]:
        """Yield what figures of a frontier contradict each other."""
        ks = [point.k for point in self.points]
        if ks != sorted({*ks}):
            yield f"The numbers of facts are {ks!r}, which do not increase."
        for point in self.points:
            if not len(point.contributions) == len(point.facts) <= point.k:
                n_facts = f"{len(point.facts)} of at most {point.k} facts"
                yield f"{len(point.contributions)} contributions for {n_facts}."
            scale = max(abs(point.objective), self.baseline)
            if not point.lower_bound <= point.objective + _ROUNDING * scale:
                yield f"The lower bound {point.lower_bound!r} exceeds the objective {point.objective!r}."
