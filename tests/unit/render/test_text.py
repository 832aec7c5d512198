"""What is printed: the texts themselves, how many words they have, and that nothing from data breaks them."""

import itertools
import json
import re
from dataclasses import asdict
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorline.facts import Fact
from anchorline.render.statements import details_of, digits_of, fact_text, legend, statements_of
from anchorline.result.explanation import Alternative, Choices, Output, Proof, Queries, Rows, Verdict
from benchmarks.truth import words_beside_facts
from helpers.made import (
    DEBT,
    DECLINED,
    INCOME,
    OWNER,
    PRICE,
    TABLE,
    YEARS,
    fit,
    made_explanation,
    share,
    with_changes,
)

GOOD = with_changes(DECLINED, name="good", decision="good", classes=("bad", "good"))
SPAM = with_changes(DECLINED, name="spam", decision="spam", classes=("ham", "spam"))
IRIS = Output(
    kind="class",
    name="versicolor",
    decision="versicolor",
    is_probability=True,
    classes=("setosa", "versicolor", "virginica"),
    runner_up=("virginica", 0.39),
)
DEFAULT = Output(
    kind="threshold", name="default", is_probability=True, threshold=0.3, classes=("paid", "default"), decision="x"
)
LABEL = Output(kind="label", name="cat", decision="cat", classes=("cat", "dog", "fox"))
MARGIN = Output(kind="class", name="declined", decision="declined", scale="log-odds", classes=("no", "declined"))
CONTRAST = Output(
    kind="threshold", name="a rather than b", threshold=0.0, decision="x", choices=Choices(output=("a", "b"))
)
LIMIT = Output(kind="threshold", name="price", unit="USD", threshold=4000.0, decision="x")
TEXT = {"kind": "text", "noun": "words", "neighbors": "independent", "n_rows": None, "names": []}
IMAGE = TEXT | {"kind": "image", "noun": "regions"}
SIGNAL = TEXT | {"kind": "signal", "noun": "stretches"}
CUBE = TEXT | {"kind": "hypercube", "noun": "facts"}
CARAT = Fact("carat", "carat", "at_least", low=1.05, value=1.2)
CLARITY = Fact("clarity", "clarity", "equals", value="SI2")


def word(text):
    return Fact(text, text, "present", value=text)


def price(*contributions, **changes):
    """Return an explanation of a price."""
    facts = (CARAT, CLARITY, OWNER, YEARS)[: len(contributions)]
    figures = {"output": PRICE, "prediction": 4672.0, "holds": None, "rows": None, "all": share(0.05, 0.04, 0.06)}
    return made_explanation(contributions=contributions, facts=facts, **figures | changes)


PRINTED = {
    "explained": (
        made_explanation(),
        """
        Model's decision: declined, P(declined) = 0.97. These facts explain it:
           0.61  start: about the average altered copy
          +0.18  income < 39,000 (here 32,000)
          +0.16  debt >= 7,000 (here 11,500)
          +0.05  owner = False
          -0.03  employed_years >= 9 (here 12)
        With these facts, at least 98% of copies get this decision; with or without them, 64%.
        Of 214 table rows with them, 212 get it from the model.
        """,
    ),
    "explained in part": (
        made_explanation(
            output=GOOD,
            prediction=0.71,
            facts=(INCOME,),
            contributions=[0.1],
            verdict=Verdict.PARTLY_EXPLAINED,
            holds=share(0.83, 0.8012, 0.857),
            all=share(0.66, 0.64, 0.68),
            rows=Rows(120, 101, 1000),
        ),
        """
        Model's decision: good, P(good) = 0.71. This fact explains it in part:
           0.61  start: about the average altered copy
          +0.10  income < 39,000 (here 32,000)
        With this fact, 80 to 86% of copies get this decision; with or without it, 66%.
        Of 120 table rows with it, 101 get this decision from the model.
        """,
    ),
    "not explained, rough, and the start is not the average": (
        made_explanation(
            output=GOOD,
            prediction=0.55,
            facts=(INCOME, OWNER),
            contributions=[0.1, -0.05],
            verdict=Verdict.NOT_EXPLAINED,
            holds=share(0.58, 0.52, 0.64),
            all=share(0.61, 0.6, 0.62),
            fit=fit(0.3, 0.42),
        ),
        """
        Model's decision: good, P(good) = 0.55. These facts do not explain it (rough amounts):
           0.50  start (average copy: 0.42)
          +0.10  income < 39,000 (here 32,000)
          -0.05  owner = False
        With these facts, 52 to 64% of altered copies get this decision; with or without them, 61%.
        More facts or a rule may explain it.
        """,
    ),
    "robust": (
        made_explanation(
            output=with_changes(DECLINED, name="benign", decision="benign"),
            prediction=0.985,
            facts=(INCOME, DEBT),
            contributions=[0.012, -0.004],
            verdict=Verdict.ROBUST,
            all=share(0.98, 0.972, 0.99),
            fit=fit(0.7, 0.97),
        ),
        """
        Model's decision: benign, P(benign) = 0.985. Hardly anything changes it:
        at least 97% of altered copies get this decision. What moves the probability most:
           0.977  start: about the average altered copy
          +0.012  income < 39,000 (here 32,000)
          -0.004  debt >= 7,000 (here 11,500)
        """,
    ),
    "undecided": (
        made_explanation(
            verdict=Verdict.UNDECIDED, holds=share(0.955, 0.94, 0.97), facts=(OWNER,), contributions=[0.36]
        ),
        """
        Model's decision: declined, P(declined) = 0.97. Whether this fact explains it is undecided:
           0.61  start: about the average altered copy
          +0.36  owner = False
        With this fact, 94 to 97% of copies get this decision; with or without it, 64%.
        Of 214 table rows with it, 212 get this decision from the model.
        """,
    ),
    "a number": (
        price(1240.0, -310.2, fit=fit(0.86, 3800, 310, 830)),
        """
        Model's price: 4,672 USD. These facts explain it:
           3,742  start: about the average altered copy
          +1,240  carat >= 1.05 (here 1.20)
            -310  clarity = SI2
        For copies, this sum is typically 310 USD off the model's price; without facts, 830 USD.
        """,
    ),
    "a number that is robust": (
        price(12.0, fit=fit(0.86, 4660, 3, 8), verdict=Verdict.ROBUST, all=share(0.98, 0.97, 0.99)),
        """
        Model's price: 4,672 USD. Hardly anything changes it:
        at least 97% of altered copies get this price to within 90 USD. What moves the price most:
          4,660  start: about the average altered copy
            +12  carat >= 1.05 (here 1.20)
        """,
    ),
    "a number without a name, a unit or a table": (
        price(
            0.2,
            output=Output(kind="number", name="f(x)"),
            prediction=0.467,
            fit=fit(0.6, 0.1, 0.12, 0.2),
            verdict=Verdict.NOT_EXPLAINED,
            all=None,
        ),
        """
        Model's output: 0.47. This fact does not explain it:
           0.27  start (average copy: 0.10)
          +0.20  carat >= 1.05 (here 1.20)
        For altered copies, this sum typically misses the model's output by 0.12; without facts, by 0.20.
        More facts or a rule may explain it.
        """,
    ),
    "a number without facts": (
        price(fit=fit(0.0, 3900, 830, 830), verdict=Verdict.NOT_EXPLAINED),
        """
        Model's price: 4,672 USD. No facts were found that explain it.
        For altered copies, the model's price typically differs from this by 830 USD.
        """,
    ),
    "no facts": (
        made_explanation(facts=(), contributions=[], holds=None, verdict=Verdict.NOT_EXPLAINED, fit=fit(0.0, 0.7)),
        """
        Model's decision: declined, P(declined) = 0.97. No facts were found that explain it.
        64% of altered copies get this decision.
        """,
    ),
    "no facts, and robust": (
        made_explanation(
            facts=(), contributions=[], holds=None, verdict=Verdict.ROBUST, all=share(0.99, 0.98, 1.0)
        ),
        """
        Model's decision: declined, P(declined) = 0.97. Hardly anything changes it:
        at least 98% of altered copies get this decision.
        """,
    ),
    "three classes": (
        made_explanation(
            output=IRIS, prediction=0.58, facts=(OWNER,), contributions=[0.2], fit=fit(0.7, 0.37), rows=None
        ),
        """
        Model's decision: versicolor, P(versicolor) = 0.58, next: virginica 0.39. This fact explains it:
           0.38  start: about the average altered copy
          +0.20  owner = False
        With this fact, at least 98% of copies get this decision; with or without it, 64%.
        """,
    ),
    "a threshold of one half among three classes": (
        made_explanation(
            output=with_changes(DEFAULT, threshold=0.5, classes=("paid", "late", "default")),
            prediction=0.42,
            facts=(OWNER,),
            contributions=[0.2],
            fit=fit(0.7, 0.2),
            rows=None,
        ),
        """
        Model's decision: not default, P(default) = 0.42 (threshold 0.50). This fact explains it:
           0.22  start: about the average altered copy
          +0.20  owner = False
        With this fact, at least 98% of copies get this decision; with or without it, 64%.
        """,
    ),
    "above a threshold": (
        made_explanation(
            output=DEFAULT, prediction=0.42, facts=(OWNER,), contributions=[0.2], fit=fit(0.7, 0.2), rows=None
        ),
        """
        Model's decision: default, P(default) = 0.42 (threshold 0.30). This fact explains it:
           0.22  start: about the average altered copy
          +0.20  owner = False
        With this fact, at least 98% of copies get this decision; with or without it, 64%.
        """,
    ),
    "just below a threshold": (
        made_explanation(
            output=DEFAULT, prediction=0.2996, facts=(OWNER,), contributions=[-0.1], fit=fit(0.7, 0.4), rows=None
        ),
        """
        Model's decision: paid, P(default) = 0.2996 (threshold 0.3000). This fact explains it:
           0.3996  start: about the average altered copy
          -0.1000  owner = False
        With this fact, at least 98% of copies get this decision; with or without it, 64%.
        """,
    ),
    "so little above a threshold that four decimals hide it": (
        made_explanation(
            output=DEFAULT,
            prediction=0.3000004841,
            facts=(OWNER,),
            contributions=[0.1],
            fit=fit(0.7, 0.2),
            rows=None,
        ),
        """
        Model's decision: default, P(default) = 0.30 (just above the threshold 0.30). This fact explains it:
           0.20  start: about the average altered copy
          +0.10  owner = False
        With this fact, at least 98% of copies get this decision; with or without it, 64%.
        """,
    ),
    "so little below a half that four decimals hide it": (
        made_explanation(
            output=with_changes(DEFAULT, threshold=0.5),
            prediction=0.49999,
            facts=(OWNER,),
            contributions=[0.1],
            fit=fit(0.7, 0.4),
            rows=None,
        ),
        """
        Model's decision: paid, P(default) = 0.50 (just below the threshold 0.50). This fact explains it:
           0.40  start: about the average altered copy
          +0.10  owner = False
        With this fact, at least 98% of copies get this decision; with or without it, 64%.
        """,
    ),
    "a number above a threshold": (
        price(1240.0, output=LIMIT, holds=share(1.0), all=share(0.75), fit=fit(0.9, 3500, 300, 830)),
        """
        Model's decision: at least 4,000 USD, price = 4,672 USD. This fact explains it:
           3,432  start (average copy: 3,500)
          +1,240  carat >= 1.05 (here 1.20)
        With this fact, all altered copies get this decision; with or without it, 75%.
        """,
    ),
    "labels without scores": (
        made_explanation(
            output=LABEL, prediction=1.0, facts=(OWNER,), contributions=[0.4], fit=fit(0.7, 0.6), rows=None
        ),
        """
        Model's decision: cat (counted as 1). This fact explains it:
           0.60  start: about the average altered copy
          +0.40  owner = False
        With this fact, at least 98% of copies get this decision; with or without it, 64%.
        """,
    ),
    "numbers as classes": (
        made_explanation(
            output=with_changes(IRIS, name="1", decision=1, classes=(0, 1, 2), runner_up=(2, 0.39)),
            prediction=0.58,
            facts=(),
            contributions=[],
            holds=None,
            verdict=Verdict.UNDECIDED,
        ),
        """
        Model's decision: class 1, P(class 1) = 0.58, next: class 2 at 0.39. No facts were found that explain it.
        64% of altered copies get this decision.
        """,
    ),
    "a large number": (
        price(125067.3, -52424.1, fit=fit(0.86, 1258150, 110001, 390001), prediction=1330800.0),
        """
        Model's price: 1,330,800 USD. These facts explain it:
          1,257,800  start: about the average altered copy
           +125,000  carat >= 1.05 (here 1.20)
            -52,000  clarity = SI2
        For copies, this sum is typically 110,000 USD off the model's price; without facts, 390,000 USD.
        """,
    ),
    "log-odds": (
        made_explanation(
            output=MARGIN, prediction=3.2, facts=(OWNER,), contributions=[1.6], fit=fit(0.7, 1.6), rows=None
        ),
        """
        Model's decision: declined, log-odds of declined = 3.2. This fact explains it:
           1.6  start: about the average altered copy
          +1.6  owner = False
        With this fact, at least 98% of copies get this decision; with or without it, 64%.
        """,
    ),
    "a contrast of two classes": (
        made_explanation(
            output=CONTRAST, prediction=-0.3, facts=(OWNER,), contributions=[-0.4], fit=fit(0.7, 0.1), rows=None
        ),
        """
        Model's decision: b rather than a, a minus b = -0.30. This fact explains it:
           0.10  start: about the average altered copy
          -0.40  owner = False
        With this fact, at least 98% of copies get this decision; with or without it, 64%.
        """,
    ),
    "words": (
        made_explanation(
            output=SPAM,
            prediction=0.94,
            space=TEXT,
            facts=(word("free"), word("winner"), word("meeting")),
            contributions=[0.21, 0.15, -0.04],
            holds=share(0.97, 0.96, 0.98),
            all=share(0.58, 0.56, 0.6),
            fit=fit(0.7, 0.62),
            rows=None,
        ),
        """
        Model's decision: spam, P(spam) = 0.94. These words explain it:
           0.62  start: about the average altered copy
          +0.21  "free"
          +0.15  "winner"
          -0.04  "meeting"
        With these words, at least 96% of copies get this decision; with or without them, 58%.
        """,
    ),
    "regions": (
        made_explanation(
            space=IMAGE,
            facts=(word("region 7"),),
            contributions=[0.36],
            verdict=Verdict.NOT_EXPLAINED,
            holds=share(0.6, 0.55, 0.65),
            rows=None,
        ),
        """
        Model's decision: declined, P(declined) = 0.97. This region does not explain it:
           0.61  start: about the average altered copy
          +0.36  region 7
        With this region, 55 to 65% of copies get this decision; with or without it, 64%.
        More regions or a rule may explain it.
        """,
    ),
    "a grave finding": (
        made_explanation(
            facts=(INCOME, DEBT),
            contributions=[0.26, 0.1],
            findings=(("dependent-columns", ("income", "debt")), ("id", ("debt",)), ("target", ("age",))),
            rows=Rows(214, 214, 1000),
        ),
        """
        Model's decision: declined, P(declined) = 0.97. These facts explain it:
           0.61  start: about the average altered copy
          +0.26  income < 39,000 (here 32,000)
          +0.10  debt >= 7,000 (here 11,500)
        With these facts, at least 98% of copies get this decision; with or without them, 64%.
        Of 214 table rows with them, all get it from the model.
        debt may only identify rows.
        """,
    ),
}


def unindented(text):
    return "\n".join(line.removeprefix(" " * 8) for line in text.strip("\n").rstrip(" \n").splitlines())


@pytest.mark.parametrize("name", PRINTED)
def test_what_is_printed(name):
    explanation, text = PRINTED[name]
    assert str(explanation) == unindented(text)


@pytest.mark.parametrize(
    ("rows", "n_rows", "text"),
    [
        (Rows(0, 0, 1000), 1000, "No table row has them."),
        (Rows(1, 1, 1000), 1000, "The one table row with them gets it from the model."),
        (Rows(1, 0, 1000), 1000, "The one table row with them does not get it from the model."),
        (Rows(20, 0, 1000), 1000, "Of 20 table rows with them, none get it from the model."),
        (
            Rows(2140, 2000, 10_000),
            50_000,
            "Of 2,140 sampled rows with them, 2,000 get it from the model.",
        ),
        (Rows(0, 0, 10_000), 50_000, "No sampled row has them."),
    ],
)
def test_rows_of_the_table_are_counted(rows, n_rows, text):
    assert str(made_explanation(rows=rows, space=TABLE | {"n_rows": n_rows})).splitlines()[-1] == text


DETAILS = """
An altered copy is this case with about half of its values replaced by those of random rows of the table.
Each value is replaced with probability 0.54, independently of the others (sigma 1).
  income < 39,000: +0.18; if it did not hold: -0.52. It does not hold in 35% of copies.
  debt >= 7,000: +0.16; if it did not hold: -0.45. It does not hold in 35% of copies.
  owner = False: +0.05; if it did not hold: -0.15. It does not hold in 35% of copies.
  employed_years >= 9: -0.03; if it did not hold: +0.09. It does not hold in 35% of copies.
Of copies made to have these facts by values of random rows with them, 98.5% get this decision (limits 98.1 to \
99%; 2,000 copies).
Of copies that happen to have these facts, 99.0% get this decision (limits 98.5 to 99.5%; 900 copies).
Of all copies, 64.0% get this decision (limits 62 to 66%; 2,000 copies).
The smaller of the first two shares counts.
Copies typically differ from this probability by 0.20; their average is 0.610. The sum typically misses them by \
0.080, and explains R2 = 0.63 of the squared differences (limits 0.60 to 0.66; 2,000 copies).
All limits hold together with 95% confidence.
214 of 1,000 table rows have these facts; 212 of them get this decision.
Proven for the copies of the search: among 412 facts that are related to the output, no sum of as many facts \
fits better by more than 1% of the variance.
  As good within 1%: 0.62 start, +0.20 income < 39,000, +0.15 debt >= 7,000.
Copies shown to the model: 2,000 to find the facts, 3,000 to measure them; 5,001 answers with the case itself.
income is closely related to other columns, but altered separately.
Settings: alternatives 0, confidence 0.95, k 4, queries auto, seed 0, sigma 1.0.
Versions: anchorline 0.2.0.
"""


def test_details_say_how_we_know():
    explanation = made_explanation(
        holds_law=share(0.99, 0.985, 0.995, 900),
        alternatives=(Alternative((INCOME, DEBT), (0.2, 0.15), 0.02),),
        findings=(("dependent-columns", ("income",)),),
    )
    text, _, details = explanation.details().partition("\n\n")
    assert text == str(explanation)
    assert details == DETAILS.strip("\n")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({}, "Fewer than 5% of copies happen to have these facts, so their share was not measured."),
        ({"holds": share(1.0)}, "100.0% get this decision (exact: all were listed)"),
        (
            {"fit": fit(0.6, 0.6, is_approximate=True)},
            "(limits 0.57 to 0.63, which are approximate; 2,000 copies)",
        ),
        (
            {"proof": Proof("limit", 0.01, 0.005, 0.03, 412)},
            "Not proven, because the search reached its limit: among 412 facts that are related to the output, "
            "a sum of as many facts may fit better by at most 17% of the variance.",
        ),
        (
            {"proof": Proof("numerical", 0.01, 0.005, 0.03, 412)},
            "Not proven, because rounding errors are too large",
        ),
        (
            {"queries": Queries(0, 3000, 6002, True, "leaves")},
            "found from the leaves of the model's trees, without asking it. Copies shown to the model: 3,000 to "
            "measure them; 6,002 answers with the case itself. Its scores do not determine its decisions, so both "
            "were asked, and both count.",
        ),
        ({"queries": Queries(0, 3000, 3001, False, "leaves")}, "Proven for the model's trees: among 412"),
        (
            {"queries": Queries(64, 0, 65, False, "listed")},
            "the model: all 64 to find the facts; 65 answers",
        ),
        ({"facts": (), "contributions": [], "holds": None}, "No facts are stated: none explains 1%"),
        ({"space": TABLE | {"neighbors": "realistic"}}, "replaced by those of one row of the table that is like"),
        ({"space": TABLE | {"reference": True}}, "by those of random rows of the reference."),
        ({"space": TABLE | {"held": ["branch", "age"]}}, "others (sigma 1). Never altered: branch and age.\n"),
        ({"space": TABLE | {"held": list("abcdefg")}}, "Never altered: a, b, c, d and 3 more.\n"),
        (
            {"space": TABLE | {"held": ["a"], "together": [["income", "debt"], list("bcd")], "valid": True}},
            "(sigma 1). Never altered: a. Altered together: income and debt; b, c and d. Copies that the given "
            "rule forbids are not drawn.\n",
        ),
        (
            {"space": TABLE | {"together": [[f"a{i}", f"b{i}"] for i in range(6)]}},
            "a2 and b2; a3 and b3; and 2 more groups.\n",
        ),
        ({"space": TABLE | {"held": [], "together": [], "valid": False}}, "of the others (sigma 1).\n"),
        ({"space": TEXT}, "Each word is absent with probability 0.27, independently of the others (sigma 1)."),
        ({"space": IMAGE}, "An altered copy is this image, but hides about a quarter of the regions."),
        ({"space": SIGNAL, "settings": {"sigma": 0.0}}, "this signal, but hides about half of the stretches."),
        ({"space": CUBE, "facts": (), "contributions": []}, "with about a quarter of its values reversed."),
        ({"settings": {"sigma": 0.0}}, "An altered copy is this case with all of its values replaced"),
        ({"settings": {"sigma": 4.0}}, "An altered copy is this case with about 4% of its values replaced"),
    ],
)
def test_details_follow_the_figures(changes, sentence):
    assert sentence in made_explanation(**changes).details()


def test_claims_never_mix():
    """What was measured has limits and no proof; what is proven has no limits."""
    for line in made_explanation(holds_law=share(0.99, 0.985, 0.995)).details().splitlines():
        assert not ("limits" in line and "roven" in line)


def test_every_statement_has_its_figures():
    explanation = made_explanation()
    kinds = [each.kind for each in statements_of(explanation)]
    assert kinds == ["decision", "verdict", "start", *["fact"] * 4, "holds", "rows"]
    plain = [asdict(each) for each in statements_of(explanation)]
    assert plain[1]["figures"] == {"verdict": "explained", "r2": 0.63}
    assert plain[3] == {
        "kind": "fact",
        "text": "income < 39,000 (here 32,000)",
        "figures": {"column": "income", "contribution": 0.182, "unit": ""},
        "amount": "+0.18",
    }


@pytest.mark.parametrize("name", PRINTED)
def test_statements_are_plain_and_every_one_is_printed(name):
    explanation = PRINTED[name][0]
    for said, text in ((statements_of, str(explanation)), (details_of, explanation.details())):
        for each in said(explanation):
            assert each.text in text
            json.dumps(asdict(each), allow_nan=False)


def test_a_rule_is_suggested_where_facts_do_not_explain():
    k, few = made_explanation().settings, made_explanation(verdict=Verdict.NOT_EXPLAINED)
    assert str(few).splitlines()[-1] == "More facts or a rule may explain it."
    fewer = made_explanation(verdict=Verdict.NOT_EXPLAINED, settings={**k, "k": 9})
    assert str(fewer).splitlines()[-1] == "A rule may explain it."


# How many words.

OUTPUTS = {
    "two classes": (DECLINED, 0.97),
    "three classes": (IRIS, 0.58),
    "above": (DEFAULT, 0.42),
    "below": (DEFAULT, 0.12),
    "limit": (LIMIT, 4672.0),
    "label": (LABEL, 1.0),
    "log-odds": (MARGIN, 3.2),
    "contrast": (CONTRAST, -0.4),
    "number": (PRICE, 4672.0),
    "no name": (Output(kind="number", name="f(x)"), 0.5),
}
SPACES = {"words": TEXT, "regions": IMAGE, "facts": TABLE | {"n_rows": 50_000}}
VERDICT_WORDS = {
    Verdict.EXPLAINED: r"(These \w+ explain|This \w+ explains) it( \(rough amounts\))?:",
    Verdict.PARTLY_EXPLAINED: r"(These \w+ explain|This \w+ explains) it in part( \(rough amounts\))?:",
    Verdict.NOT_EXPLAINED: r"(These \w+ do|This \w+ does) not explain it( \(rough amounts\))?:",
    Verdict.ROBUST: r"Hardly anything changes it:",
    Verdict.UNDECIDED: r"Whether (these \w+ explain|this \w+ explains) it is undecided( \(rough amounts\))?:",
}


def combinations(verdict, output, prediction):
    """Yield explanations of one verdict about one output: any space, facts, rows, findings and fit."""
    size = abs(prediction) / 10
    for noun, n_facts, rows, r2, is_far in itertools.product(
        SPACES, (0, 1, 4), (None, Rows(9, 5, 10_000)), (0.4, 0.8), (True, False)
    ):
        facts = (INCOME, DEBT, OWNER, YEARS) if noun == "facts" else tuple(map(word, ("free", "a", "b", "c")))
        contributions = [size, size, -size / 2, size / 10][:n_facts]
        is_number = output.kind == "number"
        base = prediction - sum(contributions)
        yield made_explanation(
            output=output,
            prediction=prediction,
            verdict=verdict,
            space=SPACES[noun],
            facts=facts[:n_facts],
            contributions=contributions,
            holds=None if is_number or not n_facts else share(0.96, 0.95, 0.97),
            rows=rows if noun == "facts" else None,
            fit=fit(r2, base + is_far * 10 * size, 3 * size, 5 * size),
            findings=(("target-leak", ("income",)),) if noun == "facts" else (),
        )


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("verdict", list(Verdict))
def test_no_text_is_long(verdict, output):
    for explanation in combinations(verdict, *OUTPUTS[output]):
        text = str(explanation)
        assert words_beside_facts(explanation) <= 55, text
        assert re.search(VERDICT_WORDS[verdict], text) or not explanation.facts, text
        assert text.startswith("Model's ")
        assert not re.search(r"None|nan|neighbor|[{}]|\S  \S(?!.*\()(?<!\d  \S)|\.\.", text), text
        assert not re.search(r"[Tt]hese (fact|word|region)\b|[Tt]his (facts|words|regions)\b", text), text
        assert all(len(line) <= 150 for line in text.splitlines())
        assert text.splitlines()[-1].endswith(".") or verdict is Verdict.ROBUST
        assert "None" not in explanation.details()


def test_the_usual_texts_have_at_most_45_words():
    usual = [
        PRINTED[name][0] for name in ("explained", "explained in part", "robust", "a number", "words", "no facts")
    ]
    assert max(map(words_beside_facts, usual)) <= 45
    assert words_beside_facts(made_explanation()) == 42


def test_names_are_not_counted():
    long = "a name of six words here"
    named = with_changes(DECLINED, name=long, decision=long, classes=("approved", long))
    facts = (with_changes(INCOME, column=long, attribute=long), DEBT, OWNER, YEARS)
    findings = (("id", (long,)),)
    short = made_explanation(findings=(("id", ("income",)),))
    assert words_beside_facts(
        made_explanation(output=named, facts=facts, findings=findings)
    ) == words_beside_facts(short)


# Numbers.

SIZES = st.floats(1e-9, 1e9).flatmap(
    lambda size: st.tuples(st.just(size), st.floats(-1, 1), st.lists(st.floats(-1, 1), max_size=4))
)


@given(sizes=SIZES)
def test_printed_sums_add_up(sizes):
    size, start, parts = sizes
    parts = sorted((size * part for part in parts), key=abs, reverse=True)
    prediction = size * start + float(np.sum(parts))
    facts = (INCOME, DEBT, OWNER, YEARS)[: len(parts)]
    number = Output(kind="number", name="price")
    explanation = made_explanation(
        output=number, prediction=prediction, facts=facts, contributions=parts, holds=None, fit=None
    )
    total = digits_of(explanation).total.replace(",", "")
    terms = [each.amount.replace(",", "") for each in statements_of(explanation) if each.amount]
    if terms:
        assert sum(map(Decimal, terms)) == Decimal(total)
        assert len({term.partition(".")[2].partition("e")[0].__len__() for term in terms}) == 1


@pytest.mark.parametrize(
    ("fact", "text"),
    [
        (Fact("age", "age", "between", low=13, high=40, value=15), "13 <= age < 40 (here 15)"),
        (Fact("built", "year_built", "at_least", low=2005, value=2011), "year_built >= 2005 (here 2011)"),
        (Fact("zip", "zip", "equals", value=94110), "zip = 94110"),
        (Fact("a", "a", "equals", value=""), 'a = ""'),
        (Fact("a", "a", "equals", value=" "), 'a = " "'),
        (Fact("a", "a", "equals", value=" <=50K"), "a = <=50K"),
        (Fact("a", "a", "equals", value="1,234"), "a = 1,234"),
        (Fact("a", "a", "missing"), "a is missing"),
        (
            Fact("d", "d", "below", high="2015-03-01T00:00:00", value="2015-02-01T13:45:00"),
            "d < 2015-03-01 (here 2015-02-01)",
        ),
        (Fact("a", "a", "below", high=0.14, value=0.13999912), "a < 0.14 (here 0.139999)"),
    ],
)
def test_facts_are_written_as_people_write_them(fact, text):
    assert fact_text(fact, here=True) == text


def test_signs_and_statements_of_two_values():
    assert fact_text(Fact("a", "a", "equals", value=-1), CUBE) == "a = -1"
    assert legend(made_explanation(space=CUBE, facts=(), contributions=[])).endswith("reversed.")


# Texts from data.

HOSTILE = "\x1b[2J\r\n\u202eevil\u2066\x00\t<b>&'\"\ud800"


@settings(deadline=None)  # because machines may be busy
@given(name=st.text(min_size=1, max_size=90) | st.just(HOSTILE))
def test_nothing_from_data_controls_the_text(name):
    output = with_changes(
        DECLINED, name=name, decision=name, unit=name, classes=("x", name), runner_up=(name, 0.1)
    )
    facts = (
        Fact(name, name, "below", high=3.0, value=2.0),
        Fact(name, name, "equals", value=name),
        Fact(name, name, "between", low=name, high=name, value=name),
        Fact(name, name, "missing"),
    )
    for space in (TABLE, TEXT):
        explanation = made_explanation(output=output, facts=facts, space=space, findings=(("id", (name,)),))
        for text in (explanation.details(), *(each.text for each in statements_of(explanation))):
            assert all(character.isprintable() or character in "\n\u200c\u200d" for character in text)
        assert (
            len(str(explanation).splitlines()) == len(statements_of(explanation)) - 1
        )  # decision and verdict share one


def test_long_texts_are_cut_in_the_middle_and_amounts_stay_aligned():
    fact = Fact("a", "a" * 200, "equals", value="b" * 200)
    lines = str(made_explanation(facts=(fact, DEBT), contributions=[0.2, 0.1])).splitlines()
    assert re.fullmatch(r"  \+0\.20  a{29}…a{30} = b{29}…b{30}", lines[2])
    assert [line[:9] for line in lines[1:4]] == ["   0.67  ", "  +0.20  ", "  +0.10  "]
