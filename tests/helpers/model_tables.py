"""One small table for the tests of loaded models: numbers, whole numbers, texts and categories."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

_rng = np.random.default_rng(0)
N = 150
TABLE = pd.DataFrame(
    {
        "net income": _rng.normal(size=N).astype(np.float32),
        "children": _rng.integers(0, 5, N),
        "town": _rng.choice(["Arras", "Lens", "Béthune"], N),
    }
)
LABELS = np.where((TABLE["net income"] > 0) ^ (TABLE["town"] == "Lens"), "yes", "no")
NUMBERS = TABLE[["net income", "children"]]
COARSE = (TABLE["children"] % 3).to_numpy()
CATEGORIES = TABLE.assign(town=TABLE["town"].astype("category"), level=pd.Categorical(TABLE["children"] * 10))


def fit_pipeline(final=None):
    """Return a pipeline of preprocessing and ``final`` (a small forest by default), fitted on `TABLE`."""
    numeric = make_pipeline(SimpleImputer(), StandardScaler())
    columns = [("n", numeric, ["net income", "children"]), ("c", OneHotEncoder(handle_unknown="ignore"), ["town"])]
    final = RandomForestClassifier(5, random_state=0) if final is None else final
    return make_pipeline(ColumnTransformer(columns), final).fit(TABLE, LABELS)


def same_in_every_frame(model, expected, table=TABLE, **tolerance):
    """Assert that a model gives the expected answers to pandas, Polars and Arrow frames with reordered columns."""
    reordered = table[list(reversed(table.columns))]
    categorical = [name for name in reordered if reordered[name].dtype == "category"]
    plain = reordered.assign(**{name: reordered[name].astype(object) for name in categorical})
    for frame in (reordered, pl.from_pandas(plain), pa.Table.from_pandas(plain, preserve_index=False)):
        np.testing.assert_allclose(model(frame), expected, **tolerance)
