"""The page names what makes its explanations misleading."""

import json

import numpy as np
import pandas as pd

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from anchorline.studio.access import StudioLimits
from anchorline.studio.app import Studio

FRAME = pd.DataFrame({"a": np.arange(100.0) / 2, "target": ["no", "yes"] * 50})


def model(rows):
    return np.full(len(rows), 0.5)


def notices(explainer, **options):
    return json.loads(Studio(explainer, token=None, **options).service.about("model", None))["notices"]


def test_notices_are_the_findings_so_far():
    explainer = Explainer(model, Table(FRAME), output_range=(0, 1))
    (notice,) = notices(explainer, limits=StudioLimits(max_queries=500))  # the table is not asked
    assert notice.startswith("'target' may be what the model predicts")
    assert "output is 0.5 for all" in notices(explainer)[1]
    assert len(notices(Explainer(model, Table(FRAME[["a"]])))) == 1
