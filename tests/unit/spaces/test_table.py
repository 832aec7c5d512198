"""Table: what literals say, what is chosen, what is refused; nothing the user owns is touched."""

import datetime as dt
import decimal
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse

import anchorline as al
from anchorline.errors import InstanceError, ParameterError


def texts(table, row):
    return [literal.text for literal in table.at(row).literals]


def held(table, row):
    return [literal.held for literal in table.at(row).literals]


FRAME = pd.DataFrame(
    {
        "age": np.r_[np.arange(20, 64), 37, 48],
        "workclass": ["Private"] * 30 + ["State-gov"] * 16,
        "capital-gain": [0] * 40 + [2174, 3000, 5178, 7688, 14084, 99999],
        "date": pd.date_range("2018-01-01", periods=46, freq="10D"),
    }
)

# --- names read well -------------------------------------------------------------------------------------


def test_names_read_well():
    table = al.Table(FRAME, cuts={"age": [37, 48], "date": ["2018-03-04", "2018-06-01"]})
    row = {"age": 41, "workclass": "Private", "capital-gain": 0, "date": "2018-04-01"}
    assert texts(table, row) == [
        "37 <= age < 48",
        "workclass = Private",
        "capital-gain = 0",
        "2018-03-04 <= date < 2018-06-01",
    ]
    assert held(table, row) == [
        "age keeps its value 41",
        "workclass = Private",
        "capital-gain = 0",
        "date keeps its value 2018-04-01",
    ]


def test_redrawn_facts_are_told_as_they_are_tested():
    table = al.Table(FRAME, cuts={"age": [37, 48]}, within="redraw")
    assert held(table, 20) == texts(table, 20)


def test_missing_values_are_told():
    table = al.Table(pd.DataFrame({"age": [1.0, np.nan, 3.0, np.nan], "name": ["a", None, "b", "a"]}))
    assert texts(table, 1) == ["age is missing", "name is missing"]
    assert texts(al.Table(pd.DataFrame({"age": [5.0, np.nan]})), {"age": 9.0}) == ["age is not missing"]


def test_times_of_day_are_told_only_where_there_are_any():
    frame = pd.DataFrame({"at": pd.date_range("2018-01-01 00:00:07", periods=50, freq="37min")})
    assert texts(al.Table(frame), 20) == ["2018-01-01 07:33:22 <= at < 2018-01-01 15:06:37"]
    frame = pd.DataFrame({"at": pd.date_range("2018-01-01", periods=48, freq="h")})
    (text,) = texts(al.Table(frame, cuts={"at": ["2018-01-01 06:00", "2018-01-02"]}), 7)
    assert text == "2018-01-01 06:00 <= at < 2018-01-02"


def test_moments_with_a_time_zone_are_told_in_utc():
    frame = pd.DataFrame({"at": pd.date_range("2018-01-01", periods=48, freq="h", tz="Europe/Paris")})
    cuts = {"at": [dt.datetime(2018, 1, 1, 12, tzinfo=dt.UTC), pd.Timestamp("2018-01-02", tz="Europe/Paris")]}
    table = al.Table(frame, cuts=cuts)
    assert texts(table, 15) == ["2018-01-01 12:00 UTC <= at < 2018-01-01 23:00 UTC"]
    assert held(table, 15) == ["at keeps its value 2018-01-01 14:00 UTC"]


@pytest.mark.parametrize(
    ("values", "row", "expected"),
    [
        ([0.1234561, 0.5, 2.0], 0, "x = 0.123456"),
        ([0.1234561, 0.1234562, 2.0], 0, "x = 0.1234561"),  # six digits would be true of both
        ([123456.7, 5e-7, 3e20], 1, "x = 5e-07"),
        ([1000000, 2500000, 7], 1, "x = 2500000"),
        ([2**53, 2**53 + 2, 5], 0, "9007199254740992 <= x < 9007199254740994"),
        ([np.inf, -np.inf, np.inf], 0, "x = inf"),
    ],
)
def test_numbers_are_told_shortly_but_never_wrongly(values, row, expected):
    (text,) = texts(al.Table(pd.DataFrame({"x": values})), row)
    if expected.startswith("9007"):
        low, high = text.split(" <= x < ")
        assert float(low) <= values[row] < float(high)
    else:
        assert text == expected


def test_edges_have_few_digits():
    rng = np.random.default_rng(0)
    (text,) = texts(al.Table(pd.DataFrame({"x": rng.normal(size=500)})), {"x": 0.1})
    low, _, high = text.split(" ")[0], *text.split(" ")[-2:]
    assert max(len(part.strip("-0.")) for part in (low, high)) <= 4


def test_cut_points_are_told_as_given():
    table = al.Table(FRAME, cuts={"age": [30.123456789, 40]})
    assert texts(table, {**FRAME.iloc[0].to_dict(), "age": 35})[0] == "30.123456789 <= age < 40"


def test_rare_values_go_together():
    table = al.Table(pd.DataFrame({"job": ["a"] * 300 + ["b"] * 300 + ["r1", "r2", "r3"]}))
    assert texts(table, {"job": "r2"}) == ["job is one of 3 rare values"]
    assert held(table, {"job": "r2"}) == ["job keeps its value r2"]
    assert texts(table, {"job": "new"}) == ["job = new"]
    assert texts(al.Table(table_of_ids()), 3) == ["id = 3"]  # all rare: each stands for itself


def table_of_ids():
    return pd.DataFrame({"id": [str(i) for i in range(300)]})


def test_numbers_as_categories_and_what_they_are_called():
    frame = pd.DataFrame({"sex": [0, 1, 1, 0], "on": [True, False, True, False], "grade": list("abab")})
    called = {"sex": {0: "female", np.int64(1): "male"}, "on": {True: "yes", 0: "no"}, "grade": {"a": "best"}}
    assert texts(al.Table(frame, categorical=called), 0) == ["sex = female", "on = yes", "grade = best"]
    assert texts(al.Table(frame, categorical=called), 1) == ["sex = male", "on = no", "grade = b"]
    assert texts(al.Table(frame, categorical=["sex"]), 1)[0] == "sex = 1"


# --- groups ----------------------------------------------------------------------------------------------


def test_one_hot_blocks_are_told_by_the_column_that_is_on():
    frame = pd.DataFrame({"red": [1, 0, 0, 1], "blue": [0, 1, 0, 0], "n": [1, 2, 3, 4]})
    table = al.Table(frame, groups={"color": ["red", "blue"]})
    assert texts(table, 0)[0] == "red = 1"
    assert texts(table, 2)[0] == "red = 0 and blue = 0"


def test_indicators_that_are_on_together_are_told_in_full():
    """Here "red = 1" alone would stay true of a row that breaks the group."""
    frame = pd.DataFrame({"red": [1, 0, 1, 1], "blue": [0, 1, 1, 0]})
    neighborhood = al.Table(frame, groups={"color": ["red", "blue"]}).at(0)
    assert neighborhood.literals[0].text == "red = 1 and blue = 0"
    drawn = neighborhood.realize(np.ones((50, 1), bool), np.random.default_rng(0))
    assert not ((drawn["red"] == 1) & (drawn["blue"] == 0)).any()


def test_groups_are_told_by_all_their_columns():
    table = al.Table(FRAME, groups={"who": ["age", "workclass"]}, cuts={"age": [37]})
    assert texts(table, 0)[0] == "age < 37 and workclass = Private"
    assert held(table, 0)[0] == "who keeps its values"


# --- what never changes ----------------------------------------------------------------------------------


def test_what_never_changes_is_told():
    frame = FRAME.assign(constant=7, empty=np.nan)
    neighborhood = al.Table(frame, fixed=["age"]).at(0)
    assert neighborhood.fixed == {
        "age": "held fixed as asked",
        "constant": "no training row breaks 'constant = 7'",
        "empty": "no training row breaks 'empty is missing'",
    }
    assert [literal.name for literal in neighborhood.literals] == ["workclass", "capital-gain", "date"]


def test_a_row_that_nothing_differs_from():
    table = al.Table(FRAME[:1])
    with pytest.raises(InstanceError, match=r"no neighbors. Give a larger training table, more bins"):
        _ = table.at(0).literals
    assert texts(table, FRAME.iloc[0].to_dict() | {"workclass": "other"}) == ["workclass = other"]


# --- all neighbors ---------------------------------------------------------------------------------------


def test_where_flips_decide_all_neighbors_are_enumerated():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((50, 3)) < 0.4, columns=list("abc")).assign(n=rng.integers(0, 2, 50))
    explainer = al.Explainer(lambda X: X["a"] * 0.5 - X["b"] * 0.25 + X["n"] * 0.1, al.Table(frame))
    explanation = explainer.explain(0, k=4)
    assert explanation.certificate.exhaustive
    assert explanation.certificate.n_samples == 16
    drawn = explainer.explain(0, k=4, sampling="draw", n_samples=20_000)
    assert drawn.contributions == pytest.approx(explanation.contributions, abs=0.02)
    assert not explainer.space.at(0).realize(np.zeros((1, 4)), None).empty


TWO_WAYS = [  # to break what is true of the value at 1, though most pairs read the same
    pd.DataFrame({"x": [1, 2, 3, 1]}),
    pd.DataFrame({"x": ["a", "b", "c", "a"]}),
    pd.DataFrame({"x": [2**60, 1, 1, 2**60 + 1]}),
    pd.DataFrame({"x": [0.0, 3.0, 3.0, -0.0]}),
    pd.DataFrame({"x": pd.Series(["1", "a", "a", 1], dtype=object)}),
    pl.DataFrame({"x": [None, 1.0, 1.0, math.nan]}),
    pa.table({"x": [None, 1.0, 1.0, math.nan]}),
    np.array([[0.0], [3.0], [-0.0]]),
    pd.DataFrame({"x": np.array([0, 10**18, 1], dtype="datetime64[ns]")}),
]


@pytest.mark.parametrize("table", TWO_WAYS)
def test_where_values_are_drawn_a_generator_is_needed(table):
    neighborhood = al.Table(table).at(1)
    assert not neighborhood.deterministic
    with pytest.raises(ParameterError, match="needs a random generator"):
        neighborhood.realize(np.ones((1, 1), bool), None)


LOOK_ALIKES = {
    "holes of an object": pd.DataFrame({"x": pd.Series(["a", math.nan, None, math.nan, "b"], dtype=object)}),
    "objects": pd.DataFrame({"x": pd.Series([1, "1", 1.0, np.float64(2), 2], dtype=object)}),
    "numbers": pd.DataFrame({"x": pd.Series([1, 1.0, 2.0, 2, 3], dtype=object)}),
    "categories": pd.DataFrame({"x": pd.Categorical(["1", 1, "a", "b", 1])}),
    "floats of Polars": pl.DataFrame({"x": [1.0, math.nan, None, 2.0, None]}),
    "floats of Arrow": pa.table({"x": [1.0, math.nan, None, 2.0, None]}),
}


@pytest.mark.parametrize("kind", LOOK_ALIKES)
def test_values_that_read_alike_are_told_apart_in_rows(kind):
    """Asked about by its values, a row has those that it has by its position: to a model they are not alike."""
    frame = LOOK_ALIKES[kind]
    table, values = al.Table(frame), natively(frame)
    for i, value in enumerate(values):
        for row in (table.at(i), table.at({"x": value}), table.at([value])):
            (seen,) = natively(row.original)
            assert (type(seen), repr(seen)) == (type(value), repr(value))


def natively(frame, name="x"):
    return frame[name].to_pylist() if isinstance(frame, pa.Table) else list(frame[name])


def test_decimals_of_arrow_are_rows_by_their_values():
    prices = [decimal.Decimal(cents) / 100 for cents in (125, 250, 375, 780)]
    frame = pa.table({"price": pa.array(prices, pa.decimal128(10, 2))})
    table = al.Table(frame)
    for row in ({"price": 7.8}, {"price": prices[3]}, frame.slice(3, 1), [7.8]):
        assert table.at(row).original == table.at(3).original
    with pytest.raises(InstanceError, match=r"Column 'price' is 7\.123"):
        table.at({"price": 7.123})


@pytest.mark.parametrize("library", ["arrow", "polars"])
def test_decimals_keep_all_their_digits(library):
    long = [decimal.Decimal("12345678901234567890.12"), decimal.Decimal("1.50"), decimal.Decimal("2.25")]
    frame = pa.table({"x": pa.array(long, pa.decimal128(38, 2))})
    table = al.Table(frame if library == "arrow" else pl.from_arrow(frame))
    assert natively(table.at({"x": long[0]}).original) == [long[0]]
    assert natively(table.at({"x": 3}).original) == [decimal.Decimal("3.00")]


def test_a_masked_array_without_a_mask_is_an_array():
    assert al.Table(np.ma.array([[1.0], [2.0]])).at(0).original.tolist() == [[1.0]]


@pytest.mark.parametrize("values", [[1.5, math.inf, math.inf, math.inf], [math.inf, 2.0, -math.inf, 1.0]])
def test_few_values_with_infinite_ones_stand_for_themselves(values):
    table = al.Table(pd.DataFrame({"x": values}))
    assert [table.at(i).literals[0].text for i in range(4)] == [f"x = {value:g}" for value in values]


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


# --- nothing the user owns is touched, nor what we own ---------------------------------------------------


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


def test_the_frame_and_the_row_are_left_alone():
    frame, copy = FRAME.copy(), FRAME.copy()
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


# --- fingerprints ----------------------------------------------------------------------------------------


def test_equal_choices_have_equal_fingerprints():
    def fingerprint(**choices):
        return al.Table(FRAME, **choices).fingerprint

    assert fingerprint(n_bins=np.int64(5)) == fingerprint(n_bins=5)
    assert fingerprint(cuts={"age": np.array([30, 40.0])}) == fingerprint(cuts={"age": [30, 40]})
    assert fingerprint(cuts={"date": [dt.date(2018, 3, 4)]}) == fingerprint(cuts={"date": ["2018-03-04"]})
    assert fingerprint(groups=[("age", "date")]) == fingerprint(groups={"age, date": ["age", "date"]})
    assert fingerprint(categorical={"age": {np.int64(20): "x"}}) == fingerprint(categorical={"age": {20: "x"}})


def test_other_choices_have_other_fingerprints():
    many, other = np.arange(3000.0), np.arange(3000.0)
    other[1500] += 0.25  # in the middle: a shortened text would hide it
    choices = [
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
    tables = [al.Table(FRAME, **choice) for choice in choices]
    tables += [al.Table(FRAME.rename(columns={"age": "years"})), al.Table(FRAME.astype({"age": "str"}))]
    assert len({table.fingerprint for table in tables}) == len(tables)


# --- what is refused, by name ----------------------------------------------------------------------------

MIXED = pd.DataFrame({"a": [1, 2, 3], "b": ["x", "y", None]})


class Foreign:
    """A frame of a library we do not know, which offers itself as an array."""

    columns = ("a",)

    def __array__(self, dtype=None, copy=None):
        return np.eye(2)


BAD_TABLES = {
    "lazy": (lambda: pl.DataFrame({"a": [1]}).lazy(), r"LazyFrame.*`X.collect\(\)`"),
    "sparse": (lambda: scipy.sparse.csr_array(np.eye(3)), r"csr_array.*`X.toarray\(\)`"),
    "none": (lambda: None, "NoneType.*needed a 2-D array"),
    "one axis": (lambda: [1, 2, 3], r"shape \(3,\).*needed a 2-D array"),
    "ragged": (lambda: [[1, 2], [3]], "needed a 2-D array"),
    "a series": (lambda: pd.Series([1, 2]), "Series.*needed a 2-D array"),
    "no rows": (lambda: pd.DataFrame({"a": []}), r"shape \(0, 1\); needed at least one row and one column"),
    "no columns": (lambda: pd.DataFrame(index=[1]), r"shape \(1, 0\); needed at least one row"),
    "twice": (lambda: pd.DataFrame([[1, 2]], columns=["a", "a"]), "Column names must differ.*'a'.*Rename one"),
    "twice in Arrow": (lambda: pa.table([[1], [2]], names=["a", "a"]), "Column names must differ.*Rename one"),
    "twice as texts": (lambda: pd.DataFrame([[1, 2]], columns=[1, "1"]), "Column names must differ"),
    "lists": (lambda: pd.DataFrame({"a": [[1], [2]]}), r"Column 'a' holds 'list'; needed numbers"),
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
    "views of texts": (lambda: pa.table({"a": pa.array(["x"], pa.string_view())}), "'a' is of.*string_view.*Cast"),
    "a hole among categories": (
        lambda: pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["x", None]))}),
        "'a' is of Arrow's type dictionary.*Cast",
    ),
    "booleans of eight bits": (
        lambda: pa.table({"a": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([None, 1, 0], pa.int8()))}),
        r"'a' is of Arrow's type extension<arrow.bool8>.*`table\['a'\].cast\(pyarrow.bool_\(\)\)`",
    ),
    "a frame of who knows": (Foreign, r"X is a .*Foreign; needed a pandas, Polars or Arrow frame"),
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
    make, words = BAD_TABLES[kind]
    with pytest.raises(ParameterError, match=words):
        al.Table(make(), categorical=["a"] if kind == "large whole numbers as categories" else ())


class Subclass(pd.DataFrame):
    """A frame of pandas under another roof, as geopandas has it."""

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
def test_frames_in_disguise_keep_names_and_rows(frame):
    table = al.Table(frame)
    assert table.names == ("a", "b")
    assert texts(table, {"a": 2, "b": "x"}) == ["a = 2", "b = x"]
    assert table.at(frame[1:2]).instance == table.at(1).instance == [2, "y"]
    neighbors = table.at(0).realize(np.ones((20, 2), bool), np.random.default_rng(0))
    assert {value for value in natively(neighbors, "b") if not pd.isna(value)} == {"y"}


def test_frames_of_dask_are_refused_by_name():
    frame = pytest.importorskip("dask.dataframe").from_pandas(MIXED, npartitions=1)
    with pytest.raises(ParameterError, match=r"X is a dask\..*DataFrame; needed.*`X.compute\(\)`"):
        al.Table(frame)


@pytest.mark.parametrize("dtype", ["category", object])
def test_whole_numbers_beyond_floats_are_categories_of_their_own(dtype):
    numbers = [2**53, 2**53 + 1, 2**53 + 2, 2**60, 2**60 + 1]
    frame = pd.DataFrame(
        {"x": pd.Series([*numbers, "a"] if dtype is object else numbers, dtype=object).astype(dtype)}
    )
    table = al.Table(frame)
    for i, number in enumerate(numbers):
        for row in (i, [number], [str(number)]):
            assert texts(table, row) == [f"x = {number}"]
            assert table.at(row).original["x"].tolist() == [number]


def test_one_is_one_level_however_it_is_written():
    table = al.Table(pd.DataFrame({"x": pd.Series([1, 1.0, "1", 2, "a"], dtype=object)}))
    assert [texts(table, row) for row in (0, 1, 2, [1], [1.0], ["1"])] == [["x = 1"]] * 6


BAD_CHOICES = [
    ({"n_bins": 1}, "n_bins is 1; needed a whole number >= 2"),
    ({"n_bins": True}, "n_bins is True"),
    ({"within": "kept"}, "within is 'kept'; needed one of keep, redraw"),
    ({"rare": 1}, "rare is 1; needed a share"),
    ({"fixed": "age"}, r"Type fixed=\['age'\]"),
    ({"fixed": ["agee"]}, "fixed has 'agee', which the table lacks; it has 'age'"),
    ({"fixed": 3}, r"fixed is 3; needed a list of columns"),
    ({"cuts": ["age"]}, r"cuts is \['age'\]; needed a mapping"),
    ({"cuts": {"agee": [1]}}, "cuts has 'agee', which the table lacks"),
    ({"cuts": {"age": []}}, r"cuts\['age'\] is \[\]; needed finite numbers"),
    ({"cuts": {"age": 30}}, r"cuts\['age'\] is 30; needed finite numbers, like \[30, 40\]"),
    ({"cuts": {"age": ["x"]}}, r"needed finite numbers.*could not convert"),
    ({"cuts": {"age": [np.inf]}}, "needed finite numbers"),
    ({"cuts": {"date": ["NaT"]}}, r"needed dates, like \['2018-03-04'\]"),
    ({"cuts": {"date": [pd.NaT]}}, "needed dates"),
    ({"cuts": {"date": "2018-03-04"}}, "needed dates, like"),
    ({"cuts": {"date": []}}, "needed dates, like"),
    ({"cuts": {"workclass": [1]}}, "cuts has 'workclass', which holds categories; needed numbers or dates"),
    ({"categorical": ["date"]}, "categorical has 'date', which holds dates"),
    ({"categorical": {"age": {(1, 2): "x"}}}, r"categorical names \(1, 2\)"),
    ({"categorical": {"age": "x"}}, r"categorical\['age'\] is 'x'; needed a mapping"),
    ({"groups": "age"}, "groups is 'age'; needed e.g."),
    ({"groups": ["age"]}, "groups has 'age'; needed lists of columns"),
    ({"groups": [["age", "agee"]]}, "'agee', which the table lacks"),
    ({"groups": {"g": []}}, "Group 'g'"),
    ({"groups": {"g": None}}, "Group 'g'"),
    ({"groups": {"g": ["age"], "h": ["age"]}}, "each fixed or in one group only"),
    ({"groups": {"g": ["age"]}, "fixed": ["age"]}, "each fixed or in one group only"),
    ({"groups": {"age": ["date"]}}, "called like a column"),
    ({"names": ["a"]}, "a frame has its own names"),
    ({"names": 5}, r"names is 5; needed a list of column names. Type names="),
    ({"names": "ab"}, "names is 'ab'; needed a list"),
    ({"groups": 5}, "groups is 5; needed e.g."),
    ({"cuts": {"age": [30]}, "fixed": ["age"]}, "cuts has 'age', held fixed: leave them out of cuts or of fixed"),
    ({"categorical": {"age": {7: "x"}}}, r"categorical\['age'\] names '7'; none is a level there: '20'"),
    ({"categorical": {"workclass": {"private": "x"}}}, "none is a level there: 'Private', 'State-gov'"),
    ({"categorical": {"age": {20: "x", 21: "x"}}}, r"categorical\['age'\] calls two levels 'x'"),
    ({"categorical": {"workclass": {"Private": "State-gov"}}}, "calls two levels 'State-gov'"),
]


@pytest.mark.parametrize(("choice", "words"), BAD_CHOICES)
def test_a_bad_choice_is_named(choice, words):
    with pytest.raises(ParameterError, match=words):
        al.Table(FRAME, **choice)


def test_names_of_arrays():
    assert al.Table(np.eye(3)).names == ("x0", "x1", "x2")
    with pytest.raises(ParameterError, match="names has 2 entries; the array has 3 columns"):
        al.Table(np.eye(3), names=["a", "b"])
    with pytest.raises(ParameterError, match="Column names must differ"):
        al.Table(np.eye(2), names=["a", "a"])


def test_lists_of_rows_are_tables():
    table = al.Table([[25, "red"], [30, "blue"], [31, "red"]], names=["age", "color"])
    assert texts(table, {"age": 25, "color": "blue"}) == ["age = 25", "color = blue"]


# --- the end of the line ---------------------------------------------------------------------------------


def test_infinity_goes_through_json():
    frame = pd.DataFrame({"x": [1.0, 2, np.inf, -np.inf, 3, 4, 5, 6], "y": range(8)})
    table = al.Table(frame)

    def model(rows):
        return np.clip(rows["x"], -9, 9) / 9

    for row, told in ((2, "Infinity"), (3, "-Infinity")):
        explanation = al.Explainer(model, table, output_range=(-1, 1)).explain(row, k=2, n_samples=200)
        assert explanation.instance[0] == told
        assert al.verify(explanation.to_json(), model, table).holds


def test_hostile_names_print():
    frame = pd.DataFrame({"\x1b[31mred": [1, 2, 3, 4], "a\nb": [5, 6, 7, 7], "": [0, 1, 0, 1]})
    explanation = al.Explainer(lambda X: X.sum(axis=1) / 20, al.Table(frame)).explain(0, k=3, n_samples=200)
    assert "\x1b" not in str(explanation)
    assert al.Explanation.from_json(explanation.to_json()) == explanation


def test_frames_of_one_type_and_of_several_give_the_same_neighbors():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(60, 5)), columns=list("abcde"))
    groups = {"pair": ["b", "d"]}
    flips = rng.random((3000, 4)) < 0.3
    for within in ("keep", "redraw"):
        alone = al.Table(frame, groups=groups, within=within).at(3)
        beside = al.Table(frame.assign(name="x"), groups=groups, within=within, fixed=["name"]).at(3)
        one, two = (there.realize(flips, np.random.default_rng(1)) for there in (alone, beside))
        pd.testing.assert_frame_equal(one, two[list("abcde")])
        kept = one.to_numpy() == frame.iloc[3].to_numpy()
        assert (kept[:, [1, 3]].all(axis=1) | ~kept[:, [1, 3]].any(axis=1)).all()  # the pair moves together


AS = {
    "array": lambda frame: frame.to_numpy(),
    "frame of one type": lambda frame: frame,
    "frame of several": lambda frame: frame.astype({"a": np.float32}),
    "polars": pl.from_pandas,
    "arrow": pa.Table.from_pandas,
}


@pytest.mark.parametrize("within", ["keep", "redraw"])
@pytest.mark.parametrize("kind", AS)
def test_neighbors_cell_by_cell(kind, within):
    """Groups of different sizes, a fixed column between, one that nothing breaks: every cell is in its place."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 50, size=(40, 9)).astype(float), columns=list("abcdefghi"))
    frame["h"] = 7.0
    names = None if kind != "array" else list(frame.columns)
    groups = {"three": ["f", "b", "i"], "two": ["g", "a"]}
    table = al.Table(AS[kind](frame), names=names, groups=groups, fixed=["d"], n_bins=2, within=within)
    neighborhood = table.at(5)
    flips = rng.random((25_000, len(neighborhood.literals))) < 0.4  # more than are looked at at once
    found = neighborhood.realize(flips, np.random.default_rng(1))
    found = found if kind == "array" else np.column_stack([np.asarray(found[name]) for name in frame])
    values, own = frame.to_numpy(), frame.iloc[5].to_numpy()
    assert (found[:, [3, 7]] == own[[3, 7]]).all()
    for literal, flipped in zip(neighborhood.literals, flips.T, strict=True):
        columns = [frame.columns.get_loc(name) for name in groups.get(literal.name, [literal.name])]
        sides = values[:, columns] < np.median(values[:, columns], axis=0)
        keeps = (sides == sides[5]).all(axis=1)
        drawn = {tuple(row) for row in found[flipped][:, columns]}
        assert drawn == {tuple(row) for row in values[~keeps][:, columns]}
        left = {tuple(row) for row in found[~flipped][:, columns]}
        kept = values[keeps] if within == "redraw" else own[None]
        assert left == {tuple(row) for row in kept[:, columns]}


@pytest.mark.parametrize("within", ["keep", "redraw"])
def test_neighbors_do_not_depend_on_how_many_cells_are_looked_at_together(within, monkeypatch):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 7)), columns=list("abcdefg"))
    there = al.Table(frame, groups=[["b", "f"]], fixed=["c"], within=within).at(3)
    flips = np.random.default_rng(1).random((501, 5)) < 0.3
    whole = there.realize(flips, np.random.default_rng(2))
    for cells in (1, 1100, 10**9):
        monkeypatch.setattr(al.spaces.table, "_CELLS_AT_ONCE", cells)
        pd.testing.assert_frame_equal(there.realize(flips, np.random.default_rng(2)), whole)


@pytest.mark.parametrize("shape", [(4, 2), (4, 1), (4, 4), (3,), (2, 3, 3)])
@pytest.mark.parametrize("within", ["keep", "redraw"])
def test_flips_of_another_shape_are_refused(shape, within):
    there = al.Table(np.random.default_rng(0).normal(size=(50, 3)), within=within).at(0)
    with pytest.raises(ParameterError, match=r"flips have shape .* needed \(n, 3\)"):
        there.realize(np.zeros(shape, bool), np.random.default_rng(0))


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


@pytest.mark.parametrize("kind", ["MT19937", "Philox", "PCG64", "PCG64DXSM", "SFC64"])
def test_any_generator_draws_every_row_alike(kind):
    neighborhood = al.Table(np.arange(100.0)[:, None], n_bins=2).at(0)
    drawn = neighborhood.realize(np.ones((50_000, 1), bool), np.random.Generator(getattr(np.random, kind)(0)))
    counts = np.bincount(drawn[:, 0].astype(int), minlength=100)[50:]
    assert np.abs(counts - 1000).max() < 5 * math.sqrt(1000)


def test_objects_stay_objects_in_a_frame_of_nothing_else():
    frame = pd.DataFrame({"a": ["x", "y", None], "b": ["u", "u", "v"]}, dtype=object)
    drawn = al.Table(frame).at(0).realize(np.ones((9, 2), bool), np.random.default_rng(0))
    assert list(drawn.dtypes) == [object, object]
    assert set(drawn["a"]) == {"y", None}
    assert list(drawn.columns) == ["a", "b"]


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


def test_a_table_of_fixed_columns_only_says_what_to_do():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with pytest.raises(InstanceError, match="fewer fixed columns"):
        _ = al.Table(frame, fixed=["a", "b"]).at(0).literals


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
