"""What the literals of a table say: short, true texts, for single columns and for groups."""

import datetime as dt
import math

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.errors import InstanceError

CUTS = {"age": [37, 48], "date": ["2018-03-04", "2018-06-01"]}


def test_names_read_well(people, texts, held):
    table = al.Table(people, cuts=CUTS, literals="intervals")
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


def test_redrawn_facts_are_written_as_they_are_tested(people, texts, held):
    table = al.Table(people, cuts={"age": [37, 48]}, within="redraw")
    assert held(table, 20) == texts(table, 20)


def test_missing_values_are_written(texts):
    table = al.Table(pd.DataFrame({"age": [1.0, np.nan, 3.0, np.nan], "name": ["a", None, "b", "a"]}))
    assert texts(table, 1) == ["age is missing", "name is missing"]
    assert texts(al.Table(pd.DataFrame({"age": [5.0, np.nan]})), {"age": 9.0}) == ["age is not missing"]


def test_times_of_day_are_written_only_where_there_are_any(texts):
    frame = pd.DataFrame({"at": pd.date_range("2018-01-01 00:00:07", periods=50, freq="37min")})
    assert texts(al.Table(frame), 20)[0] == "2018-01-01 07:33:22 <= at < 2018-01-01 15:06:37"
    frame = pd.DataFrame({"at": pd.date_range("2018-01-01", periods=48, freq="h")})
    cuts = {"at": ["2018-01-01 06:00", "2018-01-02"]}
    assert texts(al.Table(frame, cuts=cuts, literals="bounds"), 7) == [
        "2018-01-01 06:00 <= at < 2018-01-02",
        "at >= 2018-01-01 06:00",
        "at < 2018-01-02",
    ]


def test_moments_with_a_time_zone_are_written_in_utc(texts, held):
    frame = pd.DataFrame({"at": pd.date_range("2018-01-01", periods=48, freq="h", tz="Europe/Paris")})
    cuts = {"at": [dt.datetime(2018, 1, 1, 12, tzinfo=dt.UTC), pd.Timestamp("2018-01-02", tz="Europe/Paris")]}
    table = al.Table(frame, cuts=cuts, literals="intervals")
    assert texts(table, 15) == ["2018-01-01 12:00 UTC <= at < 2018-01-01 23:00 UTC"]
    assert held(table, 15) == ["at keeps its value 2018-01-01 14:00 UTC"]


@pytest.mark.parametrize(
    ("values", "row", "expected"),
    [
        ([0.1234561, 0.5, 2.0], 0, "x = 0.123456"),
        ([0.1234561, 0.1234562, 2.0], 0, "x = 0.1234561"),  # six digits would be true of both values
        ([123456.7, 5e-7, 3e20], 1, "x = 5e-07"),
        ([1000000, 2500000, 7], 1, "x = 2500000"),
        ([2**53, 2**53 + 2, 5], 0, "9007199254740992 <= x < 9007199254740994"),
        ([np.inf, -np.inf, np.inf], 0, "x = inf"),
    ],
)
def test_numbers_are_written_shortly_but_never_wrongly(values, row, expected, texts):
    (text,) = texts(al.Table(pd.DataFrame({"x": values}), literals="intervals"), row)
    if expected.startswith("9007"):
        low, high = text.split(" <= x < ")
        assert float(low) <= values[row] < float(high)
    else:
        assert text == expected


def test_edges_have_few_digits(texts):
    rng = np.random.default_rng(0)
    text, *_ = texts(al.Table(pd.DataFrame({"x": rng.normal(size=500)})), {"x": 0.1})
    low, _, high = text.split(" ")[0], *text.split(" ")[-2:]
    assert max(len(part.strip("-0.")) for part in (low, high)) <= 4


def test_cut_points_are_written_as_given(people, texts):
    table = al.Table(people, cuts={"age": [30.123456789, 40]})
    assert texts(table, {**people.iloc[0].to_dict(), "age": 35})[0] == "30.123456789 <= age < 40"


def test_rare_values_go_together(texts, held):
    table = al.Table(pd.DataFrame({"job": ["a"] * 300 + ["b"] * 300 + ["r1", "r2", "r3"]}))
    assert texts(table, {"job": "r2"}) == ["job is one of 3 rare values"]
    assert held(table, {"job": "r2"}) == ["job keeps its value r2"]
    assert texts(table, {"job": "new"}) == ["job = new"]
    assert texts(al.Table(table_of_ids()), 3) == ["id = 3"]  # if all levels are rare, each keeps its own literal


def table_of_ids():
    return pd.DataFrame({"id": [str(i) for i in range(300)]})


def test_numbers_as_categories_and_what_they_are_called(texts):
    frame = pd.DataFrame({"sex": [0, 1, 1, 0], "on": [True, False, True, False], "grade": list("abab")})
    called = {"sex": {0: "female", np.int64(1): "male"}, "on": {True: "yes", 0: "no"}, "grade": {"a": "best"}}
    assert texts(al.Table(frame, categorical=called), 0) == ["sex = female", "on = yes", "grade = best"]
    assert texts(al.Table(frame, categorical=called), 1) == ["sex = male", "on = no", "grade = b"]
    assert texts(al.Table(frame, categorical=["sex"]), 1)[0] == "sex = 1"


@pytest.mark.parametrize("values", [[1.5, math.inf, math.inf, math.inf], [math.inf, 2.0, -math.inf, 1.0]])
def test_few_values_with_infinite_ones_stand_for_themselves(values):
    table = al.Table(pd.DataFrame({"x": values}))
    assert [table.at(i).literals[0].text for i in range(4)] == [f"x = {value:g}" for value in values]


@pytest.mark.parametrize("dtype", ["category", object])
def test_whole_numbers_beyond_floats_are_categories_of_their_own(dtype, texts):
    numbers = [2**53, 2**53 + 1, 2**53 + 2, 2**60, 2**60 + 1]
    frame = pd.DataFrame(
        {"x": pd.Series([*numbers, "a"] if dtype is object else numbers, dtype=object).astype(dtype)}
    )
    table = al.Table(frame)
    for i, number in enumerate(numbers):
        for row in (i, [number], [str(number)]):
            assert texts(table, row) == [f"x = {number}"]
            assert table.at(row).original["x"].tolist() == [number]


def test_one_is_one_level_however_it_is_written(texts):
    table = al.Table(pd.DataFrame({"x": pd.Series([1, 1.0, "1", 2, "a"], dtype=object)}))
    assert [texts(table, row) for row in (0, 1, 2, [1], [1.0], ["1"])] == [["x = 1"]] * 6


def test_one_hot_blocks_are_written_by_the_column_that_is_on(texts):
    frame = pd.DataFrame({"red": [1, 0, 0, 1], "blue": [0, 1, 0, 0], "n": [1, 2, 3, 4]})
    table = al.Table(frame, groups={"color": ["red", "blue"]})
    assert texts(table, 0)[0] == "red = 1"
    assert texts(table, 2)[0] == "red = 0 and blue = 0"


def test_indicators_that_are_on_together_are_all_written():
    """Otherwise "red = 1" could be true of a row that breaks the group."""
    frame = pd.DataFrame({"red": [1, 0, 1, 1], "blue": [0, 1, 1, 0]})
    neighborhood = al.Table(frame, groups={"color": ["red", "blue"]}).at(0)
    assert neighborhood.literals[0].text == "red = 1 and blue = 0"
    drawn = neighborhood.realize(np.ones((50, 1), bool), np.random.default_rng(0))
    assert not ((drawn["red"] == 1) & (drawn["blue"] == 0)).any()


def test_groups_are_written_by_all_their_columns(people, texts, held):
    table = al.Table(people, groups={"who": ["age", "workclass"]}, cuts={"age": [37]})
    assert texts(table, 0)[0] == "age < 37 and workclass = Private"
    assert held(table, 0)[0] == "who keeps its values"


def test_what_never_changes_is_reported(people):
    frame = people.assign(constant=7, empty=np.nan)
    neighborhood = al.Table(frame, fixed=["age"]).at(0)
    assert neighborhood.fixed == {
        "age": "held fixed as asked",
        "constant": "no training row breaks 'constant = 7'",
        "empty": "no training row breaks 'empty is missing'",
    }
    assert [literal.name for literal in neighborhood.literals] == ["workclass", "capital-gain", "date"]


def test_a_row_that_nothing_differs_from(people, texts):
    table = al.Table(people[:1])
    with pytest.raises(InstanceError, match=r"no neighbors. Pass a larger training table, more bins"):
        _ = table.at(0).literals
    assert texts(table, people.iloc[0].to_dict() | {"workclass": "other"}) == ["workclass = other"]


def test_a_table_of_fixed_columns_only_says_what_to_do():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with pytest.raises(InstanceError, match="fewer fixed columns"):
        _ = al.Table(frame, fixed=["a", "b"]).at(0).literals


def test_hostile_names_print():
    frame = pd.DataFrame({"\x1b[31mred": [1, 2, 3, 4], "a\nb": [5, 6, 7, 7], "": [0, 1, 0, 1]})
    explanation = al.Explainer(lambda X: X.sum(axis=1) / 20, al.Table(frame)).explain(0, k=3, n_samples=200)
    assert "\x1b" not in str(explanation)
    assert al.Explanation.from_json(explanation.to_json()) == explanation
