"""Rooms introduce themselves, tests mirror them, and no constructor queries a model."""

import importlib
import pathlib

import numpy as np
import pytest

import anchorline as al
from anchorline.model.outputs import Target
from anchorline.model.predictor import Predictor, Questions
from anchorline.search.case import Case
from anchorline.settings import Settings
from helpers.sources import ROOMS, imports_of, sources_of

TESTS = pathlib.Path(__file__).parents[1]
# Rooms whose tests start processes, browsers or servers, and lie in folders of their own.
ELSEWHERE = {"cli": "process", "paper": "paper", "studio": "studio"}


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_names_the_rooms_that_it_imports(room):
    _, _, sentence = " ".join(importlib.import_module(f"anchorline.{room}").__doc__.split()).partition(
        "May import: "
    )
    assert sentence, "the docstring does not say what the room may import"
    trees = sources_of(room).values()
    imported = {inside.split(".")[0] for tree in trees for _, inside in imports_of(tree)} - {room}
    if not sentence.startswith("every "):
        assert not [name for name in imported if not name.startswith("_") and name not in sentence]


@pytest.mark.parametrize("room", ROOMS)
def test_tests_mirror_the_rooms(room):
    folder = TESTS / ELSEWHERE[room] if room in ELSEWHERE else TESTS / "unit" / room
    assert list(folder.rglob("test_*.py"))


def test_constructors_query_nothing():
    """Explainer, predictor and case are built without a query; opening the case takes one."""
    sizes = []

    class Model:
        """A model that provides its labels only with its answers, as MLflow servers do."""

        def __call__(self, rows):
            sizes.append(len(rows))
            return np.column_stack([rows[:, 0], 1 - rows[:, 0]])

        def classes_for(self, rows):
            self(rows)
            return ["no", "yes"]

    model, table = Model(), al.Table(np.linspace(0, 1, 20).reshape(-1, 1))
    before = dict(vars(model))
    explainer = al.Explainer(model, table, output="yes")
    with pytest.raises(al.AnchorlineError, match="task is 'lable'"):
        al.Explainer(model, table, task="lable")
    case = Case(table.at(3), Predictor(Questions(Target(model))), Settings(), k=4)
    assert sizes == []
    case.predictor.open(case.neighborhood.original)
    assert sizes == [1]
    assert explainer.target.column == 1  # asks about one row for the labels
    assert sizes == [1, 1]
    assert explainer.case(3, Settings(queries=100)).k == 4
    assert sizes == [1, 1]
    assert vars(model) == before
