"""cache=: the same bytes with and without, nothing asked twice, several processes, crashes, damage, and models."""

import contextlib
import gc
import inspect
import pickle
import sqlite3
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from anchorline.errors import AnchorlineError, CacheError, ParameterError
from anchorline.explainer import Explainer
from anchorline.model.cache import AnswerCache, digest_inputs, fingerprint
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table
from anchorline.spaces.text import Text

X = np.ones(16)


def crooked(z):
    return np.tanh(z[:, 0] + 0.5 * z[:, 1] * z[:, 2] + 0.2 * z[:, 3:].sum(axis=1))


def explained(path, function=crooked, key="crooked 1", **keywords):
    cache = AnswerCache(path, key=key, **keywords)
    return Explainer(function, Hypercube(), threshold=0.0, cache=cache).explain(X, queries=200), cache


def plainly(**keywords):
    return Explainer(crooked, Hypercube(), threshold=0.0).explain(X, queries=200, **keywords)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "answers.db"


def test_a_second_run_asks_nothing_and_has_the_same_bytes(path):
    plain = plainly()
    first, asked = explained(path)
    again, found = explained(path, function=lambda z: pytest.fail("the model was asked"))
    assert first.to_json() == again.to_json() == plain.to_json()
    n = first.queries.total
    assert (asked.n_asked, asked.n_found, found.n_asked, found.n_found) == (n, 0, 0, n)
    assert 190 <= n == again.queries.total <= 200


def test_other_seeds_rows_models_and_laws_are_asked(path):
    explained(path)
    for changes in ({"seed": 1}, {"sigma": 2.0}):
        cache = AnswerCache(path, key="crooked 1")
        Explainer(crooked, Hypercube(), threshold=0.0, cache=cache).explain(X, queries=200, **changes)
        assert cache.n_found <= 1  # the case itself
    assert explained(path, key="crooked 2")[1].n_found == 0


def test_answers_survive_a_crash_call_by_call(path):
    calls = []

    def fails(z):
        calls.append(len(z))
        if len(calls) == 8:
            raise KeyboardInterrupt
        return crooked(z)

    with pytest.raises(KeyboardInterrupt):
        explained(path, function=fails, rows_per_call=10)
    e, cache = explained(path, rows_per_call=10)
    assert cache.n_found == sum(calls[:7])
    assert cache.n_asked == e.queries.total - cache.n_found
    assert e == plainly()


def test_several_processes_share_a_file(path):
    parts = ["import sys", "import numpy as np", "X = np.ones(16)"]
    parts += [f"from {kind.__module__} import {kind.__name__}" for kind in (AnswerCache, Explainer, Hypercube)]
    parts += [inspect.getsource(function) for function in (crooked, explained)]
    script = "\n".join([*parts, "sys.stdout.write(explained(sys.argv[1])[0].to_json())"])
    # New processes: a forked one may wait for ever for a lock that a thread of this one held.
    processes = [
        subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) for _ in range(3)
    ]
    texts = {process.communicate(timeout=120)[0] for process in processes}
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert texts == {explained(path)[0].to_json().encode()}
    assert explained(path)[1].n_asked == 0


def test_a_cache_goes_to_worker_processes(path):
    explainer = Explainer(crooked, Hypercube(), cache=AnswerCache(path, key="1"), threshold=0.0)
    assert explainer.explain_many([X, -X], queries=64, n_jobs=2)[0] == explainer.explain(X, queries=64)
    assert explainer.cache.n_asked == 0
    assert pickle.loads(pickle.dumps(explainer.cache)).path == path


def test_estimators_are_recognized_and_frames_too(path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(80, 4)), columns=list("abcd")).assign(e=rng.choice(["x", "y"], 80))
    rows = frame[list("abcd")]
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(rows, rows["a"] + rows["b"] > 0)
    for is_first in (True, False):
        explainer = Explainer(pickle.loads(pickle.dumps(model)), Table(rows), cache=path)
        e = explainer.explain(rows.iloc[0], queries=100)
        assert explainer.cache.n_asked == is_first * e.queries.total
    other = make_pipeline(StandardScaler(), LogisticRegression(C=2.0)).fit(rows, rows["a"] + rows["b"] > 0)
    assert fingerprint(other) != fingerprint(model)
    assert digest_inputs(b"", frame) == digest_inputs(b"", frame.copy())
    assert digest_inputs(b"", frame) != digest_inputs(b"", frame.assign(e="x"))
    assert digest_inputs(b"", pl.from_pandas(frame)) == digest_inputs(b"", pl.from_pandas(frame))


@pytest.mark.parametrize("model", [crooked, lambda z: z[:, 0], FunctionTransformer(crooked)])
def test_models_with_code_of_their_own_need_a_key(model, path):
    with pytest.raises(CacheError, match="key='name and version of the model'"):
        fingerprint(model)
    assert not path.exists()


@pytest.mark.parametrize("answers", [["yes", "no"], [1, 0], [True, False]])
def test_labels_are_kept_as_they_are(answers, path):
    def label(z):
        return np.array(answers)[(z[:, 0] > 0).astype(int)]

    plain = Explainer(label, Hypercube(), task="label").explain(X, queries=64)
    for _ in range(2):
        cached = Explainer(label, Hypercube(), task="label", cache=AnswerCache(path, key="l"))
        assert cached.explain(X, queries=64).to_json() == plain.to_json()


@pytest.mark.parametrize("rows_per_call", [1, 7])
def test_texts_in_small_calls(path, rows_per_call):
    def score(texts):
        return np.array([0.5 + 0.3 * ("great" in text) - 0.2 * ("slow" in text) for text in texts])

    text = "great food, but slow; the wine was fine and the view too"
    cache = AnswerCache(path, key="s", rows_per_call=rows_per_call)
    explainer = Explainer(score, Text(), output_range=(0, 1), cache=cache)
    plain = Explainer(score, Text(), output_range=(0, 1))
    assert explainer.explain(text, queries=64) == plain.explain(text, queries=64)


def test_damage_is_named_and_nothing_is_lost(path):
    explained(path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE answers SET content = zeroblob(length(content))")
    connection.commit()
    connection.close()
    with pytest.raises(CacheError, match="is damaged: an answer in it was changed"):
        explained(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM answers").fetchone()[0] > 2


def test_files_that_are_no_cache_are_left_alone(path, tmp_path):
    path.write_bytes(b"not a database " * 100)
    with pytest.raises(CacheError, match="is damaged"):
        AnswerCache(path)
    assert path.read_bytes() == b"not a database " * 100
    other = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
    with pytest.raises(CacheError, match="database of another program"):
        AnswerCache(other)
    with pytest.raises(CacheError, match="Its folder must exist"):
        AnswerCache(tmp_path / "missing" / "answers.db")
    with pytest.raises(ParameterError, match="rows_per_call"):
        AnswerCache(path, rows_per_call=0)


def test_wrong_answers_are_not_kept(path):
    with pytest.raises(AnchorlineError):
        explained(path, function=lambda z: np.full(len(z), np.nan))
    assert explained(path)[1].n_found == 0


class Weighed(LogisticRegression):
    """A class of one's own: `predict` is asked as well, until the table shows that scores decide."""


@pytest.mark.parametrize("kind", [LogisticRegression, Weighed])
def test_the_answers_about_the_table_and_both_kinds_of_answers_are_kept(kind, path):
    rows = pd.DataFrame(np.random.default_rng(0).normal(size=(80, 4)), columns=list("abcd"))
    model = kind().fit(rows, rows["a"] + rows["b"] > 0)
    plain = Explainer(model, Table(rows)).explain(3).to_json()
    counts = []
    for _ in range(2):
        explainer = Explainer(model, Table(rows), cache=AnswerCache(path, key="1"))
        e = explainer.explain(3)
        assert e.to_json() == plain
        counts.append((explainer.cache.n_asked, explainer.cache.n_found))
    assert counts[1][0] == 0
    assert counts[1][1] == sum(counts[0])


def test_a_cache_that_is_gone_has_closed_its_file(tmp_path):
    cache = AnswerCache(tmp_path / "answers.cache", key="model")
    connection = cache._connection
    connection.execute("SELECT 1")
    del cache
    gc.collect()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        connection.execute("SELECT 1")


def test_a_forest_that_is_loaded_twice_is_the_same_model(tmp_path):
    """Between the fields of a tree's nodes lie bytes that mean nothing, and differ."""
    joblib = pytest.importorskip("joblib")
    from sklearn.ensemble import RandomForestClassifier

    rng = np.random.default_rng(0)
    forest = RandomForestClassifier(10, random_state=0).fit(rng.normal(size=(80, 4)), rng.random(80) > 0.5)
    joblib.dump(forest, tmp_path / "model.joblib")
    loaded = [joblib.load(tmp_path / "model.joblib") for _ in range(2)]
    assert {fingerprint(each) for each in (forest, *loaded)} == {fingerprint(forest)}
    assert (loaded[0].predict_proba(np.eye(4)) == forest.predict_proba(np.eye(4))).all()
