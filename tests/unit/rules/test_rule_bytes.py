"""Same seed, same row, same bytes: in other processes, after other rows, and with any form of table or row."""

import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from anchorline.explainer import Explainer
from anchorline.result.rule import Rule
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.table import Table
from anchorline.spaces.text import Text
from helpers.elsewhere import all_json_of, other_processes


def train():
    """Return a table of numbers, the same in every process."""
    i = np.arange(240)
    return pd.DataFrame({"age": 18.0 + i * 7 % 53, "hours": 10.0 + i * 3 % 41, "debt": (i * 11 % 97) / 8.0})


def columns_of(rows):
    if isinstance(rows, np.ndarray):
        return rows.T
    return [np.asarray(rows[name], dtype=float) for name in ("age", "hours", "debt")]


def score(rows):
    """Score rows of any library with sums and quotients only, so that no bit depends on the batch."""
    age, hours, debt = columns_of(rows)
    level = (age - 40) / 30 + (hours - 30) / 90 - (debt - 6) / 20
    return level / (1 + np.abs(level))


def vote(rows):
    return (rows[:, :3].sum(axis=1) > 0) * 2 - 1


def words(texts):
    return np.array([0.8 if "good" in text else 0.2 for text in texts])


def of_table(table, row=7, neighbors="independent", **keywords):
    space = Table(table, neighbors=neighbors)
    return Explainer(score, space, threshold=0.0).rule(row, **{"seed": 5, **keywords}).to_json()


def all_json():
    """The JSON of every kind of rule, by name."""
    long = "a good film, but long, with many more words than anybody could ever list, or even would want to"
    return {
        "drawn": of_table(train()),
        "few": of_table(train(), queries=900),
        "realistic": of_table(train(), neighbors="realistic"),
        "most": of_table(train(), holds=None, k=2),
        "number": Explainer(score, train()).rule(11, seed=5).to_json(),
        "listed": Explainer(vote, Hypercube()).rule([1, 1, -1, 1]).to_json(),
        "cube": Explainer(vote, Hypercube()).rule([1, 1, -1] + [1] * 30).to_json(),
        "text": Explainer(words, Text(), threshold=0.5).rule(long).to_json(),
    }


@pytest.fixture(scope="module")
def here():
    return all_json()


def test_the_same_call_gives_the_same_bytes_again(here):
    assert all_json() == here
    assert all(Rule.from_json(text).to_json() == text for text in here.values())
    assert {json.loads(text)["queries"]["source"] for text in here.values()} == {"drawn", "listed"}


@other_processes
def test_a_new_process_with_other_threads_and_hashes(here, threads, hash_seed):
    assert all_json_of(__file__, threads, hash_seed) == here


def test_what_was_asked_before_does_not_matter(here):
    explainer = Explainer(score, Table(train()), threshold=0.0)
    explainer.check()
    for row in (3, 9):
        explainer.explain(row)
        explainer.rule(row, k=1)
        explainer.changes(row, queries=500)
    assert explainer.rule(7, seed=5).to_json() == here["drawn"]
    assert explainer.rule(7, seed=5, queries=900).to_json() == here["few"]


def test_the_library_and_the_order_of_a_table_do_not_matter(here):
    frame = train()
    for table in (pl.from_pandas(frame), pa.Table.from_pandas(frame, preserve_index=False)):
        assert of_table(table) == here["drawn"]
        assert of_table(table, neighbors="realistic") == here["realistic"]
    shuffled = frame.sample(frac=1, random_state=0)
    assert of_table(shuffled, frame.iloc[7]) == here["drawn"]


def test_the_form_of_a_row_does_not_matter(here):
    row, in_polars = train().iloc[7], pl.from_pandas(train())[7]
    for form in (row, row.to_dict(), row.tolist(), row.to_numpy(), train().iloc[[7]], in_polars, -233):
        assert of_table(train(), form) == here["drawn"]


def test_an_array_gives_the_same_figures(here):
    """Its columns have other names, and so has the space; what was found is the same."""
    table = Table(train().to_numpy(), names=list(train().columns))
    body = json.loads(Explainer(score, table, threshold=0.0).rule(7, seed=5).to_json())
    frame = json.loads(here["drawn"])
    for name in ("facts", "holds", "holds_drawn", "holds_law", "all", "coverage", "rows", "verdict", "proof"):
        assert body[name] == frame[name], name


def test_a_change_of_anything_changes_the_bytes():
    """This shows that the tests above do not compare a constant with itself."""
    changed = train()
    changed.loc[50, "age"] += 1
    texts = {
        of_table(train()),
        of_table(train(), 8),
        of_table(train(), seed=6),
        of_table(train(), sigma=1.01),
        of_table(train(), confidence=0.96),
        of_table(train(), holds=0.96),
        of_table(changed),
    }
    assert len(texts) == 7
    assert len({str(json.loads(of_table(train(), seed=seed))["all"]) for seed in range(4)}) == 4
