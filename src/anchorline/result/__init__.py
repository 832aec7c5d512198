"""What comes back: explanations, certificates, frontiers, verifications, and their JSON and frames.

Results are passive data, which `assemble` builds from findings.
May import: errors, grid, settings, guarantees, optimize, spaces, model, search, and `_links` for methods above.
"""

from anchorline.result.certificate import Certificate, Verdict
from anchorline.result.explanation import Alternative, Explanation, Term
from anchorline.result.explanations import Explanations, Failure, Summary
from anchorline.result.frontier import Frontier, FrontierPoint
from anchorline.result.neighbors import NeighborSample
from anchorline.result.verification import Outcome, Verification

__all__ = [
    "Alternative",
    "Certificate",
    "Explanation",
    "Explanations",
    "Failure",
    "Frontier",
    "FrontierPoint",
    "NeighborSample",
    "Outcome",
    "Summary",
    "Term",
    "Verdict",
    "Verification",
]
