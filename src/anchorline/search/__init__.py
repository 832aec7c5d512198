"""From a case to findings: flips, queries, evidence, solution, assessment; the two sides meet here.

May import: errors, grid, settings, model, spaces, optimize, guarantees.
"""

from anchorline.search.assess import Assessment
from anchorline.search.case import Case
from anchorline.search.investigate import Findings

__all__ = ["Assessment", "Case", "Findings"]
