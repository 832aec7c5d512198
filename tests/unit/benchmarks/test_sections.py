"""The sections of the benchmarks, in small."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from anchorline.facts import Fact
from benchmarks import facts, fit, release01, rivals, rules_hold, seeds, speed, truth
from benchmarks.__main__ import sections
from benchmarks.held import Held, is_true
from benchmarks.report import SECTIONS, compared, pooled, spread, write_page

RESULTS = Path(__file__).parents[3] / "benchmarks" / "results"
PEERS = ("ours", "lime", "kernel_shap", "tree_shap")


@pytest.fixture
def task(data):
    """The table with classes and a forest."""
    return facts.load(data, 42192, "forest")[0]


def test_truth_counts_verdicts_and_audits(data):
    *rows, total = truth.truth(data, n_rows=3)
    assert [row["model"] for row in rows] == ["boosting", "forest"]
    for row in [*rows, total]:
        verdicts = ("robust", "explained", "partly_explained", "not_explained", "undecided")
        assert sum(row[verdict] for verdict in verdicts) == row["rows"]
        assert row["audits"] == row["robust"] + row["explained"]
        assert row["audits_below_95"] == 0
        assert row["most_words"] <= 55
    assert total["rows"] == 6


def test_facts_are_compared_under_two_laws(data, monkeypatch):
    monkeypatch.setattr(facts, "N_DRAWS", 300)
    monkeypatch.setattr(rivals, "N_LIME", 300)
    monkeypatch.setattr(rivals, "N_BACKGROUND", 10)
    rows = list(facts.facts(data, n_rows=3, models=["boosting"]))
    assert len(rows) == 2 * 4 + 4
    assert {(row["law"], row["facts"]) for row in rows} == {(law, k) for law in facts.LAWS for k in facts.SIZES}
    for row in rows:
        assert rows[0].keys() == row.keys()
        assert all(row[name] >= 0 and row[f"pooled_{name}"] >= 0 for name in PEERS)
    assert all(0 <= row["higher_than_lime"] + row["lower_than_lime"] <= 2 for row in rows[-4:])


def test_facts_that_hold_every_column_at_one_row_leave_no_error(task):
    row = task.chosen(1)[0]
    only = np.arange(len(task.codes)) == row
    held = [Held(column, only) for column in range(task.codes.shape[1])]
    every = np.arange(len(task.codes))
    assert facts.remaining(task, row, held, every) == 0 < facts.remaining(task, row, (), every)
    assert facts.nearest(task.codes, row)[0] == row


def _stating(held, claims=True):
    """A method that states the facts ``held(task, row)``."""
    return lambda task, _: lambda row: rules_hold.Stated(held(task, row), claims, 0.5)


def _only(task, row):
    """Facts that are true of one row alone."""
    return [Held(column, np.arange(len(task.codes)) == row) for column in range(3)]


def test_rules_that_hold_all_values_pass_the_audit(data, monkeypatch):
    monkeypatch.setattr(rules_hold, "ours", _stating(_only))
    row, total = rules_hold.rules_hold(data, n_rows=3, models=["forest"])
    assert row["claimed"] == row["passed"] == row["lowest_audit"] == row["rows_agree"] == 1
    assert (row["mean_facts"], row["median_coverage"], row["times_ours"]) == (3, 1 / 200, 1)
    assert total["missed"] == "none"


def test_rules_that_claim_too_much_fail_the_audit(data, monkeypatch):
    monkeypatch.setattr(rules_hold, "ours", _stating(lambda task, row: []))
    row, total = rules_hold.rules_hold(data, n_rows=3, models=["forest"])
    assert row["claimed"] == 1
    assert row["audits_below_95"] > 0
    assert total["missed"] == "audits, lowest"


def test_rules_of_others_are_compared_where_both_pass():
    def audited(coverage, share=1.0, seconds=0.4):
        return rules_hold.Audited(0, True, 2, share, coverage, 1.0, seconds)

    ours = [audited(0.3, seconds=0.1), audited(0.5, seconds=0.1)]
    fewer = {"ours": ours, "alibi": [audited(0.2), audited(0.9, share=0.9)]}
    assert rules_hold.missed(fewer, "alibi") == "none"
    wider = {"ours": ours, "alibi": [audited(0.4, seconds=0.2), audited(0.9, seconds=0.2)]}
    assert rules_hold.missed(wider, "alibi") == "share, coverage, time"


def test_the_fit_of_facts_is_measured_on_fresh_neighbors(data, monkeypatch):
    monkeypatch.setattr(fit, "N_FITTED", 1000)
    monkeypatch.setattr(fit, "N_FRESH", 1000)
    monkeypatch.setattr(rivals, "N_LIME", 300)
    *rows, total = fit.fit(data, n_rows=3, models=["forest"])
    assert len(rows) == 2
    for row in [*rows, total]:
        assert 0 <= row["ours"] < 1
        assert row["percent_above_lime"] < 10


def test_seeds_give_the_same_facts_from_leaves(data):
    *rows, whole, drawn = seeds.seeds(data, n_rows=2, n_seeds=3)
    for row in rows:
        assert 0 <= row["same_facts"] <= row["same_attributes"] <= 1
        assert row["source"] == "drawn" or row["same_facts"] == 1
    assert whole["rows"] >= drawn["rows"] == 2


def test_speed_is_a_ratio_of_medians(data):
    _, frame, fitted = speed.fitted_model(data, 42192, "linear")
    rows = list(speed.beside_kernel_shap("linear", frame, fitted, 1))
    rows += speed.trees(None, 1, ["scikit-learn forest"])
    assert [row["to_reach"] for row in rows] == [0.5, 1.2, None]
    for row in rows:
        assert row["reached"] == pytest.approx(row["our_seconds"] / row["seconds_beside"])


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Fact("age", "age", "at_least", low=15), [False, True, True, False]),
        (Fact("age", "age", "below", high=15), [True, False, False, False]),
        (Fact("age", "age", "between", low=15, high=40), [False, True, False, False]),
        (Fact("age", "age", "missing"), [False, False, False, True]),
        (Fact("age", "age", "equals", value=40), [False, False, True, False]),
    ],
)
def test_a_printed_fact_is_true_of_values(fact, expected):
    assert is_true(fact, pd.Series([3.0, 15.0, 40.0, None])).tolist() == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age >= 15", [False, True, True, False]),
        ("age < 15", [True, False, False, False]),
        ("15 <= age < 40", [False, True, False, False]),
        ("age is missing", [False, False, False, True]),
        ("age is not missing", [True, True, True, False]),
        ("age = 40", [False, False, True, False]),
    ],
)
def test_a_fact_of_01_is_read_from_its_text(text, expected):
    assert release01.rows_with("age", text, pd.Series([3.0, 15.0, 40.0, None])).tolist() == expected


def test_categories_of_01_are_read_from_their_text():
    colors = pd.Series(["red", "dark blue", None], dtype="category")
    assert release01.rows_with("color", "color = dark blue", colors).tolist() == [False, True, False]
    many = pd.Series(["red", "red", "blue", "green", None], dtype="category")
    found = release01.rows_with("color", "color is one of 2 rare values", many)
    assert found.tolist() == [False, False, True, True, False]


def test_quartile_bins_are_those_of_lime(task):
    from lime.discretize import QuartileDiscretizer

    filled = rivals.filled(task.codes)
    discretizer = QuartileDiscretizer(filled, [2], ["score", "age", "color"])
    bins = discretizer.discretize(filled)[:, 0]
    for row in range(5):
        assert (rivals.quartile_fact(task, 0, row).rows == (bins == bins[row])).all()


def test_holm_corrects_for_many_tests():
    assert facts.holm(np.array([0.02, 0.001, 0.9])).tolist() == [True, True, False]
    assert facts.holm(np.array([0.03, 0.03, 0.9])).tolist() == [False, False, False]


def test_the_page_has_every_section_and_shows_what_was_measured(tmp_path):
    assert set(sections(tmp_path)) <= SECTIONS.keys()
    recorded = shutil.copytree(RESULTS, tmp_path / "results")
    assert write_page(recorded).read_text() == (RESULTS / "README.md").read_text()


def test_comparisons_are_shown_in_words():
    planted = {"table": "generated", "planted": "nothing", "runs": 4, "rows_explained": 80, "right": 3}
    alarm = {"table": "generated", "what": "monitor", "runs": 4, "looks": 1000, "alarms": 0.25}
    rows = [
        planted | {"means": "silent"},
        alarm | {"median_rows": None, "fixed_size": None},
        alarm | {"median_rows": 159.0, "fixed_size": 92},
        {"table": "a", "what": "time", "ratio": 0.984},
    ]
    assert [row["result"] for row in compared(rows)] == [
        "silent in 3 of 4 (80 rows explained)",
        "an alarm within 1,000 looks in 25.0% of runs",
        "an alarm within 1,000 looks in 25.0% of runs, after 159 rows (median); a test of fixed size: 92 rows",
        "0.98 times",
    ]


def test_rows_are_pooled_by_the_names_of_their_columns():
    rows = [
        {"law": "a", "rows": 2, "median_seconds": 1.0, "most_nodes": 3, "share": 0},
        {"law": "a", "rows": 3, "median_seconds": 2.0, "most_nodes": 9, "share": 1},
        {"law": "a", "rows": 4, "median_seconds": 9.0, "most_nodes": 1, "share": 0.5},
    ]
    [row] = pooled("law", columns=["rows", "median_seconds", "most_nodes", "share"])(rows)
    assert row == {"law": "a", "rows": 9, "median_seconds": 2.0, "most_nodes": 9, "share": 0.5}
    [row] = spread("law", "median_seconds")(rows)
    assert (row["measured"], row["lowest"], row["median"], row["highest"]) == (3, 1.0, 2.0, 9.0)
