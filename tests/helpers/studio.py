"""A studio that really listens, and models to put into it."""

import contextlib
import threading
import time

import numpy as np
import pandas as pd

import anchorline as al
from anchorline.studio.server import prepare

HOSTILE = '"><script>document.title="broken"</script><img src=x onerror="document.title=1">\u202e\x1b[2J'


@contextlib.contextmanager
def live(explainer, **options):
    """A server in a thread, on a free port; it has ``base`` and ``token``."""
    ready = threading.Event()
    server = prepare(explainer, tell=lambda link: ready.set(), port=0, **options)
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


def hostile_frame(n_rows=120):
    """Markup in the names of columns and in cells, beside ordinary numbers."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            HOSTILE: rng.normal(size=n_rows),
            "cell": rng.choice([HOSTILE, "</script>", "plain"], n_rows),
            "\u05d0\u05d1 {{7*7}} ${7*7}": rng.integers(0, 9, n_rows),
        }
    )


def hostile_explainer():
    """Classes whose names are markup as well."""

    def score(frame):
        high = 1 / (1 + np.exp(-frame.iloc[:, 0] - 0.3 * frame.iloc[:, 2] + (frame["cell"] == "plain")))
        return np.column_stack([1 - high, high])

    return al.Explainer(score, al.Table(hostile_frame()), classes=["<b>no</b>", HOSTILE])


class SlowModel:
    """Takes its time over more than one row, and counts how often it was asked."""

    def __init__(self, seconds):
        self.seconds, self.calls = seconds, 0

    def __call__(self, rows):
        if len(rows) > 1:
            self.calls += 1
            time.sleep(self.seconds)
        return np.tanh(np.asarray(rows, dtype=float)[:, 0])


def slow_explainer(model):
    rng = np.random.default_rng(0)
    return al.Explainer(model, al.Table(rng.normal(size=(50, 3))), output="score", output_range=(-1, 1))


def soon(holds, seconds=3.0):
    """Whether something becomes true: logs are written after the answer has gone out."""
    until = time.monotonic() + seconds
    while not holds() and time.monotonic() < until:
        time.sleep(0.02)
    return holds()
