"""A batch from rows to a Parquet file: the report, resuming, and the files that it refuses to replace."""

import json
import os
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from anchorline.batch import Work
from anchorline.batch import run as run_module
from anchorline.batch.parquet import read_parquet
from anchorline.batch.rows import rows_of
from anchorline.batch.run import RunOptions, run_batch
from anchorline.errors import JournalError, OutputFileError, ParameterError, RowError
from anchorline.explainer import Explainer
from anchorline.result.explanations import Explanations
from anchorline.spaces.table import Table
from helpers.batch_models import (
    FAILS,
    Trouble,
    people,
    score,
)
from helpers.many_rows import CHEAP, ROWS, explainer_of, texts, with_ages


def batch(out, rows=ROWS, model=score, sources=None, settings=None, **options):
    explainer = explainer_of(model)
    work = Work.from_keywords(explainer, **(settings or CHEAP))
    sources = sources or {"model": "m", "data": "d"}
    return run_batch(rows_of(rows, explainer), work, Path(out), sources, RunOptions(**options))


def test_a_batch_its_file_and_its_report(alone, tmp_path):
    out = tmp_path / "why.parquet"
    report = batch(out, rows=with_ages((4, FAILS)), model=Trouble())
    assert (report.n_rows, report.n_failed, report.n_resumed, report.events.restarts) == (30, 1, 0, 0)
    assert report.lines()[0].startswith("29 of 30 rows explained")
    assert "1 rows failed (PredictorError 1)" in report.lines()[1]
    many = Explanations.from_parquet(out)
    assert texts(many) == [*alone[:4], None, *alone[5:]]
    assert os.listdir(tmp_path) == ["why.parquet"]
    first = out.read_bytes()

    with pytest.raises(JournalError, match="exists"):
        batch(out)
    again = batch(out, rows=with_ages((4, FAILS)), model=Trouble(), resume=True)  # nothing to do
    assert (again.n_resumed, again.n_failed) == (30, 1)
    with pytest.raises(JournalError, match="settings k was 3, is 4"):
        batch(out, settings={"k": 4, "queries": 200}, resume=True)
    with pytest.raises(JournalError, match="data was 'd', is 'e'"):
        batch(out, sources={"model": "m", "data": "e"}, resume=True)
    assert out.read_bytes() == first


def test_a_batch_adds_what_would_change_each_decision(tmp_path):
    explainer = Explainer(Trouble(), Table(people(120)), output="score", threshold=0.0, output_range=(-1, 1))
    rows, out = with_ages((4, FAILS))[:8], tmp_path / "why.parquet"
    work = Work.from_keywords(explainer, changes=True, **CHEAP)
    report = run_batch(rows_of(rows, explainer), work, out, {"model": "m", "data": "d"}, RunOptions())
    assert report.n_failed == 1
    written = pq.read_table(out).to_pandas()
    assert written["change"].notna().sum() == 7
    assert pd.isna(written["change"][4])
    best = explainer.changes(rows.iloc[0], n=1, queries=CHEAP["queries"])[0]
    assert written["change"][0] == "; ".join(f"{name} = {value}" for name, value in best.values.items())
    assert written["change_facts"][0] == len(best.moves)
    assert written["change_output"][0] == best.output
    assert best.decision is None
    assert written["change_decision"].isna().all()
    assert len(Explanations.from_parquet(out)) == 8


def test_a_batch_goes_on_where_it_stopped_and_ends_with_the_same_bytes(tmp_path):
    whole, out = tmp_path / "whole.parquet", tmp_path / "why.parquet"
    batch(whole)
    parts = tmp_path / "why.parquet.parts"
    rows = with_ages((12, FAILS))
    with pytest.raises(RowError, match=r"Row 12.*fail-fast"):
        batch(out, rows=rows, model=Trouble(), fail_fast=True)
    assert not out.exists()
    assert sum(1 for _ in read_parquet(parts)) == 12
    with pytest.raises(JournalError, match=r"exists\. Continue with resume"):
        batch(out)
    (parts / ".anchorline-1.part").write_bytes(b"torn")
    report = batch(out, resume=True)  # this time nothing fails
    assert report.n_resumed == 12
    assert "12 rows were finished by an earlier run." in report.lines()
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["whole.parquet", "why.parquet"]


def test_a_crash_after_the_last_row_is_mended(tmp_path, monkeypatch):
    out = tmp_path / "why.parquet"

    whole = run_module.write_parquet

    def fill_up(path, *arguments, **options):
        if path == out:
            raise OutputFileError("full")
        whole(path, *arguments, **options)

    monkeypatch.setattr(run_module, "write_parquet", fill_up)
    with pytest.raises(OutputFileError):
        batch(out, rows=ROWS[:4])
    monkeypatch.undo()
    with pytest.raises(ParameterError, match="Both --resume and --overwrite are given, but only one is allowed"):
        batch(out, rows=ROWS[:4], resume=True, overwrite=True)
    report = batch(out, rows=ROWS[:4], resume=True)
    assert report.n_resumed == 4
    first = out.read_bytes()
    batch(out, rows=ROWS[:4], overwrite=True)
    assert out.read_bytes() == first


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"row_timeout": -1.0}, "row_timeout is -1"),
        ({"progress": "yes"}, "progress is 'yes', but it must be True"),
    ],
)
def test_bad_choices_leave_nothing_behind(options, message, tmp_path):
    with pytest.raises(ParameterError, match=message):
        batch(tmp_path / "why.parquet", **options)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("folder", "is a folder. Type the name of a file"),
        ("kept", "kept.parts' must be a folder"),
        ("x" * 300, "the name is too long"),
        ("x" * 250, "the name is too long"),
        ("nowhere/why.parquet", "the folder does not exist"),
    ],
)
def test_places_where_no_file_can_be(name, message, overwrite, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "kept.parts").write_text("mine")
    with pytest.raises(OutputFileError, match=message) as raised:
        batch(tmp_path / name, overwrite=overwrite)
    assert "overwrite" not in str(raised.value)
    assert "--resume" not in str(raised.value)
    assert sorted(os.listdir(tmp_path)) == ["folder", "kept.parts"]


def test_files_of_others_are_not_resumed(tmp_path):
    out = tmp_path / "why.parquet"
    out.write_text("mine")
    with pytest.raises(JournalError, match="a batch did not write it"):
        batch(out, resume=True)
    assert out.read_text() == "mine"


def test_the_file_knows_what_it_was_made_of(tmp_path):
    out = tmp_path / "why.parquet"
    batch(out, rows=ROWS[:2])
    identity = json.loads(pa.parquet.read_schema(out).metadata[b"anchorline.batch"])
    assert identity["settings"]["k"] == 3
    assert identity["table"].startswith("table:")


def test_a_batch_is_nobody_elses_until_its_file_is_written(tmp_path, monkeypatch):
    out, refused = tmp_path / "why.parquet", []
    whole = run_module.write_parquet

    def write(path, *arguments, **options):
        if path == out:
            with pytest.raises(JournalError, match="Another process is using") as raised:
                batch(out, overwrite=True)
            refused.append(raised)
        return whole(path, *arguments, **options)

    monkeypatch.setattr(run_module, "write_parquet", write)
    batch(out)
    assert len(refused) == 1
    assert os.listdir(tmp_path) == ["why.parquet"]
