"""A model on a space: which output is explained, and which columns of the table the model gets."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from anchorline.errors import names_similar_keywords
from anchorline.model.cache import AnswerCache
from anchorline.model.features import match_columns
from anchorline.model.outputs import resolve
from anchorline.model.target import Target, checked_distance, checked_range, checked_threshold
from anchorline.search.checks import Setup
from anchorline.spaces.base import Finding, Space
from anchorline.spaces.given import as_space, check_order

Ranges = tuple[list[float], list[float], list[float]] | None  # lowest and highest output, spread; one per column


class ModelOnSpace:
    """What an `Explainer`, which describes the parameters, knows before it gets an instance."""

    @names_similar_keywords("Explainer")
    def __init__(
        self,
        model: Any,
        space: Any,
        *,
        output: Any = None,
        column: int | None = None,
        task: str | None = None,
        classes: Sequence[Any] | None = None,
        output_range: tuple[float, float] | None = None,
        threshold: float | None = None,
        same_within: float | None = None,
        input: str = "auto",
        output_scale: str | None = None,
        cache: Any = None,
    ) -> None:
        check_order(model, space)
        self.model = model
        self.space: Space = as_space(space)
        self.output_range = None if output_range is None else checked_range(output_range)
        is_contrast = threshold is None and isinstance(output, list | tuple)
        self.threshold = 0.0 if is_contrast else checked_threshold(threshold)
        self.same_within = checked_distance(same_within)
        self.learned_ranges: Ranges = None
        self.cache = AnswerCache.of(cache)
        self._choices = {"output": output, "column": column, "task": task, "classes": classes, "input": input}
        self._choices |= {"own_decision": threshold is None, "output_scale": output_scale}
        self.columns = match_columns(model, getattr(self.space, "names", ()))
        if self.columns.ignored and hasattr(self.space, "holding"):
            self.space = self.space.holding(self.columns.ignored)
        self.setup, self._is_checked = Setup(model, self.columns, self.space), False
        self._findings: dict[tuple[bool, bool], tuple[Finding, ...]] = {}
        target = self.resolved()
        classes_come_with_answers = classes is None and hasattr(model, "classes_for")
        self._target = None if classes_come_with_answers and hasattr(self.space, "examples") else target

    def resolved(self, **changes: Any) -> Target:
        """Return what to ask the model, which gets its own columns of the table."""
        target = resolve(self.model, **self._choices | changes)
        ask = target.ask if self.cache is None else self.cache.wrapping(self.model, target)
        return replace(target, ask=self.columns.selecting(ask))
