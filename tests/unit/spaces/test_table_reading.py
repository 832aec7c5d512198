"""Rows in every accepted form are read; all others are refused with a message about what to type."""

import datetime as dt
import decimal
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

from anchorline.errors import InstanceError
from anchorline.facts import Fact
from anchorline.spaces.table import Table
from helpers.table_facts import facts_of

FRAME = pd.DataFrame(
    {
        "age": [25, 38, 47, 52, 61, 30, 44],
        "weight": [50.5, 60.0, 70.0, np.nan, 80.0, 90.0, 65.0],
        "work": ["a", "b", "a", "c", "b", "a", "a"],
        "plan": pd.Categorical(list("xyxyxyx"), categories=["x", "y", "unused"]),
        "member": [True, False] * 3 + [True],
        "since": pd.date_range("2018-03-04", periods=7),
        "at": pd.date_range("2018-03-04", periods=7, tz="Europe/Paris")[[3, 0, 5, 1, 6, 2, 4]],
    }
)
ROW = {
    "age": 41,
    "weight": 70.0,
    "work": "a",
    "plan": "x",
    "member": True,
    "since": "2018-03-04",
    "at": "2018-03-04 12:00",
}
TABLES = {
    "pandas": Table(FRAME),
    "polars": Table(pl.from_pandas(FRAME)),
    "arrow": Table(pa.Table.from_pandas(FRAME, preserve_index=False)),
}


@pytest.fixture(params=TABLES)
def table(request):
    return TABLES[request.param]


def instance(table, **changes):
    return table.at(ROW | changes).instance


def test_a_row_in_plain_values(table):
    assert instance(table) == [
        *(41, 70, "a", "x", True),
        *("2018-03-04T00:00:00.000000", "2018-03-04T12:00:00.000000"),
    ]


@pytest.mark.parametrize("value", [41, 41.0, np.int8(41), np.float32(41), decimal.Decimal(41), pd.array([41])[0]])
def test_numbers_of_any_type(table, value):
    assert instance(table, age=value)[0] == 41


@pytest.mark.parametrize(
    "value", [None, np.nan, pd.NA, pd.NaT, float("nan"), np.float32("nan"), decimal.Decimal("NaN")]
)
@pytest.mark.parametrize("name", ["weight", "work", "plan", "since", "at"])
def test_holes_of_any_type(table, name, value):
    neighborhood = table.at(ROW | {name: value})
    assert Fact(name, name, "missing") in facts_of(neighborhood)
    assert neighborhood.instance[list(ROW).index(name)] is None


def test_holes_where_the_type_has_none():
    for name in ("age", "member"):
        with pytest.raises(
            InstanceError, match=rf"'{name}' is missing in the row.*has no missing values.*Pass a value"
        ):
            TABLES["pandas"].at(ROW | {name: None})
        for library in ("polars", "arrow"):
            assert instance(TABLES[library], **{name: None})[list(ROW).index(name)] is None
    with pytest.raises(InstanceError, match="'x0' is missing in the row"):
        Table(np.eye(3) > 0).at([None, True, False])
    nullable = Table(FRAME[["age"]].astype("Int64")).at({"age": None})
    assert facts_of(nullable) == [Fact("age", "age", "missing")]


@pytest.mark.parametrize("value", [True, 1, 1.0, np.True_])
def test_booleans(table, value):
    assert instance(table, member=value)[4] is True


@pytest.mark.parametrize(
    "value",
    [
        *("2018-03-05", "2018-03-05T00:00:00", dt.date(2018, 3, 5), dt.datetime(2018, 3, 5)),
        *(pd.Timestamp("2018-03-05"), np.datetime64("2018-03-05"), np.datetime64("2018-03-05T00:00:00", "ns")),
    ],
)
def test_dates(table, value):
    assert instance(table, since=value)[5] == "2018-03-05T00:00:00.000000"


@pytest.mark.parametrize(
    "value",
    [
        *("2018-03-05 11:00", "2018-03-05T12:00+01:00", pd.Timestamp("2018-03-05 12:00", tz="Europe/Paris")),
        *(dt.datetime(2018, 3, 5, 11, tzinfo=dt.UTC), np.datetime64("2018-03-05T11:00")),
    ],
)
def test_moments(table, value):
    assert instance(table, at=value)[6] == "2018-03-05T11:00:00.000000"


def test_days_have_no_times():
    table = Table(pl.DataFrame({"day": [dt.date(2018, 3, i) for i in range(1, 20)]}))
    assert table.at(["2018-03-04"]).instance == table.at([pd.Timestamp("2018-03-04")]).instance
    with pytest.raises(InstanceError, match="has a time of day; this column holds days"):
        table.at(["2018-03-04 05:00"])


def test_categories(table):
    assert instance(table, work="never seen")[2] == "never seen"
    original = table.at(ROW | {"work": "never seen"}).original
    assert type(original) is type(table.at(0).original)
    with pytest.raises(InstanceError, match=r"Column 'plan': 'xx' is not a category .*Did you mean 'x'\?"):
        table.at(ROW | {"plan": "xx"})
    with pytest.raises(InstanceError, match="Choose from 'x', 'y'"):
        table.at(ROW | {"plan": "something else"})


def test_categories_of_no_training_row():
    for frame in (FRAME, pl.from_pandas(FRAME).with_columns(pl.col("plan").cast(pl.Enum(["x", "y", "unused"])))):
        neighborhood = Table(frame).at(ROW | {"plan": "unused"})
        assert Fact("plan", "plan", "equals", value="unused") in facts_of(neighborhood)
        assert list(neighborhood.original["plan"]) == ["unused"]


def test_categories_that_are_numbers():
    frame = pd.DataFrame({"code": pd.Categorical([1, 2, 2, 1], categories=[1, 2, 3])})
    table = Table(frame)
    for value in (3, 3.0, "3"):
        original = table.at({"code": value}).original
        assert original["code"].tolist() == [3]
        assert original["code"].dtype == frame["code"].dtype


BAD_VALUES = [
    ("age", "old", "Column 'age': 'old' is not a number; this column holds numbers. Pass one without quotes"),
    ("age", "41", "'41' is not a number"),
    ("age", 41.5, "41.5 is not a whole number"),
    ("age", np.inf, "inf is not a whole number"),
    ("age", [41], r"\[41\] is not a number"),
    ("age", np.array([1, 2]), "is not a number"),
    ("age", 2**70, "Column 'age' is 1180591620717411303424; it must hold numbers"),
    ("weight", 10**400, "Column 'weight' is 1000.*must hold numbers"),
    ("weight", dt.date(2018, 3, 4), "is not a number"),
    ("member", "yes", "'yes' is neither true nor false"),
    ("member", 2, "2 is neither true nor false"),
    ("since", "tomorrow", "'tomorrow' is not a date. Type, say, '2018-03-04'"),
    ("since", 5, "5 is not a date"),
    ("since", dt.timedelta(1), "is not a date"),
    (
        "since",
        dt.datetime(2018, 3, 4, tzinfo=dt.UTC),
        "has a time zone; in the training table this column has none",
    ),
    ("work", ["x"], r"Column 'work': \['x'\] is a list; it must be a text"),
    ("work", {"x": 1}, "is a dict; it must be a text"),
    ("work", dt.timedelta(1), "is a timedelta; it must be a text"),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD_VALUES)
def test_a_bad_value_is_named(table, name, value, message):
    with pytest.raises(InstanceError, match=message):
        table.at(ROW | {name: value})


def without(name):
    return {key: value for key, value in ROW.items() if key != name}


BAD_ROWS = [
    (without("work"), r"The row lacks 'work'; it has .*with None for missing values"),
    (without("work") | {"wrok": "a"}, "Should 'wrok' be 'work'"),
    (FRAME[:2], r"The frame has 2 rows; it must have one.*`explainer.explain_many\(frame\)`"),
    (FRAME[:0], "The frame has 0 rows; it must have one"),
    ([1, 2], "The row has 2 values; it must have 7, in this order: 'age', 'weight'"),
    ([list(ROW.values())], "The row is a list of rows; it must be one row"),
    (np.zeros((2, 7)), r"The row has shape \(2, 7\); it must be one row.*`explainer.explain_many\(rows\)`"),
    ([[0] * 7, [1] * 7], r"The row is a list of rows; it must be one row.*`explainer.explain_many\(rows\)`"),
    (scipy.sparse.csr_array((2, 7)), r"The row has shape \(2, 7\); it must be one row.*`explainer.explain_many"),
    (np.array(3.0), r"The row has shape \(\); it must be one row"),
    ("row", "The row is a str; it must be a dict, a Series"),
    (None, "The row is a NoneType"),
    (1.0, "The row is a float"),
    (True, "The row is a bool"),
    (7, "Row 7 does not exist; the table has rows 0 to 6"),
    (-8, "Row -8 does not exist"),
    (pd.Series([1, 2], index=["age", "age"]), "The row has 'age' more than once; every column must occur once"),
    ({1: 1, "1": 2}, "The row has '1' more than once"),
]


@pytest.mark.parametrize(("row", "message"), BAD_ROWS)
def test_a_bad_row_is_named(table, row, message):
    with pytest.raises(InstanceError, match=message):
        table.at(row)


def test_values_are_never_lost_in_silence():
    table = Table(pl.DataFrame({"a": [1, 2], "nothing": [None, None]}))
    with pytest.raises(InstanceError, match=r"'nothing' is 'x'.*the column's type is Null"):
        table.at({"a": 1, "nothing": "x"})
    assert table.at({"a": 1, "nothing": None}).instance == [1, None]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8])
def test_numbers_beyond_the_type_are_named(dtype):
    frame = pd.DataFrame({"n": np.arange(6).astype(dtype)})
    for one in (frame, pl.from_pandas(frame), frame.to_numpy()):
        with pytest.raises(InstanceError, match="is 1000; it must hold numbers"):
            Table(one).at([1000])


def test_integers_beyond_floats_are_kept():
    frame = pd.DataFrame({"n": [2**60 + 1, 5, 6, 7]})
    for row in (0, {"n": 2**60 + 1}, frame.iloc[[0]]):
        neighborhood = Table(frame).at(row)
        assert neighborhood.instance == [2**60 + 1]
        assert neighborhood.original["n"].tolist() == [2**60 + 1]


def test_whole_numbers_as_column_labels():
    frame = pd.DataFrame({1: [1, 2, 3], 0: [4.0, 5.0, 6.0]})
    table = Table(frame)
    for row in (1, frame.iloc[1], frame.iloc[[1]], {0: 5, 1: 2}, {"0": 5, "1": 2}, [2, 5]):
        assert table.at(row).instance == [2, 5]
        assert table.at(row).original.columns.tolist() == [1, 0]


def test_columns_of_objects_keep_their_values():
    frame = pd.DataFrame({"n": [1, 2, None], "s": ["a", None, "b"]}, dtype=object)
    for row in (0, {"n": 1.0, "s": "a"}, [1, "a"]):
        original = Table(frame).at(row).original
        assert [type(value) for value in original.iloc[0]] == [int, str]
        assert list(original.dtypes) == [object, object]
    assert Table(frame).at({"n": None, "s": np.nan}).original.iloc[0].tolist() == [None, None]


# --- values reach the model unchanged, or are refused ----------------------------------------------------

NEW_OBJECTS = [  # values of a training column, given value, value that reaches the model
    ([1, 2, None], 7, 7),
    ([1, 2, None], decimal.Decimal("20.26"), decimal.Decimal("20.26")),
    ([1, 2, None], 2.0, 2),  # the training table's own value
    ([1, 2, None], "Infinity", np.inf),
    ([2**60, 2**60 + 1], 2**60 + 3, 2**60 + 3),
    ([1, "a", None], 7, 7),
    ([1, "a", None], False, False),
    ([1, "a", None], "7", "7"),
    ([1, "a", None], 1.0, 1),
    ([1.5, "a"], None, None),
    ([True, None], 0, False),
    (["a", "b", None], 7, "7"),  # if all training values are texts, a new value becomes a text
]


@pytest.mark.parametrize(("column", "given", "expected"), NEW_OBJECTS)
def test_what_an_object_column_has_not_seen_reaches_the_model_as_given(column, given, expected):
    frame = pd.DataFrame({"x": pd.Series(column, dtype=object), "y": 1.0})
    for table in (Table(frame), Table(frame.to_numpy())):
        (received, _) = np.asarray(table.at([given, 1.0]).original, dtype=object)[0].tolist()
        assert (type(received), received) == (type(expected), expected)


def test_a_hole_that_an_object_column_has_not_seen_reaches_the_model_as_given():
    table = Table(pd.DataFrame({"x": pd.Series([1, "a"], dtype=object)}))
    assert np.isnan(table.at([np.nan]).original["x"][0])
    assert table.at([None]).original["x"].tolist() == [None]


def test_a_hole_alone_is_read_as_its_column_is():
    table = Table(pd.DataFrame({"x": pd.Series([None, np.nan, 5, 7], dtype=object)}))
    assert facts_of(table.at([None])) == [Fact("x", "x", "missing")]


TICKS = 1_577_836_800_000_000_000 + np.arange(5) * 1_000_000_007
NANOSECONDS = {
    "pandas": pd.DataFrame({"t": TICKS.astype("M8[ns]")}),
    "pandas with a zone": pd.DataFrame({"t": pd.Series(TICKS.astype("M8[ns]")).dt.tz_localize("UTC"), "y": 1}),
    "polars": pl.DataFrame({"t": pl.Series(TICKS).cast(pl.Datetime("ns"))}),
    "polars with a zone": pl.DataFrame({"t": pl.Series(TICKS).cast(pl.Datetime("ns", "Europe/Paris"))}),
    "arrow": pa.table({"t": pa.array(TICKS).cast(pa.timestamp("ns"))}),
    "numpy": TICKS.astype("M8[ns]")[:, None],
}


def nanoseconds(table):
    if isinstance(table, np.ndarray):
        return table[:, 0].astype(np.int64).tolist()
    if isinstance(table, pa.Table):
        return table["t"].cast(pa.int64()).to_pylist()
    return (table["t"].cast(pl.Int64) if isinstance(table, pl.DataFrame) else table["t"].astype("int64")).to_list()


@pytest.mark.parametrize("kind", NANOSECONDS)
def test_nanoseconds_of_a_row_are_kept(kind):
    frame = NANOSECONDS[kind]
    table = Table(frame)
    for i in range(5):
        row = frame.slice(i, 1) if isinstance(frame, pa.Table) else frame[i : i + 1]
        assert nanoseconds(table.at(row).original) == nanoseconds(table.at(i).original) == [TICKS[i]]
    text = {"t": "2020-01-01T00:00:02.000000014", "y": 1}
    from_text = table.at(list(text.values())[: frame.shape[1]])
    assert nanoseconds(from_text.original) == [TICKS[2]]


def test_a_zone_is_not_lost_on_the_way():
    with pytest.raises(InstanceError, match="has a time zone; in the training table this column has none"):
        Table(NANOSECONDS["polars"]).at(NANOSECONDS["polars with a zone"][:1])


SECONDS = np.array(["2020-01-01", "2021-01-01"], dtype="M8[s]")
CENTS = [decimal.Decimal("1.25"), decimal.Decimal("2.50")]
ROUNDED = [
    (pl.DataFrame({"x": pl.Series(CENTS, dtype=pl.Decimal(10, 2))}), 99.135),
    (pl.DataFrame({"x": pl.Series(CENTS, dtype=pl.Decimal(10, 2))}), decimal.Decimal("99.135")),
    (pd.DataFrame({"x": pd.Series(CENTS, dtype=pd.ArrowDtype(pa.decimal128(10, 2)))}), 99.135),
    (pl.DataFrame({"x": pl.Series(SECONDS.tolist()).cast(pl.Datetime("ms"))}), "2020-01-01T00:00:00.000001"),
    (pl.DataFrame({"x": pl.Series(SECONDS.tolist()).cast(pl.Datetime("us"))}), "2020-01-01T00:00:00.000000001"),
    (pl.DataFrame({"x": pl.Series([1.0, 2.0], dtype=pl.Float32)}), 1e300),
    (pd.DataFrame({"x": SECONDS}), "2020-01-01T00:00:00.000001"),
    (pd.DataFrame({"x": pd.Series(SECONDS).dt.tz_localize("UTC")}), "2020-01-01T00:00:00.000001"),
    (pd.DataFrame({"x": pd.Series(SECONDS).dt.tz_localize("UTC"), "y": 1}), "2020-01-01T00:00:00.5"),
    (pa.table({"x": SECONDS}), "2020-01-01T00:00:00.5"),
    (pl.DataFrame({"x": pl.Series(SECONDS.tolist()).cast(pl.Datetime("ns"))}), "3000-01-01T00:00:00.000000001"),
    (pd.DataFrame({"x": pd.arrays.SparseArray([1, 0, 3])}), 2.5),
]


@pytest.mark.parametrize(("frame", "value"), ROUNDED)
def test_values_are_never_rounded_in_silence(frame, value):
    row = {"x": value, "y": 1}
    with pytest.raises(InstanceError, match="Column 'x'"):
        Table(frame).at({name: row[name] for name in Table(frame).names})


def test_floats_may_lose_digits():
    table = Table(pl.DataFrame({"x": pl.Series([1.0, 2.0], dtype=pl.Float32)}))
    assert table.at([0.1]).instance == [float(np.float32(0.1))]


def test_minus_zero_is_reported_as_such():
    assert repr(Table(np.array([[0.0], [-0.0], [3.0]])).at(1).instance) == "[-0.0]"


# --- values that look alike ------------------------------------------------------------------------------

LOOK_ALIKES = {
    "holes of an object": pd.DataFrame({"x": pd.Series(["a", math.nan, None, math.nan, "b"], dtype=object)}),
    "objects": pd.DataFrame({"x": pd.Series([1, "1", 1.0, np.float64(2), 2], dtype=object)}),
    "numbers": pd.DataFrame({"x": pd.Series([1, 1.0, 2.0, 2, 3], dtype=object)}),
    "categories": pd.DataFrame({"x": pd.Categorical(["1", 1, "a", "b", 1])}),
    "floats of Polars": pl.DataFrame({"x": [1.0, math.nan, None, 2.0, None]}),
    "floats of Arrow": pa.table({"x": [1.0, math.nan, None, 2.0, None]}),
}


def natively(frame):
    """The values of a column as the frame's own library has them."""
    return frame["x"].to_pylist() if isinstance(frame, pa.Table) else list(frame["x"])


@pytest.mark.parametrize("kind", LOOK_ALIKES)
def test_values_with_the_same_reading_are_distinguished_in_rows(kind):
    """A row given by its values equals the row given by its position, even where values have the same reading."""
    frame = LOOK_ALIKES[kind]
    table, values = Table(frame), natively(frame)
    for i, value in enumerate(values):
        for row in (table.at(i), table.at({"x": value}), table.at([value])):
            (received,) = natively(row.original)
            assert (type(received), repr(received)) == (type(value), repr(value))


def test_decimals_of_arrow_are_rows_by_their_values():
    prices = [decimal.Decimal(cents) / 100 for cents in (125, 250, 375, 780)]
    frame = pa.table({"price": pa.array(prices, pa.decimal128(10, 2))})
    table = Table(frame)
    for row in ({"price": 7.8}, {"price": prices[3]}, frame.slice(3, 1), [7.8]):
        assert table.at(row).original == table.at(3).original
    with pytest.raises(InstanceError, match=r"Column 'price' is 7\.123"):
        table.at({"price": 7.123})


@pytest.mark.parametrize("library", ["arrow", "polars"])
def test_decimals_keep_all_their_digits(library):
    long = [decimal.Decimal("12345678901234567890.12"), decimal.Decimal("1.50"), decimal.Decimal("2.25")]
    frame = pa.table({"x": pa.array(long, pa.decimal128(38, 2))})
    table = Table(frame if library == "arrow" else pl.from_arrow(frame))
    assert natively(table.at({"x": long[0]}).original) == [long[0]]
    assert natively(table.at({"x": 3}).original) == [decimal.Decimal("3.00")]


@pytest.mark.parametrize("hole", [[], [None]])
def test_whole_numbers_of_arrow_that_no_float_holds(hole):
    numbers = [2**60 + 1, 2**60 + 3, 5, 6, *hole]
    table = Table(pa.table({"x": numbers, "y": list(range(len(numbers)))}))
    assert [table.at(i).instance[0] for i in range(len(numbers))] == numbers
    assert table.at({"x": 2**60 + 3, "y": 0}).instance == [2**60 + 3, 0]


def test_texts_of_numpy_with_references():
    table = Table(np.array([["a"], ["b"]], dtype=np.dtypes.StringDType()))
    assert table.at(0).original.tolist() == [["a"]]
    assert table.at(0).realize(np.array([[0, 1, -1]])).tolist() == [["a"], ["b"], ["a"]]


@pytest.mark.parametrize("dtype", ["string", "string[pyarrow]", "str", object])
def test_texts_with_holes_are_found_by_their_text(dtype):
    frame = pd.DataFrame({"a": pd.Series(["x", None, "y", "x"], dtype=dtype), "b": [1, 2, 3, 4]})
    table = Table(frame)
    assert facts_of(table.at({"a": "x", "b": 1}))[0] == Fact("a", "a", "equals", value="x")
    assert facts_of(table.at({"a": None, "b": 2}))[0] == Fact("a", "a", "missing")


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
        Table(column[:, None]).at([value])
    if column.dtype.kind == "f":
        with pytest.raises(InstanceError, match="cannot hold it"):
            Table(pd.DataFrame({"a": column})).at({"a": value})
        assert Table(column[:, None]).at([np.inf]).candidates.n_facts


# --- values that no training row has ----------------------------------------------------------------------


NEW = pd.DataFrame(
    {
        "age": [18, 30, 79, 40],
        "vehicle": ["car", "bus", "car", "bus"],
        "bought": pd.date_range("2020-01-01", periods=4),
        "id": range(4),
    }
)


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas])
@pytest.mark.parametrize(
    ("changes", "unseen"),
    [
        ({}, {}),
        ({"age": 79}, {}),
        ({"age": 900}, {"age": "900 is above every training value (highest: 79)"}),
        ({"age": -1}, {"age": "-1 is below every training value (lowest: 18)"}),
        ({"vehicle": "spaceship"}, {"vehicle": "no training row has 'spaceship'"}),
        ({"vehicle": None}, {"vehicle": "no training row lacks a value"}),
        ({"bought": "2030-01-01"}, {"bought": "2030-01-01 is above every training value (highest: 2020-01-04)"}),
        ({"id": 900}, {}),
    ],
)
def test_a_new_value_is_named(convert, changes, unseen):
    row = {"age": 40, "vehicle": "bus", "bought": "2020-01-02", "id": 3}
    assert Table(convert(NEW), fixed=["id"]).at(row | changes).unseen == unseen
