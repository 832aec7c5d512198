"""Familiar interfaces: LIME's calls on top of anchorline, and explanations that SHAP's plots can draw.

May import: errors, facts, settings, spaces, model, explainer, result, render.

>>> from anchorline.compat import LimeTabularExplainer, to_shap
"""

from anchorline.compat.lime import (
    LimeExplanation,
    LimeImageExplainer,
    LimeTabularExplainer,
    LimeTextExplainer,
)
from anchorline.compat.shap import to_shap

__all__ = ["LimeExplanation", "LimeImageExplainer", "LimeTabularExplainer", "LimeTextExplainer", "to_shap"]
