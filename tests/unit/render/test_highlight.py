"""Marked texts: as they were written, escaped everywhere, marked by pattern and not by color alone."""
# ruff: noqa: RUF001

import functools
import html as stdlib_html
import re

import pytest

import anchorline as al
from anchorline.render import html
from anchorline.render.characters import cell_width, printable
from anchorline.render.highlight import is_text, runs, text_lines, text_markup
from anchorline.render.terminal import table

HOSTILE = (
    'Great <script>alert(1)</script> "bad" & <img src=x onerror=alert(1)>\r\n\tשלום cafe\u0301 '
    "👨\u200d👩\u200d👧 \u202eevil\x00\x1b[2J &amp; Great"
)


def score(texts):
    return [0.5 * ("Great" in text) - 0.3 * ("bad" in text) for text in texts]


@functools.cache
def explained(text=HOSTILE, **options):
    return al.Explainer(score, al.Text(**options), output="score").explain(text, k=3, n_samples=500)


def test_the_runs_are_the_text():
    assert "".join(run.text for run in runs(explained())) == HOSTILE
    assert [run.text for run in runs(explained()) if run.term] == ["Great", "bad", "Great"]
    assert not is_text(al.explain(lambda z: z[:, 0] / 2, [1, 1], k=2))


def visible_text(markup):
    return stdlib_html.unescape(re.sub("<[^>]*>", "", re.sub("<sup>.*?</sup>", "", markup)))


def test_everything_is_escaped_and_nothing_is_lost():
    markup = text_markup(explained())
    assert {*re.findall("<([a-z]+)", markup)} == {"div", "mark", "bdi", "sup"}
    assert visible_text(markup) == "\n".join(
        "\t".join(map(printable, line.split("\t"))) for line in HOSTILE.split("\r\n")
    )
    for page in (html.page(explained()), html.fragment(explained())):
        assert "<script" not in page
        assert "<img" not in page
        assert not {*page} & {"\x00", "\x1b", "\u202e"}


def test_signs_have_patterns_and_numbers():
    markup = text_markup(explained())
    assert markup.count('<mark class="al-plus al-whole"') == 2
    assert markup.count('<mark class="al-minus al-whole"') == 1
    assert "\N{MINUS SIGN}0." in markup
    lines = text_lines(explained(), 60, color=False, ascii=False)
    assert "[+Great]" in lines[0]
    assert "[-bad]" in "".join(lines)
    assert "\x1b" not in "".join(lines)
    assert "\x1b[4;38;5;32m[+Great]" in "".join(text_lines(explained(), 60, color=True, ascii=False))
    assert "".join(text_lines(explained(), 60, color=False, ascii=True)).isascii()


@pytest.mark.parametrize("width", [24, 60, 100])
def test_lines_fit_the_terminal(width):
    text = "word " * 400 + "Great " + "x" * 300 + " bad 年収年収年収 " + "end " * 400
    e = explained(text)
    lines = table(e, width=width).split("\n")
    assert len(text_lines(e, width, color=False, ascii=False)) <= 16
    assert all(cell_width(line) <= max(width, 130) for line in lines)
    assert any("…" in line for line in lines)


def test_a_long_text_is_shortened_on_the_page():
    text = "lorem " * 5000 + "Great day " + "ipsum " * 5000
    markup = text_markup(explained(text))
    assert len(markup) < 3000
    assert "The text is shortened." in markup
    assert "Great" in markup
    nothing = al.Explainer(lambda texts: [0.0] * len(texts), al.Text()).explain(text, k=2, n_samples=50)
    assert len(text_markup(nothing)) < 5000


def test_sentences_and_each_occurrence_are_marked_where_they_are():
    e = explained("Great one. Nothing here. A bad one.", unit="sentence")
    assert [run.text for run in runs(e) if run.term] == ["Great one.", "A bad one."]
    first_great = lambda texts: [0.4 * text.startswith("Great") for text in texts]  # noqa: E731
    each = al.Explainer(first_great, al.Text(occurrences="each")).explain("Great or Great", k=2)
    marked = [run.term is not None for run in runs(each)]
    assert marked == [True, False]
    assert "each of its 3 different words taken out" in each.explain_itself()


def test_joiners_stay_inside_words_and_emoji_only():
    assert printable("👨\u200d👩") == "👨\u200d👩"
    assert printable("می\u200cخ") == "می\u200cخ"
    assert printable("\u200da \u200d b\u200d") == "\\u200da \\u200d b\\u200d"
