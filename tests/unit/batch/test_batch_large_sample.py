"""One very large sample, split into parts: the explanation has the bytes of one process."""

import itertools

import pytest

import anchorline as al
from anchorline.batch.evidence import explain_parts, explain_split, gather_part, parts_of
from anchorline.errors import ParameterError, SampleError
from helpers.batch_models import (
    rate,
)

BIG = al.Explainer(rate, al.Hypercube(), output_range=(-0.5, 0.5))

POINT = [1, -1] * 10


def test_a_million_neighbors_in_parts_are_the_same_bytes():
    keywords = {"n_samples": 1_000_000, "n_certify": 2000, "k": 4}
    parts = [gather_part(BIG, POINT, start, stop, **keywords) for start, stop in parts_of(1_000_000, 3)]
    whole = explain_parts(BIG, POINT, reversed(parts), **keywords)
    assert whole == BIG.explain(POINT, **keywords)
    assert whole.certificate.n_clipped > 0
    assert parts[0].evidence + parts[1].evidence + parts[2].evidence is not None


def test_parts_in_processes_are_the_same_bytes():
    keywords = {"n_samples": 20_000, "k": 4}
    assert explain_split(BIG, POINT, n_jobs=2, **keywords) == BIG.explain(POINT, **keywords)


@pytest.mark.parametrize("n_samples", [1, 4095, 4096, 4097, 100_000])
@pytest.mark.parametrize("n_parts", [1, 2, 7, 100])
def test_cuts_are_on_the_boundaries_of_model_calls(n_samples, n_parts):
    cuts = parts_of(n_samples, n_parts)
    assert cuts[0][0] == 0
    assert cuts[-1][1] == n_samples
    assert all(a[1] == b[0] for a, b in itertools.pairwise(cuts))
    assert all(start % 4096 == 0 and start < stop for start, stop in cuts)
    assert len(cuts) <= n_parts


def test_parts_that_do_not_fit_are_refused():
    keywords = {"n_samples": 20_000, "k": 4}
    parts = [gather_part(BIG, POINT, start, stop, **keywords) for start, stop in parts_of(20_000, 3)]
    with pytest.raises(SampleError, match="are not adjacent"):
        explain_parts(BIG, POINT, [parts[0], parts[2]], **keywords)
    with pytest.raises(SampleError, match="are not adjacent"):
        explain_parts(BIG, POINT, [*parts, parts[1]], **keywords)
    with pytest.raises(SampleError, match="first part"):
        explain_parts(BIG, POINT, parts[1:], **keywords)
    with pytest.raises(SampleError, match="n_samples is 20000"):
        explain_parts(BIG, POINT, parts[:2], **keywords)
    with pytest.raises(ParameterError, match="parts_of"):
        gather_part(BIG, POINT, 100, 200, **keywords)
    with pytest.raises(ParameterError, match="To split a sample"):
        gather_part(BIG, POINT, 0, 200, n_samples="auto")
    with pytest.raises(ParameterError, match="nothing to split"):
        gather_part(BIG, [1, 1, 1], 0, 8, n_samples=1000)
