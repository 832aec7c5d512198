"""The README's two pictures show what its code prints and what was measured."""

import html
import re

import pytest

from benchmarks import chart

COMMAND = "python -m benchmarks.chart"


def description(name):
    text = (chart.GALLERY / name).read_text(encoding="utf-8")
    found = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    return html.unescape(found[1])


def test_the_chart_shows_the_recorded_results():
    assert description("ratios.svg") == chart.described(chart.ratios()), COMMAND


def test_the_waterfall_shows_what_the_readme_prints():
    page = (chart.ROOT / "README.md").read_text(encoding="utf-8")
    assert description("why.svg") in page, COMMAND


def test_both_pictures_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    chart.draw_why(tmp_path / "why.svg")
    found = [chart.Ratio("seconds", "one", 2.0), chart.Ratio("seconds", "two", 0.5)]
    chart.draw_ratios(tmp_path / "ratios.svg", found)
    assert "seconds, one: 2.00; seconds, two: 0.50" in (tmp_path / "ratios.svg").read_text()
    again = tmp_path / "again.svg"
    chart.draw_why(again)
    assert again.read_bytes() == (tmp_path / "why.svg").read_bytes()
