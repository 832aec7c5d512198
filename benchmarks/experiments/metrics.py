"""Metrics of an answer by any method, on the draws of `anchorline.paper.measure`."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from anchorline.paper import Event, Sample, cancelling_event, relevance_factor
from anchorline.paper.neighborhood import MAX_PATTERNS
from benchmarks.experiments.explainers import Answer, Task
from benchmarks.experiments.protocol import NON_ZERO, VIOLATED


@dataclass(eq=False)
class Evaluator:
    """Computes the metrics of answers to one task; draws that several answers need are queried once.

    The draws are those of `anchorline.paper.measure` with the same seed, so the values are the same to the last
    bit.
    """

    task: Task
    n_draws: int
    _fresh_sample: Sample | None = None
    _event_errors: dict[bytes, float] = field(default_factory=dict)

    def row(self, answer: Answer, *, generalization: bool = True) -> dict[str, Any]:
        """Return all metrics of one answer; out-of-sample fidelity costs ``n_draws`` queries, once per task."""
        task, contributions = self.task, _without_negligible(answer.contributions)
        signed_gap = answer.intercept + float(answer.contributions.sum()) - task.prediction
        n_literals = int(np.count_nonzero(contributions))
        row: dict[str, Any] = {
            "prediction": task.prediction,
            "n_literals": n_literals,
            "n_terms": n_literals + int(abs(answer.intercept) > NON_ZERO),
            "anchoring_gap": abs(signed_gap),
            "violated": bool(abs(signed_gap) > VIOLATED),
            "largest": float(max(np.abs(answer.contributions).max(initial=0.0), abs(answer.intercept))),
            "intercept": answer.intercept,
            "empirical_fidelity": fidelity(task.sample, answer.contributions, signed_gap),
            "status": answer.status,
            "lower_bound": answer.lower_bound,
            "n_nodes": answer.n_nodes,
            "support": " ".join(map(str, np.flatnonzero(contributions))) if n_literals <= MAX_PATTERNS else "",
        }
        if generalization:
            row["fidelity"] = fidelity(self._fresh(), answer.contributions, signed_gap)
        return row | self._relevance(contributions)

    def _relevance(self, contributions: np.ndarray) -> dict[str, Any]:
        """Return the relevance error by the definition and on the support's subcube; NaN for too many literals."""
        if np.count_nonzero(contributions) > MAX_PATTERNS:
            return dict.fromkeys(("relevance", "relevance_subcube", "event_probability", "lemma"), math.nan)
        event = cancelling_event(contributions, self.task.around.flip_probability)
        return {
            "relevance": self._conditional_error(event),
            "relevance_subcube": self._conditional_error(subcube(event)),
            "event_probability": event.probability,
            "lemma": relevance_factor(self.task.setting.sigma, self.task.setting.k),
        }

    def _fresh(self) -> Sample:
        """Return fresh neighbors, which the search did not use and which are queried once."""
        if self._fresh_sample is None:
            self._fresh_sample = self.task.around.sample(self.n_draws, "assess/all")
        return self._fresh_sample

    def _conditional_error(self, event: Event) -> float:
        """Return the mean squared drop given the event, which is queried once per event."""
        key = event.support.tobytes() + event.patterns.tobytes()
        if key not in self._event_errors:
            drops = self.task.around.sample_event(event, self.n_draws).drops
            self._event_errors[key] = float(np.mean(drops**2))
        return self._event_errors[key]


def fidelity(sample: Sample, contributions: np.ndarray, gap: float) -> float:
    r"""Return the mean of :math:`(t - F u + g/2)^2` over rows, the fidelity error with anchoring gap g."""
    return float(sample.losses(contributions, gap).mean())


def subcube(event: Event) -> Event:
    """Return the part of the event in which no literal of the support is flipped."""
    return Event(event.support, event.patterns[:1], np.ones(1), float(event.shares[0] * event.probability))


def _without_negligible(contributions: np.ndarray) -> np.ndarray:
    """Replace negligible contributions by zero."""
    return np.where(np.abs(contributions) > NON_ZERO, contributions, 0.0)
