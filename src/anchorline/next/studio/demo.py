"""The model and data of ``anchorline serve --demo``: synthetic loan applications and a trained classifier."""

from typing import Any

from anchorline.next.explainer import Explainer
from anchorline.next.spaces.table import Table
from anchorline.samples import loans


def demo_truth(n_rows: int = 2000) -> tuple[str, Any]:
    """Return the name and the values of the decisions that the demonstration's model was trained on."""
    return "decision", loans(n_rows)[1]


def demo_explainer(n_rows: int = 2000) -> Explainer:
    """Train gradient boosting on `anchorline.samples.loans`, in about a second, and return its explainer."""
    from sklearn.compose import make_column_transformer  # noqa: PLC0415  slow to import
    from sklearn.ensemble import HistGradientBoostingClassifier  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import OneHotEncoder  # noqa: PLC0415

    frame, decision = loans(n_rows)
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encode = make_column_transformer(
        (one_hot, ["purpose", "branch"]), ("drop", ["applied"]), remainder="passthrough"
    )
    boosting = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=12, random_state=0)
    return Explainer(make_pipeline(encode, boosting).fit(frame, decision), Table(frame))
