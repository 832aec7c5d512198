"""A table copies its data: later changes by the user or by a model do not reach it, or the user's frame."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import anchorline as al


@pytest.mark.parametrize("library", ["pandas", "numpy"])
def test_later_changes_of_the_frame_do_not_reach_the_table(library):
    frame = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) % 3})
    frame = frame if library == "pandas" else frame.to_numpy(copy=True)
    table, other = al.Table(frame), al.Table(frame.copy())
    if library == "pandas":
        frame.loc[:, "a"] = -1.0
        frame.iloc[3, 1] = 99.0
    else:
        frame[:] = -1.0
    assert table.fingerprint == other.fingerprint
    flips = np.ones((30, 2), bool)
    one, two = (t.at(5).realize(flips, np.random.default_rng(1)) for t in (table, other))
    np.testing.assert_array_equal(one, two)


def test_the_frame_and_the_row_are_left_alone(people):
    frame, copy = people.copy(), people.copy()
    frame.index = copy.index = pd.Index([3] * len(frame))
    row = frame.iloc[4]
    before = row.copy()
    neighborhood = al.Table(frame).at(row)
    neighbors, original = (
        neighborhood.realize(np.ones((9, 4), bool), np.random.default_rng(0)),
        neighborhood.original,
    )
    neighbors.loc[:, "age"] = 0
    original.loc[:, "age"] = 0
    pd.testing.assert_frame_equal(frame, copy)
    pd.testing.assert_series_equal(row, before)
    assert neighborhood.original.iloc[0].tolist() == before.tolist()


MADE_OF_ARRAYS = {
    "pandas": pd.DataFrame,
    "pandas, Arrow's types": lambda arrays: pd.DataFrame(
        {name: pd.arrays.ArrowExtensionArray(pa.array(values)) for name, values in arrays.items()}
    ),
    "polars": pl.DataFrame,
    "polars from pandas": lambda arrays: pl.from_pandas(pd.DataFrame(arrays, copy=False)),
    "arrow": pa.table,
}


@pytest.mark.parametrize("kind", MADE_OF_ARRAYS)
def test_memory_that_a_table_was_made_of_may_change(kind):
    arrays = dict(zip("ab", np.random.default_rng(0).normal(size=(2, 300)).copy(), strict=True))
    table = al.Table(MADE_OF_ARRAYS[kind](arrays))
    before = [table.at(i).instance for i in range(300)]
    for values in arrays.values():
        values *= 0
    assert [table.at(i).instance for i in range(300)] == before
    assert table.fingerprint == al.Table(pd.DataFrame(before, columns=list("ab"))).fingerprint


def test_a_spoiled_input_leaves_the_table_as_it_was():
    frame = pd.DataFrame(np.arange(12.0).reshape(6, 2), columns=["a", "b"])
    table = al.Table(frame)
    there = table.at(0)
    for spoiled in (there.original, there.realize(np.ones((4, 2), bool), np.random.default_rng(0))):
        spoiled.iloc[:] = -1.0
        spoiled.columns.name = "spoiled"
    assert there.original.to_numpy().tolist() == [[0.0, 1.0]]
    assert there.original.columns.name is None
    assert min(batch.to_numpy().min() for batch in table.examples()) == 0.0
