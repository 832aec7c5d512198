"""Attributes: groups, indicators, columns that say the same thing, and columns that never change."""

import numpy as np
import pandas as pd
import pytest

from anchorline.errors import ParameterError
from anchorline.facts import Fact
from anchorline.laws import Random
from anchorline.spaces.table import Table
from helpers.table_facts import facts_of

N = 200


def numbers(seed=0, n=N):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {"a": rng.normal(size=n), "b": rng.integers(0, 50, n), "c": rng.choice(["u", "v", "w"], n)}
    )


def members(table):
    return [attribute.names for attribute in table.attributes]


def neighbors(table, q=0.8, row=0):
    there = table.at(row)
    return there.realize(there.draw(400, Random.of(0, there.key, "a"), q))


def test_every_column_is_an_attribute_in_the_order_of_the_table():
    table = Table(numbers())
    assert members(table) == [("a",), ("b",), ("c",)]
    assert table.at(0).names == ("a", "b", "c")


def test_a_group_is_one_attribute_with_facts_about_all_its_columns():
    table = Table(numbers(), groups={"both": ["c", "a"]})
    there = table.at(0)
    assert there.names == ("both", "b")
    about = {(fact.attribute, fact.column) for fact in facts_of(there)}
    assert about == {("both", "a"), ("both", "c"), ("b", "b")}
    assert (np.diff(there.candidates.groups) >= 0).all()
    assert (np.diff(there.candidates.views) >= 0).all()
    assert Table(numbers(), groups=[["a", "c"]]).at(0).names == ("a, c", "b")


def one_hot():
    color = np.random.default_rng(1).choice(3, N)
    return numbers().assign(**{f"color_{name}": (color == i).astype(int) for i, name in enumerate("rgb")})


@pytest.mark.parametrize("groups", ["auto", {"color": ["color_r", "color_g", "color_b"]}])
def test_indicators_are_one_attribute_about_the_one_that_is_true(groups):
    frame = one_hot()
    table = Table(frame, groups=groups)
    there = table.at(0)
    own = next(name for name in ("color_r", "color_g", "color_b") if frame[name][0] == 1)
    facts = [fact for fact in facts_of(there) if fact.attribute == "color"]
    assert facts == [Fact("color", own, "equals", value=1)]
    made = neighbors(table)
    assert (made[["color_r", "color_g", "color_b"]].sum(axis=1) == 1).all()
    stated = there.candidates.broken(1.0)[facts_of(there).index(facts[0])]
    assert stated == pytest.approx(1 - frame[own].mean())


def test_a_row_without_a_true_indicator_has_facts_about_all_of_them():
    frame = one_hot().drop(columns="color_b")
    row = int(np.flatnonzero(frame[["color_r", "color_g"]].sum(axis=1) == 0)[0])
    facts = facts_of(Table(frame, groups="auto").at(row))
    assert [fact for fact in facts if fact.attribute == "color"] == [
        Fact("color", name, "equals", value=0) for name in ("color_r", "color_g")
    ]


def test_auto_groups_need_indicators():
    assert Table(numbers(), groups="auto").groups == {}
    halves = numbers().assign(yes=lambda f: (f["b"] > 20).astype(int), no=lambda f: (f["b"] <= 20).astype(int))
    assert list(Table(halves, groups="auto").groups.values()) == [["yes", "no"]]


SAME = {
    "twelve times": lambda f: 12 * f["a"],
    "reversed": lambda f: -f["a"],
    "as ranks": lambda f: f["a"].rank(),
    "as dates": lambda f: pd.Timestamp("2020-01-01") + pd.to_timedelta(f["a"].rank(), "D"),
}


@pytest.mark.parametrize("how", SAME)
def test_numbers_with_equal_or_reversed_ranks_are_one_attribute(how):
    frame = numbers().assign(same=SAME[how])
    table = Table(frame)
    assert members(table) == [("a", "same"), ("b",), ("c",)]
    assert {fact.column for fact in facts_of(table.at(0)) if fact.attribute == "a"} == {"a"}
    rows = set(zip(frame["a"], frame["same"], strict=True))
    assert set(zip(*(neighbors(table)[name] for name in ("a", "same")), strict=True)) <= rows


def test_missing_values_must_be_those_of_the_same_rows():
    frame = numbers().assign(half=lambda f: f["a"] / 2)
    frame.loc[:9, ["a", "half"]] = np.nan
    assert members(Table(frame))[0] == ("a", "half")
    frame.loc[10, "half"] = np.nan
    assert members(Table(frame))[0] == ("a",)


def test_categories_that_correspond_one_to_one_are_one_attribute():
    frame = numbers()
    codes = frame["c"].map({"u": "first", "v": "second", "w": "third"})
    assert members(Table(frame.assign(code=codes))) == [("a",), ("b",), ("c", "code")]
    number = frame["c"].map({"u": 30, "v": 10, "w": 20})
    table = Table(frame.assign(number=number))
    assert members(table) == [("a",), ("b",), ("c", "number")]
    assert {fact.column for fact in facts_of(table.at(0)) if fact.attribute == "c"} == {"number"}
    assert members(Table(frame.assign(rough=frame["c"].map({"u": "x", "v": "x", "w": "y"})))) == [
        *[("a",), ("b",), ("c",), ("rough",)]
    ]
    flag = np.random.default_rng(5).random(N) < 0.4
    assert members(Table(pd.DataFrame({"smokes": flag, "abstains": ~flag}))) == [("smokes", "abstains")]


def test_categories_with_many_levels_may_correspond_by_chance():
    names = [f"n{i}" for i in range(N // 5)] * 5
    frame = pd.DataFrame({"name": names, "code": [name.upper() for name in names]})
    assert members(Table(frame)) == [("name",), ("code",)]


def test_columns_with_one_value_are_not_the_same_thing():
    frame = numbers().assign(one=1, two=2, none=np.nan)
    assert members(Table(frame)) == [("a",), ("b",), ("c",), ("one",), ("two",), ("none",)]


# --- columns that never change --------------------------------------------------------------------------


def test_fixed_columns_never_change_and_are_not_stated():
    table = Table(numbers(), fixed=["a"])
    assert table.at(0).names == ("b", "c")
    assert neighbors(table, q=1.0)["a"].nunique() == 1
    assert "a" not in {fact.column for fact in facts_of(table.at(0))}
    assert table.at(0).held == ("a",)


def test_columns_that_the_model_does_not_read_never_change():
    table = Table(numbers(), fixed=["c"]).holding(["a", "target"])
    assert members(table) == [("b",)]
    assert table.at(0).held == ("a", "c")
    made = neighbors(table, q=1.0)
    assert made["a"].nunique() == made["c"].nunique() == 1
    assert made["b"].nunique() > 10


def test_a_group_changes_with_a_column_that_the_model_does_not_read():
    table = Table(numbers(), groups={"both": ["a", "c"]}).holding(["a"])
    assert members(table) == [("a", "c"), ("b",)]
    assert {fact.column for fact in facts_of(table.at(0))} == {"b", "c"}
    assert table.at(0).held == ()
    assert members(table.holding(["c"])) == [("b",)]


def test_the_same_thing_is_stated_of_the_column_that_the_model_reads():
    table = Table(numbers().assign(double=lambda f: 2 * f["a"])).holding(["a"])
    assert members(table) == [("b",), ("c",), ("double",)]


def test_holding_leaves_the_table_as_it_was():
    table = Table(numbers())
    before = table.at(0).candidates.n_facts
    table.holding(["a"])
    assert table.at(0).candidates.n_facts == before
    assert table.fingerprint == table.holding(["a"]).fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"groups": {"g": ["a", "z"]}},
            r"groups\['g'\] has 'z', which the table lacks. Choose from its columns: 'a'",
        ),
        ({"groups": {"g": []}}, "Group 'g' is .*must have at least one column"),
        ({"groups": {"g": ["a", "b"], "h": ["b", "c"]}}, "every column must be in one group only"),
        ({"groups": {"g": ["a", "b"]}, "fixed": ["a"]}, "in one group only and not in fixed"),
        ({"groups": {"c": ["a", "b"]}}, "Group 'c' has the same name as a column outside it. Rename the group"),
        ({"groups": "all"}, r"groups is 'all'; it must be a mapping or a list of lists. Type, say, groups=\{"),
        ({"groups": ["a", "b"]}, r"groups has 'a'; every group must be a list of columns. Type groups=\["),
        ({"groups": {"g": "a"}}, r"groups\['g'\] is 'a'; it must be a list of columns. Type .*\['a'\]"),
        ({"fixed": "a"}, r"fixed is 'a'; it must be a list of columns. Type fixed=\['a'\]"),
        ({"fixed": ["z"]}, "fixed has 'z', which the table lacks"),
        ({"categorical": ["z"]}, "categorical has 'z', which the table lacks"),
        ({"categorical": {"b": "x"}}, r"categorical\['b'\] is 'x'; it must be a mapping. Type"),
        ({"categorical": {"b": {99: "x"}}}, r"categorical\['b'\] names '99', but none of these is a level"),
        ({"categorical": {"b": {1: "x", 2: "x"}}}, "calls two levels 'x'"),
        ({"neighbors": "similar"}, "neighbors is 'similar'; it must be 'independent' or 'realistic'. Type"),
        ({"reference": numbers()[:0]}, "reference has shape .*must have at least one row"),
        ({"reference": numbers()[["a"]]}, "reference must have the columns of the table: 'a', 'b', 'c'. Type"),
        ({"reference": numbers().assign(b="x")}, "reference does not fit the table. .*'x' is not a number"),
    ],
)
def test_options_that_do_not_fit_are_named(options, message):
    with pytest.raises(ParameterError, match=message):
        Table(numbers(), **options)


@pytest.mark.parametrize("gone", ["n_bins", "within", "draw", "literals", "rare", "donors"])
def test_keywords_that_are_gone_name_their_successors(gone):
    with pytest.raises(TypeError, match=f"no longer has the keyword '{gone}'.*(Leave it out|Add cuts)"):
        Table(numbers(), **{gone: 3})


def test_a_keyword_that_is_misspelled_is_named():
    with pytest.raises(TypeError, match=r"unexpected keyword 'fixd'. Did you mean 'fixed'\?"):
        Table(numbers(), fixd=["a"])
