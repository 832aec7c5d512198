"""Texts: attributes, neighbors, keys, refusals, and texts cut in two steps."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anchorline.errors import InstanceError, ParameterError
from anchorline.facts import Fact
from anchorline.spaces.text import MAX_UNITS, Text, places_of


def flips_of(n, *chosen):
    flips = np.zeros((1, n), dtype=bool)
    flips[0, list(chosen)] = True
    return flips


ANY_TEXT = st.text(alphabet="abA é\u0301'.,!? \n\tאبक我😀\u200d12_\x00<>", min_size=1, max_size=30)


@given(ANY_TEXT, st.sampled_from(["all", "each"]), st.sampled_from(["delete", "[M]", "", str.upper]))
def test_requirements_for_a_space(text, occurrences, removed):
    space = Text(removed=removed, occurrences=occurrences)
    try:
        n = space.at(text)
    except InstanceError:
        return
    d = len(n.names)
    assert n.realize_flips(np.zeros((1, d), dtype=bool)) == n.original == [text]
    again = space.at(n.instance)
    assert (again.key, again.names, again.instance) == (n.key, n.names, n.instance)
    places = [places_of(n.instance, n.fact(j)) for j in range(d)]
    assert sorted(place for one in places for place in one) == list(range(len(n.instance) // 2))
    flips = np.random.default_rng(0).random((6, d)) < 0.4
    assert n.realize_flips(flips) == [row for i in range(6) for row in n.realize_flips(flips[i : i + 1])]
    assert n.realize_flips(np.asfortranarray(flips)) == n.realize_flips(flips)


@given(ANY_TEXT)
def test_a_deleted_word_is_gone_and_the_others_stay(text):
    """The words of a neighbor, cut anew, are the words of the text without those that were flipped."""
    try:
        n = Text(occurrences="each").at(text)
    except InstanceError:
        return
    units, d = n.pieces[1::2], len(n.names)
    for j in range(min(d, 4)):
        (left,) = n.realize_flips(flips_of(d, j))
        kept = [unit for i, unit in enumerate(units) if i != j]
        # What was between the words stays, so that only characters of the word and spaces can be missing.
        assert left.replace(" ", "").replace("\t", "").replace("\n", "") == "".join(
            "".join(piece.split(" ")).replace("\t", "").replace("\n", "")
            for i, piece in enumerate(n.pieces)
            if i != 2 * j + 1
        )
        try:
            found = list(Text(occurrences="each").at(left).pieces[1::2])
        except InstanceError:
            found = []
        if all(piece[-1:].isspace() or piece[:1].isspace() for piece in n.pieces[2:-1:2]):
            assert found == kept


def test_deleting_keeps_one_space_and_joins_nothing():
    n = Text(occurrences="each").at("x-foo bar, a😀b 😀 end")
    texts = [n.realize_flips(flips_of(len(n.names), j))[0] for j in range(len(n.names))]
    assert texts[1] == "x- bar, a😀b 😀 end"  # not "x-bar"
    assert texts[4] == "x-foo bar, a b 😀 end"  # not "ab"
    assert texts[6] == "x-foo bar, a😀b end"
    assert Text().at("one two three").realize_flips(flips_of(3, 0, 1)) == ["three"]


def test_all_occurrences_share_a_fact_and_each_is_one_of_its_own():
    text = "cafe\u0301 and café and Café"
    together, each = Text().at(text), Text(occurrences="each").at(text)
    assert together.names == ("cafe\u0301", "and", "Café")
    assert together.fact(0) == Fact("cafe\u0301", "cafe\u0301", "present", value="cafe\u0301")
    assert places_of(together.instance, together.fact(0)) == [0, 2]
    assert each.fact(2) == Fact("word 3", "word 3", "present", value="café")
    assert places_of(each.instance, each.fact(2)) == [2]
    assert len(set(each.names)) == 5


def test_long_units_are_numbered_and_shortened():
    long = Text(unit="sentence").at("A" * 30 + " e\u0301" * 40 + ". Short one. Short one.")
    assert long.names == ("sentence 1", "sentence 2 and its repeats")
    assert places_of(long.instance, long.fact(1)) == [1, 2]
    assert len(long.fact(0).value) < 45


def test_masks_and_functions_replace():
    n = Text(removed="[MASK]").at("to be or not to be")
    assert n.realize_flips(flips_of(4, 0, 3)) == ["[MASK] be or [MASK] [MASK] be"]
    n = Text(removed=lambda unit: "*" * len(unit)).at("to be")
    assert n.realize_flips(flips_of(2, 1)) == ["to **"]
    with pytest.raises(ParameterError, match="must return a text"):
        Text(removed=len).at("to be").realize_flips(flips_of(2, 1))


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        ("", "no words"),
        ("?!... --", "no words"),
        ("\x00 \n", "no words"),
        (None, "must be a str"),
        (3, "must be a str"),
        (b"bytes", "must be a str"),
        (["one text", "another text"], "one text is explained at a time"),
        (["a", 1], "must be a str"),
        (" ".join(f"w{i}" for i in range(MAX_UNITS + 1)), "at most 4,000"),
    ],
)
def test_what_is_not_a_text_is_refused(text, needed):
    with pytest.raises(InstanceError, match=needed):
        Text().at(text)


@pytest.mark.parametrize("options", [{"unit": "line"}, {"removed": 3}, {"occurrences": "some"}, {"unit": None}])
def test_wrong_parameters_are_refused(options):
    with pytest.raises(ParameterError, match="must be"):
        Text(**options)


def test_parameters_are_part_of_the_fingerprint():
    options = [{}, {"unit": "sentence"}, {"unit": list}, {"removed": "[M]"}, {"removed": str.upper}]
    prints = {Text(**one).fingerprint for one in [*options, {"occurrences": "each"}]}
    assert len(prints) == 6
    assert Text().fingerprint == Text(unit="word").fingerprint


def test_what_readers_and_the_search_need():
    assert (Text().noun, Text(unit="sentence").noun, Text(unit=list).noun) == ("words", "sentences", "units")
    assert Text.default_k == 8


def test_lists_of_texts():
    texts = ["one text", "another"]
    for given_texts in (texts, tuple(texts), np.array(texts), np.array(texts, dtype=object), pd.Series(texts)):
        assert Text().instances(given_texts) == texts
    for wrong in ("one text", pd.DataFrame({"text": texts}), np.array([texts])):
        with pytest.raises(ParameterError, match="list of texts"):
            Text().instances(wrong)


def explained(space, text, *candidates):
    """Return what an explanation of a text by some facts records, as far as `Text.within` reads it."""
    there = space.at(text)
    facts = tuple(there.fact(j) for j in candidates)
    return SimpleNamespace(instance=there.instance, facts=facts, space={"fingerprint": space.fingerprint})


def test_sentences_first_and_then_their_words():
    text = "We came late. The food was great. It rained. It rained."
    space = Text().within(explained(Text(unit="sentence"), text, 1))
    there = space.at(text)
    assert there.names == ("The", "food", "was", "great")
    assert there.text == text
    assert there.realize_flips(flips_of(4, 3)) == ["We came late. The food was . It rained. It rained."]
    assert space.fingerprint != Text().fingerprint
    both = Text().within(explained(Text(unit="sentence"), text, 2, 0)).at(text)
    assert both.names == ("We", "came", "late", "It", "rained")
    with pytest.raises(InstanceError, match="is not the one"):
        space.at("another text")
    with pytest.raises(ParameterError, match="not one of a text"):
        Text().within(SimpleNamespace(instance=[1], facts=(), space={"fingerprint": "table:0"}))


def test_long_texts_are_given_to_the_model_in_small_batches():
    text = "\n".join(f"paragraph {i} " + "lorem ipsum " * 800 for i in range(105))
    assert Text(unit=str.splitlines).at(text).rows_per_call == 33
    assert Text().at("short").rows_per_call == 4096
