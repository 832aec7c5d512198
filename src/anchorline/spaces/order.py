"""The canonical order of training rows, so that nothing depends on the order in which they were given.

Rows are sorted by a 64-bit hash of their readings, because sorting by one number takes a fraction of the time that
sorting by all columns takes. Rows with equal hashes are sorted by all that distinguishes them: readings, and
values with equal readings that a model may distinguish, such as None and NaN, or 1 and True. So tables of the same
rows are sorted to the same table, whichever library holds them.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from anchorline.spaces.columns import CATEGORY, DATE, EXACT, NUMBER, Column
from anchorline.spaces.natives import Natives
from anchorline.spaces.rows import ColumnType
from anchorline.spaces.values import identity_for_model, to_python

_MISSING = np.float64(np.nan).view(np.uint64)  # one key for all missing values, whatever their bits
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # odd, so that multiplication loses nothing


def canonical_order(columns: Sequence[Column], natives: Natives, types: Sequence[ColumnType]) -> np.ndarray:
    """Return the order (n,) in which rows are sorted by their values; rows that remain in any order are equal."""
    hashes = np.zeros(len(columns[0].values), dtype=np.uint64)
    for column in columns:
        hashes ^= _keys(column)
        hashes *= _MULTIPLIER
        hashes ^= hashes >> np.uint64(32)
    order = np.argsort(hashes)
    ordered = hashes[order]
    alike = np.flatnonzero(ordered[1:] == ordered[:-1])
    if not len(alike):
        return order
    first, second = order[alike], order[alike + 1]
    # Neighbors in the order suffice: where no two of them differ, no two rows with the same hash differ.
    minor = [key for key in _distinctions(columns, natives, types) if (key[first] != key[second]).any()]
    return np.lexsort([*minor, hashes]) if minor else order


def _keys(column: Column) -> np.ndarray:
    """Return a number per reading, (n,): equal readings, and only these, have equal numbers."""
    if column.ranks is not None:
        keys = column.ranks.places.astype(np.uint64)
    elif column.kind == CATEGORY:
        texts = column.values.tolist()
        ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
        keys = np.fromiter(map(ranks.__getitem__, texts), dtype=np.uint64, count=len(texts))
    else:
        keys = np.ascontiguousarray(column.values).view(np.uint64)
    return np.where(column.missing, _MISSING, keys) if column.missing.any() else keys


def _distinctions(
    columns: Sequence[Column], natives: Natives, types: Sequence[ColumnType]
) -> Iterator[np.ndarray]:
    """Yield numbers per row (n,) that differ for any two rows that a model may distinguish."""
    for j, (column, column_type) in enumerate(zip(columns, types, strict=True)):
        yield _keys(column)
        native = natives.pick(j, np.arange(0))
        if isinstance(native, np.ndarray) and not native.dtype.hasobject:
            if native.dtype.kind in "iuM":  # as floats, several large ones would be equal
                yield natives.pick(j, np.arange(len(column.values))).view(f"u{native.dtype.itemsize}")
            continue
        several_missing = column_type.ambiguous or column.kind == NUMBER  # null and NaN
        if several_missing and column.missing.any():
            yield _spread(_identities(natives.pick(j, np.flatnonzero(column.missing))), column.missing)
        present = natives.pick(j, np.flatnonzero(~column.missing))
        if column.kind == DATE and "ns" in str(getattr(native, "type", None) or native.dtype):
            moments = nw.from_native(natives.readable(present), series_only=True).dt.timestamp("ns")
            yield _spread(moments.to_numpy().astype(np.int64).view(np.uint64), ~column.missing)
        large = column_type.whole and bool((np.abs(column.values[~column.missing]) >= EXACT).any())
        if column_type.ambiguous or column_type.decimal or large:
            yield _spread(_identities(present), ~column.missing)


def _identities(native: Any) -> np.ndarray:
    """Return the ranks (n,) of the identities of a native column's values."""
    identities = [identity_for_model(to_python(value)) for value in native]
    texts = [(kind.__module__, kind.__qualname__, text) for kind, text in identities]
    ranks = {text: rank for rank, text in enumerate(sorted(set(texts)))}
    return np.array([ranks[text] for text in texts], dtype=np.uint64)


def _spread(keys: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return the keys at their rows, and 0 elsewhere."""
    spread = np.zeros(len(rows), dtype=np.uint64)
    spread[rows] = keys
    return spread
