"""`al.explain`, end to end: anchored, sparse, proven, honest, for any model and any range of outputs."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest

import anchorline as al
from anchorline.errors import InfeasibleError, ParameterError
from helpers.oracle import enumerate_objective

RANGES = [(-1, 1), (0, 1), (1e5, 3e6), (-3, 0), (-273.15, 1e4), (-1e-6, 1e-6), (0, 255), (5, 7)]


def random_model(rng, d, low, high):
    """Smooth, piecewise constant, linear with interactions, or a classifier; outputs in [low, high]."""
    hidden, bias, slopes = rng.normal(size=(d, 6)) / np.sqrt(d), rng.normal(size=6), rng.normal(size=d) / d
    kind = rng.integers(4)

    def unit(z):
        if kind == 0:
            return np.tanh(z @ hidden + bias).mean(axis=1)
        if kind == 1:
            return np.clip(np.round(3 * (z @ slopes)) / 3, -1, 1)
        if kind == 2:
            return np.clip(z @ slopes + 0.3 * z[:, 0] * z[:, -1], -1, 1)
        return np.where(z @ hidden[:, 0] + bias[0] > 0, 1.0, -1.0)

    return lambda z: low + (unit(z) + 1) / 2 * (high - low)


def n_terms_of(e):
    return np.count_nonzero(e.contributions) + (e.intercept != 0)


def check_anchored_and_sparse(e, model, x, k, scale=1.0):
    assert e.prediction == model(np.array([x], dtype=float))[0]
    tolerance = 1e-12 * max(scale, abs(e.prediction))
    assert abs(e.intercept + e.contributions.sum() - e.prediction) <= tolerance
    assert abs(e.intercept + sum(term.contribution for term in e.terms) - e.prediction) <= tolerance
    assert e.certificate.anchoring_residual <= tolerance
    assert abs(e.coef @ x + e.intercept - e.prediction) <= tolerance  # w.x = f(x)
    assert n_terms_of(e) <= e.certificate.n_terms <= k


# --- anchored and sparse, always ---------------------------------------------------------------------


@pytest.mark.parametrize("output_range", RANGES, ids=str)
@pytest.mark.parametrize("solver", ["exact", "iht"])
def test_anchored_and_sparse(solver, output_range):
    for seed in range(25):
        rng = np.random.default_rng([41, seed])
        d, k = int(rng.integers(1, 31)), int(rng.integers(1, 7))
        model, x = random_model(rng, d, *output_range), rng.choice([-1, 1], d)
        e = al.explain(
            model,
            x,
            k=k,
            sigma=float(rng.choice([0, 0.5, 1, 3])),
            n_samples=int(rng.choice([1, 3, 200, 1000])),
            n_certify=0,
            solver=solver,
            output_range=output_range,
            seed=seed,
        )
        check_anchored_and_sparse(e, model, x, k)
        assert e.certificate.status.name == {"exact": "OPTIMAL", "iht": "HEURISTIC"}[solver]
        if solver == "exact":
            assert np.abs(e.scaled).max() <= 1 + 1e-9
            assert e.is_proved
            assert e.certificate.optimality_gap <= 1e-9


@pytest.mark.parametrize("k", [1, 2, 9, 10, 11, 50])
@pytest.mark.parametrize("solver", ["exact", "iht"])
def test_few_terms_and_more_than_there_are_literals(solver, k):
    rng = np.random.default_rng(42)
    model, x = random_model(rng, 9, 0, 1), rng.choice([-1, 1], 9)
    e = al.explain(model, x, k=k, solver=solver, output_range=(0, 1))
    check_anchored_and_sparse(e, model, x, k)


@pytest.mark.parametrize("solver", ["exact", "iht"])
def test_many_terms(solver):
    w = np.linspace(0.01, 0.04, 40)
    x = np.where(np.arange(40) % 3, 1, -1)
    e = al.explain(lambda z: z @ w, x, k=30, solver=solver, time_limit=0.1, n_samples=500)
    check_anchored_and_sparse(e, lambda z: z @ w, x, 30)


def test_more_terms_never_fit_worse():
    rng = np.random.default_rng(43)
    model, x = random_model(rng, 25, -1, 1), rng.choice([-1, 1], 25)
    errors = [al.explain(model, x, k=k, n_samples=800, n_certify=0).certificate.objective for k in range(1, 8)]
    assert all(more <= fewer + 1e-12 for fewer, more in itertools.pairwise(errors))
    assert errors[-1] < errors[0]


def test_the_heuristic_is_never_better_than_the_optimum():
    for seed in range(10):
        rng = np.random.default_rng([44, seed])
        model, x = random_model(rng, 20, -1, 1), rng.choice([-1, 1], 20)
        options = {"k": 4, "n_samples": 500, "n_certify": 0, "box": None}
        best = al.explain(model, x, **options).certificate.objective
        assert al.explain(model, x, solver="iht", **options).certificate.objective >= best - 1e-9


@pytest.mark.parametrize("prediction", [0.3, -0.01])
def test_a_small_prediction_in_a_wide_range(prediction):
    def model(z):
        return prediction + 3e5 / 7 * (z[:, 0] - 1) + 1e5 / 3 * (z[:, 1] - 1) * z[:, 2] + 1e4 / 9 * (z[:, 3] - 1)

    x = np.ones(5)
    for k in (2, 3, 4):
        # terms of size 5e4 cannot be added up more exactly than their own last bits
        check_anchored_and_sparse(al.explain(model, x, k=k, output_range=(-1e6, 1e6)), model, x, k, scale=1e6)


# --- the right answer --------------------------------------------------------------------------------


@pytest.mark.parametrize("output_range", [(-1, 1), (0, 1), (1e5, 3e6)], ids=str)
@pytest.mark.parametrize("sigma", [0.0, 1.0, 2.0])
def test_enumerated_objective_is_the_oracles(output_range, sigma):
    """Straight from the definition: all 2^d neighbors with their probabilities, every support."""
    low, high = output_range
    p = 1 / (1 + np.exp(sigma))
    for seed in range(4):
        rng = np.random.default_rng([45, seed])
        d, k = 6, int(rng.integers(1, 5))
        model, x = random_model(rng, d, low, high), rng.choice([-1, 1], d)
        flips = np.array(list(itertools.product([0, 1], repeat=d)))
        scaled = 2 * (model(x * (1 - 2.0 * flips)) - low) / (high - low) - 1
        at_x = 2 * (model(x[None] * 1.0)[0] - low) / (high - low) - 1
        weights = np.prod(np.where(flips, p, 1 - p), axis=1)
        truth = enumerate_objective(flips, (at_x - scaled) / 2, weights, k, at_x, 1.0, -1 - 2 * low / (high - low))
        e = al.explain(model, x, k=k, sigma=sigma, output_range=output_range, n_certify=0)
        assert e.certificate.exhaustive
        assert e.certificate.n_samples == 64
        assert e.certificate.objective == pytest.approx(truth, abs=2e-7)  # drops are rounded to 2^-26


def test_drawn_objective_is_that_of_the_rows_shown():
    """The model itself writes down what it was shown; the objective is the mean square over those rows."""
    shown = []
    rng = np.random.default_rng(46)
    inner, x = random_model(rng, 18, -1, 1), rng.choice([-1, 1], 18)

    def model(z):
        shown.append((z.copy(), inner(z)))
        return shown[-1][1]

    e = al.explain(model, x, k=4, n_samples=5000, n_certify=0)
    rows, outputs = (np.concatenate(parts) for parts in zip(*shown[1:], strict=True))
    assert len(rows) == 5000 == e.certificate.n_samples
    fitted = rows @ e.coef + e.intercept
    assert np.mean(((outputs - fitted) / 2) ** 2) == pytest.approx(e.certificate.objective, abs=1e-7)
    assert np.mean(rows != x) == pytest.approx(1 / (1 + np.e), abs=0.01)


@pytest.mark.parametrize(
    ("d", "n_samples", "output_range"), [(10, 5000, (-1, 1)), (60, 5000, (-1, 1)), (60, 2000, (-4, 4))]
)
@pytest.mark.parametrize("solver", ["exact", "iht"])
def test_a_sparse_linear_model_is_found_again(solver, d, n_samples, output_range):
    w = np.zeros(d)
    w[[1, 4, d - 1]] = 0.4, -0.25, 0.15
    rng = np.random.default_rng(47)
    for _ in range(3):
        x = rng.choice([-1, 1], d)
        e = al.explain(
            lambda z: z @ w + 0.1, x, k=4, n_samples=n_samples, output_range=output_range, solver=solver
        )
        np.testing.assert_allclose(e.coef, w, rtol=0, atol=1e-6)
        assert e.intercept == pytest.approx(0.1, abs=1e-6)
        assert e.support.tolist() == [1, 4, d - 1]
        assert e.certificate.objective <= 1e-12
        assert e.certificate.n_terms == 4


def test_without_an_intercept_where_none_is_needed():
    for output_range in [(-1, 1), (-2, 1), (-0.5, 3)]:
        e = al.explain(lambda z: 0.3 * z[:, 0] - 0.2 * z[:, 1], [1, 1, -1], k=2, output_range=output_range)
        assert e.intercept == 0  # zero in the reader's own units
        assert e.certificate.n_terms == 2
        np.testing.assert_allclose(e.contributions, [0.3, -0.2, 0.0], rtol=0, atol=1e-6)


@pytest.mark.parametrize("output_range", [(-1, 1), (-2, 1)])
def test_an_intercept_that_is_rounding_is_none(output_range):
    """Room for it does not make it a term: k = 5, two literals, and a model that needs one."""
    e = al.explain(lambda z: 0.5 * z[:, 0], [1, 1], k=5, output_range=output_range, n_certify=0)
    assert e.intercept == 0
    assert e.certificate.n_terms == 1


def test_labels():
    def model(z):
        return np.where(z[:, 0] + z[:, 1] > 0, "approved", "refused")

    e = al.explain(model, [1, 1, -1, -1], k=2, task="label")
    assert e.prediction == 1
    assert e.support.tolist() == [0, 1]
    again = al.explain(lambda z: np.where(z[:, 0] + z[:, 1] > 0, 1, -1), [1, 1, -1, -1], k=2)
    np.testing.assert_allclose(again.contributions, e.contributions, atol=1e-12)


# --- nothing to explain ------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["exact", "iht"])
@pytest.mark.parametrize(
    ("value", "output_range"), [(0.7, (0, 1)), (-0.3, (-1, 1)), (2e5, (1e5, 3e6)), (1.0, (-1, 1))]
)
def test_a_constant_model_is_its_constant(solver, value, output_range):
    for d in (3, 20):
        e = al.explain(lambda z: np.full(len(z), value), [1] * d, k=3, output_range=output_range, solver=solver)
        assert e.intercept == e.prediction == value
        assert not e.contributions.any()
        assert e.terms == ()
        assert e.certificate.objective == 0
        assert e.certificate.n_terms == 1
        assert not e.is_degenerate


@pytest.mark.parametrize("solver", ["exact", "iht"])
def test_zero_explained_by_nothing_is_flagged(solver):
    constant = al.explain(lambda z: np.zeros(len(z)), [1, -1, 1], k=2, solver=solver)
    varying = al.explain(lambda z: (z[:, 0] - 1) / 2, [1, -1, 1], k=1, solver=solver)
    for e in (constant, varying):
        assert e.prediction == e.intercept == 0
        assert e.certificate.n_terms == 0
        assert e.is_degenerate
        assert al.Explanation.from_json(e.to_json()).is_degenerate
    assert varying.certificate.objective > 0.01
    assert not al.explain(lambda z: (z[:, 0] - 1) / 2, [1, -1, 1], k=2).is_degenerate


def test_zero_in_the_readers_own_units_is_degenerate_too():
    e = al.explain(lambda z: np.zeros(len(z)), [1, -1], output_range=(0, 1))
    assert e.is_degenerate
    assert e.intercept == 0


def test_one_literal():
    e = al.explain(lambda z: 0.5 * z[:, 0], [-1], k=1)
    assert e.contributions.tolist() == [-0.5]
    assert e.intercept == 0
    assert e.coef.tolist() == [0.5]


# --- enumerate and draw ------------------------------------------------------------------------------


def smooth(z):
    return np.tanh(0.6 * z[:, 0] - 0.4 * z[:, 2] + 0.3 * z[:, 3] * z[:, 4])


def test_auto_enumerates_where_that_costs_no_more():
    options = {"k": 3, "n_certify": 0}
    for n_samples, exhaustive, n in [(64, True, 64), (63, False, 63), (5000, True, 64)]:
        certificate = al.explain(smooth, [1] * 6, n_samples=n_samples, **options).certificate
        assert (certificate.exhaustive, certificate.n_samples, certificate.n_queries) == (exhaustive, n, n + 1)
    drawn = al.explain(smooth, [1] * 6, n_samples=5000, sampling="draw", **options).certificate
    assert (drawn.exhaustive, drawn.n_samples) == (False, 5000)
    asked = al.explain(smooth, [1] * 6, n_samples=5, sampling="enumerate", **options).certificate
    assert (asked.exhaustive, asked.n_samples) == (True, 64)


@pytest.mark.parametrize("sigma", [0.0, 1.0, 2.0])
def test_many_draws_approach_the_enumeration(sigma):
    def model(z):  # its three best literals are clear: no ties
        return np.tanh(0.5 * z[:, 0] - 0.3 * z[:, 2] + 0.2 * z[:, 4] + 0.05 * z[:, 1] * z[:, 3] + 0.1)

    x = [1, -1, 1, 1, -1, 1]
    options = {"k": 4, "sigma": sigma, "n_certify": 0}
    whole = al.explain(model, x, **options)
    drawn = al.explain(model, x, sampling="draw", n_samples=200_000, **options)
    assert drawn.certificate.objective == pytest.approx(whole.certificate.objective, rel=0.05)
    assert whole.support.tolist() == [0, 2, 4]
    np.testing.assert_allclose(drawn.contributions, whole.contributions, atol=0.01)
    few = al.explain(model, x, sampling="draw", n_samples=50, **options)
    assert few.contributions.tobytes() != whole.contributions.tobytes()


def test_seeds():
    x = [1, -1] * 10
    options = {"n_samples": 300, "n_certify": 0}
    first, again, other = (al.explain(smooth, x, seed=seed, **options) for seed in (1, 1, 2))
    assert first.to_json() == again.to_json()
    assert first.certificate.objective != other.certificate.objective
    np.random.seed(5)  # noqa: NPY002  nobody's seed but ours counts
    assert al.explain(smooth, x, seed=1, **options).to_json() == first.to_json()


def test_sigma_is_a_flip_probability():
    x, p = [1] * 30, 1 / (1 + np.exp(2.0))
    by_sigma = al.explain(smooth, x, sigma=2.0, n_samples=500, n_certify=0)
    given = al.explain(smooth, x, flip_probability=p, n_samples=500, n_certify=0)
    assert given.contributions.tobytes() == by_sigma.contributions.tobytes()


def test_what_is_too_rare_to_enumerate_is_drawn():
    """Weights are rounded to 2^-50: products of less than 1e-6 would be wrong, so they are not used."""
    e = al.explain(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 1], [1] * 6, k=2, flip_probability=1e-7)
    assert not e.certificate.exhaustive
    with pytest.raises(ParameterError, match="flip probability of at least 1e-06"):
        al.explain(lambda z: 0.5 * z[:, 0], [1] * 6, sigma=400.0, sampling="enumerate")


@pytest.mark.parametrize("p", [1e-6, 1e-4, 0.01, 0.5, 0.99])
def test_rare_flips_are_not_taken_for_degenerate_ones(p):
    e = al.explain(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 1], [1, 1, 1], k=2, flip_probability=p)
    assert e.certificate.exhaustive
    assert e.contributions == pytest.approx([0.5, 0.25, 0], abs=1e-4)


@pytest.mark.parametrize("solver", ["exact", "iht"])
def test_the_largest_sigmas(solver):
    e = al.explain(smooth, [1] * 6, sigma=800.0, solver=solver, n_certify=0)
    assert e.prediction == e.intercept


# --- limits ------------------------------------------------------------------------------------------


def hard_model(z):
    return np.tanh(z[:, :30] @ np.linspace(-0.3, 0.4, 30) + 0.4 * z[:, 0] * z[:, 1])


@pytest.mark.parametrize("limit", [{"time_limit": 0}, {"time_limit": 0.0}, {"node_limit": 0}, {"node_limit": 1}])
def test_a_limit_leaves_an_honest_gap(limit):
    x = [1, -1] * 30
    options = {"k": 6, "n_samples": 300, "n_certify": 0}
    proven = al.explain(hard_model, x, **options)
    e = al.explain(hard_model, x, **options, **limit)
    assert proven.certificate.status is al.Status.OPTIMAL
    assert e.certificate.status is al.Status.LIMIT
    best = proven.certificate.objective
    assert e.certificate.lower_bound <= best + 1e-12 <= e.certificate.objective + 2e-12
    assert e.certificate.optimality_gap == e.certificate.objective - e.certificate.lower_bound > 0
    assert not e.is_proved
    check_anchored_and_sparse(e, hard_model, x, 6)


@pytest.mark.parametrize("limit", [{"time_limit": 0}, {"node_limit": 0}])
def test_what_needs_no_search_is_proven_at_any_limit(limit):
    e = al.explain(lambda z: np.full(len(z), 0.5), [1] * 20, n_samples=100, n_certify=0, **limit)
    assert e.certificate.status is al.Status.OPTIMAL
    assert e.certificate.optimality_gap == 0


def test_generous_limits_change_nothing_but_the_parameters():
    x = [1, -1] * 15
    options = {"k": 4, "n_samples": 300, "n_certify": 0}
    free, limited = al.explain(hard_model, x, **options), al.explain(hard_model, x, time_limit=600, **options)
    assert limited.certificate.status is al.Status.OPTIMAL
    assert limited.contributions.tobytes() == free.contributions.tobytes()


def test_a_box_too_small():
    with pytest.raises(InfeasibleError, match="raise `k` or `box`"):
        al.explain(smooth, [1] * 6, k=2, box=0.01)


def test_a_box_too_small_at_a_limit():
    with pytest.raises(InfeasibleError):
        al.explain(smooth, [1] * 6, k=2, box=0.01, node_limit=0)


def test_without_a_box_terms_may_be_larger():
    def steep(z):
        return np.where((z[:, :3] < 0).sum(axis=1) == 1, -1.0, 1.0)

    x = [1] * 8
    boxed, free = (al.explain(steep, x, k=4, sigma=3.0, box=box, n_certify=0) for box in (0.4, None))
    assert np.abs(boxed.scaled).max() <= 0.4 + 1e-9
    assert np.abs(free.scaled).max() > 0.4
    assert free.certificate.objective <= boxed.certificate.objective + 1e-12


# --- the seams ---------------------------------------------------------------------------------------


def test_names_and_output_reach_the_explanation():
    e = al.explain(smooth, [1, -1, 1, 1, -1], names=["a", ("b yes", "b no"), "c", "d", "e"], output="rate", k=3)
    assert [literal.text for literal in e.literals] == ["a = +1", "b no", "c = +1", "d = +1", "e = -1"]
    assert e.output == "rate"
    assert str(e).partition("\n")[0].rpartition("->")[2].startswith(" rate = ")
    assert e.instance == (1, -1, 1, 1, -1)
    assert e.parameters["k"] == 3
    assert e.parameters["seed"] == 0


def test_an_explainer_is_not_used_up():
    explainer = al.Explainer(smooth, al.Hypercube())
    first = explainer.explain([1] * 6).to_json()
    explainer.explain([-1] * 6)
    assert explainer.explain([1] * 6).to_json() == first == al.explain(smooth, [1] * 6).to_json()


@dataclass(frozen=True)
class Words:
    """A space nobody in the package knows: a text is a list of words; a broken literal is a missing word."""

    fingerprint = "words"

    def at(self, instance):
        return WordNeighborhood(tuple(instance.split()))


@dataclass(frozen=True)
class WordNeighborhood:
    words: tuple
    deterministic = True

    @property
    def literals(self):
        return tuple(al.Literal(word, f"the word {word!r} is there") for word in self.words)

    @property
    def key(self):
        return " ".join(self.words).encode()

    @property
    def original(self):
        return [" ".join(self.words)]

    @property
    def instance(self):
        return list(self.words)

    def realize(self, flips, rng):
        return [" ".join(word for word, gone in zip(self.words, row, strict=True) if not gone) for row in flips]


def test_a_space_from_outside():
    def angry(texts):
        assert isinstance(texts, list)
        return [0.6 * ("refund" in text) + 0.2 * ("now" in text) - 0.1 for text in texts]

    e = al.Explainer(angry, Words(), output="anger").explain("please refund me now", k=3)
    assert [term.literal.text for term in e.terms] == ["the word 'refund' is there", "the word 'now' is there"]
    assert [term.contribution for term in e.terms] == pytest.approx([0.3, 0.1], abs=1e-6)
    assert al.Explanation.from_json(e.to_json()).to_json() == e.to_json()


@dataclass(frozen=True)
class Switches:
    """A space of its own: everything on; a flip switches off."""

    fingerprint = "switches"
    deterministic = True
    key = b"on"
    instance = (1,) * 7
    literals = tuple(al.Literal(name, f"{name} is on") for name in "abcdefg")
    original = np.ones((1, 7))

    def at(self, instance):
        return self

    def realize(self, flips, rng):
        return np.where(flips, 0.0, 1.0)


SPACES = {
    "own": (Switches(), [1] * 7),
    "hypercube": (al.Hypercube(list("abcdefg")), np.ones(7)),
    "table": (al.Table(np.random.default_rng(0).normal(size=(50, 7))), 3),
}


@pytest.mark.parametrize("space", SPACES)
def test_models_of_arrays_get_them_row_by_row(space):
    def model(inputs):
        assert inputs.flags.c_contiguous
        return np.tanh(inputs.sum(axis=1))

    space, x = SPACES[space]
    al.Explainer(model, space, output_range=(-1, 1)).explain(x, n_samples=700, n_certify=700, sampling="draw")
