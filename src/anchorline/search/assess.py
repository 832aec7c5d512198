"""Fidelity error, relevance error and stability of given contributions, by definition and measured."""

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.guarantees import Estimate, estimate_mean, estimate_share, exact_estimate, split_delta
from anchorline.model.predictor import Predictor, batches
from anchorline.optimize.evidence import GRID, SampleRows
from anchorline.search.sampling import (
    CANCELS,
    ConditionalFlips,
    DrawnFlips,
    EnumeratedEvent,
    EnumeratedFlips,
    Event,
    Flips,
    cancelling_event,
    stream_key,
)
from anchorline.spaces.base import Neighborhood

_ROUNDING = 1 / GRID  # drops are rounded to multiples of this, so a loss may pass its range by as much


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What contributions are worth; errors are mean squares on the scale [-1, +1] of the output.

    ``fidelity_error``: of the sum, over all neighbors. ``relevance_error``: of "the output stays as it
    is", over neighbors in the event. ``baseline_error``: the same without any condition. ``stability``:
    share of neighbors in the event whose decision is unchanged, where there is a decision;
    ``n_clipped_inside``: outputs in the event that left the output range and were clipped;
    ``baseline_stability`` the same without condition. The limits of all of them hold together.
    """

    fidelity_error: Estimate
    relevance_error: Estimate
    baseline_error: Estimate
    stability: Estimate | None
    baseline_stability: Estimate | None
    event_probability: float
    event_is_literal: bool
    n_clipped_inside: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Rows asked: their weights (None: drawn, equal), drops, flips' sums, and unchanged decisions."""

    weights: np.ndarray | None
    drops: np.ndarray
    sums: np.ndarray
    stays: np.ndarray | None


def scaled_sum(
    contributions: Any, intercept: float | None, predictor: Predictor, n_literals: int
) -> tuple[np.ndarray, float]:
    """Anyone's sum in the output's own units: contributions scaled, and how far it is from the prediction."""
    try:
        scaled = np.asarray(contributions, dtype=np.float64) / predictor.half_range
    except (TypeError, ValueError):
        scaled = np.zeros(0)
    if scaled.shape != (n_literals,) or not np.isfinite(scaled).all():
        raise ParameterError(
            f"contributions have shape {scaled.shape}; needed one finite number a literal, ({n_literals},)."
        )
    if intercept is None:
        return scaled, 0.0
    if not isinstance(intercept, Real) or not math.isfinite(intercept):
        raise ParameterError(f"intercept is {intercept!r}; needed a finite number, or None: anchored.")
    total = float(intercept) / predictor.half_range + float(scaled.sum())
    return scaled, total + predictor.origin - predictor.scaled_prediction


def assess(
    neighborhood: Neighborhood,
    predictor: Predictor,
    contributions: np.ndarray,
    *,
    anchoring_gap: float = 0.0,
    flip_probability: float,
    n_samples: int,
    seed: int,
    stream: str = "certify",
    most_enumerated: int = 0,
    confidence: float = 0.95,
) -> Assessment:
    r"""Measure anyone's contributions (d,), scaled, on fresh neighbors.

    .. math:: F = \mathbb E\,(t - F u + g/2)^2, \qquad R = \mathbb E\,[\,t^2 \mid \textstyle\sum_j u_j F_j = 0\,]

    ``anchoring_gap`` g is what the sum exceeds the prediction by (0 if anchored). Half of ``n_samples``
    go to each. All flips are enumerated instead where there are at most ``most_enumerated`` of them and
    flips alone decide the inputs; that part of the answer is then exact. The limits of all estimates
    hold together with the given confidence.
    """
    samples = _Samples.of(
        neighborhood, contributions, flip_probability, (n_samples // 2, n_samples - n_samples // 2), seed, stream
    )
    samples = samples.enumerated(most_enumerated) if neighborhood.deterministic else samples
    everywhere = measure(neighborhood, predictor, samples.wide, contributions)
    clipped = predictor.n_clipped
    inside = measure(neighborhood, predictor, samples.narrow, contributions)
    found = _summarize(predictor, contributions, anchoring_gap, samples.event, (everywhere, inside), confidence)
    return replace(found, n_clipped_inside=predictor.n_clipped - clipped)


def assess_exactly(
    rows: SampleRows, predictor: Predictor, contributions: np.ndarray, *, flip_probability: float
) -> Assessment:
    """The same from rows that are the whole distribution, asked before: exact, and no query more."""
    event = cancelling_event(contributions, flip_probability)
    sums = flipped_sums(rows.flips, contributions)
    everywhere = Measured(rows.row_weights, rows.drops, sums, rows.stays)
    inside = np.abs(sums) <= CANCELS * np.abs(contributions).sum()
    stays = None if rows.stays is None else rows.stays[inside]
    within = Measured(rows.row_weights[inside], rows.drops[inside], sums[inside], stays)
    found = _summarize(predictor, contributions, 0.0, event, (everywhere, within), confidence=0.5)
    return replace(found, n_clipped_inside=0 if rows.clipped is None else int(rows.clipped[inside].sum()))


def assess_until(
    neighborhood: Neighborhood,
    predictor: Predictor,
    contributions: np.ndarray,
    *,
    flip_probability: float,
    tolerance: float,
    most_samples: int,
    seed: int,
    confidence: float = 0.95,
) -> tuple[Assessment, bool]:
    """Double the samples until the relevance interval is at most ``tolerance`` wide; also whether it is.

    The failure probability is split over the looks, so stopping by looking keeps the coverage.
    """
    look, n, clipped = 1, min(1000, most_samples // 2), 0
    everywhere = inside = None
    while True:
        done = 0 if inside is None else len(inside.drops)
        samples = _Samples.of(neighborhood, contributions, flip_probability, (n, n), seed, "certify")
        everywhere = measure(neighborhood, predictor, samples.wide, contributions, everywhere, done)
        before = predictor.n_clipped
        inside = measure(neighborhood, predictor, samples.narrow, contributions, inside, done)
        clipped += predictor.n_clipped - before
        each = 1 - split_delta(1 - confidence, look)
        found = _summarize(predictor, contributions, 0.0, samples.event, (everywhere, inside), each)
        if found.relevance_error.width <= tolerance or 4 * n > most_samples:
            return replace(found, n_clipped_inside=clipped), found.relevance_error.width <= tolerance
        look, n = look + 1, 2 * n


@dataclass(frozen=True, slots=True)
class _Samples:
    """What to ask: neighbors everywhere, and neighbors inside the event."""

    event: Event
    wide: Flips
    narrow: Flips

    @classmethod
    def of(
        cls,
        neighborhood: Neighborhood,
        contributions: np.ndarray,
        p: float,
        sizes: tuple[int, int],
        seed: int,
        stream: str,
    ) -> "_Samples":
        event, d = cancelling_event(contributions, p), len(contributions)
        keys = [stream_key(seed, neighborhood.key, f"{stream}/{part}") for part in ("all", "event", "pattern")]
        free = DrawnFlips(keys[1], sizes[1], d, p)
        return cls(event, DrawnFlips(keys[0], sizes[0], d, p), ConditionalFlips(free, event, keys[2]))

    def enumerated(self, most: int) -> "_Samples":
        """All flips instead of a draw, wherever these are at most ``most``."""
        drawn = self.wide
        assert isinstance(drawn, DrawnFlips)
        everything = EnumeratedFlips(drawn.n_literals, drawn.flip_probability)
        event = EnumeratedEvent(drawn.n_literals, drawn.flip_probability, self.event)
        return _Samples(
            self.event,
            everything if everything.n_rows <= most else drawn,
            event if event.n_rows <= most else self.narrow,
        )


def measure(
    neighborhood: Neighborhood,
    predictor: Predictor,
    flips: Flips,
    contributions: np.ndarray,
    known: Measured | None = None,
    start: int = 0,
) -> Measured:
    """Ask the model about the rows of flips from ``start`` on; keeps three numbers a row, whatever d is."""
    parts = [] if known is None else [known]
    for first, last in batches(flips.n_rows, start):
        table, weights = flips.rows(first, last)
        answer = predictor.answer(neighborhood.realize(table, flips.generator(first)), last - first)
        parts.append(Measured(weights, answer.drops, flipped_sums(table, contributions), answer.stays))
    return Measured(*(_joined([getattr(part, name) for part in parts]) for name in Measured.__slots__))


def flipped_sums(flips: np.ndarray, contributions: np.ndarray) -> np.ndarray:
    """``F u`` (n,), added up literal by literal so that no BLAS thread can change a bit."""
    sums = np.zeros(len(flips))
    for j in np.flatnonzero(contributions):
        sums += flips[:, j] * contributions[j]
    return sums


def fidelity_range(prediction: float, contributions: np.ndarray, gap: float = 0.0) -> float:
    r"""Largest possible fidelity loss: :math:`((1 + \max|w \cdot z|) / 2)^2`.

    :math:`w \cdot z` lies between :math:`f(x) + g - 2 \sum u^+` and :math:`f(x) + g + 2 \sum u^-`.
    """
    low = prediction + gap - 2 * np.maximum(contributions, 0).sum()
    high = prediction + gap + 2 * np.maximum(-contributions, 0).sum()
    return float(((1 + max(abs(low), abs(high))) / 2 + _ROUNDING) ** 2)


def drop_range(prediction: float) -> float:
    """Largest possible squared drop: the output cannot leave [-1, +1]."""
    return ((1 + abs(prediction)) / 2 + _ROUNDING) ** 2


def _summarize(
    predictor: Predictor,
    contributions: np.ndarray,
    gap: float,
    event: Event,
    measured: tuple[Measured, Measured],
    confidence: float,
) -> Assessment:
    everywhere, inside = measured
    decides = inside.stays is not None and not predictor.is_label  # for labels, stability is 1 - error
    each = 1 - (1 - confidence) / (5 if decides else 3)  # all limits hold together
    prediction = predictor.scaled_prediction
    widest = fidelity_range(prediction, contributions, gap)
    losses = (everywhere.drops - everywhere.sums + gap / 2) ** 2
    largest_drop = drop_range(prediction)
    stable, baseline_stable = (
        None if part.stays is None else _share(part.stays, part.weights, each) for part in (inside, everywhere)
    )
    return Assessment(
        fidelity_error=_mean(losses, everywhere.weights, widest, each),
        relevance_error=_drop_error(inside, predictor.is_label, largest_drop, each),
        baseline_error=_drop_error(everywhere, predictor.is_label, largest_drop, each),
        stability=stable,
        baseline_stability=baseline_stable,
        event_probability=event.probability,
        event_is_literal=event.is_literal,
    )


def _drop_error(measured: Measured, is_label: bool, largest: float, confidence: float) -> Estimate:
    """Mean squared drop; for labels it is 0 or 1, and the interval is the exact binomial one."""
    if is_label:
        return _share(measured.drops != 0, measured.weights, confidence)
    return _mean(measured.drops**2, measured.weights, largest, confidence)


def _mean(losses: np.ndarray, weights: np.ndarray | None, largest: float, confidence: float) -> Estimate:
    if weights is not None:
        return exact_estimate(max(0.0, float((losses * weights).sum() / weights.sum())), len(losses))
    return estimate_mean(losses, largest, confidence)


def _share(events: np.ndarray, weights: np.ndarray | None, confidence: float) -> Estimate:
    if weights is not None:
        return exact_estimate(float(min(1.0, (events * weights).sum() / weights.sum())), len(events))
    return estimate_share(int(events.sum()), len(events), confidence)


def _joined(parts: list[Any]) -> Any:
    return None if parts[0] is None else np.concatenate(parts)
