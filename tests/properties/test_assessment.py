"""Fidelity, relevance and stability against enumeration; coverage under every stopping rule."""

import numpy as np
import pytest

from anchorline.explainer import Explainer, explain
from anchorline.model.predictor import Predictor
from anchorline.search.assess import assess, assess_until
from anchorline.spaces import Hypercube
from helpers.enumeration import exact_errors, random_contributions, random_model


def case(seed):
    rng = np.random.default_rng([31, seed])
    d = int(rng.integers(2, 11))
    x = rng.choice([-1.0, 1.0], d)
    return random_model(rng, d), x, random_contributions(rng, d), float(rng.uniform(0.05, 0.5))


def measured(model, x, contributions, p, **settings):
    neighborhood = Hypercube().at(x)
    predictor = Predictor(model, neighborhood.original)
    settings = {"n_samples": 2000, "seed": 0} | settings
    return assess(neighborhood, predictor, contributions, flip_probability=p, **settings)


def test_enumeration_lies_in_the_sampled_interval():
    cases, hits, cancelling = 500, {"fidelity": 0, "relevance": 0}, 0
    for seed in range(cases):
        model, x, contributions, p = case(seed)
        fidelity, relevance, _, probability = exact_errors(model, x, contributions, p)
        found = measured(model, x, contributions, p, confidence=0.999)
        hits["fidelity"] += found.fidelity_error.low <= fidelity <= found.fidelity_error.high
        hits["relevance"] += found.relevance_error.low <= relevance <= found.relevance_error.high
        assert found.event_probability == pytest.approx(probability, abs=1e-12)
        cancelling += not found.event_is_literal
    assert cancelling >= 100
    assert min(hits.values()) >= 0.99 * cases, hits


def test_exact_assessment_is_the_enumeration():
    for seed in range(200):
        model, x, contributions, p = case(seed)
        fidelity, relevance, _, _ = exact_errors(model, x, contributions, p, gap=0.3)
        found = measured(model, x, contributions, p, most_enumerated=2**12, anchoring_gap=0.3)
        assert found.fidelity_error.exact
        assert found.relevance_error.exact
        assert found.fidelity_error.value == pytest.approx(fidelity, abs=1e-7)  # drops are rounded to 2^-26
        assert found.relevance_error.value == pytest.approx(relevance, abs=1e-7)


@pytest.mark.parametrize(
    ("contributions", "odd"), [([0.4, -0.4, 0.0], 0.0), ([0.3, 0.3, -0.3], 0.0), ([0.2, 0.1, -0.3], 0.6)]
)
def test_where_contributions_cancel_the_unflipped_support_is_another_event(contributions, odd):
    """Equal and opposite, equal pairs, two against one: broken together they cancel, but f moves."""

    def model(rows):
        return (0.8 - odd) * rows[:, 0] * rows[:, 2] + 0.1 * rows[:, 1] + odd * rows[:, :3].prod(axis=1)

    x, contributions, p = np.array([1.0, 1.0, 1.0]), np.array(contributions), 0.3
    _, relevance, subcube, _ = exact_errors(model, x, contributions, p)
    found = measured(model, x, contributions, p, n_samples=20_000, confidence=0.999)
    assert not found.event_is_literal
    assert abs(relevance - subcube) > 0.01
    assert found.relevance_error.low <= relevance <= found.relevance_error.high
    assert not found.relevance_error.low <= subcube <= found.relevance_error.high


def test_the_sentence_is_true_where_contributions_cancel():
    def model(rows):
        return 0.5 * rows[:, 0] - 0.5 * rows[:, 1]

    e = explain(model, [1, 1, 1], k=2, names=["a", "b", "c"])
    assert e.certificate.event_is_literal is False
    assert "or the contributions of broken facts cancel each other" in str(e.certificate)


def test_unanchored_explanations_are_measured_with_their_gap():
    """Anyone's contributions: an intercept that misses the prediction by 0.2 costs (0.1)^2 of fidelity."""
    explainer = Explainer(lambda rows: 0.5 * rows[:, 0], Hypercube())
    anchored = explainer.assess([1, 1, 1], [0.5, 0.0, 0.0])
    off = explainer.assess([1, 1, 1], [0.5, 0.0, 0.0], intercept=0.2)
    assert anchored.fidelity_error.value == pytest.approx(0.0, abs=1e-12)
    assert off.fidelity_error.value == pytest.approx(0.01, abs=1e-9)
    assert off.relevance_error.value == anchored.relevance_error.value


def test_a_drop_over_the_whole_range_is_within_the_range():
    """Drops are rounded to 2^-26, so the largest possible one may pass its own range by as much."""
    for seed in range(40):
        top = float(np.random.default_rng(seed).uniform(0, 1))
        e = explain(lambda rows, top=top: np.where(rows[:, 0] > 0, top, -1.0), np.ones(20), n_samples=50, k=1)
        assert e.certificate.relevance_error is not None


# Coverage when one stops by looking: the truth is known, the seeds differ.


def rare(rows):
    return np.where((rows[:, 1:6] < 0).all(axis=1), -1.0, 1.0)


def ordinary(rows):
    return np.where((rows[:, 1] < 0) | (rows[:, 2] < 0), -1.0, 1.0)


def smooth(rows):
    return np.tanh(0.5 * rows[:, 0] + 0.3 * rows[:, 1] * rows[:, 2] - 0.2 * rows[:, 3])


@pytest.mark.parametrize(
    ("model", "task"), [(rare, "label"), (ordinary, "label"), (smooth, None)], ids=["rare", "ordinary", "smooth"]
)
def test_certify_until_narrow_covers_in_95_of_100_runs(model, task):
    x, contributions, p = np.ones(7), np.array([0.5, 0, 0, 0, 0, 0, 0]), 0.25
    fidelity, relevance, _, _ = exact_errors(model, x, contributions, p)
    neighborhood = Hypercube().at(x)
    covered, stopped_early, n_runs = 0, 0, 2000
    for seed in range(n_runs):
        predictor = Predictor(model, neighborhood.original, task=task)
        found, narrow = assess_until(
            neighborhood,
            predictor,
            contributions,
            flip_probability=p,
            tolerance=0.1,
            most_samples=8_000,
            seed=seed,
        )
        inside = found.relevance_error.low <= relevance <= found.relevance_error.high
        covered += inside and found.fidelity_error.low <= fidelity <= found.fidelity_error.high
        stopped_early += narrow
    assert covered >= 1869
    assert stopped_early >= 0.5 * n_runs


def test_a_tie_is_not_called_separated():
    """f is symmetric in three literals and there is room for two: "separated" would be a false claim."""

    def model(rows):
        return 0.3 * rows[:, :3].sum(axis=1) + 0.05 * rows[:, 3]

    x = np.ones(12)
    false_claims, n_runs = 0, 150
    for seed in range(n_runs):
        e = explain(model, x, k=2, n_samples="auto", max_queries=16_000, sampling="draw", seed=seed)
        false_claims += e.certificate.stopped_because.startswith("best support separated")
    assert false_claims <= 14  # 5% of 150 is 7.5; 14 leaves a chance of 1% to fail by luck


def test_a_clear_case_is_separated_and_narrow():
    def model(rows):
        return 0.6 * rows[:, 0] + 0.3 * rows[:, 1] + 0.05 * rows[:, 2] * rows[:, 3]

    e = explain(model, np.ones(15), k=2, n_samples="auto", sampling="draw")
    assert e.certificate.stopped_because == (
        "best support separated from the runner-up; relevance interval narrower than 0.02"
    )
    assert e.certificate.relevance_error.width <= 0.02
    assert e.certificate.n_queries < 50_000


@pytest.mark.parametrize("most", [50, 500, 3_000, 20_000])
def test_auto_never_passes_max_queries(most):
    asked = []

    def model(rows):
        asked.append(len(rows))
        return np.tanh(rows @ np.linspace(-0.3, 0.3, rows.shape[1]))

    e = explain(model, np.ones(25), n_samples="auto", max_queries=most)
    assert sum(asked) == e.certificate.n_queries <= most


def test_the_certificate_sample_is_not_the_search_sample():
    """Same seed, other streams: the rows shown to certify are not those shown to search."""
    seen = []

    def model(rows):
        seen.append(rows.copy())
        return rows[:, 0] * 0.5

    explain(model, np.ones(40), n_samples=300, n_certify=600)
    search, wide, narrow = seen[1], seen[2], seen[3]
    assert not (search == wide).all()
    assert not {row.tobytes() for row in search} & {row.tobytes() for row in narrow}
