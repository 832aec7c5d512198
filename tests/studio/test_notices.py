"""The page names what makes its explanations misleading, without a query of its own."""

import numpy as np
import pandas as pd

import anchorline as al
from anchorline.studio.app import Studio

FRAME = pd.DataFrame({"a": np.arange(100.0) / 2, "target": ["no", "yes"] * 50})


def model(rows):
    return np.full(len(rows), 0.5)


def test_notices_are_the_findings_so_far():
    explainer = al.Explainer(model, al.Table(FRAME), output_range=(0, 1))
    studio = Studio(explainer, token=None)
    (notice,) = studio.about()["notices"]
    assert notice.startswith("'target' may be what the model predicts")
    explainer.check()  # as `anchorline serve` does before it starts
    assert "output is 0.5 for all training rows" in studio.about()["notices"][1]
    assert Studio(al.Explainer(model, al.Table(FRAME[["a"]])), token=None).about()["notices"] == []
