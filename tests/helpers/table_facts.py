"""Facts about table rows, evaluated on single values as a reader would: a referee that shares no code."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from anchorline.facts import Fact


def is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN or one of pandas' own missing values."""
    return value is None or value is pd.NaT or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def is_true(fact: Fact, value: Any, labels: dict[Any, str] | None = None) -> bool:
    """Return whether a statement is true of a value of its column."""
    if is_missing(value) or fact.kind == "missing":
        return is_missing(value) and fact.kind == "missing"
    if isinstance(value, (pd.Timestamp, np.datetime64)):
        read = _moment
    elif isinstance(value, str):
        read = str
    else:
        read = float
    if fact.kind == "equals":
        return labels[value] == fact.value if labels else read(value) == read(fact.value)
    above = fact.low is None or read(value) >= read(fact.low)
    return above and (fact.high is None or read(value) < read(fact.high))


def true_of(fact: Fact, frame: pd.DataFrame, labels: dict[Any, str] | None = None) -> np.ndarray:
    """Return of which rows of a frame a fact is true."""
    return np.array([is_true(fact, value, labels) for value in frame[fact.column]], dtype=bool)


def all_true(facts: Sequence[Fact], frame: pd.DataFrame) -> np.ndarray:
    """Return of which rows of a frame all facts are true."""
    return np.logical_and.reduce([true_of(fact, frame) for fact in facts], axis=0)


def facts_of(neighborhood: Any) -> list[Fact]:
    """Return all candidates of a row as statements."""
    return [neighborhood.fact(j) for j in range(neighborhood.candidates.n_facts)]


def number_of(neighborhood: Any, column: str, **parts: Any) -> int:
    """Return the number of the candidate about a column with these parts, such as ``kind`` or ``low``."""
    found = [
        j
        for j, fact in enumerate(facts_of(neighborhood))
        if fact.column == column and all(getattr(fact, name) == part for name, part in parts.items())
    ]
    assert len(found) == 1, found
    return found[0]


def keys_of(frame: pd.DataFrame, columns: Sequence[str]) -> list[str]:
    """Return a text per row that differs where the values of some columns do; missing values are all alike."""
    each = [["-" if is_missing(v) else str(v) for v in frame[name].tolist()] for name in columns]
    return ["; ".join(row) for row in zip(*each, strict=True)]


def _moment(value: Any) -> pd.Timestamp:
    moment = pd.Timestamp(value)
    return moment if moment.tzinfo is None else moment.tz_convert("UTC").tz_localize(None)
