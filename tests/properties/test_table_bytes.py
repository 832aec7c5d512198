"""Same bytes: a row gives the same JSON in every form, library and process, and after pickling."""

import hashlib
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import anchorline as al
from anchorline.search.sampling import DrawnFlips
from anchorline.spaces.base import Law

pytestmark = pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")  # the range is wide on purpose

N = 120
WORK = np.array(["Private", "Self", "State"])


def train():
    """Return mixed data with missing values, the same in every process."""
    i = np.arange(N)
    return pd.DataFrame(
        {
            "age": 18 + i * 7 % 53,
            "hours": np.where(i % 11 == 0, np.nan, 10 + i * 3 % 41),
            "work": pd.Series(
                np.where(i % 13 == 0, None, np.array(["Private", "Self", "State"])[i % 3]), dtype="str"
            ),
            "plan": pd.Categorical(np.array(["basic", "gold"])[i % 5 % 2], categories=["none", "basic", "gold"]),
            "member": i % 4 == 1,
            "since": pd.Timestamp("2018-03-04") + pd.to_timedelta(i * 17 % 400, unit="D"),
        }
    )


def score(frame):
    """Score a frame of any library with sums and quotients only, so that no bit depends on the batch."""
    columns = frame.to_dict(orient="list") if isinstance(frame, pd.DataFrame) else None
    if columns is None:
        columns = frame.to_dict(as_series=False) if isinstance(frame, pl.DataFrame) else frame.to_pydict()
    rows = zip(*(columns[name] for name in ("age", "hours", "work", "plan", "member", "since")), strict=True)
    return np.array([one_score(*row) for row in rows])


def one_score(age, hours, work, plan, member, since):
    hours = 20 if hours is None or np.isnan(hours) else hours
    level = (age - 40) / 60 + (hours - 30) / 90 + (0.25 if work == "Private" else 0.0)
    level += 0.125 * (plan == "gold") - 0.25 * bool(member) + (since.year - 2018) / 8
    return level / (1 + abs(level))


OPTIONS = {"k": 4, "n_samples": 600, "n_certify": 400, "seed": 5}


def explained(table, row, **options):
    return al.Explainer(score, table, output="score", output_range=(-1, 1)).explain(row, **OPTIONS | options)


def digest():
    """Return the SHA-256 of some explanations, for comparison between processes."""
    table = al.Table(train(), groups={"job": ["hours", "work"]}, within="redraw")
    texts = [explained(table, row).to_json() for row in (0, 7)]
    return hashlib.sha256("".join(texts).encode()).hexdigest()


@pytest.fixture(scope="module")
def frame():
    return train()


@pytest.fixture(scope="module")
def table(frame):
    return al.Table(frame)


POSITIONS = [3, 11, 13]  # no missing values; hours missing; work missing


def forms_of(frame, position):
    """Yield the name and the value of every common form of the same row."""
    series, one = frame.iloc[position], frame.iloc[[position]]
    plain = {name: None if pd.isna(value) else value for name, value in series.items()}
    polars = pl.from_pandas(frame)
    floats = dict(plain) | {"age": float(plain["age"]), "member": float(plain["member"])}
    yield from {
        "Series": series,
        "frame": one,
        "objects": one.astype(object),
        "odd index": one.set_index(pd.Index(["z"])),
        "Polars": polars[position],
        "Arrow": polars[position].to_arrow(),
        "dict": plain,
        "shuffled dict": dict(reversed(plain.items())),
        "more keys": plain | {"target": 1},
        "list": list(plain.values()),
        "tuple": tuple(plain.values()),
        "array": series.to_numpy(dtype=object),
        "floats": floats,
        "NumPy": plain | {"age": np.int16(plain["age"]), "member": np.bool_(plain["member"])},
        "NaN": {name: np.nan if value is None else value for name, value in plain.items()},
        "pandas.NA": {name: pd.NA if value is None else value for name, value in plain.items()},
        "dates as texts": plain | {"since": str(plain["since"])},
        "dates": plain | {"since": plain["since"].date()},
        "datetime64": plain | {"since": np.datetime64(plain["since"], "s")},
        "from the end": position - N,
        "NumPy position": np.int64(position),
    }.items()


@pytest.mark.parametrize("position", POSITIONS)
def test_the_form_of_the_row_does_not_matter(frame, table, position):
    expected = explained(table, position).to_json()
    different = [name for name, form in forms_of(frame, position) if explained(table, form).to_json() != expected]
    assert different == []


def test_a_row_of_an_upcast_frame():
    """A row of a pandas frame that holds only numbers is a Series of floats."""
    frame = train()[["age", "hours"]]
    table = al.Table(frame)
    explainer = al.Explainer(lambda X: (X["age"] + X["hours"].fillna(0)).to_numpy() / 99, table)
    row = frame.iloc[3]
    assert row.dtype == np.float64
    expected = explainer.explain(3, **OPTIONS).to_json()
    assert explainer.explain(row, **OPTIONS).to_json() == expected
    assert explainer.explain(frame.astype("Float64").iloc[3], **OPTIONS).to_json() == expected
    assert explainer.explain(row.to_numpy(), **OPTIONS).to_json() == expected


@pytest.mark.parametrize("within", ["keep", "redraw"])
def test_equal_tables_of_other_libraries_give_the_same_bytes(frame, within):
    polars = pl.from_pandas(frame)
    tables = [al.Table(table, within=within) for table in (frame, polars, polars.to_arrow())]
    assert len({explained(table, 13).to_json() for table in tables}) == 1
    assert len({table.fingerprint for table in tables}) == 1


def test_a_column_of_floats_or_of_integers_with_holes():
    """With a missing value, pandas stores whole numbers as floats, but the row is the same."""
    values = [1, 2, None, 4, 5, 6, 7, 8]
    frames = [pd.DataFrame({"n": values}), pd.DataFrame({"n": values}, dtype="Int64"), pl.DataFrame({"n": values})]
    neighborhoods = [al.Table(frame).at({"n": 5}) for frame in (*frames, pa.table({"n": values}))]
    assert {neighborhood.key for neighborhood in neighborhoods} == {b"table:[5]"}


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_a_new_process(hash_seed):
    script = (
        "import importlib.util, sys\n"
        "spec = importlib.util.spec_from_file_location('table_bytes', sys.argv[1])\n"
        "module = importlib.util.module_from_spec(spec)\n"
        "spec.loader.exec_module(module)\n"
        "print(module.digest())\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, __file__],
        env=os.environ | {"PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == digest()


@pytest.mark.parametrize("library", ["pandas", "polars", "arrow"])
def test_a_pickled_explainer_gives_the_same_bytes(frame, library):
    polars = pl.from_pandas(frame)
    table = al.Table({"pandas": frame, "polars": polars, "arrow": polars.to_arrow()}[library])
    explainer = al.Explainer(score, table, output="score")  # the range is learned
    expected = explainer.explain(11, **OPTIONS).to_json()
    for one in (explainer, al.Explainer(score, table, output="score")):  # used and unused
        assert pickle.loads(pickle.dumps(one)).explain(11, **OPTIONS).to_json() == expected


def test_a_learned_range_survives_pickling(frame):
    batch_sizes = []
    explainer = al.Explainer(CountingModel(), al.Table(frame))
    explainer.explain(3, **OPTIONS)
    again = pickle.loads(pickle.dumps(explainer))
    again.model.target = again.target.ask.target = batch_sizes
    again.explain(3, **OPTIONS)
    assert batch_sizes[0] == 1  # the row
    assert N not in batch_sizes  # the training table is not queried again


class CountingModel:
    def __init__(self):
        self.target = []

    def __call__(self, frame):
        self.target.append(len(frame))
        return 100 * score(frame)


def test_array_tables_pickle_too():
    rows = np.arange(60.0).reshape(20, 3)
    explainer = al.Explainer(Sum(), al.Table(rows))
    assert pickle.loads(pickle.dumps(explainer)).explain(2, **OPTIONS) == explainer.explain(2, **OPTIONS)
    explainer = al.Explainer(Sum(), al.Table(pd.DataFrame(rows)), input="array")
    assert pickle.loads(pickle.dumps(explainer)).explain(2, **OPTIONS) == explainer.explain(2, **OPTIONS)


class Sum:
    def __call__(self, rows):
        return rows.sum(axis=1)


# --- drawn values -----------------------------------------------------------------------------------------


def test_other_batches_get_other_values(frame):
    neighborhood = al.Table(frame, literals="intervals").at(3)
    drawn = DrawnFlips(99, 8192, Law.of_literals(len(neighborhood.literals), 0.27).ends)
    flips = np.ones((50, len(neighborhood.literals)), dtype=bool)
    one, other = (neighborhood.realize(flips, drawn.generator(start)) for start in (0, 4096))
    assert not one.equals(other)


def test_values_do_not_follow_flips(frame):
    """Flips and values come from different generators, so that drawn values do not depend on other flips."""
    neighborhood = al.Table(frame, literals="intervals").at(3)
    drawn = DrawnFlips(1, 20_000, Law.of_literals(len(neighborhood.literals), 0.5).ends)
    flips = drawn.rows(0, 20_000)[0].astype(bool)
    ages = neighborhood.realize(flips, drawn.generator(0))["age"].to_numpy()
    for j in range(1, flips.shape[1]):
        assert abs(np.corrcoef(ages[flips[:, 0]], flips[flips[:, 0], j])[0, 1]) < 4.5 / np.sqrt(9000)


def test_a_change_of_anything_changes_the_bytes(frame, table):
    """This shows that the tests above do not compare a constant with itself."""
    changed = frame.copy()
    changed.loc[50, "age"] += 1
    texts = [
        explained(table, 3),
        explained(table, 4),
        explained(table, 3, seed=6),
        explained(table, frame.iloc[3].to_dict() | {"age": 99}),
        explained(al.Table(changed), 3),
        explained(al.Table(frame, within="redraw"), 3),
        explained(al.Table(frame, n_bins=3), 3),
        explained(al.Table(frame, fixed=["since"]), 3),
    ]
    assert len({json.loads(text.to_json())["sha256"] for text in texts}) == len(texts)
    assert len({text.certificate.answers_checksum for text in texts}) == len(texts)
