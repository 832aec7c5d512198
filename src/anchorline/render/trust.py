"""How far an explanation can be trusted, in sentences: in the population, by the verdict, and despite clipping."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from anchorline.guarantees import exact_estimate
from anchorline.guarantees.verdicts import GOOD, PREVENTED, Effect, Losses, Verdict
from anchorline.render.characters import printable
from anchorline.render.claims import by_more, stays, subject
from anchorline.render.shares import MANY_EQUAL, at_least, limits, percent, share_of

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate
    from anchorline.result.certificate import Certificate

_NOT_MEASURED = "How far this explanation can be trusted was not measured"
_LEAST_REACH = 0.5  # below, most neighbors are the case itself


def in_the_population(certificate: "Certificate", format_name: Callable[[str], str] = printable) -> str:
    """Return how often the output stays while the facts hold and over all neighbors, compared.

    ``format_name`` is applied to names from data; all other text is safe as it is.
    """
    stability, baseline = certificate.stability, certificate.baseline_stability
    if stability is None or baseline is None:
        return f"{_NOT_MEASURED}."
    claim, joint = stays(certificate, format_name), f"{joint_interval(certificate)} "
    if not certificate.n_facts:
        return f"Over all neighbors, {claim} in {share_of(baseline, '', joint)}.{_equal(certificate)}"
    held = f"{_while(certificate)} {claim} in {share_of(stability, 'neighbors', joint)}"
    if not certificate.held_reach:
        held, stability = f"{_while(certificate)} nothing else can change, so {claim}", exact_estimate(1.0, 1)
    free = share_of(
        baseline, "", joint if stability.exact else ""
    )  # an interval is named where the first is shown
    return f"{held}; over all neighbors, in {free}. {_comparison(certificate)}".rstrip() + _equal(certificate)


def joint_interval(certificate: "Certificate") -> str:
    """Return the name of the certificate's intervals, whose limits hold together."""
    return f"joint {100 * certificate.confidence:g}% interval"


def _equal(certificate: "Certificate") -> str:
    """Return how many neighbors equal the case, and so cannot change the output, or an empty text if few do."""
    if 1 - certificate.reach < MANY_EQUAL:
        return ""
    sentence = f" {percent(1 - certificate.reach)}% of all neighbors equal this case"
    if not certificate.n_facts:
        return f"{sentence}."
    share = "all" if not certificate.held_reach else f"{percent(1 - certificate.held_reach)}%"
    condition = short_condition(certificate).removeprefix("while ")
    return f"{sentence}, and {share} of those in which {condition}."


def _comparison(certificate: "Certificate") -> str:
    """Return whether the facts help, cannot be distinguished from chance, or hold the output less than chance."""
    losses = certificate.losses
    assert losses is not None  # it was measured
    if losses.effect is Effect.HELPS:
        return _prevented(certificate, losses) if losses.held[1] > 0 else ""  # without any change, it is evident
    changes = f"changes{by_more(certificate)}"
    if losses.effect is Effect.HARMS:
        more_often = f"{subject(certificate)} {changes} more often while they hold than over all neighbors"
        return f"The facts hold it less than chance does: {more_often}."
    if losses.held == losses.free and losses.held[0] == losses.held[1]:
        return f"Holding the facts makes no difference to {subject(certificate)}."
    return "The two shares cannot be distinguished: the facts may not matter."


def _prevented(certificate: "Certificate", losses: Losses) -> str:
    """Return how much of the changes holding the facts prevents, with the bad end of the joint limits."""
    stability, baseline = certificate.stability, certificate.baseline_stability
    assert stability is not None  # it was measured
    assert baseline is not None
    share, least = (
        1 - (1 - stability.value) / (1 - baseline.value),
        f"at least {at_least(losses.least_prevented)}%",
    )
    shown = f"{percent(share, decimals=0)}%"
    if not (stability.exact and baseline.exact):
        shown, least = (least, "") if share == 1 else (shown, f" ({least})")
    else:
        least = ""
    them = "it" if certificate.n_facts == 1 else "them"
    return f"Holding {them} prevents {shown} of the changes{by_more(certificate)}{least}."


def verdict_reason(certificate: "Certificate", format_name: Callable[[str], str] = printable) -> str:
    """Return why the verdict is what it is, as one or two sentences about this output.

    ``format_name`` is applied to names from data; all other text is safe as it is.
    """
    losses, output, more = certificate.losses, subject(certificate), by_more(certificate)
    if losses is None:
        return "Type n_certify=10_000 to measure how far this explanation can be trusted."
    match certificate.verdict:
        case Verdict.TRUSTWORTHY:
            within = f" to within {certificate.same_within:g}" if certificate.same_within else ""
            alone = "" if certificate.held_reach else ", because nothing else can change"
            reason = f"{_facts(certificate, 'explain')} {output}{within}{alone}."
        case Verdict.ROBUST:
            reason = f"Hardly any neighbor changes {output}{more}, even if no fact is held."
        case Verdict.UNRELIABLE:
            changes = f"{output} often changes{more}"
            although = f"{_capital(changes)} although the facts hold"
            although = although if certificate.n_facts else f"No fact is held, and {changes}"
            reason = f"{although}. Do not rely on this explanation."
        case Verdict.UNDECIDED:
            reason = _undecided_reason(certificate, losses, format_name)
        case _:
            reason = _weak_reason(certificate, losses, output)
    return reason


def _facts(certificate: "Certificate", verb: str) -> str:
    """Return the facts as the subject of a verb: "This fact explains", "These facts explain"."""
    return f"This fact {verb}s" if certificate.n_facts == 1 else f"These facts {verb}"


def _undecided_reason(certificate: "Certificate", losses: Losses, format_name: Callable[[str], str]) -> str:
    """Return which limits of the verdict lie inside the measured intervals, and what to type."""
    if losses.reach < _LEAST_REACH and not (losses.held[0] or losses.free[0]):
        return (
            f"{percent(1 - losses.reach)}% of neighbors equal this case, so that the facts were hardly tested. "
            "Type a smaller sigma, such as sigma=1."
        )
    stability, baseline = certificate.stability, certificate.baseline_stability
    assert stability is not None  # it was measured
    assert baseline is not None
    claim, questions = stays(certificate, format_name), []
    if certificate.n_facts and losses.held[0] <= GOOD * losses.held_reach < losses.held[1]:
        least, ends = percent(1 - GOOD * losses.held_reach), limits(stability.low, stability.high)
        questions.append(f"{claim} in at least {least}% of neighbors while the facts hold (measured: {ends}%)")
    if losses.free[0] <= GOOD * losses.reach < losses.free[1]:
        least, ends = percent(1 - GOOD * losses.reach), limits(baseline.low, baseline.high)
        questions.append(f"{claim} in at least {least}% of all neighbors (measured: {ends}%)")
    if not questions[1:] and certificate.n_facts and losses.least_prevented < PREVENTED <= losses.most_prevented:
        ends = f"{at_least(max(0.0, losses.least_prevented))} to {percent(losses.most_prevented, decimals=0)}"
        questions.append(f"holding the facts prevents at least {PREVENTED:.0%} of the changes (measured: {ends}%)")
    possible = " or ".join(f"a {verdict.title}" for verdict in Verdict if verdict in losses.possible)
    advice = _measure_more(certificate, stability, baseline)
    return f"It may be {possible}: it is open whether {', and whether '.join(questions)}. {advice}"


def _measure_more(certificate: "Certificate", *shares: "Estimate") -> str:
    """Return what to type to measure on four times as many neighbors."""
    if certificate.stopped_because is not None:  # the number of neighbors was not given
        return "Type a smaller tolerance to measure more neighbors."
    n = sum(share.n_samples for share in shares if not share.exact)
    return f"Type n_certify={4 * n:_} to measure more neighbors."


def _weak_reason(certificate: "Certificate", losses: Losses, output: str) -> str:
    if not certificate.n_facts:
        return "No fact is held that could explain it."
    if losses.effect is Effect.HARMS:
        hold = "this fact holds" if certificate.n_facts == 1 else "these facts hold"
        return f"{_capital(output)} changes{by_more(certificate)} more often while {hold} than over all neighbors."
    if losses.effect is Effect.UNCLEAR:
        hold = "this fact holds" if certificate.n_facts == 1 else "these facts hold"
        return f"It was not shown that {output} stays more often while {hold}."
    if losses.held[1] <= GOOD * losses.held_reach:
        return f"{_facts(certificate, 'hold')} {output}, but it stays nearly as often without."
    return f"{_facts(certificate, 'help')}, but other attributes also matter."


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _while(certificate: "Certificate") -> str:
    """Return the condition of the measurement in words, with a final comma."""
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
    verdict, share = certificate.verdict, certificate.stability
    if share is None or certificate.baseline_stability is None:
        return _NOT_MEASURED
    where = f"of neighbors {short_condition(certificate)}"
    if verdict is Verdict.ROBUST or not certificate.n_facts:  # a finding about the output, not about the facts
        share, where = certificate.baseline_stability, "of all neighbors"
    return f"{_capital(verdict.title)}: {stays(certificate)} in {percent(share.value)}% {where}"


def short_condition(certificate: "Certificate") -> str:
    """Return the condition of the measurement in a few words; the certificate states it in full."""
    if certificate.n_facts == 0:
        return "over all neighbors"
    hold = "while the values stay" if certificate.keeps_values else "while the facts hold"
    return hold if certificate.event_is_literal is not False else f"{hold} or cancel"


def clipping_warning(certificate: "Certificate") -> str:
    """Return a warning about outputs beyond the known range, or an empty string if there were none."""
    if not certificate.n_clipped:
        return ""
    learned = certificate.learned_range
    warning = clipped_outputs_text(certificate.n_clipped, certificate.n_queries, learned)
    warning += ": the sum treats each as the nearest known output. How often the output stays was measured without"
    warning += " clipping."
    return f"{warning} {range_advice(learned)}" if clipped_much(certificate) else warning


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
