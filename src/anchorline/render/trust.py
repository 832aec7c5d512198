"""How far an explanation can be trusted, in sentences: over all neighbors, by verdict, and despite clipping."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from anchorline.guarantees.verdicts import BAD, GOOD, PREVENTED, Effect, Losses, Verdict
from anchorline.render.characters import printable
from anchorline.render.claims import amount, by_more, stays, subject
from anchorline.render.shares import at_least, limits, outward, percent, possible, share_of, weighted

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate
    from anchorline.result.certificate import Certificate

_NOT_MEASURED = "How far this explanation can be trusted was not measured"
_MOVES = {  # by whether it is one fact
    True: " or moves to another interval in which the fact holds",
    False: " or move to other intervals in which the facts hold",
}
_LEAST_REACH = 0.5  # below, most neighbors are the case itself


def over_neighbors(certificate: "Certificate", format_name: Callable[[str], str] = printable) -> str:
    """Return how often the output stays while the facts hold and over all neighbors, compared.

    ``format_name`` is applied to names from data; all other text is safe as it is.
    """
    held, free = certificate.held_share, certificate.free_share
    if held is None or free is None:
        return f"{_NOT_MEASURED}."
    claim, joint = stays(certificate, format_name), f"{joint_interval(certificate)} "
    everywhere, count = f"over all {possible(free, certificate.reach)}", weighted(free)
    if not certificate.n_facts:
        share = share_of(free, certificate.reach, joint, bare=True)
        return f"{_capital(everywhere)}{count}, {claim} in {share}."
    first = f"{_while(certificate)} {claim} in {share_of(held, certificate.held_reach, joint)}"
    if not certificate.held_reach:
        first = f"{_while(certificate)} nothing else can change, so {claim}"
    second = share_of(free, certificate.reach, joint if held.exact else "", bare=True)
    everywhere += "" if weighted(held) else count  # once is enough
    return f"{first}; {everywhere}, in {second}.{_comparison(certificate)}"


def without_worth(certificate: "Certificate") -> str:
    """Return how often the output stays without the facts, if they were not shown to help, and what that means."""
    losses, free = certificate.losses, certificate.free_share
    if losses is None or free is None or not certificate.n_facts or losses.effect is Effect.HELPS:
        return ""
    everywhere = f"over all {possible(free, certificate.reach)}, in {share_of(free, certificate.reach, bare=True)}"
    return f"; {everywhere}.{_comparison(certificate)}".removesuffix(".")


def joint_interval(certificate: "Certificate") -> str:
    """Return the name of the certificate's intervals, whose limits hold together."""
    return f"joint {100 * certificate.confidence:g}% interval"


def _comparison(certificate: "Certificate") -> str:
    """Return whether the facts help, cannot be distinguished from chance, or hold the output less than chance."""
    losses = certificate.losses
    assert losses is not None  # it was measured
    if losses.effect is Effect.HELPS:
        return _prevented(certificate, losses) if losses.held[1] > 0 else ""  # without any change, it is evident
    changes = f"changes{by_more(certificate)}"
    if losses.effect is Effect.HARMS:
        more_often = f"{subject(certificate)} {changes} more often while they hold than over all neighbors"
        return f" The facts hold it less than chance does: {more_often}."
    if losses.held == losses.free and losses.held[0] == losses.held[1]:
        return f" Holding the facts makes no difference to {subject(certificate)}."
    return " The two shares cannot be distinguished: the facts may not matter."


def _prevented(certificate: "Certificate", losses: Losses) -> str:
    """Return how much of the changes holding the facts prevents, with the bad end of the joint limits."""
    held, free = certificate.held_share, certificate.free_share
    assert held is not None  # it was measured
    assert free is not None
    share, floor = 1 - (1 - held.value) / (1 - free.value), losses.least_prevented
    kept, most = outward(held.low, held.high)[0], outward(free.low, free.high)[1]
    if most < kept:  # a reader computes it from the limits as they are shown, unless rounding blurs them
        floor = min(floor, 1 - (1 - kept) / (1 - most))
    least = f"at least {at_least(floor)}%"
    shown = f"{percent(share, decimals=0)}%"
    if not (held.exact and free.exact):
        shown, least = (least, "") if share == 1 else (shown, f" ({least})")
    else:
        least = ""
    them = "it" if certificate.n_facts == 1 else "them"
    return f" Holding {them} prevents {shown} of the changes{by_more(certificate)}{least}."


def verdict_reason(
    certificate: "Certificate", format_name: Callable[[str], str] = printable, *, n_warnings: int = 0
) -> str:
    """Return why the verdict is what it is, as one or two sentences about this output.

    ``format_name`` is applied to names from data; all other text is safe as it is. ``n_warnings``
    are shown beside the verdict, which may take back its praise.
    """
    losses, output, same = certificate.losses, subject(certificate), certificate.same_within
    if losses is None:
        return "Type n_certify=10_000 to measure how far this explanation can be trusted."
    match certificate.verdict:
        case Verdict.TRUSTWORTHY:
            within = f" to within {amount(certificate, same)}" if same else ""
            but = f" But read the {warnings_counted(n_warnings)} before you rely on it." if n_warnings else ""
            reason = f"As tested, {_facts(certificate, 'explain')} {output}{within}.{but}"
            if not certificate.held_reach:
                reason = f"While {_hold(certificate)}, nothing else can change, so nothing had to be tested.{but}"
        case Verdict.ROBUST:
            reason = _robust_reason(certificate, losses)
        case Verdict.UNRELIABLE:
            changes = _changes(certificate, certificate.held_share)
            within = f"{_capital(changes)} in which {_hold(certificate)}".replace(
                "of neighbors", "of the neighbors"
            )
            within = within if certificate.n_facts else f"No fact is held, and {changes}"
            reason = f"{within}. Do not rely on this explanation."
        case Verdict.UNDECIDED:
            reason = _undecided_reason(certificate, losses, format_name)
        case _:
            reason = _weak_reason(certificate, losses)
    return reason


def warnings_counted(n: int) -> str:
    """Return how many warnings a sentence refers to: "warning", or "2 warnings"."""
    return "warning" if n == 1 else f"{n} warnings"


def _changes(certificate: "Certificate", share: "Estimate | None", only: str = "") -> str:
    """Return in how many neighbors the output changes: "the predicted class changes in 9.4% of neighbors"."""
    assert share is not None  # it was measured
    changes = f"{subject(certificate)} changes{by_more(certificate)}"
    if share.value == 1:
        return f"{changes} in no neighbor{'' if share.exact else ' drawn'}"
    return f"{changes} in {only}{percent(1 - share.value)}% of neighbors"


def _hold(certificate: "Certificate") -> str:
    """Return what stays in the condition of the measurement, in a few words."""
    if certificate.keeps_values:
        return "this value stays" if certificate.n_facts == 1 else "these values stay"
    as_tested = " as tested" if certificate.keeps_some else ""
    return f"{'this fact holds' if certificate.n_facts == 1 else 'these facts hold'}{as_tested}"


def _robust_reason(certificate: "Certificate", losses: Losses) -> str:
    """Return how rarely the output changes, and whether the facts make that worse."""
    reason = f"{_capital(_changes(certificate, certificate.free_share, 'only '))}, even if no fact is held."
    if certificate.n_facts and losses.effect is Effect.HARMS:
        reason += f" While {_hold(certificate)}, it changes more often, so they do not explain it."
    return reason


def _facts(certificate: "Certificate", verb: str) -> str:
    """Return what was held as the subject of a verb: "this fact explains", "the values behind these facts ..."."""
    one = certificate.n_facts == 1
    facts = "this fact" if one else "these facts"
    if certificate.keeps_values or certificate.keeps_some:
        facts = f"the value{'' if one else 's'} behind {facts}"
    return f"{facts} {verb}{'s' if one else ''}"


def _undecided_reason(certificate: "Certificate", losses: Losses, format_name: Callable[[str], str]) -> str:
    """Return which limits of the verdict lie inside the measured intervals, and what to type."""
    if certificate.reach < _LEAST_REACH and not (losses.held[0] or losses.free[0]):
        return (
            f"{percent(1 - certificate.reach)}% of the draws equal this case, so that the facts were hardly "
            "tested. Type a smaller sigma, such as sigma=1."
        )
    held, free = certificate.held_share, certificate.free_share
    assert held is not None  # it was measured
    assert free is not None
    claim, questions = stays(certificate, format_name), []
    advice = _measure_more(certificate, held, free)
    if losses.verdict is Verdict.TRUSTWORTHY:
        return f"Too few queries to say whether it is these facts that hold the output. {advice}"
    for limit in (GOOD, BAD) if certificate.n_facts else (BAD,):
        if losses.held[0] <= limit < losses.held[1]:
            while_held = f" while {_hold(certificate)}" if certificate.n_facts else ""
            measured = f"(interval: {limits(held.low, held.high)}%)"
            questions.append(f"{claim} in at least {1 - limit:.0%} of neighbors{while_held} {measured}")
    if losses.free[0] <= GOOD < losses.free[1]:
        measured = f"(interval: {limits(free.low, free.high)}%)"
        questions.append(f"{claim} in at least {1 - GOOD:.0%} of all neighbors {measured}")
    if not questions and certificate.n_facts:
        ends = f"{at_least(max(0.0, losses.least_prevented))} to {percent(losses.most_prevented, decimals=0)}"
        them = "this fact" if certificate.n_facts == 1 else "these facts"
        questions.append(f"holding {them} prevents at least {PREVENTED:.0%} of the changes (interval: {ends}%)")
    too_few = "" if certificate.budget is None else "Too few queries to say. "
    return f"{too_few}It is open whether {', and whether '.join(questions)}. {advice}"


def _measure_more(certificate: "Certificate", *shares: "Estimate") -> str:
    """Return what to type to measure on four times as many neighbors."""
    if certificate.budget is not None:
        return f"Type budget={4 * certificate.budget:_} to ask more."
    if certificate.stopped_because is not None:  # the number of neighbors was not given
        return "Type a smaller tolerance to measure more neighbors."
    n = sum(share.n_samples for share in shares if not share.exact)
    return f"Type n_certify={4 * n:_} to measure more neighbors."


def _weak_reason(certificate: "Certificate", losses: Losses) -> str:
    output, more = subject(certificate), by_more(certificate)
    if not certificate.n_facts:
        return "No fact is held that could explain it."
    if losses.effect is Effect.HARMS:
        return f"{_capital(output)} changes{more} more often while {_hold(certificate)} than over all neighbors."
    if losses.effect is Effect.UNCLEAR:
        return f"It was not shown that {output} stays more often while {_hold(certificate)}."
    if losses.held[1] <= GOOD:
        return f"{_capital(_facts(certificate, 'hold'))} {output}, but it stays nearly as often without."
    less, still = f"{output} changes less often", "it still does"
    if more:
        less, still = f"changes{more} are rarer", "they occur"
    share = certificate.held_share
    assert share is not None  # it was measured
    still = f"{still} in {percent(1 - share.value)}% of these neighbors"
    return f"While {_hold(certificate)}, {less}, but {still}; a trustworthy explanation allows {GOOD:.0%}."


def _capital(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}"


def _while(certificate: "Certificate") -> str:
    """Return the condition of the measurement in words, with a final comma."""
    if certificate.n_pairs:
        facts = _facts_and_pairs(certificate)
    elif certificate.keeps_values or certificate.keeps_some:
        n = certificate.n_facts
        facts = "the value behind this fact stays" if n == 1 else f"the values behind these {n} facts stay"
        facts += _MOVES[n == 1] if certificate.keeps_some else ""
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
    if certificate.keeps_values or certificate.keeps_some:
        return f"the values behind {named} stay{_MOVES[False] if certificate.keeps_some else ''}"
    return f"{named} hold{'s' if certificate.n_facts == 1 else ''}"


def short_claim(certificate: "Certificate") -> str:
    """Return the verdict and the measurement behind it as one short line for a picture."""
    verdict, share = certificate.verdict, certificate.held_share
    if share is None or certificate.free_share is None:
        return _NOT_MEASURED
    where = f" {short_condition(certificate)}"
    if verdict is Verdict.ROBUST or not certificate.n_facts:  # a finding about the output, not about the facts
        share, where = certificate.free_share, ""
    neighbors = f"{percent(share.value)}% of {'neighbors' if where else 'all neighbors'}"
    neighbors = "all neighbors drawn" if share.value == 1 and not share.exact else neighbors
    return f"{_capital(certificate.verdict_title)}: {stays(certificate)} in {neighbors}{where}"


def short_condition(certificate: "Certificate") -> str:
    """Return the condition of the measurement in a few words; the certificate states it in full."""
    if certificate.n_facts == 0:
        return "over all neighbors"
    one = certificate.n_facts == 1
    hold = "while the fact holds" if one else "while the facts hold"
    if certificate.keeps_some:
        hold += " as tested"
    if certificate.keeps_values:
        hold = "while the value stays" if one else "while the values stay"
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
    return (
        f"{n_clipped:,} of {n_queries:,} outputs {'was' if n_clipped == 1 else 'were'} beyond {known} and clipped"
    )


def range_advice(learned_range: bool) -> str:
    """Return what to type so that no output is clipped."""
    if learned_range:
        return "If all outputs of the model lie in a known range, pass output_range=(lowest, highest)."
    return "Pass a wider output_range=(lowest, highest)."


def clipped_much(certificate: "Certificate") -> bool:
    """Return whether more than one output in a hundred was clipped."""
    return certificate.n_clipped > 0.01 * certificate.n_queries
