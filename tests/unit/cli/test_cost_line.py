"""The command line counts queries: it says what a budget costs before the second one, and still reads trees."""

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from anchorline import Explainer
from anchorline.cli.progress import QueryProgress, expected_rows


def test_the_first_answer_tells_the_cost(capsys):
    with QueryProgress("Explaining", expected_rows({"budget": 300}, 2), announce=True) as progress:
        model = progress.wrap_model(lambda rows: np.zeros(len(rows)))
        model(np.zeros((1, 2)))
        model(np.zeros((150, 2)))
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "anchorline: This takes at most 600 queries, under a second if asked one by one.\n"


def test_nothing_is_said_without_a_budget(capsys):
    with QueryProgress("Explaining", expected_rows({"n_samples": 50}, 1)) as progress:
        progress.wrap_model(lambda rows: np.zeros(len(rows)))(np.zeros((1, 2)))
    assert capsys.readouterr().err == ""


def test_a_counted_model_keeps_its_trees():
    rows = np.random.default_rng(0).normal(size=(60, 2))
    model = DecisionTreeRegressor(max_depth=2).fit(rows, rows[:, 0])
    with QueryProgress("Explaining", None) as progress:
        counted = progress.wrap_model(model)
        certificate = Explainer(counted, rows).explain(0, k=2, n_certify=0).certificate
        assert certificate.by_leaves
        assert progress.n_rows > 0
