"""Guarantees: the paper's theorems as functions, and estimates with finite-sample intervals.

Regularity checks of a sample, confidence sequences and the trajectory of Algorithm 1 live here too.
May import: errors.
"""

from anchorline.guarantees.intervals import (
    Estimate,
    Interval,
    betting_interval,
    binomial_interval,
    estimate_mean,
    estimate_share,
    exact_estimate,
    flip_sum_limit,
    split_delta,
)
from anchorline.guarantees.regularity import Regularity, check_regularity, largest_norm
from anchorline.guarantees.sequences import BettingSequence
from anchorline.guarantees.theorems import (
    IhtConstants,
    achievable_epsilon,
    end_to_end_factor,
    iht_achievable_epsilon,
    iht_constants,
    iht_iterations,
    iht_mean_tolerance,
    iht_radius,
    iht_required_samples,
    iht_residual_bound,
    iht_step,
    is_vacuous,
    locality_cost,
    relevance_factor,
    relevance_factor_from_event,
    relevance_factor_from_flips,
    required_samples,
    rsc_required_samples,
)
from anchorline.guarantees.trajectory import Trajectory, follow_trajectory

__all__ = [
    "BettingSequence",
    "Estimate",
    "IhtConstants",
    "Interval",
    "Regularity",
    "Trajectory",
    "achievable_epsilon",
    "betting_interval",
    "binomial_interval",
    "check_regularity",
    "end_to_end_factor",
    "estimate_mean",
    "estimate_share",
    "exact_estimate",
    "flip_sum_limit",
    "follow_trajectory",
    "iht_achievable_epsilon",
    "iht_constants",
    "iht_iterations",
    "iht_mean_tolerance",
    "iht_radius",
    "iht_required_samples",
    "iht_residual_bound",
    "iht_step",
    "is_vacuous",
    "largest_norm",
    "locality_cost",
    "relevance_factor",
    "relevance_factor_from_event",
    "relevance_factor_from_flips",
    "required_samples",
    "rsc_required_samples",
    "split_delta",
]
