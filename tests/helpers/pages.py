"""The browser of the tests; waiting for the studio's page in it, and reading it."""

import pathlib
import time

CHROMIUM = pathlib.Path("/usr/bin/chromium")
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


def wait_until(page, expression):
    """Wait until an expression is true; the page's policy forbids Playwright's own way, which evaluates texts."""
    deadline = time.monotonic() + TIMEOUT / 1000
    while not page.evaluate(expression):
        assert time.monotonic() < deadline, expression
        page.wait_for_timeout(10)


def ready(page):
    """Wait until everything is drawn and certified, and return the page."""
    page.wait_for_selector("#main:not([aria-busy]) #others li")
    page.wait_for_selector("#trust:not(.stale) .verdict")
    page.wait_for_selector("#what-if .outcome:not(:has-text('Querying'))")
    page.wait_for_selector("#frontier svg")
    return page


def terms(page):
    return page.locator("#waterfall tr.term th").all_inner_texts()
