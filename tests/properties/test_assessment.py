"""Fidelity, relevance and stability against enumeration; coverage under every stopping rule."""

import numpy as np
import pytest

from anchorline.explainer import Explainer, explain
from anchorline.search.assess import assess, assess_until
from anchorline.spaces import Hypercube
from helpers.cases import open_case
from helpers.enumeration import exact_errors, random_contributions, random_model


def case(seed):
    rng = np.random.default_rng([31, seed])
    d = int(rng.integers(2, 11))
    x = rng.choice([-1.0, 1.0], d)
    return random_model(rng, d), x, random_contributions(rng, d), float(rng.uniform(0.05, 0.5))


def measured(model, x, contributions, p, **settings):
    opened = open_case(model, x, flip_probability=p)
    return assess(opened, contributions, **{"n_samples": 2000} | settings)


def test_enumeration_lies_in_the_sampled_interval():
    cases, hits, cancelling = 500, {"fidelity": 0, "relevance": 0}, 0
    for seed in range(cases):
        model, x, contributions, p = case(seed)
        fidelity, relevance, _, probability = exact_errors(model, x, contributions, p)
        assessment = measured(model, x, contributions, p, confidence=0.999)
        hits["fidelity"] += assessment.fidelity_error.low <= fidelity <= assessment.fidelity_error.high
        hits["relevance"] += assessment.relevance_error.low <= relevance <= assessment.relevance_error.high
        assert assessment.event_probability == pytest.approx(probability, abs=1e-12)
        cancelling += not assessment.event_is_literal
    assert cancelling >= 100
    assert min(hits.values()) >= 0.99 * cases, hits


def test_exact_assessment_is_the_enumeration():
    for seed in range(200):
        model, x, contributions, p = case(seed)
        fidelity, relevance, _, _ = exact_errors(model, x, contributions, p, gap=0.3)
        assessment = measured(model, x, contributions, p, max_enumerated=2**12, anchoring_gap=0.3)
        assert assessment.fidelity_error.exact
        assert assessment.relevance_error.exact
        assert assessment.fidelity_error.value == pytest.approx(fidelity, abs=1e-7)  # drops are rounded to 2^-26
        assert assessment.relevance_error.value == pytest.approx(relevance, abs=1e-7)


@pytest.mark.parametrize(
    ("contributions", "odd"), [([0.4, -0.4, 0.0], 0.0), ([0.3, 0.3, -0.3], 0.0), ([0.2, 0.1, -0.3], 0.6)]
)
def test_where_contributions_cancel_the_unflipped_support_is_another_event(contributions, odd):
    """Contributions that are broken together cancel, but f changes."""

    def model(rows):
        return (0.8 - odd) * rows[:, 0] * rows[:, 2] + 0.1 * rows[:, 1] + odd * rows[:, :3].prod(axis=1)

    x, contributions, p = np.array([1.0, 1.0, 1.0]), np.array(contributions), 0.3
    _, relevance, subcube, _ = exact_errors(model, x, contributions, p)
    assessment = measured(model, x, contributions, p, n_samples=20_000, confidence=0.999)
    assert not assessment.event_is_literal
    assert abs(relevance - subcube) > 0.01
    assert assessment.relevance_error.low <= relevance <= assessment.relevance_error.high
    assert not assessment.relevance_error.low <= subcube <= assessment.relevance_error.high


def test_the_sentence_is_true_where_contributions_cancel():
    def model(rows):
        return 0.5 * rows[:, 0] - 0.5 * rows[:, 1]

    e = explain(model, [1, 1, 1], k=2, names=["a", "b", "c"])
    assert e.certificate.event_is_literal is False
    assert "or the contributions of broken facts cancel each other" in str(e.certificate)


def test_unanchored_explanations_are_measured_with_their_gap():
    """An intercept that misses the prediction by 0.2 adds (0.1)^2 to the fidelity error."""
    explainer = Explainer(lambda rows: 0.5 * rows[:, 0], Hypercube())
    anchored = explainer.assess([1, 1, 1], [0.5, 0.0, 0.0])
    off = explainer.assess([1, 1, 1], [0.5, 0.0, 0.0], intercept=0.2)
    assert anchored.fidelity_error.value == pytest.approx(0.0, abs=1e-12)
    assert off.fidelity_error.value == pytest.approx(0.01, abs=1e-9)
    assert off.relevance_error.value == anchored.relevance_error.value


def test_a_drop_over_the_whole_range_is_within_the_range():
    """Drops are rounded to 2^-26, so the largest possible drop may exceed its range by the rounding."""
    n_above = 0
    for seed in range(40):
        top = float(np.random.default_rng(seed).uniform(0, 1))
        e = explain(lambda rows, top=top: np.where(rows[:, 0] > 0, top, -1.0), np.ones(20), n_samples=50, k=1)
        largest = (1 + top) / 2
        rounded = round(largest * 2**26) / 2**26
        n_above += rounded > largest
        everywhere, inside = e.certificate.baseline_error, e.certificate.relevance_error
        n_flipped = (
            everywhere.value / rounded**2 * everywhere.n_samples
        )  # every flip of literal 0 is the largest drop
        assert n_flipped == pytest.approx(round(n_flipped), abs=1e-9)
        assert n_flipped > 0.5
        assert everywhere.low <= everywhere.value <= everywhere.high <= (largest + 2**-26) ** 2
        assert e.support.tolist() == [0]
        assert inside.value == inside.low == 0.0  # while literal 0 holds, the output does not change
        assert 0.0 < inside.high <= (largest + 2**-26) ** 2
    assert n_above >= 10  # otherwise rounding never exceeds the range


# Coverage of intervals that stop the sampling: the truth is known, and every run has another seed.


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
    covered, stopped_early, n_runs = 0, 0, 2000
    for seed in range(n_runs):
        assessment, narrow = assess_until(
            open_case(model, x, task=task, flip_probability=p, seed=seed),
            contributions,
            lambda measured: measured.relevance_error.width <= 0.1,
            max_samples=8_000,
        )
        inside = assessment.relevance_error.low <= relevance <= assessment.relevance_error.high
        covered += inside and assessment.fidelity_error.low <= fidelity <= assessment.fidelity_error.high
        stopped_early += narrow
    assert covered >= 1869
    assert stopped_early >= 0.5 * n_runs


def test_a_tie_is_not_called_separated():
    """f is symmetric in three literals, and k allows two of them, so "separated" would be a false claim."""

    def model(rows):
        return 0.3 * rows[:, :3].sum(axis=1) + 0.05 * rows[:, 3]

    x = np.ones(12)
    false_claims, n_runs = 0, 150
    for seed in range(n_runs):
        e = explain(model, x, k=2, n_samples="auto", max_queries=16_000, sampling="draw", seed=seed)
        false_claims += e.certificate.stopped_because.startswith("best support separated")
    assert false_claims <= 14  # 5% of 150 is 7.5; with 14 the test fails by chance in 1% of cases


def test_a_clear_case_is_separated_and_narrow():
    def model(rows):
        return 0.6 * rows[:, 0] + 0.3 * rows[:, 1] + 0.05 * rows[:, 2] * rows[:, 3]

    e = explain(model, np.ones(15), k=2, n_samples="auto", sampling="draw")
    assert e.certificate.stopped_because == (
        "best support separated from the runner-up; relevance interval narrower than 0.02"
    )
    assert e.certificate.relevance_error.width <= 0.02
    assert e.certificate.n_queries < 50_000


@pytest.mark.parametrize("max_queries", [50, 500, 3_000, 20_000])
def test_auto_never_passes_max_queries(max_queries):
    batch_sizes = []

    def model(rows):
        batch_sizes.append(len(rows))
        return np.tanh(rows @ np.linspace(-0.3, 0.3, rows.shape[1]))

    e = explain(model, np.ones(25), n_samples="auto", max_queries=max_queries)
    assert sum(batch_sizes) == e.certificate.n_queries <= max_queries


def test_the_certificate_sample_is_not_the_search_sample():
    """The search and the certificate use different streams of the same seed, so their rows differ."""
    batches = []

    def model(rows):
        batches.append(rows.copy())
        return rows[:, 0] * 0.5

    explain(model, np.ones(40), n_samples=300, n_certify=600)
    search, wide, narrow = batches[1], batches[2], batches[3]
    assert not (search == wide).all()
    assert not {row.tobytes() for row in search} & {row.tobytes() for row in narrow}
