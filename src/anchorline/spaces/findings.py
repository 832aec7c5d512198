"""A look at a training table before anything is explained: traps that would make explanations misleading.

Every check reads at most 5,000 rows, which are a random sample, except that indicators and identifiers are sought
in all rows.
"""

import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from anchorline.errors import ParameterError, listed
from anchorline.spaces.base import Finding
from anchorline.spaces.columns import BOOLEAN, CATEGORY, DATE, NUMBER, Column, level_of
from anchorline.spaces.groups import Attribute, find_indicators
from anchorline.spaces.realistic import Grades
from anchorline.spaces.rows import Schema

_MIN_ROWS = 50  # with fewer rows, patterns may be chance
_MAX_ROWS = 5000
_STRONG = 0.9  # rank correlation, or Cramer's V, of strongly dependent columns
_PAIR_ROWS = 2000
_MAX_PAIRED = 60  # columns whose pairs are counted; rank correlations are computed for all numbers
_MAX_LEVELS = 50  # of a column of numbers; those with more are divided by ranks
_ID_NAME = re.compile(r"(^|[_\W])(?i:id|uuid|guid|key|index|rowid|nr|no)$|^(?i:unnamed: 0)$|[a-z]I[dD]$")
_NUMBER_TEXT = re.compile(r"^\s*[$€£]?\s*[-+]?(\d{1,3}(,\d{3})+|\d+)?([.]\d+)?\s*[%$€£]?\s*$")
_DATE_TEXT = re.compile(r"^\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d.*)?\s*$")
_MARKERS = frozenset({"", "?", "-", ".", "na", "n/a", "#n/a", "nan", "null", "nil", "missing"})
_SENTINELS = (-999.0, -9999.0, -99999.0, 999.0, 9999.0, 99999.0, 999999.0)


def check_table(
    schema: Schema, attributes: Sequence[Attribute], *, are_realistic: bool, target: Any = None
) -> tuple[Finding, ...]:
    """Return what was found in the columns of these attributes; ``target`` (n,) is in the order of the user."""
    labels = None if target is None else np.asarray(target)
    if labels is not None:
        if labels.shape != (schema.n_rows,):
            raise ParameterError(
                f"target has shape {labels.shape}; it must have one value for each of the {schema.n_rows} rows. "
                "Type, say, table.check(target=frame['approved'])."
            )
        labels = labels[np.argsort(schema.positions)][:_MAX_ROWS]  # in the order of the table's rows
    if schema.n_rows < _MIN_ROWS:
        return ()
    every = {name: schema.columns[j] for a in attributes for name, j in zip(a.names, a.positions, strict=True)}
    few = {name: c.taken(np.arange(min(schema.n_rows, _MAX_ROWS))) for name, c in every.items()}
    single = [attribute.name for attribute in attributes if len(attribute.positions) == 1]
    groups = find_indicators(single, [every[name] for name in single])
    ids = tuple(name for name, column in every.items() if _is_id(name, column))
    findings = [*_check_indicators(groups), *_check_columns(few, ids)]
    if not are_realistic:
        seen = {*ids, *itertools.chain(*groups.values())}
        findings += _check_dependence({name: few[name] for name in single if name not in seen})
    if labels is not None:
        findings += _check_target(few, labels)
    return tuple(findings)


def _check_indicators(groups: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    if not groups:
        return
    if len(groups) > 1:
        several = ", ".join(f"{name!r} ({len(members)} columns)" for name, members in groups.items())
        subject = f"At most one indicator is 1 in every row of each of {several}, so that each seems to be one "
        text = f"{subject}attribute, but neighbors change the columns one by one. Type groups='auto'."
    else:
        [(name, members)] = groups.items()
        text = (
            f"At most one of {listed(members)} is 1 in every row, so that they seem to be one attribute, but "
            f"neighbors change them one by one. Type groups='auto', or groups={{{name!r}: {list(members)!r}}}."
        )
    yield Finding("indicators", text, tuple(itertools.chain(*groups.values())))


def _check_columns(columns: Mapping[str, Column], ids: tuple[str, ...]) -> Iterator[Finding]:
    """Find columns that hold one value, identify rows, or lost their type in a text file."""
    constant = tuple(name for name, column in columns.items() if _is_constant(column))
    if constant:
        text = f"{listed(constant)} has the same value in every row, so that it can never be a reason."
        yield Finding("constant-column", text, constant)
    if ids:
        yield Finding(
            "id",
            f"{listed(ids)} seems to identify rows: every row has a value of its own. If so, it says nothing "
            "about other rows and should not be a reason. Leave it out of the table, or type "
            f"fixed={list(ids)!r}.",
            ids,
        )
    for name, column in columns.items():
        if name not in constant and name not in ids:
            yield from _check_type(name, column)


def _is_constant(column: Column) -> bool:
    present = column.values[~column.missing]
    return not len(present) or (len(present) == len(column.values) and len(set(present.tolist())) == 1)


def _is_id(name: str, column: Column) -> bool:
    """Return whether all values differ, and are texts, or whole numbers without gaps or with the name of an id."""
    if column.kind not in (NUMBER, CATEGORY) or column.missing.any():
        return False
    values = column.values
    if column.kind == NUMBER:  # the cheap tests first, and few values before all
        if not np.isfinite(values).all() or (values != np.floor(values)).any():
            return False
        has_no_gaps = bool(values.max() - values.min() == len(values) - 1)
        return (has_no_gaps or _ID_NAME.search(name) is not None) and all(
            len(np.unique(part)) == len(part) for part in (values[:1000], values)
        )
    if any(len(set(part.tolist())) < len(part) for part in (values[:1000], values)):  # first a cheap look
        return False
    return max(_share_matching(pattern, values.tolist()) for pattern in (_NUMBER_TEXT, _DATE_TEXT)) < 0.5


def _check_type(name: str, column: Column) -> Iterator[Finding]:
    """Find texts that are numbers or dates, and values that stand for missing ones."""
    if column.kind == NUMBER and (sentinel := _sentinel(column)) is not None:
        yield _missing_marker(name, f"{sentinel:g}")
    if column.kind != CATEGORY:
        return
    levels = sorted(set(column.values[~column.missing].tolist()))
    markers = [text for text in levels if text.strip().lower() in _MARKERS]
    rest = [text for text in levels if text not in markers]
    if len(rest) >= 10 and _share_matching(_DATE_TEXT, rest) > 0.95:
        yield Finding(
            "lost-type",
            f"{name!r} holds dates as texts, such as {rest[0]!r}, so that every day is a category. Convert "
            f"them, e.g. frame[{name!r}] = pandas.to_datetime(frame[{name!r}]).",
            (name,),
        )
    elif len(rest) >= 10 and _share_matching(_NUMBER_TEXT, rest) > 0.8:
        others = [text for text in levels if not _NUMBER_TEXT.match(text) or text in markers]
        shown = f"; {listed(others)} may have caused it" if others else ""
        yield Finding(
            "lost-type",
            f"{name!r} holds numbers as texts, such as {rest[0]!r}, so that every number is a "
            f"category{shown}. Convert them, e.g. frame[{name!r}] = pandas.to_numeric(frame[{name!r}], "
            "errors='coerce').",
            (name,),
        )
    elif markers:
        yield _missing_marker(name, ", ".join(map(repr, markers)))


def _missing_marker(name: str, shown: str) -> Finding:
    text = f"{name!r} seems to mark missing values by {shown}, which is read as a value. Replace it, e.g. by"
    return Finding("lost-missing", f"{text} frame[{name!r}].replace([{shown}], None).", (name,))


def _sentinel(column: Column) -> float | None:
    """Return a number such as -999 that several rows have, far outside all other numbers."""
    values = np.sort(column.values[np.isfinite(column.values) & ~column.missing])
    for sentinel in _SENTINELS:
        others = values[values != sentinel]
        if len(values) - len(others) < max(3, 0.002 * len(values)) or len(others) < _MIN_ROWS:
            continue
        low, high = others[0], others[-1]
        spread = max(high - low, 1.0)
        if sentinel < low - spread or sentinel > high + spread:
            return sentinel
    return None


def _share_matching(pattern: re.Pattern[str], texts: Sequence[str]) -> float:
    return sum(1 for text in texts if text.strip() and pattern.match(text)) / max(1, len(texts))


def _check_dependence(columns: Mapping[str, Column]) -> Iterator[Finding]:
    """Find pairs of columns of which one nearly determines the other."""
    strong = sorted(_dependent_pairs(columns), key=lambda pair: -pair[2])
    if strong:
        shown = "; ".join(f"{first!r} and {second!r} ({strength:.2f})" for first, second, strength in strong[:5])
        more = f" and {len(strong) - 5} more pairs" if len(strong) > 5 else ""
        yield Finding(
            "dependent-columns",
            f"Some columns depend strongly on each other: {shown}{more}. In altered copies, each changes by "
            "itself, so that many copies may be unlike any real case. Type Table(..., neighbors='realistic'), or "
            "group columns that belong together.",
            tuple(dict.fromkeys(name for first, second, _ in strong for name in (first, second))),
        )


def _dependent_pairs(columns: Mapping[str, Column]) -> Iterator[tuple[str, str, float]]:
    """Yield pairs of names with the strength of their dependence, if it is strong."""
    few = {name: Column(c.kind, c.values[:_PAIR_ROWS], c.missing[:_PAIR_ROWS]) for name, c in columns.items()}
    few = {name: column for name, column in few.items() if not _is_constant(column)}
    ordered = [name for name, column in few.items() if column.kind in (NUMBER, DATE)]
    if len(ordered) > 1:
        grades = np.array([_centered_ranks(few[name]) for name in ordered])
        correlations = np.abs(grades @ grades.T)
        for i, j in np.argwhere(np.triu(correlations, 1) >= _STRONG).tolist():
            yield ordered[i], ordered[j], float(correlations[i, j])
    parts = {name: _parts(column) for name, column in few.items()}
    counted = [name for name, own in parts.items() if own.max() < len(own) / 5][:_MAX_PAIRED]
    both = {*ordered}
    for first, second in itertools.combinations(counted, 2):
        if not {first, second} <= both and (strength := _cramer(parts[first], parts[second])) >= _STRONG:
            yield first, second, strength


def _centered_ranks(column: Column) -> np.ndarray:
    """Return ranks with mean 0 and norm 1; missing values have the mean rank."""
    grades = Grades(column).of(column).astype(np.float64)
    grades -= grades[~column.missing].mean()
    grades[column.missing] = 0.0
    return np.asarray(grades / max(float(np.linalg.norm(grades)), 1e-300))


def _parts(column: Column) -> np.ndarray:
    """Return the number (n,) of the part in which each row lies: its level, or one of 32 ranges of ranks."""
    if column.kind in (CATEGORY, BOOLEAN) or len(np.unique(column.values)) <= _MAX_LEVELS:
        pairs = zip(column.values, column.missing, strict=True)
        levels = ["\0" if gone else level_of(value, column.kind) for value, gone in pairs]
        return np.unique(levels, return_inverse=True)[1]
    return np.unique(Grades(column).of(column) // 32, return_inverse=True)[1]


def _cramer(first: np.ndarray, second: np.ndarray) -> float:
    """Return Cramer's V of two columns of parts: 1 if one determines the other, and 0 if they are independent."""
    shape = int(first.max()) + 1, int(second.max()) + 1
    if min(shape) < 2:
        return 0.0
    counts = np.bincount(first * shape[1] + second, minlength=shape[0] * shape[1]).reshape(shape)
    expected = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / len(first)
    chi2 = float(((counts - expected) ** 2 / expected).sum())
    return float(np.sqrt(chi2 / (len(first) * (min(shape) - 1))))


def _check_target(columns: Mapping[str, Column], target: np.ndarray) -> Iterator[Finding]:
    """Find columns that equal the target, or predict it almost without error."""
    texts = np.array([str(value) for value in target.tolist()])
    is_number = target.dtype.kind in "fiu" and len(set(texts)) > 20
    copies, leaks = [], []
    for name, column in columns.items():
        strength = _rank_strength(column, target) if is_number else _purity(column, texts)
        if strength == 1.0:
            copies.append(name)
        elif strength >= (0.999 if is_number else 0.99):
            leaks.append(name)
    advice = "Leave it out of the table, and out of what the model is fitted on."
    if copies:
        yield Finding("target-copy", f"{listed(copies)} determines the target exactly. {advice}", tuple(copies))
    if leaks:
        text = f"{listed(leaks)} predicts the target almost without error, and may be known only after it."
        yield Finding("target-leak", f"{text} {advice}", tuple(leaks))


def _rank_strength(column: Column, target: np.ndarray) -> float:
    if column.kind not in (NUMBER, DATE) or _is_constant(column):
        return 0.0
    values = target.astype(np.float64)
    if np.array_equal(column.values, values):
        return 1.0
    other = _centered_ranks(Column(NUMBER, values, np.isnan(values)))
    return min(abs(float(_centered_ranks(column) @ other)), 0.9999)


def _purity(column: Column, labels: np.ndarray) -> float:
    """Return the share of the rows whose label is the most frequent one of their part; 0 if that says little."""
    parts, n = _parts(column).tolist(), len(labels)
    most = Counter[int]()
    for (part, _), count in Counter(zip(parts, labels.tolist(), strict=True)).items():
        most[part] = max(most[part], count)
    base = max(Counter(labels.tolist()).values()) / n
    purity = sum(most.values()) / n
    return purity if len(most) <= n / 5 and 1 - purity <= 0.1 * (1 - base) < 0.1 else 0.0
