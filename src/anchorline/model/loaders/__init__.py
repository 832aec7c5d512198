"""Models from files, names and addresses: something to hand to `Explainer`.

Nothing here runs code that a file brings along, unless you say so: see `load_model`.
"""

from anchorline.model.loaders.http_limits import HttpLimits
from anchorline.model.loaders.loading import KINDS, load_model

__all__ = ["KINDS", "HttpLimits", "load_model"]
