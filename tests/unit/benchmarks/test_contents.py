"""The comparison with LIME on texts and images: equal queries, equal units, and an anchored sum of ours."""

import numpy as np
import pytest

from benchmarks import contents


@pytest.fixture(autouse=True)
def small(monkeypatch):
    sizes = {"N_TEXTS": 1, "N_PIECES": 1, "TEXT_SIZES": ((20, 60),), "IMAGE_SIZES": (6,)}
    for name, value in (sizes | {"TEXT_QUERIES": 200, "IMAGE_QUERIES": 60, "N_FRESH": 100}).items():
        monkeypatch.setattr(contents, name, value)


@pytest.mark.parametrize("section", [contents.compare_text, contents.compare_images])
def test_both_use_the_same_queries_and_units(section):
    ours, limes = section()
    assert (ours["method"], limes["method"]) == ("anchorline", "LIME")
    assert ours["queries"] == limes["queries"]
    assert ours["facts"] == limes["facts"]
    assert ours["anchoring_gap"] < 1e-9
    assert 0 <= limes["relevance_error"] <= 1


def test_limes_sum_is_converted_exactly():
    """LIME's sum b + sum of w over facts that hold is the same function in anchorline's form."""
    space = contents.OurTextExplainer().space
    subject = contents.Subject(space, "a b c", len, lambda *_: ([(2, 0.4), (0, -0.2)], 0.3), 10)
    contributions, intercept = contents._limes(subject, contents.Stopwatch(len), 0, 0)
    for flips in np.ndindex(2, 2, 2):
        held = 1 - np.array(flips)
        assert intercept + contributions @ (2 * held - 1) == pytest.approx(0.3 + 0.4 * held[2] - 0.2 * held[0])
