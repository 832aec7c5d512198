"""The options of a table, checked: each error names the option and what to type."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from anchorline.errors import ParameterError
from anchorline.spaces.columns import BOOLEAN, CATEGORY, DATE, EXACT, NUMBER, Column, kind_of, level_of, listed
from anchorline.spaces.donor_index import DonorIndex
from anchorline.spaces.findings import find_indicators
from anchorline.spaces.rows import Schema, read_date
from anchorline.spaces.validity import Validity, ValidRule, rule_name

WITHIN = ("keep", "redraw")
LITERALS = ("bounds", "intervals", "thresholds")
NEIGHBORS = ("independent", "realistic", "similar")
DRAWS = ("breaking", "marginal")
_MAX_DONORS = 256


def check_options(n_bins: int, cuts: Any, within: str, literals: str, rare: float) -> None:
    """Raise `ParameterError` if one of these options has a wrong type or is out of range."""
    if not isinstance(cuts, Mapping | None):
        raise ParameterError(f"cuts is {cuts!r}; it must be a mapping. Type cuts={{'age': [30, 40, 50]}}.")
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 2:
        raise ParameterError(f"n_bins is {n_bins!r}; it must be a whole number >= 2. Type n_bins=4.")
    if within not in WITHIN:
        raise ParameterError(f"within is {within!r}; it must be one of {', '.join(WITHIN)}. Type within='keep'.")
    if literals not in LITERALS:
        raise ParameterError(
            f"literals is {literals!r}; it must be one of {', '.join(LITERALS)}. Type literals='bounds'."
        )
    if isinstance(rare, bool) or not isinstance(rare, int | float) or not 0 <= rare < 1:
        raise ParameterError(f"rare is {rare!r}; it must be a share >= 0 and < 1. Type rare=0.01.")


def check_neighbors(neighbors: str, donors: int, within: str, draw: str) -> None:
    """Raise `ParameterError` if the law of neighbors is unknown, or does not fit the other options."""
    if draw not in DRAWS:
        raise ParameterError(f"draw is {draw!r}; it must be one of {', '.join(DRAWS)}. Type draw='marginal'.")
    if neighbors not in NEIGHBORS:
        raise ParameterError(
            f"neighbors is {neighbors!r}; it must be one of {', '.join(NEIGHBORS)}. Type neighbors='realistic'."
        )
    is_number = isinstance(donors, int | np.integer) and not isinstance(donors, bool)
    if not is_number or not 1 <= donors <= _MAX_DONORS:
        raise ParameterError(
            f"donors is {donors!r}; it must be a whole number from 1 to {_MAX_DONORS}. Type donors=10."
        )
    if neighbors != "independent" and within == "redraw":
        raise ParameterError(
            f"neighbors is {neighbors!r} and within is 'redraw'; {neighbors} neighbors keep the values of "
            "attributes that are not drawn. Leave out within, or type neighbors='independent'."
        )
    if neighbors == "similar" and draw == "marginal":
        raise ParameterError(
            "neighbors is 'similar' and draw is 'marginal'; the values of similar rows decide which literals are "
            "flipped, so that draw has no effect. Leave out draw, or type neighbors='realistic'."
        )


class Drawing(NamedTuple):
    """Where the values of attributes that change come from: see `Table` for the options that these are.

    ``donors`` is None if values are independent.
    """

    draw: str = "breaking"
    n_donors: int = 10
    donors: DonorIndex | None = None
    validity: Validity | None = None


def settings_of_law(literals: str, neighbors: str, donors: int, draw: str, valid: ValidRule | None) -> list[Any]:
    """Return what the fingerprint says about these options: nothing about those of the first release."""
    name = rule_name(valid)
    return [
        *([] if literals == "intervals" else [literals]),
        *([] if neighbors == "independent" else [neighbors, int(donors)]),
        *([] if draw == "breaking" else [draw]),
        *([] if name is None else [f"valid: {name}"]),
    ]


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


def columns_of_attributes(
    names: Sequence[str], groups: Mapping[str, Sequence[str]], fixed: Sequence[str]
) -> dict[str, list[int]]:
    """Return the positions of the columns of every attribute that may change."""
    grouped = {name: group for group, members in groups.items() for name in members}
    members: dict[str, list[int]] = {}
    for j, name in enumerate(names):
        if name not in fixed:
            members.setdefault(grouped.get(name, name), []).append(j)
    return members


def cut_points(cuts: Sequence[Any], column: Column, name: str) -> np.ndarray:
    """Return cut points as numbers; dates count microseconds."""
    wanted = "dates, like ['2018-03-04']" if column.kind == DATE else "finite numbers, like [30, 40]"
    try:
        cut_list = [] if isinstance(cuts, str) else list(cuts)
        points = np.array([_microseconds(cut) if column.kind == DATE else float(cut) for cut in cut_list])
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"cuts[{name!r}] is {cuts!r}; it must list {wanted} ({error}).") from None
    if not len(points) or not np.isfinite(points).all():
        raise ParameterError(f"cuts[{name!r}] is {cuts!r}; it must list {wanted}.")
    return points


def _microseconds(cut: Any) -> float:
    """Return a date in microseconds; a date without a time zone is read as UTC."""
    parsed = read_date(cut)
    if parsed is None:
        raise ValueError(f"{cut!r} is not a date")
    return float(parsed[0].astype("M8[us]").astype(np.int64))


def level_text_from_key(key: Any, kind: str) -> str:
    """Return the text of the level that a key of ``categorical`` names; 1, 1.0 and "1" name the same level."""
    own = kind_of(key)
    if own not in (NUMBER, BOOLEAN, CATEGORY):
        raise ParameterError(
            f"categorical names {key!r}; it must name a value of the column: a number, text or boolean."
        )
    return level_of(key, own if CATEGORY in (own, kind) else kind)


def check_level_names(name: str, labels: Mapping[str, str], column: Column, categories: Iterable[str]) -> None:
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


def checked_cuts(cuts: Mapping[str, Sequence[Any]], schema: Schema, fixed: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the cut points by column; a column with cuts may not be fixed, because it then has no literals."""
    names = checked_columns(cuts, schema.names, "cuts")
    points = {name: cut_points(cuts[name], schema.columns[schema.names.index(name)], name) for name in names}
    both = [name for name in names if name in fixed]
    if both:
        raise ParameterError(
            f"cuts has {listed(both)}, also listed in fixed. Remove the columns from cuts or from fixed."
        )
    return points


def checked_labels(
    categorical: Mapping[str, Mapping[Any, str]] | Iterable[str], schema: Schema
) -> dict[str, dict[str, str]]:
    """Return, per column to read as categories, the names to display for the texts of its levels."""
    labels = {}
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
        labels[name] = {level_text_from_key(key, column.kind): str(text) for key, text in given.items()}
        check_level_names(name, labels[name], column, column_type.categories or ())
    return labels
