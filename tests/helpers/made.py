"""Explanations and rules made by hand, so that texts can be tested on any figures."""

import dataclasses
from typing import Any

import numpy as np

from anchorline.facts import Fact
from anchorline.result.explanation import Explanation, Fit, Output, Proof, Queries, Rows, Share, Verdict
from anchorline.result.rule import Rule, RuleProof, RuleVerdict, Strip

INCOME = Fact("income", "income", "below", high=39000.0, value=32000.0)
DEBT = Fact("debt", "debt", "at_least", low=7000, value=11500)
OWNER = Fact("owner", "owner", "equals", value=False)
YEARS = Fact("employed_years", "employed_years", "at_least", low=9, value=12)
DECLINED = Output(
    kind="class",
    name="declined",
    decision="declined",
    is_probability=True,
    classes=("approved", "declined"),
    low=0.0,
    high=1.0,
)
PRICE = Output(kind="number", name="price", unit="USD", low=300.0, high=19000.0, spread=4500.0)
TABLE = {
    "kind": "table",
    "fingerprint": "table:0",
    "noun": "facts",
    "neighbors": "independent",
    "n_rows": 1000,
    "n_attributes": 5,
    "names": ["income", "debt", "owner", "employed_years", "age"],
}


def share(value: float, low: float | None = None, high: float | None = None, n: int = 2000) -> Share:
    """Return a share; without limits, it is exact."""
    if low is None:
        return Share(value, value, value, n, is_exact=True)
    return Share(value, low, value if high is None else high, n)


def fit(r2: float, mean: float, error: float = 0.08, baseline: float = 0.2, **changes: Any) -> Fit:
    """Return a fit with limits around its R2."""
    figures = {"low": r2 - 0.03, "high": min(1.0, r2 + 0.03), "n": 2000} | changes
    return Fit(r2=r2, error=error, baseline=baseline, mean_output=mean, **figures)


def made_explanation(**changes: Any) -> Explanation:
    """Return an explanation of a declined loan, with any figures changed; the base follows from the others."""
    holds = share(0.985, 0.981, 0.99)
    figures: dict[str, Any] = {
        "instance": [32000, 11500, False, 12, 41],
        "prediction": 0.97,
        "facts": (INCOME, DEBT, OWNER, YEARS),
        "contributions": [0.182, 0.157, 0.051, -0.031],
        "verdict": Verdict.EXPLAINED,
        "holds": holds,
        "holds_law": None,
        "all": share(0.64, 0.62, 0.66),
        "fit": fit(0.63, 0.61),
        "rows": Rows(with_facts=214, alike=212, looked_at=1000),
        "output": DECLINED,
        "proof": Proof("proven", 0.01, 0.0099, 0.03, 412),
        "queries": Queries(2000, 3000, 5001, False, "drawn"),
        "alternatives": (),
        "findings": (),
        "settings": {
            "k": len(changes.get("facts", "four")),
            "sigma": 1.0,
            "queries": "auto",
            "seed": 0,
            "alternatives": 0,
            "confidence": 0.95,
        },
        "space": TABLE,
        "versions": {"anchorline": "0.2.0"},
    } | changes
    contributions = np.array(figures["contributions"], dtype=float)
    figures.setdefault("effects", contributions / 0.35)
    figures.setdefault("base", figures["prediction"] - float(contributions.sum()))
    figures.setdefault("holds_drawn", figures["holds"])
    return Explanation(**figures)


def with_changes(value: Any, **changes: Any) -> Any:
    """Return a dataclass with changed fields."""
    return dataclasses.replace(value, **changes)


def made_strip(fact: Fact, **changes: Any) -> Strip:
    """Return a strip of a fact: a few parts for bounds, this one and all others for anything else."""
    figures: dict[str, Any] = {
        "labels": (fact.value,),
        "shares": (0.3, 0.7),
        "stays": (0.97, 0.41),
        "first": 0,
        "last": 1,
        "own": 0,
        "missing": 0.0,
    }
    if fact.kind == "below":
        figures |= {"labels": (20000.0, 30000.0, fact.high, 60000.0), "shares": (0.1, 0.15, 0.2, 0.4, 0.15)}
        figures |= {"stays": (0.99, 0.98, 0.96, 0.55, 0.1), "last": 3, "own": 2}
    elif fact.kind == "at_least":
        figures |= {"labels": (fact.low / 2, fact.low, fact.low * 2), "shares": (0.25, 0.25, 0.3, 0.2)}
        figures |= {"stays": (0.2, 0.6, 0.97, 0.99), "first": 2, "last": 4, "own": 2}
    elif fact.kind == "between":
        figures |= {"labels": (fact.low, fact.high), "shares": (0.4, 0.35, 0.25), "stays": (0.7, 0.97, None)}
        figures |= {"first": 1, "last": 2, "own": 1}
    return Strip(**figures | changes)


def made_rule(**changes: Any) -> Rule:
    """Return a rule for a declined loan, with any figures changed."""
    facts = changes.get("facts", (INCOME, DEBT))
    asked = {"holds": 0.95, "k": 4, "within": None} | changes.pop("asked", {})
    figures: dict[str, Any] = {
        "instance": [32000, 11500, False, 12, 41],
        "prediction": 0.97,
        "output": DECLINED,
        "facts": facts,
        "verdict": RuleVerdict.HOLDS,
        "within": None,
        "holds": share(0.98, 0.973, 0.986),
        "holds_law": None,
        "all": share(0.64, 0.62, 0.66),
        "coverage": 0.204,
        "rows": Rows(with_facts=204, alike=201, looked_at=1000),
        "strips": tuple(made_strip(fact) for fact in facts),
        "proof": RuleProof("found", 1240, 3),
        "queries": Queries(2000, 3000, 5001, False, "drawn"),
        "settings": {"sigma": 1.0, "queries": "auto", "seed": 0, "confidence": 0.95} | asked,
        "space": TABLE,
        "versions": {"anchorline": "0.2.0"},
    } | changes
    figures.setdefault("holds_drawn", figures["holds"])
    return Rule(**figures)
