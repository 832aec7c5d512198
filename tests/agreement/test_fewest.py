"""The fewest sets that cover enough rows, against plain enumeration."""

import itertools

import numpy as np
import pytest

from anchorline.optimize import fewest
from anchorline.optimize.fewest import fewest_sets


def enumerated(covers, wanted, max_sets):
    """Return the smallest number of sets that covers enough, if any, and the best cover per number of sets."""
    best = {
        size: max(
            int(covers[:, list(chosen)].any(axis=1).sum())
            for chosen in itertools.combinations(range(covers.shape[1]), size)
        )
        for size in range(min(max_sets, covers.shape[1]) + 1)
    }
    return next((size for size, covered in best.items() if covered >= wanted), None), best


@pytest.mark.parametrize("seed", range(40))
def test_cover_equals_enumeration(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 25), rng.integers(1, 9)
    covers = rng.random((n, m)) < rng.uniform(0.05, 0.6)
    wanted, max_sets = int(rng.integers(1, n + 1)), int(rng.integers(1, m + 1))
    smallest, best = enumerated(covers, wanted, max_sets)
    found = fewest_sets(covers, wanted, max_sets)
    assert found.n_covered == covers[:, list(found.chosen)].any(axis=1).sum()
    assert found.is_fewest == (smallest is not None)
    assert found.n_covered == found.most_covered
    if smallest is not None:
        assert len(found.chosen) == smallest
    assert found.n_covered == best[smallest if smallest is not None else min(max_sets, m)]


def test_nothing_to_cover_or_to_choose_from():
    assert fewest_sets(np.zeros((5, 3), dtype=bool), 2, 3).chosen == ()
    assert fewest_sets(np.zeros((5, 0), dtype=bool), 2, 3).n_covered == 0


def test_a_search_that_stops_early_claims_no_proof(monkeypatch):
    """Greedy selection stays, and the bounds stay valid."""
    covers = np.random.default_rng(0).random((60, 20)) < 0.1
    proven = fewest_sets(covers, 40, 8)
    monkeypatch.setattr(fewest, "_SECONDS", 0.0)
    found = fewest_sets(covers, 40, 8)
    assert proven.is_fewest
    assert len(found.chosen) >= len(proven.chosen)
    assert found.n_covered <= found.most_covered
    assert not found.is_fewest
