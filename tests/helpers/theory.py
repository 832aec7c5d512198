"""Drawn flips and their moments, for the tests of the paper's theory."""

import numpy as np

from anchorline.optimize import Evidence
from anchorline.search.sampling import DrawnFlips, stream_key
from anchorline.settings import flip_probability_of
from anchorline.spaces.base import Law


def draw_flips(sigma, d, n, seed=0, shift=0.0):
    """Flips (n, d) with the probability of sigma plus ``shift``."""
    key = stream_key(seed, b"theory", "search")
    law = Law.of_literals(d, flip_probability_of(sigma) + shift)
    return law.flips(DrawnFlips(key, n, law.ends).rows(0, n)[0])


def moments(flips):
    """Flip means and second moments of a sample."""
    evidence = Evidence.from_sample(flips, np.zeros(len(flips)))
    return evidence.flip_means, evidence.second_moments
