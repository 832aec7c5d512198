"""Spaces: what an instance can be. A new kind of instance is one file."""

from anchorline.spaces.base import Neighborhood, Space
from anchorline.spaces.hypercube import Hypercube

__all__ = ["Hypercube", "Neighborhood", "Space"]
