"""The page names what makes its explanations misleading."""

import json

import numpy as np
import pandas as pd

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from anchorline.studio.access import StudioLimits
from helpers.studio import studio_of

FRAME = pd.DataFrame({"a": np.arange(100.0) / 2, "target": ["no", "yes"] * 50})


def model(rows):
    return np.full(len(rows), 0.5)


def notices(explainer, **options):
    return json.loads(studio_of(explainer, **options).served[""].service.about())["notices"]


def test_notices_are_the_findings_so_far():
    explainer = Explainer(model, Table(FRAME), output_range=(0, 1))
    (notice,) = notices(explainer, limits=StudioLimits(max_queries=500))  # the table is not asked
    assert notice.startswith("'target' may be what the model predicts")
    assert notice.endswith("Start the server with --target target.")
    assert "output is 0.5 for all" in notices(explainer)[1]
    assert notices(explainer)[1].endswith("Start the server with the --data that the model was fitted on.")
    assert len(notices(Explainer(model, Table(FRAME[["a"]])))) == 1


def test_notices_name_switches_and_nothing_for_python():
    days = [f"2024-{1 + i // 28:02}-{1 + i % 28:02}" for i in range(100)]
    frame = pd.DataFrame(
        {
            "customer_id": np.arange(100) + 7,
            "day": days[:50] * 2,
            "marked": ["?", "x", "y", "z"] * 25,
            "is_red": [1, 0, 0, 0] * 25,
            "is_blue": [0, 1, 0, 0] * 25,
            "is_green": [0, 0, 1, 0] * 25,
        }
    )
    explainer = Explainer(lambda rows: np.asarray(rows["is_red"], dtype=float), Table(frame), output_range=(0, 1))
    found = notices(explainer, limits=StudioLimits(max_queries=500))
    assert {finding.code for finding in explainer.findings} >= {"id", "lost-type", "lost-missing", "indicators"}
    for text in found:
        assert "--" in text
        assert not {word for word in ("frame[", "Type ", "fixed=", "groups=", "neighbors") if word in text}
