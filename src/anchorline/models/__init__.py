"""Models from files, names and addresses: something to hand to `Explainer`.

Nothing here runs code that a file brings along, unless you say so: see `load_model`.
"""

from anchorline.models.http_limits import HttpLimits
from anchorline.models.loading import KINDS, load_model

__all__ = ["KINDS", "HttpLimits", "load_model"]
