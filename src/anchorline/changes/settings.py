"""The keywords of `Explainer.changes`, checked once."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar, Literal, TypedDict

import numpy as np

from anchorline.errors import ParameterError
from anchorline.model.outputs import plain_label
from anchorline.settings import Keywords, checked_count, plain_number

MIN_QUERIES = 10_000  # trees are compared with the model on some rows, which a small limit has no room for
MOST_FACTS = 3  # of changes to any training values
SUCCESSORS = {
    "max_queries": "queries= is that number",
    "max_facts": "k= is that number",
    "within": "allowed= takes the same ranges and lists",
    "search": "leaves of trees decide wherever they can be read",
}

Price = Callable[[Mapping[str, tuple[Any, Any]]], float]


class ChangeKeywords(TypedDict, total=False):
    """The types of the keywords of `ChangeSettings` that `changes` does not name itself."""

    k: int | None
    examples: Literal["values", "rows"]
    fixed: Iterable[str]
    allowed: Mapping[str, Any]
    direction: Mapping[str, Literal["up", "down"]]
    toward: Any
    cost: Mapping[str, float] | Price
    max_values: int
    n_measure: int
    queries: int
    confidence: float
    seed: int


@dataclass(frozen=True, kw_only=True)
class ChangeSettings(Keywords):
    """The keywords of `Explainer.changes`.

    Parameters
    ----------
    target
        The wanted class or label, a limit (">= 300") or a move ("+50") of the output; None for another decision.
    n
        How many changes are wanted.
    k
        Maximum number of facts of a change; None for 3, or any number for rows.
    examples
        "values", for few facts, or "rows", for whole rows of the table.
    fixed
        Attributes or columns that keep their values.
    allowed
        Names with the values they may take: two ends, such as (30, None), or a collection of values.
    direction
        Names with "up" or "down".
    toward
        Another instance: attributes may only take its values.
    cost
        Names with the weights of their distances, 1 without it, or a function of the moves.
    max_values
        How many values per attribute are tried alone.
    n_measure
        How many combinations measure how reliably a change turns the decision.
    queries
        Maximum number of queries to the model, which is never exceeded.
    confidence
        Confidence with which the limits of a share hold.
    seed
        Seed of the random combinations; the same seed gives the same answer.
    """

    gone: ClassVar[Mapping[str, str]] = SUCCESSORS
    target: Any = None
    n: int = 3
    k: int | None = None
    examples: str = "values"
    fixed: tuple[str, ...] = ()
    allowed: Mapping[str, Any] = field(default_factory=dict)
    direction: Mapping[str, str] = field(default_factory=dict)
    toward: Any = None
    cost: Mapping[str, float] | Price = field(default_factory=dict)
    max_values: int = 200
    n_measure: int = 200
    queries: int = 100_000
    confidence: float = 0.95
    seed: int = 0

    @classmethod
    def from_keywords(cls, call: str, **keywords: Any) -> "ChangeSettings":
        """Check the keywords that the user typed; None stands for the default."""
        known = {each.name for each in fields(cls)}
        given = {name: value for name, value in keywords.items() if value is not None or name not in known}
        return super().from_keywords(call, **given)

    def _check(self) -> None:
        if self.examples not in ("values", "rows"):
            raise ParameterError(
                f"examples is {self.examples!r}, but it must be 'values', for few facts, or 'rows', for whole "
                "rows of the table. Type examples='rows'."
            )
        least = {"k": 1, "n": 1, "max_values": 2, "n_measure": 1, "seed": 0, "queries": 2}
        for name, value in least.items():
            if (name, self.k) != ("k", None):
                checked_count(name, getattr(self, name), value, f"{name}={1000 if name == 'queries' else 3}")
        fixed = (self.fixed,) if isinstance(self.fixed, str) else self.fixed
        if not isinstance(fixed, Iterable):
            raise ParameterError(f"fixed is {fixed!r}, but it must be a list of columns. Type fixed=['age'].")
        object.__setattr__(self, "fixed", tuple(dict.fromkeys(map(str, fixed))))
        for name, example in (("allowed", "{'age': (30, 50)}"), ("direction", "{'age': 'up'}")):
            if not isinstance(getattr(self, name), Mapping):
                raise ParameterError(
                    f"{name} is {getattr(self, name)!r}, but it must map columns to what is allowed. Type "
                    f"{name}={example}."
                )
        if not (isinstance(self.confidence, float) and 0 < self.confidence < 1):
            raise ParameterError(
                f"confidence is {self.confidence!r}, but it must be a number between 0 and 1. Type 0.95."
            )
        if not (
            callable(self.cost) or (isinstance(self.cost, Mapping) and all(map(_is_weight, self.cost.values())))
        ):
            raise ParameterError(
                f"cost is {self.cost!r}, but it must map columns to positive numbers, or be a function of the "
                "moves. Type cost={'income': 2.0}."
            )

    @property
    def most(self) -> int | None:
        """The most facts of a change; None for any number."""
        return self.k if self.k is not None or self.examples == "rows" else MOST_FACTS

    @property
    def searching(self) -> int:
        """The most queries of the search, so that what it finds is measured."""
        measuring = min(self.n * self.n_measure, self.queries // 4)
        return max(2, self.queries - self.n - measuring)

    def measuring(self, most: int) -> "ChangeSettings":
        """Return settings that find the same changes, and measure each with up to ``most`` draws."""
        n_measure = min(most, (self.searching + self.n) // (3 * self.n))  # a quarter of all queries
        more = replace(self, n_measure=n_measure, queries=self.searching + self.n + self.n * n_measure)
        is_same = more.searching == self.searching and (more.queries < MIN_QUERIES) == (self.queries < MIN_QUERIES)
        return more if n_measure > self.n_measure and is_same else self

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; a cost function is recorded as such, because it cannot be written."""
        return vars(self) | {
            "target": plain_label(self.target),
            "k": self.most,
            "fixed": list(self.fixed),
            "allowed": {name: _plain_limits(limits) for name, limits in self.allowed.items()},
            "direction": dict(self.direction),
            "cost": "function" if callable(self.cost) else {name: float(w) for name, w in self.cost.items()},
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "ChangeSettings":
        """Read the result of `to_dict`; a cost function is lost."""
        allowed = {
            name: tuple(limits["range"]) if "range" in limits else list(limits["values"])
            for name, limits in values["allowed"].items()
        }
        cost = {} if values["cost"] == "function" else values["cost"]
        return cls(**dict(values) | {"allowed": allowed, "cost": cost})


def _plain_limits(limits: Any) -> Any:
    if isinstance(limits, str | bytes) or not isinstance(limits, Iterable):
        return {"values": [plain_label(limits)]}  # refused when it is read
    values = [plain_label(plain_number(value)) for value in limits]
    return {"range": values} if isinstance(limits, tuple) else {"values": sorted(values, key=repr)}


def _is_weight(weight: Any) -> bool:
    is_number = isinstance(weight, int | float | np.number) and not isinstance(weight, bool)
    return is_number and math.isfinite(weight) and weight > 0
