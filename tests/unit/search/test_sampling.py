"""Flips: the law, the streams, and bytes that may never change silently."""

import itertools
import math

import numpy as np
import pytest

from anchorline.errors import ParameterError
from anchorline.search.sampling import DrawnFlips, EnumeratedFlips, stream_key
from anchorline.settings import flip_probability_of
from anchorline.spaces.base import Law

KEY = stream_key(0, b"row", "search")


def drawn_flips(key, n, d, p):
    return DrawnFlips(key, n, Law.of_literals(d, p).ends)


def flips_of(key=KEY, n=64, d=11, p=0.3):
    return drawn_flips(key, n, d, p).rows(0, n)[0].astype(bool)


# --- the law -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.0, 3.0, 6.0, 20.0, 700.0])
def test_flip_probability_is_the_papers(sigma):
    assert flip_probability_of(sigma) == pytest.approx(1 / (1 + math.exp(sigma)), rel=1e-14)


@pytest.mark.parametrize("sigma", [-1e-9, -1.0, math.nan, math.inf, -math.inf])
def test_other_sigmas_are_refused(sigma):
    with pytest.raises(ParameterError, match=r"sigma is .*finite number >= 0"):
        flip_probability_of(sigma)


@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.0, 3.0, 6.0])
def test_flip_rates(sigma):
    """Each column, and the whole, within 4.5 and 3.5 standard errors: a fixed seed, so no luck involved."""
    n, d, p = 200_000, 11, 1 / (1 + math.exp(sigma))
    flips = flips_of(stream_key(3, b"rates", "search"), n, d, flip_probability_of(sigma))
    error = math.sqrt(p * (1 - p) / n)
    assert np.abs(flips.mean(axis=0) - p).max() < 4.5 * error
    assert abs(flips.mean() - p) < 3.5 * error / math.sqrt(d)


def test_flips_are_independent():
    n, d = 200_000, 17
    flips = flips_of(stream_key(4, b"pairs", "search"), n, d, 0.3) - 0.3
    columns = np.corrcoef(flips.T) - np.eye(d)
    assert np.abs(columns).max() < 4.5 / math.sqrt(n)
    neighbors = (flips[1:] * flips[:-1]).mean(axis=0) / 0.21  # a row and the next
    assert np.abs(neighbors).max() < 4.5 / math.sqrt(n)


def test_number_of_flips_a_row_is_binomial():
    n, d, p = 100_000, 8, 0.25
    counts = np.bincount(flips_of(stream_key(5, b"binomial", "search"), n, d, p).sum(axis=1), minlength=d + 1)
    expected = n * np.array([math.comb(d, s) * p**s * (1 - p) ** (d - s) for s in range(d + 1)])
    big = expected > 5
    chi2 = ((counts - expected)[big] ** 2 / expected[big]).sum()
    assert chi2 < 30  # 7 degrees of freedom: 30 is beyond the 99.99th percentile


@pytest.mark.parametrize(("p", "share"), [(1e-12, 0.0), (1 - 1e-12, 1.0)])
def test_extreme_probabilities(p, share):
    assert flips_of(p=p, n=1000).mean() == share


# --- rows and streams --------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 7, 8, 9, 16, 70])
def test_any_slice_of_rows_is_the_slice_of_the_whole(d):
    drawn = drawn_flips(KEY, 1600, d, 0.4)
    whole, weights = drawn.rows(0, 1600)
    assert whole.shape == (1600, d)
    assert whole.dtype == np.uint8
    assert weights is None
    for start, stop in [(150, 200), (0, 1), (1599, 1600), (3, 1150), (512, 1024), (511, 513)]:  # in any order
        np.testing.assert_array_equal(drawn.rows(start, stop)[0], whole[start:stop])


def test_rows_do_not_depend_on_how_many_there_are():
    few, many = drawn_flips(KEY, 10, 13, 0.4), drawn_flips(KEY, 10**12, 13, 0.4)
    np.testing.assert_array_equal(few.rows(0, 10)[0], many.rows(0, 10)[0])
    assert many.rows(10**12 - 3, 10**12)[0].shape == (3, 13)


def test_an_empty_slice_is_empty():
    assert drawn_flips(KEY, 10, 3, 0.5).rows(4, 4)[0].shape == (0, 3)


def test_rows_differ():
    rows = flips_of(n=500, d=64, p=0.5)
    assert len({row.tobytes() for row in rows}) == 500


def test_streams_seeds_and_instances_differ():
    arguments = itertools.product([0, 1, -1, 2**64], [b"row", b"rox", b""], ["search", "choose", "certify"])
    keys = [stream_key(*each) for each in arguments]
    assert len(set(keys)) == len(keys)
    assert all(0 <= key < 2**128 for key in keys)
    drawn = [flips_of(key, n=20, d=64, p=0.5) for key in keys]
    for one, other in itertools.combinations(drawn, 2):
        assert 0.4 < (one != other).mean() < 0.6  # independent fair coins: 0.5 +- 0.014


def test_parts_of_a_key_do_not_run_together():
    keys = {
        stream_key(1, b"1row", "s"),
        stream_key(11, b"row", "s"),
        stream_key(1, b"1", "rows"),
        stream_key(1, b"", "1rows"),
    }
    assert len(keys) == 4


def test_numpy_seeds_are_seeds():
    assert stream_key(np.int64(7), b"row", "search") == stream_key(7, b"row", "search")


def test_the_global_generator_is_not_touched():
    before = np.random.get_state()[1].tobytes()  # noqa: NPY002  it is what we watch
    flips_of()
    assert np.random.get_state()[1].tobytes() == before  # noqa: NPY002


# --- bytes that may never change ---------------------------------------------------------------------


def philox(counter, key):
    """Philox-4x64-10 (Salmon et al. 2011) in plain integers: the four words of one counter."""
    mask = 2**64 - 1
    words = [counter >> 64 * i & mask for i in range(4)]
    low, high = key & mask, key >> 64
    for _ in range(10):
        first, second = words[0] * 0xD2E7470EE14C6C93, words[2] * 0xCA5A826395121157
        words = [second >> 64 ^ words[1] ^ low, second & mask, first >> 64 ^ words[3] ^ high, first & mask]
        low, high = low + 0x9E3779B97F4A7C15 & mask, high + 0xBB67AE8584CAA73B & mask
    return words


@pytest.mark.parametrize(("d", "group"), [(1, 0), (8, 3), (11, 1), (3, 12345)])
@pytest.mark.parametrize("p", [0.2689414213699951, 0.5, 0.9, 1e-7])
def test_a_flip_is_a_byte_of_philox_below_the_threshold_and_four_more_where_it_ties(d, group, p):
    got = drawn_flips(KEY, 10**9, d, p).rows(512 * group, 512 * (group + 1))[0]
    stream = itertools.count((group << 64) + 1)  # NumPy steps the counter before it draws
    data = b"".join(word.to_bytes(8, "little") for _ in range(16 * d) for word in philox(next(stream), KEY))
    more = (half for at in stream for word in philox(at, KEY) for half in (word & 0xFFFFFFFF, word >> 32))
    high, low = divmod(round(p * 2**40), 2**32)
    expected = [byte < high or (byte == high and next(more) < low) for byte in data]
    assert got.T.ravel().tolist() == expected


def test_golden_keys():
    assert KEY == 0xF5DF1754F39D2D844665A19B44B1B36
    assert stream_key(7, b"hypercube:\x01\xff", "certify") == 0xF404431D37F35651EACD8FFD7C6D45CF


def test_golden_values():
    words = drawn_flips(KEY, 1, 1, 0.5).generator(4096).bit_generator.random_raw(2)
    assert words.tolist() == [0x34A271B07620928C, 0xF745FC4D403A3F20]


@pytest.mark.parametrize(
    ("key", "d", "p", "first", "last"),
    [
        (KEY, 11, 0.2689414213699951, "814400808120", "290012281900"),
        (0, 3, 0.5, "24f0", "b7b0"),
        (
            2**128 - 1,
            70,
            0.1,
            "0008100010200101800040200e080822120004040010100020000001082c00004d0410",
            "0000400000020000000040010180801001200000080000000006000002080040000000",
        ),
    ],
)
def test_golden_flips(key, d, p, first, last):
    drawn = drawn_flips(key, 10**9, d, p)
    assert np.packbits(drawn.rows(0, 4)[0]).tobytes().hex() == first
    assert np.packbits(drawn.rows(10**9 - 4, 10**9)[0]).tobytes().hex() == last


# --- enumeration -------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 2, 5, 10])
@pytest.mark.parametrize("p", [0.5, 0.2689414213699951, 0.01, 0.9])
def test_enumeration_is_the_distribution(d, p):
    flips, weights = EnumeratedFlips(Law.of_literals(d, p)).rows(0, 2**d)
    assert {tuple(row) for row in flips.tolist()} == set(itertools.product([0, 1], repeat=d))
    expected = [math.prod(p if flip else 1 - p for flip in row) for row in flips.tolist()]
    np.testing.assert_allclose(weights, expected, rtol=1e-13)
    assert math.fsum(weights) == pytest.approx(1.0, abs=1e-13)
    np.testing.assert_allclose(weights @ flips, p, rtol=1e-12)


def test_enumeration_counts_and_slices():
    everything = EnumeratedFlips(Law.of_literals(7, 0.3))
    assert everything.n_rows == 128
    flips, weights = everything.rows(0, 128)
    assert not flips[0].any()  # the instance itself comes first
    for start, stop in [(100, 128), (0, 1), (63, 65)]:
        part, part_weights = everything.rows(start, stop)
        np.testing.assert_array_equal(part, flips[start:stop])
        np.testing.assert_array_equal(part_weights, weights[start:stop])


def test_enumeration_of_many_literals_needs_no_memory_for_all():
    everything = EnumeratedFlips(Law.of_literals(40, 0.5))
    flips, weights = everything.rows(2**40 - 2, 2**40)
    assert flips.sum(axis=1).tolist() == [39, 40]
    assert weights.tolist() == [2.0**-40] * 2
