"""The command line counts queries: it says what a budget costs before the second one, and still reads trees."""

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from anchorline.cli.progress import QueryProgress, expected_rows
from anchorline.explainer import Explainer


def test_the_first_answer_tells_the_cost(capsys):
    with QueryProgress("Explaining", expected_rows(300, 2), announce=True) as progress:
        progress.add_rows(1, seconds=0.4)
        progress.add_rows(150, seconds=60.0)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "anchorline: This takes at most 600 queries, about 4 minutes if asked one by one.\n"


def test_short_waits_are_not_announced(capsys):
    for number in (300, None):
        with QueryProgress("Explaining", expected_rows(number, 1), announce=number is not None) as progress:
            progress.wrap_model(lambda rows: np.zeros(len(rows)))(np.zeros((1, 2)))
        assert progress.n_rows == 1
    assert capsys.readouterr().err == ""


def test_a_counted_model_keeps_its_trees():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    model = DecisionTreeRegressor(max_depth=2).fit(rows, rows[:, 0])
    with QueryProgress("Explaining", None) as progress:
        counted = progress.wrap_model(model)
        assert Explainer(counted, rows).explain(0, k=2).queries.source == "leaves"
        assert progress.n_rows > 0
