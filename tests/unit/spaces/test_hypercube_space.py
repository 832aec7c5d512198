"""The hypercube: facts are true of x, neighbors change signs, and equal instances have equal keys."""

import numpy as np
import pytest

from anchorline.errors import InstanceError, ParameterError
from anchorline.facts import Fact
from anchorline.spaces.hypercube import Hypercube


def test_facts_are_true_of_the_instance():
    there = Hypercube(["citizen", ("DTI <= 30%", "DTI > 30%"), ("owner", "renter")]).at([-1, 1, -1])
    assert [there.fact(j) for j in range(3)] == [
        Fact("citizen", "citizen", "equals", value=-1),
        Fact("DTI <= 30%", "DTI <= 30%", "equals", value="DTI <= 30%"),
        Fact("owner", "owner", "equals", value="renter"),
    ]
    assert there.names == ("citizen", "DTI <= 30%", "owner")


def test_without_names_coordinates_are_numbered():
    there = Hypercube().at([1, -1] * 6)
    assert there.names[:2] == ("x0", "x1")
    assert there.fact(11) == Fact("x11", "x11", "equals", value=-1)


@pytest.mark.parametrize(
    "wrap", [list, tuple, np.array, lambda x: np.array(x, dtype=np.int8), lambda x: np.array(x, dtype=np.float32)]
)
def test_equal_instances_are_the_same(wrap):
    x = [1, -1, -1, 1]
    there = Hypercube().at(wrap(x))
    assert there.key == Hypercube().at(x).key
    assert there.instance == x
    assert [type(value) for value in there.instance] == [int] * 4
    assert there.original.dtype == np.float64
    np.testing.assert_array_equal(there.original, [x])


def test_frames_rows_are_instances():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, -1], "b": [-1, -1]})
    assert Hypercube(list(frame.columns)).at(frame.iloc[0]).instance == [1, -1]


def test_other_instances_have_other_keys():
    signs = [np.where(np.arange(8) == j, -1, 1) for j in range(8)] + [np.ones(8), np.ones(7), np.ones(9)]
    assert len({Hypercube().at(x).key for x in signs}) == len(signs)


def test_realize_changes_the_sign_where_flipped():
    x = np.array([1.0, -1.0, 1.0])
    flips = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 1], [1, 1, 1]], dtype=bool)
    there = Hypercube().at(x)
    expected = [[1, -1, 1], [-1, -1, 1], [1, 1, -1], [-1, 1, -1]]
    np.testing.assert_array_equal(there.realize_flips(flips), expected)
    np.testing.assert_array_equal(there.realize(np.where(flips, 0, -1).T), expected)
    np.testing.assert_array_equal(there.realize(np.where(flips, 0, 1).T), expected)
    assert there.realize_flips(flips).dtype == np.float64


def test_nothing_handed_out_leads_back_in():
    there = Hypercube().at([1, -1])
    there.original[:] = 5
    there.realize(np.ones((2, 1)))[:] = 5
    there.instance[0] = 5
    np.testing.assert_array_equal(there.original, [[1, -1]])
    assert there.instance == [1, -1]


def test_the_neighborhood_owns_its_point():
    x = np.array([1.0, -1.0])
    there = Hypercube().at(x)
    key = there.key
    x[0] = -1
    assert there.key == key


def test_fingerprint_is_the_names():
    plain, named, other = Hypercube(), Hypercube(["a", "b"]), Hypercube(["a", "c"])
    texts = Hypercube([("a", "not a"), "b"])
    assert len({space.fingerprint for space in (plain, named, other, texts)}) == 4
    assert named.fingerprint == Hypercube(("a", "b")).fingerprint == Hypercube(iter(["a", "b"])).fingerprint
    assert plain.fingerprint == Hypercube().fingerprint
    assert named.fingerprint.startswith("hypercube:")


@pytest.mark.parametrize(
    ("x", "fragments"),
    [
        ([1, 0, 1], ["x[1] is 0", "-1 or +1", "2 * x - 1", "Explainer"]),
        ([1, 1, np.nan], ["x[2] is nan", "-1 or +1"]),
        ([np.inf, 1], ["x[0] is inf", "-1 or +1"]),
        ([0.999, 1], ["x[0] is 0.999"]),
        ([1, 2, 3], ["x[1] is 2"]),
        ([1, None], ["x[1] is nan"]),
        ([], ["(0,)", "d >= 1"]),
        (1, ["()", "(d,)"]),
        ([[1, -1], [1, 1]], ["(2, 2)", "(d,)", "x[0]"]),
        (np.ones((1, 1, 1)), ["(1, 1, 1)", "(d,)"]),
        (["red", "blue"], ["not numeric", "-1 and +1"]),
        ([[1], [1, -1]], ["not numeric"]),
        (None, ["()"]),
        ({"a": 1}, ["not numeric"]),
        ([1 + 2j, 1], ["not numeric"]),
    ],
)
def test_what_is_not_an_instance(x, fragments):
    with pytest.raises(InstanceError) as caught:
        Hypercube().at(x)
    for fragment in fragments:
        assert fragment in str(caught.value)


@pytest.mark.parametrize("x", [[1], [1, -1, 1]])
def test_as_many_values_as_names(x):
    with pytest.raises(InstanceError, match=f"{len(x)} values.*2 names"):
        Hypercube(["a", "b"]).at(x)


@pytest.mark.parametrize("name", [("a",), ("a", "b", "c"), ("a", 1), (None, "b"), [1, 2]])
def test_a_name_is_one_text_or_two(name):
    with pytest.raises(ParameterError, match="must be a text, or two"):
        Hypercube([name, "other"])


@pytest.mark.parametrize("names", [[1, 2], [None, "a"], 5])
def test_names_are_texts(names):
    with pytest.raises(ParameterError, match="name"):
        Hypercube(names)


def test_neighbors_lie_row_by_row():
    assert Hypercube().at([1, -1, 1]).realize(np.zeros((3, 9))).flags.c_contiguous


def test_calls_are_small_for_many_coordinates():
    assert Hypercube().at([1, -1]).rows_per_call == 4096
    assert Hypercube().at(np.ones(8192)).rows_per_call == 1024
