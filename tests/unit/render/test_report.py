"""The page and the notebook view: whole, safe, self-contained, and only what the statements say."""

import base64
import dataclasses
import hashlib
import re

import pytest

from anchorline.errors import ParameterError
from anchorline.facts import Fact
from anchorline.render.drawings import Scale, Sentences, escape, sum_track
from anchorline.render.geometry import LONGEST_TEXT, Step, curve_of, picture_of, text_runs
from anchorline.render.report import fragment, page
from anchorline.render.statements import details_of, digits_of, legend, statements_of
from helpers import made_cases
from helpers.made import made_explanation
from helpers.made_cases import CASES, HEBREW, HOSTILE, LONG
from helpers.reading import Read

all_cases = pytest.mark.parametrize("name", CASES)


@all_cases
@pytest.mark.parametrize("form", [page, fragment])
def test_it_is_well_formed_and_has_only_known_elements(name, form):
    read = Read(form(CASES[name]()))
    assert not [attribute for attribute in read.attributes if attribute[1].startswith("on")]
    assert not [value for _, attribute, value in read.attributes if attribute == "style"]
    if form is page:
        assert read.tags.count("h1") == read.tags.count("main") == 1


@all_cases
@pytest.mark.parametrize("form", [page, fragment])
def test_it_refers_to_nothing_outside(name, form):
    made = form(CASES[name]())
    links = [value for _, attribute, value in Read(made).attributes if attribute in ("href", "src", "action")]
    assert all(link.startswith("data:image/png;base64,") for link in links)
    style = re.search("<style>(.*?)</style>", made, re.DOTALL)[1]
    assert not re.search(r"url\(|@import|<", style)


@all_cases
def test_the_policy_allows_the_one_style_sheet_and_nothing_else(name):
    made = page(CASES[name]())
    style = re.search("<style>(.*?)</style>", made, re.DOTALL)[1]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = re.search('Content-Security-Policy" content="([^"]*)"', made)[1]
    assert policy.split("; ")[:3] == ["default-src 'none'", f"style-src 'sha256-{digest}'", "img-src data:"]


@all_cases
def test_equal_explanations_have_the_same_bytes(name):
    e = CASES[name]()
    again = type(e).from_json(e.to_json())
    assert page(e) == page(again)
    assert fragment(e) == fragment(again) == again._repr_html_()
    assert e.to_html() == page(e)


@all_cases
def test_every_statement_is_on_the_page_and_in_the_notebook(name):
    e = CASES[name]()
    shown, view = Read(page(e)).text, Read(fragment(e)).text
    for statement in statements_of(e):
        text = " ".join(statement.text.split())
        assert text in shown
        assert text in view
    for statement in details_of(e):
        assert " ".join(statement.text.split()) in shown, statement.kind
    assert legend(e) in shown


@all_cases
def test_the_amounts_add_up_as_shown(name):
    e = CASES[name]()
    rows = [row for row in Read(page(e)).rows if len(row) == 3 and row[0] != "adds"]
    numbers = [row[0].replace("\N{MINUS SIGN}", "-").replace(",", "") for row in rows]
    assert len(numbers) == (len(e.facts) + 2 if e.facts else 0)
    if numbers:
        decimals = max(len(number.partition(".")[2]) for number in numbers)
        *parts, total = (round(float(number) * 10**decimals) for number in numbers)
        assert sum(parts) == total
        assert rows[-1][0] == digits_of(e).total


def test_an_attack_stays_text():
    made = page(CASES["hostile"]())
    assert "<script" not in made
    assert "<img" not in made
    assert not {"\u202e", "\x1b", "\ud800"} & set(made)
    made.encode()  # lone surrogates are escaped
    assert escape(HOSTILE).startswith("&quot;&gt;&lt;script&gt;")


def test_names_from_right_to_left_are_isolated_whole():
    e = CASES["hostile"]()
    write = Sentences(e)
    assert write(f"{HEBREW} < 21 and <b>") == f"<bdi>{HEBREW}</bdi> &lt; 21 and &lt;b&gt;"
    assert f"<bdi>{HEBREW}</bdi> &lt; 21" in page(e)
    assert Sentences(made_explanation())(f"{LONG[:9]} < 3") == "a very lo &lt; 3"


def test_a_waterfall_continues_where_it_stopped():
    made = page(CASES["loan"]())
    tracks = re.findall(r'<td class="al-track"><svg.*?</td>', made)
    bars = [
        re.search(r'<rect class="(al-\w+)" x="([\d.]+)%" y="50%" width="([\d.]+)%"', track) for track in tracks
    ]
    ends = []
    for bar in filter(None, bars):
        left, width = float(bar[2]), float(bar[3])
        ends.append((left, left + width) if bar[1] == "al-plus" else (left + width, left))
    circles = [float(place) for place in re.findall(r'<circle cx="([\d.]+)%"', "".join(tracks))]
    places = [circles[0], *(place for pair in ends for place in pair), circles[1]]
    assert len(ends) == 4
    assert places[::2] == pytest.approx(places[1::2], abs=0.02)


@pytest.mark.parametrize("level", [0.0, 5.0, -1e308, 1e-300])
def test_a_scale_of_one_value_or_of_the_largest_numbers_is_finite(level):
    scale = Scale([level, -level])
    assert "nan" not in sum_track(scale, Step("fact", "", "", level, -level))
    assert "inf" not in sum_track(Scale([level]), Step("fact", "", "", level, level))


def test_words_are_marked_in_their_text():
    e = CASES["text"]()
    runs = text_runs(e)
    assert "".join(run.text for run in runs) == "".join(e.instance)
    assert [(run.text, run.fact) for run in runs if run.fact is not None] == [
        ("winner", 1),
        ("free", 0),
        ("meeting", 2),
        ("free", 0),
    ]
    made = page(e)
    assert '<mark class="al-plus al-whole"><bdi>free</bdi><sup>+0.21</sup></mark> prize\\x07 before' in made
    assert '<mark class="al-minus al-whole"><bdi>meeting</bdi><sup>\N{MINUS SIGN}0.04</sup></mark>' in made
    assert "&lt;b&gt;" in made


def test_a_long_text_is_shortened_around_its_words():
    e = made_cases.text(f"winner {'x ' * LONGEST_TEXT} free {'y ' * LONGEST_TEXT} meeting")
    shown = "".join(run.text for run in text_runs(e))
    assert len(shown) < 2000
    assert [word in shown for word in ("winner", "free", "meeting")] == [True] * 3
    assert "The text is shortened" in page(e)


def test_regions_are_drawn_over_their_image():
    e = CASES["image"]()
    picture = picture_of(e)
    assert [(region.name, region.fact) for region in picture.regions] == [("8", 0), ("4", 1), ("15", 2), ("21", 3)]
    assert [region.mask.sum() for region in picture.regions] == [225] * 4
    made = page(e)
    assert made.count('class="al-edge"') == 4
    assert made.count('<g class="al-minus">') == 2
    assert "region 8 (left): +0.21" in made


@pytest.mark.parametrize("n_points", [300, 40_000])
def test_stretches_are_drawn_over_their_curve(n_points):
    e = made_cases.signal(n_points)
    curve = curve_of(e)
    first = 7 * n_points // 20
    assert curve.stretches[0] == (first, first + n_points // 20 - 1, 0)
    assert len(curve.points) <= 1500
    assert curve.values.max() == pytest.approx(max(e.instance))
    assert page(e).count('class="al-area"') == 3


def test_labels_of_neighboring_stretches_do_not_touch():
    curve = curve_of(made_cases.signal())
    assert curve.labels() == [(52.0, 1, 0), (112.0, 0, 0), (217.0, 2, 0)]
    near = dataclasses.replace(curve, stretches=((0, 14, 0), (15, 29, 1), (30, 44, 2)))
    assert [row for _, _, row in near.labels()] == [0, 1, 0]


def test_values_of_the_case_begin_with_those_of_the_facts():
    e = made_explanation(facts=made_explanation().facts[::-1], contributions=[0.2, -0.1, 0.05, 0.02])
    rows = [row for row in Read(page(e)).rows if len(row) == 2]
    assert [name for name, _ in rows[:5]] == ["employed_years", "owner", "debt", "income", "age"]
    assert rows[3] == ["income", "32,000"]
    signs = made_explanation(
        instance=[1, -1],
        facts=(Fact("paid", "paid", "equals", value=1),),
        contributions=[0.2],
        space={"kind": "hypercube", "names": ["paid", "late"]},
    )
    assert [row for row in Read(page(signs)).rows if len(row) == 2][:2] == [["paid", "+1"], ["late", "-1"]]


def test_a_frontier_is_drawn_with_its_numbers():
    made = page(made_explanation(), made_cases.frontier())
    assert ["2", "0.62", "0.12", "income < 39,000, debt >= 7,000"] in Read(made).rows
    assert made.count('class="al-open"') == 1
    with pytest.raises(ParameterError, match="same row"):
        page(made_explanation(), made_cases.frontier(prediction=0.5))


def test_the_seal_is_that_of_the_json():
    e = made_explanation()
    assert re.search('"sha256":"(.*?)"', e.to_json())[1] in page(e)
