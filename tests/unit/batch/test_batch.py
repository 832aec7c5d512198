"""Many rows on one machine: the same bytes however they are spread, and nothing lost when things go wrong."""

import asyncio
import errno
import itertools
import json
import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import joblib
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import threadpoolctl

import anchorline as al
from anchorline.batch import Progress, Work, explain_partition
from anchorline.batch import run as run_module
from anchorline.batch.blas import one_blas_thread
from anchorline.batch.evidence import explain_parts, explain_split, gather_part, parts_of
from anchorline.batch.journal import Journal, records
from anchorline.batch.local import Events, Plan, effective_jobs, stream
from anchorline.batch.partition import rows_of
from anchorline.batch.progress import Meter
from anchorline.batch.run import RunChoices, run_batch
from anchorline.batch.sharing import SharedModel, share_calls
from anchorline.batch.workers import Crew
from anchorline.cli.batch import _digest_of_model
from anchorline.errors import JournalError, OutputFileError, ParameterError, RowError, SampleError
from anchorline.result.explanations import Explanations
from helpers.batch_models import (
    DIES,
    FAILS,
    HANGS_IN_C,
    Counting,
    Ends,
    Seats,
    Threads,
    Trouble,
    Unopenable,
    Unpackable,
    people,
    rate,
    score,
)

TRAIN, ROWS = people(200), people(30, seed=1)
CHEAP = {"k": 3, "n_samples": 60}


def explainer_of(model=score, train=TRAIN, **options):
    return al.Explainer(model, al.Table(train), output="score", **options)


@pytest.fixture(scope="module")
def alone():
    """Every row explained by itself."""
    explainer = explainer_of()
    return [explainer.explain(row, **CHEAP).to_json() for row in ROWS.to_dict("records")]


@pytest.fixture
def handlers():
    """Of Ctrl-C, Python's own, whatever other tests left; of SIGTERM one as the command line has."""

    def end(number, frame):
        raise SystemExit(128 + number)

    before = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: end}
    before = {number: signal.signal(number, handler) for number, handler in before.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def texts(many):
    return [record["explanation"] for record in many.records]


def with_ages(*pairs):
    rows = ROWS.copy()
    for place, age in pairs:
        rows.loc[place, "age"] = age
    return rows


# The same bytes.


def test_one_process_two_processes_each_row_alone(alone):
    explainer = explainer_of()
    assert texts(explainer.explain_many(ROWS, **CHEAP)) == alone
    assert texts(explainer.explain_many(ROWS, n_jobs=2, **CHEAP)) == alone
    assert texts(explainer(ROWS[:3], **CHEAP)) == alone[:3]


def test_rows_of_every_kind(alone):
    explainer = explainer_of()
    upcast = ROWS.astype({"age": float})
    upcast["more"] = "not of the training table"
    kinds = [upcast[:6], pl.from_pandas(ROWS[:6]), pa.Table.from_pandas(ROWS[:6]), ROWS[:6].to_dict("records")]
    kinds += [ROWS[:6].to_numpy(dtype=object), ROWS[:6].values.tolist(), ROWS[:6].set_index([pd.Index([3] * 6)])]
    kinds += [pa.RecordBatch.from_pandas(ROWS[:6])]
    for rows in kinds:
        assert texts(explainer.explain_many(rows, **CHEAP)) == alone[:6]


def test_names_that_are_numbers():
    frame = pd.DataFrame(np.random.default_rng(0).random((50, 3)), columns=[1, 7, 0])
    explainer = al.Explainer(lambda rows: rows[1] - rows[0] / 2, al.Table(frame), output="score")
    expected = [explainer.explain(frame.iloc[i], **CHEAP).to_json() for i in range(2)]
    assert texts(explainer.explain_many(frame[:2], **CHEAP)) == expected
    assert texts(explainer.explain_many(frame[[0, 7, 1]][:2], **CHEAP)) == expected
    assert explain_partition(frame[:2], Work.from_keywords(explainer, **CHEAP))["explanation"].tolist() == expected


def test_order_does_not_matter(alone):
    order = np.random.default_rng(0).permutation(len(ROWS))
    assert texts(explainer_of().explain_many(ROWS.iloc[order], **CHEAP)) == [alone[i] for i in order]


def test_arrays_and_signs():
    explainer = al.Explainer(lambda z: 0.5 * z[:, 0], al.Hypercube(["a", "b"]))
    signs = [[1, 1], [-1, 1]]
    expected = [explainer.explain(row).to_json() for row in signs]
    for rows in (signs, np.array(signs), pd.DataFrame(signs, columns=["a", "b"])):
        assert texts(explainer.explain_many(rows)) == expected


def test_shared_calls_change_no_byte_and_are_fewer(alone):
    model = Counting()
    explainer = explainer_of(model, output_range=(-1, 1))
    assert texts(explainer.explain_many(ROWS, share_calls=True, **CHEAP)) == texts(
        explainer_of(output_range=(-1, 1)).explain_many(ROWS, **CHEAP)
    )
    shared = model.calls
    explainer.explain_many(ROWS, **CHEAP)
    assert shared < (model.calls - shared) / 8


def test_what_is_no_table_is_refused():
    explainer = explainer_of()
    twice = pd.concat([ROWS, ROWS[["age"]]], axis=1)
    refused = [(np.zeros(3), r"needed \(n, d\)"), (pl.LazyFrame({"a": [1]}), "lazy"), (7, "Got a int")]
    for rows, told in [*refused, (twice, "Column names must differ.*'age'.*Rename one")]:
        with pytest.raises(ParameterError, match=told):
            explainer.explain_many(rows)
    with pytest.raises(ParameterError, match="errors is 'ignore'"):
        explainer.explain_many(ROWS, errors="ignore")
    with pytest.raises(TypeError, match="unexpected keyword 'n_job'"):
        explainer.explain_many(ROWS, n_job=2)
    with pytest.raises(ParameterError, match="row_timeout is 0"):
        explainer.explain_many(ROWS, row_timeout=0)
    with pytest.raises(ParameterError, match="progress is 'yes'; needed True"):
        explainer.explain_many(ROWS, progress="yes")
    with pytest.raises(ParameterError, match="leave row_timeout out"):
        explainer.explain_many(ROWS, row_timeout=1, share_calls=True)


def test_no_rows_no_explanations():
    assert len(explainer_of().explain_many(ROWS[:0])) == 0
    assert len(explainer_of().explain_many([])) == 0


@pytest.mark.parametrize("n_jobs", [0, True, 1.5, "2"])
def test_numbers_of_jobs_that_are_none(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs is"):
        effective_jobs(n_jobs)


def test_minus_one_is_all_cores():
    assert effective_jobs(np.int64(2)) == 2
    assert effective_jobs(-1) == joblib.cpu_count()
    assert effective_jobs(-1000) == 1


@pytest.mark.parametrize(("n_rows", "how", "n_workers"), [(2, {}, 2), (1, {}, 1), (5, {"share_calls": True}, 1)])
def test_no_more_workers_than_work(n_rows, how, n_workers, alone, monkeypatch):
    crews = []

    class Noted(Crew):
        def __init__(self, payload, n_workers, row_timeout):
            crews.append(n_workers)
            super().__init__(payload, n_workers, row_timeout)

    monkeypatch.setattr("anchorline.batch.local.Crew", Noted)
    found = explainer_of().explain_many(ROWS[:n_rows], n_jobs=np.int64(40), **how, **CHEAP)
    assert texts(found) == alone[:n_rows]
    assert crews == [n_workers]


# The range is learned once, before rows are spread.


def test_ranges_are_learnt_once():
    model = Counting()
    explainer = explainer_of(model)
    explainer.explain_many(ROWS[:3], n_samples=60, n_certify=0)
    once = model.rows
    explainer.explain_many(ROWS[:3], n_samples=60, n_certify=0)
    assert model.rows - once == 1 + 3 * 61  # the training row that tells whether a range is needed
    assert once == model.rows - once + len(TRAIN)


def test_a_model_that_fails_on_the_training_table_fails_row_by_row():
    def model(frame):
        if len(frame) == len(TRAIN):
            raise ValueError("too many")
        return score(frame)

    many = explainer_of(model).explain_many(ROWS[:2], errors="keep", **CHEAP)
    assert [failure.error_type for failure in many.failures] == ["PredictorError"] * 2


# Threads.


def test_models_that_cannot_be_sent_are_explained_in_threads(alone):
    for model, why in ((Unpackable(), "holds a connection"), (Unopenable(), "no licence")):
        with pytest.warns(RuntimeWarning, match=f"{why}.*Threads are used instead"):
            assert texts(explainer_of(model).explain_many(ROWS, n_jobs=2, **CHEAP)) == alone


def test_after_an_interrupt_no_further_row_is_begun():
    begun = []

    class Slow(Unpackable):
        def __call__(self, frame):
            if len(frame) == 1:  # the row itself, asked about first
                begun.append(frame)
                time.sleep(0.2)
            return score(frame)

    def interrupt(progress):
        raise KeyboardInterrupt

    explainer = explainer_of(Slow(), output_range=(-1, 1))
    with pytest.warns(RuntimeWarning), pytest.raises(KeyboardInterrupt):
        explainer.explain_many(ROWS, n_jobs=4, progress=interrupt, **CHEAP)
    assert len(begun) < 12  # so many were handed out


def test_after_an_interrupt_no_further_row_shares_a_call(handlers):
    begun = []

    def explain(explainer, row):
        begun.append(row)
        time.sleep(0.2)
        if row == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        share_calls(explainer_of(), explain, range(30), width=2)
    assert len(begun) < 30


def test_a_model_that_stays_here_and_exits_costs_its_row(handlers):
    class Exits(Ends, Unpackable):
        pass

    train = with_ages((0, FAILS))  # it exits also where the range is learned
    explainer = explainer_of(Exits(SystemExit, (0,)), train=train)
    with pytest.warns(RuntimeWarning, match="Threads are used instead"):
        many = explainer.explain_many(ROWS[:4], n_jobs=2, errors="keep", **CHEAP)
    assert [failure.error_type for failure in many.failures] == ["PredictorError"] * 4


def test_workers_have_one_thread_each(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    explainer = explainer_of(Threads(), output_range=(0, 1))
    found = explainer.explain_many(ROWS[:4], n_jobs=2, errors="keep", **CHEAP)
    assert [e.prediction for e in found] == [0.01] * 4


# What goes wrong.


def test_rows_that_fail_are_kept_or_raised():
    rows = with_ages((3, FAILS)).astype(object)
    rows.loc[5, "income"] = "much"
    rows.loc[6, "age"] = 30.5
    explainer = explainer_of(Trouble())
    with pytest.raises(RowError, match=r"Row 3 .*PredictorError.*nobody is that old.*errors='keep'"):
        explainer.explain_many(rows, **CHEAP)
    many = explainer.explain_many(rows, errors="keep", **CHEAP)
    kinds = [(failure.row, failure.error_type) for failure in many.failures]
    assert kinds == [(3, "PredictorError"), (5, "InstanceError"), (6, "InstanceError")]
    assert len(many) == len(rows)


ENDINGS = {
    SystemExit: (0,),
    asyncio.CancelledError: (),
    GeneratorExit: (),
    BaseExceptionGroup: ("g", [KeyboardInterrupt()]),
}
SPREADS = [{}, {"n_jobs": 2}, {"share_calls": True}]


@pytest.mark.parametrize("how", SPREADS, ids=str)
@pytest.mark.parametrize("kind", ENDINGS)
def test_a_model_that_tries_to_end_the_process_costs_its_row(kind, how):
    explainer = explainer_of(Ends(kind, ENDINGS[kind]), output_range=(-1, 1))
    many = explainer.explain_many(with_ages((3, FAILS))[:6], errors="keep", **how, **CHEAP)
    assert [(failure.row, failure.error_type) for failure in many.failures] == [(3, "PredictorError")]
    assert f"The model raised {kind.__name__}" in many.failures[0].error
    assert len(many.explained) == 5


@pytest.mark.parametrize("how", SPREADS[1:], ids=str)
def test_an_interrupt_in_a_worker_is_the_models_own(how):
    explainer = explainer_of(Ends(KeyboardInterrupt), output_range=(-1, 1))
    many = explainer.explain_many(with_ages((3, FAILS))[:6], errors="keep", **how, **CHEAP)
    assert [failure.row for failure in many.failures] == [3]


def test_who_asks_to_end_is_heeded_though_the_model_may_not(handlers):
    """In the main thread, Ctrl-C cannot be told from a model that raises the same; a handler of SIGTERM can."""
    explainer = explainer_of(Ends(KeyboardInterrupt), output_range=(-1, 1))
    with pytest.raises(KeyboardInterrupt):
        explainer.explain_many(with_ages((3, FAILS)), errors="keep", **CHEAP)

    def asked(frame):
        if (np.asarray(frame["age"]) == FAILS).any():
            signal.raise_signal(signal.SIGTERM)
        return score(frame)

    def tidies_up(frame):
        try:
            return asked(frame)
        except BaseException as error:
            raise SystemExit(1) from error

    for model, code in ((asked, "143"), (tidies_up, "1")):
        with pytest.raises(SystemExit, match=code):
            explainer_of(model).explain_many(with_ages((3, FAILS)), errors="keep", **CHEAP)
    many = explainer_of(Ends(SystemExit, (143,))).explain_many(with_ages((3, FAILS)), errors="keep", **CHEAP)
    assert [failure.error_type for failure in many.failures] == ["PredictorError"]


@pytest.mark.parametrize("how", SPREADS, ids=str)
def test_a_model_that_exits_on_the_training_table_fails_row_by_row(how):
    explainer = explainer_of(Ends(SystemExit, (0,)), train=with_ages((0, FAILS)))
    many = explainer.explain_many(ROWS[:2], errors="keep", **how, **CHEAP)
    assert [failure.error_type for failure in many.failures] == ["PredictorError"] * 2


def test_a_worker_that_is_killed_once_costs_nothing(alone, tmp_path):
    rows = with_ages((7, DIES))
    expected = texts(explainer_of().explain_many(rows, **CHEAP))
    events = Events()
    explainer = explainer_of(Trouble(once=str(tmp_path / "killed")))
    work = Work.from_keywords(explainer, **CHEAP)
    found = list(stream(rows_of(rows, explainer), work, Plan(n_jobs=2), events))
    assert [place for place, _ in found] == list(range(len(rows)))
    assert [record["explanation"] for _, record in found] == expected
    assert events.restarts >= 1
    assert (tmp_path / "killed").exists()


def test_a_row_that_hangs_in_c_becomes_a_row_with_its_error(alone):
    """Where the interpreter is never given back, no thread of Python could end it."""
    rows = with_ages((12, HANGS_IN_C))
    many = explainer_of(Trouble()).explain_many(rows, row_timeout=3, errors="keep", **CHEAP)
    assert [(failure.row, failure.error_type) for failure in many.failures] == [(12, "RowTimeout")]
    assert many.failures[0].error == "No explanation within 3 seconds, twice."
    assert texts(many) == [*alone[:12], None, *alone[13:]]


def test_a_failing_row_does_not_spoil_those_it_shares_calls_with(alone):
    def model(frame):
        if (frame["age"] == FAILS).any():
            raise ValueError("nobody is that old")
        return score(frame)

    rows = with_ages((3, FAILS))
    many = explainer_of(model).explain_many(rows, share_calls=True, errors="keep", **CHEAP)
    assert [failure.row for failure in many.failures] == [3]
    assert texts(many)[:3] + texts(many)[4:] == alone[:3] + alone[4:]


def test_a_model_may_answer_in_the_same_memory_every_time(alone):
    """Where a mixed call fails, and every question is asked alone, answers are kept until they are read."""
    memory = np.zeros(4096)

    def model(frame):
        if len(frame) > len(memory):
            raise ValueError("too many rows for one call")
        memory[: len(frame)] = score(frame)
        return memory[: len(frame)]

    shared = explainer_of(model).explain_many(ROWS, share_calls=True, n_samples=3000, n_certify=0)
    assert texts(shared) == texts(explainer_of().explain_many(ROWS, n_samples=3000, n_certify=0))


def test_shared_questions_are_answered_together_and_in_order():
    calls = []

    def model(rows):
        calls.append(len(rows))
        return rows[:, 0]

    shared, answers = SharedModel(model), {}
    for _ in range(3):
        shared.enter()

    def ask(i):
        answers[i] = shared(np.full((i + 1, 2), i)).tolist()
        shared.leave()

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert answers == {0: [0], 1: [1, 1], 2: [2, 2, 2]}
    assert calls == [6]


# Progress.


def test_progress_is_told_row_by_row():
    seen = []
    explainer_of().explain_many(with_ages((1, FAILS))[:3], progress=seen.append, errors="keep", **CHEAP)
    assert [(p.done, p.total) for p in seen] == [(1, 3), (2, 3), (3, 3)]
    assert seen[-1].rate > 0
    assert seen[-1].remaining == 0
    assert Progress(0, 3, 0, 0.0).remaining is None


def test_a_line_is_written_to_terminals_only(capsys, monkeypatch):
    meter = Meter(2, True)
    meter.count(False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    meter = Meter(2, True)
    meter.count(False)
    meter.count(True)
    assert "2 of 2 rows (100%)" in capsys.readouterr().err


# One partition function.


@pytest.mark.parametrize("convert", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
def test_frame_in_frame_out(convert, alone):
    rows = with_ages((1, FAILS))[:3]
    rows["id"] = ["a", "b", "c"]
    found = explain_partition(convert(rows), Work.from_keywords(explainer_of(Trouble()), **CHEAP), id="id")
    assert type(found) is type(convert(rows))
    table = found if isinstance(found, pd.DataFrame) else found.to_pandas()
    assert table["id"].tolist() == ["a", "b", "c"]
    assert table["error_type"].tolist()[1] == "PredictorError"
    assert [table["explanation"][0], table["explanation"][2]] == [alone[0], alone[2]]


def test_ids_that_are_none():
    work = Work.from_keywords(explainer_of(), **CHEAP)
    with pytest.raises(ParameterError, match="id is 'name'; the frame has 'age'"):
        explain_partition(ROWS[:1], work, id="name")
    with pytest.raises(ParameterError, match="Rename yours"):
        explain_partition(ROWS[:1].assign(error=1), work, id="error")


def test_keys_know_rows_that_cannot_be_read():
    work = Work.from_keywords(explainer_of(), **CHEAP)
    rows = ROWS[:2].astype(object)
    rows.iloc[0, 0] = "old"
    first, second = explain_partition(rows, work)["key"]
    assert explain_partition(rows[::-1], work)["key"].tolist() == [second, first]
    assert first != second


# The journal.


def record_of(row, text="x"):
    return {"row": row, "error_type": None, "explanation": text}


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "why.parquet.journal"
    opened = Journal.begin(path, {"model": "m", "settings": {"k": 3}})
    for row in range(3):
        opened.append(record_of(row, "é" * row))
    opened.close()
    return path


def test_a_journal_torn_anywhere_gives_back_its_whole_lines(journal):
    content = journal.read_bytes()
    ends = [i + 1 for i, byte in enumerate(content) if byte == 10]
    for cut in range(len(content) + 1):
        journal.write_bytes(content[:cut])
        opened = Journal.resume(journal, {"model": "m", "settings": {"k": 3}})
        whole = max(0, sum(end <= cut for end in ends) - 1)
        assert opened.n_rows == whole
        opened.append(record_of(whole, "again"))
        opened.close()
        assert [entry["row"] for entry in records(journal)] == list(range(whole + 1))


def test_a_changed_line_and_all_after_it_are_dropped(journal):
    lines = journal.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"row", b"raw")
    journal.write_bytes(b"".join(lines))
    opened = Journal.resume(journal, {"model": "m", "settings": {"k": 3}})
    assert opened.n_rows == 1
    assert opened.dropped == len(lines[2]) + len(lines[3])
    opened.close()


def test_rows_come_in_order(journal):
    opened = Journal.resume(journal, {"model": "m", "settings": {"k": 3}})
    with pytest.raises(JournalError, match="Row 4 came where row 3 was due"):
        opened.append(record_of(4))
    opened.close()


def test_other_batches_are_refused(journal):
    with pytest.raises(JournalError, match="settings k was 3, is 4"):
        Journal.resume(journal, {"model": "m", "settings": {"k": 4}})
    with pytest.raises(JournalError, match="model was 'm', is 'n'"):
        Journal.resume(journal, {"model": "n", "settings": {"k": 3}})


def test_a_journal_in_use_is_refused(journal):
    held = Journal.resume(journal, {"model": "m", "settings": {"k": 3}})
    with pytest.raises(JournalError, match="Another process"):
        Journal.resume(journal, {"model": "m", "settings": {"k": 3}})
    held.close()


def test_files_that_are_no_journal_are_not_touched(tmp_path):
    path = tmp_path / "letter"
    for content in (b"Dear all,\nthis is no journal.\n", b"0123456789" * 10, b'00000000 {"format":"something"}\n'):
        path.write_bytes(content)
        with pytest.raises(JournalError, match="no journal"):
            Journal.resume(path, {})
        assert path.read_bytes() == content


def test_what_was_written_reaches_the_disk_in_time(journal, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", synced.append)
    opened = Journal.resume(journal, {"model": "m", "settings": {"k": 3}})
    opened.append(record_of(3))
    opened.tick()
    assert synced == []
    monkeypatch.setattr(time, "monotonic", lambda now=time.monotonic: now() + 1.1)
    opened.tick()
    assert len(synced) == 1
    opened.tick()
    assert len(synced) == 1  # nothing new to bring
    opened.close()


# From file to file.


def batch(out, rows=ROWS, model=score, made_of=None, settings=None, **choices):
    explainer = explainer_of(model)
    work = Work.from_keywords(explainer, **(settings or CHEAP))
    found = rows_of(rows, explainer)
    return run_batch(found, work, Path(out), made_of or {"model": "m", "data": "d"}, RunChoices(**choices))


def test_a_batch_its_file_and_its_report(alone, tmp_path):
    out = tmp_path / "why.parquet"
    report = batch(out, rows=with_ages((4, FAILS)), model=Trouble())
    assert (report.n_rows, report.n_failed, report.n_resumed, report.restarts) == (30, 1, 0, 0)
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
        batch(out, settings={"k": 4, "n_samples": 60}, resume=True)
    with pytest.raises(JournalError, match="data was 'd', is 'e'"):
        batch(out, made_of={"model": "m", "data": "e"}, resume=True)
    assert out.read_bytes() == first


def test_a_batch_goes_on_where_it_stopped_and_ends_with_the_same_bytes(tmp_path):
    whole, out = tmp_path / "whole.parquet", tmp_path / "why.parquet"
    batch(whole)
    journal = tmp_path / "why.parquet.journal"
    rows = with_ages((12, FAILS))
    with pytest.raises(RowError, match=r"Row 12.*fail-fast"):
        batch(out, rows=rows, model=Trouble(), fail_fast=True)
    assert not out.exists()
    assert sum(1 for _ in records(journal)) == 12
    with pytest.raises(JournalError, match="exists: go on with resume"):
        batch(out)
    with journal.open("ab") as file:
        file.write(b"torn")
    report = batch(out, resume=True)  # this time nothing fails
    assert (report.n_resumed, report.dropped) == (12, 4)
    assert "12 rows were finished before (4 bytes of a torn line were dropped)." in report.lines()
    assert out.read_bytes() == whole.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["whole.parquet", "why.parquet"]


def test_a_crash_after_the_last_row_is_mended(tmp_path, monkeypatch):
    out = tmp_path / "why.parquet"

    def fill_up(*arguments):
        raise OutputFileError("full")

    monkeypatch.setattr("anchorline.batch.run.write_parquet", fill_up)
    with pytest.raises(OutputFileError):
        batch(out, rows=ROWS[:4])
    monkeypatch.undo()
    with pytest.raises(JournalError, match="not both"):
        batch(out, rows=ROWS[:4], resume=True, overwrite=True)
    report = batch(out, rows=ROWS[:4], resume=True)
    assert report.n_resumed == 4
    first = out.read_bytes()
    batch(out, rows=ROWS[:4], overwrite=True)
    assert out.read_bytes() == first


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ({"n_jobs": 0}, "n_jobs is 0"),
        ({"row_timeout": -1.0}, "row_timeout is -1"),
        ({"progress": "yes"}, "progress is 'yes'; needed True"),
    ],
)
def test_bad_choices_leave_nothing_behind(choices, told, tmp_path):
    with pytest.raises(ParameterError, match=told):
        batch(tmp_path / "why.parquet", **choices)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("folder", "is a folder; needed the name of a file"),
        ("kept", "kept.journal' is a folder"),
        ("x" * 300, "the name is too long"),
        ("x" * 250, "the name is too long"),
        ("nowhere/why.parquet", "the folder does not exist"),
    ],
)
def test_places_where_no_file_can_be(name, told, overwrite, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "kept.journal").mkdir()
    with pytest.raises(OutputFileError, match=told) as raised:
        batch(tmp_path / name, overwrite=overwrite)
    assert "overwrite" not in str(raised.value)
    assert "--resume" not in str(raised.value)
    assert sorted(os.listdir(tmp_path)) == ["folder", "kept.journal"]


def test_files_of_others_are_not_resumed(tmp_path):
    out = tmp_path / "why.parquet"
    out.write_text("mine")
    with pytest.raises(JournalError, match="no batch wrote it"):
        batch(out, resume=True)
    assert out.read_text() == "mine"


def test_the_file_knows_what_it_was_made_of(tmp_path):
    out = tmp_path / "why.parquet"
    batch(out, rows=ROWS[:2])
    kept = json.loads(pa.parquet.read_schema(out).metadata[b"anchorline.batch"])
    assert kept["settings"]["k"] == 3
    assert kept["table"].startswith("table:")


# One very large explanation.


BIG = al.Explainer(rate, al.Hypercube(), output_range=(-0.5, 0.5))
POINT = [1, -1] * 10


def test_a_million_neighbors_in_parts_are_the_same_bytes():
    keywords = {"n_samples": 1_000_000, "n_certify": 2000, "k": 4}
    parts = [gather_part(BIG, POINT, start, stop, **keywords) for start, stop in parts_of(1_000_000, 3)]
    whole = explain_parts(BIG, POINT, reversed(parts), **keywords)
    assert whole == BIG.explain(POINT, **keywords)
    assert whole.certificate.n_clipped > 0
    assert parts[0].evidence + parts[1].evidence + parts[2].evidence is not None


def test_parts_in_processes_are_the_same_bytes():
    keywords = {"n_samples": 20_000, "k": 4}
    assert explain_split(BIG, POINT, n_jobs=2, **keywords) == BIG.explain(POINT, **keywords)


@pytest.mark.parametrize("n_samples", [1, 4095, 4096, 4097, 100_000])
@pytest.mark.parametrize("n_parts", [1, 2, 7, 100])
def test_cuts_are_on_the_boundaries_of_model_calls(n_samples, n_parts):
    cuts = parts_of(n_samples, n_parts)
    assert cuts[0][0] == 0
    assert cuts[-1][1] == n_samples
    assert all(a[1] == b[0] for a, b in itertools.pairwise(cuts))
    assert all(start % 4096 == 0 and start < stop for start, stop in cuts)
    assert len(cuts) <= n_parts


def test_parts_that_do_not_fit_are_refused():
    keywords = {"n_samples": 20_000, "k": 4}
    parts = [gather_part(BIG, POINT, start, stop, **keywords) for start, stop in parts_of(20_000, 3)]
    with pytest.raises(SampleError, match="do not meet"):
        explain_parts(BIG, POINT, [parts[0], parts[2]], **keywords)
    with pytest.raises(SampleError, match="do not meet"):
        explain_parts(BIG, POINT, [*parts, parts[1]], **keywords)
    with pytest.raises(SampleError, match="first part"):
        explain_parts(BIG, POINT, parts[1:], **keywords)
    with pytest.raises(SampleError, match="n_samples is 20000"):
        explain_parts(BIG, POINT, parts[:2], **keywords)
    with pytest.raises(ParameterError, match="parts_of"):
        gather_part(BIG, POINT, 100, 200, **keywords)
    with pytest.raises(ParameterError, match="To split a sample"):
        gather_part(BIG, POINT, 0, 200, n_samples="auto")
    with pytest.raises(ParameterError, match="nothing to split"):
        gather_part(BIG, [1, 1, 1], 0, 8, n_samples=1000)


def test_a_full_disk_for_temporary_files_is_told_and_nothing_stays(monkeypatch, tmp_path):
    def full(self, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputFileError, match=r"No space left on device.*set TMPDIR"):
        Crew(b"work", 1, None)
    assert not list(tmp_path.iterdir())


def test_threads_that_take_over_go_on_where_workers_were(tmp_path):
    """Both workers have their seats; row 20 kills one, and a third cannot be unpacked."""
    explainer = al.Explainer(Seats(str(tmp_path), 2), al.Table(people(200)), output_range=(-1, 1))
    with pytest.warns(RuntimeWarning, match="no seat left.*Threads are used instead"):
        many = explainer.explain_many(with_ages((20, DIES)), n_jobs=2, k=3, n_samples=60)
    assert [record["row"] for record in many.records] == list(range(30))


def test_a_batch_is_nobody_elses_until_its_file_is_written(tmp_path, monkeypatch):
    out, refused = tmp_path / "why.parquet", []
    whole = run_module.write_parquet

    def write(*arguments):
        with pytest.raises(JournalError, match="Another process is working on") as raised:
            batch(out, overwrite=True)
        refused.append(raised)
        return whole(*arguments)

    monkeypatch.setattr(run_module, "write_parquet", write)
    batch(out)
    assert len(refused) == 1
    assert os.listdir(tmp_path) == ["why.parquet"]


def test_a_key_in_an_address_is_in_no_file():
    told = _digest_of_model("https://host/invocations?api-key=sesame")
    assert told.startswith("https://host/invocations?... ")
    assert "sesame" not in told
    assert told != _digest_of_model("https://host/invocations?api-key=other")


# --- partitions ------------------------------------------------------------------------------------------


def sign_work():
    return Work.from_keywords(
        al.Explainer(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 1], al.Hypercube()), k=2, n_samples=50
    )


@pytest.mark.parametrize("id", [[-1, 17], ["p", "q"]])
def test_an_id_is_no_coordinate(id):
    frame = pd.DataFrame({"id": id, "a": [1, -1], "b": [1, 1]})
    assert explain_partition(frame, sign_work(), "id")["prediction"].tolist() == [0.75, -0.25]
    assert explain_partition(frame[["a", "id", "b"]], sign_work(), "id")["id"].tolist() == id


def test_names_of_the_answer_are_no_ids():
    frame = pd.DataFrame({"row": [5], "a": [1], "b": [1]})
    with pytest.raises(ParameterError, match="id is 'row', the name of a column of the answer"):
        explain_partition(frame, sign_work(), "row")


@pytest.mark.parametrize("name", ["row", "key", "error"])
def test_an_index_called_like_an_answer_loses_its_name_only(name):
    frame = pd.DataFrame({"a": [1, 1], "b": [1, -1]}, index=pd.Index([30, 10], name=name))
    found = explain_partition(frame, sign_work())
    assert found.index.tolist() == [30, 10]
    assert found.reset_index().columns[0] == "index"
    assert explain_partition(frame.rename_axis("client"), sign_work()).index.name == "client"


def test_pieces_of_arrow_tables_are_partitions():
    batch = pa.RecordBatch.from_pydict({"a": [1, 1], "b": [1, -1]})
    assert explain_partition(batch, sign_work())["prediction"].to_pylist() == [0.75, 0.25]
    with pytest.raises(ParameterError, match="Got a list; needed a frame"):
        explain_partition([[1, 1]], sign_work())


def test_rows_that_cannot_be_read_have_one_key_however_they_come():
    frames = [
        pd.DataFrame({"a": [20], "b": pd.array([None], dtype=object)}),
        pd.DataFrame({"a": [20.0], "b": pd.array([None], dtype="boolean")}),
        pl.DataFrame({"a": [20], "b": [None]}),
        pa.table({"a": [20], "b": [None]}),
    ]
    keys = [nw.from_native(explain_partition(frame, sign_work()))["key"].to_list() for frame in frames]
    assert all(key == keys[0] for key in keys)


def test_the_number_of_blas_threads_is_put_back_by_the_last():
    def threads():
        return [each["num_threads"] for each in threadpoolctl.threadpool_info() if each["user_api"] == "blas"]

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = threads()
        one, other = one_blas_thread(), one_blas_thread()
        one.__enter__()
        other.__enter__()
        one.__exit__(None, None, None)
        assert set(threads()) == {1}
        other.__exit__(None, None, None)
        assert threads() == before
