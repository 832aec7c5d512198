"""The page of kinds says what the tests of this folder test."""

from tests.first_try.page import PAGE, text


def test_the_page_lists_the_kinds_and_their_results() -> None:
    assert PAGE.read_text(encoding="utf-8") == text()
