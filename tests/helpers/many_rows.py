"""The table, the rows and the settings that the batch tests share."""

from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from helpers.batch_models import people, score

TRAIN, ROWS = people(200), people(30, seed=1)
CHEAP = {"k": 3, "queries": 200}
AUTO = {"k": 3}  # also asks about the rows of the table


def explainer_of(model=score, train=TRAIN, **options):
    """Return an explainer of a model of the table."""
    return Explainer(model, Table(train), output="score", **options)


def texts(explanations):
    """Return the JSON text of every explanation; None for a row that failed."""
    return [record["explanation"] for record in explanations.records]


def with_ages(*pairs):
    """Return the rows with other ages at some places."""
    rows = ROWS.copy()
    for place, age in pairs:
        rows.loc[place, "age"] = age
    return rows
