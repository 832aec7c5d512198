"""Guarantees: limits that hold together at every look, the verdict, and how many neighbors to ask about.

May import: errors, result.explanation.
"""

from anchorline.guarantees.measuring import Measurement, Round

__all__ = ["Measurement", "Round"]
