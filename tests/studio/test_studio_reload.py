"""SIGHUP loads configuration, models, tables and tokens again, without losing a request."""

import concurrent.futures
import contextlib
import gc
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
import weakref

import httpx
import pandas as pd
import pytest

import anchorline
from anchorline.errors import ParameterError
from anchorline.studio.display import Model
from anchorline.studio.server import prepare
from helpers.studio import SlowModel, becomes_true, begun, client_of, cohort_explainer, live, slow_explainer

MODEL = """
import time
import numpy as np

def first(rows):
    return np.full(len(rows), 1.0) + 0.001 * rows["age"].to_numpy()

def second(rows):
    return np.full(len(rows), 2.0) + 0.001 * rows["age"].to_numpy()

def slow(rows):
    time.sleep(0.3 if len(rows) > 1 else 0)
    return first(rows)

def hangs(rows):
    time.sleep(60)
"""
CONFIG = """
port = 0
token-file = "token"
data = "train.csv"
task = "number"
max-queries = 200

[[model]]
name = "loans"
title = "Loans"
model = "scorer:first"

[[model]]
name = "slow"
model = "scorer:slow"
"""
OLD, NEW = "an-old-token-of-the-file", "a-new-token-of-the-file"


@contextlib.contextmanager
def process(folder):
    """Run ``anchorline serve --config`` and yield it with its address and its log."""
    (folder / "scorer.py").write_text(MODEL)
    (folder / "token").write_text(f"{OLD}\n")
    (folder / "config.toml").write_text(CONFIG)
    pd.DataFrame({"age": range(40), "sex": ["f", "m"] * 20}).to_csv(folder / "train.csv", index=False)
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    environment.pop("ANCHORLINE_STUDIO_TOKEN", None)
    environment["PYTHONPATH"] = f"{pathlib.Path(anchorline.__file__).parents[1]}{os.pathsep}{folder}"
    command = [sys.executable, "-m", "anchorline", "serve", "--config", "config.toml"]
    log = folder / "log"
    with log.open("wb") as errors:
        started = subprocess.Popen(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            text=True,
        )  # fmt: skip
    try:
        base = started.stdout.readline().removeprefix("Open ").strip().rstrip("/")
        assert base, log.read_text()
        yield started, base, log
    finally:
        started.kill()
        started.stdout.close()
        started.wait()


def bearer(token):
    return {"Authorization": f"Bearer {token}"}


def test_no_request_is_lost_while_everything_is_loaded_again(tmp_path):
    config = tmp_path / "config.toml"
    with process(tmp_path) as (server, base, log), httpx.Client(base_url=base, timeout=60) as client:
        found, stop = [], threading.Event()

        def ask(number):
            with httpx.Client(base_url=base, headers=bearer(OLD), timeout=60) as own:
                while not stop.is_set():
                    if number % 2:
                        answer = own.post("/m/loans/v1/answer", json={"row": 0})
                    else:
                        answer = own.post("/m/loans/v1/explain", json={"row": 0, "queries": 100 + len(found) % 50})
                    body = answer.json()
                    found.append((answer.status_code, body.get("value", body.get("prediction"))))

        with concurrent.futures.ThreadPoolExecutor(5) as pool:
            asked = [pool.submit(ask, number) for number in range(4)]
            under_way = pool.submit(client.post, "/m/slow/v1/explain", json={"row": 0}, headers=bearer(OLD))
            time.sleep(0.5)
            for n_loaded, model in enumerate(("second", "first", "second"), start=1):
                config.write_text(
                    CONFIG.replace("scorer:first", f"scorer:{model}").replace("scorer:slow", "scorer:first")
                )
                server.send_signal(signal.SIGHUP)
                assert becomes_true(lambda n=n_loaded: log.read_text().count("again: Loans, slow.") == n, 30), (
                    log.read_text()
                )
            slow = under_way.result()
            assert slow.status_code == 200  # by the model that was loaded when it began
            time.sleep(0.5)
            stop.set()
            for each in asked:
                each.result()
        assert {status for status, _ in found} == {200}
        assert {value for _, value in found} == {1.0, 2.0}
        assert found[-1][1] == 2.0
        assert len(found) > 20
        assert client.post("/m/loans/v1/answer", json={"row": 0}, headers=bearer(OLD)).json()["value"] == 2.0


def test_what_is_wrong_is_logged_and_the_server_goes_on(tmp_path):
    config, tokens = tmp_path / "config.toml", tmp_path / "token"
    with process(tmp_path) as (server, base, log), httpx.Client(base_url=base, timeout=60) as client:

        def reload(says):
            server.send_signal(signal.SIGHUP)
            assert becomes_true(lambda: says in log.read_text(), 30), log.read_text()
            return client.get("/m/loans/page/about", headers=bearer(OLD)).json().get("name")

        for text, says in (
            (
                CONFIG.replace('"Loans"', '"New"').replace("scorer:slow", "scorer:none"),
                "Model 'slow': Module 'scorer' has no 'none'",
            ),
            (CONFIG.replace('"Loans"', '"New"').replace("train.csv", "none.csv"), "none.csv"),
            (CONFIG.replace('"Loans"', '"New"') + "threshold = 'x'", "threshold"),
            ("port = ", "is not TOML"),
        ):
            config.write_text(text)
            assert reload(says) == "Loans"
        config.write_text(CONFIG.replace('"Loans"', '"New"'))
        tokens.write_text("short")
        assert reload("'token' is too short") == "Loans"
        assert "Traceback" not in log.read_text()
        tokens.write_text(f"{NEW}\n{OLD}\n")
        config.write_text(CONFIG.replace('"Loans"', '"New"').replace("port = 0", "port = 1"))
        assert reload("again: New, slow.") == "New"
        assert "Restart the server to change port" in log.read_text()
        assert client.get("/m/loans/v1/rows", headers=bearer(NEW)).status_code == 200
        tokens.write_text(NEW)
        config.write_text(CONFIG.replace("loans", "cards"))
        assert reload("again: Loans, slow.") is None  # the old token has ended
        assert client.get("/m/loans/v1/rows", headers=bearer(OLD)).status_code == 401
        assert client.get("/m/loans/v1/rows", headers=bearer(NEW)).status_code == 404
        assert client.get("/m/cards/v1/rows", headers=bearer(NEW)).status_code == 200


def test_a_signal_ends_the_process_while_a_model_hangs_that_is_loaded(tmp_path):
    with process(tmp_path) as (server, base, _):
        (tmp_path / "config.toml").write_text(CONFIG.replace("scorer:first", "scorer:hangs"))
        server.send_signal(signal.SIGHUP)
        time.sleep(1.5)
        assert httpx.get(f"{base}/m/loans/v1/rows", headers=bearer(OLD), timeout=10).status_code == 200
        start = time.perf_counter()
        server.send_signal(signal.SIGTERM)
        assert server.wait(8) == 0
        assert time.perf_counter() - start < 5


def reloaded(server):
    """Let a server in this process load everything again, as the signal does."""
    server.reloading = None
    server.servers[0].get_loop().call_soon_threadsafe(server.reload)
    assert becomes_true(lambda: server.reloading is not None and server.reloading.done(), 60)


def test_a_request_under_way_is_answered_by_the_old_model_whose_memory_is_then_free():
    model = SlowModel(0.2)
    models = [
        Model(explainer=slow_explainer(lambda rows: 0 * model(rows) + 0.5)),
        Model(explainer=cohort_explainer()),
    ]
    with live(models[0], reload=lambda: models[1]) as server, client_of(server, timeout=60) as client:
        old = weakref.ref(server.studio.served[""].service)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            under_way = pool.submit(client.post, "/v1/explain", json={"row": 1, "queries": 300})
            assert becomes_true(lambda: server.studio.jobs.n_running == 1)
            job = begun(client, "/v1/overview", n_rows=2, k=1)
            reloaded(server)
            assert client.get("/health").json()["rows"] == 120
            assert not under_way.done()
            assert under_way.result().json()["prediction"] == 0.5
        assert becomes_true(lambda: client.get(job).json()["state"] == "done", 60)
        assert client.get(f"{job}/result").json()["found"] == 50  # rows of the old table
        assert client.post("/v1/explain", json={"row": 1, "queries": 300}).json()["prediction"] > 0.5
        models.clear()
        server._again = None
        assert becomes_true(lambda: gc.collect() >= 0 and old() is None, 15)  # when idle connections end


def test_signals_that_arrive_while_everything_is_loaded_ask_for_one_more_time():
    times, goes_on = [], threading.Event()

    def load():
        times.append(time.monotonic())
        goes_on.wait(10)
        if len(times) == 2:
            raise SystemExit("a model that exits")
        return Model(explainer=cohort_explainer())

    with live(cohort_explainer(), reload=load) as server, client_of(server) as client:
        loop = server.servers[0].get_loop()
        loop.call_soon_threadsafe(server.reload)
        assert becomes_true(lambda: times)
        for _ in range(3):
            loop.call_soon_threadsafe(server.reload)
        time.sleep(0.2)
        goes_on.set()
        assert becomes_true(server.reloading.done, 60)
        assert len(times) == 2
        assert client.get("/v1/rows").status_code == 200


def test_the_file_of_the_token_is_checked(tmp_path, monkeypatch):
    monkeypatch.delenv("ANCHORLINE_STUDIO_TOKEN", raising=False)
    model, path = Model(explainer=cohort_explainer()), tmp_path / "token"

    def start(**options):
        prepare(model, on_ready=print, port=0, token_file=path, **options).close()

    with pytest.raises(ParameterError, match="cannot be read"):
        start()
    for content in ("", "short", "x" * 16 + "\nshort", "y" * 16 + "\u00e4"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(ParameterError, match="leave out --token-file"):
            start()
    path.write_text(f"  {NEW},{OLD}\r\n")
    start()
    with pytest.raises(ParameterError, match="--no-token are both given"):
        start(with_token=False)
    monkeypatch.setenv("ANCHORLINE_STUDIO_TOKEN", NEW)
    with pytest.raises(ParameterError, match="ANCHORLINE_STUDIO_TOKEN are both given"):
        start()
