"""What the user may choose of a table, checked: each message names the choice and what to type."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.spaces.columns import BOOLEAN, CATEGORY, DATE, EXACT, NUMBER, Column, kind_of, level_of, listed
from anchorline.spaces.rows import read_date

WITHIN = ("keep", "redraw")


def check_choices(n_bins: int, cuts: Any, within: str, rare: float) -> None:
    """Refuse numbers and words out of range."""
    if not isinstance(cuts, Mapping | None):
        raise ParameterError(f"cuts is {cuts!r}; needed a mapping. Type cuts={{'age': [30, 40, 50]}}.")
    if isinstance(n_bins, bool) or not isinstance(n_bins, int | np.integer) or n_bins < 2:
        raise ParameterError(f"n_bins is {n_bins!r}; needed a whole number >= 2. Type n_bins=4.")
    if within not in WITHIN:
        raise ParameterError(f"within is {within!r}; needed one of {', '.join(WITHIN)}.")
    if isinstance(rare, bool) or not isinstance(rare, int | float) or not 0 <= rare < 1:
        raise ParameterError(f"rare is {rare!r}; needed a share from 0 to below 1. Type rare=0.01.")


def known(given: Iterable[str] | None, names: Sequence[str], what: str) -> list[str]:
    """The names given, all of them columns; None gives none."""
    given = () if given is None else given
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError(f"{what} is {given!r}; needed a list of columns. Type {what}=[{given!r}].")
    told = [str(name) for name in given]
    columns = {*names}
    unknown = [name for name in told if name not in columns]
    if unknown:
        raise ParameterError(f"{what} has {listed(unknown)}, which the table lacks; it has {listed(names)}.")
    return told


def checked_groups(
    groups: Mapping[str, Sequence[str]] | Sequence[Sequence[str]], names: Sequence[str], fixed: Sequence[str]
) -> dict[str, list[str]]:
    """Group name to columns; every column in one group at most, and not fixed."""
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise ParameterError(f"groups is {groups!r}; needed e.g. groups={{'place': ['latitude', 'longitude']}}.")
    if not isinstance(groups, Mapping):
        loose = [group for group in groups if isinstance(group, str) or not isinstance(group, Iterable)]
        if loose:
            raise ParameterError(f"groups has {loose[0]!r}; needed lists of columns. Type groups=[['a', 'b']].")
        groups = {", ".join(map(str, group)): group for group in groups}
    found = {str(name): known(members, names, f"groups[{name!r}]") for name, members in groups.items()}
    seen: set[str] = set(fixed)
    for name, members in found.items():
        twice = [member for member in members if member in seen]
        if twice or len(set(members)) < len(members) or not members:
            raise ParameterError(f"Group {name!r} is {members}; needed columns, each fixed or in one group only.")
        seen |= set(members)
        if name in names and name not in members:
            raise ParameterError(f"Group {name!r} is called like a column that is not in it. Call it otherwise.")
    return found


def cut_points(cuts: Sequence[Any], column: Column, name: str) -> np.ndarray:
    """Cut points as numbers; dates count microseconds."""
    what = "dates, like ['2018-03-04']" if column.kind == DATE else "finite numbers, like [30, 40]"
    try:
        listed_cuts = [] if isinstance(cuts, str) else list(cuts)
        points = np.array([_ticks(cut) if column.kind == DATE else float(cut) for cut in listed_cuts])
    except (TypeError, ValueError, OverflowError) as error:
        raise ParameterError(f"cuts[{name!r}] is {cuts!r}; needed {what} ({error}).") from None
    if not len(points) or not np.isfinite(points).all():
        raise ParameterError(f"cuts[{name!r}] is {cuts!r}; needed {what}.")
    return points


def _ticks(cut: Any) -> float:
    """A date in microseconds; without time zone, as UTC."""
    found = read_date(cut)
    if found is None:
        raise ValueError(f"{cut!r} is no date")
    return float(found[0].astype("M8[us]").astype(np.int64))


def level_text(key: Any, kind: str) -> str:
    """The text of a level, of what the user calls it by: 1, 1.0 and "1" alike."""
    own = kind_of(key)
    if own not in (NUMBER, BOOLEAN, CATEGORY):
        raise ParameterError(
            f"categorical names {key!r}; needed a value of the column: a number, text or boolean."
        )
    return level_of(key, own if CATEGORY in (own, kind) else kind)


def check_called(name: str, called: Mapping[str, str], column: Column, categories: Iterable[str]) -> None:
    """Refuse levels that would be told alike, and names of which none is a level's; some may be of later rows."""
    present = set(column.values[~column.missing].tolist())
    if column.kind == NUMBER and any(EXACT <= abs(value) < math.inf for value in present):
        raise ParameterError(
            f"categorical has {name!r}, which holds whole numbers beyond 2^53: as floats, several would be one "
            "category. Make them texts in the table."
        )
    levels = {*categories, *(level_of(value, column.kind) for value in present)}
    if called and levels.isdisjoint(called):
        raise ParameterError(
            f"categorical[{name!r}] names {listed(called)}; none is a level there: {listed(sorted(levels))}."
        )
    told = Counter(called.get(level, level) for level in levels | called.keys())
    twice = [text for text, count in told.items() if count > 1]
    if twice:
        raise ParameterError(f"categorical[{name!r}] calls two levels {twice[0]!r}; needed a name for each.")


def check_unfixed(cuts: Iterable[str], fixed: Sequence[str]) -> None:
    """Refuse cuts of columns of which nothing is said."""
    both = [name for name in cuts if name in fixed]
    if both:
        raise ParameterError(f"cuts has {listed(both)}, held fixed: leave them out of cuts or of fixed.")
