"""Similar neighbors: drawn attributes take the values of one similar row, which decides which literals break."""

import itertools

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.spaces import similar as library
from helpers.donors import (
    CUTS,
    broken_rules,
    costs,
    dependent_frame,
    ordered_rows,
    plain_columns,
    similar_weights,
    ways_of,
)
from helpers.tables import broken_by


def table_of(frame, **options):
    return al.Table(frame, **{"cuts": CUTS, "neighbors": "similar", "literals": "intervals"} | options)


def decide(table, row, draws, n=1, seed=1):
    drawn = np.tile(np.array(draws, dtype=np.uint8), (n, 1))
    return table.at(row).decide(drawn, np.random.default_rng(seed))


@pytest.mark.parametrize(("at", "pool"), [(0, 256), (7, 256), (7, 32), (11, 32)])
def test_donors_have_the_probabilities_of_their_definition(at, pool, monkeypatch):
    """An implementation by the definition in docs/tables.md gives the same donors, as often, for 12 patterns."""
    monkeypatch.setattr(library, "POOL", pool)
    frame, n = dependent_frame(200), 2000
    table = table_of(frame)
    row, rows = frame.iloc[at], ordered_rows(table, frame)
    ways = ways_of(rows, row, CUTS)
    own = [None if pd.isna(v) else v for v in row.tolist()]
    table_costs, unit = costs(plain_columns(rows), own)
    rules = broken_rules(plain_columns(rows), own)
    identify = {v: i for name in ("size", "weight") for i, v in enumerate(rows[name])}
    for wanted in itertools.product([False, True], repeat=4):
        if not wanted[0] and not wanted[1]:  # these two identify the donor
            continue
        neighbors, changed = decide(table, row, wanted, n)
        seen = [identify[value] for value in neighbors.iloc[:, 0 if wanted[0] else 1]]
        expected = similar_weights(table_costs, unit, ways, wanted, rules, pool_size=pool)
        counts = pd.Series(seen).value_counts()
        assert set(counts.index) <= set(expected)
        for donor, share in expected.items():
            assert abs(counts.get(donor, 0) / n - share) < 5 * np.sqrt(share * (1 - share) / n)
        broken = np.array(ways)[:, seen].T * np.array(wanted)
        np.testing.assert_array_equal(changed, broken)


@pytest.mark.parametrize("options", [{}, {"literals": "bounds"}, {"groups": [["size", "weight"]], "cuts": {}}])
def test_literals_break_exactly_where_the_values_break_them(options):
    frame = dependent_frame(150)
    table = table_of(frame, **options)
    here = table.at(frame.iloc[3])
    case = al.Explainer(lambda rows: np.zeros(len(rows)), table, output_range=(-1, 1)).prepare(
        frame.iloc[3], al.settings.Settings.from_keywords()
    )
    draws, _ = case.stream("test", 300).rows(0, 300)
    neighbors, changed = here.decide(draws, np.random.default_rng(0))
    flips = case.law.flips(changed)
    for i in range(300):
        assert flips[i].tolist() == broken_by(here, table.at(neighbors.iloc[i]))
    drawn, broken = draws.any(axis=1), flips.any(axis=1)
    np.testing.assert_array_equal(drawn, broken)  # at least one literal breaks wherever something is drawn
    unchanged = neighbors[~drawn].drop_duplicates()
    pd.testing.assert_frame_equal(unchanged.reset_index(drop=True), here.original)
    assert 0 < flips.mean() < (draws > 0).mean()


def test_drawn_values_come_together_from_one_row_and_the_rest_stays():
    frame = dependent_frame()
    row = frame.iloc[3]
    drawn, _ = decide(table_of(frame), row, [1, 1, 0, 1], 400)
    known = set(map(tuple, frame[["size", "weight", "price"]].fillna(-99).to_numpy()))
    assert set(map(tuple, drawn[["size", "weight", "price"]].fillna(-99).to_numpy())) <= known
    assert (drawn["kind"] == row["kind"]).all()


def test_realize_returns_the_same_neighbors_as_decide():
    frame = dependent_frame(100)
    here = table_of(frame).at(frame.iloc[5])
    draws = np.random.default_rng(0).random((200, 4)) < 0.4
    decided, _ = here.decide(draws, np.random.default_rng(3))
    pd.testing.assert_frame_equal(here.realize(draws, np.random.default_rng(3)), decided)
    assert not here.deterministic


def test_many_attributes_are_compared_exactly():
    """With 300 attributes, sums exceed the whole numbers of single precision; the pool is as defined."""
    rng = np.random.default_rng(0)
    values = rng.integers(0, 2, size=(60, 300)).astype(str).astype(object)
    frame = pd.DataFrame(values, columns=[f"c{j}" for j in range(300)])
    table, row = al.Table(frame, neighbors="similar", literals="intervals", rare=0, donors=3), frame.iloc[0]
    rows = ordered_rows(table, frame)
    ways = ways_of(rows, row, {})
    table_costs, unit = costs(plain_columns(rows), row.tolist())
    for seed in range(5):
        wanted = np.random.default_rng(seed).random(300) < 0.9
        neighbors, changed = decide(table, row, wanted, 60)
        expected = similar_weights(table_costs, unit, ways, wanted, {}, n_donors=3)
        found = {tuple(each) for each in changed.tolist()}
        assert found == {tuple((np.array(ways)[:, i] * wanted).tolist()) for i in expected}
        assert len(neighbors) == 60


def test_a_rule_of_the_user_holds_and_flips_follow_the_values_that_meet_it():
    frame = dependent_frame(150)
    table = table_of(frame, valid=lambda rows: (rows["weight"] < 0.8).to_numpy())
    row = frame[frame["weight"] < 0.3].iloc[0]
    here = table.at(row)
    draws = np.random.default_rng(0).random((300, 4)) < 0.4
    neighbors, changed = here.decide(draws, np.random.default_rng(0))
    assert (neighbors["weight"] < 0.8).all()
    assert here.redrawn > 0
    for i in range(0, 300, 7):
        assert (changed[i] > 0).tolist() == broken_by(here, table.at(neighbors.iloc[i]))


def test_fixed_columns_and_missing_values_count_as_likeness():
    frame = dependent_frame(150)
    table = table_of(frame, fixed=["kind"])
    row = frame.iloc[2]
    assert len(table.at(row).literals) == 3
    neighbors, _ = decide(table, row, [1, 1, 0], 300)
    donors = frame.set_index("size").loc[neighbors["size"].unique(), "kind"]
    everyone = (frame["kind"] == row["kind"]).mean()
    assert (donors == row["kind"]).mean() > everyone


@pytest.mark.parametrize(
    ("options", "words"),
    [({"within": "redraw"}, "within is 'redraw'"), ({"draw": "marginal"}, "draw is 'marginal'")],
)
def test_options_that_do_not_fit_are_refused(options, words):
    with pytest.raises(ParameterError, match=words):
        table_of(dependent_frame(60), **options)


def test_a_large_table_donates_from_a_sample(monkeypatch):
    monkeypatch.setattr("anchorline.spaces.table.MAX_ROWS", 64)
    monkeypatch.setattr("anchorline.spaces.donor_index.MAX_ROWS", 64)
    monkeypatch.setattr("anchorline.spaces.donor_index._MAX_LEADERS", 32)
    frame = dependent_frame(400)
    table = table_of(frame)
    neighbors, changed = decide(table, frame.iloc[1], [1, 1, 1, 1], 500)
    donors = {tuple(each) for each in neighbors[["size", "weight"]].to_numpy()}
    assert len(donors) == 10
    assert donors <= {tuple(each) for each in frame[["size", "weight"]].to_numpy()}
    assert changed.any(axis=1).all()
