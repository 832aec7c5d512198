"""Realistic neighbors: all flipped attributes take their values from one similar training row."""

import itertools

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.spaces import donor_index
from anchorline.spaces import donors as library
from anchorline.spaces import table as tables
from helpers import donors as reference
from helpers.donors import CUTS, dependent_frame, ordered_rows, plain_columns, ways_of
from helpers.tables import broken_by


def simulate(table, row, draws, identify, n=2000):
    """The donors of n neighbors, by the values of one column, which every training row has for itself."""
    drawn = table.at(row).realize(np.tile(np.array(draws), (n, 1)), np.random.default_rng(1))
    return [identify[value] for value in drawn.iloc[:, 0 if draws[0] else 1]]


def check_shares(seen, expected):
    """Every donor occurs as often as expected, within five standard deviations, and no other donor occurs."""
    n, counts = len(seen), pd.Series(seen).value_counts()
    assert set(counts.index) <= set(expected)
    for donor, share in expected.items():
        assert abs(counts.get(donor, 0) / n - share) < 5 * np.sqrt(share * (1 - share) / n) + 1e-9


@pytest.mark.parametrize(("at", "candidates"), [(0, 256), (7, 256), (7, 16), (11, 16)])
def test_donors_have_the_probabilities_of_their_definition(at, candidates, monkeypatch):
    """An implementation by the definition in docs/tables.md gives the same donors, as often, for all 12 patterns.

    With 16 candidates, some patterns need several donors.
    """
    monkeypatch.setattr(library, "FEWEST", 1)
    monkeypatch.setattr(library, "COMPARED", 4 * candidates)
    frame = dependent_frame(200)
    table = al.Table(frame, cuts=CUTS, neighbors="realistic", literals="intervals")
    row, rows = frame.iloc[at], ordered_rows(table, frame)
    ways = ways_of(rows, row, CUTS)
    own = [None if pd.isna(v) else v for v in row.tolist()]
    costs, unit = reference.costs(plain_columns(rows), own)
    broken = reference.broken_rules(plain_columns(rows), own)
    assert any(map(any, broken.values()))  # small, middle and large are sizes
    identify = {v: i for name in ("size", "weight") for i, v in enumerate(rows[name])}
    compared = 0
    for flips in itertools.product([False, True], repeat=4):
        if not flips[0] and not flips[1]:  # these two identify the donor
            continue
        donors = reference.donor_weights(costs, unit, ways, flips, broken, n_candidates=candidates)
        first = 0 if flips[0] else 1
        expected, later = {}, 0.0
        for donor, (share, given) in donors.items():
            if first in given:
                expected[donor] = share
                continue
            later += share
            rest = [flips[a] and a not in given for a in range(4)]
            settled = [a for a in range(4) if a in given]
            for second, (part, more) in reference.donor_weights(
                costs, unit, ways, rest, broken, settled, candidates
            ).items():
                assert first in more
                expected[second] = expected.get(second, 0) + share * part
        compared += 1
        check_shares(simulate(table, row, flips, identify), expected)
    assert compared == 12


def test_values_of_a_neighbor_come_together_from_one_row():
    frame = dependent_frame()
    table = al.Table(frame, cuts=CUTS, neighbors="realistic")
    row = frame.iloc[3]
    pairs = {tuple(pair) for pair in frame[["size", "weight"]].to_numpy()}
    flips = np.tile([True, True, False, False], (500, 1))
    drawn = table.at(row).realize(flips, np.random.default_rng(0))
    assert {tuple(pair) for pair in drawn[["size", "weight"]].to_numpy()} <= pairs
    assert (drawn["kind"] == row["kind"]).all()


def test_as_few_donors_as_possible_where_no_row_has_everything():
    """Of a and b never both differ from the row, so that two donors are needed, of which one gives c as well."""
    n = 60
    frame = pd.DataFrame({"a": ["no"] * n, "b": ["no"] * n, "c": ["no"] * n, "n": np.arange(n) * 1.0})
    frame.loc[:19, "a"], frame.loc[20:39, "b"], frame.loc[10:19, "c"] = "yes", "yes", "yes"
    table = al.Table(frame, neighbors="realistic", cuts={"n": [30.0]})
    row = {"a": "no", "b": "no", "c": "no", "n": 50.0}
    drawn = table.at(row).realize(np.tile([True, True, True, False], (200, 1)), np.random.default_rng(0))
    assert (drawn[["a", "b", "c"]] == "yes").all(axis=None)
    assert (drawn["n"] == 50.0).all()
    with_number = table.at(row).realize(np.ones((200, 4), dtype=bool), np.random.default_rng(0))
    assert set(with_number["n"]) <= set(range(10, 30))  # from the donor of a and c, or of b


def test_every_flip_breaks_its_literal_and_changes_nothing_else():
    frame = dependent_frame()
    table = al.Table(frame, literals="bounds", neighbors="realistic")
    for at in range(0, 40, 5):
        here = table.at(at)
        assert not here.independent_values
        law = [len(ways) for ways in here.changes]
        rng = np.random.default_rng(at)
        draws = np.column_stack([rng.integers(0, n + 1, size=300) for n in law]).astype(np.uint8)
        drawn = here.realize(draws, rng)
        for i in range(0, 300, 10):
            broken = broken_by(here, table.at(drawn.iloc[i]))
            expected = {j for a, way in enumerate(draws[i]) if way for j in here.changes[a][way - 1].breaks}
            assert {j for j, is_broken in enumerate(broken) if is_broken} == expected


def test_the_bytes_do_not_depend_on_how_many_rows_are_drawn_together_or_how_often():
    frame = dependent_frame()
    here = al.Table(frame, neighbors="realistic", literals="intervals").at(5)
    flips = np.random.default_rng(0).random((600, len(here.literals))) < 0.3
    first = here.realize(flips, np.random.default_rng(7))
    here.realize(flips[:50], np.random.default_rng(9))
    assert first.equals(here.realize(flips, np.random.default_rng(7)))
    shuffled = al.Table(frame.sample(frac=1, random_state=2), neighbors="realistic", literals="intervals")
    shuffled = shuffled.at(frame.iloc[5])
    assert first.equals(shuffled.realize(flips, np.random.default_rng(7)))


def test_large_tables_donate_a_sample_that_has_every_code(monkeypatch):
    """Of 5,000 rows 256 may donate; a category that two rows have is among them."""
    monkeypatch.setattr(library, "MAX_ROWS", 256)
    monkeypatch.setattr(tables, "MAX_ROWS", 256)
    monkeypatch.setattr(donor_index, "MAX_ROWS", 256)
    monkeypatch.setattr(donor_index, "_MAX_LEADERS", 128)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=5000), "y": rng.normal(size=5000), "rare": ["common"] * 5000})
    frame.loc[[17, 3000], "rare"] = "rare"
    table = al.Table(frame, neighbors="realistic")
    here = table.at({"x": 0.1, "y": 0.2, "rare": "common"})
    assert len(here.drawing.donors.rows) <= 256
    drawn = here.realize(np.tile([True, False, True], (100, 1)), rng)
    assert set(drawn["x"]) <= set(frame.loc[[17, 3000], "x"])


def test_fixed_columns_count_as_likeness():
    """The donor is like the row in a column that never changes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"sex": ["f", "m"] * 200, "x": rng.normal(size=400)})
    frame["height"] = np.where(frame["sex"] == "f", 160.0, 180.0) + rng.normal(size=400)
    table = al.Table(frame, fixed=["sex"], neighbors="realistic", cuts={"height": [160.0, 180.0]})
    drawn = table.at(frame.iloc[0]).realize(np.tile([False, True], (300, 1)), rng)
    assert set(drawn["height"]) <= set(frame.loc[frame["sex"] == "f", "height"])


def test_the_law_is_part_of_the_fingerprint_and_the_default_is_not():
    frame = dependent_frame(50)
    prints = {
        al.Table(frame, **options).fingerprint
        for options in ({}, {"neighbors": "realistic"}, {"neighbors": "realistic", "donors": 5})
    }
    assert len(prints) == 3
    assert al.Table(frame, neighbors="independent").fingerprint == al.Table(frame).fingerprint
    assert al.Table(frame).at(0).independent_values


@pytest.mark.parametrize(
    "options",
    [
        {"neighbors": "real"},
        {"neighbors": "realistic", "donors": 0},
        {"neighbors": "realistic", "donors": 2.5},
        {"neighbors": "realistic", "within": "redraw"},
    ],
)
def test_wrong_options_are_named(options):
    with pytest.raises(ParameterError, match=r"^(neighbors|donors) is"):
        al.Table(dependent_frame(50), **options)
