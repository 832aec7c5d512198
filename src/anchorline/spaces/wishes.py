"""Which changes of an instance are wanted: attributes held fixed, allowed values, and directions."""

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.spaces.base import Neighborhood
from anchorline.spaces.choices import Choice, Choices
from anchorline.spaces.columns import CATEGORY, DATE, NUMBER, kind_of, level_of
from anchorline.spaces.rows import read_date

_DIRECTIONS = {"up": 1, "down": -1}


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a change may do.

    ``fixed`` are attributes or columns that keep their values. ``within`` maps names to allowed values: a tuple of
    two ends, each a number, a date or None, or a collection of values. ``direction`` maps names to "up" or "down".
    ``toward`` is another row: attributes may only take its values.
    """

    fixed: tuple[str, ...] = ()
    within: Mapping[str, Any] | None = None
    direction: Mapping[str, str] | None = None
    toward: Neighborhood | None = None

    def check(self, names: Mapping[str, Collection[str]], held: Iterable[str]) -> None:
        """Raise `ParameterError` for a name that is neither an attribute nor one of its columns, nor held fixed.

        ``names`` maps the attributes to their columns.
        """
        known = {*names, *held, *(column for columns in names.values() for column in columns)}
        for option, given in (("fixed", self.fixed), ("within", self.within), ("direction", self.direction)):
            for name in given or ():
                if name not in known:
                    near = difflib.get_close_matches(str(name), list(known)[:1000], 1)
                    hint = f"Did you mean {near[0]!r}?" if near else f"The columns are {_listed(sorted(known))}."
                    raise ParameterError(f"{option} has {name!r}, which is not a column of the table. {hint}")
        for name, way in (self.direction or {}).items():
            if way not in _DIRECTIONS:
                raise ParameterError(
                    f"direction of {name!r} is {way!r}, but it must be 'up' or 'down'. Type "
                    f"direction={{{name!r}: 'up'}}."
                )

    def allowed(self, choices: Choices, attribute: int) -> np.ndarray:
        """Return the indices of the candidates of an attribute that are allowed."""
        choice, names = choices.attributes[attribute], choices.column_names(attribute)
        own = {choice.name, *names}
        if own & {*self.fixed}:
            return np.zeros(0, dtype=np.intp)
        kept = np.ones(choice.n_values, dtype=bool)
        for name, way in (self.direction or {}).items():
            if name in own:
                kept &= _in_direction(choice, name, way)
        if self.toward is not None:
            kept &= choices.like(attribute, self.toward)
        for name, limits in (self.within or {}).items():
            if name in own:
                kept &= _within(choices, attribute, name, limits)
        return np.flatnonzero(kept)


def _in_direction(choice: Choice, name: str, way: str) -> np.ndarray:
    if choice.numbers is None:
        raise ParameterError(
            f"direction has {name!r}, which holds {choice.kind}; only numbers and dates go up or down. Remove "
            f"{name!r}, or list its allowed values in within."
        )
    return np.asarray(choice.sides == _DIRECTIONS[way])


def _within(choices: Choices, attribute: int, name: str, limits: Any) -> np.ndarray:
    choice = choices.attributes[attribute]
    if isinstance(limits, tuple) and choice.numbers is not None:
        if len(limits) != 2:
            raise ParameterError(
                f"within has {limits!r} for {name!r}, but a range must be a tuple of two ends, lowest first. "
                f"Type, say, within={{{name!r}: (0, 100)}}, or a list of the allowed values."
            )
        low, high = (_number(end, choice.kind, name) for end in limits)
        low, high = -np.inf if low is None else low, np.inf if high is None else high
        return np.asarray((choice.numbers >= low) & (choice.numbers <= high))
    if isinstance(limits, str | bytes) or not isinstance(limits, Iterable):
        raise ParameterError(
            f"within has {limits!r} for {name!r}, but it must be a range or a list of values. Type, say, "
            f"within={{{name!r}: [{limits!r}]}}."
        )
    if len(choice.positions) > 1:
        raise ParameterError(
            f"within has {name!r}, which is in the group {choice.name!r}; groups change as a whole. Remove it, or "
            "hold the group fixed."
        )
    if choice.numbers is not None:
        numbers = [_number(value, choice.kind, name) for value in limits]
        return np.isin(choice.numbers, [value for value in numbers if value is not None])
    wanted = {level_of(value, kind_of(value) or CATEGORY) for value in limits}
    texts = [_level(choices.plain_after(attribute, i)) for i in range(choice.n_values)]
    return np.array([text in wanted for text in texts], dtype=bool)


def _level(value: Any) -> str:
    return level_of(value, kind_of(value) or CATEGORY)


def _number(value: Any, kind: str, name: str) -> float | None:
    """Return the end of a range as a number; dates count microseconds."""
    if value is None:
        return None
    if kind == DATE:
        parsed = read_date(value)
        if parsed is not None:
            return float(parsed[0].astype("M8[us]").astype(np.int64))
    elif kind_of(value) == NUMBER:
        return float(value)
    raise ParameterError(
        f"within has {value!r} for {name!r}, which holds {kind}. Type a {'date' if kind == DATE else 'number'}, "
        "or None for no limit."
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:12]))
    return f"{shown}, ... ({len(names)})" if len(names) > 12 else shown
