"""Words and sentences in many scripts; marks and emoji are never split, and hostile texts take linear time."""
# ruff: noqa: RUF001

import itertools
import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchorline.errors import InstanceError, ParameterError
from anchorline.spaces.text import cut

FAMILY, FLAG, THUMB, HEART = "👨\u200d👩\u200d👧", "🇩🇪", "👍🏽", "❤\ufe0f"


def units(text, unit="word"):
    return [text[start:stop] for start, stop in cut(text, unit)]


# What Unicode's default word boundaries give, checked against another implementation of UAX #29 (uniseg).
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't stop. It’s 3.50, or 1,000!", ["Don't", "stop", "It’s", "3.50", "or", "1,000"]),
        ("e\u0301te\u0301 été", ["e\u0301te\u0301", "été"]),
        ("snake_case __init__ ___", ["snake_case", "__init__"]),
        ("well-known a/b c:d", ["well", "known", "a", "b", "c", "d"]),
        ('שלום עולם, צה"ל', ["שלום", "עולם", 'צה"ל']),
        ("مَرْحَبًا بالعالم ١٢٣", ["مَرْحَبًا", "بالعالم", "١٢٣"]),
        ("می\u200cخواهم", ["می\u200cخواهم"]),
        ("नमस्ते दुनिया।", ["नमस्ते", "दुनिया"]),
        ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
        ("한국어 문장", ["한국어", "문장"]),
        ("我爱北京。", ["我", "爱", "北", "京"]),
        ("カタカナ ひら", ["カタカナ", "ひ", "ら"]),
        ("กี่", ["กี่"]),
        (f"a{FAMILY}b {FLAG}{FLAG} {THUMB}{HEART}", ["a", FAMILY, "b", FLAG, FLAG, THUMB, HEART]),
        ("1\ufe0f\u20e3 ok", ["1\ufe0f\u20e3", "ok"]),
        ("?!… -- \u0301", []),
        ("\x00nul\x00", ["nul"]),
    ],
)
def test_words_in_many_scripts(text, expected):
    assert units(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four…", ["One.", "Two!", "Three?", "Four…"]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("Version 3.5 is out, e.g. this one.", ["Version 3.5 is out, e.g. this one."]),
        ("A line\nanother\n\n  third  ", ["A line", "another", "third"]),
        ("我来了。你呢？好！", ["我来了。", "你呢？", "好！"]),
        ("هل أنت هنا؟ نعم۔", ["هل أنت هنا؟", "نعم۔"]),
        ("... !!! ", []),
    ],
)
def test_sentences(text, expected):
    assert units(text, "sentence") == expected


SCRIPTS = "abcÀ ñ'.,;:\"- 12_\u0301אבְ قلبَ कखा् ग我ひカー한ก่😀👍🏽❤\ufe0f\u200d\u200c🇩🇪\x00\n\u202e<&>"


@given(st.text(alphabet=SCRIPTS, max_size=40))
def test_words_never_split_marks_from_their_characters(text):
    spans = cut(text, "word")
    assert spans == sorted(spans)
    assert all(start < stop for start, stop in spans)
    assert all(stop <= start for (_, stop), (start, _) in itertools.pairwise(spans))
    for start, stop in spans:
        assert unicodedata.category(text[start])[0] not in "MZ"
        assert not text[stop : stop + 1] or unicodedata.category(text[stop])[0] != "M"
    outside = [
        text[a:b] for a, b in zip([0, *(b for _, b in spans)], [*(a for a, _ in spans), len(text)], strict=True)
    ]
    assert not re.search(r"[^\W_]", "".join(outside))


def test_hostile_texts_take_linear_time():
    start = time.process_time()
    for piece in ("a", ".", "_", "_\u0301", "a'", " ", ". ", "\u200d😀", "。", "\u0301", '"'):
        text = piece * (1_000_000 // len(piece))
        for unit in ("word", "sentence"):
            cut(text, unit)
    assert time.process_time() - start < 30  # quadratic time would take hours


def test_a_function_returns_pieces_or_spans():
    assert units("ab cd", str.split) == ["ab", "cd"]
    assert units("ab cd", lambda text: [(0, 2), (2, 3), (3, 5)]) == ["ab", "cd"]
    assert units("to be to", lambda text: ["to", "to"]) == ["to", "to"]


@pytest.mark.parametrize("pieces", [["b", "a"], [(0, 9)], [(2, 1)], ["zz"]])
def test_pieces_that_are_not_in_the_text_are_refused(pieces):
    with pytest.raises(InstanceError, match="pieces of the text in order"):
        cut("a b", lambda text: pieces)


@pytest.mark.parametrize("unit", ["letter", 3, None])
def test_other_units_are_refused(unit):
    with pytest.raises(ParameterError, match="must be 'word', 'sentence'"):
        cut("a", unit)
    with pytest.raises(ParameterError, match="pairs"):
        cut("a", lambda text: [7])
