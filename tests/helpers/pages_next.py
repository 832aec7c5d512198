"""The browser of the tests; waiting for the studio's page in it, and reading it."""

from helpers.pages import ARGUMENTS, CHROMIUM, TIMEOUT, wait_until

__all__ = ["ARGUMENTS", "CHROMIUM", "TIMEOUT", "facts", "ready", "wait_until"]


def ready(page):
    """Wait until everything is drawn, and return the page."""
    page.wait_for_selector("#main:not([aria-busy]) #answer:not(.stale) .verdict:not(:empty)")
    page.wait_for_selector("#what-if .outcome:not(:has-text('Asking'))")
    return page


def facts(page):
    return page.locator("#waterfall tr.fact th").all_inner_texts()
