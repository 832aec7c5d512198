"""Answers kept in a file, and the pace of requests, on the command line."""

import contextlib
import pickle
import threading
from http.server import ThreadingHTTPServer

import numpy as np
import pandas as pd
import pytest

from anchorline.cli import inputs
from anchorline.cli.app import run
from anchorline.model.loaders import load_model
from helpers.model_server import Handler

FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(60, 12)).round(3), columns=[*"abcdefghijkl"])


@pytest.fixture
def folder(tmp_path, monkeypatch):
    FRAME.to_csv(tmp_path / "train.csv", index=False)
    (tmp_path / "counted.py").write_text(
        "calls = []\n"
        "def score(frame):\n"
        "    calls.append(len(frame))\n"
        "    return (frame['a'] * frame['b']).to_numpy().clip(-1, 1)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def server(monkeypatch):
    models = []

    def load(*arguments, **options):
        models.append(load_model(*arguments, **options))
        return models[-1]

    monkeypatch.setattr(inputs, "load_model", load)  # so that connections are closed, as by the end of a process

    def labeled(request, body):
        high = [1 / (1 + 2 ** (-row[0] - row[1])) for row in body["dataframe_split"]["data"]]
        request.reply({"predictions": [{"no": 1 - each, "yes": each} for each in high]})

    found = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.requests, found.answer = [], labeled
    threading.Thread(target=found.serve_forever, daemon=True).start()
    yield found
    for model in models:
        getattr(model, "close", int)()
    found.shutdown()
    found.server_close()


def explained(capsys, *arguments):
    assert run(["explain", *map(str, arguments), "--row", "3", "--queries", "120", "--format", "json"]) == 0
    return capsys.readouterr().out


def test_a_second_run_asks_nothing(folder, capsys):
    import counted

    options = ("counted:score", "--data", "train.csv", "--output-range", -1, 1, "--cache", "answers.db")
    first = explained(capsys, *options, "--cache-key", "score 1")
    asked = sum(counted.calls)
    assert 0 < asked <= 120
    assert explained(capsys, *options, "--cache-key", "score 1") == first
    assert sum(counted.calls) == asked
    assert explained(capsys, *options[:-2]) == first  # the same bytes without a cache
    explained(capsys, *options, "--cache-key", "score 2")
    assert sum(counted.calls) == 3 * asked


def test_a_model_behind_an_address_is_not_asked_again(folder, server, capsys):
    address = f"http://127.0.0.1:{server.server_port}/invocations"
    options = (address, "--data", "train.csv", "--cache", "answers.db", "--cache-key", "served 1")
    pace = ("--batch-rows", 16, "--parallel", 2, "--rate", 500, "--retries", 1)
    first = explained(capsys, *options, *pace)
    n_requests = len(server.requests)
    assert n_requests >= 120 // 16
    assert explained(capsys, *options, *pace) == first
    assert len(server.requests) == n_requests


def test_a_file_needs_no_key_and_code_does(folder, server, capsys):
    address = f"http://127.0.0.1:{server.server_port}/invocations?key=secret"
    for spec in ("counted:score", address):
        assert run(["explain", spec, "--data", "train.csv", "--row", "0", "--cache", "answers.db"]) == 2
        message = capsys.readouterr().err
        assert "--cache-key" in message
        assert "secret" not in message
    assert run(["explain", "counted:score", "--data", "train.csv", "--row", "0", "--cache-key", "x"]) == 2
    assert "--cache answers.db" in capsys.readouterr().err


def test_limits_are_named_by_their_options(folder, capsys):
    options = ["explain", "http://127.0.0.1:9/invocations", "--data", "train.csv", "--row", "0"]
    for option, value in (("--rate", "0"), ("--parallel", "0"), ("--retries", "-1")):
        assert run([*options, option, value]) == 2
        assert f"{option} is " in capsys.readouterr().err


def test_the_file_of_a_model_is_its_key(folder, capsys):
    skops = pytest.importorskip("skops.io")
    from sklearn.linear_model import LogisticRegression

    sizes = []
    for cost in (1.0, None, 0.1):
        if cost is not None:  # otherwise the file stays as it is
            skops.dump(LogisticRegression(C=cost).fit(FRAME, FRAME["a"] > 0), folder / "model.skops")
        explained(capsys, "model.skops", "--data", "train.csv", "--cache", "answers.db")
        sizes.append(n_answers(folder / "answers.db"))
    assert sizes[0] == sizes[1] == sizes[2] / 2


def n_answers(path):
    import sqlite3

    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT count(*) FROM answers").fetchone()[0]


def test_a_pickle_of_code_of_your_own_needs_a_key(folder, capsys):
    (folder / "own.py").write_text(
        "class Own:\n    def predict(self, rows):\n        return rows['a'].to_numpy()\n"
    )
    import own

    (folder / "model.pkl").write_bytes(pickle.dumps(own.Own()))
    options = ("model.pkl", "--data", "train.csv", "--cache", "answers.db", "--trust-pickle", "--row", "3")
    assert run(["explain", *options, "--task", "number"]) != 0
    assert "'model.pkl' cannot be recognized in a later run" in capsys.readouterr().err
    assert run(["explain", *options, "--task", "number", "--cache-key", "own 1"]) == 0


def test_a_batch_with_changes_needs_a_decision_before_it_begins(folder, capsys):
    options = ["train.csv", "--model", "counted:score", "--data", "train.csv", "--out", "why.parquet", "--changes"]
    assert run(["batch", *options]) != 0
    assert "--changes needs a decision" in capsys.readouterr().err
    assert not list(folder.glob("why*"))
