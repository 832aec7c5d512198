"""The pictures of figures show what the README's code prints and what was measured."""

import html
import re

import pytest

from benchmarks import chart, scale

COMMAND = "python -m benchmarks.chart"


def description(name):
    text = (chart.GALLERY / name).read_text(encoding="utf-8")
    found = re.search(r"<dc:description>(.*?)</dc:description>", text, re.DOTALL)
    return html.unescape(found[1])


def test_the_charts_show_the_recorded_results():
    assert description("ratios.svg") == chart.described(chart.ratios()), COMMAND
    assert description("growth.svg") == chart.pointed(chart.curves()), COMMAND


def test_the_waterfall_shows_what_the_readme_prints():
    page = (chart.ROOT / "README.md").read_text(encoding="utf-8")
    assert description("why.svg") in page, COMMAND


def test_the_pictures_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    chart.draw_why(tmp_path / "why.svg")
    found = [chart.Ratio("seconds", "one", 2.0), chart.Ratio("seconds", "two", 0.5)]
    chart.draw_ratios(tmp_path / "ratios.svg", found)
    assert "seconds, one: 2.00; seconds, two: 0.50" in (tmp_path / "ratios.svg").read_text()
    again = tmp_path / "again.svg"
    chart.draw_why(again)
    assert again.read_bytes() == (tmp_path / "why.svg").read_bytes()


def test_a_point_of_a_curve_is_measured_and_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    one = scale.point("columns", 13)
    assert (one["along"], one["size"]) == ("columns", 13)
    assert 0 <= one["model_alone"] < one["seconds"] < one["first_seconds"]
    assert 2_000 < one["queries"] <= 20_000
    chart.draw_growth(tmp_path / "growth.svg", {"columns": [one, one | {"size": 26}]})
    assert f"13 columns: {one['seconds']:.3f} s" in (tmp_path / "growth.svg").read_text()
