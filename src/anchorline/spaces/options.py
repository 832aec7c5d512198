"""The options of a table, checked: each error names the option and what to type."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.spaces.columns import BOOLEAN, CATEGORY, DATE, EXACT, NUMBER, Column, kind_of, level_of, listed
from anchorline.spaces.groups import find_indicators
from anchorline.spaces.rows import Schema, microseconds

NEIGHBORS = ("independent", "realistic")


def check_law(neighbors: str, valid: Callable[[Any], Any] | None) -> None:
    """Raise `ParameterError` if the law of neighbors is unknown, or if the rule ``valid`` is not a function."""
    if neighbors not in NEIGHBORS:
        raise ParameterError(
            f"neighbors is {neighbors!r}; it must be 'independent' or 'realistic'. Type neighbors='realistic' for "
            "neighbors whose new values come together from one similar row."
        )
    if valid is not None and not callable(valid):
        raise ParameterError(
            f"valid is {valid!r:.60}; it must be a function of a frame of neighbors that returns one boolean per "
            "row. Type, say, valid=lambda rows: rows['fare'] > 0."
        )


def checked_columns(given: Iterable[str] | None, names: Sequence[str], option: str) -> list[str]:
    """Return the given names as a list, empty for None; raise `ParameterError` if one is not a column."""
    given = () if given is None else given
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError(f"{option} is {given!r}; it must be a list of columns. Type {option}=[{given!r}].")
    chosen = [str(name) for name in given]
    columns = {*names}
    unknown = [name for name in chosen if name not in columns]
    if unknown:
        raise ParameterError(
            f"{option} has {listed(unknown)}, which the table lacks. Choose from its columns: {listed(names)}."
        )
    return chosen


def checked_groups(
    groups: Mapping[str, Sequence[str]] | Sequence[Sequence[str]] | str, schema: Schema, fixed: Sequence[str]
) -> dict[str, list[str]]:
    """Return a mapping of group names to columns; no column may be in two groups, or fixed and in a group.

    "auto" groups the indicators of which at most one is 1 in every row.
    """
    names = schema.names
    if groups == "auto":
        free = [(name, c) for name, c in zip(names, schema.columns, strict=True) if name not in fixed]
        return find_indicators([name for name, _ in free], [column for _, column in free])
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise ParameterError(
            f"groups is {groups!r}; it must be a mapping or a list of lists. Type, say, "
            "groups={'place': ['latitude', 'longitude']}, or groups='auto'."
        )
    if not isinstance(groups, Mapping):
        wrong = [group for group in groups if isinstance(group, str) or not isinstance(group, Iterable)]
        if wrong:
            raise ParameterError(
                f"groups has {wrong[0]!r}; every group must be a list of columns. Type groups=[['a', 'b']]."
            )
        groups = {", ".join(map(str, group)): group for group in groups}
    checked = {str(name): checked_columns(members, names, f"groups[{name!r}]") for name, members in groups.items()}
    used: set[str] = set(fixed)
    for name, members in checked.items():
        twice = [member for member in members if member in used]
        if twice or len(set(members)) < len(members) or not members:
            raise ParameterError(
                f"Group {name!r} is {members}; it must have at least one column, and every column must be in one "
                "group only and not in fixed."
            )
        used |= set(members)
        if name in names and name not in members:
            raise ParameterError(f"Group {name!r} has the same name as a column outside it. Rename the group.")
    return checked


def checked_cuts(
    cuts: Mapping[str, Sequence[Any]] | None, schema: Schema, fixed: Sequence[str], categorical: Iterable[str]
) -> dict[str, np.ndarray]:
    """Return the sorted cut points by column; only numbers and dates about which facts are stated have cuts."""
    if not isinstance(cuts, Mapping | None):
        raise ParameterError(f"cuts is {cuts!r}; it must be a mapping. Type cuts={{'age': [30, 40, 50]}}.")
    cuts = cuts or {}
    names = checked_columns(cuts, schema.names, "cuts")
    kinds = {name: column.kind for name, column in zip(schema.names, schema.columns, strict=True)}
    uncut = [name for name in names if kinds[name] not in (NUMBER, DATE) or name in categorical]
    if uncut:
        raise ParameterError(
            f"cuts has {listed(uncut)}, read as categories; only numbers and dates are cut. Remove the columns "
            "from cuts."
        )
    points = {name: _cut_points(cuts[name], schema.columns[schema.names.index(name)], name) for name in names}
    both = [name for name in names if name in fixed]
    if both:
        raise ParameterError(
            f"cuts has {listed(both)}, also listed in fixed. Remove the columns from cuts or from fixed."
        )
    return points


def _cut_points(cuts: Sequence[Any], column: Column, name: str) -> np.ndarray:
    """Return cut points as numbers; dates count microseconds."""
    wanted, example = ("dates", "'2018-03-04'") if column.kind == DATE else ("finite numbers", "30, 40")
    typed = f"Type cuts={{{name!r}: [{example}]}}."
    try:
        cut_list = [] if isinstance(cuts, str) else list(cuts)
        points = np.array([microseconds(cut) if column.kind == DATE else float(cut) for cut in cut_list])
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"cuts[{name!r}] is {cuts!r}; it must list {wanted} ({error}). {typed}") from None
    if not len(points) or not np.isfinite(points).all():
        raise ParameterError(f"cuts[{name!r}] is {cuts!r}; it must list {wanted}. {typed}")
    return np.unique(points)


def checked_labels(
    categorical: Mapping[str, Mapping[Any, str]] | Iterable[str], schema: Schema
) -> dict[str, dict[str, str]]:
    """Return, per column to read as categories, the names to display for the texts of its levels."""
    labels: dict[str, dict[str, str]] = {}
    for name in checked_columns(categorical, schema.names, "categorical"):
        position = schema.names.index(name)
        column, column_type = schema.columns[position], schema.types[position]
        if column.kind == DATE:
            raise ParameterError(
                f"categorical includes {name!r}, which holds dates; it may name only columns of numbers or "
                f"categories. Remove {name!r} from categorical."
            )
        given = categorical[name] if isinstance(categorical, Mapping) else {}
        if not isinstance(given, Mapping):
            raise ParameterError(
                f"categorical[{name!r}] is {given!r}; it must be a mapping. Type, say, {{0: 'female', 1: 'male'}}."
            )
        labels[name] = {}
        for key, text in given.items():  # 1, 1.0 and "1" name the same level
            kind = kind_of(key)
            if kind not in (NUMBER, BOOLEAN, CATEGORY):
                raise ParameterError(
                    f"categorical names {key!r}; it must name a value of the column: a number, text or boolean."
                )
            level = level_of(key, kind if CATEGORY in (kind, column.kind) else column.kind)
            labels[name][level] = str(text)
        _check_names(name, labels[name], column, column_type.categories or ())
    return labels


def _check_names(name: str, labels: Mapping[str, str], column: Column, categories: Iterable[str]) -> None:
    """Raise `ParameterError` if two levels would share a text, or if none of the labels belongs to a level.

    Some labels may belong to levels that occur only in later rows.
    """
    present = set(column.values[~column.missing].tolist())
    if column.kind == NUMBER and any(EXACT <= abs(value) < math.inf for value in present):
        raise ParameterError(
            f"categorical has {name!r}, which holds whole numbers beyond 2^53: as floats, several would be one "
            "category. Convert the column to texts."
        )
    levels = {*categories, *(level_of(value, column.kind) for value in present)}
    if labels and levels.isdisjoint(labels):
        raise ParameterError(
            f"categorical[{name!r}] names {listed(labels)}, but none of these is a level of the column. Choose "
            f"from its levels: {listed(sorted(levels))}."
        )
    texts = Counter(labels.get(level, level) for level in levels | labels.keys())
    twice = [text for text, count in texts.items() if count > 1]
    if twice:
        raise ParameterError(
            f"categorical[{name!r}] calls two levels {twice[0]!r}; every level must have a name of its own."
        )
