"""The browser of the tests; waiting for the studio's page in it, and reading it."""

import contextlib
import shutil
import time

import pytest
from playwright.sync_api import Error, sync_playwright

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
TIMEOUT = 20_000  # milliseconds; long, because the machine may be busy


@contextlib.contextmanager
def started():
    """Start the machine's browser, or Playwright's own; without one, the test skips."""
    program = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    with sync_playwright() as playwright:
        try:
            browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        except Error:
            if program is not None:
                raise
            pytest.skip("Chromium is missing. Type: python .ci/tools.py")
        yield browser
        browser.close()


def wait_until(page, expression):
    """Wait until an expression is true; the page's policy forbids Playwright's own way, which evaluates texts."""
    deadline = time.monotonic() + TIMEOUT / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(10)


def ready(page):
    """Wait until everything is drawn, and return the page."""
    page.wait_for_selector("#main:not([aria-busy]) #answer:not(.stale) .verdict:not(:empty)")
    page.wait_for_selector("#what-if .outcome:not(:has-text('Asking'))")
    return page


def facts(page):
    return page.locator("#waterfall tr.fact th").all_inner_texts()
