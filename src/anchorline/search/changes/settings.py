"""The keywords of `Explainer.changes`, checked once."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from anchorline._version import __version__
from anchorline.errors import ParameterError, unknown_keyword

EXAMPLES = ("values", "rows")
SEARCHES = ("auto", "leaves", "queries")
MAX_FACTS = 3  # of changes to any training values
MAX_QUERIES = 100_000
MAX_VALUES = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSettings:
    """What a search for changes may do; `Explainer.changes` describes the keywords."""

    target: Any = None
    n: int = 3
    max_facts: int | None = None
    examples: str = "values"
    search: str = "auto"
    fixed: tuple[str, ...] = ()
    within: Mapping[str, Any] = field(default_factory=dict)
    direction: Mapping[str, str] = field(default_factory=dict)
    toward: Any = None
    cost: Mapping[str, float] | Callable[[Mapping[str, tuple[Any, Any]]], float] = field(default_factory=dict)
    max_values: int = MAX_VALUES
    n_measure: int = 200
    max_queries: int = MAX_QUERIES
    confidence: float = 0.95
    seed: int = 0

    @classmethod
    def from_keywords(cls, **keywords: Any) -> "ChangeSettings":
        """Check the keywords that the user typed."""
        known = [each.name for each in fields(cls)]
        for name in keywords:
            if name not in known:
                raise unknown_keyword("changes", name, known)
        given = {name: value for name, value in keywords.items() if value is not None}
        return cls(**given)

    def __post_init__(self) -> None:
        if self.max_facts is not None:
            _check_whole("max_facts", self.max_facts, 1)
        if self.examples not in EXAMPLES:
            raise ParameterError(
                f"examples is {self.examples!r}, but it must be 'values', for few facts, or 'rows', for whole "
                "training rows. Type examples='rows'."
            )
        if self.search not in SEARCHES:
            raise ParameterError(
                f"search is {self.search!r}, but it must be 'auto', 'leaves' or 'queries'. Type search='auto'."
            )
        for name, least in (("n", 1), ("max_values", 2), ("n_measure", 1), ("seed", 0)):
            _check_whole(name, getattr(self, name), least)
        _check_whole("max_queries", self.max_queries, 2)
        fixed = (self.fixed,) if isinstance(self.fixed, str) else self.fixed
        if not isinstance(fixed, Iterable):
            raise ParameterError(f"fixed is {fixed!r}, but it must be a list of columns. Type fixed=['age'].")
        object.__setattr__(self, "fixed", tuple(str(name) for name in fixed))
        for name in ("within", "direction"):
            if not isinstance(getattr(self, name), Mapping):
                example = "{'age': (30, 50)}" if name == "within" else "{'age': 'up'}"
                raise ParameterError(
                    f"{name} is {getattr(self, name)!r}, but it must map columns to what is allowed. Type "
                    f"{name}={example}."
                )
        if not (isinstance(self.confidence, float) and 0 < self.confidence < 1):
            raise ParameterError(f"confidence is {self.confidence!r}, but it must be a number between 0 and 1.")
        if not callable(self.cost):
            _check_weights(self.cost)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; a cost function is recorded as such, because it cannot be written."""
        return {
            "n": self.n,
            "max_facts": self.max_facts or (MAX_FACTS if self.examples == "values" else None),
            "examples": self.examples,
            "fixed": list(self.fixed),
            "within": {name: _plain_limits(limits) for name, limits in self.within.items()},
            "direction": dict(self.direction),
            "cost": "function" if callable(self.cost) else {name: float(w) for name, w in self.cost.items()},
            "max_values": self.max_values,
            "n_measure": self.n_measure,
            "max_queries": self.max_queries,
            "confidence": self.confidence,
            "seed": self.seed,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], target: Any) -> "ChangeSettings":
        """Read the result of `to_dict`; other keys are ignored."""
        known = {each.name: values[each.name] for each in fields(cls) if each.name in values}
        within = {
            name: tuple(limits["range"]) if "range" in limits else list(limits["values"])
            for name, limits in values["within"].items()
        }
        cost = {} if values["cost"] == "function" else values["cost"]
        return cls(**known | {"within": within, "cost": cost, "target": target})


def versions() -> dict[str, str]:
    """Return the versions that are recorded with a result."""
    return {"anchorline": __version__, "numpy": np.__version__}


def _plain_limits(limits: Any) -> dict[str, list[Any]]:
    values = [_plain(value) for value in limits]
    return {"range": values} if isinstance(limits, tuple) else {"values": sorted(values, key=repr)}


def _plain(value: Any) -> Any:
    value = value.item() if isinstance(value, np.generic) else value
    return value if value is None or isinstance(value, bool | int | float | str) else str(value)


def _check_whole(name: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ParameterError(
            f"{name} is {value!r}, but it must be a whole number >= {least}. Type {name}={max(least, 3)}."
        )


def _check_weights(cost: Any) -> None:
    wrong = not isinstance(cost, Mapping) or [
        name
        for name, weight in cost.items()
        if isinstance(weight, bool)
        or not isinstance(weight, int | float | np.number)
        or not (math.isfinite(weight) and weight > 0)
    ]
    if wrong:
        raise ParameterError(
            f"cost is {cost!r}, but it must map columns to positive numbers, or be a function of the moves. Type "
            "cost={'income': 2.0}."
        )
