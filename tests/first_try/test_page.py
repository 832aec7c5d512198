"""The page of kinds lists all of them, and says of each that it does what its test tests."""

from tests.first_try.kinds import KINDS
from tests.first_try.page import PAGE, name_of, text


def test_the_page_lists_the_kinds_and_their_results() -> None:
    expected = text({name_of(one): "passed" for one in KINDS})
    written, ours = (each.partition("## Versions")[0] for each in (PAGE.read_text(encoding="utf-8"), expected))
    assert written == ours
