"""The page names what makes its explanations misleading."""

import numpy as np
import pandas as pd

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from anchorline.studio.app import Studio
from anchorline.studio.limits import StudioLimits

FRAME = pd.DataFrame({"a": np.arange(100.0) / 2, "target": ["no", "yes"] * 50})


def model(rows):
    return np.full(len(rows), 0.5)


def test_notices_are_the_findings_so_far():
    explainer = Explainer(model, Table(FRAME), output_range=(0, 1))
    about = Studio(explainer, token=None, limits=StudioLimits(max_queries=500)).about()  # the table is not asked
    (notice,) = about["notices"]
    assert notice.startswith("'target' may be what the model predicts")
    assert "output is 0.5 for all" in Studio(explainer, token=None).about()["notices"][1]
    assert len(Studio(Explainer(model, Table(FRAME[["a"]])), token=None).about()["notices"]) == 1
