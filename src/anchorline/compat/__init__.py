"""Familiar interfaces: LIME's calls on top of anchorline, and explanations that SHAP's plots can draw.

May import: errors, facts, io, settings, spaces, model, explainer, result, render.

>>> from anchorline.compat import LimeTabularExplainer, to_shap
"""

from anchorline.compat.lime_explanation import LimeExplanation
from anchorline.compat.lime_image import LimeImageExplainer
from anchorline.compat.lime_tabular import LimeTabularExplainer
from anchorline.compat.lime_text import LimeTextExplainer
from anchorline.compat.shap import to_shap

__all__ = ["LimeExplanation", "LimeImageExplainer", "LimeTabularExplainer", "LimeTextExplainer", "to_shap"]
