"""Which training tables and options a table accepts, which it refuses, and what enters its fingerprint."""

import datetime as dt
import pathlib

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import anchorline as al
from anchorline.errors import ParameterError


def test_a_masked_array_without_a_mask_is_an_array():
    assert al.Table(np.ma.array([[1.0], [2.0]])).at(0).original.tolist() == [[1.0]]


def test_equal_options_have_equal_fingerprints(people):
    def fingerprint(**options):
        return al.Table(people, **options).fingerprint

    assert fingerprint(n_bins=np.int64(5)) == fingerprint(n_bins=5)
    assert fingerprint(cuts={"age": np.array([30, 40.0])}) == fingerprint(cuts={"age": [30, 40]})
    assert fingerprint(cuts={"date": [dt.date(2018, 3, 4)]}) == fingerprint(cuts={"date": ["2018-03-04"]})
    assert fingerprint(groups=[("age", "date")]) == fingerprint(groups={"age, date": ["age", "date"]})
    assert fingerprint(categorical={"age": {np.int64(20): "x"}}) == fingerprint(categorical={"age": {20: "x"}})


def test_other_options_have_other_fingerprints(people):
    many, other = np.arange(3000.0), np.arange(3000.0)
    other[1500] += 0.25  # in the middle, where an abbreviated text would hide the change
    options = [
        {},
        {"n_bins": 5},
        {"cuts": {"age": many}},
        {"cuts": {"age": other}},
        {"fixed": ["age"]},
        {"within": "redraw"},
        {"rare": 0.5},
        {"categorical": ["age"]},
        {"groups": [["age", "date"]]},
        {"groups": {"g": ["age", "date"]}},
    ]
    tables = [al.Table(people, **chosen) for chosen in options]
    tables += [al.Table(people.rename(columns={"age": "years"})), al.Table(people.astype({"age": "str"}))]
    assert len({table.fingerprint for table in tables}) == len(tables)


MIXED = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]})


class Foreign:
    """A frame of an unknown library that can be converted to an array."""

    columns = ("a",)

    def __array__(self, dtype=None, copy=None):
        return np.eye(2)


BAD_TABLES = {
    "lazy": (lambda: pl.DataFrame({"a": [1]}).lazy(), r"LazyFrame.*`X.collect\(\)`"),
    "large and sparse": (
        lambda: scipy.sparse.csr_array((100_000, 1_000)),
        r"csr_array of 100,000 x 1,000 = 100,000,000 cells.*at most 50,000,000.*`X.toarray\(\)`",
    ),
    "none": (lambda: None, "NoneType.*must be a 2-D array"),
    "one axis": (lambda: [1, 2, 3], r"shape \(3,\).*must be a 2-D array"),
    "ragged": (lambda: [[1, 2], [3]], "must be a 2-D array"),
    "a series": (lambda: pd.Series([1, 2]), r"Series of 2 values; it must be a frame.*`al.Table\(frame\)`"),
    "a Polars series": (lambda: pl.Series([1, 2]), r"Series of 2 values.*`al.Table\(series.to_frame\(\)\)`"),
    "a file name": (
        lambda: "a.csv",
        r"path 'a.csv'; it must be a pandas.*`frame = anchorline.io.read_table\('a.csv'",
    ),
    "a path": (
        lambda: pathlib.Path("b.csv"),
        r"path 'b.csv'; it must be a pandas.*`frame = anchorline.io.read_table",
    ),
    "no rows": (lambda: pd.DataFrame({"a": []}), r"shape \(0, 1\); it must have at least one row and one column"),
    "no columns": (lambda: pd.DataFrame(index=[1]), r"shape \(1, 0\); it must have at least one row"),
    "twice": (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), "Column names must differ.*'a'.*Rename one"),
    "twice in Arrow": (lambda: pa.table([[1], [2]], names=["a", "a"]), "Column names must differ.*Rename one"),
    "twice as texts": (lambda: pd.DataFrame([[1, 2]], columns=[1, "1"]), "Column names must differ"),
    "lists": (lambda: pd.DataFrame({"a": [[1], [2]]}), r"Column 'a' holds 'list'; it must hold numbers"),
    "structs": (lambda: pl.DataFrame({"a": [{"b": 1}]}), "Column 'a' holds 'dict'"),
    "durations": (
        lambda: pd.DataFrame({"a": pd.to_timedelta([1, 2])}),
        r"'Timedelta'.*`frame\['a'\].astype\(str\)`",
    ),
    "times": (lambda: pl.DataFrame({"a": [dt.time(1)]}), "Column 'a' holds 'time'"),
    "bytes": (lambda: pd.DataFrame({"a": [b"x"]}), "Column 'a' holds 'bytes'"),
    "complex": (lambda: np.array([[1j]]), "Column 'x0' holds 'complex'"),
    "loose dates": (lambda: pd.DataFrame({"a": [dt.date(2020, 1, 1)]}, dtype=object), r"`pandas.to_datetime\("),
    "beyond floats": (lambda: pd.DataFrame({"a": [10**400, 1]}, dtype=object), "'a' holds a number beyond 1e308"),
    "a mask": (lambda: np.ma.masked_values([[1.0], [-999.0]], -999.0), r"masked array.*`X.astype\(float\)"),
    "views of texts": (lambda: pa.table({"a": pa.array(["x"], pa.string_view())}), "'a' has.*string_view.*Cast"),
    "a hole among categories": (
        lambda: pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", None]))}),
        "'a' has Arrow's type dictionary.*Cast",
    ),
    "booleans of eight bits": (
        lambda: pa.table({"a": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([None, 1, 0], pa.int8()))}),
        r"'a' has Arrow's type extension<arrow.bool8>.*`table\['a'\].cast\(pyarrow.bool_\(\)\)`",
    ),
    "an unknown frame": (Foreign, r"X is a .*Foreign; it must be a pandas, Polars or Arrow frame"),
    "lists of Polars": (lambda: pl.DataFrame({"a": [[1]]}), r"`polars.Series\('a', \[str\("),
    "dates of Polars": (
        lambda: pl.DataFrame({"a": pl.Series([dt.date(2020, 1, 1)], dtype=pl.Object)}),
        r"`polars.Series\('a', frame\['a'\].to_list\(\)\)`",
    ),
    "lists of Arrow": (lambda: pa.table({"a": [[1]]}), r"`pyarrow.array\(\[str\("),
    "dates of Arrow": (
        lambda: pa.table({"a": pa.array([dt.date(2020, 1, 1)], pa.date64())}),
        r"`table\['a'\].cast\(pyarrow.date32\(\)\)`",
    ),
    "durations of NumPy": (lambda: np.ones((2, 2), "m8[h]"), r"`X\[:, 0\].astype\(str\)`"),
    "mixed zones": (
        lambda: pd.DataFrame(
            {"a": [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, tzinfo=dt.UTC)]}, dtype=object
        ),
        r"`pandas.to_datetime\(frame\['a'\], utc=True\)`",
    ),
    "large whole numbers as categories": (
        lambda: pd.DataFrame({"a": [2**60, 2**60 + 1]}),
        "whole numbers beyond 2.53: as floats, several would be one category",
    ),
}


@pytest.mark.parametrize("kind", BAD_TABLES)
def test_a_bad_table_is_named(kind):
    make, message = BAD_TABLES[kind]
    with pytest.raises(ParameterError, match=message):
        al.Table(make(), categorical=["a"] if kind == "large whole numbers as categories" else ())


class Subclass(pd.DataFrame):
    """A subclass of the pandas frame in another module, as in geopandas."""

    __module__ = "elsewhere"

    @property
    def _constructor(self):
        return Subclass


@pytest.mark.parametrize(
    "frame",
    [
        Subclass(MIXED),
        pa.RecordBatch.from_pandas(MIXED, preserve_index=False),
        pa.Table.from_pandas(MIXED).to_pandas(types_mapper=pd.ArrowDtype),
        pa.table({"a": [1, 2, 3], "b": pa.array(["x", "y", None]).dictionary_encode()}).to_pandas(
            types_mapper=pd.ArrowDtype
        ),
    ],
    ids=["a subclass", "a record batch", "Arrow in pandas", "Arrow's categories in pandas"],
)
def test_frames_in_disguise_keep_names_and_rows(frame, texts, natively):
    table = al.Table(frame, literals="intervals")
    assert table.names == ("a", "b")
    assert texts(table, {"a": 2, "b": "x"}) == ["a = 2", "b = x"]
    assert table.at(frame[1:2]).instance == table.at(1).instance == [2, "y"]
    neighbors = table.at(0).realize(np.ones((20, 2), bool), np.random.default_rng(0))
    assert {value for value in natively(neighbors, "b") if not pd.isna(value)} == {"y"}


def test_frames_of_dask_are_refused_by_name():
    frame = pytest.importorskip("dask.dataframe").from_pandas(MIXED, npartitions=1)
    with pytest.raises(ParameterError, match=r"X is a dask\..*DataFrame; it must be.*`X.compute\(\)`"):
        al.Table(frame)


BAD_OPTIONS = [
    ({"n_bins": 1}, "n_bins is 1; it must be a whole number >= 2"),
    ({"n_bins": True}, "n_bins is True"),
    ({"within": "kept"}, "within is 'kept'; it must be one of keep, redraw"),
    ({"rare": 1}, "rare is 1; it must be a share"),
    ({"fixed": "age"}, r"Type fixed=\['age'\]"),
    ({"fixed": ["agee"]}, "fixed has 'agee', which the table lacks. Choose from its columns: 'age'"),
    ({"fixed": 3}, r"fixed is 3; it must be a list of columns"),
    ({"cuts": ["age"]}, r"cuts is \['age'\]; it must be a mapping"),
    ({"cuts": {"agee": [1]}}, "cuts has 'agee', which the table lacks"),
    ({"cuts": {"age": []}}, r"cuts\['age'\] is \[\]; it must list finite numbers"),
    ({"cuts": {"age": 30}}, r"cuts\['age'\] is 30; it must list finite numbers, like \[30, 40\]"),
    ({"cuts": {"age": ["x"]}}, r"must list finite numbers.*could not convert"),
    ({"cuts": {"age": [np.inf]}}, "must list finite numbers"),
    ({"cuts": {"date": ["NaT"]}}, r"must list dates, like \['2018-03-04'\]"),
    ({"cuts": {"date": [pd.NaT]}}, "must list dates"),
    ({"cuts": {"date": "2018-03-04"}}, "must list dates, like"),
    ({"cuts": {"date": []}}, "must list dates, like"),
    (
        {"cuts": {"workclass": [1]}},
        "'workclass', which holds categories; it must name columns of numbers or dates",
    ),
    ({"categorical": ["date"]}, "categorical includes 'date', which holds dates"),
    ({"categorical": {"age": {(1, 2): "x"}}}, r"categorical names \(1, 2\)"),
    ({"categorical": {"age": "x"}}, r"categorical\['age'\] is 'x'; it must be a mapping"),
    ({"groups": "age"}, "groups is 'age'; it must be a mapping or a list of lists. Type, say, groups="),
    ({"groups": ["age"]}, "groups has 'age'; every group must be a list of columns"),
    ({"groups": [["age", "agee"]]}, "'agee', which the table lacks"),
    ({"groups": {"g": []}}, "Group 'g'"),
    ({"groups": {"g": None}}, "Group 'g'"),
    ({"groups": {"g": ["age"], "h": ["age"]}}, "in one group only and not in fixed"),
    ({"groups": {"g": ["age"]}, "fixed": ["age"]}, "in one group only and not in fixed"),
    ({"groups": {"age": ["date"]}}, "has the same name as a column outside it. Rename the group"),
    ({"names": ["a"]}, "a frame has its own names"),
    ({"names": 5}, r"names is 5; it must be a list of column names. Type names="),
    ({"names": "ab"}, "names is 'ab'; it must be a list"),
    ({"groups": 5}, "groups is 5; it must be a mapping or a list of lists. Type, say, groups="),
    ({"cuts": {"age": [30]}, "fixed": ["age"]}, "cuts has 'age', also listed in fixed. Remove the columns from"),
    (
        {"categorical": {"age": {7: "x"}}},
        r"categorical\['age'\] names '7', but none of these is a level.*levels: '20'",
    ),
    (
        {"categorical": {"workclass": {"private": "x"}}},
        "none of these is a level.*levels: 'Private', 'State-gov'",
    ),
    ({"categorical": {"age": {20: "x", 21: "x"}}}, r"categorical\['age'\] calls two levels 'x'"),
    ({"categorical": {"workclass": {"Private": "State-gov"}}}, "calls two levels 'State-gov'"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_a_bad_option_is_named(options, message, people):
    with pytest.raises(ParameterError, match=message):
        al.Table(people, **options)


def test_names_of_arrays():
    assert al.Table(np.eye(3)).names == ("x0", "x1", "x2")
    with pytest.raises(ParameterError, match="names has 2 entries, but the array has 3 columns"):
        al.Table(np.eye(3), names=["a", "b"])
    with pytest.raises(ParameterError, match="Column names must differ"):
        al.Table(np.eye(2), names=["a", "a"])


def test_lists_of_rows_are_tables(texts):
    table = al.Table([[25, "red"], [30, "blue"], [31, "red"]], names=["age", "color"])
    assert texts(table, {"age": 25, "color": "blue"}) == ["age = 25", "color = blue"]
