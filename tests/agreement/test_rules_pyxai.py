"""PyXAI as a referee: what is called always is an implicant of its trees.

PyXAI reads command-line arguments when it is imported, and prints, so that it runs in a process of its own. Type
``ANCHORLINE_PYXAI=.../bin/python`` for an environment with ``pip install pyxai`` and this scikit-learn. It is a
referee of single trees only: of forests it refuses some rules that are true of every value of a grid, and its
forests decide by votes, those of scikit-learn by averages.
"""

import json
import os
import subprocess

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.tree import DecisionTreeClassifier

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table

PYTHON = os.environ.get("ANCHORLINE_PYXAI")
CHILD = """
import contextlib, io, json, sys
path, asked = sys.argv[1:3]
sys.argv = sys.argv[:1]
import joblib
with contextlib.redirect_stdout(io.StringIO()):
    from pyxai import Explaining, Learning
    model = joblib.load(path)
    e = Explaining.initialize(Learning.ModelIO.import_models(model, instances_type="tabular")[1])
answers = []
for row, facts in json.load(open(asked)):
    with contextlib.redirect_stdout(io.StringIO()):
        e.set_instance(__import__("numpy").array(row))
        stated = []
        for literal in e.binary_representation:
            name, sign, limit = e.to_features([literal])[0].split()[:3]
            low, high = facts.get(name, (None, None))
            implied = low is not None and low > float(limit) if sign in (">", ">=") else (
                high is not None and high <= float(limit))
            if implied:
                stated.append(literal)
        smallest = e.minimal_sufficient_reason(time_limit=10)
        columns = {each.split()[0] for each in e.to_features(smallest)}
        answers.append([bool(e.is_implicant(tuple(stated))), len(columns)])
print("ANSWERS" + json.dumps(answers))
"""


@pytest.mark.skipif(PYTHON is None, reason="ANCHORLINE_PYXAI names no environment with PyXAI")
@pytest.mark.parametrize(
    "model", [DecisionTreeClassifier(max_depth=depth, random_state=0) for depth in (3, 4, None)]
)
def test_rules_that_hold_always_are_implicants(model, tmp_path):
    rng = np.random.default_rng(1)
    values = rng.integers(0, 12, size=(300, 4)).astype(float)
    target = (values[:, 0] + values[:, 1] * values[:, 2] / 3 + rng.normal(size=300)) > 15
    frame = pd.DataFrame(values, columns=["f1", "f2", "f3", "f4"])
    model.fit(values, target)
    explainer = Explainer(model, Table(values, names=list(frame)))
    asked, n_facts = [], []
    for row in values[:25]:
        rule = explainer.rule(row.tolist(), holds=1, k=4)
        if rule.verdict.value == "always":
            facts = {fact.column: _interval(fact, values[:, int(fact.column[1]) - 1]) for fact in rule.facts}
            asked.append([row.tolist(), facts])
            n_facts.append(len(rule.facts))
    assert len(asked) >= 10
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    joblib.dump(model, tmp_path / "model.joblib")
    done = subprocess.run(
        [str(PYTHON), "-c", CHILD, "model.joblib", "asked.json"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    answers = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("ANSWERS"))[7:])
    assert all(is_implicant for is_implicant, _ in answers)
    assert np.mean(n_facts) <= np.mean([n_columns for _, n_columns in answers]) + 0.5


def _interval(fact, values):
    """Return the lowest and the highest value for which a fact is true; None where it has no bound."""
    if fact.kind == "equals":
        return fact.value, fact.value
    true = values[(values >= (fact.low or -1e9)) & (values < (fact.high or 1e9))]
    return None if fact.low is None else true.min(), None if fact.high is None else true.max()
