"""JSON of an explanation: it comes back bit for bit, or it is refused."""

import dataclasses
import hashlib
import json
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import anchorline as al
from anchorline.errors import FormatError
from anchorline.result import json_format as jsonform
from anchorline.result.canonical import canonical_json
from anchorline.settings import Settings
from helpers.kinds_of_explanations import changed, explained, kinds, model, same_bits

LATER = {"neighbors_mean"}  # fields that the first release did not write
DERANDOMIZED = settings(max_examples=150, deadline=None, derandomize=True, database=None)


# --- the round trip ----------------------------------------------------------------------------------

KINDS = ["enumerated", "uncertified", "drawn", "limit", "iht", "label", "range", "clipped", "degenerate", "no box"]


@pytest.mark.parametrize("kind", KINDS)
def test_round_trip(kind):
    e = kinds()[kind]
    text = e.to_json()
    again = al.Explanation.from_json(text)
    assert again.to_json() == text
    assert again.contributions.tobytes() == e.contributions.tobytes()
    for name in ("prediction", "intercept", "half_range"):
        assert same_bits(getattr(again, name), getattr(e, name))
    for name in ("literals", "output", "instance", "certificate", "terms"):
        assert getattr(again, name) == getattr(e, name)
    assert dict(again.parameters) == dict(e.parameters)
    assert str(again) == str(e)


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(contributions=st.lists(FLOATS, min_size=1, max_size=6), intercept=FLOATS)
@DERANDOMIZED
def test_every_float_comes_back(contributions, intercept):
    with np.errstate(over="ignore", invalid="ignore"):
        total = intercept + np.array(contributions).sum()
    assume(np.isfinite(total))
    e = changed(explained(), contributions, intercept)
    again = al.Explanation.from_json(e.to_json())
    assert again.contributions.tobytes() == e.contributions.tobytes()
    assert same_bits(again.intercept, intercept)
    assert same_bits(again.prediction, e.prediction)
    assert again.to_json() == e.to_json()


@pytest.mark.parametrize(
    "value", [5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 0.1 + 0.2, 1e22, 1e23]
)
def test_floats_at_the_edges_come_back(value):
    e = changed(explained(), [value, -0.0], half_range=abs(value))
    again = al.Explanation.from_json(e.to_json())
    assert again.contributions.tobytes() == e.contributions.tobytes()  # the sign of -0.0 too
    assert same_bits(again.prediction, value)
    assert same_bits(again.half_range, abs(value))


HOSTILE = [
    "",
    '"',
    "\\",
    '\\"},{"',
    "\x00\x01\x1f\x7f",
    "\u2028\u2029",
    "</script><!--",
    "Größe ≥ 3",
    "年収",
    "🙂👩‍👩‍👧",
    "\u202eevil",
    "e\u0301 is not \xe9",
    "NaN",
    "null",
    "__proto__",
    "a" * 10_000,
]


@pytest.mark.parametrize("text", HOSTILE)
def test_every_text_comes_back(text):
    e = changed(explained(), [0.5], literals=(al.Literal(text, text + "!"),), output=text)
    again = al.Explanation.from_json(e.to_json())
    assert again.literals == (al.Literal(text, text + "!"),)
    assert again.output == text
    json.loads(e.to_json().encode())  # it is UTF-8, and JSON for others too


@given(text=st.text())
@DERANDOMIZED
def test_any_text_comes_back(text):
    e = changed(explained(), [0.5], literals=(al.Literal("a", text),))
    assert al.Explanation.from_json(e.to_json()).literals[0].text == text


def test_a_lone_surrogate_comes_back_or_is_refused():
    try:
        e = al.explain(model, [1, -1, 1], names=["\udce9t\udce9", "b", "c"])
    except al.AnchorlineError:
        return
    assert al.Explanation.from_json(e.to_json()).literals == e.literals


# --- the canonical form ------------------------------------------------------------------------------


def canonical(body):
    """Written again on purpose; the bodies below are ASCII."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)


def signed(body):
    return canonical(body | {"sha256": hashlib.sha256(canonical_json(body).encode()).hexdigest()})


def body_of(e):
    body = json.loads(e.to_json())
    del body["sha256"]
    return body


@pytest.mark.parametrize("kind", KINDS)
def test_one_sha256_over_the_canonical_form(kind):
    e = kinds()[kind]
    assert e.to_json() == signed(body_of(e))
    assert json.loads(e.to_json())["schema_version"] == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_json_is_one_of_the_schema(kind):
    schema = jsonform.schema()
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    validator = validator(schema)
    validator.validate(json.loads(kinds()[kind].to_json()))
    body = json.loads(kinds()[kind].to_json())
    for name in set(body) - LATER:  # a schema that allows anything proves nothing
        assert not validator.is_valid({key: value for key, value in body.items() if key != name}), f"no {name}"
    for name, wrong in [
        ("prediction", "0.5"),
        ("contributions", ["a"]),
        ("schema_version", 2),
        ("certificate", []),
    ]:
        assert not validator.is_valid(body | {name: wrong}), name


# --- changed, cut, or something else -----------------------------------------------------------------


def refused_or_the_same(text, original):
    """Nothing but a FormatError, unless the text still means what it meant (1.0 for 1e0)."""
    try:
        again = al.Explanation.from_json(text)
    except FormatError:
        return True
    assert again.to_json() == original, text
    return False


def test_any_changed_character_is_noticed():
    text = explained(n_certify=0).to_json()
    n_refused, n_tried = 0, 0
    for i, old in enumerate(text):
        for new in {"0", "7", "e", '"', "}", " ", chr(ord(old) ^ 1)} - {old}:
            n_refused += refused_or_the_same(text[:i] + new + text[i + 1 :], text)
            n_tried += 1
    assert n_refused > 0.99 * n_tried


def test_any_lost_or_added_character_is_noticed():
    text = explained(n_certify=0).to_json()
    for i in range(len(text)):
        refused_or_the_same(text[:i] + text[i + 1 :], text)
        refused_or_the_same(text[:i] + "1" + text[i:], text)
        assert refused_or_the_same(text[:i], text)  # cut


def leaves(value, path=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, (*path, key))
    elif isinstance(value, list):
        for i, inner in enumerate(value):
            yield from leaves(inner, (*path, i))
    else:
        yield path, value


def other_than(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, str):
        return value + "x"
    return 1 if value is None else value + 1 + abs(value)


@pytest.mark.parametrize("kind", ["enumerated", "drawn", "label"])
def test_any_changed_field_is_noticed(kind):
    original = json.loads(kinds()[kind].to_json())
    paths = list(leaves(original))
    assert len(paths) > 30
    for path, value in paths:
        body = json.loads(canonical(original))
        inner = body
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = other_than(value)
        with pytest.raises(FormatError):
            al.Explanation.from_json(canonical(body))


@pytest.mark.parametrize("name", sorted(set(json.loads(explained().to_json())) - LATER))
def test_any_lost_field_is_noticed(name):
    body = json.loads(explained().to_json())
    del body[name]
    with pytest.raises(FormatError):
        al.Explanation.from_json(canonical(body))
    if name not in ("sha256", "schema_version"):
        del body["sha256"]
        with pytest.raises(FormatError):  # signed again, still no explanation
            al.Explanation.from_json(signed(body))


def test_a_key_given_twice_is_noticed():
    text = explained().to_json()
    with pytest.raises(FormatError):
        al.Explanation.from_json('{"prediction":999,' + text[1:])


def lie(*path, value):
    """Change one field and sign again: the digest is right, the content must be checked all the same."""
    body = body_of(explained())
    inner = body
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return signed(body)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["schema_version"], 0),
        (["schema_version"], 2),
        (["schema_version"], "1"),
        (["schema_version"], None),
        (["prediction"], 0.5),
        (["prediction"], None),
        (["prediction"], []),
        (["intercept"], 1e-9),
        (["contributions"], [0.5, 0.25]),
        (["contributions"], [None, 0, 0]),
        (["contributions"], {}),
        (["contributions"], "abc"),
        (["literals"], [["a", "b"]]),
        (["literals"], [["a"], ["b"], ["c"]]),
        (["literals"], 5),
        (["half_range"], None),
        (["instance"], 5),
        (["certificate"], []),
        (["certificate"], {}),
        (["certificate", "status"], "BEST"),
        (["certificate", "status"], ["OPTIMAL"]),
        (["schema_version"], True),
        (["schema_version"], 1.0),
        (["prediction"], "0.75"),
        (["contributions"], [["0.5"], ["0"], ["0.25"]]),
        (["prediction"], 10**400),  # a raw OverflowError
        (["contributions"], [10**400, 0, 0]),  # a raw OverflowError
        (["output"], 5),
        (["half_range"], 0),
        (["half_range"], -1),
        (["literals"], [[1, 2], [3, 4], [5, 6]]),
        (["literals"], ["ab", "cd", "ef"]),
        (["instance"], "abc"),
        (["instance"], [1]),
        (["parameters"], [1]),
        (["certificate", "objective"], "small"),
        (["certificate", "objective"], -1.0),
        (["certificate", "lower_bound"], 5.0),  # above the objective
        (["certificate", "n_terms"], -5),
        (["certificate", "n_terms"], 1),  # there are more
        (["certificate", "exhaustive"], "no"),
        (["certificate", "anchoring_residual"], 7.0),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_signed_lie_is_noticed(path, value):
    with pytest.raises(FormatError):
        al.Explanation.from_json(lie(*path, value=value))


def test_signing_again_alone_changes_nothing():
    """So that the tests above fail for the lie, not for the signature."""
    body = body_of(explained())
    assert al.Explanation.from_json(signed(body)).to_json() == explained().to_json()


def test_another_schema_version_is_told():
    with pytest.raises(FormatError, match=r"schema_version is 2.*reads 1"):
        al.Explanation.from_json(lie("schema_version", value=2))


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_no_nan_and_no_infinity(number):
    text = explained().to_json().replace('"half_range":1.0', f'"half_range":{number}')
    assert number in text
    with pytest.raises(FormatError):
        al.Explanation.from_json(text)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_is_never_written(value):
    with pytest.raises(ValueError, match="JSON"):
        dataclasses.replace(explained(), half_range=value).to_json()


@pytest.mark.parametrize(
    "text", ["", " ", "null", "[]", "1", '"a"', "{}", "{", "explanation", "\ufeff{}", "\x00", "{]"]
)
def test_other_texts(text):
    with pytest.raises(FormatError):
        al.Explanation.from_json(text)


@pytest.mark.parametrize("thing", [None, b"{}", 5, {}, bytearray(b"{}")])
def test_other_things(thing):
    with pytest.raises(FormatError, match=f"is of type {type(thing).__name__}.*to_json"):
        al.Explanation.from_json(thing)


def test_texts_that_are_too_long_are_not_read():
    text = " " * (64 * 2**20 + 1)
    with pytest.raises(FormatError, match="67108865 characters; the limit is 67108864"):
        al.Explanation.from_json(text)


def nested(depth):
    return explained().to_json()[:-1] + ',"z":' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize("depth", [1, 100, 5_000, 200_000])
def test_deep_texts_are_refused(depth):
    with pytest.raises(FormatError):
        al.Explanation.from_json(nested(depth))
    with pytest.raises(FormatError):
        al.Explanation.from_json('{"a":' * depth)


def test_texts_of_every_depth_are_refused():
    for depth in range(600, 1100):
        with pytest.raises(FormatError):
            al.Explanation.from_json(nested(depth))


def test_an_explanation_from_before_the_range_was_recorded_loads_and_verifies():
    """Reach and the origin of the range are derived, so that old explanations get the verdict of today."""
    explainer = al.Explainer(lambda z: z[:, 0] / 2 + z[:, 1] / 8, al.Hypercube(["paid", "late"]))
    new = explainer.explain([1, -1], k=2)
    recorded = {name: value for name, value in new.parameters.items() if name != "learned_range"}
    old = explainer.explain_with([1, -1], Settings.from_dict(recorded), recorded)
    read = al.Explanation.from_json(old.to_json())
    assert "learned_range" not in read.parameters
    assert not {"reach", "learned_range"} & json.loads(old.to_json())["certificate"].keys()
    assert read.certificate == new.certificate.__class__.from_dict(
        json.loads(old.to_json())["certificate"], recorded, n_literals=2
    )
    assert read.certificate.reach == pytest.approx(1 - (1 - recorded["flip_probability"]) ** 2)
    assert read.verdict is al.Verdict.TRUSTWORTHY
    assert read.verify(explainer.model).outcome.value == "holds"
