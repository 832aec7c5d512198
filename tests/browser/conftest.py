"""The studio of the demonstration, open in a real browser."""

import re

import pytest

from anchorline.studio.demo import demo_explainer
from helpers.pages import TIMEOUT, started
from helpers.studio import live


@pytest.fixture(scope="module")
def explainer():
    return demo_explainer()


@pytest.fixture(scope="module")
def server(explainer):
    with live(explainer, name="loans") as running:
        yield running


@pytest.fixture(scope="module")
def browser():
    with started() as launched:
        yield launched


@pytest.fixture
def opened(browser, server):
    """Open the studio by its link; a console message or a request to another server fails the test."""
    contexts, messages, urls = [], [], []

    def open_page(query="", width=1280, scheme="light", studio=server, login=True):
        context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
        context.set_default_timeout(TIMEOUT)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on("dialog", lambda dialog: messages.append(dialog.message))
        page.on("request", lambda request: urls.append(request.url))
        page.goto(f"{studio.base}/?{query}&token={studio.token}" if login else f"{studio.base}/?{query}")
        return page

    yield open_page
    for context in contexts:
        context.close()
    # The browser itself reports failed requests: a refused token, or a server that has stopped.
    assert not [text for text in messages if not text.startswith("Failed to load resource")]
    assert all(re.match(r"http://127\.0\.0\.1:\d+/|blob:|http://elsewhere\.example/", url) for url in urls)
