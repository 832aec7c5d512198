"""The study of verdicts: random facts are other facts, and the shares of a table add up."""

import numpy as np
import pandas as pd
import pytest

from anchorline.guarantees.verdicts import Verdict
from benchmarks import verdicts
from benchmarks.report import markdown_table

N_ROWS = 3


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder with one small table of decisions and one of numbers, under the names of the paper's."""
    folder, rng = tmp_path_factory.mktemp("data"), np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(120, 7)), columns=list("abcdefg"))
    frame["town"] = rng.choice(["Lens", "Arras"], 120)
    score = 3 * frame["a"] + frame["b"] - 1.5 * (frame["town"] == "Lens")
    frame.assign(target=np.where(score > 0, "+", "-")).to_csv(folder / "29-credit.csv.gz", index=False)
    frame.assign(target=score).to_csv(folder / "44962-fires.csv.gz", index=False)
    return folder


@pytest.fixture(autouse=True)
def few(monkeypatch):
    monkeypatch.setattr(verdicts, "MODELS", ("linear", "boosting"))
    monkeypatch.setattr(verdicts, "N_CERTIFY", 400)
    monkeypatch.setattr(verdicts, "N_TRUTH", 400)


def test_the_shares_of_all_verdicts_add_up(data):
    rows = list(verdicts.verdicts(data, n_rows=N_ROWS))
    assert [row["output"] for row in rows] == ["decision"] * 5 + ["number"] * 5
    for output in ("decision", "number"):
        chosen = [row for row in rows if row["output"] == output]
        assert sum(row["rows"] for row in chosen) == 2 * N_ROWS
        assert sum(row["share"] for row in chosen) == pytest.approx(1)
        assert sum(row["share_of_random_sets"] for row in chosen) == pytest.approx(1)
        shown = [row["a_reader_sees"] for row in chosen if row["rows"]]
        titles = [(Verdict[row["verdict"].upper()].title, row["a_reader_sees"]) for row in chosen if row["rows"]]
        assert all(f"Verdict: {title}" in text for title, text in titles)
        assert all("\n" not in text for text in shown)
    assert markdown_table(rows).count("\n") == 11


def test_the_counts_of_a_model_add_up(data):
    by_model = list(verdicts.verdicts_by_model(data, n_rows=N_ROWS))
    assert [(row["table"], row["model"]) for row in by_model] == [
        (table, model) for table in ("Credit Approval", "Forest Fires") for model in ("linear", "boosting")
    ]
    names = [verdict.name.lower() for verdict in Verdict if verdict is not Verdict.UNKNOWN]
    assert all(sum(row[name] for name in names) == row["rows"] == N_ROWS for row in by_model)
    assert all(row["random_sets"] == verdicts.N_RANDOM * N_ROWS for row in by_model)


def test_random_facts_are_as_many_and_not_the_same(data):
    explainer = verdicts.fitted_explainer(data, 29, "linear")[2]
    explanation = explainer.explain(0, k=3, n_samples=500, n_certify=0)
    found = set(explanation.support.tolist())
    for contributions in verdicts.random_facts(explanation, np.random.default_rng(0)):
        chosen = set(np.flatnonzero(contributions).tolist())
        assert len(chosen) == len(found)
        assert chosen != found
