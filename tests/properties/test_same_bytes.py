"""Explanations have the same bytes in a new process, with 1 or 2 BLAS threads, and with any batch size."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import anchorline as al
from anchorline.model import predictor

SIZES = [12, 60, 400]  # the first size is enumerated, the others are drawn
SOLVERS = ["exact", "iht"]
GOALS = {
    "relevance": {"objective": "relevance", "k": 4, "sigma": 2.5},
    "shortest": {"objective": "shortest", "k": 5, "sigma": 2.0, "max_relevance_error": 0.01},
    "alternatives": {"k": 4, "alternatives": 5},
}
BATCH_SIZES = [1000, 4096, 10**6]


def model(z):
    """A model of sums, products and divisions by column, so that no bit depends on the batch."""
    score = 0.3 * z[:, 0] - 0.2 * z[:, 1] + 0.15 * z[:, 2] * z[:, 3]
    for j in range(4, 12):
        score = score + 0.05 * z[:, j] / (j - 2.5)
    return score / (1 + np.abs(score))


def instance(d):
    return np.where(np.arange(d) * 7 % 5 < 2, -1, 1)


def all_json():
    """The JSON of every explanation that the tests compare, by name."""
    texts = {
        f"{d}-{solver}": al.explain(model, instance(d), k=5, n_samples=5000, solver=solver, seed=3).to_json()
        for d in SIZES
        for solver in SOLVERS
    }
    for name, goal in GOALS.items():
        texts[f"20-{name}"] = al.explain(model, instance(20), seed=3, **goal).to_json()
    explainer = al.Explainer(model, al.Hypercube())
    for d in (12, 20):
        frontier = explainer.frontier(instance(d), ks=range(1, 6), n_samples=20_000, seed=3)
        texts[f"{d}-frontier"] = repr([(point.contributions.tolist(), point) for point in frontier.points])
    return texts


SCRIPT = """
import importlib.util, json, os, sys
spec = importlib.util.spec_from_file_location("same_bytes", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
answers = module.all_json()
threads = None
try:
    from threadpoolctl import threadpool_info
    threads = max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=None)
except ImportError:
    pass
print(json.dumps([answers, threads]))
"""


def in_a_new_process(threads, **environment):
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, __file__],
        env=os.environ | dict.fromkeys(names, str(threads)) | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def here():
    return all_json()


def differences(one, other):
    """Names and excerpts around the first difference, short enough for a test report."""
    return {
        name: next(
            ((i, a[i - 40 : i + 40], b[i - 40 : i + 40]) for i in range(min(len(a), len(b))) if a[i] != b[i]),
            "length",
        )
        for name, a in one.items()
        if a != (b := other[name])
    }


def test_the_first_size_is_enumerated_and_the_others_are_drawn(here):
    for name in (f"{d}-{solver}" for d in SIZES for solver in SOLVERS):
        text = here[name]
        certificate = json.loads(text)["certificate"]
        assert certificate["exhaustive"] == name.startswith("12-")
        assert certificate["n_samples"] == (4096 if certificate["exhaustive"] else 5000)
        assert len(json.loads(text)["contributions"]) == int(name.partition("-")[0])


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_a_new_process_with_one_thread(here, hash_seed):
    answers, threads = in_a_new_process(1, PYTHONHASHSEED=hash_seed)
    assert threads in (1, None)
    assert differences(here, answers) == {}


def test_a_new_process_with_two_threads(here):
    answers, threads = in_a_new_process(2)
    assert threads in (min(2, os.cpu_count()), None)
    assert differences(here, answers) == {}


@pytest.mark.parametrize("rows", [*BATCH_SIZES, 313])
def test_evidence_in_one_piece_or_in_many(here, rows, monkeypatch):
    sizes = []
    monkeypatch.setattr(predictor, "BATCH_ROWS", rows)
    al.explain(lambda z: sizes.append(len(z)) or model(z), instance(60), n_samples=5000, n_certify=0)
    assert sizes == [1] + [rows] * (5000 // rows) + [5000 % rows] * (5000 % rows > 0)  # the setting has an effect
    assert differences(here, all_json()) == {}


def test_a_change_of_anything_changes_the_bytes(here):
    """The equalities above do not hold because the output is constant."""
    x = instance(60)
    options = {"k": 5, "n_samples": 5000, "seed": 3}
    other_x = x.copy()
    other_x[50] *= -1
    texts = [
        here["60-exact"],
        al.explain(model, x, **options | {"seed": 4}).to_json(),
        al.explain(model, x, **options | {"n_samples": 4999}).to_json(),
        al.explain(model, x, **options, sigma=1.01).to_json(),
        al.explain(model, other_x, **options).to_json(),
        al.explain(lambda z: model(z) + 2.0**-20, x, **options).to_json(),
    ]
    assert len({hashlib.sha256(text.encode()).hexdigest() for text in texts}) == len(texts)
    objectives = {json.loads(text)["certificate"]["objective"] for text in texts[:5]}
    assert len(objectives) == 5  # the samples differ, and not only their labels


@pytest.mark.parametrize("kind", [list, tuple, np.int8, np.float32, np.float64])
def test_the_type_of_the_instance_does_not_matter(here, kind):
    x = instance(60)
    x = kind(x.tolist()) if kind in (list, tuple) else x.astype(kind)
    assert al.explain(model, x, k=5, n_samples=5000, seed=3).to_json() == here["60-exact"]
