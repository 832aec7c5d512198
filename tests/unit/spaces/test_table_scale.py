"""Large tables: work and memory per row do not grow with the table. Operations are counted, not timed."""

import difflib
import pickle
import tracemalloc
from dataclasses import replace

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import anchorline as al
from anchorline.errors import InstanceError
from anchorline.spaces import values
from anchorline.spaces.attributes import Attribute, build_attribute
from anchorline.spaces.columns import CATEGORY, Column
from anchorline.spaces.encoding import build_levels

N_ROWS = 3000


def counted(monkeypatch, owner, name):
    """Record the calls of a function in a list."""
    calls, function = [], getattr(owner, name)

    def count(*args, **kwargs):
        calls.append(name)
        return function(*args, **kwargs)

    monkeypatch.setattr(owner, name, count)
    return calls


def with_holes(n_columns=3):
    numbers = np.random.default_rng(0).normal(size=(N_ROWS, n_columns))
    numbers[::20] = np.nan
    return pd.DataFrame(numbers, columns=[f"c{j}" for j in range(n_columns)])


def test_none_where_holes_are_nan_looks_at_one_row_a_column(monkeypatch):
    table = al.Table(with_holes())
    calls = counted(monkeypatch, values, "identity_for_model")
    for _ in range(2):
        assert table.at(dict.fromkeys(table.names)).instance == [None] * 3
    assert len(calls) <= 2 * 2 * 3
    assert [len(lookup._first_rows) for lookup in table.schema._lookups.values()] == [1] * 3


def test_of_objects_only_the_holes_are_looked_at_once_and_few_are_kept(monkeypatch):
    column = pd.Series([f"level {i % 7}" for i in range(N_ROWS)], dtype=object)
    column[::30] = np.nan
    column[5] = None
    table = al.Table(pd.DataFrame({"x": column}))
    calls = counted(monkeypatch, values, "identity_for_model")
    for _ in range(3):
        assert table.at({"x": None}).original["x"].tolist() == [None]
    assert len(calls) <= N_ROWS // 30 + 1 + 3 * 2
    lookup = table.schema._lookups[0]
    assert len(lookup._first_rows) == 8
    assert lookup._first_rows[None] == table.schema.positions[5]
    assert len(lookup._other_missing) == 1
    assert pickle.loads(pickle.dumps(table)).schema._lookups == {}


class Uncompared(np.ndarray):
    """Values that can be read, but not compared."""

    __hash__ = None

    def __eq__(self, other):
        raise AssertionError("the whole training column is compared")


LEVELS = [f"level {i % 5}" for i in range(50)]
TEXTS = {
    "pandas": pd.DataFrame({"x": LEVELS}),
    "objects": pd.DataFrame({"x": pd.Series([*LEVELS, 1.5], dtype=object)}),
    "numbers": pd.DataFrame({"x": pd.Series([1, 2.5, None, 7] * 9, dtype=object)}),
    "categories": pd.DataFrame({"x": pd.Categorical(LEVELS)}),
    "polars": pl.DataFrame({"x": LEVELS}),
    "arrow": pa.table({"x": LEVELS}),
}


@pytest.mark.parametrize("kind", TEXTS)
def test_a_row_is_not_compared_with_every_training_row(kind):
    schema = al.Table(TEXTS[kind]).schema
    (column,) = schema.columns
    watched = replace(schema, columns=(Column(column.kind, column.values.view(Uncompared), column.missing),))
    for row in (7, 3):
        value = column.values[row]
        (read,) = watched.read([value])[1]
        assert read.values.tolist() == [value]


def test_many_categories_and_names_are_not_searched_for_a_near_one(monkeypatch):
    few, many = ([f"merchant {i}" for i in range(n)] for n in (20, 1001))
    calls = counted(monkeypatch, difflib, "get_close_matches")
    for names, hint, n_calls in ((few, "Did you mean", 1), (many, r"Choose from .*\(1001\)", 0)):
        calls.clear()
        table = al.Table(pd.DataFrame({"m": pd.Categorical(names[:9], categories=names)}))
        with pytest.raises(InstanceError, match=hint):
            table.at(["merchant x"])
        assert len(calls) == n_calls
    with pytest.raises(InstanceError, match="The row lacks 'm'"):
        table.at(dict.fromkeys(many, 0))
    assert not calls


class Counted(dict):
    """A mapping that cannot be iterated over."""

    def values(self):
        raise AssertionError("all levels are visited")

    __iter__ = items = keys = values


def test_a_missing_cell_does_not_go_through_all_levels():
    texts = np.array([f"level {i % 900}" for i in range(N_ROWS)], dtype=object)
    column = Column(CATEGORY, texts, np.arange(N_ROWS) % 3 == 0)
    levels = build_levels("x", column, 0.0, {})
    codes = replace(levels, codes_of=Counted(levels.codes_of)).codes(column)
    assert (codes[::3] == len(levels.codes_of)).all()
    assert codes[1::3].max() < len(levels.codes_of)


@pytest.mark.parametrize("rare", [0.0, 0.2])
def test_missing_values_come_after_all_levels(rare):
    column = Column(CATEGORY, np.array(list("aaaaaabbbcde"), dtype=object), np.arange(12) == 0)
    levels = build_levels("x", column, rare, {})
    assert levels.codes(column)[0] == levels.missing == max(levels.codes_of.values()) + 1


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
def test_wide_frames_are_read_in_one_pass(monkeypatch, make):
    def refuse(*args):
        raise AssertionError("a column is accessed by its position")

    frame = make({f"c{j}": [1.5 * j, 2.0, 3.0] for j in range(30)})
    monkeypatch.setattr(nw.DataFrame, "__getitem__", refuse)
    table = al.Table(frame)
    assert table.at(frame[:1]).instance == table.at(0).instance


def test_arrow_does_not_list_all_types_for_each_column():
    natives = al.Table(pa.table({"a": [1.0, 1.0], "b": [3, 3]})).schema.natives
    alone = replace(natives, schema=None)
    assert alone._concat(1, alone.from_value(1, 7), alone.pick(1, np.array([0]))).to_pylist() == [7, 3]


def test_a_table_is_kept_three_times_and_made_with_little_more():
    """The table is stored as it came, as it is read, and in the order from which values are drawn."""
    numbers = np.random.default_rng(0).normal(size=(20_000, 25))
    frame = pd.DataFrame(numbers, columns=[f"c{j}" for j in range(25)])
    al.Table(frame[:10])  # imports
    tracemalloc.start()
    table = al.Table(frame)
    kept, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 3.5 * numbers.nbytes
    assert peak < 4.5 * numbers.nbytes
    assert len(pickle.dumps(table)) < 3.3 * numbers.nbytes
    assert len(pickle.dumps(table._attributes)) < 50_000


def test_wide_groups_are_put_together_once(monkeypatch):
    on = np.random.default_rng(0).integers(0, 40, N_ROWS)
    columns = [
        Column(CATEGORY, np.where(on == j, "1", "0").astype(object), np.zeros(N_ROWS, bool)) for j in range(40)
    ]
    encodings = [build_levels(f"o{j}", column, 0.0, {}) for j, column in enumerate(columns)]
    calls = counted(monkeypatch, np, "column_stack")
    attribute, order = build_attribute("o", range(40), encodings, columns)
    assert len(calls) <= 1
    assert len(attribute.combinations) == 40
    assert list(attribute.combinations) == sorted(attribute.combinations)
    for j in range(40):
        codes = tuple(
            int(encoding.codes(column)[on.tolist().index(j)])
            for encoding, column in zip(encodings, columns, strict=True)
        )
        start, stop = attribute.block(codes)
        assert order[start:stop].tolist() == np.flatnonzero(on == j).tolist()


def test_where_no_rows_are_alike_combinations_are_not_listed():
    assert not Attribute("x", (0,), (), Counted({(0,): 0, (1,): 1}), (0, 1, 2)).breaks_one_way((0,))


def test_whole_numbers_beyond_floats_are_one_level_as_numbers_and_as_floats():
    ids = [10**16, 2 * 10**16] * 2
    table = al.Table(pd.DataFrame({"s": pd.Categorical(ids), "x": range(4)}))
    assert table.at({"s": 1e16, "x": 1}).literals[0].text == "s = 10000000000000000"
