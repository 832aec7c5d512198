"""How far an explanation can be trusted, in sentences: in the population, by the verdict, and despite clipping."""

import math
from typing import TYPE_CHECKING

from anchorline.guarantees.verdicts import Effect, Losses, Verdict

if TYPE_CHECKING:
    from anchorline.result.certificate import Certificate

_NOT_MEASURED = "How far this explanation can be trusted was not measured"
_LEAST_REACH = 0.5  # below, most neighbors are the case itself


def in_the_population(certificate: "Certificate") -> str:
    """Return how often, or how far, the output moves while the facts hold and over all neighbors, compared."""
    change, baseline_change = certificate.typical_change, certificate.baseline_change
    stability, baseline = certificate.stability, certificate.baseline_stability
    if change is None or baseline_change is None:
        return f"{_NOT_MEASURED}."
    if stability is not None and baseline is not None:
        claim = f"{_decided(certificate)} stays the same in {percent(stability.value)}% of neighbors"
        ends = "" if stability.exact else f"{percent(stability.low)} to {percent(stability.high)}"
        overall = f"in {percent(baseline.value)}%"
    else:
        moves, baseline_moves = change.high > 0, f"by {baseline_change.value:.3g}"
        claim = f"the output typically changes by {change.value:.3g}" if moves else "the output stays"
        ends = "" if change.exact else f"{change.low:.3g} to {change.high:.3g}"
        overall = baseline_moves if moves else f"it moves {baseline_moves}"
    interval = f" ({joint_interval(certificate)} {ends})" if ends else ""
    if not certificate.n_facts:
        return f"{_while(certificate)} {claim}{interval}."
    sentence = f"{_while(certificate)} {claim}{interval}; over all neighbors {overall}."
    return f"{sentence} {_comparison(certificate)}".rstrip()


def joint_interval(certificate: "Certificate") -> str:
    """Return the name of the certificate's intervals, whose limits hold together."""
    return f"joint {100 * certificate.confidence:g}% interval"


def _comparison(certificate: "Certificate") -> str:
    """Return whether the facts help, cannot be distinguished from chance, or hold the output less than chance."""
    losses = certificate.losses
    assert losses is not None  # it was measured
    if losses.effect is Effect.HELPS:
        return _prevented(certificate, losses) if losses.held[1] > 0 else ""  # without any change, it is evident
    output = "the output" if certificate.stability is None else _decided(certificate)
    if losses.effect is Effect.HARMS:
        more = "moves further" if certificate.stability is None else "changes more often"
        return f"The facts hold it less than chance does: {output} {more} while they hold than without them."
    if losses.held == losses.free and losses.held[0] == losses.held[1]:
        return f"Holding the facts makes no difference to {output}."
    if math.isinf(losses.held[1]) or math.isinf(losses.free[1]):
        return "Clipped outputs leave open whether the facts help."
    return "The two cannot be distinguished: the facts may not matter."


def _prevented(certificate: "Certificate", losses: Losses) -> str:
    """Return how much of the changes holding the facts prevents, with the bad end of the joint limits."""
    stability, baseline = certificate.stability, certificate.baseline_stability
    if stability is not None and baseline is not None:
        prevents, changes = "prevents", " of the changes"
        share, least = 1 - (1 - stability.value) / (1 - baseline.value), losses.least_prevented
    else:
        change, baseline_change = certificate.typical_change, certificate.baseline_change
        assert change is not None  # it was measured
        assert baseline_change is not None
        prevents, changes = "reduces the typical change by", ""
        share, least = 1 - change.value / baseline_change.value, 1 - math.sqrt(1 - losses.least_prevented)
    most, limit = _whole_percent(share), _whole_percent(least)
    at_least = "" if limit == most else f" (at least {limit}%)"
    them = "it" if certificate.n_facts == 1 else "them"
    return f"Holding {them} {prevents} {most}%{changes}{at_least}."


def _whole_percent(share: float) -> str:
    """Return a share in percent, rounded down, so that a claim of at least this much is true."""
    return f"{math.floor(100 * share + 1e-9)}"


def verdict_reason(certificate: "Certificate") -> str:
    """Return why the verdict is what it is, as one or two sentences about this output."""
    losses, decides = certificate.losses, certificate.stability is not None
    if losses is None:
        return Verdict.UNKNOWN.value
    output = _decided(certificate) if decides else "the output"
    match certificate.verdict:
        case Verdict.TRUSTWORTHY:
            reason = f"These facts explain {output}."
        case Verdict.ROBUST:
            nothing = f"changes {output}" if decides else f"moves {output} by much"
            reason = f"Hardly anything within reach {nothing}, even if no fact is held."
        case Verdict.UNRELIABLE:
            changes = "often changes" if decides else "moves far"
            although = "although the facts hold" if certificate.n_facts else "over all neighbors"
            reason = f"{output[0].upper()}{output[1:]} {changes} {although}. Do not rely on this explanation."
        case Verdict.UNDECIDED:
            reason = _undecided_reason(losses)
        case _:
            reason = _weak_reason(certificate, losses, output)
    return reason


def _undecided_reason(losses: Losses) -> str:
    if math.isinf(losses.held[1]) or math.isinf(losses.free[1]):
        return "Outputs beyond the known range were clipped, so that the size of the change has no upper limit."
    if losses.reach < _LEAST_REACH:
        return "Hardly any neighbor differs from this case, so that the facts were not tested; lower sigma."
    return "Too few neighbors were measured to say; raise n_certify."


def _weak_reason(certificate: "Certificate", losses: Losses, output: str) -> str:
    if not certificate.n_facts:
        return "No fact is held that could explain it."
    if losses.effect is Effect.HARMS:
        return f"These facts hold {output} less than chance does."
    if losses.effect is Effect.UNCLEAR:
        return f"These facts do not explain {output}."
    if losses.held[1] <= losses.good:
        return f"These facts hold {output}, but it stays nearly as often without them."
    return f"These facts help, but other attributes also decide {output}."


def _decided(certificate: "Certificate") -> str:
    """Return the name of what the model decides: the class, the label or the decision."""
    if certificate.decision in ("class", "own class"):
        return "the predicted class"
    return "the label" if certificate.decision == "label" else "the decision"


def _while(certificate: "Certificate") -> str:
    """Return the condition of the measurement in words, with a final comma."""
    if certificate.n_facts == 0:
        return "Over all neighbors,"
    if certificate.n_pairs:
        facts = _facts_and_pairs(certificate)
    elif certificate.keeps_values:
        facts = "this value stays" if certificate.n_facts == 1 else f"these {certificate.n_facts} values stay"
    else:
        facts = "this fact holds" if certificate.n_facts == 1 else f"these {certificate.n_facts} facts hold"
    if not certificate.event_is_literal:
        return f"While {facts}, or the contributions of broken facts cancel each other,"
    return f"While {facts},"


def _facts_and_pairs(certificate: "Certificate") -> str:
    """Return that facts and pairs hold, such as "these 2 facts and this pair hold"."""
    n, n_pairs = certificate.n_facts - certificate.n_pairs, certificate.n_pairs
    counts = [(n, "fact"), (n_pairs, "pair")] if n else [(n_pairs, "pair")]
    named = " and ".join(f"this {word}" if count == 1 else f"these {count} {word}s" for count, word in counts)
    if certificate.keeps_values:
        return f"the values in {named} stay"
    return f"{named} hold{'s' if certificate.n_facts == 1 else ''}"


def short_claim(certificate: "Certificate") -> str:
    """Return the verdict and the measurement behind it as one short line for a picture."""
    verdict, condition = certificate.verdict, short_condition(certificate)
    stability, change = certificate.stability, certificate.typical_change
    if verdict is Verdict.ROBUST:  # a finding about the output, not about the facts
        stability, change = certificate.baseline_stability, certificate.baseline_change
        condition = "over all neighbors"
    word = verdict.name.capitalize()
    if stability is not None:
        return f"{word}: {_decided(certificate)} stays in {percent(stability.value)}% of neighbors {condition}"
    if change is not None:
        moves = f"typically changes by {change.value:.2g}" if change.high > 0 else "stays"
        return f"{word}: the output {moves} {condition}"
    return _NOT_MEASURED


def short_condition(certificate: "Certificate") -> str:
    """Return the condition of the measurement in a few words; the certificate states it in full."""
    if certificate.n_facts == 0:
        return "over all neighbors"
    stay = "while the values stay" if certificate.keeps_values else "while the facts hold"
    return stay if certificate.event_is_literal is not False else f"{stay} or cancel"


def clipping_warning(certificate: "Certificate") -> str:
    """Return a warning about outputs beyond the known range, or an empty string if there were none."""
    if not certificate.n_clipped:
        return ""
    learned = certificate.learned_range
    warning = clipped_outputs_text(certificate.n_clipped, certificate.n_queries, learned)
    understated = certificate.n_clipped_inside if certificate.stability is None else 0
    if understated:
        warning += (
            f", {understated:,} of them while the reasons stayed, so the output moves further than reported here"
        )
    if understated or clipped_much(certificate):
        return f"{warning}. {range_advice(learned)}"
    return f"{warning}."


def clipped_outputs_text(n_clipped: int, n_queries: int, learned_range: bool = False) -> str:
    """Return how many outputs were beyond the known range, as a clause without a final period."""
    known = "those on the training table" if learned_range else "output_range"
    return f"{n_clipped:,} of {n_queries:,} outputs were beyond {known} and clipped"


def range_advice(learned_range: bool) -> str:
    """Return what to type so that no output is clipped."""
    if learned_range:
        return "Pass output_range=(lowest, highest), which all outputs of the model lie in."
    return "Pass a wider output_range=(lowest, highest)."


def clipped_much(certificate: "Certificate") -> bool:
    """Return whether more than one output in a hundred was clipped."""
    return certificate.n_clipped > 0.01 * certificate.n_queries


def percent(share: float) -> str:
    """Return a share in percent with one decimal."""
    return f"{100 * share:.1f}"
