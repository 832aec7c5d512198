"""Generated frames of mixed types, with odd names and indexes, in four libraries."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from hypothesis import strategies as st

LIBRARIES = ("pandas", "polars", "arrow", "numpy")
HOSTILE_NAMES = (
    *("age", "capital-gain", "é 年 🙂", "a <= b", "x = y", "new\nline", " ", "[b]", "1 < 2 and 3", "is missing"),
    *("{0}", "%s", "'", '"', "NaN", "x0", "0", "a" * 300),
)


def _whole(rng, n):
    return rng.integers(-50, 1000, n)


def _ties(rng, n):
    return np.where(rng.random(n) < 0.7, 0, rng.integers(0, 5, n))


def _reals(rng, n):
    return rng.normal(size=n) * 10.0 ** rng.integers(-8, 9)


def _holed(rng, n):
    return np.where(rng.random(n) < 0.3, np.nan, np.round(rng.normal(size=n), 1))


def _close(rng, n):
    """Return numbers that differ only after the sixth digit."""
    return 0.1234567 + rng.integers(0, 3, n) * 1e-9


def _texts(rng, n):
    return pd.Series(rng.choice(["Private", "", "'quoted'", "a = b", "née", "3", "nan", "None"], n), dtype="str")


def _rare_texts(rng, n):
    return pd.Series(np.where(rng.random(n) < 0.8, "often", [f"id {i % 37}" for i in range(n)]), dtype="str")


def _holed_texts(rng, n):
    return pd.Series(np.where(rng.random(n) < 0.3, None, rng.choice(["u", "v", "w"], n)), dtype="str")


def _objects(rng, n):
    return pd.Series(np.where(rng.random(n) < 0.3, None, rng.choice(["u", "v", "w"], n)), dtype=object)


def _odd_objects(rng, n):
    return pd.Series([[1, "a", 2.5, True, None, "é"][i] for i in rng.integers(0, 6, n)], dtype=object)


def _ordered(rng, n):
    categories = ["low", "middle", "high", "never used"]
    return pd.Series(pd.Categorical(rng.choice(categories[:3], n), categories=categories, ordered=True))


def _unordered(rng, n):
    values = np.where(rng.random(n) < 0.2, None, rng.choice(["red", "blue"], n))
    return pd.Series(pd.Categorical(values, categories=["unused", "red", "blue"]))


def _dates(rng, n):
    return pd.Series(pd.Timestamp("2018-03-04") + pd.to_timedelta(rng.integers(0, 900, n), unit="D"))


def _moments(rng, n):
    moments = pd.Timestamp("1999-12-31 23:59:58") + pd.to_timedelta(rng.integers(0, 10**6, n), unit="s")
    return pd.Series(moments).where(pd.Series(rng.random(n) < 0.8))


KINDS = {
    "whole": _whole,
    "ties": _ties,
    "reals": _reals,
    "holed": _holed,
    "close": _close,
    "single": lambda rng, n: rng.normal(size=n).astype(np.float32),
    "small": lambda rng, n: rng.integers(-128, 128, n).astype(np.int8),
    "large": lambda rng, n: rng.integers(-(2**53), 2**53, n),
    "texts": _texts,
    "rare texts": _rare_texts,
    "holed texts": _holed_texts,
    "objects": _objects,
    "odd objects": _odd_objects,
    "whole objects": lambda rng, n: pd.Series(rng.integers(0, 9, n).tolist(), dtype=object),
    "ordered": _ordered,
    "unordered": _unordered,
    "booleans": lambda rng, n: rng.random(n) < 0.4,
    "Int64": lambda rng, n: pd.array(np.where(rng.random(n) < 0.3, None, rng.integers(0, 9, n)), dtype="Int64"),
    "boolean": lambda rng, n: pd.array(np.where(rng.random(n) < 0.3, None, rng.random(n) < 0.5), dtype="boolean"),
    "dates": _dates,
    "moments": _moments,
    "zoned": lambda rng, n: _dates(rng, n).dt.tz_localize("Europe/Paris"),
    "missing": lambda rng, n: np.full(n, np.nan),
    "constant": lambda rng, n: np.full(n, 7),
    "infinite": lambda rng, n: np.where(rng.random(n) < 0.2, np.inf, rng.integers(0, 9, n)),
}
NUMERIC = ("whole", "ties", "reals", "holed", "close", "large", "missing", "constant", "infinite")


@dataclass(frozen=True)
class Sheet:
    """A generated table: ``frame`` in the type of its library, and the names of its columns as texts."""

    library: str
    frame: object
    names: tuple[str, ...]
    n_rows: int


@st.composite
def sheets(draw, library, max_rows=60, max_columns=4, plain_names=False, portable=False):
    """Draw a frame of mixed types in one library, with odd names, an odd index, and few or many rows."""
    n = draw(st.one_of(st.integers(1, 4), st.integers(5, max_rows)))
    kinds = sorted(NUMERIC if library == "numpy" and draw(st.booleans()) else KINDS)
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=max_columns))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    names = [f"column {j}" for j in range(len(chosen))]
    if not plain_names:
        names = draw(st.permutations(HOSTILE_NAMES))[: len(chosen)]
    if portable or library in ("polars", "arrow"):  # their columns cannot mix types
        chosen = [kind.replace("odd ", "") for kind in chosen]
    columns = {name: KINDS[kind](rng, n) for name, kind in zip(names, chosen, strict=True)}
    frame = pd.DataFrame(columns)
    if library == "pandas":
        frame.index = _index(draw(st.sampled_from(["range", "texts", "repeated", "two levels"])), n)
        if not plain_names and draw(st.booleans()):
            frame.columns = names = list(range(len(chosen)))
    return Sheet(library, in_library(frame, library), tuple(map(str, names)), n)


def _index(kind, n):
    if kind == "texts":
        return pd.Index([f"row {n - i}" for i in range(n)], name="odd")
    if kind == "repeated":
        return pd.Index([7] * n)
    return pd.MultiIndex.from_product([[1], range(n)]) if kind == "two levels" else pd.RangeIndex(n)


def in_library(frame, library):
    """Return a pandas frame in another library; an array has floats if all are numbers, otherwise objects."""
    if library == "pandas":
        return frame
    if library == "polars":
        return pl.from_pandas(frame)
    if library == "arrow":
        return pa.Table.from_pandas(frame, preserve_index=False)
    if all(isinstance(dtype, np.dtype) and dtype.kind in "if" for dtype in frame.dtypes):
        return frame.to_numpy(dtype=np.float64)
    array = np.empty(frame.shape, dtype=object)
    for j in range(frame.shape[1]):
        column = frame.iloc[:, j]
        array[:, j] = column.astype(str) if column.dtype.kind == "M" else column.tolist()
    return array


def cells(table, j):
    """Return the values of column j as Python objects."""
    if isinstance(table, pd.DataFrame):
        return table.iloc[:, j].tolist()
    if isinstance(table, pl.DataFrame):
        return table.to_series(j).to_list()
    return table.column(j).to_pylist() if isinstance(table, pa.Table) else table[:, j].tolist()


def identity(cell):
    """Return a key that is equal for values of the same type with the same digits."""
    return type(cell).__name__, repr(cell)


def assert_same_types(table, realized):
    """Assert that a frame has the training table's types, labels, order and categories, and an index from 0."""
    assert type(realized) is type(table)
    if isinstance(table, pd.DataFrame):
        assert realized.columns.equals(table.columns)
        assert list(realized.dtypes) == list(table.dtypes)
        for dtype, expected in zip(realized.dtypes, table.dtypes, strict=True):
            if isinstance(dtype, pd.CategoricalDtype):  # == ignores the order of unordered categories
                assert list(dtype.categories) == list(expected.categories)
                assert dtype.ordered == expected.ordered
        assert list(realized.index) == list(range(len(realized)))
    elif isinstance(table, np.ndarray):
        assert realized.dtype == table.dtype
        assert realized.shape[1:] == table.shape[1:]
    else:
        assert realized.schema == table.schema
