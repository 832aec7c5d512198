"""Frontiers as records: figures on the search's moments, JSON round trips, text and frames."""

import pickle

import pytest

from anchorline.errors import CertificateError, FormatError, TamperedError
from anchorline.result.frontier import Frontier, FrontierPoint
from helpers.made import DEBT, INCOME, PRICE, TABLE, made_explanation, with_changes

NONE = FrontierPoint(0, (), (), "proven", 0.09, 0.09)
ONE = FrontierPoint(1, (INCOME,), (0.25,), "proven", 0.045, 0.045)
TWO = FrontierPoint(2, (INCOME, DEBT), (0.25, 0.1), "limit", 0.0225, 0.02)


def made_frontier(**changes):
    """Return a frontier of a price, with any figures changed."""
    figures = {
        "prediction": 0.97,
        "output": PRICE,
        "points": (ONE, TWO),
        "baseline": 0.09,
        "n_queries": 2001,
        "settings": {"sigma": 1.0},
        "space": TABLE,
        "versions": {"anchorline": "0.2.0"},
    }
    return Frontier(**figures | changes)


def test_figures_follow_from_the_search():
    frontier = made_frontier(points=(NONE, ONE, TWO))
    assert frontier.r2 == pytest.approx((0, 0.5, 0.75))
    assert frontier.errors == pytest.approx((0.3, 0.045**0.5, 0.15))
    assert repr(frontier) == "Frontier('price', prediction=0.97, k = 0, 1, 2)"
    still = with_changes(NONE, objective=-1e-18, lower_bound=-1e-18)  # a model that never changes its answer
    assert made_frontier(points=(still,), baseline=0.0).r2 == (1.0,)
    assert made_frontier(points=(still,), baseline=0.0).errors == (0.0,)


def test_texts_have_one_line_per_number_of_facts():
    assert str(made_frontier()).splitlines() == [
        "k    R2  typical error  facts",
        "0  0.00       0.30 USD  none",
        "1  0.50       0.21 USD  income < 39,000",
        "2  0.75       0.15 USD  income < 39,000, debt >= 7,000",
        "These are figures of the search; an explanation is measured on fresh copies.",
    ]


def test_pictures_are_drawn_by_the_room_above():
    pytest.importorskip("matplotlib").use("agg")
    assert made_frontier().plot().get_ylim()[1] >= 1


def test_frames_have_one_row_per_number_of_facts():
    frame = made_frontier().to_frame("pandas")
    assert frame["k"].tolist() == [1, 2]
    assert frame["r2"].tolist() == pytest.approx([0.5, 0.75])
    assert frame["facts"].tolist() == ["income < 39,000", "income < 39,000 and debt >= 7,000"]


def test_round_trips_are_byte_identical():
    frontier = made_frontier()
    again = Frontier.from_json(frontier.to_json())
    assert again == frontier
    assert again.to_json() == frontier.to_json()
    assert pickle.loads(pickle.dumps(frontier)) == frontier
    with pytest.raises(TypeError):
        hash(frontier)
    with pytest.raises(TamperedError, match="does not match"):
        Frontier.from_json(frontier.to_json().replace("0.97", "0.98"))
    with pytest.raises(FormatError, match="kind is 'explanation'"):
        Frontier.from_json(made_explanation().to_json())


@pytest.mark.parametrize(
    "points",
    [
        (TWO, ONE),
        (ONE, ONE),
        (with_changes(ONE, k=0),),
        (with_changes(ONE, contributions=()),),
        (with_changes(ONE, lower_bound=0.05),),
        (with_changes(ONE, objective=float("nan")),),
    ],
)
def test_figures_that_contradict_each_other_are_refused(points):
    with pytest.raises(CertificateError):
        made_frontier(points=points)
