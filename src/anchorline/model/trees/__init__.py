"""Ensembles of trees in one neutral form, whichever library fitted them.

May import: errors, grid.
"""

from anchorline.model.trees.ensemble import Ensemble

__all__ = ["Ensemble"]
