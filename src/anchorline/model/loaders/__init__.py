"""Models from files, names and addresses: `load_model` returns an object that `Explainer` takes.

No loader runs code that a file contains, unless you pass ``trust_pickle=True``; see `load_model`.
May import: errors.
"""

from anchorline.model.loaders.http_endpoint import HttpLimits
from anchorline.model.loaders.loading import KINDS, load_model

__all__ = ["KINDS", "HttpLimits", "load_model"]
