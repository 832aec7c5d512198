"""Plain text: the sum in one line, the rule in one sentence, and the certificate in a few lines."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from anchorline.guarantees import is_vacuous
from anchorline.guarantees.rounding import rounded_up
from anchorline.optimize.problem import Status
from anchorline.render.characters import printable as printable  # noqa: PLC0414  re-exported
from anchorline.render.claims import quoted
from anchorline.render.neighbors import values_sentence
from anchorline.render.summands import Summand, output_name, summands
from anchorline.render.trust import (
    clipped_much,
    clipping_warning,
    over_neighbors,
    verdict_reason,
    warnings_counted,
)
from anchorline.search.pairs import MAX_PAIRS

if TYPE_CHECKING:
    from anchorline.result.certificate import Certificate
    from anchorline.result.explanation import Explanation

_VERDICT = "Verdict:"
_DEFINITIONS = (
    "Errors are mean squares of differences, as shares of the output range: of the sum from the output "
    "(fidelity), and of the output from the prediction while the condition holds (relevance)."
)
_PROVEN = {
    "fidelity": "Proven best {size} {where}.",
    "leaves": "Proven best {size} over all neighbors, computed from the model's trees.",
    "relevance": "Proven: no other rule of at most {facts} keeps the output closer to the prediction (mean "
    "square), on {sample}.",
    "shortest": "Proven shortest rule on {sample}: {fewer}.",
}


def rule(explanation: "Explanation", format_part: Callable[[Summand], str] = lambda part: part.text) -> str:
    """Return the sum as one line, such as ``0.11 [Credit History < 10 yrs] - 0.03 [DTI <= 30%] -> Rate = 0.08``.

    The printed numbers add up exactly, digit for digit, to the printed prediction. ``format_part`` returns the
    text of a summand, which comes from data.
    """
    total = summands(explanation)
    parts = [f"{term.number} [{format_part(term)}]" for term in total.terms]
    if total.intercept is not None:
        parts.append(total.intercept.number)
    body = parts[0] if parts else "0"
    for part in parts[1:]:
        body += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
    return f"{body} -> {format_part(total.total)} = {total.total.number}"


def explanation_text(explanation: "Explanation") -> str:
    """Return the sum in one line, then the sentences about it, the warnings last."""
    return "\n".join([rule(explanation), *sentences(explanation)])


def sentences(explanation: "Explanation") -> list[str]:
    """Return everything that is said about a sum, one line each: the certificate, and what misleads."""
    lines = certificate_text(explanation.certificate, n_warnings=len(explanation.warnings)).split("\n")
    title = f"{_VERDICT} {explanation.certificate.verdict_title}"
    verdict = next(i for i, line in enumerate(lines) if line.startswith(_VERDICT))
    lines[verdict - 1] = " ".join(filter(None, (lines[verdict - 1], values_sentence(explanation))))
    lines = [*about_the_class(explanation), *lines]
    if explanation.warnings:  # praise must not be read without them
        see = f"see the {warnings_counted(len(explanation.warnings))} below"
        lines = [line.replace(title, f"{title} ({see})", 1) for line in lines]
    return [line for line in (*lines, *cautions(explanation)) if line]


def cautions(explanation: "Explanation") -> list[str]:
    """Return what makes the explanation misleading: values new to the table, and findings about the setup."""
    unseen = unseen_sentence(explanation)
    return ([unseen] if unseen else []) + [f"Warning: {printable(text)}" for text in explanation.warnings]


def about_the_class(explanation: "Explanation", format_name: Callable[[str], str] = printable) -> list[str]:
    """Return from which probability on the model predicts a class, and which one if another is explained."""
    decided, parameters = explanation.certificate.decided, explanation.parameters
    lines, rule = [], parameters.get("rule") or {}
    if "threshold" in rule:
        names = [str(name) for name in parameters["classes"]]
        named, other = names[rule["column"]], names[1 - rule["column"]]
        reaches = f"P({format_name(named)}) is at least {rule['threshold']:g}"
        lines.append(
            f"The model predicts {quoted(named, format_name)} if {reaches}, and {quoted(other, format_name)} "
            "otherwise."
        )
    if explanation.certificate.decision == "class" and decided is not None:
        shown = format_name(output_name(explanation))
        predicts = f"The model predicts {quoted(decided, format_name)}"
        lines.append(f"{predicts}; this explains {shown}, the output of another class.")
    return lines


def unseen_sentence(explanation: "Explanation") -> str:
    """Return which of the row's values no training row has, or an empty text."""
    if not explanation.unseen:
        return ""
    notes = [f"{printable(name)}: {printable(why)}" for name, why in explanation.unseen.items()]
    return f"The row is unlike the training table. {'; '.join(notes)}."


def certificate_text(certificate: "Certificate", *, n_warnings: int = 0) -> str:
    """Return the certificate in a few lines: on the sample, over all neighbors, the verdict, and about clipping.

    ``n_warnings`` about the setup are shown beside it.
    """
    lines = [on_the_sample(certificate), over_neighbors(certificate)]
    lines.append(f"{_VERDICT} {certificate.verdict_title}. {verdict_reason(certificate, n_warnings=n_warnings)}")
    warning = clipping_warning(certificate)
    if warning:
        lines.insert(0 if clipped_much(certificate) else 3, warning)
    lines += [stop] if (stop := stopping_sentence(certificate)) else []
    return "\n".join(lines)


def stopping_sentence(certificate: "Certificate") -> str:
    """Return why sampling stopped, or an empty text; a separation has a failure probability of its own."""
    reason = certificate.stopped_because
    if reason is None:
        return ""
    own = f" The separation holds with {100 * certificate.confidence:g}% confidence by itself, not jointly."
    return f"Sampling stopped: {reason}.{own if reason.startswith('best support separated') else ''}"


def details_text(certificate: "Certificate") -> str:
    """Return the figures behind the sentences of the certificate, and the bounds that theory alone gives."""
    where = "Over the whole neighborhood" if certificate.by_leaves else "On the sample"
    where = "By the estimated effects" if certificate.known_moments and not certificate.exhaustive else where
    if certificate.by_leaves and not (certificate.fidelity_error and certificate.fidelity_error.exact):
        where += ", up to a number that is the same for all sums of facts"
    lines = [f"{where}: mean square {certificate.objective:.6g}, lower bound {certificate.lower_bound:.6g}."]
    lines.append(_DEFINITIONS)
    if certificate.fidelity_error is not None:
        lines.append(
            f"Fidelity error: {certificate.fidelity_error}. Relevance error: {certificate.relevance_error}."
        )
        lines.append(f"Typical change (root mean square): {_changes(certificate)}.")
        lines.append(_draws(certificate))
        vacuous = " (vacuous)" if (certificate.relevance_bound or 0.0) >= 1 else ""
        lines.append(
            f"The rule's condition has probability {certificate.event_probability:.3g}; by theorem, fidelity "
            f"alone bounds the relevance error by {rounded_up(certificate.relevance_bound or 0.0)}{vacuous}."
        )
    epsilon = certificate.theorem_epsilon
    if epsilon is not None and not certificate.by_leaves:
        limit = f"{rounded_up(epsilon)}{' (vacuous)' if is_vacuous(epsilon) else ''}"
        lines.append(
            f"By theorem, the fidelity error of every sum this short is at most {limit} above its value on the "
            f"sample, with {100 * certificate.confidence:g}% confidence by itself, not jointly."
        )
    if certificate.fidelity_error is not None and not certificate.exhaustive:
        lines.append(
            "Each interval above holds on its own with the confidence printed beside it. All intervals of the "
            f"certificate hold together with {100 * certificate.confidence:g}% confidence: these are the joint "
            "intervals."
        )
    if certificate.sampled_because is not None:
        lines.append(f"Neighbors were sampled, because {certificate.sampled_because}.")
    lines.append(f"{certificate.n_queries:,} model queries.")
    return "\n".join(lines)


def _draws(certificate: "Certificate") -> str:
    """Return what the errors and the recorded shares count, of which the sentences count a part."""
    equal = f"{100 * (1 - certificate.reach):.3g}% of them equal the case"
    equal += f", and {100 * (1 - certificate.held_reach):.3g}% of those in which the condition holds"
    shares = f" Stability: {certificate.stability}, over all draws {certificate.baseline_stability}."
    return f"These figures count all draws; {equal}. Sentences leave these out.{shares}"


def _changes(certificate: "Certificate") -> str:
    """Return how far the output moves, and whether clipping hides a part of it."""
    held, free = certificate.typical_change, certificate.baseline_change
    clipped = ", both understated, because outputs were clipped" if certificate.n_clipped else ""
    return f"{held} while the condition holds, {free} over all neighbors{clipped}"


def on_the_sample(certificate: "Certificate") -> str:
    """Return what the search proved on its sample, and how many facts it left out or could not judge."""
    n = certificate.n_left_out
    if certificate.n_unclear:
        return f"{_found(certificate)} {_unclear(certificate)}"
    if certificate.pairs_searched is not None and (certificate.n_facts or not n):
        return f"{_found(certificate)} {_searched(certificate)}"
    if not n:
        return _found(certificate)
    if not certificate.n_facts:
        zero = "is different from zero" if certificate.exhaustive else "can be distinguished from zero"
        return f"On {_sample(certificate)}, the average effect of no fact on the output {zero}."
    facts = "1 fact was" if n == 1 else f"{n:,} facts were"
    their = "its" if n == 1 else "their"
    zero = "is zero" if certificate.exhaustive else "cannot be distinguished from zero"
    effect = f"around this case, {their} average effect on the output {zero}"
    return f"{_found(certificate)} {facts} left out, because {effect}."


def _unclear(certificate: "Certificate") -> str:
    """Return how many facts of the sum have an effect that may be zero."""
    n, n_facts = certificate.n_unclear, certificate.n_facts
    facts = (
        "this fact" if n_facts == 1 else f"these {n_facts} facts" if n == n_facts else f"{n} of {n_facts} facts"
    )
    return f"So few samples do not show whether the average effect of {facts} on the output differs from zero."


def _searched(certificate: "Certificate") -> str:
    """Return among which facts and pairs the search looked, given that pairs were asked for."""
    assert certificate.pairs_searched is not None  # pairs were asked for
    (n, n_all), n_out = certificate.pairs_searched, certificate.n_left_out
    facts = f"all facts but {n_out:,} without a clear effect" if n_out else "all facts"
    if not n:
        why = "because no two facts about different attributes have a clear effect"
        return f"Candidates were {facts} and none of {n_all:,} pairs, {why}."
    few = "with the largest interactions" if n == MAX_PAIRS else "whose two facts have a clear effect"
    pairs = f"all {n_all:,} pairs" if n == n_all else f"the {n:,} of {n_all:,} pairs {few}"
    return f"Candidates were {facts} and {pairs}; a pair counts as two terms."


def _found(certificate: "Certificate") -> str:
    """Return one sentence about what the search proved on its sample."""
    if certificate.n_terms == 0:
        return "The prediction is zero, so an empty sum adds up to it and explains nothing."
    size = f"{certificate.n_terms}-term explanation"
    if certificate.n_terms > certificate.n_facts:
        size += f" ({certificate.size})"
    sample, where = _sample(certificate), _where(certificate)
    gap = rounded_up(certificate.optimality_gap, 2)
    match certificate.status:
        case Status.OPTIMAL:
            proven = _PROVEN["leaves" if certificate.by_leaves else certificate.goal]
            facts = f"{certificate.n_facts} fact{'' if certificate.n_facts == 1 else 's'}"
            return proven.format(size=size, facts=facts, fewer=_fewer(certificate), sample=sample, where=where)
        case Status.LIMIT | Status.CHOSEN if certificate.goal == "shortest":
            what = f"With {_facts(certificate.n_facts)} held, {_requested(certificate)}"
            return f"{what}, on {sample}; a shorter rule was not ruled out."
        case Status.CHOSEN:
            found, where = f"Rule found on {sample} and preferred by a second sample", "on the first sample, "
            if certificate.exhaustive:  # there is no second sample
                found, where = f"Best rule found on {sample}", ""
            return f"{found}; {where}no other rule has an error that is smaller by more than {gap} (mean square)."
        case Status.LIMIT:
            return (
                f"Best {size} found {where} before a limit was reached; the optimum may be better by up to "
                f"{gap} (mean square)."
            )
        case status:
            return f"A {size} from {sample}. {status.value}"


def _fewer(certificate: "Certificate") -> str:
    """Return what the proof says about the rule, and about shorter ones."""
    n, change = certificate.n_facts, _requested(certificate)
    if not n:
        return f"without any fact, {change}"
    fewer = {1: "no fact", 2: "any one fact"}.get(n, f"any {n - 1} facts")
    more = "in more" if certificate.decision == "label" else "it is larger"
    return f"with {_facts(n)} held, {change}; with {fewer} held, {more}"


def _facts(n_facts: int) -> str:
    return "this fact" if n_facts == 1 else f"these {n_facts} facts"


def _requested(certificate: "Certificate") -> str:
    """Return the requested error in words: by how much the output moves, or how often a label changes."""
    change = certificate.requested_change or 0.0
    if certificate.decision == "label":  # outputs are -1 and +1
        return f"the label changes in at most {rounded_up(100 * (change / 2) ** 2)}% of draws"
    return f"the typical move of the output (root mean square) is at most {rounded_up(change)}, the limit set"


def _where(certificate: "Certificate") -> str:
    """Return what the proof is about: the sample itself, or effects that the sample lets estimate."""
    if certificate.known_moments and not certificate.exhaustive:
        return f"by effects estimated from {_sample(certificate)}"
    return f"on {_sample(certificate)}"


def _sample(certificate: "Certificate") -> str:
    """Return the neighbors that the search used, in words."""
    if certificate.by_leaves:
        return "the whole neighborhood"
    return (
        f"the case and all {certificate.n_samples - 1:,} possible neighbors"
        if certificate.exhaustive
        else f"{certificate.n_samples:,} samples"
    )
