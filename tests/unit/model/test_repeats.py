"""Models whose answers vary, or are labels or texts only: averages, shares of labels, and similarities."""

import numpy as np
import pytest

from anchorline.errors import ParameterError, PredictorOutputError
from anchorline.explainer import Explainer
from anchorline.model import Repeated, SimilarTo, word_overlap
from anchorline.spaces.text import Text
from anchorline.verify import verify


def test_numbers_and_scores_are_averaged():
    calls = []

    def model(rows):
        calls.append(len(rows))
        return rows[:, 0] + len(calls)

    rows = np.array([[1.0], [5.0]])
    assert Repeated(model, 3)(rows).tolist() == [3.0, 7.0]
    assert calls == [2, 2, 2]
    assert Repeated(lambda rows: np.eye(2)[: len(rows)], 2)(rows).tolist() == [[1, 0], [0, 1]]


def test_the_average_is_less_noisy():
    rng = np.random.default_rng(0)

    def noisy(rows):
        return rows[:, 0] + rng.normal(size=len(rows))

    rows = np.zeros((4000, 1))
    assert np.std(Repeated(noisy, 16)(rows)) == pytest.approx(0.25, rel=0.1)


def test_labels_become_shares_and_are_explained():
    rng = np.random.default_rng(0)

    def vote(texts):
        return ["good" if rng.random() < 0.2 + 0.6 * ("great" in text) else "bad" for text in texts]

    model = Repeated(vote, 100, classes=["bad", "good"])
    explainer = Explainer(model, Text(), output="good")
    e = explainer.explain("A great place, but a bit far from the old station in town", k=2, queries=400)
    assert [fact.attribute for fact in e.facts] == ["great"]
    assert e.effects[0] == pytest.approx(0.6, abs=0.1)
    assert e.queries.total <= 400


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: Repeated(len, 0), r"Repeated\(model, 5\)"),
        (lambda: Repeated(len, True), "whole number"),
        (lambda: Repeated(3, 2), "function of rows"),
        (lambda: SimilarTo(len, None), "text of the explained answer"),
    ],
)
def test_wrong_arguments_are_named(make, match):
    with pytest.raises(ParameterError, match=match):
        make()


@pytest.mark.parametrize(
    ("model", "match"),
    [
        (Repeated(lambda rows: ["a"] * len(rows), 2), "classes="),
        (Repeated(lambda rows: ["c"] * len(rows), 2, classes=["a", "b"]), "not one of its classes"),
        (SimilarTo(lambda rows: [3] * len(rows), "x"), "one text per input"),
        (SimilarTo(lambda rows: ["a"] * len(rows), "a", lambda one, other: 2.0), "from 0 to 1"),
        (SimilarTo(lambda rows: ["a"] * len(rows), "a", lambda one, other: float("nan")), "from 0 to 1"),
    ],
)
def test_wrong_answers_are_named(model, match):
    with pytest.raises(PredictorOutputError, match=match):
        model(["one", "two"])


def test_answers_of_changing_shapes_are_named():
    shapes = iter([(2,), (2, 2)])
    with pytest.raises(PredictorOutputError, match="same shape"):
        Repeated(lambda rows: np.zeros(next(shapes)), 2)(["a", "b"])


def test_a_question_is_explained_by_its_answer():
    def ask(questions):
        return ["It is Paris" if "France" in text else "Which country?" for text in questions]

    question = "What is the capital of France today?"
    model = SimilarTo(ask, ask([question])[0])
    e = Explainer(model, Text(), output="similarity", output_range=(0, 1)).explain(question, k=2)
    assert e.prediction == 1.0
    assert [fact.attribute for fact in e.facts] == ["France"]
    assert verify(e.to_json(), model, Text()).holds


def test_words_in_common():
    assert word_overlap("a B c", "c b A") == 1.0
    assert word_overlap("a a", "a") == pytest.approx(2 / 3)
    assert word_overlap("", "...") == 1.0
    assert word_overlap("a", "") == 0.0
