"""The table for terminals: the statements of ``print(e)`` with bars from level to level, in any width."""

import re

import pytest

from anchorline.cli.formats import table, terminal_text
from anchorline.facts import Fact
from anchorline.render.characters import cell_width
from anchorline.result.explanation import Verdict
from helpers.made import PRICE, made_explanation, share

ANSI = re.compile(r"\x1b\[[0-9;]*m")
HOSTILE = Fact("[bold]x[/bold]\x1b[31m", "[bold]x[/bold]\x1b[31m", "equals", value="年収" * 20)
MADE = {
    "declined": made_explanation(),
    "price": made_explanation(prediction=4672.0, contributions=[1240, -310, 90, -10], output=PRICE, holds=None),
    "robust": made_explanation(verdict=Verdict.ROBUST, all=share(0.98, 0.97, 0.99)),
    "nothing": made_explanation(facts=(), contributions=[], verdict=Verdict.NOT_EXPLAINED),
    "hostile": made_explanation(facts=(HOSTILE,), contributions=[0.3]),
    "huge": made_explanation(prediction=1e150, contributions=[9e149, -5e149, 3e149, 1], output=PRICE, holds=None),
}
made = pytest.mark.parametrize("made", MADE.values(), ids=MADE.keys())


def words(text):
    return re.sub(r"[\s│█▒|]+", " ", text).strip()


@made
def test_the_table_says_what_print_says(made):
    assert words(table(made, 100_000)) == words(str(made))


@made
@pytest.mark.parametrize("width", [24, 40, 80, 100])
@pytest.mark.parametrize("color", [False, True])
def test_no_line_is_longer_than_the_width(made, width, color):
    text = table(made, width, color=color)
    assert max(cell_width(line) for line in ANSI.sub("", text).split("\n")) <= width
    assert bool(ANSI.search(text)) is color
    assert all(line.isprintable() for line in ANSI.sub("", text).split("\n"))
    assert words(ANSI.sub("", text)) == words(table(made, width))


def test_bars_lead_from_level_to_level():
    _, start, *facts = table(MADE["declined"], 90, ascii=True).split("\n")[:6]
    place = start.index("|")
    for line, sign in zip(facts, "+++-", strict=True):
        bar = re.search(rf"{re.escape(sign)}+$", line)
        assert abs((bar.end() if sign == "-" else bar.start()) - place) <= 1
        place = bar.start() if sign == "-" else bar.end()


def test_standard_output_that_is_no_terminal_gets_plain_text(capsys):
    assert terminal_text(MADE["declined"]) == str(MADE["declined"])
    assert terminal_text(MADE["declined"], details=True) == MADE["declined"].details()
