"""What the law of the draws says about flips without a query: their means and covariances."""

import numpy as np

from anchorline.optimize.estimation import EstimatedEvidence, estimate_evidence
from anchorline.optimize.evidence import Evidence
from anchorline.spaces.base import Law


def with_known_moments(evidence: Evidence, law: Law) -> EstimatedEvidence:
    """Return what a drawn sample says about all neighbors, given that the moments of flips are known."""
    return estimate_evidence(evidence, law.literal_probabilities, flip_covariances(law))


def flip_covariances(law: Law) -> np.ndarray:
    """Return the covariances (d, d) of the literals' flips; literals about different attributes have none.

    Examples
    --------
    >>> flip_covariances(Law.of_literals(2, flip_probability=0.5)).tolist()
    [[0.25, 0.0], [0.0, 0.25]]
    """
    means, shares = law.literal_probabilities, law.shares[law.groups]
    if law.one_to_one:
        return np.asarray(np.diag(means * (1 - means)))
    breaks = law.breaks[:, 1:].astype(np.float64)
    both = law.flip_probability * (breaks * shares) @ breaks.T  # of one attribute
    return np.asarray(np.where(law.groups[:, None] == law.groups, both - np.outer(means, means), 0.0))
