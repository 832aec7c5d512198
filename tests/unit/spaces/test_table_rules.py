"""Rules that all training rows obey: a donor keeps them, if any row does."""

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.spaces.columns import read_values
from anchorline.spaces.exclusions import Exclusions
from anchorline.spaces.likeness import grades_of
from helpers.donors import broken_rules, dependent_frame, ordered_rows, plain_columns


def people(n=400, seed=0):
    """Crew pays nothing and has no seat; others pay; children are those below 13; ages may be missing."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["crew", "first", "second"], n, p=[0.3, 0.3, 0.4])
    age = rng.integers(1, 80, n).astype(float)
    fare = np.where(group == "crew", 0.0, rng.normal(30, 8, n).round(2))
    frame = pd.DataFrame(
        {
            "group": group,
            "fare": fare,
            "seat": np.where(group == "crew", np.nan, rng.normal(size=n)),
            "age": age,
            "kind": np.where(age < 13, "child", "adult"),
            "port": rng.choice(["north", "south"], n),
        }
    )
    frame.loc[rng.random(n) < 0.1, "age"] = np.nan
    return frame


@pytest.mark.parametrize(
    "frame", [people(200), people(90, 3), dependent_frame(120)], ids=["people", "few", "numbers"]
)
def test_rules_are_those_of_their_definition(frame):
    """An implementation by the definition in docs/tables.md finds the same rules, seen from four rows."""
    table = al.Table(frame, neighbors="realistic")
    index, rows = table._donor_index, ordered_rows(table, frame)
    columns = plain_columns(rows)
    for i in range(0, len(rows), len(rows) // 3):
        own = [column[i] for column in columns]
        expected = {pair: np.array(each) for pair, each in broken_rules(columns, own).items() if any(each)}
        _, read = table.schema.read(rows.iloc[i])
        grades = {j: int(kind.grades(read[j])[0]) for j, (kind, _) in index.graded.items()}
        found = {}
        for a, b, broken in index.exclusions.of(grades):
            if a != b and broken.any():
                found[a, b] = found.get((a, b), False) | broken
        assert found.keys() == expected.keys()
        for pair, broken in found.items():
            np.testing.assert_array_equal(broken, expected[pair], err_msg=str(pair))


def test_columns_without_levels_have_no_rules():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 3)), columns=["a", "b", "c"])
    index = al.Table(frame, neighbors="realistic")._donor_index
    assert isinstance(index.exclusions, Exclusions)
    assert index.exclusions.of({0: 5, 1: 5, 2: 5}) == []


def has_rules(frame):
    """Whether any values of a table exclude each other."""
    graded = {}
    for j, name in enumerate(frame):
        column = read_values(frame[name], name, ValueError)
        grades = grades_of(column, by_level=False)
        graded[j] = grades, grades.grades(column).astype(int)
    found = Exclusions.build(graded)
    columns = np.repeat([j for j, _ in found.lookups], np.diff([*found.starts, len(found.excluded) - 1]))
    others = columns[:, None] != np.array(found.ranks, dtype=int)
    bounded = (found.edges[:, :-1] != np.array([-2048, 2048])[:, None, None]).any(axis=0)
    return bool(found.excluded.any() or (bounded & others).any())


def unrelated(seed, n=300, d=40):
    """Columns that have nothing to do with each other: a rare category each, numbers that most rows lack."""
    rng = np.random.default_rng(seed)
    rare = {f"c{j}": np.where(rng.random(n) < rng.uniform(0.12, 0.16), "rare", "usual") for j in range(d)}
    numbers = {f"x{j}": np.where(rng.random(n) < 0.95, np.nan, rng.normal(size=n)) for j in range(4)}
    return pd.DataFrame(rare | numbers)


def test_unrelated_columns_have_no_rules():
    """Of 40 tables, each with hundreds of comparisons, more than 3 with a rule would be a 1-in-6,000 event.

    If 5 expected rows were enough whatever the number of comparisons, half of them would have one.
    """
    assert sum(has_rules(unrelated(seed)) for seed in range(40)) <= 3


def test_rare_values_decide_nothing_together():
    """Rare numbers happen to have one color, and rare cities one country; no single value of them says so."""
    rng = np.random.default_rng(0)
    number = np.where(rng.random(1000) < 0.5, rng.integers(0, 4, 1000), rng.normal(size=1000) + 50)
    color = np.where(number > 10, "blue", rng.choice(["red", "blue"], 1000))
    assert not has_rules(pd.DataFrame({"number": number, "color": color}))
    city = np.where(rng.random(1000) < 0.5, rng.integers(0, 64, 1000), rng.integers(100, 300, 1000)).astype(str)
    country = np.where(np.char.str_len(city) == 3, "x", rng.choice(["x", "y"], 1000))
    assert not has_rules(pd.DataFrame({"city": city, "country": country}))


def breaks(rows):
    crew = (rows["group"] == "crew").to_numpy()
    paid, seated = (rows["fare"] > 0).to_numpy(), rows["seat"].notna().to_numpy()
    is_child = (rows["kind"] == "child").to_numpy()
    ages = rows["age"].to_numpy()
    return (crew == paid) | (crew == seated) | (is_child & (ages >= 13)) | (~is_child & (ages < 13))


@pytest.mark.parametrize("law", ["realistic", "similar"])
@pytest.mark.parametrize("at", [0, 3, 11])
def test_a_donor_that_keeps_all_rules_is_preferred(law, at):
    """Wherever some training row breaks the drawn facts and keeps the rules of the people, the neighbors do."""
    frame = people()
    table, row = al.Table(frame, neighbors=law), frame.iloc[at]
    here = table.at(row)
    assert not breaks(frame).any()
    rng, rows = np.random.default_rng(at), ordered_rows(table, frame)
    ways = al.Table(frame, neighbors="realistic").at(row)._sources.ways
    names = [here.attributes[i].name for i in here._breakable]
    n_ways = [len(each) if law == "realistic" else 1 for each in here.changes]
    draws = np.column_stack([(rng.random(150) < 0.3) * rng.integers(1, n + 1, 150) for n in n_ways])
    made, compared = here.realize(draws.astype(np.uint8), rng), 0
    for drawn, broken in zip(draws, breaks(made), strict=True):
        changed = np.flatnonzero(drawn)
        has = ways[changed] != 0 if law == "similar" else ways[changed] == drawn[changed, None]
        donors = rows[has.any(axis=0) if law == "similar" else has.all(axis=0)].copy()
        for name in set(frame) - {names[i] for i in changed}:
            donors[name] = row[name]
        if len(changed) and not breaks(donors).all():
            assert not broken
            compared += 1
    assert compared > 20
