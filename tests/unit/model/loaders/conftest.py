"""Fixtures for the tests of loaded models: a fitted pipeline, and a local HTTP server."""

import threading
from http.server import ThreadingHTTPServer

import pytest

from anchorline.model.loaders import HttpLimits, load_model
from helpers.model_server import Handler
from helpers.model_tables import fit_pipeline

QUICK = HttpLimits(first_wait=0.01, longest_wait=0.05, connect_timeout=2.0, read_timeout=0.4, total_timeout=1.0)
VARIABLES = (
    "ANCHORLINE_HTTP_TOKEN",
    "ANCHORLINE_HTTP_USER",
    "ANCHORLINE_HTTP_PASSWORD",
    "HTTP_PROXY",
    "http_proxy",
)


@pytest.fixture(scope="session")
def fitted():
    """A fitted scikit-learn pipeline; tests must not change it."""
    return fit_pipeline()


@pytest.fixture
def server(monkeypatch):
    """A running server; a test sets its ``answer`` and reads its ``requests`` and ``address``."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads, running.requests = True, []
    running.handle_error = lambda *_: None  # some tests make the client close the connection
    running.address = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def load():
    """A `load_model` with short waits, whose models are closed after the test."""
    models = []

    def loaded(*args, **keywords):
        models.append(load_model(*args, **{"http": QUICK, **keywords}))
        return models[-1]

    yield loaded
    for model in models:
        model.close()
