"""The unit in the name of a number, such as "EUR" in "price [EUR]", follows the numbers in sentences."""

import numpy as np
import pytest

import anchorline as al


@pytest.fixture(scope="module")
def explained():
    def price(z):
        return 250_000 + z @ np.array([30_000, -20_000, 5_000])

    space = al.Hypercube(["garden", "noise", "lift"])
    explainer = al.Explainer(
        price, space, output="price [EUR]", output_range=(195_000, 305_000), same_within=15_000
    )
    return explainer.explain([1, 1, -1], k=3)


def test_numbers_of_sentences_have_the_unit(explained):
    assert "-> price [EUR] = " in str(explained)
    assert "the output stays within 15000 EUR of its value" in str(explained)
    assert "the predicted price stays within 15000 EUR of 255000 EUR" in explained.as_rule()
    legend = explained.explain_itself()
    assert "The starting level 247120 EUR is " in legend
    assert "moves by at most 15000 EUR, " in legend
    assert "The mean of the predicted price is 251000 EUR over the neighbors" in legend
    page = explained.to_html()
    assert "within 15000 EUR of 255000 EUR" in page


def test_the_unit_follows_from_the_name_and_is_not_recorded(explained):
    again = al.Explanation.from_json(explained.to_json())
    assert again.certificate.unit == "EUR"
    assert '"unit"' not in explained.to_json()


@pytest.mark.parametrize("name", ["price", "[EUR]", "price [0]", "price [<b>]", "price [a & b]", "price []"])
def test_other_names_have_no_unit(name):
    explanation = al.explain(lambda z: z[:, 0] / 2, [1, -1], k=2, output=name, n_samples=50)
    assert explanation.certificate.unit == ""


def test_a_class_has_no_unit():
    def probabilities(z):
        return np.column_stack([0.5 + z[:, 0] / 4, 0.5 - z[:, 0] / 4])

    explainer = al.Explainer(probabilities, al.Hypercube(["a", "b"]), classes=["low [m]", "high [m]"], column=0)
    explanation = explainer.explain([1, -1], k=2, n_samples=50)
    assert explanation.output == "low [m]"
    assert explanation.certificate.unit == ""
