"""Similar neighbors, whose values decide which facts break, in everything that is built on neighbors."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import anchorline as al
from anchorline.errors import ParameterError
from anchorline.render.levels import neighbor_sentence
from anchorline.search import investigate
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

OPTIONS = {"cuts": CUTS, "neighbors": "similar", "literals": "intervals"}
P = 1 / (1 + np.e)


def explainer(**options):
    return al.Explainer(score, al.Table(dependent_frame(150), **OPTIONS | options), output_range=(-1, 1))


def all_neighbors(row):
    """Probabilities (n,), replaced attributes and flips (n, d), and drops (n,) of all neighbors, by definition."""
    frame = dependent_frame(150)
    rows = ordered_rows(al.Table(frame, **OPTIONS), frame)
    own = [None if pd.isna(value) else value for value in row.tolist()]
    costs, unit = reference.costs(plain_columns(rows), own)
    broken = reference.broken_rules(plain_columns(rows), own)
    everything = list(reference.similar_population(costs, unit, ways_of(rows, row, CUTS), P, broken))
    neighbors = pd.DataFrame([row] * len(everything)).reset_index(drop=True).astype(frame.dtypes)
    replaced = np.zeros((len(everything), 4), dtype=bool)
    for a, name in enumerate(frame.columns):
        at = [i for i, (_, _, sources) in enumerate(everything) if a in sources]
        replaced[at, a] = True
        neighbors.loc[at, name] = rows[name].to_numpy()[[everything[i][2][a] for i in at]]
    drops = (score(neighbors[:0].reindex([0]).assign(**row)) - score(neighbors)) / 2
    weights, flips = (np.array([each[i] for each in everything]) for i in (0, 1))
    return weights, replaced, flips, drops


@pytest.mark.parametrize("at", [4, 9])
def test_certificates_cover_the_exact_errors_of_the_law(at):
    """60 seeds: the joint 95% intervals contain the exact errors in at least 51 (a 1-in-1,000 event otherwise).

    Relevance is conditioned on the values of the facts, whose probability is known, so that the lemma holds.
    """
    here, row, covered = explainer(), dependent_frame(150).iloc[at], 0
    weights, replaced, flips, drops = all_neighbors(row)
    assert weights.sum() == pytest.approx(1)
    for seed in range(60):
        e = here.explain(row, k=3, n_samples=300, n_certify=400, seed=seed)
        c, sums = e.certificate, flips @ e.contributions / 2
        inside = ~replaced[:, e.support].any(axis=1)
        assert weights[inside].sum() == pytest.approx(c.event_probability) == pytest.approx((1 - P) ** c.n_facts)
        fidelity = weights @ (drops - sums) ** 2
        relevance = weights[inside] @ drops[inside] ** 2 / weights[inside].sum()
        assert relevance <= fidelity / c.event_probability + 1e-12  # the lemma
        covered += c.fidelity_error.low <= fidelity <= c.fidelity_error.high and (
            c.relevance_error.low <= relevance <= c.relevance_error.high
        )
    assert covered >= 51


def test_the_sum_is_the_best_on_its_sample_and_adds_up():
    """Another set of facts never fits the sampled flips better: the evidence is that of the flips that follow."""
    here, row = explainer(), dependent_frame(150).iloc[9]
    e = here.explain(row, k=3, n_samples=2000, n_certify=0, keep_noise=True)
    assert e.certificate.status.name == "OPTIMAL"
    assert e.intercept + e.contributions.sum() == pytest.approx(e.prediction, abs=1e-12)
    case = here.prepare(row, al.settings.Settings.from_keywords(k=3, n_samples=2000))
    batches = list(case.query(case.stream("search", 2000)))
    flips = np.concatenate([batch.flips for batch in batches]).astype(float)
    drops = np.concatenate([batch.answer.drops for batch in batches])
    ours = np.mean((drops - flips @ e.scaled) ** 2)
    for pair in [(i, j) for i in range(4) for j in range(i)]:
        fitted = np.linalg.lstsq(flips[:, pair], drops, rcond=None)[0]
        assert ours <= np.mean((drops - flips[:, pair] @ fitted) ** 2) + 1e-12


def test_everything_that_uses_neighbors_uses_similar_ones():
    here, row = explainer(), dependent_frame(150).iloc[9]
    e = here.explain(row, k=3, n_samples=500, n_certify=1000, alternatives=2)
    assert e.verify(score, space=al.Table(dependent_frame(150), **OPTIONS)).holds
    assert not e.verify(score, space=al.Table(dependent_frame(150), cuts=CUTS, neighbors="realistic")).holds
    assert al.Explanation.from_json(e.to_json()) == e
    assessed = here.assess(row, e.contributions, n_fresh=1000)
    assert assessed.event_probability == e.certificate.event_probability
    assert here.explain(row, k=3, n_samples="auto", max_queries=20_000).certificate.relevance_error is not None
    assert "replaced" in e.to_html()
    assert "decide which facts are broken" in neighbor_sentence(e)
    assert e.certificate.keeps_values


def test_facts_without_an_effect_are_found_by_the_flips_that_follow():
    here, row = explainer(), dependent_frame(150).iloc[9]
    e = here.explain(row, k=3, n_samples=2000, n_certify=2000)
    assert here.assess(row, e.contributions, n_fresh=4000).idle == ()
    noise = al.Explainer(lambda rows: np.resize([0.1, -0.1], len(rows)), here.space, output_range=(-1, 1))
    assert noise.assess(row, [0.1, 0.1, 0.1, 0.1], n_fresh=2000).idle == (0, 1, 2, 3)


@pytest.mark.parametrize("options", [{"objective": "relevance"}, {"pairs": "and"}])
def test_what_needs_independent_flips_is_refused(options):
    with pytest.raises(ParameterError, match="neighbors='realistic'"):
        explainer().explain(0, **options)


def test_frontiers_and_shortest_rules_are_refused():
    with pytest.raises(ParameterError, match="frontier"):
        explainer().frontier(0, ks=[1, 2])
    with pytest.raises(ParameterError, match="shortest"):
        explainer().shortest(0, max_relevance_error=0.1)


def test_bounds_hold_the_value_while_they_are_tested():
    here = explainer(literals="bounds")
    assert all("or takes" not in literal.held for literal in here.space.at(3).literals)
    e = here.explain(3, k=3, n_samples=500, n_certify=1000)
    assert e.certificate.keeps_values
    assert e.verify(score, space=here.space).holds


def test_batches_and_processes_give_the_same_bytes():
    assert_same_bytes_in_batches(explainer(), dependent_frame(150).iloc[:4])


PROGRAM = """
import sys
from test_similar import explainer
sys.stdout.write(explainer(literals="bounds").explain(2, k=3, n_samples=5000, n_certify=500).to_json())
"""


def test_a_new_process_gives_the_same_bytes():
    here = os.path.dirname(__file__)
    path = os.pathsep.join([here, os.path.dirname(here), *sys.path])
    environment = os.environ | {"PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "2"}
    output = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        env=environment | {"PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert output == explainer(literals="bounds").explain(2, k=3, n_samples=5000, n_certify=500).to_json()


def test_the_answer_does_not_depend_on_a_long_proof(monkeypatch):
    """Where few nodes prove nothing, the best sum of facts with an effect is proven, and it is the same sum."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(2000, 2))
    values = hidden @ rng.normal(size=(2, 16)) + 0.5 * rng.normal(size=(2000, 16))
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(16)])
    here = al.Explainer(lambda rows: np.tanh(rows["x0"] - rows["x1"]), al.Table(frame, neighbors="similar"))
    for row in range(4):
        found = {}
        for limit in (0, 50, 10_000):
            monkeypatch.setattr(investigate, "_FEW_NODES", limit)
            found[limit] = here.explain(row, k=4, n_samples=1000, n_certify=0)
            assert found[limit].certificate.status is al.Status.OPTIMAL
        for e in found.values():
            np.testing.assert_allclose(e.contributions, found[10_000].contributions, atol=1e-12)
