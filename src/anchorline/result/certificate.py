"""The certificate: what is known about an explanation, by which kind of claim, and the verdict for the reader."""

import enum
import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from anchorline._links import call
from anchorline.guarantees import Estimate
from anchorline.optimize.problem import Status

_ESTIMATES = (
    *("fidelity_error", "relevance_error", "baseline_error"),
    *("stability", "baseline_stability", "typical_change", "baseline_change"),
)


class Verdict(enum.Enum):
    """Whether a reader may rely on the reasons; the value of each member is its meaning."""

    TRUSTWORTHY = (
        "While the reasons stay, the decision stays in at least 95% of neighbors; a number moves by less than a "
        "tenth of its range."
    )
    WEAK = "The reasons help, but other attributes decide too, or there were too few samples to decide."
    UNRELIABLE = "The output often changes although the reasons stay. Do not rely on this explanation."
    UNKNOWN = "Not measured. Ask for a certificate (n_certify)."

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return getattr, (Verdict, self.name)  # by name, so that pickles survive a reworded text


# Most readers call a decision reliable if it stays in 19 of 20 cases, and a tendency if it stays in 4 of 5.
TRUSTWORTHY_STABILITY, WEAK_STABILITY = 0.95, 0.80
# A typical change within a tenth of the output range reads as "about the same"; a quarter is a different answer.
TRUSTWORTHY_CHANGE, WEAK_CHANGE = 0.10, 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """What is known about an explanation, in three kinds of claim that are never mixed.

    On the sample: ``status``, ``objective`` and ``lower_bound``, which are mean squares on the scale [-1, +1]:
    fidelity errors, or relevance errors if the ``goal`` is "relevance" or "shortest". ``exhaustive`` means that
    the sample was the whole distribution.

    In the population, with all limits holding together at the chosen ``confidence``: ``fidelity_error``,
    ``relevance_error`` and ``stability``, measured on fresh neighbors, or None if not measured;
    ``typical_change``, the root of the relevance error in the output's own units; and the baselines of all of
    them, measured without a condition.

    By theorem: ``theorem_epsilon``, the amount that the uniform-convergence theorem adds to the objective at this
    sample size. It is vacuous above 1.

    ``keeps_values`` means that the condition kept the values of the facts, not only the facts. ``decision`` is
    the kind of decision, see `Predictor.decision`. ``n_clipped_inside`` counts outputs that were clipped while
    the condition held; if there are any, the measured change understates the true one. ``answers_checksum`` is a
    random weighted sum of all the model's answers, tied to the parameters.
    """

    status: Status
    goal: str
    objective: float
    lower_bound: float
    anchoring_residual: float
    n_terms: int
    n_facts: int
    n_samples: int
    n_queries: int
    n_clipped: int
    exhaustive: bool
    fidelity_error: Estimate | None = None
    relevance_error: Estimate | None = None
    baseline_error: Estimate | None = None
    stability: Estimate | None = None
    baseline_stability: Estimate | None = None
    typical_change: Estimate | None = None
    baseline_change: Estimate | None = None
    confidence: float
    event_probability: float | None = None
    event_is_literal: bool | None = None
    keeps_values: bool = False
    decision: str | None = None
    n_clipped_inside: int = 0
    theorem_epsilon: float | None = None
    answers_checksum: float
    stopped_because: str | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Certificate":
        """Read the plain values that the JSON holds."""
        known = {field.name: values[field.name] for field in fields(cls)}
        measured = {name: Estimate(**known[name]) for name in _ESTIMATES if known[name] is not None}
        return cls(**known | measured | {"status": Status[known["status"]]})

    @property
    def optimality_gap(self) -> float:
        """The largest amount by which the objective may exceed the best sum of at most k terms on this sample."""
        return max(0.0, self.objective - self.lower_bound)

    @property
    def relevance_bound(self) -> float | None:
        """The bound on relevance that follows from fidelity alone: ``min(1, fidelity_error.high / P[A])``."""
        if self.fidelity_error is None or self.event_probability is None:
            return None
        return min(1.0, self.fidelity_error.high / self.event_probability)

    @property
    def verdict(self) -> Verdict:
        """The verdict: the bad end of the interval must be good to praise, the good end bad to condemn.

        The intervals hold together, so the verdict adds no failure probability.
        """
        if self.relevance_error is None:
            return Verdict.UNKNOWN
        if self.stability is not None:
            best, worst = 1 - self.stability.high, 1 - self.stability.low
            good, bad = 1 - TRUSTWORTHY_STABILITY, 1 - WEAK_STABILITY
        else:
            best, worst = math.sqrt(self.relevance_error.low), math.sqrt(self.relevance_error.high)
            good, bad = TRUSTWORTHY_CHANGE, WEAK_CHANGE
        if best > bad:
            return Verdict.UNRELIABLE
        # Clipped outputs moved further than was measured; decisions do not suffer, because they use raw outputs.
        understated = self.n_clipped_inside > 0 and self.stability is None
        return Verdict.TRUSTWORTHY if worst <= good and not understated else Verdict.WEAK

    def details(self) -> str:
        """Return the figures behind the sentences, and the bounds by theory alone."""
        return str(call("certificate.details", self))

    def __str__(self) -> str:
        return str(call("certificate.text", self))
