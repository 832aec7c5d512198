"""The results of the tests of kinds become the page docs/works-with.md, if ANCHORLINE_PAGE is set."""

import os

import pytest

from tests.first_try.page import PAGE, text

_OUTCOMES: dict[str, str] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember the result of each kind; with several processes, the first of them gets all reports."""
    name = report.nodeid.partition("::test_first_try[")[2].removesuffix("]")
    if name and (report.when == "call" or report.outcome != "passed"):
        _OUTCOMES[name] = report.outcome


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the page."""
    if os.environ.get("ANCHORLINE_PAGE") and _OUTCOMES and not hasattr(session.config, "workerinput"):
        PAGE.write_text(text(_OUTCOMES), encoding="utf-8")
