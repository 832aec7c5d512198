"""Threads, interrupts, and models that fail, exit, die or hang: no other row is affected."""

import asyncio
import errno
import signal
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from anchorline.batch import Work
from anchorline.batch.local import ExecutionPlan, RunEvents, stream
from anchorline.batch.rows import rows_of
from anchorline.batch.sharing import share_calls
from anchorline.errors import OutputFileError, RowError
from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from helpers.batch_models import (
    DIES,
    FAILS,
    HANGS_IN_C,
    Ends,
    Seats,
    Threads,
    Trouble,
    Unopenable,
    Unpackable,
    people,
    score,
)
from helpers.many_rows import AUTO, CHEAP, ROWS, explainer_of, texts, with_ages

EXIT_EXCEPTIONS = {
    SystemExit: (0,),
    asyncio.CancelledError: (),
    GeneratorExit: (),
    BaseExceptionGroup: ("g", [KeyboardInterrupt()]),
}

WAYS_TO_RUN = [{}, {"n_jobs": 2}, {"share_calls": True}]


def test_models_that_cannot_be_sent_are_explained_in_threads(alone):
    for model, why in ((Unpackable(), "holds a connection"), (Unopenable(), "no license")):
        with pytest.warns(RuntimeWarning, match=f"{why}.*Threads are used instead"):
            assert texts(explainer_of(model).explain_many(ROWS, n_jobs=2, **CHEAP)) == alone


def test_after_an_interrupt_no_further_row_is_begun():
    started = []

    class Slow(Unpackable):
        def __call__(self, frame):
            if len(frame) == 1:  # the row itself, which is the first query
                started.append(frame)
                time.sleep(0.2)
            return score(frame)

    def interrupt(progress):
        raise KeyboardInterrupt

    explainer = explainer_of(Slow(), output_range=(-1, 1))
    with pytest.warns(RuntimeWarning), pytest.raises(KeyboardInterrupt):
        explainer.explain_many(ROWS, n_jobs=4, progress=interrupt, **CHEAP)
    assert len(started) < 12  # the number of rows that were sent


def test_after_an_interrupt_no_further_row_shares_a_call(handlers):
    started = []

    def explain(explainer, row):
        started.append(row)
        time.sleep(0.2)
        if row == 0:
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        share_calls(explainer_of(), explain, range(30), width=2)
    assert len(started) < 30


def test_a_model_that_stays_here_and_exits_costs_its_row(handlers):
    class Exits(Ends, Unpackable):
        pass

    train = with_ages((0, FAILS))  # it also exits while the table is asked about
    explainer = explainer_of(Exits(SystemExit, (0,)), train=train)
    with pytest.warns(RuntimeWarning, match="Threads are used instead"):
        many = explainer.explain_many(ROWS[:4], n_jobs=2, errors="keep", **AUTO)
    assert [failure.error_type for failure in many.failures] == ["PredictorError"] * 4


@pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")  # a constant model
def test_workers_have_one_thread_each(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "2")
    explainer = explainer_of(Threads(), output_range=(0, 1))
    explanations = explainer.explain_many(ROWS[:4], n_jobs=2, errors="keep", **CHEAP)
    assert [e.prediction for e in explanations] == [0.01] * 4


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


@pytest.mark.parametrize("how", WAYS_TO_RUN, ids=str)
@pytest.mark.parametrize("kind", EXIT_EXCEPTIONS)
def test_a_model_that_tries_to_end_the_process_costs_its_row(kind, how):
    explainer = explainer_of(Ends(kind, EXIT_EXCEPTIONS[kind]), output_range=(-1, 1))
    many = explainer.explain_many(with_ages((3, FAILS))[:6], errors="keep", **how, **CHEAP)
    assert [(failure.row, failure.error_type) for failure in many.failures] == [(3, "PredictorError")]
    assert f"The model raised {kind.__name__}" in many.failures[0].error
    assert len(many.explained) == 5


@pytest.mark.parametrize("how", WAYS_TO_RUN[1:], ids=str)
def test_an_interrupt_in_a_worker_is_the_models_own(how):
    explainer = explainer_of(Ends(KeyboardInterrupt), output_range=(-1, 1))
    many = explainer.explain_many(with_ages((3, FAILS))[:6], errors="keep", **how, **CHEAP)
    assert [failure.row for failure in many.failures] == [3]


def test_who_asks_to_end_is_heeded_though_the_model_may_not(handlers):
    """In the main thread, Ctrl-C looks like a model that raises KeyboardInterrupt; a SIGTERM handler does not."""
    explainer = explainer_of(Ends(KeyboardInterrupt), output_range=(-1, 1))
    with pytest.raises(KeyboardInterrupt):
        explainer.explain_many(with_ages((3, FAILS)), errors="keep", **CHEAP)

    def sends_sigterm(frame):
        if (np.asarray(frame["age"]) == FAILS).any():
            signal.raise_signal(signal.SIGTERM)
        return score(frame)

    def cleans_up(frame):
        try:
            return sends_sigterm(frame)
        except BaseException as error:
            raise SystemExit(1) from error

    for model, code in ((sends_sigterm, "143"), (cleans_up, "1")):
        with pytest.raises(SystemExit, match=code):
            explainer_of(model).explain_many(with_ages((3, FAILS)), errors="keep", **CHEAP)
    many = explainer_of(Ends(SystemExit, (143,))).explain_many(with_ages((3, FAILS)), errors="keep", **CHEAP)
    assert [failure.error_type for failure in many.failures] == ["PredictorError"]


@pytest.mark.parametrize("how", WAYS_TO_RUN, ids=str)
def test_a_model_that_exits_on_the_training_table_fails_row_by_row(how):
    explainer = explainer_of(Ends(SystemExit, (0,)), train=with_ages((0, FAILS)))
    many = explainer.explain_many(ROWS[:2], errors="keep", **how, **AUTO)
    assert [failure.error_type for failure in many.failures] == ["PredictorError"] * 2


def test_a_worker_that_is_killed_once_costs_nothing(alone, tmp_path):
    rows = with_ages((7, DIES))
    expected = texts(explainer_of().explain_many(rows, **CHEAP))
    events = RunEvents()
    explainer = explainer_of(Trouble(once=str(tmp_path / "killed")))
    work = Work.from_keywords(explainer, **CHEAP)
    numbered = list(stream(rows_of(rows, explainer), work, ExecutionPlan(n_jobs=2), events))
    assert [place for place, _ in numbered] == list(range(len(rows)))
    assert [record["explanation"] for _, record in numbered] == expected
    assert events.restarts >= 1
    assert (tmp_path / "killed").exists()


def test_a_row_that_hangs_in_c_becomes_a_row_with_its_error(alone):
    """A Python thread could not end the row, because the model never releases the interpreter."""
    rows = with_ages((12, HANGS_IN_C))
    many = explainer_of(Trouble()).explain_many(rows, row_timeout=3, errors="keep", **CHEAP)
    assert [(failure.row, failure.error_type) for failure in many.failures] == [(12, "RowTimeout")]
    assert many.failures[0].error == "The row was not explained within 3 seconds, in two attempts."
    assert texts(many) == [*alone[:12], None, *alone[13:]]


def test_a_full_disk_for_temporary_files_is_told_and_nothing_stays(monkeypatch, tmp_path):
    def full(self, content):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputFileError, match=r"No space left on device.*Set TMPDIR"):
        explainer_of().explain_many(ROWS, n_jobs=2, **CHEAP)
    assert not list(tmp_path.iterdir())


def test_threads_that_take_over_go_on_where_workers_were(tmp_path):
    """Both workers have their seats; row 20 kills one of them, and a third cannot unpack the model."""
    explainer = Explainer(Seats(str(tmp_path), 2), Table(people(200)), output_range=(-1, 1))
    with pytest.warns(RuntimeWarning, match="no seat left.*Threads are used instead"):
        many = explainer.explain_many(with_ages((20, DIES)), n_jobs=2, **CHEAP)
    assert [record["row"] for record in many.records] == list(range(30))
