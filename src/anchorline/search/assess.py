"""Fidelity error, relevance error and stability of given contributions, by their definitions, as measured."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from anchorline.errors import ParameterError
from anchorline.grid import DROP_GRID
from anchorline.guarantees import Estimate, estimate_mean, estimate_share, exact_estimate, split_delta
from anchorline.guarantees.rounding import rounded_down, rounded_up
from anchorline.guarantees.verdicts import Losses, Verdict, title
from anchorline.model.predictor import Predictor
from anchorline.optimize.rows import SampleRows
from anchorline.search.case import Case
from anchorline.search.effects import idle_facts
from anchorline.search.sampling import (
    CANCELS,
    EnumeratedEvent,
    EnumeratedFlips,
    Event,
    Flips,
    cancelling_event,
    keeping_event,
    reach_inside,
    reach_of,
)
from anchorline.spaces.base import Law

_ROUNDING = 1 / DROP_GRID  # drops are rounded to multiples of this, so a loss may exceed its range by as much


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Assessment:
    """Measured quality of contributions; errors are mean squares on the scale [-1, +1] of the output.

    ``fidelity_error`` is the error of the sum over all neighbors. ``relevance_error`` is the error of "the output
    stays as it is" over the neighbors in the event; ``baseline_error`` is the same without any condition.
    ``stability`` is the share of neighbors in the event whose decision is unchanged, or whose number is about the
    same, or None if that was not measured; ``baseline_stability`` is the same without any condition.
    ``n_clipped_inside`` counts outputs in the event that left the output range and were clipped, and ``n_clipped``
    those over all neighbors; clipping affects errors, not stability. The limits of all estimates hold together
    with the joint ``confidence``; the confidence of a single estimate is higher.
    ``reach`` is the probability that a neighbor differs from the instance at all. ``idle`` are the indices of the
    facts whose effect on the output cannot be distinguished from zero, if tested: `Explainer.assess` tests
    the facts of anyone, while a search uses none without an effect.
    """

    fidelity_error: Estimate
    relevance_error: Estimate
    baseline_error: Estimate
    stability: Estimate | None
    baseline_stability: Estimate | None
    event_probability: float
    event_is_literal: bool
    n_clipped_inside: int = 0
    n_clipped: int = 0
    reach: float = 1.0
    confidence: float
    idle: tuple[int, ...] = ()

    @property
    def losses(self) -> Losses | None:
        """How often the output changes in the event and over all neighbors, by joint limits; None if unknown."""
        if self.stability is None or self.baseline_stability is None:
            return None
        return Losses.from_shares(self.stability, self.baseline_stability, self.reach, self.held_reach)

    @property
    def held_reach(self) -> float:
        """The probability that a neighbor in the event differs from the instance."""
        return reach_inside(self.reach, self.event_probability)

    @property
    def verdict(self) -> Verdict:
        """Whether the facts explain the output; see docs/guarantees.md. All of them must have an effect."""
        verdict = Verdict.UNKNOWN if self.losses is None else self.losses.verdict
        return Verdict.UNDECIDED if self.idle and verdict is Verdict.TRUSTWORTHY else verdict

    def __str__(self) -> str:
        lines = []
        if self.stability is not None and self.baseline_stability is not None:
            lines.append(_line("Stability", self.stability, self.baseline_stability))
        lines.append(_line("Relevance error", self.relevance_error, self.baseline_error))
        lines.append(f"Fidelity error: {_limits(self.fidelity_error)}.")
        if not all(e.exact for e in (self.relevance_error, self.baseline_error, self.fidelity_error)):
            lines.append(f"All limits hold together with {100 * self.confidence:g}% confidence.")
        if self.idle:
            literals = ", ".join(map(str, self.idle))
            lines.append(f"Literals whose effect on the output cannot be distinguished from zero: {literals}.")
        lines.append(f"Verdict: {title(self.verdict, self.losses)}. {self.verdict.value}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        stability = "" if self.stability is None else f"stability {self.stability.value:.3g}, "
        relevance, fidelity = self.relevance_error.value, self.fidelity_error.value
        errors = f"relevance error {relevance:.3g}, fidelity error {fidelity:.3g}"
        return f"Assessment({stability}{errors}, {self.verdict.name})"


def _line(name: str, held: Estimate, free: Estimate) -> str:
    return f"{name} while the condition holds: {_limits(held)}; over all neighbors: {_limits(free)}."


def _limits(estimate: Estimate) -> str:
    ends = "exact" if estimate.exact else f"{rounded_down(estimate.low)} to {rounded_up(estimate.high)}"
    return f"{estimate.value:.3g} ({ends})"


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Queried neighbors, a few numbers per row.

    ``weights`` is None if every row has the same weight; ``sums`` are the flipped contributions ``F u``;
    ``stays`` says whether the output stays the same, or is None if that is not known; ``clipped`` says whether
    the output left its range. ``broken`` (n, s) are the flips of the support, if they are kept.
    """

    weights: np.ndarray | None
    drops: np.ndarray
    sums: np.ndarray
    stays: np.ndarray | None
    clipped: np.ndarray | None
    broken: np.ndarray | None = None

    @classmethod
    def from_rows(cls, rows: SampleRows, flips: np.ndarray, contributions: np.ndarray) -> "Measured":
        """Take rows that were queried before; ``flips`` are theirs, unpacked."""
        return cls(rows.weights, rows.drops, flipped_sums(flips, contributions), rows.stays, rows.clipped)

    def inside(self, contributions: np.ndarray) -> "Measured":
        """Return the rows in the event: those whose flipped contributions cancel."""
        rows = np.abs(self.sums) <= CANCELS * np.abs(contributions).sum()
        columns = (self.weights, self.drops, self.sums, self.stays, self.clipped)
        return Measured(*(None if column is None else column[rows] for column in columns))  # type: ignore[arg-type]

    def with_drops_of(self, rows: SampleRows | None) -> "Measured":
        """Return these and other drawn rows together, without sums."""
        if rows is None or self.weights is not None:  # all neighbors need no others
            return self
        stays = None if self.stays is None else np.concatenate([self.stays, rows.stays])
        return Measured(None, np.concatenate([self.drops, rows.drops]), np.zeros(0), stays, None)

    @property
    def n_clipped(self) -> int:
        """Number of outputs that left their range."""
        return 0 if self.clipped is None else int(self.clipped.sum())


def scaled_sum(contributions: Any, intercept: float | None, case: Case) -> tuple[np.ndarray, float]:
    """Scale anyone's sum from the output's own units; also return by how much it exceeds the prediction."""
    predictor, n_literals = case.predictor, case.n_literals
    if case.settings.pairs is not None:
        raise ParameterError(
            f"pairs is {case.settings.pairs!r}, but assess measures contributions of single facts. Leave it out."
        )
    try:
        scaled = np.asarray(contributions, dtype=np.float64) / predictor.half_range
    except (TypeError, ValueError):
        scaled = np.zeros(0)
    if scaled.shape != (n_literals,) or not np.isfinite(scaled).all():
        raise ParameterError(
            f"contributions have shape {scaled.shape}, but they must be one finite number per literal, "
            f"({n_literals},)."
        )
    if intercept is None:
        return scaled, 0.0
    if not isinstance(intercept, Real) or not math.isfinite(intercept):
        raise ParameterError(
            f"intercept is {intercept!r}, but it must be a finite number, or None to anchor the sum at the "
            "prediction."
        )
    total = float(intercept) / predictor.half_range + float(scaled.sum())
    return scaled, total + predictor.origin - predictor.scaled_prediction


def assess(
    case: Case,
    contributions: np.ndarray,
    *,
    n_samples: int,
    n_wide: int | None = None,
    anchoring_gap: float = 0.0,
    stream: str = "certify",
    max_enumerated: int = 0,
    confidence: float = 0.95,
    test_facts: bool = False,
    searched: SampleRows | None = None,
) -> Assessment:
    r"""Measure anyone's scaled contributions (d,) on fresh neighbors.

    .. math:: F = \mathbb E\,(t - F u + g/2)^2, \qquad R = \mathbb E\,[\,t^2 \mid \textstyle\sum_j u_j F_j = 0\,]

    ``anchoring_gap`` g is the amount by which the sum exceeds the prediction (0 if anchored). ``n_wide`` of
    ``n_samples``, by default half, go to the first expectation. ``searched`` are rows drawn before, which found
    the sum: they serve the baselines only, which do not depend on the sum. Where draws alone determine the inputs
    and there are at most ``max_enumerated`` of them, all draws are enumerated instead, and that part of the
    answer is exact. All limits hold together. With ``test_facts``, facts without an effect are found too.
    """
    wide = n_samples // 2 if n_wide is None else n_wide
    samples = _Samples.draw(case, contributions, (wide, n_samples - wide), stream)
    samples = samples.enumerated(case.law, max_enumerated) if case.neighborhood.deterministic else samples
    everywhere = measure(case, samples.wide, contributions)
    inside = measure(case, samples.narrow, contributions)
    share = (1 - confidence) / 6 if test_facts else 0.0
    limits = confidence + share
    found = _summarize(case, contributions, anchoring_gap, samples.event, everywhere, inside, limits, searched)
    if not test_facts:
        return found
    support = np.flatnonzero(contributions)
    assert everywhere.broken is not None  # just measured
    idle = idle_facts(everywhere.broken, everywhere.drops, everywhere.weights, case.law.groups[support], share)
    return replace(found, confidence=confidence, idle=tuple(support[idle].tolist()))


def assess_sum(case: Case, contributions: Any, intercept: float | None, n_fresh: int) -> Assessment:
    """Measure anyone's contributions (d,), in the output's own units; without intercept the sum is anchored."""
    if n_fresh < 2:
        raise ParameterError(f"n_fresh is {n_fresh!r}, but it must be at least 2. Type n_fresh=10_000.")
    scaled, gap = scaled_sum(contributions, intercept, case)
    return assess(
        case,
        scaled,
        anchoring_gap=gap,
        n_samples=n_fresh,
        stream="assess",
        max_enumerated=0 if case.settings.sampling == "draw" else n_fresh // 2,
        confidence=case.settings.confidence,
        test_facts=True,
    )


def assess_exactly(case: Case, rows: SampleRows, contributions: np.ndarray) -> Assessment:
    """Assess from rows that are the whole distribution and were queried before: exact, without further queries."""
    event, flips = cancelling_event(contributions, case.law), case.law.pairs.joined_to(rows.flips)
    everywhere = Measured.from_rows(rows, flips, contributions)
    inside = everywhere.inside(contributions)
    return _summarize(case, contributions, 0.0, event, everywhere, inside, case.settings.confidence)


def assess_until(
    case: Case,
    contributions: np.ndarray,
    enough: Callable[[Assessment], bool],
    *,
    max_samples: int,
    first_look: int = 1000,
    stream: str = "certify",
    confidence: float = 0.95,
) -> tuple[Assessment, bool]:
    """Double the samples until the assessment is ``enough``; also return whether it is.

    The failure probability is split over the looks, so stopping by looking keeps the coverage. Half of the
    ``max_samples`` go to each expectation, and at the first look ``first_look`` each.
    """
    look, n = 1, min(first_look, max_samples // 2)
    everywhere = inside = None
    while True:
        done = 0 if inside is None else len(inside.drops)
        samples = _Samples.draw(case, contributions, (n, n), stream)
        everywhere = measure(case, samples.wide, contributions, everywhere, done)
        inside = measure(case, samples.narrow, contributions, inside, done)
        each = 1 - split_delta(1 - confidence, look)
        assessment = _summarize(case, contributions, 0.0, samples.event, everywhere, inside, each)
        done_now = enough(assessment)
        if done_now or 4 * n > max_samples:
            return replace(assessment, confidence=confidence), done_now
        look, n = look + 1, 2 * n


@dataclass(frozen=True, slots=True)
class _Samples:
    """The draws to query: of neighbors everywhere, and of neighbors inside the event."""

    event: Event
    wide: Flips
    narrow: Flips

    @classmethod
    def draw(cls, case: Case, contributions: np.ndarray, sizes: tuple[int, int], stream: str) -> "_Samples":
        event = event_of(case, contributions)
        return cls(event, case.stream(f"{stream}/all", sizes[0]), case.stream_inside(event, stream, sizes[1]))

    def enumerated(self, law: Law, max_rows: int) -> "_Samples":
        """Replace each sample by all its draws where these are at most ``max_rows``."""
        everything, event = EnumeratedFlips(law), EnumeratedEvent(law, self.event)
        return _Samples(
            self.event,
            everything if everything.n_rows <= max_rows else self.wide,
            event if event.n_rows <= max_rows else self.narrow,
        )


def event_of(case: Case, contributions: np.ndarray) -> Event:
    """Return the event that relevance is conditioned on: contributions cancel, or the facts' values stay.

    If values decide which literals break, the probability that contributions cancel is not known. Where the
    values of all facts stay, no fact is broken, and the probability is that of draws.
    """
    return (keeping_event if case.flips_follow else cancelling_event)(contributions, case.law)


def measure(
    case: Case, flips: Flips, contributions: np.ndarray, before: Measured | None = None, start: int = 0
) -> Measured:
    """Query the model from row ``start`` on and append to ``before``; keeps a few numbers per row, for any d."""
    parts, support = [] if before is None else [before], np.flatnonzero(contributions)
    for batch in case.query(flips, start):
        answer = batch.answer
        broken = case.law.flips(batch.draws, support)
        sums = flipped_sums(broken, contributions[support])
        parts.append(Measured(batch.weights, answer.drops, sums, answer.stays, answer.clipped, broken))
    return Measured(*(_joined([getattr(part, name) for part in parts]) for name in Measured.__slots__))


def flipped_sums(flips: np.ndarray, contributions: np.ndarray) -> np.ndarray:
    """Return ``F u`` (n,), added literal by literal so that no BLAS thread can change a bit."""
    sums = np.zeros(len(flips))
    for j in np.flatnonzero(contributions):
        sums += flips[:, j] * contributions[j]
    return sums


def fidelity_range(
    prediction: float, contributions: np.ndarray, gap: float = 0.0, largest_output: float = 1.0
) -> float:
    r"""Return the largest possible fidelity loss, :math:`((1 + \max|w \cdot z|) / 2)^2`, if outputs are at most 1.

    :math:`w \cdot z` lies between :math:`f(x) + g - 2 \sum u^+` and :math:`f(x) + g + 2 \sum u^-`.
    """
    low = prediction + gap - 2 * np.maximum(contributions, 0).sum()
    high = prediction + gap + 2 * np.maximum(-contributions, 0).sum()
    return float(((largest_output + max(abs(low), abs(high))) / 2 + _ROUNDING) ** 2)


def _summarize(
    case: Case,
    contributions: np.ndarray,
    gap: float,
    event: Event,
    everywhere: Measured,
    inside: Measured,
    confidence: float,
    searched: SampleRows | None = None,
) -> Assessment:
    predictor, free = case.predictor, everywhere.with_drops_of(searched)
    decides = inside.stays is not None and not predictor.is_label  # for labels, stability is 1 - error
    each = 1 - (1 - confidence) / (5 if decides else 3)  # all limits hold together
    stable, baseline_stable = (
        None if part.stays is None else _share(part.stays, part.weights, each) for part in (inside, free)
    )
    return Assessment(
        fidelity_error=estimate_fidelity(everywhere, contributions, predictor, each, gap),
        relevance_error=estimate_drop(inside, predictor, each),
        baseline_error=estimate_drop(free, predictor, each),
        stability=stable,
        baseline_stability=baseline_stable,
        event_probability=event.probability,
        event_is_literal=event.is_literal,
        n_clipped_inside=inside.n_clipped,
        n_clipped=everywhere.n_clipped,
        reach=reach_of(case.settings.flip_probability, case.law.n_attributes, case.redraws),
        confidence=confidence,
    )


def estimate_fidelity(
    measured: Measured, contributions: np.ndarray, predictor: Predictor, confidence: float, gap: float = 0.0
) -> Estimate:
    """Estimate the mean of ``(t - F u + g/2)^2``."""
    losses = (measured.drops - measured.sums + gap / 2) ** 2
    largest = fidelity_range(predictor.scaled_prediction, contributions, gap, predictor.largest)
    return _mean(losses, measured.weights, largest, confidence)


def estimate_drop(measured: Measured, predictor: Predictor, confidence: float) -> Estimate:
    """Estimate the mean squared drop; for labels it is a share, whose interval is the exact binomial one."""
    if predictor.is_label:
        return _share(measured.drops != 0, measured.weights, confidence)
    largest = ((predictor.largest + abs(predictor.scaled_prediction)) / 2 + _ROUNDING) ** 2
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
