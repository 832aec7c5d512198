"""Explanation: frozen, self-checking, and a JSON that comes back bit for bit or not at all."""

import dataclasses
import math
import pickle

import numpy as np
import pytest
from hypothesis import settings

import anchorline as al
from anchorline.errors import CertificateError
from helpers.kinds_of_explanations import changed, explained, kinds

DERANDOMIZED = settings(max_examples=150, deadline=None, derandomize=True, database=None)


# --- what it says ------------------------------------------------------------------------------------


def test_terms_are_the_contributions_largest_first():
    e = changed(explained(), [0.1, 0.0, -0.5, 0.25, 0.1], 0.05)
    assert [(term.index, term.contribution) for term in e.terms] == [(2, -0.5), (3, 0.25), (0, 0.1), (4, 0.1)]
    assert [term.literal.name for term in e.terms] == ["x2", "x3", "x0", "x4"]
    assert e.support.tolist() == [0, 2, 3, 4]


def test_scaled_is_on_the_scale_of_the_solver():
    e = al.explain(lambda z: 100 + 50 * z[:, 0], [1, -1], k=2, output_range=(0, 200), n_certify=0)
    assert e.half_range == 100
    np.testing.assert_allclose(e.scaled * 100, e.contributions, rtol=1e-15)
    assert np.abs(e.scaled).max() <= 1 + 1e-9


def test_coef_times_the_instance_is_the_contribution():
    e = changed(explained(), [0.5, -0.25, 0.125], instance=(1, -1, -1))
    assert e.coef.tolist() == [0.5, 0.25, -0.125]
    assert e.coef @ e.instance + e.intercept == e.prediction


def test_what_does_not_add_up_is_no_explanation():
    e = explained()
    with pytest.raises(CertificateError, match="miss the prediction"):
        dataclasses.replace(e, prediction=e.prediction + 1e-9)
    with pytest.raises(CertificateError, match="miss the prediction"):
        dataclasses.replace(e, intercept=math.nan)
    with pytest.raises(CertificateError, match="3 contributions for 2 literals"):
        dataclasses.replace(e, literals=e.literals[:2])


def test_repr_is_short():
    assert repr(explained()).startswith("Explanation(f(x) = 0.75, ")
    assert len(repr(explained())) < 100


# --- frozen ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["enumerated", "drawn"])
def test_nothing_can_be_set(kind):
    e = kinds()[kind]
    for item in (e, e.certificate, e.terms[0], e.literals[0]):
        for field in dataclasses.fields(item):
            with pytest.raises(dataclasses.FrozenInstanceError):
                setattr(item, field.name, None)


def test_arrays_are_read_only():
    with pytest.raises(ValueError, match="read-only"):
        explained().contributions[0] = 1.0


def test_arrays_are_its_own():
    numbers = np.array([0.5, 0.25])
    e = changed(explained(), numbers)
    numbers[0] = 9
    assert e.contributions.tolist() == [0.5, 0.25]
    for name in ("scaled", "coef", "support"):
        try:
            getattr(e, name)[0] = 9
        except ValueError:
            continue
    assert e.contributions.tolist() == [0.5, 0.25]


def test_parameters_cannot_be_changed():
    e = changed(explained(), [0.5])
    before = e.to_json()
    try:
        e.parameters["k"] = 99
    except TypeError:
        pass
    else:
        e.parameters["k"] = 3  # others use this explanation too
        pytest.fail("it could be set")
    assert e.to_json() == before


def test_pickles():
    for e in kinds().values():
        again = pickle.loads(pickle.dumps(e))
        assert again.to_json() == e.to_json()
        assert again.certificate == e.certificate


def test_pickled_explanations_stay_frozen():
    assert not pickle.loads(pickle.dumps(explained())).contributions.flags.writeable


# --- frames ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_to_frame(backend):
    library = pytest.importorskip(backend)
    e = kinds()["drawn"]
    frame = e.to_frame(backend)
    assert isinstance(frame, library.Table if backend == "pyarrow" else library.DataFrame)
    columns = frame.to_pydict() if backend == "pyarrow" else {name: list(frame[name]) for name in frame.columns}
    assert list(columns) == ["literal", "contribution", "index"]
    assert columns["literal"] == [term.literal.text for term in e.terms] + ["(intercept)"]
    assert columns["contribution"] == [term.contribution for term in e.terms] + [e.intercept]
    assert columns["index"] == [term.index for term in e.terms] + [-1]
    assert math.fsum(columns["contribution"]) == pytest.approx(e.prediction, abs=1e-12)


def test_to_frame_is_pandas_unless_told():
    pandas = pytest.importorskip("pandas")
    assert isinstance(explained().to_frame(), pandas.DataFrame)


def test_to_frame_of_nothing():
    frame = kinds()["degenerate"].to_frame("polars")
    assert frame.rows() == [("(intercept)", 0.0, -1)]


@pytest.mark.parametrize("label", [math.inf, -math.inf])
def test_a_label_of_infinity_can_be_written(label):
    for classes in (None, [label, 0.0]):
        explainer = al.Explainer(
            lambda z: np.where(z[:, 0] > 0, label, 0.0), al.Hypercube(), task="label", classes=classes
        )
        e = explainer.explain([1, 1, 1])
        assert al.Explanation.from_json(e.to_json()) == e
        assert pickle.loads(pickle.dumps(e)) == e


def test_points_of_a_frontier_and_neighbors_stay_read_only():
    explainer = al.Explainer(lambda z: 0.5 * z[:, 0] + 0.2 * z[:, 1], al.Hypercube())
    e = explainer.explain([1, 1, 1])
    point, sample = explainer.frontier([1, 1, 1], ks=[2]).points[0], explainer.neighbors(e, 50)
    for kept in (point, pickle.loads(pickle.dumps(point))):
        with pytest.raises(ValueError, match="read-only"):
            kept.contributions[:] = 9
    for kept in (sample, pickle.loads(pickle.dumps(sample))):
        with pytest.raises(ValueError, match="read-only"):
            kept.outputs[:] = 9


def test_statuses_and_verdicts_pickle_by_name():
    """Their values are texts for readers, which may be reworded."""
    for member in (*al.Status, *al.Verdict):
        pickled = pickle.dumps(member)
        assert pickle.loads(pickled) is member
        assert member.name.encode() in pickled
        assert member.value.encode() not in pickled
