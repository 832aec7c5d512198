"""Explanations of many rows: a sequence, frames whose columns are figures of the JSON, files and a summary."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier

from anchorline.errors import FormatError, ParameterError
from anchorline.explainer import Explainer
from anchorline.result.explanation import Explanation
from anchorline.result.explanations import COLUMNS, FIGURES, Explanations, Failure
from helpers.batch_models import FAILS, Trouble
from helpers.many_rows import AUTO, CHEAP, ROWS, explainer_of, texts, with_ages


@pytest.fixture(scope="module")
def many():
    rows = with_ages((2, FAILS))[:6]
    return explainer_of(Trouble(), threshold=0.0).explain_many(rows, errors="keep", **AUTO)


def test_it_is_a_sequence_with_failures_in_their_places(many):
    assert len(many) == 6
    assert [type(each) for each in many] == [Explanation] * 2 + [Failure] + [Explanation] * 3
    assert many[-1] == many[5] == list(many)[5]
    assert many[1:4][1] == many.failures[0] == many[2]
    assert [record["row"] for record in many.explained.records] == [0, 1, 3, 4, 5]
    assert repr(many) == "Explanations(5 rows explained, 1 failed)"
    assert many == pickle.loads(pickle.dumps(many)) == Explanations.from_records(many.records)
    assert many != many[::-1]
    assert hash(many) == hash(many[:])
    with pytest.raises(IndexError):
        many[6]
    assert Explanations(list(many)).records[0] == many.records[0]


def test_columns_are_figures_of_the_json(many):
    frame = many.to_frame()
    assert list(frame) == ["row", *COLUMNS]
    for place, record in enumerate(many.records):
        if record["explanation"] is None:
            assert frame["error_type"][place] == "PredictorError"
            assert frame[list(FIGURES)].iloc[place].isna().all()
            continue
        body = json.loads(record["explanation"])
        for name, (path, kind) in FIGURES.items():
            value = body
            for step in path.split("."):
                value = None if value is None else value[step]
            shown = frame[name][place]
            assert (pd.isna(shown) and value is None) or shown == (value if kind == "number" else str(value))
        assert len(body["facts"]) == len(record["facts"].split("; "))


def test_facts_are_rows_of_a_frame(many):
    facts = many.to_frame(by="fact")
    for row, part in facts.groupby("row"):
        e = many[row]
        np.testing.assert_array_equal(part["contribution"], e.contributions)
        np.testing.assert_array_equal(part["effect"], e.effects)
        assert part["attribute"].tolist() == [fact.attribute for fact in e.facts]
    with pytest.raises(ParameterError, match="by is 'term', but it must be 'row' or 'fact'"):
        many.to_frame(by="term")


def test_a_file_is_read_back(many, tmp_path):
    many.to_parquet(tmp_path / "why.parquet")
    assert Explanations.from_parquet(tmp_path / "why.parquet") == many
    ROWS.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(FormatError, match="lacks the column 'key'"):
        Explanations.from_parquet(tmp_path / "rows.parquet")


def test_a_summary_counts_what_matters(many):
    summary = many.summary()
    assert (summary.n_rows, summary.n_failed, summary.failures) == (6, 1, {"PredictorError": 1})
    assert sum(summary.verdicts.values()) == 5
    for attribute in summary.attributes:
        sizes = [
            float(amount)
            for e in many.explained
            for fact, amount in zip(e.facts, e.contributions, strict=True)
            if fact.attribute == attribute.name
        ]
        assert attribute.n_rows == len(sizes) == sum(count for _, count in attribute.facts)
        assert attribute.adds == np.mean(np.array(sizes) > 0)
        assert attribute.typical_size == pytest.approx(np.median(np.abs(sizes)))
    worst = [many[row].verdict.value for row, _, _ in summary.least_explained]
    order = ["not_explained", "undecided", "partly_explained", "explained", "robust"]
    assert worst == sorted(worst, key=order.index)
    lines = str(summary).splitlines()
    assert lines[0].startswith("5 rows explained, 1 failed (PredictorError 1); verdicts: ")
    assert lines[1].split()[:3] == ["attribute", "rows", "share"]
    assert str(Explanations().summary()) == "0 rows explained, 0 failed."


def test_findings_about_the_setup_are_warned_about_once():
    explainer = explainer_of(lambda frame: np.zeros(len(frame)), threshold=0.5)
    with pytest.warns(UserWarning, match="output is 0"):
        explainer.explain_many(ROWS[:2], **AUTO)
    assert len(explainer.explain_many(ROWS[:2], **AUTO)) == 2


def test_removed_keywords_are_answered():
    with pytest.raises(TypeError, match=r"explain_many\(\) has no keyword 'n_samples': queries="):
        explainer_of().explain_many(ROWS[:1], n_samples=10)


@pytest.mark.parametrize("settings", [AUTO, CHEAP])
def test_classifiers_that_are_asked_for_scores_and_labels_share_calls(settings):
    rows = ROWS[["age", "income"]]
    model = KNeighborsClassifier().fit(rows, ROWS["town"] == "Lens")
    alone = Explainer(model, rows).explain_many(rows[:3], **settings)
    shared = Explainer(model, rows).explain_many(rows[:3], share_calls=True, **settings)
    assert texts(shared) == texts(alone)
    assert shared[0].queries.asks_twice == (settings is CHEAP)
