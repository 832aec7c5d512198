"""Explanations as records: sums, coefficients, equality, JSON round trips, and refused texts."""

import hashlib
import json
import pickle

import numpy as np
import pytest

from anchorline.errors import CertificateError, FormatError, TamperedError
from anchorline.facts import Fact
from anchorline.result.explanation import Alternative, Choices, Explanation, Output, Rows, Verdict
from anchorline.result.json_format import canonical_json
from helpers.made import INCOME, PRICE, fit, made_explanation, share, with_changes


def sealed_again(body):
    """Return a body with a right seal, whatever it says."""
    body = {key: value for key, value in body.items() if key != "sha256"}
    return json.dumps({**body, "sha256": hashlib.sha256(canonical_json(body).encode()).hexdigest()})


def changed(**changes):
    """Return the JSON of an explanation with changed members and a right seal."""
    return sealed_again(json.loads(made_explanation().to_json()) | changes)


CONTRAST = Output(kind="threshold", name="a rather than b", threshold=0.0, choices=Choices(output=("a", "b")))
KINDS = [
    made_explanation(),
    made_explanation(output=CONTRAST, prediction=-0.2),
    made_explanation(prediction=1, contributions=[1], facts=(INCOME,), holds=share(1)),
    made_explanation(
        output=PRICE, prediction=4672, contributions=[900.5, 20, 3, 1e-9], holds=None, fit=fit(0.8, 3600)
    ),
    made_explanation(
        facts=(), contributions=[], verdict=Verdict.ROBUST, rows=None, fit=None, instance=["a\ud800", None]
    ),
    made_explanation(
        alternatives=(Alternative((INCOME,), (0.25,), 0.02),),
        findings=(("id", ("income",)),),
        facts=(
            Fact("d", "d", "between", low="2015-01-01", high="2016-01-01", value="2015-03-04"),
            Fact("e", "e", "missing"),
            Fact("f", "f", "equals", value="x" * 100),
            Fact("g", "g", "equals", value=True),
        ),
    ),
]


@pytest.mark.parametrize("explanation", KINDS)
def test_round_trips_are_byte_identical(explanation):
    text = explanation.to_json()
    again = Explanation.from_json(text)
    assert again.to_json() == text
    assert again == explanation
    assert str(again) == str(explanation)
    assert pickle.loads(pickle.dumps(explanation)) == explanation
    assert "explain it" not in text  # figures and codes, no sentences


def test_explanations_are_read_only_and_have_no_hash():
    explanation = made_explanation()
    with pytest.raises(TypeError):
        hash(explanation)
    with pytest.raises(ValueError, match="read-only"):
        explanation.contributions[0] = 1
    with pytest.raises(TypeError):
        explanation.settings["k"] = 5
    assert explanation != made_explanation(prediction=0.96)
    assert repr(explanation) == "Explanation('declined', prediction=0.97, 4 facts, explained)"


def test_coef_is_half_the_effect_times_the_sign():
    space = {"kind": "hypercube", "names": ["a", "b", "c"]}
    facts = (Fact("c", "c", "equals", value=-1), Fact("a", "a", "equals", value=1))
    explanation = made_explanation(
        space=space, instance=[1, -1, -1], facts=facts, contributions=[0.2, 0.1], effects=[0.8, 0.4]
    )
    np.testing.assert_allclose(explanation.coef, [0.2, 0.0, -0.4])
    with pytest.raises(AttributeError, match="only for instances of -1 and"):
        made_explanation().coef  # noqa: B018


def test_frames_hold_the_sum():
    frame = made_explanation().to_frame("pandas")
    assert frame["fact"].tolist() == [
        "income < 39,000",
        "debt >= 7,000",
        "owner = False",
        "employed_years >= 9",
        "(base)",
    ]
    assert frame["contribution"].sum() == pytest.approx(0.97, abs=1e-12)


@pytest.mark.parametrize(
    "changes",
    [
        {"base": 0.5},
        {"base": float("nan")},
        {"effects": [1, 1, 1]},
        {"effects": [0.1, 1, 1, -1]},
        {"effects": [1, 1, 1, 1]},
        {"contributions": [0.1, 0.2, 0.05, -0.03]},
        {"holds": share(0.9), "holds_drawn": share(0.95)},
        {"all": share(0.5, 0.6, 0.7)},
        {"fit": fit(0.5, 0.6, low=0.6)},
        {"rows": Rows(10, 11, 100)},
        {"facts": (with_changes(INCOME, kind="near"),), "contributions": [0.1]},
        {"facts": (with_changes(INCOME, high=None),), "contributions": [0.1]},
    ],
)
def test_figures_that_contradict_each_other_are_refused(changes):
    with pytest.raises(CertificateError):
        made_explanation(**changes)


def mutants():
    body = json.loads(made_explanation().to_json())
    for key in sorted({*body} - {"sha256"}):
        yield f"without {key}", sealed_again({name: value for name, value in body.items() if name != key})
        if key != "instance":
            yield f"{key} of another type", sealed_again(body | {key: ["x"]})
    yield "another key", changed(extra=1)
    yield "another key below", changed(rows=body["rows"] | {"extra": 1})
    yield "a key less below", changed(rows={"alike": 1, "with_facts": 2})
    yield "another sum", changed(base=body["base"] + 1e-6)
    yield "another verdict", changed(verdict="trustworthy")
    yield "a bool for a number", changed(base=True)
    yield "a float for a count", changed(rows=body["rows"] | {"alike": 2.5})
    yield "an old schema", changed(schema_version=1)
    yield "a new schema", changed(schema_version=3)
    yield "true as schema", changed(schema_version=True)
    yield "another kind", changed(kind="rule")
    yield "NaN", made_explanation().to_json().replace('"base":', '"base":NaN,"was":')
    yield "a key twice", made_explanation().to_json().replace('{"all"', '{"base":1,"all"')
    yield "without sha256", json.dumps({name: value for name, value in body.items() if name != "sha256"})
    yield "not sealed", json.dumps(body | {"base": 0.5})
    yield "cut", made_explanation().to_json()[:-9]
    yield "a list", "[]"
    yield "nothing", ""
    yield "deep", "[" * 100_000
    yield (
        "a huge number",
        sealed_again(body | {"rows": body["rows"] | {"looked_at": 10**400}}).replace(
            '"prediction": 0.97', f'"prediction": {10**400}'
        ),
    )


MUTANTS = list(mutants())


@pytest.mark.parametrize("text", [text for _, text in MUTANTS], ids=[name for name, _ in MUTANTS])
def test_mutants_are_refused_by_name(text):
    with pytest.raises(FormatError) as caught:
        Explanation.from_json(text)
    assert "\n" not in str(caught.value)


def test_changed_texts_are_called_changed():
    with pytest.raises(TamperedError, match="does not match"):
        Explanation.from_json(made_explanation().to_json().replace("0.97", "0.98"))
    with pytest.raises(TamperedError, match="contradict each other"):
        Explanation.from_json(changed(base=0.5))
    with pytest.raises(FormatError, match=r"anchorline 0\.1 \(schema 1\)"):
        Explanation.from_json('{"schema_version": 1}')
    with pytest.raises(FormatError, match="lacks the key 'base'"):
        Explanation.from_json(dict(MUTANTS)["without base"])
    with pytest.raises(FormatError, match="of type bytes"):
        Explanation.from_json(b"{}")
