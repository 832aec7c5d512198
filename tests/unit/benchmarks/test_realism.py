"""How real neighbors are: distances, rules, the attack and the crossed laws, measured on small tables."""

import gzip

import numpy as np
import pandas as pd
import pytest

from benchmarks import attack, laws, realism

TINY = pd.DataFrame({"x": [0.0, 1.0, 2.0, 3.0], "kind": ["a", "a", "b", "b"]})


def test_distances_are_means_of_quantiles_and_categories():
    places = realism.Places.of(TINY)
    rows = pd.DataFrame({"x": [1.0, 1.0, 2.5, np.nan], "kind": ["a", "b", "b", "new"]})
    # Places are 1/8, 3/8, 5/8 and 7/8. The second row is one place, or a category, from a training row.
    np.testing.assert_allclose(places.nearest(rows), [0, 0.125, 0.0625, 0.5])


def test_no_row_of_the_ship_breaks_a_rule_and_shuffled_ones_do():
    ship = realism.ships(500)
    assert not any(broken.any() for broken in realism.broken_rules(ship).values())
    shuffled = ship.apply(lambda column: column.sample(frac=1, random_state=len(column.name)).to_numpy())
    assert all(broken.any() for broken in realism.broken_rules(shuffled).values())


def test_laws_break_fewer_rules_the_more_real_their_neighbors_are():
    rows = list(realism.rules(n_training=200, n_rows=3, n_each=40))
    single = {row["neighbors"]: row["any_rule"] for row in rows if row["grouped"] == "no"}
    assert single["similar"] < single["realistic"] <= single["independent"]
    grouped = [row for row in rows if row["grouped"] == "yes"]
    assert all(row[rule] == 0 for row in grouped for rule in ("fare", "deck", "title", "alone"))
    for row in rows:
        assert row["where_donors_allow"] + row["where_none_does"] == pytest.approx(row["any_rule"])


def test_a_biased_model_is_innocent_where_rows_look_made_up():
    rng = np.random.default_rng(0)
    train = pd.DataFrame({"x": rng.normal(size=400), "race": rng.choice(["p", "q"], 400)})
    train = train.assign(unrelated=rng.choice(["no", "yes"], 400))
    made = train.assign(x=train["x"] + 100)
    model = attack.Biased.trained(attack.Victims("", train, "race", "p"), train, made, train)
    assert model.is_real(train).mean() >= 0.95
    assert not model.is_real(made).any()
    np.testing.assert_array_equal(model(made)[:, 1], made["unrelated"] == "yes")
    real = train[model.is_real(train)]
    np.testing.assert_array_equal(model(real)[:, 1], real["race"] == "p")
    assert model.auc(train, made) == 1


@pytest.fixture
def california(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"x{j}": rng.normal(size=400).round(2) for j in range(3)})
    frame["x3"] = frame["x0"] + 0.01 * rng.normal(size=400)
    frame["target"] = np.where(frame["x0"] > 0.3, 2.0, 0.0) + frame["x1"]
    with gzip.open(tmp_path / "44024-california-housing.csv.gz", "wt") as file:
        frame.to_csv(file, index=False)
    return tmp_path


def test_similar_neighbors_are_nearer_to_the_table(california):
    (row,) = realism.realism(california)
    assert row["similar_median_ratio"] < row["independent_median_ratio"]
    assert row["similar_auc"] < row["independent_auc"]
    assert row["lime_auc"] > 0.7


def test_every_law_is_measured_under_every_law(california, monkeypatch):
    monkeypatch.setattr(laws, "N_FRESH", 300)
    rows = list(laws.laws(california, n_rows=2))
    assert [row["found_under"] for row in rows] == ["independent", "realistic", "similar"]
    assert rows[0]["same_facts"] == 1
    assert all(row["relevance_similar"] >= 0 for row in rows)
