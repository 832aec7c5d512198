"""Explanations have the same bytes in a new process, with 1 or 2 threads, and in any form of a row or table."""

import hashlib
import json
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.tree import DecisionTreeRegressor

import anchorline as al
from anchorline.model import predictor
from helpers.elsewhere import all_json_of, other_processes

pytestmark = pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")
LAWS = ("independent", "realistic")


def model(z):
    """A model of sums, products and divisions by column, so that no bit depends on the batch."""
    score = 0.3 * z[:, 0] - 0.2 * z[:, 1] + 0.15 * z[:, 2] * z[:, 3]
    for j in range(4, 12):
        score = score + 0.05 * z[:, j] / (j - 2.5)
    return score / (1 + np.abs(score))


def instance(d):
    return np.where(np.arange(d) * 7 % 5 < 2, -1, 1)


def train():
    """Return mixed data with missing values, the same in every process."""
    i = np.arange(120)
    work = np.where(i % 13 == 0, None, np.array(["Private", "Self", "State"])[i % 3])
    return pd.DataFrame(
        {
            "age": 18 + i * 7 % 53,
            "hours": np.where(i % 11 == 0, np.nan, 10 + i * 3 % 41),
            "work": pd.Series(work, dtype="str"),
            "member": i % 4 == 1,
            "since": pd.Timestamp("2018-03-04") + pd.to_timedelta(i * 17 % 400, unit="D"),
        }
    )


def score(frame):
    """Score a frame of any library with sums and quotients only, so that no bit depends on the batch."""
    if isinstance(frame, pd.DataFrame):
        columns = frame.to_dict(orient="list")
    else:
        columns = frame.to_dict(as_series=False) if isinstance(frame, pl.DataFrame) else frame.to_pydict()
    names = ("age", "hours", "work", "member", "since")
    rows = zip(*(columns[name] for name in names), strict=True)
    return np.array([one_score(*row) for row in rows])


def one_score(age, hours, work, member, since):
    hours = 20 if hours is None or np.isnan(hours) else hours
    level = (age - 40) / 60 + (hours - 30) / 90 + (0.25 if work == "Private" else 0.0)
    level += (since.year - 2018) / 8 - 0.25 * bool(member)
    return level / (1 + abs(level))


def on_table(frame, row, neighbors="independent", **keywords):
    explainer = al.Explainer(score, al.Table(frame, neighbors=neighbors), output="score", threshold=0.0)
    return explainer.explain(row, **{"queries": 1200, "seed": 5, **keywords}).to_json()


def all_json():
    """The JSON of every explanation that the tests compare, by name."""
    texts = {}
    for d in (12, 60, 400):  # the first is listed, the others are drawn
        explainer = al.Explainer(model, al.Hypercube(), threshold=0.1)
        texts[f"cube {d}"] = explainer.explain(instance(d), seed=3, queries=9000, alternatives=2).to_json()
    texts |= {law: on_table(train(), 7, law) for law in LAWS}
    numbers = train()[["age", "hours"]].fillna(0.0)
    tree = DecisionTreeRegressor(max_depth=4, random_state=0).fit(numbers, score(train()))
    texts["leaves"] = al.Explainer(tree, al.Table(numbers)).explain(3).to_json()
    points = al.Explainer(model, al.Hypercube()).frontier(instance(20), ks=range(1, 6), seed=3).points
    texts["frontier"] = repr(points)
    return texts


@pytest.fixture(scope="module")
def here():
    return all_json()


def differing(one, other):
    return [name for name in one if one[name] != other[name]]


@other_processes
def test_a_new_process_with_other_threads_and_hashes(here, threads, hash_seed):
    assert differing(here, all_json_of(__file__, threads, hash_seed)) == []


def test_the_sources_are_all_there(here):
    sources = [json.loads(here[name])["queries"]["source"] for name in ("cube 12", "cube 60", "leaves")]
    assert sources == ["listed", "drawn", "leaves"]


def forms_of(frame, position):
    """Yield the name and the value of every common form of the same row."""
    series, one = frame.iloc[position], frame.iloc[[position]]
    plain = {name: None if pd.isna(value) else value for name, value in series.items()}
    yield from {
        "Series": series,
        "frame": one,
        "objects": one.astype(object),
        "odd index": one.set_index(pd.Index(["z"])),
        "Polars": pl.from_pandas(frame)[position],
        "Arrow": pl.from_pandas(frame)[position].to_arrow(),
        "shuffled dict": dict(reversed(plain.items())),
        "list": list(plain.values()),
        "array": series.to_numpy(dtype=object),
        "floats": dict(plain) | {"age": float(plain["age"]), "member": float(plain["member"])},
        "NaN": {name: np.nan if value is None else value for name, value in plain.items()},
        "dates as texts": plain | {"since": str(plain["since"])},
        "from the end": position - len(frame),
    }.items()


@pytest.mark.parametrize("position", [3, 11, 13])  # no missing values; hours missing; work missing
def test_the_form_of_the_row_does_not_matter(position):
    frame = train()
    expected = on_table(frame, position, queries=200)
    forms = forms_of(frame, position)
    assert [name for name, form in forms if on_table(frame, form, queries=200) != expected] == []


@pytest.mark.parametrize("law", LAWS)
def test_equal_tables_of_other_libraries_and_orders_give_the_same_bytes(law):
    frame = train()
    tables = [frame, pl.from_pandas(frame), pl.from_pandas(frame).to_arrow()]
    assert len({on_table(table, 13, law) for table in tables}) == 1
    shuffled = frame.sample(frac=1, random_state=0)
    assert on_table(shuffled, frame.iloc[13], law) == on_table(frame, frame.iloc[13], law)


def test_a_pickled_explainer_gives_the_same_bytes():
    explainer = al.Explainer(score, al.Table(train()), output="score")
    expected = explainer.explain(11).to_json()
    for one in (explainer, al.Explainer(score, al.Table(train()), output="score")):  # used and unused
        assert pickle.loads(pickle.dumps(one)).explain(11).to_json() == expected


@pytest.mark.parametrize("rows", [313, 10**6])
def test_the_size_of_calls_does_not_matter(here, rows, monkeypatch):
    from anchorline.search import case

    sizes = []
    monkeypatch.setattr(case, "batches", lambda n, size: predictor.batches(n, rows))
    al.Explainer(lambda z: sizes.append(len(z)) or model(z), al.Hypercube()).explain(instance(60))
    assert max(sizes) == min(rows, 2000) or rows > 2000  # the setting has an effect
    assert differing(here, all_json()) == []


def test_a_change_of_anything_changes_the_bytes():
    """This shows that the tests above do not compare a constant with itself."""
    frame, changed = train(), train()
    changed.loc[50, "age"] += 1
    texts = [
        on_table(frame, 3),
        on_table(frame, 4),
        on_table(frame, 3, seed=6),
        on_table(frame, 3, sigma=1.01),
        on_table(frame, frame.iloc[3].to_dict() | {"age": 99}),
        on_table(changed, 3),
        on_table(frame, 3, "realistic"),
    ]
    assert len({hashlib.sha256(text.encode()).hexdigest() for text in texts}) == len(texts)
    assert len({json.loads(text)["proof"]["objective"] for text in texts}) == len(texts)
