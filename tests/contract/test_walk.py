"""One explanation passes through few modules, room by room: printed and held to its limits."""

import pytest

import anchorline as al
from helpers.walk import crossings, loan_explainer, modules_visited, rooms_visited

MAX_MODULES = 32


def hypercube_call():
    explainer = al.Explainer(lambda z: 0.5 * z[:, 0] - 0.25 * z[:, 1] * z[:, 2], al.Hypercube())
    explainer.check()  # once per explainer, not once per explanation
    return lambda: explainer.explain([1] * 30, k=5)


def table_call(**options):
    explainer, row = loan_explainer(**options)
    return lambda: explainer.explain(row, k=5)


def realistic_call():
    return table_call(neighbors="realistic")


@pytest.mark.parametrize("make_call", [table_call, realistic_call, hypercube_call])
def test_one_explanation_walks_straight(make_call, capsys):
    """No room is left for another and entered from the same side again and again: few crossings."""
    modules = modules_visited(make_call())
    rooms = rooms_visited(modules)
    with capsys.disabled():
        print(f"\n{len(modules)} modules: {' -> '.join(rooms)}")  # noqa: T201
    assert len(modules) <= MAX_MODULES, modules
    assert max(crossings(rooms).values()) <= 2, rooms


def test_the_crossings_of_a_crooked_walk_are_counted():
    modules = ["anchorline.search.a", "anchorline.spaces.a", "anchorline.search.b", "anchorline.spaces.b"]
    assert crossings(rooms_visited(modules)) == {("search", "spaces"): 2, ("spaces", "search"): 1}
