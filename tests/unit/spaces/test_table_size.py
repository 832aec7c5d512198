"""Wide and long tables: facts and neighbors of a row take a fraction of a second, with limits far above it."""

import time
import tracemalloc

import numpy as np
import pandas as pd

from anchorline.laws import Random
from anchorline.spaces.table import Table


def seconds(action):
    start = time.process_time()
    result = action()
    return time.process_time() - start, result


def test_a_row_of_3000_numbers():
    table = Table(np.random.default_rng(0).normal(size=(400, 3000)))
    took, candidates = seconds(lambda: table.at(3).candidates)
    assert candidates.n_attributes == 3000
    assert candidates.n_facts > 200_000
    assert took < 0.5
    there = table.at(3)
    took, donors = seconds(lambda: there.draw(1000, Random.of(0, there.key, "a"), 0.54))
    assert took < 1
    assert seconds(lambda: there.cells(donors))[0] < 1
    assert seconds(lambda: there.fact(candidates.n_facts - 1))[0] < 0.1


def test_a_table_of_300000_rows():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "amount": rng.lognormal(size=300_000),
            "count": rng.integers(0, 40, 300_000),
            "town": rng.choice(["Lens", "Arras", "Lille"], 300_000),
        }
    )
    tracemalloc.start()
    took, table = seconds(lambda: Table(frame))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert took < 10
    assert peak < 100e6  # usually 43 MB; the frame takes 7 MB
    there = table.at(7)
    there.realize(there.draw(10, Random.of(0, there.key, "a"), 0.54))
    took, _ = seconds(lambda: there.realize(there.draw(4000, Random.of(0, there.key, "a"), 0.54)))
    assert took < 0.5
    assert there.candidates.n_facts < 3000
