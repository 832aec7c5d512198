"""The command line says what a budget will cost before the second query, on standard error and once."""

import numpy as np

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
