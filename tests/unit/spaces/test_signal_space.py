"""Signals: stretches, hidden values, records and refusals."""

import numpy as np
import pytest

from anchorline.errors import InstanceError, ParameterError
from anchorline.facts import Fact
from anchorline.spaces.regions import Signal

TIMES = np.arange(200)
SIGNAL = np.sin(TIMES / 9)


def test_facts_name_stretches():
    there = Signal(segments=10).at(SIGNAL)
    assert there.fact(3) == Fact("points 60 to 79", "points 60 to 79", "present", value="points 60 to 79")
    assert len(there.names) == 10
    assert (Signal.noun, Signal.default_k) == ("stretches", 8)
    assert len(Signal(segments=50).at([1.0, 2.0]).names) == 2


def test_hidden_stretches():
    one = np.eye(10, dtype=bool)[3:4]
    expected = {
        "mean": np.full(20, SIGNAL[60:80].mean()),
        "interpolate": np.linspace(SIGNAL[60], SIGNAL[79], 20),
        0.5: np.full(20, 0.5),
    }
    for hidden, values in expected.items():
        (neighbor,) = Signal(segments=10, hidden=hidden).at(SIGNAL).realize_flips(one)
        np.testing.assert_allclose(neighbor[60:80], values)
        np.testing.assert_array_equal(np.delete(neighbor, np.s_[60:80]), np.delete(SIGNAL, np.s_[60:80]))


def test_channels_and_given_stretches():
    several = np.column_stack([SIGNAL, SIGNAL**2])
    there = Signal(segments=TIMES // 50).at(several)
    assert len(there.names) == 4
    assert (Signal(segments=lambda given: TIMES // 50).at(several).labels == there.labels).all()
    hidden = there.realize_flips(np.ones((1, 4), dtype=bool))
    np.testing.assert_allclose(hidden[0, 0], several[:50].mean(axis=0))


def test_records_and_fingerprints():
    there = Signal().at(SIGNAL)
    again = Signal().at(there.instance)
    assert (again.key, again.names, again.instance) == (there.key, there.names, there.instance)
    assert Signal(segments=10).at(SIGNAL).key != there.key
    spaces = [Signal(), Signal(10), Signal(TIMES), Signal(len), Signal(hidden=0), Signal(hidden="interpolate")]
    assert len({space.fingerprint for space in spaces}) == 6
    assert len(Signal().instances(np.zeros((3, 50)))) == 3


def test_refusals():
    for wrong in (0, "ten", True):
        with pytest.raises(ParameterError, match="segments is"):
            Signal(segments=wrong)
    with pytest.raises(ParameterError, match="hidden is"):
        Signal(hidden="zero")
    with pytest.raises(InstanceError, match="must be numbers"):
        Signal().at("abc")
    with pytest.raises(InstanceError, match="shape"):
        Signal().at(np.zeros((2, 2, 2)))
    with pytest.raises(InstanceError, match="one per point"):
        Signal(segments=np.zeros(3, dtype=int)).at(SIGNAL)
