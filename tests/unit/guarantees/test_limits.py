"""Limits of shares and of R2: against roots and bets computed another way, and what they need to decide."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

from anchorline.errors import ParameterError
from anchorline.guarantees.limits import Count, Squares

BETS = [2.0**power for power in range(-4, 6)]


def lower_limit_by_bisection(kept, n, failure):
    def excess(m):
        logs = np.array([kept * math.log(1 + bet) - n * math.log(1 + bet * m) for bet in BETS])
        return np.logaddexp.reduce(logs) - math.log(len(BETS)) + math.log(failure)

    return brentq(excess, 0, 1, xtol=1e-14) if excess(0) > 0 else 0.0


def limits(squares, fail_low, fail_high):
    return squares.limit(0, fail_low), squares.limit(1, fail_high)


def test_limits_of_shares_are_the_roots_of_the_capital():
    rng = np.random.default_rng(0)
    for _ in range(300):
        n = int(rng.integers(1, 20_000))
        kept = int(rng.binomial(n, rng.choice([0.0, 0.01, 0.3, 0.5, 0.9, 0.99, 1.0])))
        fail_low, fail_high = rng.choice([0.001, 0.0125, 0.1], 2)
        low, high = Count(kept, n).limits((fail_low, fail_high))
        assert low <= kept / n <= high
        assert low == pytest.approx(lower_limit_by_bisection(kept, n, fail_low), abs=1e-11)
        assert high == pytest.approx(1 - lower_limit_by_bisection(n - kept, n, fail_high), abs=1e-11)


def test_a_share_without_draws_has_no_limits():
    assert Count().limits((0.01, 0.01)) == (0.0, 1.0)


@pytest.mark.parametrize(("share", "most"), [(1.0, 115), (0.99, 210), (0.97, 1200), (0.96, 5500)])
def test_few_draws_reach_the_line_of_a_verdict(share, most):
    """The mean number of draws until the lower limit, which gets a quarter of 5%, reaches 95%."""
    rng, bets = np.random.default_rng(1), np.array(BETS)[:, None]
    steps = rng.random((200, 8 * most)) < share
    needed = np.full(200, 8 * most)
    for i, kept in enumerate(np.cumsum(steps, axis=1)):
        n = np.arange(1, kept.size + 1)
        capital = np.logaddexp.reduce(kept * np.log1p(bets) - n * np.log1p(0.95 * bets)) - math.log(len(BETS))
        passed = capital >= math.log(80)
        needed[i] = np.argmax(passed) + 1 if passed.any() else n[-1]
        assert Count(kept[needed[i] - 1], needed[i]).limits((1 / 80, 1 / 80))[0] >= 0.95 or not passed.any()
    assert needed.mean() <= most


def sampled(n, seed=0, noise=0.1):
    rng = np.random.default_rng(seed)
    effects = np.array([0.3, 0.2, -0.15])
    sums = effects @ (rng.random((3, n)) < 0.4)
    return effects, np.clip(sums + noise * rng.standard_normal(n), -0.4, 0.6), sums


@pytest.mark.parametrize("n", [300, 1000, 4000])
def test_limits_of_a_bounded_fit_are_no_narrower_than_the_bets_that_they_bound(n):
    """The sum of exponentials never exceeds the capital of the bets, which refutes every ratio that it refutes."""
    effects, drops, sums = sampled(n)
    low, high = limits(Squares.bounded((-0.4, 0.6), effects).added(drops, sums), 0.005, 0.005)
    errors, squares = (drops - sums) ** 2, drops**2
    largest = max(0.6 + 0.15, 0.5 + 0.4) ** 2
    bets = [2.0**power for power in range(-7, 0)] + [0.75, 0.9, 0.97]

    def capital(gains):
        return np.mean([np.exp(np.log1p(bet * gains).sum()) for bet in bets])

    ratio = errors.sum() / squares.sum()
    assert low < 1 - ratio < high
    assert capital(((1 - low) * squares - errors) / largest) >= 200
    assert capital((errors / (1 - high) - squares) / 0.6**2) >= 200


def test_limits_of_an_approximate_fit_follow_the_formula():
    _, drops, sums = sampled(1000)
    low, high = limits(Squares().added(drops, sums), 0.0125, 0.0125)
    for ratio, sign in ((1 - low, 1), (1 - high, -1)):
        x = sign * (ratio * drops**2 - (drops - sums) ** 2)
        tuned = -2 * math.log(0.025)
        rho2 = (tuned + math.log(tuned + 1)) / 500
        width = 2 * (1000 * rho2 + 1) / (1000**2 * rho2) * math.log(1 + math.sqrt(1000 * rho2 + 1) / 0.025)
        assert x.mean() > x.std() * math.sqrt(width)
        step = 0.001 * sign
        x = sign * ((ratio - step) * drops**2 - (drops - sums) ** 2)
        assert x.mean() <= x.std() * math.sqrt(width)


def test_sums_of_squares_are_additive():
    effects, drops, sums = sampled(999)
    empty = Squares.bounded((-0.4, 0.6), effects)
    whole = empty.added(drops, sums)
    parts = empty.added(drops[:100], sums[:100]).added(drops[100:], sums[100:])
    assert parts.n == whole.n
    assert limits(parts, 0.01, 0.01) == limits(whole, 0.01, 0.01)
    assert parts.r2 == pytest.approx(1 - ((drops - sums) ** 2).sum() / (drops**2).sum())


@pytest.mark.parametrize("squares", [Squares(), Squares.bounded((-0.4, 0.6), np.array([0.3]))])
def test_degenerate_fits_have_limits(squares):
    zeros, ones = np.zeros(500), np.full(500, 0.3)
    assert limits(squares, 0.01, 0.01) == (0.0, 1.0)
    constant = squares.added(zeros, zeros)  # a constant model: nothing to explain
    assert constant.r2 == 1.0
    assert limits(constant, 0.01, 0.01) == (0.0, 1.0)
    perfect = squares.added(ones, ones)
    assert perfect.r2 == 1.0
    assert limits(perfect, 0.01, 0.01)[1] == 1.0
    assert limits(perfect, 0.01, 0.01)[0] > 0.9
    useless = squares.added(ones, zeros)
    assert limits(useless, 0.01, 0.01)[1] < 0.1
    worse = squares.added(zeros, ones)
    assert worse.r2 == 0.0
    assert limits(worse, 0.01, 0.01) == (0.0, 0.0)


def test_few_neighbors_have_no_approximate_limits():
    _, drops, sums = sampled(99)
    assert limits(Squares().added(drops, sums), 0.01, 0.01) == (0.0, 1.0)


@pytest.mark.parametrize("drop", [0.61, math.nan])
def test_outputs_outside_their_known_range_are_refused(drop):
    with pytest.raises(ParameterError, match="output_range"):
        Squares.bounded((-0.4, 0.6), np.array([0.3])).added(np.array([drop]), np.array([0.3]))


def test_rounding_of_outputs_at_their_bound_is_accepted():
    squares = Squares.bounded((-0.4, 0.6), np.array([0.3])).added(np.array([0.6 + 1e-12]), np.array([0.0]))
    assert squares.base == pytest.approx(0.36)
