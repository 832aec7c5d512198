"""Fixtures of the batch tests."""

import signal

import pytest

from helpers.many_rows import CHEAP, ROWS, explainer_of


@pytest.fixture(scope="module")
def alone():
    """The explanation of every row, each computed alone."""
    explainer = explainer_of()
    return [explainer.explain(row, **CHEAP).to_json() for row in ROWS.to_dict("records")]


@pytest.fixture
def handlers():
    """Install Python's own handler of Ctrl-C, and for SIGTERM a handler like that of the command line."""

    def end(number, frame):
        raise SystemExit(128 + number)

    before = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: end}
    before = {number: signal.signal(number, handler) for number, handler in before.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
