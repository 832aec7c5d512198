"""What is shown of a rule: its texts, its strips, its page and its picture, from its figures alone."""

import itertools
import json
import re
from dataclasses import asdict, replace

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st

mpl.use("agg")

import matplotlib.pyplot as plt

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.facts import Fact
from anchorline.render.geometry import STEPS, UNKNOWN, bands_of
from anchorline.render.pictures import plot_rule
from anchorline.render.report import fragment, page
from anchorline.render.statements import RuleWords, details_of, legend, statements_of
from anchorline.result.explanation import Choices, Output, Queries, Rows
from anchorline.result.rule import RuleProof, RuleVerdict
from benchmarks.truth import words_beside_facts
from helpers import made_cases, made_rules
from helpers.made import (
    DEBT,
    DECLINED,
    INCOME,
    OWNER,
    PRICE,
    TABLE,
    YEARS,
    made_explanation,
    made_rule,
    made_strip,
    share,
    with_changes,
)
from helpers.made_rules import NEARLY, RULES, SHORT, SINCE, price
from helpers.reading import Read

pytestmark = pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
all_rules = pytest.mark.parametrize("name", RULES)
V = RuleVerdict
MARK = "\N{LEFT-TO-RIGHT MARK}"
DEFAULT = Output(
    kind="threshold", name="default", is_probability=True, threshold=0.3, classes=("paid", "default"), decision="x"
)
CONTRAST = Output(
    kind="threshold", name="a rather than b", threshold=0.0, decision="x", choices=Choices(output=("a", "b"))
)
LIMIT = Output(kind="threshold", name="price", unit="USD", threshold=4000.0, decision="x")
LABEL = Output(kind="label", name="cat", decision="cat", classes=("cat", "dog", "fox"))
ROWS = "Of 204 table rows with them, 201 get it from the model. "
ROWS_OF_ONE = "Of 204 table rows with it, 201 get this decision from the model. "
SCOPE = "Other cases may differ."
BOTH = "income < 39,000 (here 32,000) and debt >= 7,000 (here 11,500)."
ONE = "owner = False."
HOLD = "With these facts, at least 97% of altered copies get this decision; with or without them, 64%."
HOLDS_ONE = "With this fact, at least 97% of altered copies get this decision; with or without it, 64%."
ALL = share(0.98, 0.973, 0.99)


@pytest.fixture(autouse=True)
def _close():
    yield
    plt.close("all")


def one(**changes):
    return made_rule(facts=(OWNER,), **changes)


def none(verdict=V.HOLDS, **changes):
    return made_rule(facts=(), verdict=verdict, **{"holds": ALL, "all": ALL, "coverage": 1.0} | changes)


PRINTED = {
    "holds": (made_rule(), [f"Rule for declined: {BOTH}", HOLD, ROWS + SCOPE]),
    "one fact": (one(), [f"Rule for declined: {ONE}", HOLDS_ONE, ROWS_OF_ONE + SCOPE]),
    "no rows": (made_rule(rows=None), [f"Rule for declined: {BOTH}", HOLD, SCOPE]),
    "always": (
        RULES["always"](),
        [
            f"Rule for declined: {BOTH}",
            "With these facts, all altered copies get this decision (proven); with or without them, 64%.",
            ROWS + SCOPE,
        ],
    ),
    "not needed": (
        none(),
        ["No rule is needed for declined: at least 97% of all altered copies get this decision."],
    ),
    "never needed": (
        none(V.ALWAYS, holds=share(1.0), all=share(1.0)),
        ["No rule is needed for declined: all altered copies get this decision (proven)."],
    ),
    "no facts, undecided": (
        none(V.UNDECIDED, holds=NEARLY, all=NEARLY),
        [
            "Whether declined needs a rule is undecided: 94 to 97% of all altered copies get this decision; "
            "95% were asked for."
        ],
    ),
    "no facts, measured": (
        none(V.MEASURED, asked={"holds": None}),
        [
            "For declined, no facts were found that raise this share: 97 to 99% of all altered copies get this "
            "decision."
        ],
    ),
    "falls short": (
        made_rule(verdict=V.FALLS_SHORT, holds=SHORT),
        [
            f"For declined, no rule of at most 4 facts was found that holds in 95% of altered copies. "
            f"The best: {BOTH}",
            "With these facts, 88 to 91% of altered copies get this decision; with or without them, 64%.",
        ],
    ),
    "falls short without facts": (
        none(V.FALLS_SHORT, holds=share(0.64, 0.62, 0.66), all=share(0.64, 0.62, 0.66), asked={"k": 1}),
        [
            "For declined, no rule of one fact was found that holds in 95% of altered copies.",
            "64% of altered copies get this decision.",
        ],
    ),
    "undecided": (
        made_rule(verdict=V.UNDECIDED, holds=NEARLY),
        [
            f"Possible rule for declined: {BOTH}",
            "With these facts, 94 to 97% of altered copies get this decision (whether 95% do is undecided); with "
            "or without them, 64%.",
            SCOPE,
        ],
    ),
    "measured": (
        made_rule(verdict=V.MEASURED, holds=SHORT, asked={"holds": None, "k": 2}),
        [
            f"Best rule of at most 2 facts found for declined: {BOTH}",
            "With these facts, 88 to 91% of altered copies get this decision; with or without them, 64%.",
            SCOPE,
        ],
    ),
    "a number": (
        price(),
        [
            "Rule for price 4,672 USD, give or take 467 USD: carat >= 1.05 (here 1.20).",
            "With this fact, at least 97% of altered copies stay within 467 USD of this price; with or without "
            "it, 64%.",
            f"Of 204 table rows with it, the model puts 180 that close. {SCOPE}",
        ],
    ),
    "a number, its tolerance given, rows unknown": (
        price(within=1234.5, asked={"within": 1234.5}, rows=Rows(204, None, 1000)),
        [
            "Rule for price 4,672 USD, give or take 1,234.5 USD: carat >= 1.05 (here 1.20).",
            "With this fact, at least 97% of altered copies stay within 1,234.5 USD of this price; with or "
            "without it, 64%.",
            SCOPE,
        ],
    ),
    "a number that needs no rule": (
        price(facts=(), holds=ALL, all=ALL, coverage=1.0),
        [
            "No rule is needed for price 4,672 USD: at least 97% of all altered copies stay within 467 USD of "
            "this price."
        ],
    ),
    "a probability above its threshold": (
        one(output=DEFAULT, prediction=0.42, rows=None),
        [f"Rule for default (threshold 0.30): {ONE}", HOLDS_ONE, SCOPE],
    ),
    "a probability below its threshold": (
        one(output=DEFAULT, prediction=0.12, rows=None),
        [f"Rule for paid (threshold 0.30): {ONE}", HOLDS_ONE, SCOPE],
    ),
    "a number above its threshold": (
        one(output=LIMIT, prediction=4672.0, rows=None),
        [f"Rule for price at least 4,000 USD: {ONE}", HOLDS_ONE, SCOPE],
    ),
    "a label": (one(output=LABEL, prediction=1.0, rows=None), [f"Rule for cat: {ONE}", HOLDS_ONE, SCOPE]),
    "a number as class": (
        one(output=with_changes(DECLINED, name="1", decision=1, classes=(0, 1)), rows=None),
        [f"Rule for class 1: {ONE}", HOLDS_ONE, SCOPE],
    ),
    "a contrast": (
        one(output=CONTRAST, prediction=-0.4, rows=None),
        [f"Rule for b rather than a: {ONE}", HOLDS_ONE, SCOPE],
    ),
    "words": (
        RULES["text"](),
        [
            'Rule for spam: "free" and "winner".',
            "With these words, at least 97% of altered copies get this decision; with or without them, 64%.",
            SCOPE,
        ],
    ),
    "regions": (
        RULES["image"](),
        [
            "Rule for spam: region 8 (left) and region 4 (top).",
            "With these regions, at least 97% of altered copies get this decision; with or without them, 64%.",
            SCOPE,
        ],
    ),
    "no row": (
        made_rule(rows=Rows(0, 0, 1000)),
        [f"Rule for declined: {BOTH}", HOLD, f"No table row has them. {SCOPE}"],
    ),
    "a number of one row": (
        price(rows=Rows(1, 0, 1000)),
        [
            "Rule for price 4,672 USD, give or take 467 USD: carat >= 1.05 (here 1.20).",
            "With this fact, at least 97% of altered copies stay within 467 USD of this price; with or without "
            "it, 64%.",
            f"Of 1 table row with it, the model puts none that close. {SCOPE}",
        ],
    ),
    "all were listed": (
        made_rule(holds=share(0.975), all=share(0.64)),
        [f"Rule for declined: {BOTH}", HOLD.replace("at least ", ""), ROWS + SCOPE],
    ),
}


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed(name):
    rule, lines = PRINTED[name]
    assert str(rule).splitlines() == lines


@pytest.mark.parametrize("name", PRINTED)
def test_every_statement_is_printed_and_plain(name):
    rule = PRINTED[name][0]
    for said, text in ((statements_of, str(rule)), (details_of, rule.details())):
        for each in said(rule):
            assert each.text in text
            json.dumps(asdict(each), allow_nan=False)


@pytest.mark.parametrize("name", PRINTED)
def test_no_text_is_long(name):
    rule, text = PRINTED[name][0], str(PRINTED[name][0])
    assert words_beside_facts(rule) <= 45, text
    assert not re.search(r"None|nan|neighbor|[{}]|\.\.|  ", rule.details()), text
    assert not re.search(r"[Tt]hese (fact|word|region)\b|[Tt]his (facts|words|regions)\b", text), text


def test_the_usual_text_has_35_words():
    assert words_beside_facts(made_rule()) == 35


@pytest.mark.parametrize(
    ("rule", "share_text"),
    [
        (made_rule(holds=share(0.9996, 0.9992, 0.9999), asked={"holds": 0.999}), "at least 99.9% of"),
        (made_rule(verdict=V.FALLS_SHORT, holds=share(0.94, 0.931, 0.9456)), "93.1 to 94.6% of"),
        (made_rule(verdict=V.FALLS_SHORT, holds=share(0.0)), "no altered copies get"),
    ],
)
def test_a_rounded_share_does_not_contradict_the_verdict(rule, share_text):
    assert f"With these facts, {share_text}" in str(rule)


DETAILS = """\
An altered copy is this case with about half of its values replaced by those of random rows of the table.
Each value is replaced with probability 0.54, independently of the others (sigma 1).
Of copies made to have these facts by values of random rows with them, 98.0% get this decision (limits 97.3 to \
98.6%; 2,000 copies).
Of copies that happen to have these facts, 99.0% get this decision (limits 98.5 to 99.5%; 900 copies).
Of all copies, 64.0% get this decision (limits 62 to 66%; 2,000 copies).
The smaller of the first two shares counts.
All limits hold together with 95% confidence.
Coverage: 20.4% of all rows of the table have these facts.
204 of 1,000 table rows have these facts; 201 of them get this decision.
Found, not proven best: 1,240 rules were compared, and 3 of them tried on fresh copies. A rule of fewer facts, or \
one that covers more, may exist.
Copies shown to the model: 2,000 to find the facts, 3,000 to measure them; 5,001 answers with the case itself.
Settings: confidence 0.95, holds 0.95, k 4, queries auto, seed 0, sigma 1.0.
Versions: anchorline 0.2.0."""


def test_details_say_how_we_know():
    rule = made_rule(holds_law=share(0.99, 0.985, 0.995, 900))
    text, _, details = rule.details().partition("\n\n")
    assert text == str(rule)
    assert details == DETAILS


PROVEN = RuleProof("proven", 90, 1)
LEAVES, LISTED = Queries(0, 900, 901, False, "leaves"), Queries(64, 0, 65, False, "listed")


@pytest.mark.parametrize(
    ("rule", "sentence"),
    [
        (
            made_rule(proof=PROVEN, queries=LISTED),
            "Proven for all possible copies: no rule of fewer facts holds in 95% of copies, and none of as many "
            "covers more, among all facts offered.",
        ),
        (
            made_rule(verdict=V.ALWAYS, holds=share(1.0), proof=PROVEN, queries=LEAVES),
            "100.0% get this decision (exact: read from the leaves of the model's trees)",
        ),
        (
            made_rule(verdict=V.MEASURED, holds=SHORT, asked={"holds": None, "k": 2}, proof=PROVEN),
            "Proven for all copies: no rule of at most 2 facts holds more often, among",
        ),
        (
            made_rule(verdict=V.FALLS_SHORT, holds=SHORT, proof=PROVEN, queries=LEAVES),
            "Proven for the model's trees: no rule of at most 4 facts holds in 95% of copies, among",
        ),
        (made_rule(verdict=V.FALLS_SHORT, holds=SHORT), "A rule that holds more often may exist."),
        (
            one(proof=RuleProof("found", 1, 1)),
            "1 rule was compared, and 1 of them tried on fresh copies. A rule that",
        ),
        (none(), "Without any facts, copies get this decision as often as asked."),
        (
            price(),
            "A copy stays within 467.2 USD if the model's price for it differs by at most that, which is 10% of "
            "this price or of the outputs' spread, whichever is larger.",
        ),
        (price(asked={"within": 467.2}), "price for it differs by at most that.\n"),
        (price(), "180 of them stay within 467 USD of this price."),
        (RULES["text"](), "Coverage: 25.0% of all possible combinations of values have these words."),
        (RULES["image"](), "An altered copy is this image, but hides about a quarter of the regions."),
    ],
)
def test_details_follow_the_figures(rule, sentence):
    assert sentence in rule.details()


def test_claims_never_mix():
    for name in RULES:
        for line in RULES[name]().details().splitlines():
            assert not ("limits" in line and "roven" in line)


OUTPUTS = [(DECLINED, 0.97), (DEFAULT, 0.42), (LIMIT, 4672.0), (LABEL, 1.0), (CONTRAST, -0.4), (PRICE, 4672.0)]


@pytest.mark.parametrize("verdict", list(V))
def test_no_combination_is_long_or_broken(verdict):
    """Every verdict, with every output, number of facts and rows, has at most 45 words."""
    holds = {V.ALWAYS: share(1.0), V.HOLDS: ALL, V.UNDECIDED: NEARLY}.get(verdict, SHORT)
    for (output, prediction), n, rows in itertools.product(OUTPUTS, (0, 1, 4), (None, Rows(9, 5, 1000))):
        rule = made_rule(
            output=output,
            prediction=prediction,
            within=prediction / 10 if output.kind == "number" else None,
            facts=(INCOME, DEBT, OWNER, YEARS)[:n],
            verdict=verdict,
            holds=holds,
            rows=rows,
            space=TABLE | {"n_rows": 50_000},
            asked={"holds": None} if verdict is V.MEASURED else {},
        )
        text = str(rule)
        assert words_beside_facts(rule) <= 45, text
        assert not re.search(r"None|nan|[{}]|\.\.|  ", text), text
        assert all(line.endswith(".") for line in text.splitlines()), text


# Strips.


def test_a_band_is_as_wide_as_values_are_frequent():
    band = bands_of(made_rule())[0]
    assert [round(part.end, 6) for part in band.parts] == [0.1, 0.25, 0.45, 0.85, 1.0]
    assert [part.step for part in band.parts] == [0, 0, 0, 2, 4]
    assert [part.text for part in band.parts] == [
        "below 20,000: 99% of copies",
        "20,000 to 30,000: 98% of copies",
        "30,000 to 39,000: 96% of copies",
        "39,000 to 60,000: 55% of copies",
        "60,000 or more: 10% of copies",
    ]
    assert band.frame == pytest.approx((0.0, 0.45))
    assert band.own == pytest.approx(0.35)
    assert [(label.text, label.row) for label in band.labels] == [("32,000", -1), ("39,000", 0)]


def test_missing_values_are_apart_at_the_end():
    income, owner, since, rating = bands_of(RULES["four"]())
    assert income.parts[-1].end == 1.0
    assert income.parts[-1].start - income.parts[-2].end == pytest.approx(0.015)
    assert income.parts[-1].text == f"missing: {UNKNOWN}"
    assert [label.text for label in income.labels] == ["32,000", "39,000", "missing"]
    assert [label.text for label in owner.labels] == ["False", "others"]
    assert [label.text for label in since.labels] == ["2016-02-01", "2015-03-01", "2019-06-30 13:45", "missing"]
    assert [label.row for label in since.labels] == [-1, 0, 1, 0]
    assert rating.frame == (rating.parts[-1].start, 1.0)
    assert [label.text for label in rating.labels] == ["missing", "not missing"]
    assert rating.parts[-1].step == 0


@pytest.mark.parametrize(
    ("fact", "kind", "texts"),
    [
        (Fact("free", "free", "present", value="free"), "text", ["present", "absent"]),
        (Fact("r", "r", "present", value="r"), "image", ["present", "hidden"]),
        (Fact("a", "a", "equals", value=-1), "hypercube", ["-1", "+1"]),
        (Fact("a", "a", "equals", value="late"), "hypercube", ["late", "reversed"]),
        (Fact("a", "a", "missing"), "table", ["missing", "not missing"]),
        (Fact("a", "a", "equals", value="x" * 90), "table", [f"{'x' * 23}\N{HORIZONTAL ELLIPSIS}", "others"]),
    ],
)
def test_facts_without_bounds_have_two_parts(fact, kind, texts):
    rule = made_rule(facts=(fact,), space=TABLE | {"kind": kind}, instance=[1])
    assert [label.text for label in bands_of(rule)[0].labels] == texts


def test_labels_stay_inside_the_band_and_apart():
    low = replace(SINCE, low="2015-03-01T12:15:00")
    strips = [made_strip(low, shares=shares, missing=missing) for shares, missing in _PLACES]
    for strip in strips:
        band = bands_of(made_rule(facts=(low,), strips=(strip,)))[0]
        for label in band.labels:
            assert label.anchor == ("start" if label.place < 0.1 else "end" if label.place > 0.9 else label.anchor)
        below = [label for label in band.labels if label.row >= 0]
        assert len({label.row for label in below}) == band.n_rows


_PLACES = [((0.0, 0.02, 0.98), 0.0), ((0.9, 0.05, 0.05), 0.0), ((0.9, 0.04, 0.01), 0.05), ((0.0, 1.0, 0.0), 0.0)]


def test_a_pool_without_values_is_drawn():
    rule = made_rule(facts=(INCOME,), strips=(made_strip(INCOME, shares=(0.0,) * 5),))
    assert "nan" not in page(rule)
    plot_rule(rule)


def test_what_was_asked_is_escaped_or_left_out():
    short = {"verdict": V.FALLS_SHORT, "holds": SHORT}
    assert "no rule of few facts was found" in str(made_rule(**short, asked={"k": None}))
    assert "at most \\x1b facts" in str(made_rule(**short, asked={"k": "\x1b"}))


def test_steps_get_lighter():
    opacities = [opacity for _, opacity, _ in STEPS]
    assert opacities == sorted(opacities, reverse=True)
    assert STEPS[-1][0] == 0.0


# The page.


@all_rules
@pytest.mark.parametrize("form", [page, fragment])
def test_it_is_well_formed_and_says_every_statement(name, form):
    rule = RULES[name]()
    read = Read(form(rule))
    assert not [value for _, attribute, value in read.attributes if attribute == "style"]
    assert not [attribute for attribute in read.attributes if attribute[1].startswith("on")]
    links = [value for _, attribute, value in read.attributes if attribute in ("href", "src", "action")]
    assert all(link.startswith("data:image/png;base64,") for link in links)
    for each in (*statements_of(rule), *details_of(rule)):
        assert " ".join(each.text.split()) in read.text
    if form is page:
        assert read.tags.count("h1") == read.tags.count("main") == 1
        assert legend(rule) in read.text


@all_rules
def test_equal_rules_have_the_same_bytes(name):
    rule = RULES[name]()
    again = type(rule).from_json(rule.to_json())
    assert rule.to_html() == again.to_html() == page(rule)
    assert rule._repr_html_() == again._repr_html_() == fragment(rule)
    assert str(rule) == str(again)


@all_rules
def test_every_fact_has_a_strip(name):
    rule = RULES[name]()
    made = page(rule)
    assert made.count('class="al-strip"') == made.count('class="al-frame"') == len(rule.facts)
    assert made.count('class="al-own"') == len(rule.facts)


def test_a_rule_has_the_policy_of_the_explanation():
    policy = 'Content-Security-Policy" content="([^"]*)"'
    assert re.search(policy, page(made_rule()))[1] == re.search(policy, page(made_explanation()))[1]


def test_an_attack_stays_text():
    made = page(RULES["hostile"]())
    assert "<script" not in made
    assert "<img" not in made
    assert made.count("</style>") == 1
    assert not {"\u202e", "\x1b", "\ud800"} & set(made)
    made.encode()
    assert f"<bdi>{made_cases.HEBREW}</bdi> &lt; 21" in made


@given(name=st.text(min_size=1, max_size=90) | st.just("\x1b[2J\r\n\u202eevil\u2066\x00\t<b>&'\"\ud800"))
def test_nothing_from_data_controls_text_or_page(name):
    output = with_changes(DECLINED, name=name, decision=name, unit=name, classes=("x", name))
    facts = (
        Fact("1", name, "below", high=3.0, value=2.0),
        Fact("2", name, "equals", value=name),
        Fact("3", name, "between", low=name, high=name, value=name),
        Fact("4", name, "missing"),
    )
    rule = made_rule(output=output, facts=facts, space=TABLE | {"noun": name})
    for text in (rule.details().replace("\n", ""), *(each.text for each in statements_of(rule))):
        assert all(character.isprintable() or character in "\u200c\u200d" for character in text)
    assert len(str(rule).splitlines()) == 3
    Read(page(rule))


def test_words_of_a_rule_are_marked_without_numbers():
    made = page(RULES["text"]())
    assert '<mark class="al-plus al-whole"><bdi>free</bdi></mark>' in made
    assert "<sup>" not in made


def test_regions_and_stretches_of_a_rule_are_drawn():
    assert page(RULES["image"]()).count('class="al-edge"') == 2
    assert "regions of the rule outlined" in page(RULES["image"]())
    assert page(RULES["signal"]()).count('class="al-area"') == 2


def test_sum_and_rule_share_a_page():
    e, rule = made_explanation(), made_rule()
    read = Read(e.to_html(rule=rule))
    for each in statements_of(rule):
        assert each.text in read.text
    assert str(e).splitlines()[-1] in read.text
    assert read.tags.count("h1") == 1
    assert ("div", "class", "pair") in read.attributes
    assert 'class="pair"' not in e.to_html()


@pytest.mark.parametrize(
    "other",
    [
        made_rule(instance=[1, 2, False, 4, 5]),
        made_rule(prediction=0.5),
        made_rule(output=with_changes(DECLINED, name="approved")),
        made_rule(output=with_changes(DECLINED, kind="threshold", threshold=0.3)),
    ],
)
def test_a_rule_of_another_row_is_refused(other):
    with pytest.raises(ParameterError, match=r"another row.*rule=explainer\.rule\(row\)"):
        made_explanation().to_html(rule=other)


# The picture.


def drawn(ax):
    ax.figure.canvas.draw()
    texts = [*(text.get_text() for text in ax.texts), ax.get_title(loc="left")]
    return " ".join(" ".join(texts).replace(MARK, "").split())


@all_rules
def test_bars_are_the_parts_and_the_frame(name):
    rule = RULES[name]()
    ax = rule.plot()
    said = drawn(ax)
    bands = bands_of(rule)
    wanted = [width for band in bands for width in [part.end - part.start for part in band.parts] + [_width(band)]]
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(wanted)
    assert [line.get_xdata()[0] for line in ax.lines] == pytest.approx([band.own for band in bands])
    assert len(ax.get_yticklabels()) == len(rule.facts)
    assert all(label.text in said for band in bands for label in band.labels)
    assert statements_of(rule)[0].text in said


def _width(band):
    return band.frame[1] - band.frame[0]


@all_rules
def test_words_stay_inside_a_figure_of_their_own(name):
    ax = plot_rule(RULES[name]())
    drawn(ax)
    box = ax.figure.get_tightbbox()
    width, height = ax.figure.get_size_inches()
    assert min(box.x0, box.y0) >= -0.05
    assert box.x1 <= width + 0.05
    assert box.y1 <= height + 0.05


def test_it_draws_on_given_axes_only():
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    assert made_rule().plot(axes[0]) is axes[0]
    figure.canvas.draw()
    assert plt.get_fignums() == [figure.number]


def test_shades_are_explained_by_a_legend():
    ax = plot_rule(RULES["four"]())
    legend_ = ax.get_legend()
    assert [text.get_text() for text in legend_.get_texts()] == [*(text for *_, text in STEPS), UNKNOWN]
    assert "get this decision" in " ".join(legend_.get_title().get_text().split())


def test_names_are_exported():
    assert al.Rule is type(made_rule())
    assert al.RuleVerdict is RuleVerdict
    assert RuleWords(made_rules.price()).subject == "price 4,672 USD"
