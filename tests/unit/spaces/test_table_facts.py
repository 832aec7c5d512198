"""Facts about table rows: every candidate is true of the row, and broken by exactly the neighbors that it says."""

import datetime as dt
import json

import numpy as np
import pandas as pd
import pytest

from anchorline.errors import ParameterError
from anchorline.facts import Fact
from anchorline.laws import Random
from anchorline.spaces.table import Table
from helpers.table_facts import all_true, facts_of, is_missing, is_true, true_of

Q = 0.7
EXTREMES = [-np.inf, np.inf, 1e308, -1e308, np.finfo(float).max, 5e-324, 0.0, -0.0, 1.5, 1e15 + 0.5]
KINDS = {
    "normal": lambda rng, n: rng.normal(size=n),
    "few": lambda rng, n: rng.integers(0, 5, n),
    "zeros": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.lognormal(size=n).round(2)),
    "holes": lambda rng, n: np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n).round(1)),
    "texts": lambda rng, n: rng.choice(["a", "b", "c"], n),
    "text holes": lambda rng, n: rng.choice(np.array(["x", None, "y", "1"], dtype=object), n),
    "dates": lambda rng, n: pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 4000, n), "h"),
    "zoned": lambda rng, n: pd.Timestamp("2020-01-01", tz="UTC") + pd.to_timedelta(rng.integers(0, 9, n), "s"),
    "booleans": lambda rng, n: rng.random(n) < 0.5,
    "constant": lambda rng, n: np.full(n, 7.5),
    "nothing": lambda rng, n: np.full(n, np.nan),
    "extremes": lambda rng, n: rng.choice(EXTREMES, n),
    "large": lambda rng, n: 2**60 + rng.integers(0, 2000, n),
    "hundreds": lambda rng, n: rng.integers(0, 1000, n) * 100,
    "tiny": lambda rng, n: rng.normal(size=n) * 1e-300,
}


def made(rng, n):
    """A frame of some of these columns, and options of a table."""
    kinds = rng.choice(list(KINDS), rng.integers(1, 7))
    frame = pd.DataFrame({f"{kind} {j}": KINDS[kind](rng, n) for j, kind in enumerate(kinds)})
    names, options = list(frame), {}
    if len(names) > 2 and rng.random() < 0.4:
        options["groups"] = {"group": names[:2]}
    if len(names) > 1 and rng.random() < 0.2:
        options["fixed"] = names[-1:]
    if rng.random() < 0.3:
        options["neighbors"] = "realistic"
    if rng.random() < 0.3:
        options["reference"] = frame[: max(1, n // 3)]
    cut = [name for name in names if frame[name].dtype.kind == "f" and name not in options.get("fixed", [])]
    if rng.random() < 0.3:
        options["cuts"] = {name: [0.0, 3] for name in cut}
    return frame, options


def some_row(rng, frame):
    """A row whose values come from several rows, or are new numbers."""
    row = frame.iloc[[0]].copy()
    for name in frame:
        row[name] = frame[name].iloc[[int(rng.integers(len(frame)))]].to_numpy()
        if frame[name].dtype.kind == "f" and rng.random() < 0.3:
            row[name] = rng.choice([0.77, -5.0, 1e6, np.nan, np.inf, -0.0])
    return row


@pytest.mark.parametrize("seed", range(60))
def test_facts_say_what_neighbors_break(seed):
    rng = np.random.default_rng(seed)
    frame, options = made(rng, int(rng.choice([1, 2, 5, 30, 200, 600])))
    table, row = Table(frame, **options), some_row(rng, frame)
    pool, there = options.get("reference", frame), table.at(row)
    candidates, facts = there.candidates, facts_of(there)
    donors = there.draw(200, Random.of(0, there.key, "a"), Q)
    neighbors = there.realize(donors)
    flips = candidates.flips(there.cells(donors), np.arange(len(facts)))
    np.testing.assert_array_equal(there.flips(donors, range(0, len(facts), 7)), flips[::7])
    broken = candidates.broken(Q)
    assert (neighbors.dtypes == frame.dtypes).all()
    assert len(set(facts)) == len(facts)
    for j, fact in enumerate(facts):
        assert is_true(fact, row[fact.column].iloc[0])
        np.testing.assert_array_equal(flips[j], ~true_of(fact, neighbors), err_msg=str(fact))
        true = true_of(fact, pool)
        assert broken[j] == pytest.approx(Q * (1 - true.mean()))
        assert not true.all()
        json.dumps([fact.low, fact.high, fact.value], allow_nan=False)
    for j in rng.permutation(len(facts))[:3].tolist():
        kept = there.realize(there.draw(50, Random.of(0, there.key, "b"), Q, [j]))
        assert true_of(facts[j], kept).all()


@pytest.mark.parametrize("seed", range(10))
def test_rows_with_facts_are_counted_by_what_the_facts_say(seed):
    rng = np.random.default_rng(100 + seed)
    frame, options = made(rng, 200)
    table = Table(frame, **options)
    facts = facts_of(table.at(some_row(rng, frame)))
    rows = pd.concat([rows for rows, _ in table.examples()], ignore_index=True)
    for _ in range(20 if facts else 0):
        chosen = [facts[j] for j in rng.integers(0, len(facts), 3)]
        np.testing.assert_array_equal(table.examples_with(chosen), all_true(chosen, rows))
    assert table.examples_with([]).all()


def test_of_a_large_table_10000_rows_are_examples():
    large = Table(np.arange(20_001.0)[:, None])
    assert len(large.examples_with([])) == sum(n for _, n in large.examples()) == 10_000


@pytest.mark.parametrize("seed", range(10))
def test_bounds_that_are_true_of_every_value_are_not_offered(seed):
    rng = np.random.default_rng(seed)
    frame, options = made(rng, 200)
    for fact in facts_of(Table(frame, **options).at(some_row(rng, frame))):
        if fact.kind in ("at_least", "below", "between"):
            present = frame[[not is_missing(value) for value in frame[fact.column]]]
            assert not true_of(fact, present).all()
            for low, high in ((fact.low, None), (None, fact.high)):
                half = Fact("", fact.column, "between", low=low, high=high)
                assert (low, high) == (None, None) or not true_of(half, present).all()


# --- one kind of value at a time ------------------------------------------------------------------------


def facts_about(values, own, **options):
    table = Table(pd.DataFrame({"x": values}), **options)
    return facts_of(table.at({"x": own}))


def only(kind, **parts):
    return Fact("x", "x", kind, **parts)


def test_missing_values_break_every_bound():
    frame = pd.DataFrame({"x": [*np.arange(60.0), *[np.nan] * 40]})
    there = Table(frame).at({"x": 30.0})
    missing = there.candidates.starts[1] - 1
    assert (there.candidates.last <= missing).all()
    assert there.candidates.shares[missing] == pytest.approx(0.4)
    assert (there.candidates.broken(1.0) >= 0.4).all()


def test_a_row_that_lacks_a_value_has_the_fact_that_it_is_missing():
    assert facts_about([1.0, 2.0, np.nan], None) == [only("missing")]
    assert facts_about(["a", None], None) == [only("missing")]
    assert facts_about([1.0, 2.0], None) == [only("missing")]
    assert facts_about([pd.Timestamp("2020-01-01"), pd.NaT], None) == [only("missing")]


def test_what_no_row_breaks_is_no_fact():
    assert facts_about([np.nan] * 5, None) == []
    assert facts_about([3.0] * 5, 3.0) == []
    assert facts_about(["a"] * 5, "a") == []
    assert facts_about([True] * 5, True) == []


def test_a_constant_is_a_fact_where_a_row_lacks_it_or_the_row_is_new():
    assert facts_about([3.0, 3.0, np.nan], 3.0) == [only("equals", value=3)]
    long = -0.044641636506989144  # nobody would write it
    assert facts_about([long, 0.05], long) == [only("below", high=0.01, value=long)]
    assert facts_about([long, long, np.nan], long) == [only("equals", value=long)]
    assert facts_about(["a", "a", None], "a") == [only("equals", value="a")]
    assert facts_about(["a"] * 5, "b") == [only("equals", value="b")]
    assert facts_about([3.0] * 5, 4.5) == [only("equals", value=4.5)]
    assert facts_about([np.nan] * 5, 4.5) == [only("equals", value=4.5)]


def test_booleans_and_two_values():
    assert facts_about([True, False, False], False) == [only("equals", value=False)]
    assert facts_about([0, 1, 1], 1) == [only("equals", value=1)]
    assert facts_about([-1.0, 1.0], 1.0) == [only("equals", value=1)]


def test_numbers_that_are_read_as_categories():
    (fact,) = facts_about([0, 1, 2, 1], 1, categorical=["x"])
    assert fact == only("equals", value=1)
    (fact,) = facts_about([0, 1, 2, 1], 1, categorical={"x": {0: "low", 1: "middle"}})
    assert fact == only("equals", value="middle")
    table = Table(pd.DataFrame({"x": [0, 1, 2, 1]}), categorical={"x": {0: "low", 1: "middle"}})
    assert table.examples_with([fact]).sum() == 2
    assert table.at({"x": 2}).fact(0) == only("equals", value=2)
    table = Table(pd.DataFrame({"x": [True, False, False]}), categorical={"x": {True: "yes", False: "no"}})
    assert table.at({"x": False}).fact(0) == only("equals", value="no")
    assert table.examples_with([only("equals", value="no")]).sum() == 2


@pytest.mark.parametrize("dtype", ["float32", "int8", "Int64", "Float64", "uint16"])
def test_numbers_of_any_type(dtype):
    facts = facts_about(pd.Series(np.arange(90) % 30, dtype=dtype), 12)
    assert only("at_least", low=12, value=12) in facts
    assert all(type(part) in (int, float, type(None)) for fact in facts for part in (fact.low, fact.high))


def test_whole_numbers_that_no_float_holds_are_told_apart_as_far_as_floats_do():
    values = 2**60 + np.arange(100)
    for fact in facts_about(values, int(values[50])):
        assert float(2**60) <= float(fact.low or 2**60)
    assert facts_about([2**60, 2**60 + 1], 2**60) == []


def test_infinite_values_are_texts_as_in_the_instance():
    values = [-np.inf, *range(5), np.inf]
    assert only("equals", value="Infinity") in facts_about(values, np.inf)
    assert only("equals", value="-Infinity") in facts_about(values, -np.inf)
    table = Table(pd.DataFrame({"x": values}))
    for fact in facts_of(table.at({"x": np.inf})):
        rows = pd.concat([rows for rows, _ in table.examples()])
        np.testing.assert_array_equal(table.examples_with([fact]), true_of(fact, rows))


def test_zero_and_minus_zero_are_one_number_for_facts_and_two_for_models():
    there = Table(np.array([[0.0], [-0.0], [-0.0], [3.0]])).at([-0.0])
    assert facts_of(there) == [Fact("x0", "x0", "equals", value=0)]
    assert there.candidates.broken(1.0).tolist() == [0.25]
    assert np.signbit(there.original[0, 0])
    assert len(there.listed(0.5, 10)[1]) == 3


def test_dates_are_written_as_days_or_moments():
    days = pd.date_range("2020-01-01", periods=300)
    facts = facts_about(days, days[100])
    assert {len(bound) for fact in facts for bound in (fact.low, fact.high) if bound} == {10}
    assert all(fact.value == "2020-04-10" for fact in facts)
    hours = pd.date_range("2020-01-01 00:30", periods=300, freq="h")
    facts = facts_about(hours, hours[100])
    assert all(fact.value == "2020-01-05T04:30" for fact in facts)
    assert all(dt.datetime.fromisoformat(fact.low) for fact in facts if fact.low)
    zoned = facts_about(days.tz_localize("Europe/Paris"), days[100].tz_localize("Europe/Paris"))
    assert all(fact.value == "2020-04-09T22:00Z" for fact in zoned)
    assert all(fact.low.endswith("Z") for fact in zoned if fact.low)


def test_ranks_prefer_bounds_to_intervals():
    there = Table(pd.DataFrame({"x": np.random.default_rng(0).normal(size=500)})).at(0)
    kinds = np.array([fact.kind for fact in facts_of(there)])
    ranks = there.candidates.ranks
    assert ranks[kinds != "between"].max() < ranks[kinds == "between"].min()


def test_facts_of_other_tables_are_refused():
    table = Table(pd.DataFrame({"x": [1, 2, 3]}))
    with pytest.raises(ParameterError, match="A fact is about 'y', which the table lacks: 'x'"):
        table.examples_with([Fact("y", "y", "equals", value=1)])
