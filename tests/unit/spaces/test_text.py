"""Texts: literals, neighbors, keys, refusals, models of texts, and everything that holds for tables."""

import itertools
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import anchorline as al
from anchorline.errors import InstanceError, ParameterError, RowError
from anchorline.spaces.text import MAX_LITERALS

GOOD = ["great food and friendly people", "lovely room great view", "friendly and quick", "we loved the food"]
BAD = ["cold food and rude people", "dirty room no view", "rude and slow", "we waited for the cold food"]
REVIEW = "Great food and friendly people, but the room was dirty: rude and slow!"


@pytest.fixture(scope="module")
def model():
    return make_pipeline(CountVectorizer(), LogisticRegression(C=10.0)).fit(GOOD + BAD, ["good"] * 4 + ["bad"] * 4)


def flips_of(n, *chosen):
    flips = np.zeros((1, n), dtype=bool)
    flips[0, list(chosen)] = True
    return flips


ANY_TEXT = st.text(alphabet="abA é\u0301'.,!? \n\tאبक我😀\u200d12_\x00<>", min_size=1, max_size=30)


@given(ANY_TEXT, st.sampled_from(["all", "each"]), st.sampled_from(["delete", "[M]", "", str.upper]))
def test_requirements_for_a_space(text, occurrences, removed):
    space = al.Text(removed=removed, occurrences=occurrences)
    try:
        n = space.at(text)
    except InstanceError:
        return
    d = len(n.literals)
    assert n.realize(np.zeros((1, d), dtype=bool)) == n.original == [text]
    again = space.at(n.instance)
    assert (again.key, again.literals, again.instance) == (n.key, n.literals, n.instance)
    flips = np.random.default_rng(0).random((6, d)) < 0.4
    assert n.realize(flips) == [row for i in range(6) for row in n.realize(flips[i : i + 1])]
    assert n.realize(np.asfortranarray(flips)) == n.realize(flips)


@given(ANY_TEXT)
def test_a_deleted_word_is_gone_and_the_others_stay(text):
    """The words of a neighbor, cut anew, are the words of the text without those that were flipped."""
    try:
        n = al.Text(occurrences="each").at(text)
    except InstanceError:
        return
    units, d = n.pieces[1::2], len(n.literals)
    for j in range(min(d, 4)):
        (left,) = n.realize(flips_of(d, j))
        kept = [unit for i, unit in enumerate(units) if i != j]
        # What was between the words stays, so that only characters of the word and spaces can be missing.
        assert left.replace(" ", "").replace("\t", "").replace("\n", "") == "".join(
            "".join(piece.split(" ")).replace("\t", "").replace("\n", "")
            for i, piece in enumerate(n.pieces)
            if i != 2 * j + 1
        )
        try:
            found = list(al.Text(occurrences="each").at(left).pieces[1::2])
        except InstanceError:
            found = []
        if all(piece[-1:].isspace() or piece[:1].isspace() for piece in n.pieces[2:-1:2]):
            assert found == kept


def test_deleting_keeps_one_space_and_joins_nothing():
    n = al.Text(occurrences="each").at("x-foo bar, a😀b 😀 end")
    texts = [n.realize(flips_of(len(n.literals), j))[0] for j in range(len(n.literals))]
    assert texts[1] == "x- bar, a😀b 😀 end"  # not "x-bar"
    assert texts[4] == "x-foo bar, a b 😀 end"  # not "ab"
    assert texts[6] == "x-foo bar, a😀b end"
    assert al.Text().at("one two three").realize(flips_of(3, 0, 1)) == ["three"]


def test_all_occurrences_share_a_fact_and_each_is_one_of_its_own():
    text = "cafe\u0301 and café and Café"
    assert [literal.name for literal in al.Text().at(text).literals] == ["cafe\u0301", "and", "Café"]
    each = al.Text(occurrences="each").at(text).literals
    assert [literal.text for literal in each][2] == 'word 3 ("café") is there'
    assert len({literal.name for literal in each}) == 5
    long = al.Text(unit="sentence").at("A" * 30 + " e\u0301" * 40 + ". Short one. Short one.")
    assert [literal.name for literal in long.literals] == ["sentence 1", "sentence 2"]
    assert len(long.literals[0].text) < 70


def test_masks_and_functions_replace():
    n = al.Text(removed="[MASK]").at("to be or not to be")
    assert n.realize(flips_of(4, 0, 3)) == ["[MASK] be or [MASK] [MASK] be"]
    n = al.Text(removed=lambda unit: "*" * len(unit)).at("to be")
    assert n.realize(flips_of(2, 1)) == ["to **"]
    with pytest.raises(ParameterError, match="must return a text"):
        al.Text(removed=len).at("to be").realize(flips_of(2, 1))


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
        (" ".join(f"w{i}" for i in range(MAX_LITERALS + 1)), "at most 4,000"),
    ],
)
def test_what_is_not_a_text_is_refused(text, needed):
    with pytest.raises(InstanceError, match=needed):
        al.Text().at(text)


@pytest.mark.parametrize("options", [{"unit": "line"}, {"removed": 3}, {"occurrences": "some"}, {"unit": None}])
def test_wrong_parameters_are_refused(options):
    with pytest.raises(ParameterError, match="must be"):
        al.Text(**options)


def test_parameters_are_part_of_the_fingerprint():
    options = [{}, {"unit": "sentence"}, {"unit": list}, {"removed": "[M]"}, {"removed": str.upper}]
    prints = {al.Text(**one).fingerprint for one in [*options, {"occurrences": "each"}]}
    assert len(prints) == 6
    assert al.Text().fingerprint == al.Text(unit="word").fingerprint


def test_a_pipeline_is_explained_and_verified_from_its_json_alone(model):
    e = al.Explainer(model, al.Text()).explain(REVIEW, k=4)
    assert e.output == "bad"
    assert "".join(e.instance) == REVIEW
    assert al.verify(e.to_json(), model, al.Text()).holds
    assert "other" in str(al.verify(e.to_json(), model, al.Text(removed="[MASK]")))
    assert al.Explainer(model, al.Text()).explain(REVIEW, k=4).to_json() == e.to_json()
    assert (
        al.Explainer(model.predict_proba, al.Text(), classes=["bad", "good"]).explain(REVIEW, k=4).terms == e.terms
    )


def test_everything_else_works_too(model):
    explainer = al.Explainer(model, al.Text())
    rule = explainer.shortest(REVIEW, max_relevance_error=0.01)
    assert rule.certificate.relevance_error.value <= 0.01
    assert len(explainer.frontier(REVIEW, ks=[1, 3]).points) == 2
    assert explainer.explain(REVIEW, k=3, objective="relevance", n_samples=2000).terms
    assert explainer.explain(REVIEW, k=3, alternatives=2).alternatives is not None


def test_the_sum_is_the_best_of_all_supports():
    """Plain enumeration over the texts themselves: the exact objective is the least mean square."""
    text = "a b c d e"
    weights = {"a": 0.3, "b": -0.2, "c": 0.15, "d": 0.02, "e": 0.01}
    score = lambda texts: [np.tanh(sum(weights[word] for word in one.split())) for one in texts]  # noqa: E731
    e = al.Explainer(score, al.Text()).explain(text, k=3, flip_probability=0.5)
    flips = np.array(list(itertools.product([0, 1], repeat=5)), dtype=bool)
    texts = [" ".join(w for w, gone in zip("abcde", row, strict=True) if not gone) for row in flips]
    drops = (score([text])[0] - np.array(score(texts))) / 2
    best = min(
        np.mean((drops - flips[:, s] @ np.linalg.lstsq(flips[:, s].astype(float), drops, rcond=None)[0]) ** 2)
        for s in map(list, itertools.combinations(range(5), 2))
    )
    assert e.certificate.objective == pytest.approx(best, abs=1e-9) or e.certificate.objective < best


def test_many_texts(model):
    explainer, texts = al.Explainer(model, al.Text()), [REVIEW, GOOD[0], BAD[0]]
    one_by_one = [explainer.explain(text, k=3).to_json() for text in texts]
    for given_texts in (texts, tuple(texts), np.array(texts), np.array(texts, dtype=object), pd.Series(texts)):
        assert [e.to_json() for e in explainer.explain_many(given_texts, k=3)] == one_by_one
    shared = explainer.explain_many(texts, k=3, share_calls=True)
    assert [e.to_json() for e in shared] == one_by_one
    parallel = explainer.explain_many(texts, k=3, n_jobs=2)
    assert [e.to_json() for e in parallel] == one_by_one
    with pytest.raises(RowError, match="no words"):
        explainer.explain_many([REVIEW, ""], k=3)
    for wrong in ("one text", pd.DataFrame({"text": texts}), np.array([texts])):
        with pytest.raises(ParameterError, match="list of texts"):
            explainer.explain_many(wrong)


def test_labels_and_numbers():
    label = al.Explainer(lambda texts: np.array(["yes" if "b" in t else "no" for t in texts]), al.Text())
    e = label.explain("a b c", k=2)
    assert e.label == "yes"
    assert [term.literal.name for term in e.terms] == ["b"]
    number = al.Explainer(lambda texts: np.array([len(t) for t in texts]) * 1.0, al.Text(), output_range=(0, 50))
    assert number.explain("a bbbbbbbb c", k=2).terms[0].literal.name == "bbbbbbbb"


def test_sentences_first_and_then_their_words(model):
    text = (
        " ".join(f"Sentence number {i} says nothing." for i in range(60))
        + " The rude man was slow. "
        + "End. " * 9
    )
    first = al.Explainer(model, al.Text(unit="sentence")).explain(text, k=2, n_samples=1000)
    assert [term.literal.name for term in first.terms] == ["sentence 61"]
    space = al.Text().within(first)
    second = al.Explainer(model, space).explain(text, k=3)
    assert {term.literal.name for term in second.terms} <= {"The", "rude", "man", "was", "slow"}
    assert "".join(second.instance) == text
    assert al.verify(second, model, space).holds
    with pytest.raises(InstanceError, match="another one"):
        space.at("another text")
    with pytest.raises(ParameterError, match="not one of a text"):
        al.Text().within(al.explain(lambda z: z[:, 0] / 2, [1, 1], k=2))


def test_long_texts_need_little_memory():
    """A megabyte of text is explained by its paragraphs in batches, never 5,000 copies at once."""
    text = "\n".join(f"paragraph {i} " + "lorem ipsum " * 800 for i in range(105))
    assert len(text) > 1_000_000
    n = al.Text(unit=str.splitlines).at(text)
    assert n.rows_per_call == 33
    sizes = []

    def score(texts):
        sizes.append(len(texts))
        return np.array(["paragraph 7 " in one for one in texts]) * 0.9

    tracemalloc.start()
    e = al.Explainer(score, al.Text(unit=str.splitlines)).explain(text, k=2, n_samples=200, n_certify=100)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(sizes) == 33
    assert [term.index for term in e.terms] == [7]
    assert peak < 200e6


def test_calls_of_any_size_give_the_same_bytes(model, monkeypatch):
    explainer = al.Explainer(model, al.Text())
    whole = explainer.explain(REVIEW, k=3, n_samples=900, sampling="draw").to_json()
    monkeypatch.setattr("anchorline.spaces.text._CALL_CHARACTERS", 100 * len(REVIEW))
    assert explainer.explain(REVIEW, k=3, n_samples=900, sampling="draw").to_json() == whole
