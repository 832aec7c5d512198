"""Fixtures of the benchmark tests: small tables, a cache, and a task."""

import numpy as np
import pandas as pd
import pytest

from helpers.paper_tasks import bent, task_of, write_table


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A table for classification and one for regression, under ids that are part of the sweeps."""
    directory, rng, n = tmp_path_factory.mktemp("data"), np.random.default_rng(5), 160
    frame = pd.DataFrame({"score": rng.normal(size=n), "age": rng.integers(18, 90, size=n).astype(float)})
    frame["color"] = rng.choice(["red", "green", "blue"], size=n)
    target = frame["score"] + 0.02 * frame["age"] + (frame["color"] == "red")
    write_table(directory, "42192-tiny.csv.gz", frame.assign(target=np.where(target > 1.5, "yes", "no")))
    write_table(directory, "44024-tiny.csv.gz", frame.assign(target=target))
    return directory


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def task():
    return task_of(bent)
