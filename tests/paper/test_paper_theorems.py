"""The theorems against the figures of the paper, in rational arithmetic, and by simulation."""

import itertools
import math
import random
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from anchorline import paper as g
from anchorline.errors import ParameterError

ADULT = {"k": 5, "d": 42, "sigma": 1.0, "epsilon": 0.01, "delta": 0.05}


# --- the figures that the paper quotes ------------------------------------------------------------------------


def to_two_digits(number: float) -> float:
    return float(f"{number:.2g}")


@pytest.mark.parametrize(("sigma", "quoted"), [(0.0, 32), (1.0, 4.8), (2.0, 1.9), (3.0, 1.3)])
def test_relevance_factor_as_quoted(sigma, quoted):
    assert to_two_digits(g.relevance_factor(sigma, 5)) == quoted


def test_relevance_factor_of_the_locality_figure():
    assert round(g.relevance_factor(1.75, 5), 2) == 2.23
    assert g.relevance_factor(0.0, 5000) == math.inf


@pytest.mark.parametrize(("sigma", "quoted"), [(1.0, 1.6), (2.0, 5.7), (3.0, 31)])
def test_locality_cost_as_quoted(sigma, quoted):
    assert to_two_digits(g.locality_cost(sigma)) == quoted


def test_sample_sizes_as_quoted():
    assert to_two_digits(g.required_samples(5, 100, 0.1, 0.05)) == 2.9e6
    assert to_two_digits(g.iht_required_samples(**ADULT, c0=1.0, c1=1.0)) == 5.4e10  # "on the order of 1e11"


def test_five_thousand_samples_are_vacuous():
    epsilon = g.achievable_epsilon(5000, 5, 42, 0.05)
    assert round(epsilon, 1) == 2.2
    assert g.is_vacuous(epsilon)
    assert not g.is_vacuous(g.achievable_epsilon(50_000, 5, 42, 0.05))
    assert g.is_vacuous(math.nan)


# --- the algebra of the theorems ------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.0, 3.0])
def test_constants_of_the_standing_assumption(sigma):
    constants, variance = g.iht_constants(sigma), 1 / math.cosh(sigma / 2) ** 2
    assert constants.theta == pytest.approx(1 / 18)
    assert constants.alpha == pytest.approx(17 / 18 * variance)
    assert constants.beta == pytest.approx(19 / 18 * variance)
    assert constants.rho == pytest.approx(51 / 152)
    assert constants.nu**2 + constants.variance == pytest.approx(1)
    assert g.iht_step(sigma) == constants.step == pytest.approx(18 / 19 * math.cosh(sigma / 2) ** 2)
    assert g.iht_radius(5, sigma) == pytest.approx(5 + 4 * math.sqrt(5 / constants.alpha))


def test_other_condition_targets():
    for gamma in (1.1, 2.0, 3.5):
        constants = g.iht_constants(1.0, gamma)
        assert constants.beta / constants.alpha == pytest.approx((3 * gamma + 1) / (gamma + 3))
        assert constants.rho < 1
    with pytest.raises(ParameterError, match="39/11"):
        g.iht_constants(1.0, 39 / 11)


@pytest.mark.parametrize("sigma", [0.0, 1.0, 4.0])
def test_end_to_end_factor_dominates_what_the_proof_needs(sigma):
    constants = g.iht_constants(sigma)
    needed = 1 + 36 * 5 / (constants.beta * (1 - constants.rho) ** 2)
    assert needed <= g.end_to_end_factor(5, sigma) <= 1.06 * needed


@pytest.mark.parametrize("radius", [None, 1.0, 15.4])
@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.013])
def test_epsilon_and_samples_are_inverse(epsilon, radius):
    m = g.required_samples(4, 30, epsilon, 0.01, radius)
    assert g.achievable_epsilon(m, 4, 30, 0.01, radius) <= epsilon
    assert g.achievable_epsilon(m - 1, 4, 30, 0.01, radius) > epsilon


def test_epsilon_of_the_proof_is_no_larger_than_the_theorem_s():
    k, d, m, delta = 5, 42, 5000, 0.05  # the last display of the proof, before (a + b)^2 <= 2 a^2 + 2 b^2
    deviation = (k + 1) ** 2 / math.sqrt(m)
    deviation *= math.sqrt(2 * math.log(2 * d)) + math.sqrt(2 * math.log(2 / delta)) / 4
    assert deviation <= g.achievable_epsilon(m, k, d, delta)


def test_iht_sample_size_is_the_displayed_formula():
    k, d, sigma, epsilon, delta = ADULT.values()
    displayed = (g.iht_radius(k, sigma) + 1) ** 4 / epsilon**2 * (16 * math.log(2 * d) + math.log(4 / delta))
    m = g.iht_required_samples(**ADULT, c0=1.0, c1=1.0)
    assert m == math.ceil(displayed)
    assert g.iht_achievable_epsilon(m, k, d, sigma, delta, c0=1.0, c1=1.0) == pytest.approx(epsilon)


def test_open_constants_take_over_when_large():
    small, large = (g.iht_required_samples(**ADULT, c0=c0, c1=1.0) for c0 in (1.0, 1e8))
    assert large > small
    assert g.iht_achievable_epsilon(10**11, 5, 42, 1.0, 0.05, c0=1e9, c1=1.0) == math.inf


def test_restricted_convexity_sample_size():
    d, s, delta, omega = 42, 15, 0.05, 0.029
    mean_term = 2 * s / omega**2 * math.log(4 * d / delta)
    assert g.rsc_required_samples(s, d, 1.0, delta, omega, c0=1e-9, c1=1.0) == math.ceil(mean_term)
    curvature = 81 * (s * math.log(math.e * d / s) + math.log(2 / delta)) * math.cosh(0.5) ** 4
    assert g.rsc_required_samples(s, d, 1.0, delta, math.inf, c0=1.0, c1=1.0) == math.ceil(curvature)
    above = g.rsc_required_samples(1000, d, 1.0, delta, omega, c0=1.0, c1=1.0)
    assert above == g.rsc_required_samples(d, d, 1.0, delta, omega, c0=1.0, c1=1.0)


def test_mean_tolerance_is_void_without_locality():
    assert g.iht_mean_tolerance(5, 0.0) == math.inf
    assert g.iht_required_samples(5, 42, 0.0, 1.0, 0.05, c0=1e-9, c1=1.0) > 0


def test_mean_condition_can_exceed_the_generalization_one():
    # The paper calls it dominated, which is wrong at a tolerance near 1 in a very local neighborhood.
    uniform = g.required_samples(5, 42, 0.5, 0.025, g.iht_radius(5, 6.0))
    assert g.iht_required_samples(5, 42, 6.0, 1.0, 0.05, c0=1e-9, c1=1.0) > uniform


def test_iterations():
    always = g.iht_iterations(5, 1.0, 0.01)
    assert always == g.iht_iterations(5, 1.0, 0.01, xi=g.iht_residual_bound(5))
    assert g.iht_iterations(5, 1.0, 0.01, xi=0.0) < always <= g.iht_iterations(5, 1.0, 0.001)
    assert g.iht_residual_bound(5, 0.01) == pytest.approx(0.2 * math.sqrt(15))
    rho, reach = 51 / 152, 0.01 / (4 * math.sqrt(15))
    assert rho**always * (math.sqrt(5) + 1) <= reach < rho ** (always - 1) * (math.sqrt(5) + 1)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: g.relevance_factor(-1.0, 5), "sigma"),
        (lambda: g.relevance_factor(math.nan, 5), "sigma"),
        (lambda: g.relevance_factor(1.0, -1), "n_literals"),
        (lambda: g.relevance_factor_from_event(0.0), "event_probability"),
        (lambda: g.required_samples(0, 10, 0.1, 0.05), "k"),
        (lambda: g.required_samples(2.5, 10, 0.1, 0.05), "k"),
        (lambda: g.required_samples(5, 0, 0.1, 0.05), "d"),
        (lambda: g.required_samples(5, 10, 1.5, 0.05), "epsilon"),
        (lambda: g.required_samples(5, 10, 1e-200, 0.05), "epsilon"),
        (lambda: g.required_samples(5, 10, 0.1, 0.0), "delta"),
        (lambda: g.required_samples(5, 10, 0.1, 0.05, radius=0.5), "radius"),
        (lambda: g.achievable_epsilon(0, 5, 10, 0.05), "n_samples"),
        (lambda: g.iht_step(1e6), "sigma"),
        (lambda: g.iht_iterations(5, 1.0, 0.1, xi=-1.0), "xi"),
        (lambda: g.iht_residual_bound(5, None), "objective"),
        (lambda: g.rsc_required_samples(15, 42, 1.0, 0.05, 0.0, c0=1.0, c1=1.0), "omega"),
        (lambda: g.iht_required_samples(**ADULT, c0=0.0, c1=1.0), "c0"),
        (lambda: g.iht_required_samples(**ADULT, c0=1.0, c1=-1.0), "c1"),
    ],
)
def test_errors_state_the_value_the_requirement_and_what_to_type(call, name):
    with pytest.raises(ParameterError, match=name) as caught:
        call()
    assert "must" in str(caught.value)
    assert "Type" in str(caught.value)


# --- the theorem on empirical fidelity, by simulation -----------------------------------------------------------


def test_no_deviation_exceeds_the_theorem_s_tolerance():
    """F(w) <= F^(w) + epsilon for all anchored w of k terms in the box at once: tried on the worst of many w."""
    d, k, m, sigma, delta = 8, 2, 400, 1.0, 0.05
    epsilon, rng, worst = g.achievable_epsilon(m, k, d, delta), np.random.default_rng(0), 0.0
    flips = np.array(list(itertools.product((False, True), repeat=d)))
    p = g.flip_probability(sigma)
    weights = np.prod(np.where(flips, p, 1 - p), axis=1)
    outputs = np.where(rng.random(2**d) < 0.5, -1.0, 1.0)
    drops = (outputs[0] - outputs) / 2
    explanations = np.zeros((500, d))  # anchored by their intercept, and inside the box
    for row in explanations:
        row[rng.choice(d, k - 1, replace=False)] = rng.uniform(-1, 1)
    losses = (drops - explanations @ flips.T) ** 2
    truth = losses @ weights
    for _ in range(200):
        counts = rng.multinomial(m, weights)
        worst = max(worst, float((truth - losses @ counts / m).max()))
    assert 0.02 < worst <= epsilon


# --- the lemma R <= F / P[A] <= (1 - p)^-s F in rational arithmetic, from the definitions ----------------------

PROBABILITIES = [Fraction(1, 2), Fraction(3, 8), Fraction(2, 7), Fraction(1, 8), Fraction(1, 40)]
KINDS = ("free", "opposite", "opposite", "pairs", "sums", "equal", "no intercept", "intercept only", "empty")


@dataclass(frozen=True)
class Pair:
    """A model, given as a table over the cube, and an explanation w, intercept first, of its value at ``x``."""

    x: tuple[int, ...]
    p: Fraction
    f: dict[tuple[int, ...], Fraction]
    w: tuple[Fraction, ...]

    @property
    def stays(self):
        """The probability that no literal of the support flips."""
        return (1 - self.p) ** sum(coefficient != 0 for coefficient in self.w[1:])


@dataclass(frozen=True)
class Errors:
    fidelity: Fraction
    relevance: Fraction
    event_probability: Fraction


def dot(w, z):
    return w[0] + sum(coefficient * value for coefficient, value in zip(w[1:], z, strict=True))


def errors_of(pair: Pair) -> Errors:
    """Both errors by their definitions, as sums over the whole cube; the event is w.z = w.x."""
    fidelity = relevant = event = Fraction(0)
    for z, value in pair.f.items():
        n_flipped = sum(a != b for a, b in zip(z, pair.x, strict=True))
        mass = pair.p**n_flipped * (1 - pair.p) ** (len(z) - n_flipped)
        output = dot(pair.w, z)
        fidelity += mass * (output - value) ** 2 / 4
        if output == dot(pair.w, pair.x):
            event += mass
            relevant += mass * (value - pair.f[pair.x]) ** 2 / 4
    return Errors(fidelity, relevant / event, event)


def fraction(rng, low=-1, high=1):
    denominator = rng.choice([2, 3, 4, 6, 12])
    return Fraction(rng.randint(low * denominator, high * denominator), denominator)


def contributions_of(kind, d, rng):
    """Return one contribution per literal, with opposite values, equal pairs or sums that cancel."""
    free = [fraction(rng, -2, 2) for _ in range(d)]
    a, b = fraction(rng, 1, 2), fraction(rng, 1, 2)
    chosen = {
        "opposite": [a, -a],
        "pairs": [a, -a, b, -b] if rng.random() < 0.5 else [a, a, -a, -a],
        "sums": [a, b, -a - b],
        "equal": [a] * d,
        "intercept only": [Fraction(0)] * d,
        "empty": [Fraction(0)] * d,
    }.get(kind, [])[:d]
    contributions = chosen + [u if rng.random() < 0.5 else Fraction(0) for u in free[len(chosen) :]]
    rng.shuffle(contributions)
    return contributions


def generate(seed: int) -> Pair:
    rng, kind = random.Random(seed), KINDS[seed % len(KINDS)]
    d = rng.randint(1, 5)
    x = tuple(rng.choice([-1, 1]) for _ in range(d))
    scale = rng.choice([1, Fraction(1, 8)])  # small contributions leave room for models that follow w
    contributions = [scale * u for u in contributions_of(kind, d, rng)]
    prediction = Fraction(0) if kind == "empty" else fraction(rng) if rng.random() < 0.5 else Fraction(1)
    if kind == "no intercept":  # a literal takes up the anchor, as in the paper, where all literals flip
        contributions[0] = prediction - sum(contributions[1:])
    w = (prediction - sum(contributions), *(u * sign for u, sign in zip(contributions, x, strict=True)))
    f, style = {}, rng.choice(["regressor", "classifier", "follows w outside the event"])
    for z in itertools.product((-1, 1), repeat=d):
        if style == "follows w outside the event" and dot(w, z) != prediction:
            f[z] = min(Fraction(1), max(Fraction(-1), dot(w, z)))
        else:
            f[z] = Fraction(rng.choice([-1, 1])) if style == "classifier" else fraction(rng)
    f[x] = prediction
    return Pair(x, rng.choice(PROBABILITIES), f, w)


def test_relevance_is_bounded_by_fidelity():
    counts = dict.fromkeys(["canceling", "irrelevant", "outside the box", "factor needed"], 0)
    for seed in range(2_000):
        pair = generate(seed)
        assert dot(pair.w, pair.x) == pair.f[pair.x], f"seed {seed}: not anchored"
        errors = errors_of(pair)
        assert errors.event_probability >= pair.stays, f"seed {seed}"
        assert errors.relevance <= errors.fidelity / errors.event_probability, f"seed {seed}"
        assert errors.relevance <= errors.fidelity / pair.stays, f"seed {seed}"
        counts["canceling"] += errors.event_probability > pair.stays
        counts["irrelevant"] += errors.relevance > 0
        counts["outside the box"] += max(map(abs, pair.w)) > 1
        counts["factor needed"] += errors.relevance > errors.fidelity
    assert min(counts.values()) >= 100, counts


@pytest.mark.parametrize("p", PROBABILITIES)
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_factor_cannot_be_smaller(d, p):
    """For a model that follows w outside the event, both bounds are attained exactly."""
    x = (1,) * d
    w = (Fraction(0), *(Fraction(1, 2 ** (j + 1)) for j in range(d)))  # no two subsets have the same sum
    follows = {z: dot(w, z) for z in itertools.product((-1, 1), repeat=d)}
    assert errors_of(Pair(x, p, follows, w)) == Errors(Fraction(0), Fraction(0), (1 - p) ** d)
    free = {(*z, last): dot(w, z) for z in follows for last in (-1, 1)}  # one more literal, outside the support
    free[*x, -1] = Fraction(-1)
    errors = errors_of(Pair((*x, 1), p, free, (*w, Fraction(0))))
    assert errors.relevance > 0
    assert errors.relevance == errors.fidelity / errors.event_probability == errors.fidelity / (1 - p) ** d


@pytest.mark.parametrize("d", [2, 5])
@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(3, 8)])
def test_an_unanchored_explanation_breaks_it(d, p):
    """With f(x) = 1, f = -1 elsewhere and w = -1, w is faithful almost everywhere but irrelevant at x."""
    x = (1,) * d
    f = {z: Fraction(1 if z == x else -1) for z in itertools.product((-1, 1), repeat=d)}
    errors = errors_of(Pair(x, p, f, (Fraction(-1), *[Fraction(0)] * d)))
    at_x = (1 - p) ** d
    assert errors == Errors(fidelity=at_x, relevance=1 - at_x, event_probability=Fraction(1))
    assert errors.relevance > errors.fidelity / errors.event_probability  # with s = 0 the factor is 1
    anchored = errors_of(Pair(x, p, f, (Fraction(1), *[Fraction(0)] * d)))
    assert anchored.relevance == anchored.fidelity == 1 - at_x


def test_the_librarys_factors_are_these():
    for sigma, s in itertools.product((0.0, 1.0, 2.5), range(6)):
        exact = 1 / (1 - g.flip_probability(sigma)) ** s
        assert g.relevance_factor(sigma, s) == pytest.approx(exact, rel=1e-14)
        assert g.relevance_factor_from_event(1 / exact) == pytest.approx(exact, rel=1e-14)
