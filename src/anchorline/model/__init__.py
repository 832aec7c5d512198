"""The black box: which number of a model is explained, its checked answers, and loaders of model files.

Models that try to end the process are contained here too. May import: errors, result.
"""

from anchorline.model.answers import LabelScores, Repeated, SimilarTo, word_overlap
from anchorline.model.outputs import Target, resolve
from anchorline.model.predictor import Answer, Predictor

__all__ = ["Answer", "LabelScores", "Predictor", "Repeated", "SimilarTo", "Target", "resolve", "word_overlap"]
