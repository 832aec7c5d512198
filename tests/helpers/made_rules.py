"""Rules of every kind, made by hand, so that texts, pages and pictures can be looked at and tested."""

from anchorline.facts import Fact
from anchorline.result.explanation import Rows
from anchorline.result.rule import Rule, RuleProof, RuleVerdict
from helpers import made_cases
from helpers.made import (
    DEBT,
    DECLINED,
    INCOME,
    OWNER,
    PRICE,
    TABLE,
    YEARS,
    made_rule,
    made_strip,
    share,
    with_changes,
)
from helpers.made_cases import HEBREW, HOSTILE, LONG, OTHER_HEBREW, SPAM

CARAT = Fact("carat", "carat", "at_least", low=1.05, value=1.2)
SINCE = Fact(
    "since",
    "customer since",
    "between",
    low="2015-03-01T00:00:00",
    high="2019-06-30T13:45:00",
    value="2016-02-01T00:00:00",
)
SHORT = share(0.895, 0.88, 0.907)
NEARLY = share(0.955, 0.943, 0.968)


def price(**changes) -> Rule:
    """Return a rule that keeps a price within a tolerance."""
    figures = {
        "output": PRICE,
        "prediction": 4672.0,
        "within": 467.2,
        "facts": (CARAT,),
        "instance": [1.2, "SI2"],
        "space": TABLE | {"names": ["carat", "clarity"]},
        "rows": Rows(204, 180, 1000),
    }
    return made_rule(**figures | changes)


def four() -> Rule:
    """Four facts: bounds, a category, dates between two bounds, and missing values."""
    facts = (INCOME, OWNER, SINCE, Fact("rating", "rating", "missing"))
    strips = (
        made_strip(INCOME, missing=0.08, shares=(0.1, 0.1, 0.2, 0.4, 0.12)),
        made_strip(OWNER, labels=(False,), own=1, first=1, last=2, shares=(0.6, 0.4), stays=(0.3, 0.97)),
        made_strip(SINCE, missing=0.3, shares=(0.52, 0.05, 0.13)),
        made_strip(facts[3], labels=(10.0,), shares=(0.4, 0.4), stays=(0.1, 0.6, 0.99), missing=0.2, own=2),
    )
    return made_rule(facts=facts, strips=strips)


def hostile() -> Rule:
    """Names from an attacker, long names, and names that run from right to left."""
    columns = [HOSTILE, LONG, HEBREW, "$x_1$", "</style></details>"]
    facts = [Fact(name, name, "below", high=10.0 * i + 1, value=10.0 * i - 3) for i, name in enumerate(columns)]
    facts[4] = Fact(columns[4], columns[4], "equals", value=HOSTILE)
    return made_rule(
        facts=tuple(facts),
        output=with_changes(DECLINED, name=HEBREW, decision=HEBREW, classes=(OTHER_HEBREW, HEBREW)),
        instance=[HOSTILE, *map(float, range(6))],
        space=TABLE | {"noun": "<i>facts\x1b", "names": [*columns, "other", "last"]},
        asked={"k": HOSTILE, HOSTILE: HOSTILE},
        versions={"numpy": "2.3.1"},
    )


def of(explanation, **changes) -> Rule:
    """Return a rule with the first two facts of an explanation of a text, an image or a signal."""
    facts = explanation.facts[:2]
    strips = [made_strip(fact, labels=("present",), shares=(0.5, 0.5)) for fact in facts]
    figures = {
        "instance": explanation.instance,
        "facts": facts,
        "strips": tuple(strips),
        "output": SPAM,
        "prediction": explanation.prediction,
        "rows": None,
        "coverage": 0.25,
        "space": explanation.space,
    }
    return made_rule(**figures | changes)


RULES = {
    "holds": made_rule,
    "one": lambda: made_rule(facts=(INCOME,)),
    "always": lambda: made_rule(verdict=RuleVerdict.ALWAYS, holds=share(1.0), proof=RuleProof("proven", 90, 0)),
    "not needed": lambda: made_rule(
        facts=(), holds=share(0.98, 0.973, 0.99), all=share(0.98, 0.973, 0.99), coverage=1.0
    ),
    "short": lambda: made_rule(verdict=RuleVerdict.FALLS_SHORT, holds=SHORT),
    "none": lambda: made_rule(
        verdict=RuleVerdict.FALLS_SHORT, facts=(), holds=share(0.64, 0.62, 0.66), coverage=1.0
    ),
    "undecided": lambda: made_rule(verdict=RuleVerdict.UNDECIDED, holds=NEARLY),
    "measured": lambda: made_rule(verdict=RuleVerdict.MEASURED, holds=SHORT, asked={"holds": None, "k": 2}),
    "price": price,
    "four": four,
    "hostile": hostile,
    "years": lambda: made_rule(facts=(YEARS, DEBT, OWNER)),
    "text": lambda: of(made_cases.text()),
    "image": lambda: of(made_cases.image()),
    "signal": lambda: of(made_cases.signal()),
}
