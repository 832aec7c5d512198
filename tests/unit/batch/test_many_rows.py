"""The bytes of an explanation do not depend on how its row was given or how the rows were distributed."""

import threading
import uuid
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import threadpoolctl

from anchorline.batch import Progress, Work, explain_partition, local
from anchorline.batch.partition import one_blas_thread
from anchorline.batch.progress import ProgressReporter
from anchorline.batch.sharing import SharedModel
from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table
from helpers.batch_models import (
    FAILS,
    Counting,
    score,
)
from helpers.many_rows import AUTO, CHEAP, ROWS, TRAIN, explainer_of, texts, with_ages


def test_one_process_two_processes_each_row_alone(alone):
    explainer = explainer_of()
    assert texts(explainer.explain_many(ROWS, **CHEAP)) == alone
    assert texts(explainer.explain_many(ROWS, n_jobs=2, **CHEAP)) == alone
    automatic = explainer.explain_many(ROWS[:6], **AUTO)
    assert automatic[0].rows is not None
    assert texts(explainer_of().explain_many(ROWS[:6], n_jobs=2, **AUTO)) == texts(automatic)
    assert texts(explainer_of().explain_many(ROWS[:6], share_calls=True, **AUTO)) == texts(automatic)


def test_rows_of_every_kind(alone):
    explainer = explainer_of()
    upcast = ROWS.astype({"age": float})
    upcast["more"] = "not in the training table"
    kinds = [upcast[:6], pl.from_pandas(ROWS[:6]), pa.Table.from_pandas(ROWS[:6]), ROWS[:6].to_dict("records")]
    kinds += [ROWS[:6].to_numpy(dtype=object), ROWS[:6].values.tolist(), ROWS[:6].set_index([pd.Index([3] * 6)])]
    kinds += [pa.RecordBatch.from_pandas(ROWS[:6])]
    for rows in kinds:
        assert texts(explainer.explain_many(rows, **CHEAP)) == alone[:6]


def test_names_that_are_numbers():
    frame = pd.DataFrame(np.random.default_rng(0).random((50, 3)), columns=[1, 7, 0])
    explainer = Explainer(lambda rows: rows[1] - rows[0] / 2, Table(frame), output="score")
    expected = [explainer.explain(frame.iloc[i], **CHEAP).to_json() for i in range(2)]
    assert texts(explainer.explain_many(frame[:2], **CHEAP)) == expected
    assert texts(explainer.explain_many(frame[[0, 7, 1]][:2], **CHEAP)) == expected
    assert explain_partition(frame[:2], Work.from_keywords(explainer, **CHEAP))["explanation"].tolist() == expected


def test_order_does_not_matter(alone):
    order = np.random.default_rng(0).permutation(len(ROWS))
    assert texts(explainer_of().explain_many(ROWS.iloc[order], **CHEAP)) == [alone[i] for i in order]


def test_arrays_and_signs():
    explainer = Explainer(lambda z: 0.5 * z[:, 0], Hypercube(["a", "b"]))
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
    refused = [(np.zeros(3), r"it must be \(n, d\)"), (pl.LazyFrame({"a": [1]}), "lazy"), (7, "Got a int")]
    for rows, message in [*refused, (twice, "Column names must differ.*'age'.*Rename one")]:
        with pytest.raises(ParameterError, match=message):
            explainer.explain_many(rows)
    with pytest.raises(ParameterError, match="errors is 'ignore'"):
        explainer.explain_many(ROWS, errors="ignore")
    with pytest.raises(TypeError, match="unexpected keyword 'n_job'"):
        explainer.explain_many(ROWS, n_job=2)
    with pytest.raises(ParameterError, match="row_timeout is 0"):
        explainer.explain_many(ROWS, row_timeout=0)
    with pytest.raises(ParameterError, match="progress is 'yes', but it must be True"):
        explainer.explain_many(ROWS, progress="yes")
    with pytest.raises(ParameterError, match="Omit row_timeout or share_calls"):
        explainer.explain_many(ROWS, row_timeout=1, share_calls=True)


def test_no_rows_no_explanations():
    assert len(explainer_of().explain_many(ROWS[:0])) == 0
    assert len(explainer_of().explain_many([])) == 0


@pytest.mark.parametrize("n_jobs", [0, True, 1.5, "2"])
def test_numbers_of_jobs_that_are_none(n_jobs):
    with pytest.raises(ParameterError, match="n_jobs is"):
        explainer_of().explain_many(ROWS, n_jobs=n_jobs)


def test_minus_one_is_all_cores():
    assert local._n_workers(np.int64(2)) == 2
    assert local._n_workers(-1) == joblib.cpu_count()
    assert local._n_workers(-1000) == 1


@pytest.mark.parametrize(("n_rows", "how", "n_workers"), [(2, {}, 2), (1, {}, 1), (5, {"share_calls": True}, 1)])
def test_no_more_workers_than_work(n_rows, how, n_workers, alone, monkeypatch):
    pool_sizes = []

    start = local._Workers._start

    def noted(workers, n_workers):
        pool_sizes.append(n_workers)
        start(workers, n_workers)

    monkeypatch.setattr(local._Workers, "_start", noted)
    explanations = explainer_of().explain_many(ROWS[:n_rows], n_jobs=np.int64(40), **how, **CHEAP)
    assert texts(explanations) == alone[:n_rows]
    assert pool_sizes == [n_workers]


def test_the_table_is_asked_about_once(tmp_path):
    model = Counting()
    explainer = explainer_of(model)
    many = explainer.explain_many(ROWS[:3], **AUTO)
    total = sum(e.queries.total for e in many)
    assert model.rows == total + len(TRAIN)
    explainer.explain_many(ROWS[:3], **AUTO)
    assert model.rows == 2 * total + len(TRAIN)

    seen = explainer_of(Seen(str(tmp_path)))
    parallel = seen.explain_many(ROWS[:8], n_jobs=2, **AUTO)
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == [str(len(TRAIN))]
    assert seen.table_answers(ask=False) is not None
    assert texts(parallel)[:3] == texts(many)


class Seen:
    """`score`, which notes in a folder how often it is asked about as many rows as the table has."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, frame):
        if len(frame) == len(TRAIN):
            (Path(self.folder) / uuid.uuid4().hex).write_text(str(len(frame)))
        return score(frame)


def test_a_model_that_fails_on_the_training_table_fails_row_by_row():
    def model(frame):
        if len(frame) == len(TRAIN):
            raise ValueError("too many")
        return score(frame)

    many = explainer_of(model).explain_many(ROWS[:2], errors="keep", **AUTO)
    assert [failure.error_type for failure in many.failures] == ["PredictorError"] * 2


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
    """When a shared call fails and each query is sent alone, every answer is kept until it is read."""
    memory = np.zeros(1200)

    def model(frame):
        if len(frame) > len(memory):
            raise ValueError("too many rows for one call")
        memory[: len(frame)] = score(frame)
        return memory[: len(frame)]

    shared = explainer_of(model).explain_many(ROWS, share_calls=True, queries=1000)
    assert texts(shared) == texts(explainer_of().explain_many(ROWS, queries=1000))


def test_shared_questions_are_answered_together_and_in_order():
    calls = []

    def model(rows):
        calls.append(len(rows))
        return rows[:, 0]

    shared, answers = SharedModel(model), {}
    shared.enter(3)

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


def test_progress_is_told_row_by_row():
    reports = []
    explainer_of().explain_many(with_ages((1, FAILS))[:3], progress=reports.append, errors="keep", **CHEAP)
    assert [(p.done, p.total) for p in reports] == [(1, 3), (2, 3), (3, 3)]
    assert reports[-1].rate > 0
    assert reports[-1].remaining == 0
    assert Progress(0, 3, 0, 0.0).remaining is None


def test_a_line_is_written_to_terminals_only(capsys, monkeypatch):
    reporter = ProgressReporter(2, True)
    reporter.count(False)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    reporter = ProgressReporter(2, True)
    reporter.count(False)
    reporter.count(True)
    assert "2 of 2 rows (100%)" in capsys.readouterr().err


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
