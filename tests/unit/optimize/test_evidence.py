"""Evidence adds up exactly in any chunking and order, and agrees with plain NumPy on the rows."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anchorline.errors import SampleError
from anchorline.optimize import evidence as evidence_module
from anchorline.optimize.evidence import Evidence
from anchorline.optimize.rows import SampleRows

GRID = 2**26  # repeated here on purpose, so that a change of the grid fails these tests
EXACT = settings(max_examples=60, deadline=None, derandomize=True, database=None)


def draw(seed, n, d, weighted=False):
    """Flips, drops on the grid (including extremes), and weights that add up to 1 or None."""
    rng = np.random.default_rng([5, seed])
    flips = rng.random((n, d)) < rng.uniform(0.05, 0.95)
    units = rng.integers(-GRID, GRID + 1, n)
    units[rng.random(n) < 0.2] = GRID - 1  # its square needs all 52 bits
    units[rng.random(n) < 0.1] = 1
    weights = rng.dirichlet(np.full(n, 0.3)) if weighted else None
    return flips, units / GRID, weights


def weights_of(weights, rows):
    return None if weights is None else weights[rows]


def state(evidence):
    """Every field as bytes, so that equality means identical bits."""
    return {
        field.name: np.asarray(getattr(evidence, field.name)).tobytes() for field in dataclasses.fields(evidence)
    }


def in_pieces(flips, drops, weights, pieces):
    parts = [
        Evidence.from_sample(flips[rows], drops[rows], weights_of(weights, rows)) for rows in pieces if len(rows)
    ]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


# --- evidence adds up ------------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 300),
    d=st.integers(1, 9),
    cuts=st.lists(st.integers(0, 300), max_size=8),
)
@EXACT
def test_any_chunking_gives_the_same_bits(weighted, seed, n, d, cuts):
    flips, drops, weights = draw(seed, n, d, weighted)
    pieces = np.split(np.arange(n), sorted(min(cut, n) for cut in cuts))
    whole = Evidence.from_sample(flips, drops, weights)
    assert state(in_pieces(flips, drops, weights, pieces)) == state(whole)


@pytest.mark.parametrize("weighted", [False, True])
@given(seed=st.integers(0, 10**6), n=st.integers(2, 300), d=st.integers(1, 9))
@EXACT
def test_any_order_gives_the_same_bits(weighted, seed, n, d):
    flips, drops, weights = draw(seed, n, d, weighted)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n)
    pieces = [order[part] for part in np.array_split(np.arange(n), 5)]
    rng.shuffle(pieces)
    whole = Evidence.from_sample(flips, drops, weights)
    assert state(Evidence.from_sample(flips[order], drops[order], weights_of(weights, order))) == state(whole)
    assert state(in_pieces(flips, drops, weights, pieces)) == state(whole)


@pytest.mark.parametrize("weighted", [False, True])
def test_many_rows_in_many_chunks(weighted):
    flips, drops, weights = draw(1, 60_000, 20, weighted)
    whole = state(Evidence.from_sample(flips, drops, weights))
    for size in (999, 4096, 59_999):
        pieces = [np.arange(start, min(start + size, 60_000)) for start in range(0, 60_000, size)]
        assert state(in_pieces(flips, drops, weights, pieces)) == whole


@pytest.mark.parametrize("weighted", [False, True])
@given(seed=st.integers(0, 10**6), n=st.integers(1, 300), n_attributes=st.integers(1, 5))
@EXACT
def test_evidence_on_outcomes_gives_the_bits_of_evidence_on_literals(weighted, seed, n, n_attributes):
    """Each attribute has three outcomes that exclude each other; a literal is broken by any subset of them."""
    rng = np.random.default_rng([6, seed])
    drawn = rng.integers(0, 4, (n, n_attributes))  # the last outcome breaks nothing
    outcomes = np.hstack([drawn == outcome for outcome in range(3)])
    breaks = np.zeros((3 * n_attributes, int(rng.integers(0, 10))), dtype=bool)
    for literal in range(breaks.shape[1]):
        breaks[rng.integers(n_attributes) :: n_attributes, literal] = rng.random(3) < 0.5
    _, drops, weights = draw(seed, n, 1, weighted)
    mapped = Evidence.from_sample(outcomes, drops, weights).mapped(breaks)
    flips = outcomes.astype(int) @ breaks.astype(int)
    assert state(mapped) == state(Evidence.from_sample(flips, drops, weights))
    with pytest.raises(ValueError, match="read-only"):
        mapped.pair_sums[:] = 0


def test_a_table_of_outcomes_must_fit_the_evidence():
    with pytest.raises(SampleError, match=r"has shape \(3, 2\), but this evidence is on 2 outcomes"):
        Evidence.from_sample([[1, 0]], [0.5]).mapped(np.ones((3, 2)))


def test_sums_are_the_rational_numbers_they_stand_for():
    flips, drops, _ = draw(2, 5_000, 3)
    evidence = Evidence.from_sample(flips, drops)
    exact = [Fraction(float(drop)) for drop in drops]
    assert sum(map(Fraction, evidence.drop_sums)) == sum(exact)
    assert sum(map(Fraction, evidence.square_sums)) == sum(drop**2 for drop in exact)
    for j in range(3):
        assert sum(map(Fraction, evidence.cross_sums[j].tolist())) == sum(
            drop for drop, flip in zip(exact, flips[:, j], strict=True) if flip
        )


def test_internal_pieces_do_not_show(monkeypatch):
    flips, drops, weights = draw(3, 500, 6, True)
    whole, weighted = Evidence.from_sample(flips, drops), Evidence.from_sample(flips, drops, weights)
    monkeypatch.setattr(evidence_module, "_ROWS_PER_PRODUCT", 7)
    assert state(Evidence.from_sample(flips, drops)) == state(whole)
    assert state(Evidence.from_sample(flips, drops, weights)) == state(weighted)


# --- evidence agrees with the rows -----------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_are_those_of_the_rows(seed, weighted):
    rng = np.random.default_rng([6, seed])
    n, d = int(rng.integers(1, 400)), int(rng.integers(1, 15))
    flips, drops, weights = draw(seed, n, d, weighted)
    share = np.full(n, 1 / n) if weights is None else weights / weights.sum()
    table = flips.astype(float)
    evidence = Evidence.from_sample(flips, drops, weights)
    assert evidence.n_rows == n
    assert evidence.n_literals == d
    assert evidence.weight == pytest.approx(n if weights is None else 1.0, abs=1e-12)
    np.testing.assert_allclose(evidence.flip_means, share @ table, rtol=0, atol=1e-12)
    np.testing.assert_allclose(evidence.second_moments, table.T @ (share[:, None] * table), rtol=0, atol=1e-12)
    np.testing.assert_allclose(evidence.cross_moments, (share * drops) @ table, rtol=0, atol=1e-12)
    assert evidence.drop_mean == pytest.approx(share @ drops, abs=1e-12)
    assert evidence.drop_square == pytest.approx(share @ drops**2, abs=1e-12)


def test_drops_off_the_grid_are_summed_all_the_same():
    rng = np.random.default_rng(8)
    flips, drops = rng.random((200, 4)) < 0.3, rng.uniform(-1, 1, 200)
    evidence = Evidence.from_sample(flips, drops)
    assert evidence.drop_mean == pytest.approx(drops.mean(), abs=1e-14)
    assert evidence.drop_square == pytest.approx(np.mean(drops**2), abs=1e-14)
    np.testing.assert_allclose(evidence.cross_moments, drops @ flips / 200, rtol=0, atol=1e-14)


def test_a_whole_weight_is_a_row_repeated():
    flips, drops, _ = draw(9, 30, 5)
    times = np.random.default_rng(9).integers(0, 4, 30)
    weighted = Evidence.from_sample(flips, drops, times)
    repeated = Evidence.from_sample(np.repeat(flips, times, axis=0), np.repeat(drops, times))
    assert weighted.weight == repeated.weight == times.sum()
    np.testing.assert_array_equal(weighted.pair_sums, repeated.pair_sums)
    np.testing.assert_allclose(weighted.cross_sums, repeated.cross_sums, rtol=0, atol=1e-12)
    assert weighted.drop_square == pytest.approx(repeated.drop_square, abs=1e-13)


def test_every_kind_of_zero_and_one_is_welcome():
    flips, drops, _ = draw(10, 50, 4)
    expected = state(Evidence.from_sample(flips, drops))
    for kind in (np.int8, np.uint64, np.float32, np.float64, object):
        assert state(Evidence.from_sample(flips.astype(kind), drops)) == expected
    assert state(Evidence.from_sample(flips.astype(int).tolist(), drops.tolist())) == expected
    assert state(Evidence.from_sample(np.asfortranarray(flips), drops)) == expected


# --- evidence owns its arrays -----------------------------------------------------------------------------


def test_the_sample_is_left_alone():
    flips, drops, weights = draw(11, 40, 4, True)
    flips, before = flips.astype(float), (flips.copy(), drops.copy(), weights.copy())
    Evidence.from_sample(flips, drops, weights)
    for array, old in zip((flips, drops, weights), before, strict=True):
        np.testing.assert_array_equal(array, old)
        assert array.flags.writeable


def test_sums_are_read_only_and_fields_frozen():
    evidence = Evidence.from_sample([[1, 0], [0, 1]], [0.5, 0.25])
    for array in (evidence.flip_sums, evidence.pair_sums, evidence.cross_sums):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        evidence.drop_sums = (7.0,)


@pytest.mark.parametrize("name", ["flip_means", "second_moments", "cross_moments"])
def test_moments_are_read_only(name):
    evidence = Evidence.from_sample([[1, 0], [0, 1]], [0.5, 0.25])
    assert not getattr(evidence, name).flags.writeable


def test_adding_changes_neither_side():
    one, other = Evidence.from_sample([[1, 0]], [0.5]), Evidence.from_sample([[1, 1]], [0.25])
    before = state(one), state(other)
    both = one + other
    assert (state(one), state(other)) == before
    assert both.n_rows == 2
    np.testing.assert_array_equal(both.flip_sums, [2, 1])


# --- refusals ----------------------------------------------------------------------------------------

GOOD = ([[1, 0], [0, 1]], [0.5, 0.25])


@pytest.mark.parametrize(
    ("flips", "drops", "weights", "words"),
    [
        ([1, 0], [0.5, 0.25], None, ["(2,)", "(n, d)"]),
        ([[1, 0], [0, 1]], [0.5], None, ["(2, 2)", "(1,)"]),
        ([[1, 0], [0, 1]], [[0.5], [0.25]], None, ["(2, 1)", "(n,)"]),
        (np.zeros((0, 3)), [], None, ["(0, 3)", "n >= 1"]),
        ([[1, 2], [0, 1]], [0.5, 0.25], None, ["0 or 1"]),
        ([[1, -1], [0, 1]], [0.5, 0.25], None, ["0 or 1"]),
        ([[1, np.nan], [0, 1]], [0.5, 0.25], None, ["0 or 1"]),
        (GOOD[0], [0.5, np.nan], None, ["finite"]),
        (GOOD[0], [0.5, -np.inf], None, ["finite"]),
        (*GOOD, [1.0], ["(1,)", "(2,)"]),
        (*GOOD, [[1.0], [1.0]], ["(2, 1)", "(2,)"]),
        (*GOOD, [1.0, -1.0], ["negative"]),
        (*GOOD, [1.0, np.nan], ["finite"]),
        (*GOOD, [1.0, np.inf], ["finite"]),
    ],
)
def test_what_does_not_fit_together_is_refused(flips, drops, weights, words):
    with pytest.raises(SampleError) as caught:
        Evidence.from_sample(flips, drops, weights)
    for word in words:
        assert word in str(caught.value)


def test_evidence_of_other_literals_is_not_added():
    with pytest.raises(SampleError, match="3 literals was added to evidence on 2 literals"):
        Evidence.from_sample(*GOOD) + Evidence.from_sample([[1, 0, 0]], [0.5])


def test_only_evidence_is_added():
    with pytest.raises(TypeError):
        Evidence.from_sample(*GOOD) + 1


def test_tiny_weights_are_weights_or_refused():
    """A part of an enumeration may have no weight, but its means are refused."""
    for weights in ([1e-20, 3e-20], [0.0, 0.0], [3e-12, 1e-12]):
        evidence = Evidence.from_sample(*GOOD, weights)
        with pytest.raises(SampleError, match=r"2 rows add up to (0|4e-12),.*weights.sum"):
            _ = evidence.drop_mean
        assert (evidence + Evidence.from_sample(*GOOD)).flip_sums.sum() == pytest.approx(2)


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_are_packed_row_by_row(order):
    """Rows packed by columns would take twenty times as long to unpack."""
    flips = np.asarray(np.random.default_rng(0).random((100, 30)) < 0.3, order=order)
    parts = SampleRows.joined([SampleRows.pack(flips, np.zeros(100)), SampleRows.pack(flips, np.zeros(100))])
    assert parts.packed.flags.c_contiguous
    np.testing.assert_array_equal(parts.flips, np.concatenate([flips, flips]))


def test_the_layout_of_flips_does_not_matter():
    rng = np.random.default_rng(0)
    flips, drops = (
        rng.random((5000, 30)) < 0.3,
        rng.normal(size=5000),
    )  # off the grid, where the order of summation is visible
    one, other = (Evidence.from_sample(np.asarray(flips, order=order), drops) for order in "CF")
    assert one.cross_sums.tobytes() == other.cross_sums.tobytes()
