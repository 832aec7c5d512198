"""Canonical JSON against the vectors that RFC 8785 publishes; the seal, and seals of before it."""

import hashlib
import json
import struct

import pytest

import anchorline as al
from anchorline.errors import TamperedError
from anchorline.result.canonical import canonical_json

# RFC 8785, appendix B: the bits of a double and its text.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


@pytest.mark.parametrize(("bits", "text"), NUMBERS.items())
def test_numbers_of_the_standard(bits, text):
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical_json([number]) == f"[{text}]"


def test_the_example_of_the_standard():
    """Section 3.2.2: literals, numbers and a string with escapes."""
    body = json.loads(
        r"""{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
             "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}"""
    )
    expected = (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        r'"string":"€$\u000f\nA' + r"""'B\"\\\\\"/"}"""
    )
    assert canonical_json(body) == expected


def test_keys_are_in_the_order_of_the_standard():
    """Section 3.2.3: by UTF-16 code units, so that an emoji comes before a Hebrew ligature."""
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    expected = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]
    nested = json.loads(canonical_json({"outer": dict.fromkeys(keys, 1)}))
    assert list(nested["outer"]) == expected


def test_strings_that_look_like_numbers_stay():
    assert canonical_json({'a,1.0,"\\': "[-0.0,1e-07]"}) == r'{"a,1.0,\"\\":"[-0.0,1e-07]"}'


def test_long_integers_keep_their_digits():
    assert canonical_json([2**60 + 1, 1.0, -0.0, 1e16]) == "[1152921504606846977,1,0,10000000000000000]"


def model(z):
    return 0.5 * z[:, 0] + 1e-7 * z[:, 1]


def scores(rows):
    return 3.0 + 0.5 * rows[:, 0] - 0.25 * rows[:, 1]


def explanation():
    return al.explain(model, [1, -1, 1], k=3, names=["größe", "b", "\U0001f600"])


def test_the_seal_can_be_checked_by_the_standard_alone():
    """Remove the seal, canonicalize the rest by RFC 8785, and hash its UTF-8."""
    body = json.loads(explanation().to_json())
    seal = body.pop("sha256")
    assert seal == hashlib.sha256(canonical_json(body).encode()).hexdigest()


def test_seals_made_before_the_standard_was_adopted_still_hold():
    body = json.loads(explanation().to_json())
    del body["sha256"]
    before = json.dumps(body, sort_keys=True, separators=(",", ":"))
    body["sha256"] = hashlib.sha256(before.encode()).hexdigest()
    text = json.dumps(body)
    assert al.Explanation.from_json(text) == explanation()
    assert al.verify(text, model).holds
    with pytest.raises(TamperedError):
        al.Explanation.from_json(text.replace('"k": 3', '"k": 4'))


@pytest.mark.parametrize("options", [{}, {"box": 1}, {"box": None}])
def test_a_text_rewritten_by_another_language_still_verifies(options):
    """Other languages write the number 1.0 as 1, also in the parameters that the checksum is tied to."""
    explainer = al.Explainer(scores, al.Hypercube(), output_range=(2, 4), threshold=3)
    text = explainer.explain([1, -1, 1], k=3, **options).to_json()
    rewritten = canonical_json(json.loads(text))
    assert rewritten != text
    assert al.verify(rewritten, scores).holds
    assert not al.verify(rewritten, lambda rows: scores(rows) + 0.01).holds
