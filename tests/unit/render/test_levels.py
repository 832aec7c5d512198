"""What the starting level is, the means beside it, and what a neighbor is, in words and numbers."""

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.render import html
from anchorline.render.levels import far_end, legend
from anchorline.render.neighbors import case_values, mean_over_neighbors
from helpers.sealing import resealed


def model(z):
    return 0.5 * ((z[:, 0] > 0) & (z[:, 1] > 0)) + 0.1 * (z[:, 2] > 0)


def explained(row=(1,) * 8, **keywords):
    return al.Explainer(model, al.Hypercube(), output="score", output_range=(0, 1)).explain(list(row), **keywords)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    return pd.DataFrame({"age": rng.integers(20, 70, 300), "city": rng.choice(["Rome", "Oslo"], 300)})


@pytest.fixture(scope="module")
def table_explainer(frame):
    price = lambda rows: 10.0 * (np.asarray(rows["city"]) == "Rome") + np.asarray(rows["age"]) / 10  # noqa: E731
    return al.Explainer(price, al.Table(frame), output="price")


def test_the_mean_over_neighbors_costs_no_query_and_is_that_of_the_search():
    e = explained()
    assert e.certificate.exhaustive
    flips = np.array(np.meshgrid(*[[0, 1]] * 8)).reshape(8, -1).T
    p = e.parameters["flip_probability"]
    weights = (p**flips * (1 - p) ** (1 - flips)).prod(axis=1)
    assert e.neighbors_mean == pytest.approx(weights @ model(1 - 2 * flips), abs=1e-7)
    others = flips.any(axis=1)  # neighbors differ from the case
    assert mean_over_neighbors(e) == pytest.approx(
        weights[others] @ model(1 - 2 * flips[others]) / weights[others].sum(), abs=1e-7
    )
    drawn = explained(n_samples=400, n_certify=200, sampling="draw")
    assert drawn.certificate.n_queries == 601
    assert drawn.neighbors_mean == pytest.approx(e.neighbors_mean, abs=0.05)
    assert drawn.verify(model).outcome.value == "holds"
    assert al.Explanation.from_json(drawn.to_json()).neighbors_mean == drawn.neighbors_mean


def test_a_changed_mean_does_not_verify():
    e = al.explain(model, [1] * 12)
    forged = resealed(json.loads(e.to_json()) | {"neighbors_mean": 0.7})
    verification = al.Explanation.from_json(forged).verify(model)
    assert verification.reasons == (f"neighbors_mean is stated as 0.7, but is {e.neighbors_mean!r}",)


def test_the_starting_level_and_the_far_end_are_defined_with_their_numbers():
    e = explained()
    contributions = sum(term.contribution for term in e.terms)
    assert far_end(e) == pytest.approx(e.prediction - 2 * contributions)
    text = legend(e)
    assert (
        f"The starting level {e.intercept:.3f} is what the sum gives if every contribution is taken away once"
        in text
    )
    gives = f"the sum gives about {far_end(e):.3g}, outside the output range 0 to 1"
    assert f"with all {len(e.terms)} facts broken, {gives}" in text
    assert (
        "The starting level is not a mean. The mean of the predicted score is "
        f"{mean_over_neighbors(e):.3g} over the neighbors." in text
    )
    assert "A neighbor is this case with each of its 8 values reversed with probability 27%" in text
    assert text == e.explain_itself()


def test_the_report_marks_both_means_and_shows_the_row(table_explainer, frame):
    e = table_explainer.explain(0, k=3)
    mean = table_explainer.training_mean(e)
    assert mean == pytest.approx((10.0 * (frame["city"] == "Rome") + frame["age"] / 10).mean())
    page = e.to_html(training_mean=mean)
    assert (
        page.count('class="al-mean al-neighbors"') == page.count('class="al-mean al-training"') == len(e.terms) + 2
    )
    assert f"{mean_over_neighbors(e):.3g} over the neighbors" in page
    assert f"{mean:.3g} over the training table" in page
    assert "each of its 2 values changed with probability 27%" in page
    assert "new values come from the training table, from another interval or category" in page
    assert case_values(e) == {"age": str(frame["age"][0]), "city": frame["city"][0]}
    assert f"<code><bdi>{frame['city'][0]}</bdi></code>" in page
    assert "al-training" not in e.to_html().split("<main")[1]
    assert "What the numbers mean" in html.fragment(e)


def test_the_training_mean_of_a_class_and_of_a_label(frame):
    share = lambda rows: np.column_stack([1 - 0.01 * rows["age"], 0.01 * rows["age"]])  # noqa: E731
    of_class = al.Explainer(share, al.Table(frame), classes=["no", "yes"], output="yes")
    assert of_class.training_mean(of_class.explain(0, n_certify=0)) == pytest.approx(0.01 * frame["age"].mean())
    of_label = al.Explainer(lambda rows: np.asarray(rows["city"]), al.Table(frame), output="town")
    e = of_label.explain(0, n_certify=0)
    assert of_label.training_mean(e) == pytest.approx(2 * (frame["city"] == frame["city"][0]).mean() - 1)
    with pytest.raises(ParameterError, match="has no training rows"):
        al.Explainer(model, al.Hypercube()).training_mean(explained())


def test_bounds_that_exclude_each_other_are_never_all_broken(frame):
    explainer = al.Explainer(lambda rows: np.asarray(rows["age"]) / 100, al.Table(frame, literals="bounds"))
    row = int((frame["age"] - 45).abs().argmin())
    text = legend(explainer.explain(row, k=4, n_certify=0))
    assert "broken, the sum gives" not in text
    assert "each of its 2 values changed" in text


def test_bounds_that_take_the_sum_out_of_the_range_are_said_to(frame):
    """One bound at a time is broken: the sum of the two contributions alone would stay inside the range."""
    row = int((frame["age"] - 45).abs().argmin())
    space = al.Table(frame, literals="bounds")
    e = al.Explainer(lambda rows: np.asarray(rows["age"]) / 100, space, output_range=(0, 0.8)).explain(row, k=3)
    assert "leaves the output range" not in legend(e)
    bounds = [j for j in e.support.tolist() if e.literals[j].name == "age"]
    assert len(bounds) == 2
    steep = e.contributions.copy()
    steep[bounds] = 0.6, -0.6
    steep = dataclasses.replace(e, contributions=steep, intercept=e.prediction)
    assert "with some facts broken, the sum leaves the output range 0 to 0.8" in legend(steep)


def test_a_sum_without_facts_is_its_starting_level():
    assert "The starting level is the prediction itself" in legend(al.explain(lambda z: 0 * z[:, 0] + 0.3, [1, 1]))


def test_the_numbers_of_a_label_are_explained():
    vote = lambda z: np.where(z[:, 0] > 0, "yes", "no")  # noqa: E731
    text = al.explain(vote, [1] * 5, k=2, output="vote").explain_itself()
    assert 'In the sum, 1 stands for the label "yes", and -1 for any other.' in text
