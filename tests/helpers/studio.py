"""A studio that listens on a real port, clients of it, and models to serve."""

import contextlib
import dataclasses
import threading
import time

import httpx
import numpy as np
import pandas as pd

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from anchorline.studio.app import Studio
from anchorline.studio.display import Model
from anchorline.studio.server import prepare

ABOUT = {field.name for field in dataclasses.fields(Model)}

HOSTILE = '"><script>document.title="broken"</script><img src=x onerror="document.title=1">\u202e\x1b[2J'


def model_of(explainer, options):
    """Return a model to serve; those of the options that describe it are taken out."""
    return Model(explainer=explainer, **{each: options.pop(each) for each in [*options] if each in ABOUT})


def studio_of(explainer, **options):
    """Return a studio that needs no token."""
    model = model_of(explainer, options)
    return Studio(model, token=None, **options)


@contextlib.contextmanager
def live(explainer, **options):
    """Run a server in a thread on a free port, and yield it with the attributes ``base`` and ``token``."""
    ready = threading.Event()
    models = explainer if isinstance(explainer, dict | Model) else model_of(explainer, options)
    server = prepare(models, on_ready=lambda link: ready.set(), port=0, **options)
    server.base, _, server.token = server.link.partition("/?token=")
    server.base = server.base.rstrip("/")
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert ready.wait(20)
        yield server
    finally:
        server.stop()
        thread.join(8)
        assert not thread.is_alive()


def client_of(server, **options):
    """Return an HTTP client that sends the server's token."""
    return httpx.Client(base_url=server.base, headers={"Authorization": f"Bearer {server.token}"}, **options)


def begun(client, path, **body):
    """Begin a job, and return its address."""
    response = client.post(path, json=body)
    assert response.status_code == 202, response.text
    assert response.headers["location"].endswith(response.json()["id"])
    return response.headers["location"]


def finish(client, path, **body):
    """Let a job end, and return its result and all progress before."""
    job, seen = begun(client, path, **body), []
    for _ in range(6000):
        now = client.get(job).json()
        seen.append(now["progress"])
        if now["state"] != "running":
            assert now["state"] == "done", now
            return client.get(f"{job}/result").json(), seen
        time.sleep(0.03)
    raise AssertionError("The job has not ended.")


def hostile_frame(n_rows=120):
    """Return a table with markup in column names and in cells, next to ordinary numbers."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            HOSTILE: rng.normal(size=n_rows),
            "cell": rng.choice([HOSTILE, "</script>", "plain"], n_rows),
            "\u05d0\u05d1 {{7*7}} ${7*7}": rng.integers(0, 9, n_rows),
        }
    )


def hostile_explainer():
    """Return an explainer whose class names are markup too."""

    def score(frame):
        high = 1 / (1 + np.exp(-frame.iloc[:, 0] - 0.3 * frame.iloc[:, 2] + (frame["cell"] == "plain")))
        return np.column_stack([1 - high, high])

    return Explainer(score, Table(hostile_frame()), classes=["<b>no</b>", HOSTILE])


class SlowModel:
    """A model that sleeps when it receives more than one row, and that counts such calls."""

    def __init__(self, seconds):
        self.seconds, self.calls = seconds, 0

    def __call__(self, rows):
        if len(rows) > 1:
            self.calls += 1
            time.sleep(self.seconds)
        return np.tanh(np.asarray(rows, dtype=float)[:, 0])


def slow_explainer(model):
    rng = np.random.default_rng(0)
    return Explainer(model, Table(rng.normal(size=(50, 3))), output="score", output_range=(-1, 1))


def becomes_true(condition, seconds=3.0):
    """Wait until ``condition()`` is true; logs, for example, are written after the answer is sent."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def cohort_table(n_rows=120):
    """Return a table and outcomes that a model of two facts predicts with some errors."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "income": rng.integers(10, 90, n_rows),
            "owner": rng.choice(["yes", "no"], n_rows),
            "age": rng.integers(18, 70, n_rows),
        }
    )
    noisy = loan_scores(frame)[:, 1] + rng.normal(0, 0.2, n_rows) > 0.5
    return frame, np.where(noisy, "approved", "declined")


def loan_scores(frame):
    score = 0.1 + (frame["income"].to_numpy() > 45) * 0.5 + (frame["owner"] == "yes").to_numpy() * 0.3
    return np.column_stack([1 - score, score])


def cohort_explainer(n_rows=120):
    """Return an explainer of two classes that answers at once."""
    return Explainer(loan_scores, Table(cohort_table(n_rows)[0]), classes=["declined", "approved"])
