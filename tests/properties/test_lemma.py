"""The lemma R <= F / P[A] <= (1 - p)^-s F in rational arithmetic, from the definitions, without anchorline code.

Instances are z in {-1, +1}^d with an additional first entry +1, which never flips. p is the probability that a
literal flips. An explanation is w, whose first entry is the intercept. Nothing is rounded, so that the smallest
violation of an inequality fails.
"""

import itertools
import os
import random
from dataclasses import dataclass
from fractions import Fraction

import pytest

N_PAIRS = 6_000
PER_TEST = 250
SOAK = int(os.environ.get("ANCHORLINE_SOAK", "0"))  # `make soak` runs this many other pairs
STARTS = range(10_000, 10_000 + SOAK, PER_TEST) if SOAK else range(0, N_PAIRS, PER_TEST)
FLIP_PROBABILITIES = [Fraction(1, 2), Fraction(3, 8), Fraction(2, 7), Fraction(1, 8), Fraction(1, 40)]
KINDS = ("free", "opposite", "opposite", "pairs", "sums", "equal", "no intercept", "intercept only", "empty")


@dataclass(frozen=True)
class Pair:
    """A model, given as a table over the cube, and an explanation of its value at ``x``."""

    kind: str
    x: tuple[int, ...]
    p: Fraction
    f: dict[tuple[int, ...], Fraction]
    w: tuple[Fraction, ...]

    @property
    def n_literals(self):
        return sum(coefficient != 0 for coefficient in self.w[1:])


@dataclass(frozen=True)
class Errors:
    fidelity: Fraction
    relevance: Fraction
    event_probability: Fraction


def dot(w, z):
    return w[0] + sum(coefficient * value for coefficient, value in zip(w[1:], z, strict=True))


def loss(first, second):
    return (first - second) ** 2 / 4


def errors_of(pair: Pair) -> Errors:
    """Both errors by their definitions, as sums over the whole cube; the event is w.z = w.x."""
    fidelity = relevant = event = Fraction(0)
    for z, value in pair.f.items():
        n_flipped = sum(a != b for a, b in zip(z, pair.x, strict=True))
        mass = pair.p**n_flipped * (1 - pair.p) ** (len(z) - n_flipped)
        output = dot(pair.w, z)
        fidelity += mass * loss(output, value)
        if output == dot(pair.w, pair.x):
            event += mass
            relevant += mass * loss(value, pair.f[pair.x])
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
    rest = [u if rng.random() < 0.5 else Fraction(0) for u in free[len(chosen) :]]
    contributions = chosen + rest
    rng.shuffle(contributions)
    return contributions


def generate(seed: int) -> Pair:
    rng = random.Random(seed)
    kind = KINDS[seed % len(KINDS)]
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
    return Pair(kind, x, rng.choice(FLIP_PROBABILITIES), f, w)


@pytest.mark.generated
@pytest.mark.parametrize("start", STARTS)
def test_relevance_is_bounded_by_fidelity(start):
    for seed in range(start, start + PER_TEST):
        pair = generate(seed)
        assert dot(pair.w, pair.x) == pair.f[pair.x], f"seed {seed}: not anchored"
        errors, stays = errors_of(pair), (1 - pair.p) ** pair.n_literals
        assert errors.event_probability >= stays, f"seed {seed}"
        assert errors.relevance <= errors.fidelity / errors.event_probability, f"seed {seed}"
        assert errors.relevance <= errors.fidelity / stays, f"seed {seed}"


def test_the_generated_pairs_hold_what_the_lemma_is_about():
    """Events larger than "no literal flipped", non-zero errors and necessary factors occur often."""
    counts = dict.fromkeys(["canceling", "irrelevant", "several literals", "outside the box", "factor needed"], 0)
    for seed in range(N_PAIRS // 4):
        pair = generate(seed)
        errors, stays = errors_of(pair), (1 - pair.p) ** pair.n_literals
        counts["canceling"] += errors.event_probability > stays
        counts["irrelevant"] += errors.relevance > 0
        counts["several literals"] += pair.n_literals >= 2
        counts["outside the box"] += max(map(abs, pair.w)) > 1
        counts["factor needed"] += errors.relevance > errors.fidelity
    assert min(counts.values()) >= 100, counts
    assert counts["canceling"] >= 450


@pytest.mark.parametrize("p", FLIP_PROBABILITIES)
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_the_factor_cannot_be_smaller(d, p):
    """For a model that follows w outside the event, both bounds are attained exactly."""
    x = (1,) * d
    w = (Fraction(0), *(Fraction(1, 2 ** (j + 1)) for j in range(d)))  # no two subsets have the same sum
    follows = {z: dot(w, z) for z in itertools.product((-1, 1), repeat=d)}
    pair = Pair("tight", x, p, follows, w)
    assert errors_of(pair) == Errors(Fraction(0), Fraction(0), (1 - p) ** d)
    free = {(*z, last): dot(w, z) for z in follows for last in (-1, 1)}  # one more literal, outside the support
    free[*x, -1] = Fraction(-1)
    errors = errors_of(Pair("tight", (*x, 1), p, free, (*w, Fraction(0))))
    assert errors.relevance > 0
    assert errors.relevance == errors.fidelity / errors.event_probability == errors.fidelity / (1 - p) ** d


@pytest.mark.parametrize("d", [2, 3, 4, 5])
@pytest.mark.parametrize("p", [Fraction(1, 2), Fraction(3, 8)])
def test_an_unanchored_explanation_breaks_it(d, p):
    """With f(x) = 1, f = -1 elsewhere and w = -1, w is faithful almost everywhere but irrelevant at x."""
    x = (1,) * d
    f = {z: Fraction(1 if z == x else -1) for z in itertools.product((-1, 1), repeat=d)}
    errors = errors_of(Pair("unanchored", x, p, f, (Fraction(-1), *[Fraction(0)] * d)))
    at_x = (1 - p) ** d
    assert errors == Errors(fidelity=at_x, relevance=1 - at_x, event_probability=Fraction(1))
    assert errors.relevance > errors.fidelity / errors.event_probability  # with s = 0 the factor is 1


def test_anchoring_the_same_explanation_mends_it():
    d, p = 5, Fraction(1, 2)
    x = (1,) * d
    f = {z: Fraction(1 if z == x else -1) for z in itertools.product((-1, 1), repeat=d)}
    errors = errors_of(Pair("anchored", x, p, f, (Fraction(1), *[Fraction(0)] * d)))
    assert errors.relevance == errors.fidelity == 1 - (1 - p) ** d


def test_the_librarys_factors_are_these():
    """Only this test uses anchorline, whose functions return the rational factors, rounded."""
    from anchorline.guarantees import relevance_factor_from_event, relevance_factor_from_flips

    for p, s in itertools.product(FLIP_PROBABILITIES, range(6)):
        exact = 1 / (1 - p) ** s
        assert relevance_factor_from_flips(float(p), s) == pytest.approx(float(exact), rel=1e-14)
        assert relevance_factor_from_event(float(1 / exact)) == pytest.approx(float(exact), rel=1e-14)
