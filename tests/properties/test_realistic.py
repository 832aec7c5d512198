"""Realistic neighbors in everything that is built on neighbors, on a table whose columns depend on each other."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from helpers import donors as reference
from helpers.donors import (
    CUTS,
    assert_same_bytes_in_batches,
    dependent_frame,
    ordered_rows,
    plain_columns,
    score,
    ways_of,
)

OPTIONS = {"cuts": CUTS, "neighbors": "realistic"}


def explainer(**options):
    return al.Explainer(score, al.Table(dependent_frame(150), **OPTIONS | options), output_range=(-1, 1))


def all_neighbors(row, flip_probability):
    """Probabilities (n,), flips (n, d) and drops (n,) of all neighbors, by the definition of the law."""
    frame = dependent_frame(150)
    rows = ordered_rows(al.Table(frame, **OPTIONS), frame)
    own = [None if pd.isna(value) else value for value in row.tolist()]
    costs, unit = reference.costs(plain_columns(rows), own)
    broken = reference.broken_rules(plain_columns(rows), own)
    everything = list(reference.population(costs, unit, ways_of(rows, row, CUTS), flip_probability, broken))
    neighbors = pd.DataFrame([row] * len(everything)).reset_index(drop=True).astype(frame.dtypes)
    for a, name in enumerate(frame.columns):
        at = [i for i, (_, _, sources) in enumerate(everything) if a in sources]
        neighbors.loc[at, name] = rows[name].to_numpy()[[everything[i][2][a] for i in at]]
    drops = (score(neighbors[:0].reindex([0]).assign(**row)) - score(neighbors)) / 2
    return (
        np.array([chance for chance, _, _ in everything]),
        np.array([drawn for _, drawn, _ in everything]),
        drops,
    )


def test_certificates_cover_the_exact_errors_of_the_law():
    """80 seeds: the joint 95% intervals contain the exact errors in at least 70 (a 1-in-1,000 event otherwise)."""
    here, row, covered = explainer(), dependent_frame(150).iloc[4], 0
    weights, flips, drops = all_neighbors(row, 1 / (1 + np.e))
    assert weights.sum() == pytest.approx(1)
    for seed in range(80):
        e = here.explain(row, k=3, n_samples=300, n_certify=400, seed=seed)
        sums = flips @ e.contributions / 2
        inside = np.abs(sums) < 1e-12
        fidelity = weights @ (drops - sums) ** 2
        relevance = weights[inside] @ drops[inside] ** 2 / weights[inside].sum()
        assert relevance <= fidelity / weights[inside].sum() + 1e-12  # the lemma
        c = e.certificate
        covered += c.fidelity_error.low <= fidelity <= c.fidelity_error.high and (
            c.relevance_error.low <= relevance <= c.relevance_error.high
        )
    assert covered >= 70


def test_everything_that_uses_neighbors_uses_realistic_ones(tmp_path):
    here, row = explainer(), dependent_frame(150).iloc[9]
    e = here.explain(row, k=3, n_samples=500, n_certify=1000, alternatives=2)
    assert e.verify(score, space=al.Table(dependent_frame(150), **OPTIONS)).holds
    other = e.verify(score, space=al.Table(dependent_frame(150), cuts=CUTS))
    assert not other.holds
    assert here.assess(row, e.contributions, n_fresh=500).fidelity_error.value >= 0
    assert len(here.frontier(row, ks=[1, 2], n_samples=500).points) == 2
    direct = here.explain(row, k=3, objective="relevance", n_samples=500)
    assert direct.certificate.relevance_error is not None
    assert "size" in e.to_html()
    assert e.alternatives is not None


def test_bounds_and_direct_relevance_work_with_realistic_neighbors():
    here = explainer(literals="bounds")
    e = here.explain(9, k=3, n_samples=500, n_certify=1000, objective="relevance")
    assert e.verify(score, space=here.space).holds


def test_batches_and_processes_give_the_same_bytes():
    assert_same_bytes_in_batches(explainer(), dependent_frame(150).iloc[:4])


PROGRAM = """
import sys
from test_realistic import explainer
sys.stdout.write(explainer(literals="bounds").explain(2, k=3, n_samples=5000, n_certify=500).to_json())
"""


@pytest.mark.parametrize("n_threads", ["1", "2"])
def test_a_new_process_gives_the_same_bytes(n_threads):
    here = os.path.dirname(__file__)
    path = os.pathsep.join([here, os.path.dirname(here), *sys.path])
    environment = os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": n_threads, "PYTHONHASHSEED": n_threads}
    output = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert output == explainer(literals="bounds").explain(2, k=3, n_samples=5000, n_certify=500).to_json()
