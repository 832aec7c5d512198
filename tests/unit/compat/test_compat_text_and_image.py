"""LIME's text and image calls: the same names, weights that add up, and LIME's own tests."""

import types
import unittest
import warnings

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from anchorline.compat import LimeImageExplainer, LimeTextExplainer
from anchorline.errors import ParameterError, PredictorError

theirs = pytest.importorskip(
    "lime.tests.test_lime_text", reason="This installation of LIME leaves out LIME's own tests."
)
CALLING = [
    "test_lime_text_explainer_good_regressor",
    "test_lime_text_tabular_equal_random_state",
    "test_lime_text_tabular_not_equal_random_state",
]


def generated_newsgroups(subset, categories):
    """Return texts of two classes in place of a download; the classes differ in some of their words."""
    rng = np.random.default_rng(len(subset))
    target = rng.integers(0, 2, 120)
    words = np.array([f"word{i}" for i in range(60)])
    texts = [" ".join(rng.choice(words[20 * one : 20 * one + 40], 40)) for one in target.tolist()]
    return types.SimpleNamespace(data=texts, target=target)


@pytest.mark.parametrize("name", CALLING)
def test_limes_own_tests_of_its_text_explainer(name, monkeypatch):
    monkeypatch.setattr(theirs, "LimeTextExplainer", LimeTextExplainer)
    monkeypatch.setattr(theirs, "fetch_20newsgroups", generated_newsgroups)
    result = unittest.TestResult()
    theirs.TestLimeText(name).run(result)
    assert result.testsRun == 1
    assert not result.errors
    assert not result.failures


def test_the_other_tests_of_lime_do_not_call_the_explainer():
    names = set(unittest.TestLoader().getTestCaseNames(theirs.TestLimeText)) - set(CALLING)
    assert len(names) == 6
    assert all(name.startswith("test_indexed_") for name in names)


@pytest.fixture(scope="module")
def model():
    texts = ["great food", "great view", "slow food", "slow and cold", "lovely view", "cold room"]
    return make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, [1, 1, 0, 0, 1, 0])


def test_weights_of_words_add_up(model):
    explainer = LimeTextExplainer(class_names=["bad", "good"])
    text = "Great food, great view: but slow; slow!"
    result = explainer.explain_instance(text, model.predict_proba, labels=(0, 1), num_features=3)
    for label in (0, 1):
        total = result.intercept[label] + sum(weight for _, weight in result.as_list(label))
        assert total == pytest.approx(model.predict_proba([text])[0, label])
        numbers = [number for number, _ in result.as_map()[label]]
        assert [result.words[number] for number in numbers] == [word for word, _ in result.as_list(label)]
    assert result.available_labels() == [0, 1]
    assert result.words == ("Great", "food", "great", "view", "but", "slow")
    assert "al-text" in result._repr_html_()
    top = explainer.explain_instance(text, model.predict_proba, top_labels=1, num_features=2)
    assert top.available_labels() == [int(model.predict_proba([text])[0].argmax())]


def test_options_of_the_text_explainer(model):
    text = "slow food, slow view"
    each = LimeTextExplainer(bow=False).explain_instance(text, model.predict_proba, num_features=4)
    assert each.words == ("slow", "food", "slow", "view")
    assert each.explanations[1].facts[0].column.startswith("word ")
    assert "unit" not in str(each.explanations[1])
    seen = []
    LimeTextExplainer(bow=False).explain_instance(
        text, lambda texts: seen.extend(texts) or model.predict_proba(texts), num_features=2
    )
    assert any("UNKWORDZ" in one for one in seen)
    split = LimeTextExplainer(split_expression=", ").explain_instance(text, model.predict_proba)
    assert split.words == ("slow food", "slow view")
    tokens = LimeTextExplainer(split_expression=str.split).explain_instance(text, model.predict_proba)
    assert tokens.words == ("slow", "food,", "view")
    characters = LimeTextExplainer(char_level=True).explain_instance(text, model.predict_proba)
    assert "s" in characters.words
    prints = {LimeTextExplainer(split_expression=one).space.fingerprint for one in (r"\W+", ", ", "x")}
    assert len(prints) == 3
    with pytest.raises(ParameterError, match="regular expression"):
        LimeTextExplainer(split_expression="(")
    with pytest.raises(TypeError, match="bow"):
        LimeTextExplainer(bwo=True)
    with pytest.raises(ParameterError, match="num_features"):
        LimeTextExplainer().explain_instance(text, model.predict_proba, num_features=0)
    with pytest.raises(PredictorError, match="raised"):
        LimeTextExplainer().explain_instance(text, lambda texts: 1 / 0)


@pytest.mark.parametrize("options", [{"kernel_width": 3}, {"kernel": len}, {"verbose": True}])
def test_keywords_without_effect_warn(options):
    for explainer in (LimeTextExplainer, LimeImageExplainer):
        with pytest.warns(UserWarning, match="has no effect"):
            explainer(**options)
    with pytest.warns(UserWarning, match="has no effect"):
        LimeImageExplainer(feature_selection="lasso_path")


def quarters(image):
    height, width = image.shape[:2]
    return np.arange(4).reshape(2, 2).repeat(height // 2, axis=0).repeat(width // 2, axis=1)


def light(images):
    share = (2.0 * images[:, 0, 0, 0] + images[:, -1, -1, 1]) / 765
    return np.column_stack([1 - share, share])


def test_weights_of_regions_add_up():
    image = np.full((8, 8, 3), 240, dtype=np.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = LimeImageExplainer(random_state=1).explain_instance(
            image, light, top_labels=2, hide_color=0, segmentation_fn=quarters
        )
    assert result.top_labels == [1, 0]
    for label in (0, 1):
        total = result.intercept[label] + sum(weight for _, weight in result.local_exp[label])
        assert total == pytest.approx(light(image[None])[0, label])
    assert [region for region, _ in result.local_exp[1]][:2] == [0, 3]
    shown, mask = result.get_image_and_mask(1, num_features=1, hide_rest=True)
    assert mask.sum() == 16
    assert shown[0, 0].tolist() == [240, 240, 240]
    assert shown[7, 7].tolist() == [0, 0, 0]
    _, mask = result.get_image_and_mask(0, positive_only=False, num_features=5)
    assert mask.min() == -1
    _, none = result.get_image_and_mask(1, negative_only=True, positive_only=False)
    assert not none[0, 0]
    with pytest.raises(ParameterError, match="both True"):
        result.get_image_and_mask(1, negative_only=True)
    with pytest.raises(ParameterError, match="was not explained"):
        result.get_image_and_mask(7)
    assert result.explanations[1].plot().get_title(loc="left")


def test_gray_images_and_limes_own_segments():
    from lime.wrappers.scikit_image import SegmentationAlgorithm

    gray = np.add.outer(np.arange(24), np.arange(24)).astype(np.uint8) * 5
    result = LimeImageExplainer().explain_instance(gray, light, top_labels=1, num_samples=200, num_features=3)
    assert result.image.shape == (24, 24, 3)
    assert result.segments.shape == (24, 24)
    own = SegmentationAlgorithm("slic", n_segments=4, start_label=0)
    other = LimeImageExplainer().explain_instance(gray, light, top_labels=1, num_samples=100, segmentation_fn=own)
    assert set(np.unique(other.segments)) >= {region for region, _ in other.local_exp[other.top_labels[0]]}
    many = LimeImageExplainer().explain_instance(gray, light, top_labels=1, num_samples=50, num_features=50)
    assert many.explanations[many.top_labels[0]].settings["k"] == 50
