"""Binarizer: the paper's encoding of every kind of table, and the conventions of scikit-learn."""

import contextlib
import datetime
import decimal
import pickle
import unittest

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import estimator_checks_generator

from anchorline.errors import InstanceError, ParameterError
from anchorline.spaces.binarizer import Binarizer

AGES = [25, 28, 30, 37, 39, 41, 48, 52, 60, 71, 33, 57]
COLUMNS = {
    "age": AGES,
    "income": [float(v) ** 1.5 / 7 for v in AGES],
    "sex": ["female", "male"] * 6,
    "job": ["a", "a", "a", "b", "b", "c", "c", "d", "e", "f", "a", "b"],
    "rooms": [1, 2, 3, 1, 2, 3, 1, 2, 3, 10, 1, 1],
    "member": [True, False, False] * 4,
}


def names_of(values, **options):
    return list(Binarizer(**options).fit(pd.DataFrame({"v": values})).get_feature_names_out())


def arrow(columns):
    return pytest.importorskip("pyarrow").table(columns)


def rows_of(columns):
    return np.array([list(row) for row in zip(*columns.values(), strict=True)], dtype=object)


# --- the encoding ----------------------------------------------------------------------------------------


def test_every_rule_of_the_paper():
    encoder = Binarizer().fit(pd.DataFrame(COLUMNS))
    names = list(encoder.get_feature_names_out())
    assert names[:4] == ["age < 33", "33 <= age < 40", "40 <= age < 54", "age >= 54"]
    assert names[8:10] == ["sex = female", "sex = male"]
    assert names[10:14] == ["job = a", "job = b", "job = c", "job not in {a, b, c}"]
    assert names[14:18] == ["rooms = 1", "rooms = 2", "rooms = 3", "rooms = 10"]
    assert names[18:] == ["member = False", "member = True"]
    assert encoder.dropped_ == {}
    assert encoder.attributes_.count("job") == 4


def test_statements_come_with_their_negation():
    negations = dict(Binarizer().fit(pd.DataFrame(COLUMNS)).statements_)
    assert negations["age < 33"] == "age >= 33"
    assert negations["33 <= age < 40"] == "age < 33 or age >= 40"
    assert negations["age >= 54"] == "age < 54"
    assert negations["sex = female"] == "sex != female"
    assert negations["job not in {a, b, c}"] == "job in {a, b, c}"


@given(
    values=hnp.arrays(np.float64, st.integers(2, 60), elements=st.integers(-9, 9).map(lambda v: v / 4)),
    n_bins=st.integers(2, 6),
)
def test_training_rows_have_exactly_one_indicator_set(values, n_bins):
    table = np.column_stack([values, np.arange(values.size)])  # the second column is never dropped
    encoder = Binarizer(n_bins=n_bins).fit(table)
    encoded = encoder.transform(table)
    assert encoded.dtype == np.float64
    assert set(np.unique(encoded)) == {-1.0, 1.0}
    attributes = np.array(encoder.attributes_)
    for attribute in set(encoder.attributes_):
        assert np.all((encoded[:, attributes == attribute] == 1).sum(axis=1) == 1)


@given(values=hnp.arrays(np.float64, st.integers(5, 60), elements=st.floats(-1e3, 1e3, width=32), unique=True))
def test_printed_statements_are_true_of_the_training_rows(values):
    encoder = Binarizer(feature_names=["v"]).fit(values[:, None])
    encoded = encoder.transform(values[:, None])
    for column, (true, false) in enumerate(encoder.statements_):
        for value, sign in zip(values, encoded[:, column], strict=True):
            assert eval(true if sign > 0 else false, {"v": value})
            assert not eval(false if sign > 0 else true, {"v": value})


def test_edges_split_like_the_linear_quantiles_and_belong_to_the_bin_above():
    values = np.random.default_rng(1).normal(size=37)
    encoder = Binarizer().fit(values[:, None])
    edges = [float(true.split()[-1]) for true, _ in encoder.statements_[:-1]]  # "x0 < e", "e <= x0 < f"
    quantiles = np.quantile(values, [0.25, 0.5, 0.75], method="linear")
    assert [(values < edge).sum() for edge in edges] == [(values < edge).sum() for edge in quantiles]
    for i, edge in enumerate(edges):
        below, at, above = encoder.transform([[np.nextafter(edge, -9)], [edge], [np.nextafter(edge, 9)]])
        assert below.argmax() == i
        assert at.argmax() == above.argmax() == i + 1
    assert encoder.transform([[-1e300], [-np.inf], [1e300], [np.inf]]).argmax(axis=1).tolist() == [0, 0, 3, 3]


def test_frequencies_decide_and_ties_go_by_text():
    assert names_of(list("zzyyxxwwvv"))[:3] == ["v = v", "v = w", "v = x"]
    assert names_of(list("zzzyyxxwwvv"))[:3] == ["v = z", "v = v", "v = w"]


@pytest.mark.parametrize("n_bins", [2, 3, 7])
def test_n_bins_is_the_number_of_indicators(n_bins):
    assert len(names_of(range(50), n_bins=n_bins)) == n_bins
    assert len(names_of([f"c{i:02d}" for i in range(50)], n_bins=n_bins)) == n_bins
    assert len(names_of([i % n_bins for i in range(50)], n_bins=n_bins)) == n_bins


# --- dropped columns -------------------------------------------------------------------------------------


def test_dropped_columns_are_reported():
    frame = pd.DataFrame(
        {
            "good": range(8),
            "constant": [3] * 8,
            "skewed": [0, 0, 0, 0, 0.5, 1, 2.5, 4.5],
            "gone": [1.0, None] * 4,
            "gone text": ["a", None, "b", "a", "a", "a", "a", "b"],
            "infinite": [0, 1, 2, 3, 4, 5, 6, np.inf],
        }
    )
    encoder = Binarizer().fit(frame)
    assert set(encoder.attributes_) == {"good"}
    assert encoder.dropped_["constant"] == "is constant: always 3"
    assert encoder.dropped_["skewed"] == "has quantiles that are not all distinct: 0, 0, 0.25, 1.375, 4.5"
    assert encoder.dropped_["gone"] == "has missing values in 4 of 8 rows"
    assert encoder.dropped_["gone text"] == "has missing values in 1 of 8 rows"
    assert encoder.dropped_["infinite"] == "has infinite values"


def test_dropped_columns_are_not_looked_at_again():
    frame = pd.DataFrame({"good": range(8), "gone": [1.0, None] * 4})
    encoder = Binarizer().fit(frame)
    alone = encoder.transform(frame[["good"]])
    assert np.array_equal(alone, encoder.transform(frame))
    assert np.array_equal(alone, encoder.transform(frame.assign(gone="whatever")))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT])
def test_every_kind_of_missing_value_is_seen(missing):
    table = np.array([["a", 1], [missing, 2], ["b", 1]], dtype=object)
    assert list(Binarizer().fit(table).dropped_) == ["x0"]
    assert list(Binarizer().fit(pd.DataFrame(table)).dropped_) == ["0"]


# --- kinds of tables -------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [pl.DataFrame, arrow], ids=["polars", "arrow"])
def test_frames_of_every_library_agree(build):
    expected = Binarizer().fit(pd.DataFrame(COLUMNS))
    encoder = Binarizer().fit(build(COLUMNS))
    assert encoder.statements_ == expected.statements_
    assert np.array_equal(encoder.transform(build(COLUMNS)), expected.transform(pd.DataFrame(COLUMNS)))
    assert np.array_equal(encoder.transform(pd.DataFrame(COLUMNS)), expected.transform(build(COLUMNS)))


@pytest.mark.parametrize("build", [rows_of, lambda columns: rows_of(columns).tolist()], ids=["array", "list"])
def test_arrays_agree_with_frames(build):
    expected = Binarizer().fit(pd.DataFrame(COLUMNS))
    encoder = Binarizer(feature_names=list(COLUMNS)).fit(build(COLUMNS))
    assert encoder.statements_ == expected.statements_
    assert np.array_equal(encoder.transform(build(COLUMNS)), expected.transform(pd.DataFrame(COLUMNS)))
    assert np.array_equal(expected.transform(build(COLUMNS)), encoder.transform(pd.DataFrame(COLUMNS)))


def test_names_of_plain_arrays():
    table = np.arange(20.0).reshape(10, 2)
    plain = Binarizer().fit(table)
    assert plain.attributes_ == ["x0"] * 4 + ["x1"] * 4
    assert not hasattr(plain, "feature_names_in_")
    assert plain.get_feature_names_out(["a", "b"])[0] == "a < 5"
    named = Binarizer(feature_names=["a", "b"]).fit(table)
    assert list(named.feature_names_in_) == ["a", "b"]
    assert plain.transform(pd.DataFrame(table, columns=["a", "b"])).shape == (10, 8)  # by position
    assert list(Binarizer().fit(pd.DataFrame(table)).feature_names_in_) == ["0", "1"]


def test_fitting_again_forgets_the_earlier_names():
    encoder = Binarizer().fit(pd.DataFrame(COLUMNS))
    assert hasattr(encoder, "feature_names_in_")
    encoder.fit(np.arange(20.0).reshape(10, 2))
    assert not hasattr(encoder, "feature_names_in_")
    assert encoder.n_features_in_ == 2


def test_columns_are_found_by_name_in_any_order():
    frame = pd.DataFrame(COLUMNS)
    encoder = Binarizer().fit(frame)
    assert np.array_equal(encoder.transform(frame[frame.columns[::-1]]), encoder.transform(frame))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([True, False, True], ["v = False", "v = True"]),
        (pd.array([True, False, True], dtype="boolean"), ["v = False", "v = True"]),
        (pd.array([1, 2, 1], dtype="Int64"), ["v = 1", "v = 2"]),
        (np.array([1, 2, 1], dtype=np.uint8), ["v = 1", "v = 2"]),
        (np.array([0.5, 2, 0.5], dtype=np.float32), ["v = 0.5", "v = 2"]),
        (pd.Categorical(["lo", "hi", "lo"], categories=["lo", "hi"]), ["v = hi", "v = lo"]),
        (pd.Categorical([1, 2, 1]), ["v = 1", "v = 2"]),
        (pd.array(["a", "b", "a"], dtype="string"), ["v = a", "v = b"]),
        (pd.Series([1, 2.5, 1], dtype=object), ["v = 1", "v = 2.5"]),
        (pd.Series([1, "b", "1"], dtype=object), ["v = 1", "v = b"]),  # 1 and "1" are one level
        ([decimal.Decimal("1.5"), decimal.Decimal(2), decimal.Decimal("1.5")], ["v = 1.5", "v = 2"]),
        (["", "b", "''"], ["v = ''", "v = \"''\"", "v = b"]),
        (pd.to_datetime(["2020-01-01", "2020-02-01", "2020-01-01"]), ["v = 2020-01-01", "v = 2020-02-01"]),
    ],
)
def test_types(values, expected):
    assert names_of(values) == expected


def test_declared_categories_of_numbers_are_not_binned():
    values = [1, 1, 1, 2, 2, 3, 3, 4, 5, 6]
    assert names_of(pd.Categorical(values))[-1] == "v not in {1, 2, 3}"
    assert names_of(values)[-1].startswith("v >=")


def test_polars_types():
    frame = pl.DataFrame(
        {
            "e": pl.Series(["a", "b", "a"], dtype=pl.Enum(["b", "a"])),
            "c": pl.Series(["a", "b", "a"], dtype=pl.Categorical),
            "m": pl.Series(["1.50", "2.25", "1.50"]).cast(pl.Decimal(10, 2)),
            "n": [None, None, None],
            "f": [1.0, float("nan"), 2.0],
        }
    )
    encoder = Binarizer().fit(frame)
    assert [true for true, _ in encoder.statements_] == [
        *("e = a", "e = b", "c = a", "c = b", "m = 1.5", "m = 2.25")
    ]
    assert list(encoder.dropped_) == ["n", "f"]


DAYS = [datetime.date(2020, 1, 1) + datetime.timedelta(days=10 * i) for i in range(10)]


def days_in_pandas(columns):
    return pd.DataFrame({name: pd.to_datetime(days) for name, days in columns.items()})


def days_in_numpy(columns):
    return np.column_stack([np.array(days, dtype="datetime64[D]") for days in columns.values()])


@pytest.mark.parametrize("build", [days_in_pandas, pl.DataFrame, arrow, days_in_numpy])
def test_dates_are_binned_and_read_as_dates(build):
    table = build({"v": DAYS})
    encoder = Binarizer(feature_names=["v"]).fit(table)
    assert [true for true, _ in encoder.statements_] == [
        "v < 2020-01-24",  # the quantile is noon of the day before, which splits whole days in the same way
        "2020-01-24 <= v < 2020-02-15",
        "2020-02-15 <= v < 2020-03-09",
        "v >= 2020-03-09",
    ]
    assert encoder.transform(table).argmax(axis=1).tolist() == [0, 0, 0, 1, 1, 2, 2, 3, 3, 3]
    assert np.array_equal(encoder.transform(pl.DataFrame({"v": DAYS})), encoder.transform(table))


def test_a_missing_date_drops_the_column():
    gone = np.array([*DAYS[:5], "NaT"], dtype="datetime64[D]")
    assert list(Binarizer().fit(np.column_stack([gone, gone[0] + np.arange(6)])).dropped_) == ["x0"]


def test_times_of_day_print_where_they_matter():
    noons = pd.Timestamp("2020-01-01 12:00") + pd.to_timedelta(10 * np.arange(5), unit="D")
    assert names_of(noons)[0] == "v < 2020-01-11 12:00"
    ticks = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(5) * 1.5, unit="s")
    assert names_of(ticks)[0] == "v < 2020-01-01 00:00:01.500000"


def test_python_dates_in_an_object_array_are_refused():
    table = np.array([[datetime.date(2020, 1, 1)], [datetime.date(2020, 1, 2)]], dtype=object)
    with pytest.raises(ParameterError, match="Column 'x0' holds 'date'"):
        Binarizer().fit(table)


# --- texts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "edges"),
    [
        ([10, 20, 30, 40, 50], ["20", "30", "40"]),
        ([1000000, 2000000, 3000000, 4000000, 5000001], ["2000000", "3000000", "4000000"]),
        ([1234561, 1234562, 1234563, 1234564, 1234565], ["1234562", "1234563", "1234564"]),
        ([0.1, 0.2, 0.3, 0.4, 0.5], ["0.2", "0.3", "0.4"]),
        ([1, 1.00001, 1.00002, 1.00003, 2], ["1.00001", "1.00002", "1.00003"]),
        ([1e-9, 2e-9, 3e-9, 4e-9, 5e-9], ["2e-09", "3e-09", "4e-09"]),
        ([1e20, 2e20, 3e20, 4e20, 5e20], ["2e+20", "3e+20", "4e+20"]),
    ],
)
def test_edges_print_short_but_apart(values, edges):
    names = names_of(values)
    assert names[0] == f"v < {edges[0]}"
    assert names[1] == f"{edges[0]} <= v < {edges[1]}"
    assert names[2] == f"{edges[1]} <= v < {edges[2]}"
    assert names[3] == f"v >= {edges[2]}"


def test_levels_that_print_alike_get_more_digits():
    assert names_of([0.1, 0.1 + 1e-12, 0.5]) == ["v = 0.1", "v = 0.10000000000100001", "v = 0.5"]
    assert names_of([12345678, 12345679, 5]) == ["v = 5", "v = 12345678", "v = 12345679"]


def test_an_empty_bin_keeps_edges_apart():
    values = [0, 1, 1, 1, 2, 2, 3, 4, 5, 6, 7]
    names = names_of(values, n_bins=8)
    assert len(set(names)) == len(names)


# --- new rows --------------------------------------------------------------------------------------------


@pytest.fixture
def encoder():
    return Binarizer().fit(pd.DataFrame(COLUMNS))


def changed(**values):
    return pd.DataFrame(COLUMNS).head(1).assign(**values)


def test_unseen_levels(encoder):
    attributes = np.array(encoder.attributes_)
    rest = encoder.transform(changed(job="new"))[0, attributes == "job"]
    assert rest.tolist() == [-1, -1, -1, 1]
    assert encoder.transform(changed(sex="other"))[0, attributes == "sex"].tolist() == [-1, -1]
    assert encoder.transform(changed(rooms=7))[0, attributes == "rooms"].tolist() == [-1, -1, -1, -1]


def test_equal_values_of_other_types_are_the_same(encoder):
    expected = encoder.transform(changed())
    assert np.array_equal(encoder.transform(changed(member=1, age=25.0, rooms=1.0)), expected)
    assert np.array_equal(encoder.transform(changed(sex=pd.Categorical(["female"]))), expected)
    by_code = Binarizer().fit(pd.DataFrame({"v": ["1", "2", "1"]}))
    assert by_code.transform(pd.DataFrame({"v": [2]})).tolist() == [[-1, 1]]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (changed(age=None), r"Column 'age' has 1 missing value\(s\), the first in row 0.*fillna"),
        (changed(sex=None), "Column 'sex' has 1 missing"),
        (changed().drop(columns="sex"), "Missing: 'sex'. Unknown: none"),
        (changed(target=1), "Missing: none. Unknown: 'target'.*drop"),
        (changed(age="old"), "Column 'age' holds categories; in fit it held numbers"),
        (changed(age=pd.Timestamp("2020-01-01")), "Column 'age' holds dates; in fit it held numbers"),
        (changed(sex=pd.Timestamp("2020-01-01")), "Column 'sex' holds dates; in fit it held categories"),
        (np.ones((2, 5)), "X has 5 features, but Binarizer is expecting 6 features.*'age', 'income'"),
        (np.ones(6), r"shape \(6,\); it must be a 2-D array.*reshape"),
        (pl.DataFrame(COLUMNS).lazy(), r"polars.*LazyFrame; it must be.*`X.collect\(\)`"),
    ],
)
def test_refused_rows_say_why(encoder, rows, message):
    with pytest.raises(InstanceError, match=message):
        encoder.transform(rows)


@pytest.mark.parametrize(
    ("options", "table", "message"),
    [
        ({"n_bins": 1}, [[1], [2]], "n_bins is 1; it must be an integer of at least 2"),
        ({"n_bins": 2.5}, [[1], [2]], "n_bins is 2.5"),
        ({"n_bins": True}, [[1], [2]], "n_bins is True"),
        ({"feature_names": ["a"]}, [[1, 2], [2, 3]], "feature_names is 'a'; the table has 2 columns"),
        ({"feature_names": ["a", "a"]}, [[1, 2], [2, 3]], "must differ"),
        ({"feature_names": ["a"]}, pd.DataFrame({"b": [1, 2]}), "columns: 'b'"),
        ({}, pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]), "must differ"),
        ({}, np.empty((0, 3)), r"0 sample\(s\)"),
        ({}, np.empty((3, 0)), r"0 feature\(s\)"),
        ({}, [[1], [1]], "No column can be encoded: 'x0' is constant: always 1"),
        ({}, [[[1, 2]], [[3, 4]]], "must be a 2-D array"),
        ({}, pd.DataFrame({"v": [[1], [2]]}), "Column 'v' holds 'list'; it must hold numbers"),
        ({}, pd.DataFrame({"v": pd.to_timedelta([1, 2], unit="s")}), "Column 'v' holds 'Timedelta'"),
    ],
)
def test_refused_tables_say_why(options, table, message):
    with pytest.raises(ParameterError, match=message):
        Binarizer(**options).fit(table)


def test_a_failed_fit_leaves_no_fitted_transformer():
    encoder = Binarizer()
    with pytest.raises(ParameterError):
        encoder.fit([[1], [1]])
    with pytest.raises(NotFittedError):
        encoder.transform([[1]])
    with pytest.raises(NotFittedError):
        encoder.get_feature_names_out()


# --- scikit-learn ----------------------------------------------------------------------------------------


def test_clone_params_and_pickle(encoder):
    original = Binarizer(n_bins=3, feature_names=["a"])
    assert clone(original).get_params() == {"n_bins": 3, "feature_names": ["a"]}
    again = pickle.loads(pickle.dumps(encoder))
    assert again.statements_ == encoder.statements_
    assert np.array_equal(again.transform(pd.DataFrame(COLUMNS)), encoder.transform(pd.DataFrame(COLUMNS)))


def test_pipeline_learns_from_it():
    frame, target = pd.DataFrame(COLUMNS), np.array(AGES) > 40
    pipeline = make_pipeline(Binarizer(), LogisticRegression()).fit(frame, target)
    assert pipeline.score(frame, target) == 1.0
    assert "age >= 54" in pipeline[:-1].get_feature_names_out()


def test_names_pass_through_a_pipeline():
    frame = pd.DataFrame({"a": [1.0, 2, 3, 4, None, 6], "b": [1.0, 2, None, 1, 2, 1]})
    pipeline = make_pipeline(SimpleImputer(), Binarizer()).fit(frame)
    assert pipeline.get_feature_names_out()[0].startswith("a <")


def test_set_output():
    frame = pd.DataFrame(COLUMNS, index=[f"r{i}" for i in range(12)])
    as_pandas = Binarizer().set_output(transform="pandas").fit_transform(frame)
    assert list(as_pandas.index) == list(frame.index)
    assert as_pandas.columns[0] == "age < 33"
    as_polars = Binarizer().set_output(transform="polars").fit_transform(pl.DataFrame(COLUMNS))
    assert isinstance(as_polars, pl.DataFrame)
    assert np.array_equal(as_polars.to_numpy(), as_pandas.to_numpy())


def test_input_features_must_be_those_of_fit(encoder):
    assert len(encoder.get_feature_names_out(list(COLUMNS))) == 20
    with pytest.raises(ParameterError, match="must be the names in fit: 'age', 'income'"):
        encoder.get_feature_names_out(["a"] * 6)


# scikit-learn's checks of a transformer, except those whose tables the Binarizer refuses or drops completely.
SKIPPED = {
    "check_complex_data": "refused with another message",
    "check_estimators_pickle": "fits on a table whose columns all have missing values",
    "check_fit2d_1sample": "refused with another message",
    "check_fit_idempotent": "fits on counts whose quantiles are not distinct",
    "check_fit_check_is_fitted": "fits on counts whose quantiles are not distinct",
}
CHECKS = [
    pair for pair in estimator_checks_generator(Binarizer(), mark=None) if pair[1].func.__name__ not in SKIPPED
]


@pytest.mark.filterwarnings("ignore")  # the checks warn about what they skip
@pytest.mark.parametrize(("estimator", "check"), CHECKS)
def test_scikit_learn_checks(estimator, check):
    with contextlib.suppress(unittest.SkipTest):  # one check is for array libraries that are not supported
        check(estimator)


def test_most_of_the_checks_apply():
    assert len(CHECKS) >= 30


@pytest.mark.parametrize("periods", [3, 50])
def test_moments_with_a_time_zone_are_written_in_utc(periods):
    moments = pd.date_range("2020-01-01", periods=periods, tz="Europe/Paris")
    zoned, bare = (Binarizer().fit(pd.DataFrame({"at": at})) for at in (moments, moments.tz_localize(None)))
    assert all(text.endswith(" UTC") for text in zoned.get_feature_names_out())
    assert not any("UTC" in text for text in bare.get_feature_names_out())
