"""Neighbors to look at."""

import numpy as np
import pytest

import anchorline as al
from anchorline.errors import SampleError
from anchorline.result.neighbors import NeighborSample
from anchorline.samples import loans


def test_a_linear_model_is_what_its_sum_says():
    explainer = al.Explainer(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 1], al.Hypercube(), output="score")
    e = explainer.explain([1, -1, 1], k=3)
    seen = explainer.neighbors(e, 5000)
    np.testing.assert_allclose(seen.outputs, seen.sums, atol=1e-7)
    assert seen.n_flips.shape == (5000,)
    assert seen.n_flips.mean() == pytest.approx(3 * 0.2689, abs=0.05)
    assert set(np.unique(seen.n_flips)) <= {0, 1, 2, 3}
    assert seen.outputs[seen.n_flips == 0] == pytest.approx(e.prediction)
    assert (seen.prediction, seen.output) == (e.prediction, "score")


def test_of_a_table_in_the_output_s_own_units():
    frame, _ = loans(300)
    explainer = al.Explainer(lambda rows: rows["income"].to_numpy() / 10, al.Table(frame))
    e = explainer.explain(3, k=3, n_samples=500, n_certify=0)
    seen = explainer.neighbors(e, 300)
    assert seen.outputs.min() >= frame["income"].min() / 10 - 1e-3
    assert seen.outputs.max() <= frame["income"].max() / 10 + 1e-3
    again = explainer.neighbors(e, 300)
    assert seen.outputs.tobytes() == again.outputs.tobytes()


def test_the_table_s_own_rows_are_not_those_of_the_search():
    """What is looked at was neither searched nor certified with."""
    asked = []

    def model(z):
        asked.append(z.copy())
        return 0.5 * z[:, 0]

    explainer = al.Explainer(model, al.Hypercube())
    e = explainer.explain(np.ones(30), k=2, n_samples=200, n_certify=100)
    before = {row.tobytes() for rows in asked for row in rows}
    asked.clear()
    explainer.neighbors(e, 100)
    fresh = [row.tobytes() for row in asked[-1]]
    assert len(before & set(fresh)) < 5


@pytest.mark.parametrize("lengths", [(2, 3, 3), (0, 0, 0)])
def test_unequal_lengths_are_refused(lengths):
    n_flips, outputs, sums = (np.zeros(n) for n in lengths)
    with pytest.raises(SampleError, match="same length"):
        NeighborSample(n_flips=n_flips, outputs=outputs, sums=sums, prediction=0.0, output="y")
