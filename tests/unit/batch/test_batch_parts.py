"""Parts of one large sample: only parts of the same explanation are combined."""

import pytest

import anchorline as al
from anchorline.batch.evidence import explain_parts, explain_split, gather_part, parts_of
from anchorline.errors import ParameterError, SampleError, UnpackableError, WorkerError
from helpers.batch_models import Unopenable, ends_its_process, rate

N = 10_000
HERE, THERE = [1, -1] * 10, [1, 1] * 10
KEYWORDS = {"n_samples": N, "k": 4, "n_certify": 500}


def explainer(**keywords):
    return al.Explainer(rate, al.Hypercube(), **keywords)


def gathered(row=HERE, chosen=None, **keywords):
    return [gather_part(chosen or explainer(), row, *cut, **{**KEYWORDS, **keywords}) for cut in parts_of(N, 2)]


OTHERS = {
    "row": lambda: gathered(THERE),
    "seed": lambda: gathered(seed=9),
    "sigma": lambda: gathered(sigma=3),
    "k": lambda: gathered(k=5),
    "range": lambda: gathered(chosen=explainer(output_range=(-2, 2))),
    "names": lambda: gathered(chosen=al.Explainer(rate, al.Hypercube([f"fact {j}" for j in range(20)]))),
}


@pytest.mark.parametrize("other", OTHERS)
def test_parts_of_something_else_are_refused(other):
    others, parts = OTHERS[other](), gathered()
    for mixed in (others, [parts[0], others[1]]):
        with pytest.raises(SampleError, match="parts of different explanations"):
            explain_parts(explainer(), HERE, mixed, **KEYWORDS)
    with pytest.raises(SampleError, match="parts of different explanations"):
        parts[0] + others[1]


def test_parts_know_each_other_however_often_they_are_gathered():
    first, second = gathered()[0], gathered(chosen=explainer())[1]
    assert explain_parts(explainer(), HERE, [second, first], **KEYWORDS) == explainer().explain(HERE, **KEYWORDS)


@pytest.mark.parametrize(("n_samples", "n_parts"), [(N, 0), (N, -1), (N, 2.5), (N, True), (0, 3)])
def test_numbers_of_parts_that_are_none(n_samples, n_parts):
    with pytest.raises(ParameterError, match="it must be a whole number of at least 1"):
        parts_of(n_samples, n_parts)


def test_a_worker_that_dies_is_told():
    with pytest.raises(WorkerError, match="A worker process died"):
        explain_split(al.Explainer(ends_its_process, al.Hypercube()), HERE, n_jobs=2, **KEYWORDS)


def test_a_model_that_cannot_be_opened_there_is_told():
    class Here(Unopenable):
        def __call__(self, z):
            return rate(z)

    with pytest.raises(UnpackableError, match=r"cannot be unpacked in another process .*no license"):
        explain_split(al.Explainer(Here(), al.Hypercube()), HERE, n_jobs=2, **KEYWORDS)


@pytest.mark.parametrize(("start", "stop"), [("a", 4096), (0.0, 4096.0), (4096, 4096), (1, 4096), (-4096, 0)])
def test_cuts_that_are_none(start, stop):
    with pytest.raises(ParameterError, match=r"the cuts must be those that `parts_of"):
        gather_part(explainer(), HERE, start, stop, **KEYWORDS)
