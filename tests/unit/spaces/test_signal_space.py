"""Signals: stretches, hidden values, records and refusals."""

import numpy as np
import pytest

from anchorline.errors import InstanceError, ParameterError
from anchorline.explainer import Explainer
from anchorline.facts import Fact
from anchorline.render.geometry import curve_of
from anchorline.result.explanation import Explanation
from anchorline.spaces.regions import Signal
from anchorline.verify import verify

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


@pytest.mark.parametrize("channels", ["auto", "first"])
def test_channels_may_come_first_and_the_model_gets_them_so(channels):
    signal = np.vstack([SIGNAL, 2 * SIGNAL]) if channels == "first" else SIGNAL[None]
    seen = []

    def model(batch):
        seen.append(batch.shape[1:])
        return batch[:, 0, :20].mean(axis=1)

    space = Signal(segments=10, hidden=0, channels=channels)
    e = Explainer(model, space, output="level").explain(signal, queries=300)
    assert {*seen} == {signal.shape}
    assert [fact.attribute for fact in e.facts] == ["points 0 to 19"]
    assert Explanation.from_json(e.to_json()).space["channels"] == "first"
    assert (curve_of(e).values == signal.T).all()
    assert verify(e, model, space).holds


def test_an_array_that_may_be_read_in_two_ways_is_asked_about():
    wide = np.arange(30.0).reshape(3, 10)
    with pytest.raises(InstanceError, match=r"3 points of 10 channels, or 10 points of 3 .*'first'"):
        Signal().at(wide)
    assert Signal(channels="last").at(wide).labels.shape == (3,)
    assert Signal(channels="last").fingerprint == Signal().fingerprint == Signal(20).fingerprint
    assert Signal(channels="first").fingerprint != Signal().fingerprint
    assert Signal().at(wide.T).labels.shape == (10,)
    with pytest.raises(ParameterError, match="channels is 'middle'"):
        Signal(channels="middle")
