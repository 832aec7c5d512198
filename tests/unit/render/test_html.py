"""The page and the fragment: complete, self-contained, and without any markup that comes from data."""

import dataclasses
import functools
import re
from fractions import Fraction
from html.parser import HTMLParser

import numpy as np
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.guarantees import Estimate, exact_estimate
from anchorline.render import html
from anchorline.render.markup import style_sheet
from anchorline.render.text import on_the_sample, printable
from anchorline.render.trust import over_neighbors, verdict_reason
from helpers.explanations import INSTANCE, smooth_explainer, with_numbers

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</title></style></details><svg onload=alert(1)>",
    "' onmouseover='alert(1)",
    "&amp;&lt;",
    "<!-- ",
    "]]>",
    "\u202egnp.exe",
    "\x1b[2J\x00",
    "a\nb\u2028c",
    "\ud800",
    "javascript:alert(1)",
]
VACUOUS = Estimate(value=0.001, low=0.0, high=0.9, n_samples=5, confidence=0.95, method="binomial")
VOID = {"meta", "col", "br", "link", "img", "input"}


@functools.cache
def explainer():
    return smooth_explainer(threshold=0.0)


@functools.cache
def explanation(alternatives=2, **settings):
    return explainer().explain(
        INSTANCE,
        **{"k": 4, "alternatives": alternatives, "sampling": "draw", "n_samples": 600, "n_certify": 600}
        | settings,
    )


@functools.cache
def frontier():
    return explainer().frontier(INSTANCE, ks=[1, 2, 4], n_samples=300, sampling="draw", n_certify=300)


def explanation_of(contributions, intercept=0.0, texts=None, **changes):
    return with_numbers(explanation(), contributions, intercept, texts, **{"alternatives": ()} | changes)


class Reader(HTMLParser):
    """The elements of a document with their attributes and text; fails if tags do not match."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.rows, self.words = [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        self.words.append(data)
        if self.open and {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data

    @property
    def text(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


both = pytest.mark.parametrize("render", [html.page, html.fragment], ids=["page", "fragment"])


# --- what it shows -----------------------------------------------------------------------------------


@both
def test_it_is_well_formed_and_complete(render):
    e = explanation()
    text = Reader(render(e)).text
    for term in e.terms:
        assert text.count(term.literal.text) >= 2  # in the rule and in the sum
    certificate = e.certificate
    for sentence in (on_the_sample(certificate), over_neighbors(certificate), verdict_reason(certificate)):
        assert sentence in text
    for heading in ("On the sample", "Over all possible neighbors, all limits together with 95% confidence"):
        assert heading in text


def sum_rows(text):
    """Return the rows of the first table without its header."""
    return [row for row in Reader(text).rows[1:] if len(row) == 3 and re.fullmatch(r"[+\u2212]?[\d.]+", row[1])]


@both
def test_printed_numbers_add_up(render):
    for seed in range(30):
        rng = np.random.default_rng([6, seed])
        e = explanation_of(rng.normal(size=rng.integers(1, 12)) * 10.0 ** rng.integers(-3, 4), rng.normal())
        rows = sum_rows(render(e))
        numbers = [Fraction(row[1].replace("\u2212", "-")) for row in rows]
        assert sum(numbers[:-1]) == numbers[-1]
        assert [row[0] for row in rows] == ["starting level", *(term.literal.text for term in e.terms), "score"]


def test_the_bars_form_a_waterfall():
    e = explanation_of([0.6, -0.2, 0.1], 0.3)
    elements = Reader(html.page(e)).elements
    bars = [attributes for tag, attributes in elements if "al-bar" in (attributes.get("class") or "")]
    assert [("al-plus" in bar["class"]) for bar in bars] == [True, False, True]
    places = [tuple(map(float, re.findall(r"[\d.]+", bar["style"]))) for bar in bars]
    ends = [(left, left + width) for left, width in places]
    assert ends[0][1] == pytest.approx(
        ends[1][1], abs=0.03
    )  # the second bar starts where the first ended, and points left
    assert ends[1][0] == pytest.approx(ends[2][0], abs=0.03)
    assert places[0][1] == pytest.approx(3 * places[1][1], abs=0.1)
    assert all(left >= 0 and right <= 100 for left, right in ends)


def test_a_sum_without_intercept_has_no_row_for_it():
    assert [row[0] for row in sum_rows(html.page(explanation_of([0.5, 0.25])))] == ["l0", "l1", "score"]


def test_the_rule_states_what_was_held_and_the_sum_what_is_true():
    if "held" not in al.Literal.__dataclass_fields__:
        pytest.fail("Literal has lost its field `held`")
    literals = (al.Literal("age", "37 <= age < 48", "age keeps its value 41"),)
    text = html.page(explanation_of([0.5], literals=literals))
    assert re.search(
        r"If <b[^>]*><bdi dir=\"ltr\"><bdi>age</bdi> stays 41</bdi></b>, then "
        r"the predicted <bdi>score</bdi> stays at or above 0 in",
        text,
    )
    assert '<bdi dir="ltr">37 &lt;= <bdi>age</bdi> &lt; 48</bdi></th>' in text


def test_a_probability_is_named_as_such():
    parameters = dict(explanation().parameters) | {"probability": True}
    text = Reader(html.page(explanation_of([0.5], output="benign", parameters=parameters))).text
    assert "P(benign) = 0.5" in text
    assert "then P(benign) stays at or above 0 in" in text


@pytest.mark.parametrize("verdict", [member.name for member in al.Verdict])
@both
def test_every_verdict_has_a_word_and_a_sentence(render, verdict):
    e = explanation()
    measured = e.certificate.stability
    limits = {  # of stability and of its baseline
        "TRUSTWORTHY": [(0.98, 0.99), (0.4, 0.5)],
        "ROBUST": [(0.98, 0.99), (0.97, 0.99)],
        "WEAK": [(0.85, 0.9), (0.4, 0.5)],
        "UNRELIABLE": [(0.6, 0.7), (0.4, 0.5)],
        "UNDECIDED": [(0.94, 0.96), (0.4, 0.5)],
    }
    if verdict in limits:
        estimates = [dataclasses.replace(measured, value=low, low=low, high=high) for low, high in limits[verdict]]
        changes = dict(zip(("stability", "baseline_stability"), estimates, strict=True))
    else:
        changes = dict.fromkeys([name for name in e.certificate.__slots__ if "_error" in name])
        changes |= dict.fromkeys(["stability", "baseline_stability", "typical_change", "baseline_change"])
    e = dataclasses.replace(e, certificate=dataclasses.replace(e.certificate, **changes))
    assert e.verdict.name == verdict
    text = Reader(render(e)).text
    assert f"{e.certificate.verdict_title.capitalize()}." in text
    assert verdict_reason(e.certificate) in text


def test_the_technical_part_is_folded_and_complete():
    e = explanation()
    page = html.page(e)
    folded = page[page.index("For the record") :]
    for value in (
        e.parameters["seed"],
        e.parameters["versions"]["numpy"],
        e.parameters["space"],
        e.parameters["k"],
    ):
        assert str(value) in folded
    assert re.search(r'"sha256":"([0-9a-f]{64})"', e.to_json()).group(1) in folded
    assert "open" not in [
        name for tag, attributes in Reader(page).elements if tag == "details" for name in attributes
    ]


def test_alternatives_are_listed():
    e = explanation(k=4, alternatives=3)
    assert e.alternatives
    text = Reader(html.page(e)).text
    assert "other sum" in text or "another sum" in text
    for other in e.alternatives:
        assert all(e.literals[j].text in text for j in other.support)
    assert "cannot distinguish" in text
    assert "cannot distinguish" not in html.page(explanation(alternatives=0))


def test_a_frontier_is_drawn_and_described():
    page = html.page(explanation(), frontier=frontier())
    elements = Reader(page).elements
    assert sum(tag == "circle" for tag, _ in elements) == 3 + 1  # one in the key
    drawing = next(attributes for tag, attributes in elements if tag == "svg")
    assert drawing["role"] == "img"
    for point in frontier().points:
        assert f"k = {point.k}: fidelity error {point.fidelity_error.value:.3g}" in drawing["aria-label"]
    assert "<svg" not in html.page(explanation())
    assert "were beyond output_range" not in page
    clipped = html.page(explanation(), frontier=dataclasses.replace(frontier(), n_clipped=3))
    assert "3 of" in clipped
    assert "were beyond output_range" in clipped


def test_the_frontier_of_another_row_is_refused():
    with pytest.raises(
        ParameterError, match=r"the prediction 0\.1\. The page needs .* explained prediction, score = "
    ):
        html.page(explanation(), frontier=dataclasses.replace(frontier(), prediction=0.1))
    other = explainer().frontier([-1, *INSTANCE[1:]], ks=[1], n_samples=300, sampling="draw", n_certify=0)
    with pytest.raises(ParameterError, match="another row or space, because its literals differ"):
        explanation().to_html(other)
    stored = al.Explanation.from_json(explanation().to_json())
    assert "<svg" in stored.to_html(frontier())


def test_very_wide_bands_do_not_flatten_the_curves():
    wide = [dataclasses.replace(point, relevance_error=VACUOUS) for point in frontier().points]
    page = html.page(explanation(), frontier=dataclasses.replace(frontier(), points=tuple(wide)))
    assert "some extend beyond the axis" in page
    assert "some extend beyond the axis" not in html.page(explanation(), frontier=frontier())
    heights = [float(y) for y in re.findall(r"L[\d.]+ ([\d.]+)", page)]
    assert min(heights) >= 0


def test_a_frontier_that_was_not_certified():
    bare = explainer().frontier(INSTANCE, ks=[2], n_samples=300, sampling="draw", n_certify=0)
    assert "not measured" in Reader(html.page(explanation(), frontier=bare)).text


@both
@pytest.mark.parametrize("values", [[0.0, 0.0], [1e300, -5e299], [1e-300], [5e-324]])
def test_extreme_sums(render, values):
    assert "nan" not in render(explanation_of(values, half_range=1.0)).replace("finance", "")


def test_fixed_columns_are_listed():
    e = explanation_of([0.5], fixed={"<id>": "one value only"})
    assert "&lt;id&gt;" in html.page(e)


# --- text stays text ---------------------------------------------------------------------------------


def hostile(text):
    known = dict(explanation().parameters) | {"space": text, "output": text}
    e = explanation(k=4, alternatives=3)
    return dataclasses.replace(
        e,
        literals=tuple(al.Literal(text, f"{text}{j}") for j in range(len(e.literals))),
        output=text,
        parameters=known,
        certificate=dataclasses.replace(e.certificate, stopped_because=text),
    )


@pytest.mark.parametrize("text", HOSTILE)
@both
def test_nothing_from_data_is_markup(render, text):
    made, usual = Reader(render(hostile(text))), Reader(render(hostile("name")))
    assert [tag for tag, _ in made.elements] == [tag for tag, _ in usual.elements]
    assert [sorted(attributes) for _, attributes in made.elements] == [sorted(a) for _, a in usual.elements]
    assert printable(text) in "".join(made.words)
    assert not {tag for tag, _ in made.elements} & {"script", "img", "iframe", "link", "object", "a", "form"}
    assert not [name for _, attributes in made.elements for name in attributes if name.startswith("on")]
    render(hostile(text)).encode("utf-8")  # a lone surrogate would raise


@pytest.mark.parametrize("text", ["\u202egnp", "\x1b[2J", "\u2066a\u2069", "\x00"])
@both
def test_controls_are_made_visible(render, text):
    made = render(hostile(text))
    assert all(character.isprintable() or character == "\n" for character in made)


@pytest.mark.parametrize("label", HOSTILE[:4])
def test_a_hostile_label_is_text(label):
    parameters = dict(explanation().parameters) | {"task": "label"}
    made = html.page(explanation_of([1.0], label=label, parameters=parameters))
    assert "<script" not in made
    assert "<img" not in made
    Reader(made)


# --- self-contained ----------------------------------------------------------------------------------


def test_nothing_is_loaded_or_run():
    page = html.page(explanation(), frontier=frontier())
    assert page.startswith("<!DOCTYPE html>")
    reader = Reader(page)
    assert not [attributes for _, attributes in reader.elements if {"src", "href", "data"} & set(attributes)]
    assert not re.search(r"url\(|@import|https?://|<script", page)
    policy = next(a["content"] for _, a in reader.elements if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "script" not in policy  # no directive widens the default, which allows nothing
    assert "<svg xmlns" not in page


def test_light_dark_paper_and_phones_have_rules():
    css = style_sheet("page.css")
    for words in ("prefers-color-scheme: dark", "@page", "size: A4", "break-inside: avoid", "max-width: 34rem"):
        assert words in css


def test_the_fragments_styles_touch_nothing_else():
    css = re.sub(r"/\*.*?\*/", "", style_sheet("sum.css"), flags=re.DOTALL)
    rules = re.findall(r"([^{}]+)\{[^{}]*\}", css)
    assert len(rules) == css.count("{") == css.count("}") > 20  # the pattern has found every rule
    selectors = [one.strip() for group in rules for one in group.split(",")]
    assert [one for one in selectors if not one.startswith(".anchorline")] == []


def test_the_fragment_is_small():
    assert len(html.fragment(explanation())) < 12_000
    assert len(html.page(explanation())) < 40_000


@both
def test_warnings_are_at_the_top(render):
    e = explanation()
    clipped = dataclasses.replace(e.certificate, n_clipped=900, stopped_because="max_queries was reached")
    text = Reader(render(dataclasses.replace(e, certificate=clipped))).text
    assert "beyond output_range and clipped: the sum treats each as the nearest known output. How often" in text
    assert "the output stays was measured without clipping. Pass a wider output_range" in text
    assert "Sampling stopped: max_queries was reached." in text
    assert "clipped" not in render(e)


@both
def test_findings_about_the_setup_are_shown_beside_the_verdict(render):
    finding = "The model predicts '<b>' for all 512 training rows that were queried."
    made = render(dataclasses.replace(explanation(), warnings=(finding,)))
    assert '<p class="al-warning"><bdi>Warning: The model predicts &#x27;&lt;b&gt;&#x27; for all 512' in made
    assert " (see the warning).</b>" in made
    assert " (see the 2 warnings).</b>" in render(
        dataclasses.replace(explanation(), warnings=(finding, "Another."))
    )
    assert "see the warning" not in render(explanation())


@both
def test_a_share_that_was_sampled_is_not_called_exact(render):
    """The errors of sums of trees are exact, but how often the output stays is not."""
    e = explanation()
    exact = exact_estimate(0.1, 64)
    certificate = dataclasses.replace(e.certificate, fidelity_error=exact, exhaustive=True, by_leaves=True)
    text = Reader(render(dataclasses.replace(e, certificate=certificate))).text
    assert "Over all possible neighbors, all limits together with 95% confidence" in text
    assert "over all neighbors, computed from the model's trees." in text


@both
def test_theorems_are_for_auditors(render):
    """Their errors are mean squares of shares of the range, which readers take for shares of wrong answers."""
    e = explanation()
    useful = dataclasses.replace(e.certificate, theorem_epsilon=0.2)
    shown = render(dataclasses.replace(e, certificate=useful, alternatives=())).partition("<summary>For the re")[0]
    assert "heorem" not in shown
    assert "idelity error" not in shown
    assert "elevance error" not in shown
    assert "is at most 0.2 above its value" in useful.details()
    assert "Errors are mean squares of differences" in useful.details()
    vacuous = dataclasses.replace(e.certificate, theorem_epsilon=2.2, event_probability=1e-9)
    assert "at most 2.2 (vacuous) above" in vacuous.details()


def test_bounds_are_rounded_to_the_side_on_which_they_hold():
    certificate = explanation().certificate
    high = dataclasses.replace(certificate.fidelity_error, high=0.13351)
    bounded = dataclasses.replace(certificate, fidelity_error=high, event_probability=1.0)
    assert "bounds the relevance error by 0.134." in bounded.details()


@both
def test_names_in_other_directions_are_isolated(render):
    name = "\u05d0\u05d1\u05d2"
    made = render(explanation_of([0.5], texts=[name], output=name))
    assert '<bdi dir="ltr">3 &lt;= <bdi>\u05d0</bdi> &lt; 4</bdi>' in render(
        explanation_of([0.5], literals=(al.Literal("\u05d0", "3 <= \u05d0 < 4"),))
    )
    visible = re.sub(r"<title>.*?</title>|<style>.*?</style>", "", made, flags=re.DOTALL)
    assert visible.count(name) == len(re.findall(rf"<bdi>[^<]*{name}[^<]*</bdi>", visible)) > 3


def test_shares_that_were_measured_are_not_called_exact():
    """Errors of a forest are sums over leaves and so exact, but how often the output stays is measured."""
    from sklearn.ensemble import RandomForestRegressor

    rows = np.random.default_rng(0).normal(size=(80, 3))
    model = RandomForestRegressor(3, max_depth=2, random_state=0).fit(rows, rows[:, 0] + rows[:, 1])
    e = al.Explainer(model, al.Table(rows)).explain(0, k=3, n_certify=200)
    assert e.certificate.by_leaves
    assert e.certificate.fidelity_error.exact
    page = e.to_html()
    assert "Over all possible neighbors, all limits together with 95% confidence" in page
    assert "over all neighbors, computed from the model" in page
    assert "no sampling" not in page
