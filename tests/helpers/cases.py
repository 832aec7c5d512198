"""Predictors and cases, opened, without an explainer around them."""

from anchorline.model.predictor import Predictor
from anchorline.model.target import Target
from anchorline.search import case
from anchorline.settings import Settings
from anchorline.spaces import Hypercube


def open_predictor(model, original, *, task=None, column=None, **options):
    """A predictor that has been queried about the instance."""
    return Predictor(Target(model, task, column=column), **options).open(original)


def open_case(model, x, *, task=None, **settings):
    """A case on the hypercube that has been opened."""
    return case.open_case(Hypercube(), x, Predictor(Target(model, task)), Settings(**settings))
