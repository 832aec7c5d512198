"""A model that raises an exception on a frame of another library: the message names the library to use."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import make_column_transformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder

from anchorline.errors import PredictorError
from anchorline.explainer import Explainer
from anchorline.spaces.table import Table

FRAME = pd.DataFrame({"age": np.arange(40), "job": ["a", "b"] * 20, "debt": np.arange(40) % 3})
TARGET = FRAME["age"] > 20


def with_age_in_months(frame):
    return frame.assign(age=frame["age"] * 12)[["age", "debt"]]


def pipeline():
    encode = make_column_transformer((OneHotEncoder(sparse_output=False), ["job"]), remainder="passthrough")
    return make_pipeline(encode, LogisticRegression(max_iter=1000)).fit(FRAME, TARGET)


def pandas_pipeline():
    return make_pipeline(FunctionTransformer(with_age_in_months), LogisticRegression(max_iter=1000)).fit(
        FRAME, TARGET
    )


@pytest.mark.parametrize("make", [pipeline, pandas_pipeline])
def test_an_arrow_table_for_a_pipeline_that_was_fitted_on_pandas(make):
    table = pa.Table.from_pandas(FRAME)
    with pytest.raises(PredictorError, match=r"fitted on a frame.*pandas frame, but it receives Arrow") as caught:
        Explainer(make(), Table(table)).explain(3, queries=400)
    message = str(caught.value)
    assert "`al.Explainer(model, al.Table(table.to_pandas()))`" in message
    assert "\n" not in message
    assert Explainer(make(), Table(table.to_pandas())).explain(3, queries=400).facts


@pytest.mark.parametrize(
    ("table", "library"), [(pl.from_pandas(FRAME), "Polars frames"), (pa.Table.from_pandas(FRAME), "Arrow tables")]
)
def test_a_function_that_takes_pandas_frames(table, library):
    def model(frame):
        return with_age_in_months(frame)["age"] / 1000

    explainer = Explainer(model, Table(table), output_range=(0, 1))
    with pytest.raises(
        PredictorError, match=rf"receives {library}.*pandas frames, type `al.Table\(table.to_pandas"
    ):
        explainer.explain(3, queries=400)


def test_a_pandas_frame_is_not_blamed():
    def model(frame):
        raise ValueError("broken")

    with pytest.raises(PredictorError, match=r"ValueError: broken \(queried") as caught:
        Explainer(model, Table(FRAME), output_range=(0, 1)).explain(3)
    assert "to_pandas" not in str(caught.value)
