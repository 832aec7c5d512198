"""Fixtures of the tests of benchmarks: two small tables, under ids that the benchmarks know."""

import numpy as np
import pandas as pd
import pytest

from helpers.paper_tasks import bent, task_of, write_table


@pytest.fixture(scope="package")
def data(tmp_path_factory):
    """A table for classification and one for regression, with categories and missing values."""
    directory, rng, n = tmp_path_factory.mktemp("data"), np.random.default_rng(5), 200
    frame = pd.DataFrame({"score": rng.normal(size=n), "age": rng.integers(18, 90, size=n).astype(float)})
    frame["color"] = rng.choice(["red", "green", "blue"], size=n)
    target = frame["score"] + 0.02 * frame["age"] + (frame["color"] == "red")
    frame.loc[::9, "age"] = np.nan
    write_table(directory, "42192-tiny.csv.gz", frame.assign(target=np.where(target > 1.5, "yes", "no")))
    write_table(directory, "44024-tiny.csv.gz", frame.assign(target=target))
    return directory


@pytest.fixture(scope="module")
def task():
    """A task of the paper's experiments."""
    return task_of(bent)


@pytest.fixture(autouse=True)
def without_other_environments(monkeypatch):
    """No test depends on an environment of release 0.1 or of other packages."""
    for name in ("ANCHORLINE_01", "ANCHORLINE_ALIBI", "ANCHORLINE_EXPLAINIVERSE"):
        monkeypatch.delenv(name, raising=False)
