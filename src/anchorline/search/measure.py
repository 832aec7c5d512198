"""Measures a sum on fresh neighbors, in rounds, until the verdict is decided or the queries end."""

from collections.abc import Sequence

import numpy as np

from anchorline.guarantees.measuring import Measurement, Round
from anchorline.search.case import Asked, Case
from anchorline.search.sources import Search

_DRAWN_AT_ONCE = 4096  # neighbors of the law among which those that break no fact are sought, at most
_SPARE = 1.2  # times as many as are needed on average


def measure(case: Case, search: Search, spread: float | None) -> Measurement:
    """Return what fresh neighbors say about the sum that was found; ``spread`` is that of outputs on the table."""
    facts, effects = search.solution.facts, np.asarray(search.solution.effects)
    measured = begin(case, effects, search.moments.b[list(facts)], spread)
    if search.listed is not None:
        return _exactly(case, search.listed, measured, facts, effects)
    if search.drops is not None:
        measured = measured.with_searched(search.stays, search.drops)
    batch = 0
    while (asked := measured.next_round(case.n_left)).total:
        if case.check is not None:
            case.check()
        measured, batch = ask_round(case, measured, asked, batch, facts, effects), batch + 1
    return measured


def begin(case: Case, effects: np.ndarray, broken: np.ndarray, spread: float | None) -> Measurement:
    """Return a measurement without answers; ``broken`` are the probabilities b of the facts, (facts,)."""
    predictor = case.predictor
    return Measurement(
        prediction=predictor.prediction,
        effects=effects,
        is_number=predictor.output.kind == "number",
        unbroken=float(np.prod(1 - broken)) if case.neighborhood.is_product else None,
        output_range=predictor.output_range,
        spread=spread,
        confidence=case.settings.confidence,
    )


def ask_round(
    case: Case, measured: Measurement, asked: Round, batch: int, facts: Sequence[int], effects: np.ndarray
) -> Measurement:
    """Return the measurement with the answers of one more round, the given batch of every stream."""
    law, with_facts, unbroken = ask_streams(case, asked, batch, facts, measured.unbroken)
    if law.drops.size:
        measured = _with_law(case, law, measured, facts, effects)
    if with_facts.drops.size:
        measured = measured.with_facts(_decisions(with_facts))
    if unbroken.drops.size:
        measured = measured.with_unbroken(_decisions(unbroken))
    return measured


def ask_streams(
    case: Case, asked: Round, batch: int, facts: Sequence[int], share: float | None
) -> tuple[Asked, Asked, Asked]:
    """Return the answers of one round: of the law, with the facts, and of the law without a broken fact.

    ``share`` is that of the law's neighbors that break no fact, if it is known. The model is asked about all of
    them at once, because many models are slow to be called.
    """
    law = case.draw("law", batch, asked.law)
    with_facts = case.draw("facts", batch, asked.facts, facts)
    unbroken = law[:, :0]
    if asked.unbroken:
        unbroken = unbroken_donors(case, "unbroken", batch, asked.unbroken, facts, share)
    answers, n = case.ask(np.hstack([law, with_facts, unbroken])), asked.law + asked.facts
    return answers.part(0, asked.law), answers.part(asked.law, n), answers.part(n, answers.drops.size)


def _decisions(asked: Asked) -> np.ndarray:
    assert asked.stays is not None  # only decisions are asked about with facts
    return asked.stays


def _with_law(
    case: Case, asked: Asked, measured: Measurement, facts: Sequence[int], effects: np.ndarray
) -> Measurement:
    flips = case.neighborhood.flips(asked.donors, facts)
    sums = effects @ flips if len(facts) else np.zeros(len(asked.drops))
    unbroken = np.logical_not(flips.any(axis=0))
    return measured.with_law(asked.stays, unbroken, asked.drops, sums, asked.weights)


def _exactly(
    case: Case, listed: Asked, measured: Measurement, facts: Sequence[int], effects: np.ndarray
) -> Measurement:
    """Measure without error: all neighbors were listed, and those with the facts are listed, too."""
    measured = _with_law(case, listed, measured, facts, effects)
    if measured.is_number or not facts:
        return measured
    inside = case.neighborhood.listed(case.settings.replace_probability, listed.drops.size, facts)
    assert inside is not None  # there are fewer than without the facts
    return measured.with_facts(_decisions(case.ask(inside[0])), inside[1])


def unbroken_donors(
    case: Case, stream: str, batch: int, n: int, facts: Sequence[int], share: float | None
) -> np.ndarray:
    """Return the donors of n neighbors of the law that break no fact; the model is not asked about the others.

    ``share`` is that of such neighbors, if it is known. Fewer are returned if they are rarer than 1 in 100.
    """
    size = _DRAWN_AT_ONCE if share is None else min(_DRAWN_AT_ONCE, int(_SPARE * n / share) + 1)
    found, n_found, n_drawn = list[np.ndarray](), 0, 0
    while n_found < n and n_drawn <= 100 * n:
        if case.check is not None:
            case.check()
        donors = case.draw(f"{stream}/{len(found)}", batch, size)
        kept = np.logical_not(case.neighborhood.flips(donors, facts).any(axis=0))
        found.append(donors[:, kept])
        n_found, n_drawn = n_found + int(kept.sum()), n_drawn + size
    return np.hstack(found)[:, :n]
