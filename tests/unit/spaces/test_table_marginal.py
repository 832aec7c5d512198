"""draw="marginal": a flipped attribute takes the value of any training row; valid=: the user's own rule."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import anchorline as al
from anchorline.errors import InstanceError, ParameterError
from anchorline.spaces.base import Law
from helpers.tables import broken_by

N = 240


def frame(seed=0):
    rng = np.random.default_rng(seed)
    crew = rng.random(N) < 0.3
    return pd.DataFrame(
        {
            "class": np.where(crew, "crew", rng.choice(["first", "third"], size=N)).astype(object),
            "fare": np.where(crew, 0.0, rng.uniform(5, 90, size=N)),
            "age": rng.integers(15, 70, size=N),
        }
    )


def fares_belong_to_classes(rows):
    return (rows["fare"] == 0) == (rows["class"] == "crew")


@pytest.mark.parametrize("neighbors", ["independent", "realistic"])
@pytest.mark.parametrize("literals", ["intervals", "bounds"])
def test_marginal_literals_break_as_often_as_in_the_table(neighbors, literals):
    table = al.Table(frame(), draw="marginal", neighbors=neighbors, literals=literals)
    here = table.at(frame().iloc[3])
    law = Law.of_changes(here.changes, len(here.literals), 0.5)
    rows = [table.at(frame().iloc[i]) for i in range(N)]
    shares = np.mean([broken_by(here, row) for row in rows], axis=0)
    assert law.literal_probabilities == pytest.approx(0.5 * shares)


@pytest.mark.parametrize("neighbors", ["independent", "realistic"])
def test_marginal_draws_realize_the_outcome_that_the_law_says(neighbors):
    table = al.Table(frame(), draw="marginal", neighbors=neighbors)
    here = table.at(frame().iloc[3])
    law = Law.of_changes(here.changes, len(here.literals), 0.5)
    rng = np.random.default_rng(0)
    draws = np.column_stack([rng.integers(0, len(ways) + 1, size=400) for ways in here.changes]).astype(np.uint8)
    drawn = here.realize(draws, rng)
    flips = law.flips(draws)
    for i in range(0, 400, 5):
        assert broken_by(here, table.at(drawn.iloc[i])) == flips[i].tolist()
    stays = draws[:, 2] == 2  # the second way of age: another value of its own interval
    assert drawn.loc[stays, "age"].nunique() > 1
    assert (drawn.loc[draws[:, 2] == 0, "age"] == frame()["age"][3]).all()


def test_marginal_values_have_the_distribution_of_the_column():
    here = al.Table(frame(), draw="marginal").at(frame().iloc[3])
    law = Law.of_changes(here.changes, len(here.literals), 1 - 2**-30)
    rng = np.random.default_rng(1)
    ends = np.cumsum(law.shares, axis=1)
    draws = np.column_stack([1 + np.searchsorted(end, rng.random(20_000)) for end in ends]).astype(np.uint8)
    drawn = here.realize(np.minimum(draws, law.n_ways), rng)
    for name in ("class", "age"):
        expected = frame()[name].value_counts(normalize=True)
        seen = drawn[name].value_counts(normalize=True).reindex(expected.index).fillna(0)
        assert np.abs(seen - expected).max() < 5 * np.sqrt(0.25 / 20_000)


def test_a_marginal_rule_states_the_interval_and_not_the_value():
    explainer = al.Explainer(lambda rows: rows["age"] / 100.0, al.Table(frame(), draw="marginal"))
    e = explainer.explain(3, k=2, n_samples=1000, n_certify=1000)
    assert e.terms[0].literal.held == e.terms[0].literal.text
    assert not e.certificate.keeps_values
    assert e.verify(lambda rows: rows["age"] / 100.0, space=explainer.space).holds


def test_marginal_tables_of_two_values_can_be_enumerated():
    table = al.Table(np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5), draw="marginal")
    explainer = al.Explainer(lambda rows: rows[:, 0] * 0.5 + rows[:, 1] * 0.25, table, output_range=(0, 1))
    e = explainer.explain(0, k=3)
    assert e.certificate.exhaustive
    assert table.fingerprint != al.Table(np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 5)).fingerprint


@pytest.mark.parametrize("options", [{"neighbors": "realistic"}, {"groups": [["class", "fare"]]}, {}])
def test_no_neighbor_breaks_the_rule(options):
    """Without donors or groups, a change of the class alone cannot be valid, and the error says so."""
    table = al.Table(frame(), valid=fares_belong_to_classes, literals="intervals", **options)
    here = table.at(frame().iloc[3])
    assert not here.independent_values
    rng = np.random.default_rng(0)
    flips = rng.random((800, len(here.literals))) < 0.3
    if "groups" in options:
        assert fares_belong_to_classes(here.realize(flips, rng)).all()
        return
    with pytest.raises(ParameterError, match=r"break the rule `valid`.*'(class|fare)'.*group them"):
        here.realize(flips, rng)
    both = np.tile([True, True, False], (800, 1))
    drawn = here.realize(both, rng)
    assert fares_belong_to_classes(drawn).all()


def test_the_share_drawn_again_is_recorded_and_verified():
    def positive(rows):
        return (rows["fare"] > 0) | (rows["class"] == "crew")

    passenger = frame().index[frame()["fare"] > 0][0]
    table = al.Table(frame(), valid=positive)
    explainer = al.Explainer(lambda rows: rows["fare"] / 100.0, table, output_range=(0, 1))
    e = explainer.explain(frame().iloc[passenger], k=3, n_samples=1000, n_certify=1000)
    assert 0 < e.redrawn < 0.3
    assert al.Explanation.from_json(e.to_json()) == e
    assert e.verify(lambda rows: rows["fare"] / 100.0, space=table).holds
    assert not e.verify(lambda rows: rows["fare"] / 100.0, space=al.Table(frame())).holds
    without = al.Explainer(lambda rows: rows["fare"] / 100.0, frame(), output_range=(0, 1))
    assert without.explain(passenger, k=3, n_samples=500, n_certify=0).redrawn is None


def test_values_that_meet_the_rule_keep_their_odds():
    """Rejection: the law of the values given that the rule holds."""
    here = al.Table(frame(), valid=lambda rows: rows["age"] < 40).at({"class": "crew", "fare": 0.0, "age": 16})
    drawn = here.realize(np.tile([False, False, True], (20_000, 1)), np.random.default_rng(0))
    outside = al.Table(frame()).at({"class": "crew", "fare": 0.0, "age": 16})
    ages = outside.realize(np.tile([False, False, True], (60_000, 1)), np.random.default_rng(1))["age"]
    expected = ages[ages < 40].value_counts(normalize=True)
    seen = drawn["age"].value_counts(normalize=True)
    assert set(seen.index) == set(expected.index)
    assert np.abs(seen - expected).max() < 0.02


def test_rules_receive_the_type_of_the_table_and_may_change_it():
    def rule(rows):
        rows["fare"] = -1.0
        rows["new"] = 0
        return np.ones(len(rows), dtype=bool)

    here = al.Table(frame(), valid=rule).at(3)
    drawn = here.realize(np.ones((50, 3), dtype=bool), np.random.default_rng(0))
    assert list(drawn.columns) == ["class", "fare", "age"]
    assert (drawn["fare"] >= 0).all()
    arrow = al.Table(pa.Table.from_pandas(frame()), valid=lambda rows: np.ones(rows.num_rows, dtype=bool)).at(3)
    assert arrow.realize(np.ones((5, 3), dtype=bool), np.random.default_rng(0)).num_rows == 5


def test_wrong_rules_are_named():
    with pytest.raises(ParameterError, match=r"^valid is 3"):
        al.Table(frame(), valid=3)
    with pytest.raises(ParameterError, match=r"one boolean per row"):
        _ = al.Table(frame(), valid=lambda rows: rows["fare"]).at(0).original
    with pytest.raises(ParameterError, match=r"one boolean per row"):
        _ = al.Table(frame(), valid=lambda rows: True).at(0).original
    with pytest.raises(InstanceError, match=r"^The row breaks the rule"):
        _ = al.Table(frame(), valid=lambda rows: rows["fare"] > 1000).at(0).original
    with pytest.raises(ParameterError, match=r"^draw is"):
        al.Table(frame(), draw="all")
