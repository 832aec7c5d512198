"""Which bounds a number or date offers, their texts, and what they say together."""

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.spaces.columns import shortest_number
from anchorline.spaces.joining import held_together
from helpers.tables import broken_by


def texts(column, value, literals="bounds", **options):
    frame = pd.DataFrame({"x": column, "other": np.arange(len(column)) % 2})
    return [x.text for x in al.Table(frame, literals=literals, **options).at([value, 0]).literals if x.name == "x"]


def test_a_bounded_interval_offers_itself_and_both_bounds():
    assert texts(range(100), 30) == ["25 <= x < 50", "x >= 25", "x < 50"]


def test_an_open_interval_is_its_bound():
    assert texts(range(100), 3) == ["x < 25"]
    assert texts(range(100), 99) == ["x >= 75"]


def test_every_cut_is_a_threshold():
    cuts = {"x": [10, 20, 30, 40]}
    assert texts(range(50), 25, "thresholds", cuts=cuts) == [
        *("20 <= x < 30", "x >= 20", "x >= 10", "x < 30", "x < 40"),
    ]


def test_a_bound_that_no_number_breaks_is_not_offered():
    """No training value is above 30, so the interval and its lower bound say the same about neighbors."""
    values = [*range(30), None]
    assert texts(values, 25.0, cuts={"x": [20, 30]}) == ["20 <= x < 30"]
    assert texts(values, 15.0, cuts={"x": [10, 20, 30]}) == ["10 <= x < 20", "x >= 10", "x < 20"]


def test_a_value_in_an_interval_of_its_own_has_bounds_too():
    assert texts([0] * 50 + list(range(-25, 0)) + list(range(1, 26)), 0)[:3] == ["x = 0", "x >= 0", "x < 1"]


def test_missing_values_categories_and_groups_offer_one_literal():
    frame = pd.DataFrame({"x": [None, *range(9)], "c": list("abcdeabcde"), "y": range(10)})
    table = al.Table(frame, literals="bounds", groups={"both": ["x", "y"]})
    assert [literal.name for literal in table.at(0).literals] == ["both", "c"]
    alone = al.Table(frame, literals="bounds").at({"x": None, "c": "a", "y": 0})
    assert [literal.text for literal in alone.literals if literal.name == "x"] == ["x is missing"]


def test_dates_have_bounds():
    days = pd.Series(pd.date_range("2024-01-01", periods=100))
    assert texts(days, "2024-02-10") == ["2024-01-26 <= x < 2024-02-20", "x >= 2024-01-26", "x < 2024-02-20"]
    zoned = texts(days.dt.tz_localize("UTC"), "2024-02-10")
    assert zoned[1:] == ["x >= 2024-01-26 UTC", "x < 2024-02-20 UTC"]


def test_shares_are_those_of_the_training_rows():
    frame = pd.DataFrame({"x": [1.0] * 10 + [5.0] * 20 + [9.0] * 30 + [None] * 40, "y": range(100)})
    hood = al.Table(frame, literals="bounds").at([5.0, 0])
    below, above, missing = hood.changes[0]
    assert [below.share, above.share, missing.share] == pytest.approx([10 / 80, 30 / 80, 40 / 80])
    assert (below.breaks, above.breaks, missing.breaks) == ((0, 1), (0, 2), (0, 1, 2))


def test_which_literals_another_row_breaks():
    frame = pd.DataFrame({"x": [*range(99), None], "c": list("ab") * 50})
    table = al.Table(frame, literals="thresholds", cuts={"x": [20, 40, 60]})
    hood = table.at([30, "a"])
    assert [literal.text for literal in hood.literals] == [
        *("20 <= x < 40", "x >= 20", "x < 40", "x < 60", "c = a"),
    ]
    assert broken_by(hood, table.at([50, "a"])) == [True, False, True, False, False]
    assert broken_by(hood, table.at([None, "b"])) == [True] * 5


@pytest.mark.parametrize("literals", ["bound", None, 3])
def test_other_literals_are_refused(literals):
    with pytest.raises(ParameterError, match=r"literals is .*bounds, intervals, thresholds.*Type literals="):
        al.Table(pd.DataFrame({"x": [1, 2]}), literals=literals)


# --- what bounds say together ------------------------------------------------------------------------


def joined(value, cuts, chosen, within="keep"):
    frame = pd.DataFrame({"x": range(100), "c": list("ab") * 50})
    hood = al.Table(frame, literals="thresholds", cuts={"x": cuts}, within=within).at([value, "a"])
    literals = {literal.text: literal for literal in hood.literals}
    return [text for _, text in held_together([literals[text] for text in chosen])]


@pytest.mark.parametrize(
    ("chosen", "kept", "redrawn"),
    [
        (["x >= 20"], "x keeps its value 25 or takes a higher one", "x >= 20"),
        (["x >= 20", "x < 30"], "x keeps its value 25", "20 <= x < 30"),
        (["20 <= x < 30", "x >= 20"], "x keeps its value 25", None),
        (["x >= 20", "x < 40"], "x keeps its value 25 or takes a higher one < 40", "20 <= x < 40"),
        (["x >= 10", "x < 30"], "x keeps its value 25 or takes a lower one >= 10", "10 <= x < 30"),
        (["x >= 10", "x < 40"], "x keeps its value 25 or takes another one with 10 <= x < 40", "10 <= x < 40"),
        (["x >= 10"], "x keeps its value 25 or takes another one >= 10", "x >= 10"),
        (["x >= 20", "x >= 10"], "x keeps its value 25 or takes a higher one", None),
    ],
)
def test_bounds_of_one_attribute_are_joined(chosen, kept, redrawn):
    assert joined(25, [10, 20, 30, 40], chosen) == [kept]
    if redrawn:
        assert joined(25, [10, 20, 30, 40], chosen, "redraw") == [redrawn]


def test_texts_of_other_spaces_are_left_alone():
    literals = [al.Literal("word", "word is long"), al.Literal("word", "word >= b"), al.Literal("z", "z")]
    assert held_together(literals) == [("word", "word is long"), ("word", "word >= b"), ("z", "z")]


# --- edges -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("low", "high", "near", "expected"),
    [
        (7.1417, 7.225, 7.1506, 7.2),
        (0.1449999958, 0.14599999785, 0.1459, 0.145),  # float32
        (0.299, 0.3, 0.2999, 0.3),
        (31.0, 33.0, 32.25, 33.0),
        (99.3, 100.5, 99.9, 100.0),
        (-5.0, 97.0, 46.0, 50.0),
        (-0.003, 0.0, -0.001, 0.0),
        (1.0, np.nextafter(1.0, 2), 1.0, np.nextafter(1.0, 2)),
        (1e300, 1.7e308, 1e305, 1e308),
        (0.0, 5e-324, 0.0, 5e-324),
    ],
)
def test_an_edge_is_the_shortest_number_that_splits_in_the_same_way(low, high, near, expected):
    number = shortest_number(low, high, near)
    assert low < number <= high
    assert number == expected


def test_any_two_numbers_can_be_split():
    rng = np.random.default_rng(0)
    for scale in 10.0 ** rng.integers(-300, 300, 500):
        low, high = sorted(rng.normal(size=2) * scale)
        assert low < shortest_number(low, high, rng.uniform(low, high)) <= high
