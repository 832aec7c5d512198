"""Explanations of every kind of instance, made by hand, so that pages and pictures can be looked at and tested."""

import functools

import numpy as np

from anchorline.facts import Fact
from anchorline.result.explanation import Alternative, Explanation, Output, Rows, Verdict
from anchorline.result.frontier import Frontier, FrontierPoint
from anchorline.spaces.regions import Image, Signal
from anchorline.spaces.text import Text
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

HOSTILE = '"><script>document.title="broken"</script><img src=//example.org/x onerror=alert(1)>\u202e\x1b[2J\ud800'
LONG = "a very long statement about an attribute " + "without_any_place_to_break_it_" * 4
HEBREW, OTHER_HEBREW = "\u05e0\u05d3\u05d7\u05d4", "\u05d0\u05d5\u05e9\u05e8"
SPAM = Output(kind="class", name="spam", decision="spam", is_probability=True, classes=("ham", "spam"))


def price() -> Explanation:
    facts = (
        Fact("carat", "carat", "at_least", low=1.05, value=1.2),
        Fact("clarity", "clarity", "equals", value="SI2"),
        Fact("depth", "depth", "between", low=60.5, high=62.8, value=61.7),
    )
    return made_explanation(
        prediction=4672.0,
        contributions=[1240.4, -309.9, -168.0],
        facts=facts,
        output=PRICE,
        holds=None,
        all=share(0.1, 0.08, 0.12),
        fit=fit(0.86, 3920, 310, 830, is_approximate=True),
        instance=[1.2, "SI2", 61.7, None],
        space=TABLE | {"names": ["carat", "clarity", "depth", "color"]},
        rows=Rows(120, None, 1000),
    )


def hostile() -> Explanation:
    """Eight facts with names from an attacker, long names, and names that run from right to left."""
    columns = [HOSTILE, LONG, HEBREW, "\u5e74\u53ce", "$x_1$", "a&amp;b", "</style></details>", "col'umn"]
    facts = [Fact(name, name, "below", high=10.0 * i + 1, value=10.0 * i - 3) for i, name in enumerate(columns)]
    facts[6] = Fact(columns[6], columns[6], "equals", value=HOSTILE)
    return made_explanation(
        facts=tuple(facts),
        contributions=[0.3, -0.22, 0.12, 0.1, -0.08, 0.05, -0.02, 0.004],
        verdict=Verdict.PARTLY_EXPLAINED,
        holds=share(0.83, 0.8, 0.857),
        findings=(("id", (HOSTILE,)),),
        output=with_changes(DECLINED, name=HEBREW, decision=HEBREW, classes=(OTHER_HEBREW, HEBREW)),
        alternatives=(Alternative(tuple(facts[:3]), (0.2, -0.1, 0.1), 0.01),),
        instance=[HOSTILE, *map(float, range(30))],
        space=TABLE | {"noun": "<i>facts\x1b", "names": columns + [f"other {i}" for i in range(23)]},
        fit=fit(0.42, 0.5),
        settings={"k": HOSTILE, "sigma": 1.0, HOSTILE: HOSTILE},
        versions={"numpy": "2.3.1"},
    )


def nothing() -> Explanation:
    """No facts were found."""
    return made_explanation(facts=(), contributions=[], verdict=Verdict.NOT_EXPLAINED, holds=None)


def label() -> Explanation:
    output = Output(kind="label", name="red", decision="red", classes=("blue", "green", "red"))
    return made_explanation(output=output, prediction=1.0)


def verdict(code: Verdict) -> Explanation:
    of_all = share(0.98, 0.972, 0.99) if code is Verdict.ROBUST else share(0.64, 0.62, 0.66)
    return made_explanation(verdict=code, all=of_all)


def of_regions(neighborhood, chosen, contributions, kind, noun) -> Explanation:
    """Return an explanation by the words, regions or stretches with these numbers."""
    return made_explanation(
        instance=neighborhood.instance,
        facts=tuple(neighborhood.fact(j) for j in chosen),
        contributions=contributions,
        output=SPAM,
        prediction=0.94,
        rows=None,
        space={"kind": kind, "noun": noun, "neighbors": "independent", "names": neighborhood.names},
    )


def text(
    body="You are a winner.\n<b>Claim</b> your free prize\x07 before the meeting; it is free.",
) -> Explanation:
    there = Text().at(body)
    chosen = [there.names.index(word) for word in ("free", "winner", "meeting")]
    return of_regions(there, chosen, [0.21, 0.15, -0.04], "text", "words")


def image() -> Explanation:
    y, x = np.mgrid[:60, :90]
    pixels = np.stack([2.5 * x, 4 * y, 128 + 60 * np.sin(x / 7)], axis=-1).astype(np.uint8)
    there = Image("grid", n_segments=24).at(pixels)
    return of_regions(there, (7, 3, 14, 20), [0.21, -0.15, 0.1, -0.04], "image", "regions")


def signal(n_points=300) -> Explanation:
    seconds = np.arange(n_points) / 20
    there = Signal(20).at(3 * np.sin(seconds) + np.cos(3 * seconds))
    return of_regions(there, (7, 3, 14), [0.21, -0.15, 0.1], "signal", "stretches")


CASES = {
    "loan": made_explanation,
    "price": price,
    "hostile": hostile,
    "nothing": nothing,
    "label": label,
    "text": text,
    "image": image,
    "signal": signal,
    **{code.value: functools.partial(verdict, code) for code in Verdict},
}


def frontier(prediction=0.97) -> Frontier:
    """A frontier of the loan; the last point is not proven."""
    facts = (INCOME, DEBT, OWNER, YEARS)
    points = (
        FrontierPoint(k, facts[:k], (0.1,) * k, status, 0.04 * (1 - r2), 0.039 * (1 - r2))
        for k, r2, status in ((1, 0.4, "proven"), (2, 0.62, "proven"), (4, 0.78, "limit"))
    )
    return Frontier(
        prediction=prediction,
        output=DECLINED,
        points=tuple(points),
        baseline=0.04,
        n_queries=2000,
        settings={},
        space=TABLE,
        versions={},
    )
