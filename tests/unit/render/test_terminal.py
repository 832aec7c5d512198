"""The table for terminals: it fits the width, its columns align, its numbers add up, and names are only text."""

import dataclasses
import functools
import os
import re
import unicodedata
from fractions import Fraction

import numpy as np
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.render.characters import cell_width, printable, truncate, wrap
from anchorline.render.terminal import table
from helpers.explanations import LONG_NAME, with_numbers

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@functools.cache
def some_explanation():
    return al.explain(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 1], [1, 1], k=3)


def explanation_of(contributions, intercept=0.0, texts=None, output="score", **changes):
    return with_numbers(some_explanation(), contributions, intercept, texts, output=output, **changes)


def split_lines(text):
    """Return the lines of the table and the lines of the certificate."""
    above, _, below = text.partition("\n\n")
    return above.split("\n"), below.split("\n")


def numbers_of(text):
    """Return the printed summands and the printed total."""
    lines, _ = split_lines(ANSI.sub("", text))
    rule = next(i for i, line in enumerate(lines) if set(line) <= {"─", "-"})
    pattern = re.compile(r"(?<= )([+-]?[\d.]+(?:e[+-]\d+)?)(?=$| )")
    numbers = [[Fraction(number) for number in pattern.findall(line)] for line in lines]
    return [of_line[-1] for of_line in numbers[:rule] if of_line], numbers[rule + 1][-1]


MIXED = explanation_of([0.9, -0.3, 0.02, -0.005], -0.4, ["a >= 1", "b < 2", "c = red", "d is missing"])


@pytest.mark.parametrize("width", [24, 40, 60, 80, 120])
@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("texts", [["a", "b", "c", "d"], [LONG_NAME, "年収 >= 65k", "cafe\u0301", "x" * 70]])
def test_no_line_is_longer_than_the_width(width, ascii, color, texts):
    text = table(explanation_of([0.9, -0.3, 0.02, -0.005], -0.4, texts), width=width, ascii=ascii, color=color)
    assert max(cell_width(line) for line in ANSI.sub("", text).split("\n")) <= width
    assert text.isascii() or not ascii
    assert bool(ANSI.search(text)) is color


def test_color_adds_nothing_but_color():
    assert ANSI.sub("", table(MIXED, width=70, color=True)).replace(" ", "") == table(MIXED, width=70).replace(
        " ", ""
    )


def test_one_line_per_term_then_the_starting_level_then_the_prediction():
    lines, certificate = split_lines(table(MIXED, width=70))
    assert [line.split("  ")[0] for line in lines[:5]] == [
        "a >= 1",
        "b < 2",
        "c = red",
        "d is missing",
        "starting level",
    ]
    assert set(lines[5]) == {"─"}
    assert lines[6].startswith("score")
    assert lines[6].endswith("0.215")
    assert [line[:9] for line in certificate if line.startswith("Verdict")] == ["Verdict: "]
    assert len(lines) == 7


def test_without_intercept_there_is_no_line_for_it():
    assert "starting level" in table(explanation_of([0.5, 0.25], 0.125), width=60)
    assert "starting level" not in table(explanation_of([0.5, 0.25]), width=60)


@pytest.mark.parametrize("ascii", [False, True])
def test_bars_start_at_a_common_zero_and_show_sign_and_size(ascii):
    plus, minus, zero = ("+", "-", "|") if ascii else ("█", "▒", "│")
    lines = [line for line in split_lines(table(MIXED, width=80, ascii=ascii))[0] if zero in line]
    places = {line.index(zero) for line in lines}
    assert len(places) == 1
    place = places.pop()
    for line, value in zip(lines, [0.9, -0.3, 0.02, -0.005, -0.4], strict=True):
        left, right = line[:place], line[place + 1 :]
        assert bool(right) is (value > 0)
        assert left.endswith(minus) is (value < 0)
    assert lines[0][place:].count(plus) > 10 * lines[2][place:].count(plus)
    assert len(lines[4][:place].split(" ")[-1]) > len(lines[1][:place].split(" ")[-1]) > 1


@pytest.mark.parametrize("width", [24, 40, 100])
def test_printed_numbers_add_up(width):
    for seed in range(60):
        rng = np.random.default_rng([8, seed])
        scale = 10.0 ** rng.integers(-3, 5)
        e = explanation_of(rng.normal(size=rng.integers(1, 12)) * scale, rng.normal() * scale)
        numbers, total = numbers_of(table(e, width=width))
        assert sum(numbers) == total
        assert len(numbers) == len(e.terms) + 1


def test_long_names_are_wrapped_then_cut():
    lines, _ = split_lines(table(explanation_of([0.5], texts=[LONG_NAME]), width=90))
    assert re.sub(r"\s+", " ", " ".join(re.split(r"  +[+]", line)[0] for line in lines[:2])).strip() == LONG_NAME
    lines, _ = split_lines(table(explanation_of([0.5], texts=[LONG_NAME]), width=40))
    assert lines[2].endswith("…")
    assert split_lines(table(explanation_of([0.5], texts=[LONG_NAME]), width=40, ascii=True))[0][2].endswith("...")


@pytest.mark.parametrize("width", [30, 40, 50])
@pytest.mark.parametrize("ascii", [False, True])
@pytest.mark.parametrize("text", ["{} >= 0.602", "-0.0823 <= {} < 0.665", "{} is missing"])
def test_a_long_name_never_costs_the_condition(width, ascii, text):
    literals = (al.Literal(LONG_NAME, text.format(LONG_NAME)),)
    lines, _ = split_lines(
        table(dataclasses.replace(explanation_of([0.5]), literals=literals), width=width, ascii=ascii)
    )
    shown = re.sub(r"\s+", " ", " ".join(re.split(r"  +[+]", line)[0] for line in lines[:3]))
    before, after = text.split("{}")
    assert shown.startswith(before)
    assert shown.strip().endswith(after)
    assert re.search(r"(…|\.\.\.)" + re.escape(after), shown)


@pytest.mark.parametrize(
    ("values", "intercept"),
    [
        ([1.37e18, -3.21e17], 0.0),
        ([1.37e-14], 1e-15),
        ([0.5e-9, -2e-10], 1e6),
        ([1e100, 1e-100], 5e99),
        ([1e-11], 1e-6),
    ],
)
def test_any_numbers_keep_the_width(values, intercept):
    e = dataclasses.replace(some_explanation(), half_range=1e100)
    literals = tuple(al.Literal(LONG_NAME, f"{LONG_NAME} is missing") for _ in values)
    sums = {"contributions": np.array(values), "intercept": intercept, "prediction": sum(values) + intercept}
    text = table(dataclasses.replace(e, literals=literals, **sums), width=24)
    assert max(map(cell_width, text.split("\n"))) <= 24
    numbers, total = numbers_of(text)
    assert sum(numbers) == total


def test_wide_characters_and_marks_keep_the_columns():
    texts = ["年収が高い", "cafe\u0301", "plain", "🙂 ok"]
    lines, _ = split_lines(table(explanation_of([0.4, 0.3, 0.2, 0.1], texts=texts), width=60))
    assert len({cell_width(line[: line.index("│")]) for line in lines[:4]}) == 1


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mred",
        "\x9b31m",
        "a\nb",
        "\r",
        "\u202egnp",
        "\u2066x\u2069",
        "\u200b",
        "\x00",
        "\ud800",
        "\u2028",
        "\x7f",
    ],
)
def test_control_codes_print_as_text(text):
    shown = table(explanation_of([0.5, 0.1], texts=[text, "b"], output=text), width=60, color=False)
    assert all(line.isprintable() for line in shown.split("\n"))
    assert printable(text) in shown
    colored = table(explanation_of([0.5, 0.1], texts=[text, "b"], output=text), width=60, color=True)
    assert all(line.isprintable() for line in ANSI.sub("", colored).split("\n"))


@pytest.mark.parametrize(
    "text", ["[bold]x[/bold]", "<script>alert(1)</script>", "[link=http://a]b[/link]", "%s {0}"]
)
def test_markup_prints_as_text(text):
    assert text in table(explanation_of([0.5], texts=[text]), width=80)


@pytest.mark.parametrize("size", [1e-300, 1e-9, 1.0, 1e9])
def test_sizes_from_tiny_to_huge(size):
    numbers, total = numbers_of(table(explanation_of([size, -size / 2]), width=80))
    assert sum(numbers) == total


def test_nothing_to_add():
    lines, _ = split_lines(table(explanation_of([0.0, 0.0]), width=40))
    assert len(lines) == 2
    assert lines[1].split() == ["score", "0"]


def test_twelve_terms():
    lines, _ = split_lines(table(explanation_of(np.linspace(-1, 1, 12)), width=60))
    assert len(lines) == 14


def test_the_width_comes_from_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    assert max(map(cell_width, table(MIXED).split("\n"))) <= 30
    monkeypatch.setenv("COLUMNS", "500")
    assert max(map(cell_width, table(MIXED).split("\n"))) <= 100
    monkeypatch.setattr(os, "get_terminal_size", lambda *_: os.terminal_size((0, 0)))
    assert table(MIXED)


def test_too_narrow_is_refused():
    with pytest.raises(ParameterError, match=r"width is 10\. A table needs at least 24 columns\. Type width=80\."):
        table(MIXED, width=10)


def test_a_narrow_terminal_is_not_refused(monkeypatch):
    monkeypatch.setenv("COLUMNS", "10")
    assert max(map(cell_width, table(MIXED).split("\n"))) <= 24


# --- characters --------------------------------------------------------------------------------------


def test_cells_of_every_kind():
    widths = {
        "": 0,
        "abc": 3,
        "年": 2,
        "\uff71": 1,
        "\uff21": 2,
        "e\u0301": 1,
        "한": 2,
        "\u1112\u1161\u11ab": 2,
        "🙂": 2,
    }
    assert {text: cell_width(text) for text in widths} == widths


def test_wrapping_and_cutting_keep_marks_on_their_letters():
    text = "e\u0301" * 30
    for line in [*wrap(text, 7), truncate(text, 5)]:
        assert not unicodedata.combining(line[0])
    assert "".join(wrap(text, 7)) == text


def test_wrapping_loses_no_words():
    for seed in range(200):
        rng = np.random.default_rng([9, seed])
        words = ["".join(rng.choice(list("ab年c"), rng.integers(1, 12))) for _ in range(rng.integers(1, 12))]
        width = int(rng.integers(2, 20))
        lines = wrap(" ".join(words), width)
        assert max(map(cell_width, lines)) <= width
        assert "".join(lines).replace(" ", "") == "".join(words)
        assert len(wrap(" ".join(words), width, max_lines=2)) <= 2
