"""The paper's Extraction and Shielding lemmas by enumeration, with rational numbers.

The law is uniform unless a test names another one. No code of anchorline is used.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest


def cube(d):
    return list(itertools.product((-1, 1), repeat=d))


def random_function(rng, d, classifies):
    if classifies:
        return {z: Fraction(int(rng.choice([-1, 1]))) for z in cube(d)}
    return {z: Fraction(int(rng.integers(-6, 7)), 6) for z in cube(d)}


def relevance_error(f, x, event, mass=lambda _: Fraction(1)):
    weights = {z: mass(z) for z in event}
    return sum(weight * (f[z] - f[x]) ** 2 / 4 for z, weight in weights.items()) / sum(weights.values())


def subcube(d, fixed):
    """All z that agree with ``fixed``, which maps coordinates to values."""
    return [z for z in cube(d) if all(z[j] == value for j, value in fixed.items())]


def explanations(rng, d):
    """Weights with many ties and cancellations, weights of one size, and weights with few ties."""
    yield [int(rng.choice([-2, -1, 0, 1, 2])) for _ in range(d)]
    yield [int(rng.choice([-1, 1])) for _ in range(d)]
    yield [0 if rng.random() < 0.4 else int(rng.integers(-50, 51)) for _ in range(d)]


@pytest.mark.parametrize("seed", range(60))
def test_extraction(seed):
    """The event of w is a disjoint union of subcubes; their errors average to its error, so one is not larger.

    Under the uniform law the average has equal weights, as the paper states. Under any other law it is weighted,
    and one subcube is still no worse.
    """
    rng = np.random.default_rng([3, seed])
    d = int(rng.integers(1, 6))
    x = tuple(int(value) for value in rng.choice([-1, 1], d))
    f = random_function(rng, d, classifies=seed % 2 == 0)
    p = Fraction(2, 7)

    def near(z):
        n_flipped = sum(a != b for a, b in zip(z, x, strict=True))
        return p**n_flipped * (1 - p) ** (d - n_flipped)

    for w in explanations(rng, d):
        total = sum(a * b for a, b in zip(w, x, strict=True))
        event = [z for z in cube(d) if sum(a * b for a, b in zip(w, z, strict=True)) == total]
        support = [j for j in range(d) if w[j]]
        assignments = [
            dict(zip(support, values, strict=True))
            for values in itertools.product((-1, 1), repeat=len(support))
            if sum(w[j] * value for j, value in zip(support, values, strict=True)) == total
        ]
        parts = [subcube(d, assignment) for assignment in assignments]
        assert sorted(z for part in parts for z in part) == sorted(event)  # a disjoint union
        errors = [relevance_error(f, x, part) for part in parts]
        assert sum(errors) / len(errors) == relevance_error(f, x, event)
        assert min(errors) <= relevance_error(f, x, event)
        assert min(relevance_error(f, x, part, near) for part in parts) <= relevance_error(f, x, event, near)


def test_extraction_may_leave_x():
    """The paper's example, with a model for which only the subcube without x is as good as w."""
    x, w = (1, -1, 1), (1, 1, 0)
    event = [z for z in cube(3) if w[0] * z[0] + w[1] * z[1] == 0]
    assert (-1, 1, 1) in event
    f = {z: Fraction(1) for z in cube(3)}
    f[1, -1, -1] = Fraction(-1)
    anchored, other = subcube(3, {0: 1, 1: -1}), subcube(3, {0: -1, 1: 1})
    assert relevance_error(f, x, other) < relevance_error(f, x, event) < relevance_error(f, x, anchored)


def shield(g, n, shielded, copies):
    """Replace each shielded variable by the parity of ``copies`` fresh ones.

    Returns the function, the blocks of indices, and the map from fresh variables to parities.
    """
    blocks, d = [], 0
    for i in range(n):
        size = copies if i in shielded else 1
        blocks.append(range(d, d + size))
        d += size

    def parities(z):
        # The bit b is stored as 2 b - 1. A parity is 1 if an odd number of bits are 1.
        return tuple(2 * (sum(z[j] == 1 for j in block) % 2) - 1 for block in blocks)

    return {z: g[parities(z)] for z in cube(d)}, blocks, parities


def small_assignments(coordinates, max_size):
    for size in range(max_size + 1):
        for chosen in itertools.combinations(coordinates, size):
            for values in itertools.product((-1, 1), repeat=size):
                yield dict(zip(chosen, values, strict=True))


SHIELDINGS = [(1, {0}, 1), (2, {0}, 2), (2, {0, 1}, 1), (3, {1}, 2), (3, {0, 2}, 1), (2, {0, 1}, 2), (2, {1}, 3)]


@pytest.mark.parametrize(("n", "shielded", "k"), SHIELDINGS)
def test_shielding(n, shielded, k):
    """If any k fresh variables are fixed, the parities stay uniform and independent of all other variables."""
    table_of = {z: Fraction(1) for z in cube(n)}
    f, blocks, parities = shield(table_of, n, shielded, k + 1)
    d = blocks[-1].stop
    fresh = [j for i in shielded for j in blocks[i]]
    assert len(f) == 2 ** (n + k * len(shielded))  # shielding adds k |A| variables
    for fixed in small_assignments(fresh, k):
        counts = {}
        for z in subcube(d, fixed):
            counts[parities(z)] = counts.get(parities(z), 0) + 1
        assert set(counts) == set(cube(n))
        assert len(set(counts.values())) == 1  # parities and unshielded variables are jointly uniform


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("n", "shielded", "k"), SHIELDINGS)
def test_shielded_coordinates_are_useless(n, shielded, k, seed):
    """Every subcube of codimension at most k has the error of its unshielded part, for every x."""
    rng = np.random.default_rng([n, k, seed])
    f, blocks, _ = shield(random_function(rng, n, classifies=seed % 2 == 0), n, shielded, k + 1)
    d = blocks[-1].stop
    fresh = {j for i in shielded for j in blocks[i]}
    x = cube(d)[int(rng.integers(2**d))]
    for fixed in small_assignments(range(d), k):
        rest = {j: value for j, value in fixed.items() if j not in fresh}
        assert relevance_error(f, x, subcube(d, fixed)) == relevance_error(f, x, subcube(d, rest))


@pytest.mark.parametrize("k", [1, 2])
def test_shielding_needs_its_copies_and_the_uniform_law(k):
    """With k copies, or with all k + 1 fixed, the parity is known. Under a biased law it is never a fair coin."""
    g = {(-1,): Fraction(-1), (1,): Fraction(1)}
    f, blocks, _ = shield(g, 1, {0}, k)
    x = (1,) * k if k % 2 else (1, *[-1] * (k - 1))
    known = relevance_error(f, x, subcube(k, dict(enumerate(x))))
    assert (known, relevance_error(f, x, cube(k))) == (0, Fraction(1, 2))
    f, blocks, _ = shield(g, 1, {0}, k + 1)
    d = blocks[0].stop
    assert len({relevance_error(f, (1,) * d, subcube(d, dict(enumerate(z)))) for z in cube(d)}) == 2

    def biased(z):
        return math.prod(Fraction(1, 4) if value == 1 else Fraction(3, 4) for value in z)

    free, fixed = cube(d), subcube(d, {0: 1})
    assert relevance_error(f, (1,) * d, free, biased) != relevance_error(f, (1,) * d, fixed, biased)
