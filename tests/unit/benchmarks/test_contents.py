"""The comparison with LIME on texts and images: equal queries, equal units, and an anchored sum of ours."""

import numpy as np
import pytest

from benchmarks import contents


@pytest.fixture(autouse=True)
def small(monkeypatch):
    sizes = {"N_TEXTS": 1, "N_PIECES": 1, "TEXT_SIZES": ((20, 60),), "IMAGE_SIZES": (6,)}
    for name, value in (sizes | {"TEXT_QUERIES": 400, "IMAGE_QUERIES": 60, "N_FRESH": 100}).items():
        monkeypatch.setattr(contents, name, value)


@pytest.mark.parametrize("section", [contents.compare_text, contents.compare_images])
def test_both_use_the_same_queries_and_units(section):
    ours, limes = section()
    assert (ours["method"], limes["method"]) == ("anchorline", "LIME")
    assert 0 < ours["queries"] <= limes["queries"]  # all copies of an image of few regions are listed
    assert ours["units"] == limes["units"]
    assert 0 < ours["chosen"] <= contents.K
    assert ours["anchoring_gap"] < 1e-9
    assert 0 <= limes["share_kept"] <= 1


def test_limes_sum_is_converted_exactly():
    """LIME's sum b + sum of w over units that are there is its value minus the effects of those that are not."""
    space = contents.OurTextExplainer().space
    subject = contents.Subject(space, "a b c", len, lambda *_: ([(2, 0.4), (0, -0.2)], 0.3), 10)
    effects, value = contents._limes(subject, contents.Stopwatch(len), 0, 0)
    for flips in np.ndindex(2, 2, 2):
        held = 1 - np.array(flips)
        assert value - effects @ flips == pytest.approx(0.3 + 0.4 * held[2] - 0.2 * held[0])
