"""Pipelines that answer with labels and scores; the tiny ones here have the form of Hugging Face pipelines."""

import types

import numpy as np
import pytest

from anchorline.errors import ParameterError, PredictorError, PredictorOutputError
from anchorline.explainer import Explainer
from anchorline.model import LabelScores
from anchorline.spaces.text import Text
from anchorline.verify import verify


class Pipeline:
    """Scores of two labels, best first; without top_k only the best, as in transformers."""

    def __init__(self):
        self.model = types.SimpleNamespace(config=types.SimpleNamespace(id2label={1: "POSITIVE", 0: "NEGATIVE"}))

    def __call__(self, texts, *, batch_size=None, **options):
        answers = []
        for text in texts:
            score = 0.9 if "great" in text else 0.2
            both = [{"label": "POSITIVE", "score": score}, {"label": "NEGATIVE", "score": 1 - score}]
            both.sort(key=lambda entry: -entry["score"])
            answers.append(both if "top_k" in options else both[0])
        return answers


def test_a_pipeline_of_transformers_is_wrapped_by_itself():
    kind = type("TextClassificationPipeline", (Pipeline,), {"__module__": "transformers.pipelines.text"})
    e = Explainer(kind(), Text()).explain("a great day", k=2)
    assert (e.output.name, e.prediction) == ("POSITIVE", pytest.approx(0.9))
    assert [fact.attribute for fact in e.facts] == ["great"]
    assert verify(e.to_json(), kind(), Text()).holds
    assert Explainer(kind(), Text(), output="NEGATIVE").explain("a great day", k=2).prediction < 0.5


def test_any_pipeline_of_this_form_is_wrapped_with_its_labels():
    simple = lambda texts: [[{"label": "b", "score": 0.25}, {"label": "a", "score": 0.75}] for _ in texts]  # noqa: E731
    assert LabelScores(simple, classes=["a", "b"])(["x", "y"]).tolist() == [[0.75, 0.25]] * 2
    assert LabelScores(Pipeline())(("great", "")).round(9).tolist() == [[0.1, 0.9], [0.8, 0.2]]
    with pytest.raises(ParameterError, match="labels of the pipeline are not known"):
        LabelScores(simple)


@pytest.mark.parametrize("answer", [{"label": "a", "score": 1.0}, [], [{"label": "a"}], 3, "a"])
def test_other_answers_are_refused(answer):
    with pytest.raises(PredictorOutputError, match="top_k=None"):
        LabelScores(lambda texts: [answer for _ in texts], classes=["a", "b"])(["x"])


def test_an_error_of_the_pipeline_is_reported_with_its_input():
    def broken(texts):
        raise RuntimeError("no memory")

    with pytest.raises(PredictorError, match="no memory"):
        Explainer(LabelScores(broken, classes=["a", "b"]), Text()).explain("x y")


def test_columns_follow_the_numbers_of_the_labels():
    assert LabelScores(Pipeline()).classes_ == ["NEGATIVE", "POSITIVE"]
    assert np.asarray(LabelScores(Pipeline())(["great"])).shape == (1, 2)


def test_a_function_around_a_pipeline_explains_scores_or_the_label():
    pipe = Pipeline()
    scores = Explainer(lambda texts: pipe(texts, top_k=None), Text())
    e = scores.explain("a great day", k=2)
    assert (e.output.name, e.output.classes) == ("POSITIVE", ("NEGATIVE", "POSITIVE"))
    assert e.output.is_probability
    assert '+0.19  "great"' in str(e)
    assert verify(e.to_json(), lambda texts: pipe(texts, top_k=None), Text()).holds
    other = Explainer(lambda texts: pipe(texts, top_k=None), Text(), output="NEGATIVE").explain("a great day")
    assert other.prediction == pytest.approx(0.1)
    best = Explainer(lambda texts: [*pipe(texts)], Text()).explain("a great day", k=2)
    assert (best.output.kind, best.output.decision) == ("label", "POSITIVE")
    assert [fact.attribute for fact in best.facts] == ["great"]
    assert scores.rule("a great day").is_proven
    assert scores.explain_many(["a great day", "a bad day"], share_calls=True)[1].output.name == "NEGATIVE"
    with pytest.raises(ParameterError, match=r"'POSITIV'.*'NEGATIVE', 'POSITIVE'"):
        Explainer(lambda texts: pipe(texts, top_k=None), Text(), output="POSITIV").explain("a great day")


def test_answers_that_lack_the_score_of_a_label_are_refused():
    def model(texts):
        return [[{"label": "a", "score": 0.5}, {"label": text[-1:], "score": 0.5}] for text in texts]

    with pytest.raises(PredictorOutputError, match="top_k=None"):
        Explainer(model, Text()).explain("one two")


@pytest.mark.parametrize(("pad", "own", "size"), [("[PAD]", None, 32), (None, None, None), ("[PAD]", 8, None)])
def test_a_pipeline_that_can_pad_is_asked_about_several_texts_at_once(pad, own, size):
    sizes = []

    def call(self, texts, *, batch_size=None, **options):
        sizes.append(batch_size)
        return Pipeline.__call__(self, texts, **options)

    kind = type(
        "TextClassificationPipeline", (Pipeline,), {"__module__": "transformers.pipelines", "__call__": call}
    )
    pipe = kind()
    pipe.tokenizer, pipe._batch_size = types.SimpleNamespace(pad_token=pad), own
    Explainer(pipe, Text()).explain("a great day")
    assert {*sizes} == {size}
