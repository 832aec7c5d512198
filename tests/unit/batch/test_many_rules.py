"""Rules beside the explanations of many rows: the same bytes as `rule`, in frames and files."""

import json
from pathlib import Path

import pandas as pd
import pytest

from anchorline.batch import Work, explain_partition
from anchorline.batch.rows import rows_of
from anchorline.batch.run import RunOptions, run_batch
from anchorline.errors import JournalError, ParameterError
from anchorline.result.explanations import COLUMNS, RULE_COLUMNS, RULE_FIGURES, Explanations, Failure
from helpers.batch_models import FAILS, Trouble
from helpers.many_rows import CHEAP, ROWS, explainer_of, texts, with_ages

SOME = {"queries": 400, "seed": 3}


def decided(model=None):
    return explainer_of(model or Trouble(), threshold=0.0)


def rules_in(many):
    return [record["rule"] for record in many.records]


@pytest.fixture(scope="module")
def alone():
    """The rule of each of six rows, each found alone; the third row fails."""
    rows = with_ages((2, FAILS))[:6].to_dict("records")
    return [None if i == 2 else decided().rule(row, **SOME).to_json() for i, row in enumerate(rows)]


@pytest.fixture(scope="module")
def many():
    return decided().explain_many(with_ages((2, FAILS))[:6], errors="keep", rule=True, **SOME)


def test_every_row_has_the_rule_that_it_has_alone(many, alone):
    assert rules_in(many) == alone
    assert texts(many) == texts(decided().explain_many(with_ages((2, FAILS))[:6], errors="keep", **SOME))
    assert many.has_rules
    assert many.rule(0).to_json() == alone[0]
    assert many[3:].rule(-1).to_json() == alone[5]
    assert many.rule(2) == many[2]
    assert isinstance(many.rule(2), Failure)
    with pytest.raises(IndexError):
        many.rule(6)


@pytest.mark.parametrize("options", [{"n_jobs": 2}, {"share_calls": True}], ids=["processes", "shared calls"])
def test_rules_do_not_depend_on_how_rows_are_distributed(options, alone):
    found = rules_in(decided().explain_many(ROWS[:6], rule=True, **options, **SOME))
    assert found[:2] + found[3:] == alone[:2] + alone[3:]


def test_rules_take_the_settings_of_the_batch_and_their_own():
    explainer, rows = decided(), ROWS[:2]
    own = explainer.explain_many(rows, rule={"holds": 0.8, "k": 2, "queries": 300}, sigma=0.5, **SOME)
    expected = explainer.rule(rows.iloc[1], holds=0.8, k=2, queries=300, sigma=0.5, seed=3)
    assert own.rule(1) == expected
    automatic = explainer_of(threshold=0.0).explain_many(rows[:1], k=3)
    mixed = explainer_of(threshold=0.0).explain_many(rows[:1], rule={"queries": "auto"}, n_jobs=2, **CHEAP)
    assert mixed.rule(0).rows is not None
    assert mixed[0].rows is None
    assert automatic[0].rows is not None


@pytest.mark.parametrize("rule", [1, "yes", None, ["holds"]])
def test_what_rule_may_be(rule):
    with pytest.raises(ParameterError, match="it must be True, False or keywords of `rule`"):
        decided().explain_many(ROWS[:1], rule=rule)
    with pytest.raises(TypeError, match="rule"):
        decided().explain_many(ROWS[:1], rule={"hold": 0.9})


def test_columns_of_the_rules(many, tmp_path):
    frame = many.to_frame()
    assert list(frame) == ["row", *COLUMNS, *RULE_COLUMNS]
    for place, record in enumerate(many.records):
        if record["rule"] is None:
            assert frame[list(RULE_COLUMNS)].iloc[place].isna().all()
            continue
        body = json.loads(record["rule"])
        assert frame["rule_verdict"][place] == body["verdict"]
        assert frame["rule_holds_low"][place] == body["holds"]["low"]
        assert frame["rule_coverage"][place] == body["coverage"]
        assert len(body["facts"]) == len(record["rule_facts"].split("; ")) or not body["facts"]
    assert [kind for _, kind in RULE_FIGURES.values()] == ["text", "number", "number"]
    many.to_parquet(tmp_path / "why.parquet")
    assert Explanations.from_parquet(tmp_path / "why.parquet") == many


def test_without_rules():
    many = decided().explain_many(ROWS[:1], **CHEAP)
    assert not many.has_rules
    assert list(many.to_frame()) == ["row", *COLUMNS]
    with pytest.raises(ParameterError, match=r"Type explain_many\(frame, rule=True\)"):
        many.rule(0)


def test_a_partition_has_the_columns_of_its_work(alone):
    rows = with_ages((2, FAILS))[:6].assign(case=list("abcdef"))
    work = Work.from_keywords(decided(), rule=True, **SOME)
    frame = explain_partition(rows, work, id="case")
    assert list(frame) == ["case", *COLUMNS, *RULE_COLUMNS]
    assert [None if pd.isna(text) else text for text in frame["rule"]] == alone
    assert list(explain_partition(rows[:0], work)) == [*COLUMNS, *RULE_COLUMNS]


def test_a_batch_with_rules_is_resumed(tmp_path, alone):
    rows, explainer, out = with_ages((2, FAILS))[:6], decided(), Path(tmp_path / "why.parquet")
    work = Work.from_keywords(explainer, rule=True, **SOME)
    given, sources = rows_of(rows, explainer), {"model": "m", "data": "d"}

    def stop(progress):
        if progress.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_batch(given, work, out, sources, RunOptions(progress=stop))
    other = Work.from_keywords(explainer, rule={"k": 2}, **SOME)
    with pytest.raises(JournalError, match="rule k was 4, is 2"):
        run_batch(given, other, out, sources, RunOptions(resume=True))
    report = run_batch(given, work, out, sources, RunOptions(resume=True))
    assert report.n_resumed >= 3
    assert rules_in(Explanations.from_parquet(out)) == alone
