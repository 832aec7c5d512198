"""Where numbers and dates are cut: heavy values, quantiles, ranks around the row, the user's cuts; their texts."""

import decimal
import itertools

import numpy as np
import pandas as pd
import pytest

from anchorline.errors import ParameterError
from anchorline.spaces.table import Table
from helpers.table_facts import facts_of

SHAPES = {
    "normal": lambda rng: rng.normal(size=700),
    "zeros": lambda rng: np.where(rng.random(700) < 0.7, 0.0, rng.lognormal(size=700)),
    "two heavy values": lambda rng: (
        rng.choice([0.0, 1.0, 5.0], 700, p=[0.3, 0.3, 0.4]) + (rng.random(700) < 0.4) * rng.random(700)
    ),
    "rounded": lambda rng: rng.gamma(2, 20_000, 700).round(-3),
    "counts": lambda rng: rng.poisson(30, 700).astype(float),
    "one heavy tail": lambda rng: np.exp(rng.normal(size=700) * 6),
    "holes": lambda rng: np.where(rng.random(700) < 0.5, np.nan, rng.normal(size=700)),
}


def cuts_of(values, own, **options):
    """The lowest values above the cuts around a row."""
    return Table(pd.DataFrame({"x": values}), **options).at({"x": own}).views.edges[0]


def splits(edges, present):
    """The numbers of rows below each cut."""
    return {int((present < edge).sum()) for edge in edges}


@pytest.fixture(params=[(shape, seed) for shape in SHAPES for seed in range(3)], ids=str)
def case(request):
    """A column, its values, and the value of a row: of a training row, or new."""
    shape, seed = request.param
    rng = np.random.default_rng(seed)
    column = SHAPES[shape](rng)
    present = column[~np.isnan(column)]
    own = [present[0], float(np.median(present)) + 0.1234, present.max() + 5][seed]
    return column, present, own


def test_heavy_values_have_a_cut_on_each_side(case):
    column, present, own = case
    found = splits(cuts_of(column, own), present)
    values, counts = np.unique(present, return_counts=True)
    for value in values[counts > 0.05 * len(column)].tolist():
        for n_below in (int((present < value).sum()), int((present <= value).sum())):
            assert n_below in {0, len(present)} | found


def test_the_other_rows_are_cut_at_quantiles(case):
    """Between two cuts there are at most m / 20 of the m other rows, a tenth more, and ties."""
    column, present, own = case
    values, counts = np.unique(present, return_counts=True)
    others = present[np.isin(present, values[counts <= 0.05 * len(column)])]
    ends = [-np.inf, *cuts_of(column, own), np.inf]
    for low, high in itertools.pairwise(ends):
        inside = others[(others >= low) & (others < high)]
        ties = max(counts[np.isin(values, inside)], default=0)
        assert len(inside) <= np.ceil(len(others) / 20) + 2 * (len(others) // 200) + ties


def test_ranks_on_both_sides_of_the_row_are_cut(case):
    """For d = 8, 16, 32, ..., a cut has at least d rows between it and the row, and at most d / 8 more."""
    column, present, own = case
    found = splits(cuts_of(column, own), present)
    values = np.unique(present)
    for distance in 8 * 2 ** np.arange(8):
        for n in (distance, distance + distance // 8):
            above = [v for v in values if v > own and ((present > own) & (present < v)).sum() >= n]
            below = [v for v in values if v < own and ((present >= v) & (present < own)).sum() >= n]
            ends = [int((present < edge).sum()) for edge in [*above[:1], *below[-1:]]]
            if n == distance:
                near = ends
        for first, last in zip(near, ends, strict=False):
            assert {0, len(present), *found} & set(range(min(first, last), max(first, last) + 1))


def test_no_two_cuts_divide_the_rows_in_the_same_way(case):
    column, present, own = case
    edges = cuts_of(column, own)
    assert (np.diff(edges) > 0).all()
    with_own = np.append(present, own)
    assert len(splits(edges, with_own)) == len(edges)
    assert len(edges) <= 60


def test_few_values_are_all_cut():
    values = np.array([1.0, 2, 2, 2, 5, 9, 9.5] * 20)
    assert splits(cuts_of(values, 5.0), values) == splits([2, 5, 9, 9.5], values)
    assert splits(cuts_of(values, 3.0), np.append(values, 3.0)) == splits(
        [2, 3, 5, 9, 9.5], np.append(values, 3.0)
    )


def test_a_stump_in_a_rare_region_is_reached():
    values = np.arange(2000.0)
    found = splits(cuts_of(values, 1990.0), values)
    assert all(any(1990 - d - d // 8 <= cut <= 1990 - d for cut in found) for d in (8, 16, 32))
    found = splits(cuts_of(values, 1500.0), values)
    assert any(1500 + 8 <= cut <= 1500 + 10 for cut in found)


def test_the_users_cuts_are_added_as_they_are():
    values = np.random.default_rng(0).normal(size=500) * 10
    table = Table(pd.DataFrame({"x": values}), cuts={"x": [3.14159, -7]})
    facts = facts_of(table.at({"x": 1.0}))
    assert 3.14159 in [fact.high for fact in facts]
    assert -7 in [fact.low for fact in facts]
    days = pd.date_range("2020-01-01", periods=500)
    table = Table(pd.DataFrame({"day": days}), cuts={"day": ["2020-03-04T12:00"]})
    assert "2020-03-04T12:00" in [fact.high for fact in facts_of(table.at(0))]


def test_cuts_beyond_all_rows_are_not_offered():
    values = np.arange(100.0)
    facts = facts_of(Table(pd.DataFrame({"x": values}), cuts={"x": [-50, 500]}).at(50))
    assert not {-50, 500} & {bound for fact in facts for bound in (fact.low, fact.high)}


# --- how a cut is written -------------------------------------------------------------------------------


def digits(number):
    """How many decimal places a number needs; -2 for hundreds."""
    return -decimal.Decimal(repr(float(number))).normalize().as_tuple().exponent


def shortest(low, high):
    """The fewest decimal places of a number above low and at most high."""
    for places in range(-20, 330):
        unit = decimal.Decimal(1).scaleb(-places)
        least = (decimal.Decimal(low) / unit).to_integral_value(decimal.ROUND_FLOOR) + 1
        if least * unit <= decimal.Decimal(high):
            return places
    raise AssertionError


@pytest.mark.parametrize("shape", ["normal", "rounded", "counts", "zeros", "one heavy tail"])
def test_bounds_are_the_shortest_numbers_in_their_gaps(shape):
    values = SHAPES[shape](np.random.default_rng(1))
    own = float(values[0])
    facts = facts_of(Table(pd.DataFrame({"x": values})).at(0))
    bounds = {bound for fact in facts for bound in (fact.low, fact.high) if bound is not None}
    assert len(bounds) > 10
    for bound in bounds:
        below, above = values[values < bound].max(), values[values >= bound].min()
        assert below < bound <= above
        assert digits(bound) <= shortest(float(below), float(above)) or bound == 0
        assert not below < own < bound


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
def test_quantiles_of_many_rows_move_to_short_numbers(scale):
    """Without moving, the gaps between 40,000 values would need six digits; a move is at most 0.5% of the rows."""
    values = np.random.default_rng(0).lognormal(size=40_000) * scale
    frame = pd.DataFrame({"x": values})
    table = Table(frame)
    edges = {edge for edge in table.at(0).views.edges[0]} & {edge for edge in table.at(1).views.edges[0]}
    shared = sorted(values.searchsorted(edge, sorter=values.argsort()) / 400 for edge in edges)
    assert all(min(abs(5 * i - percent) for percent in shared) <= 0.501 for i in range(1, 20))
    bounds = {bound for fact in facts_of(table.at(0)) for bound in (fact.low, fact.high) if bound is not None}
    lengths = [len(decimal.Decimal(repr(float(bound))).normalize().as_tuple().digits) for bound in bounds]
    assert sum(length <= 3 for length in lengths) >= 19


def test_quantiles_of_dates_move_to_short_ones():
    moments = pd.Timestamp("2000-01-01") + pd.to_timedelta(np.random.default_rng(0).random(20_000) * 9e8, "s")
    facts = facts_of(Table(pd.DataFrame({"x": moments})).at(0))
    bounds = {bound for fact in facts for bound in (fact.low, fact.high) if bound}
    assert sum(bound.endswith("-01") for bound in bounds) >= 17


def test_bounds_as_a_person_would_write_them():
    values = np.r_[np.full(50, 38_940.0), np.full(50, 39_187.5), np.full(50, 51_203.25)]
    facts = facts_of(Table(pd.DataFrame({"income": values})).at(50))
    assert sorted((fact.kind, fact.low, fact.high) for fact in facts if fact.kind != "equals") == [
        ("at_least", 39_000, None),
        ("below", None, 50_000),
    ]


@pytest.mark.parametrize(
    ("first", "second", "written"),
    [
        ("2019-12-30", "2021-06-05", "2021-01-01"),
        ("2020-03-04", "2020-09-04", "2020-07-01"),
        ("2020-03-04", "2020-03-20", "2020-03-13"),
        ("2020-03-04T10:00", "2020-03-04T20:00", "2020-03-04T16:00"),
        ("2020-03-04T10:10", "2020-03-04T10:20", "2020-03-04T10:16"),
        ("2020-03-04T10:10:00", "2020-03-04T10:10:01", "2020-03-04T10:10:01"),
        ("2020-03-04T10:10:00.000001", "2020-03-04T10:10:00.000002", "2020-03-04T10:10:00.000002"),
        ("1850-05-05", "1850-05-06", "1850-05-06"),
    ],
)
def test_dates_are_written_in_the_largest_unit(first, second, written):
    days = np.array(["1700-01-01", first, second, "2100-01-01"], dtype="M8[us]")
    facts = facts_of(Table(days[:, None]).at(2))
    assert written in [fact.low for fact in facts if fact.kind == "at_least"]


def test_cuts_that_cannot_be_made_are_named():
    frame = pd.DataFrame(
        {"age": [1, 2, 3], "town": ["a", "b", "c"], "day": pd.date_range("2020-01-01", periods=3)}
    )
    for cuts, message in [
        ({"town": [1]}, "cuts has 'town', read as categories; only numbers and dates are cut"),
        ({"ages": [1]}, "cuts has 'ages', which the table lacks"),
        (
            {"age": ["old"]},
            r"cuts\['age'\] is \['old'\]; it must list finite numbers .* Type cuts={'age': \[30, 40\]}",
        ),
        ({"age": [np.inf]}, "it must list finite numbers"),
        ({"age": []}, "it must list finite numbers"),
        ({"age": 30}, "it must list finite numbers"),
        ({"day": ["soon"]}, r"it must list dates .* Type cuts={'day': \['2018-03-04'\]}"),
        ([30], r"cuts is \[30\]; it must be a mapping. Type cuts="),
    ]:
        with pytest.raises(ParameterError, match=message):
            Table(frame, cuts=cuts)
    with pytest.raises(ParameterError, match="cuts has 'age', also listed in fixed"):
        Table(frame, cuts={"age": [2]}, fixed=["age"])
    with pytest.raises(ParameterError, match="cuts has 'age', read as categories"):
        Table(frame, cuts={"age": [2]}, categorical=["age"])
