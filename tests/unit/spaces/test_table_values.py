"""Values of a row reach the model unchanged, in the type that the training table has."""

import decimal
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import anchorline as al
from anchorline.errors import InstanceError

LOOK_ALIKES = {
    "holes of an object": pd.DataFrame({"x": pd.Series(["a", math.nan, None, math.nan, "b"], dtype=object)}),
    "objects": pd.DataFrame({"x": pd.Series([1, "1", 1.0, np.float64(2), 2], dtype=object)}),
    "numbers": pd.DataFrame({"x": pd.Series([1, 1.0, 2.0, 2, 3], dtype=object)}),
    "categories": pd.DataFrame({"x": pd.Categorical(["1", 1, "a", "b", 1])}),
    "floats of Polars": pl.DataFrame({"x": [1.0, math.nan, None, 2.0, None]}),
    "floats of Arrow": pa.table({"x": [1.0, math.nan, None, 2.0, None]}),
}


@pytest.mark.parametrize("kind", LOOK_ALIKES)
def test_values_with_the_same_reading_are_distinguished_in_rows(kind, natively):
    """A row given by its values equals the row given by its position, even where values have the same reading."""
    frame = LOOK_ALIKES[kind]
    table, values = al.Table(frame), natively(frame)
    for i, value in enumerate(values):
        for row in (table.at(i), table.at({"x": value}), table.at([value])):
            (received,) = natively(row.original)
            assert (type(received), repr(received)) == (type(value), repr(value))


def test_decimals_of_arrow_are_rows_by_their_values():
    prices = [decimal.Decimal(cents) / 100 for cents in (125, 250, 375, 780)]
    frame = pa.table({"price": pa.array(prices, pa.decimal128(10, 2))})
    table = al.Table(frame)
    for row in ({"price": 7.8}, {"price": prices[3]}, frame.slice(3, 1), [7.8]):
        assert table.at(row).original == table.at(3).original
    with pytest.raises(InstanceError, match=r"Column 'price' is 7\.123"):
        table.at({"price": 7.123})


@pytest.mark.parametrize("library", ["arrow", "polars"])
def test_decimals_keep_all_their_digits(library, natively):
    long = [decimal.Decimal("12345678901234567890.12"), decimal.Decimal("1.50"), decimal.Decimal("2.25")]
    frame = pa.table({"x": pa.array(long, pa.decimal128(38, 2))})
    table = al.Table(frame if library == "arrow" else pl.from_arrow(frame))
    assert natively(table.at({"x": long[0]}).original) == [long[0]]
    assert natively(table.at({"x": 3}).original) == [decimal.Decimal("3.00")]


@pytest.mark.parametrize("hole", [[], [None]])
def test_whole_numbers_of_arrow_that_no_float_holds(hole):
    numbers = [2**60 + 1, 2**60 + 3, 5, 6, *hole]
    table = al.Table(pa.table({"x": numbers, "y": list(range(len(numbers)))}))
    assert [table.at(i).instance[0] for i in range(len(numbers))] == numbers
    assert table.at({"x": 2**60 + 3, "y": 0}).instance == [2**60 + 3, 0]


def test_texts_of_numpy_with_references():
    table = al.Table(np.array([["a"], ["b"]], dtype=np.dtypes.StringDType()))
    assert table.at(0).original.tolist() == [["a"]]
    assert table.at(0).realize(np.ones((1, 1), bool), None).tolist() == [["b"]]


@pytest.mark.parametrize("dtype", ["string", "string[pyarrow]", "str", object])
def test_texts_with_holes_are_found_by_their_text(dtype):
    frame = pd.DataFrame({"a": pd.Series(["x", None, "y", "x"], dtype=dtype), "b": [1, 2, 3, 4]})
    table = al.Table(frame)
    assert [literal.text for literal in table.at({"a": "x", "b": 1}).literals] == ["a = x", "b = 1"]
    assert table.at({"a": None, "b": 2}).literals[0].text == "a is missing"


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (np.array(["2020-01-01", "2021-01-01"], dtype="M8[ns]"), "3020-05-05"),
        (np.array(["2020-01-01", "2021-01-01"], dtype="M8[s]"), "2020-05-05 12:00:00.500000"),
        (np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]"), "2020-05-05 12:00"),
        (np.array([1, 2], dtype=np.float32), 1e40),
        (np.array([1, 2], dtype=np.float16), 70_000.0),
    ],
)
def test_values_that_the_type_cannot_hold_are_refused(column, value):
    with pytest.raises(InstanceError, match="cannot hold it"):
        al.Table(column[:, None]).at([value])
    if column.dtype.kind == "f":
        with pytest.raises(InstanceError, match="cannot hold it"):
            al.Table(pd.DataFrame({"a": column})).at({"a": value})
        assert al.Table(column[:, None]).at([np.inf]).literals


def test_infinity_goes_through_json():
    frame = pd.DataFrame({"x": [1.0, 2, np.inf, -np.inf, 3, 4, 5, 6], "y": range(8)})
    table = al.Table(frame)

    def model(rows):
        return np.clip(rows["x"], -9, 9) / 9

    for row, text in ((2, "Infinity"), (3, "-Infinity")):
        explanation = al.Explainer(model, table, output_range=(-1, 1)).explain(row, k=2, n_samples=200)
        assert explanation.instance[0] == text
        assert al.verify(explanation.to_json(), model, table).holds
