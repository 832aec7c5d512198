"""Ensembles of trees in one neutral form, whichever library fitted them, and the readers of the libraries.

May import: errors; and of the same room, outputs and loaders.
"""

from anchorline.model.trees.ensemble import Ensemble
from anchorline.model.trees.reading import Agreement, Reading, Refusal, agrees, read

__all__ = ["Agreement", "Ensemble", "Reading", "Refusal", "agrees", "read"]
