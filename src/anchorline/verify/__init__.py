"""Check somebody else's explanation: recompute what can be recomputed, measure the rest on fresh neighbors.

May import: explainer, result, search, settings, guarantees, optimize, model, spaces, errors.
"""

from anchorline.result.verification import Outcome, Verification
from anchorline.verify.check import verify

__all__ = ["Outcome", "Verification", "verify"]
