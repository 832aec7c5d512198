"""Plain text: the sum in one line, the rule in one sentence, and the certificate in a few lines."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from anchorline.guarantees import is_vacuous
from anchorline.optimize.problem import Status
from anchorline.render.characters import printable as printable  # noqa: PLC0414  re-exported
from anchorline.render.claims import quoted
from anchorline.render.shares import percent
from anchorline.render.summands import Summand, output_name, summands
from anchorline.render.trust import clipped_much, clipping_warning, in_the_population, verdict_reason
from anchorline.search.pairs import MAX_PAIRS

if TYPE_CHECKING:
    from anchorline.result.certificate import Certificate
    from anchorline.result.explanation import Explanation

_VERDICT = "Verdict:"
_PROVEN = {
    "fidelity": "Proven best {size} on {sample}.",
    "leaves": "Proven best {size} in the whole neighborhood; no sampling.",
    "relevance": "Proven most relevant rule within the terms allowed, on {sample}.",
    "shortest": "Proven shortest rule on {sample}: {fewer} the requested error.",
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
    lines = [another_class(explanation), *certificate_text(explanation.certificate).split("\n")]
    title = f"{_VERDICT} {explanation.certificate.verdict.title}"
    if explanation.warnings:  # praise must not be read without them
        lines = [line.replace(title, f"{title} (see the warning below)", 1) for line in lines]
    return [line for line in (*lines, *cautions(explanation)) if line]


def cautions(explanation: "Explanation") -> list[str]:
    """Return what makes the explanation misleading: values new to the table, and findings about the setup."""
    unseen = unseen_sentence(explanation)
    return ([unseen] if unseen else []) + [f"Warning: {printable(text)}" for text in explanation.warnings]


def another_class(explanation: "Explanation", format_name: Callable[[str], str] = printable) -> str:
    """Return which class the model predicts if another one is explained, or an empty text."""
    decided = explanation.certificate.decided
    if explanation.certificate.decision != "class" or decided is None:
        return ""
    shown = format_name(output_name(explanation))
    return (
        f"The model predicts {quoted(decided, format_name)}; this explains {shown}, the output of another class."
    )


def unseen_sentence(explanation: "Explanation") -> str:
    """Return which of the row's values no training row has, or an empty text."""
    if not explanation.unseen:
        return ""
    notes = [f"{printable(name)}: {printable(why)}" for name, why in explanation.unseen.items()]
    return f"The row is unlike the training table. {'; '.join(notes)}."


def certificate_text(certificate: "Certificate") -> str:
    """Return the certificate in a few lines: on the sample, in the population, the verdict, and the warnings."""
    lines = [on_the_sample(certificate), in_the_population(certificate)]
    lines.append(f"{_VERDICT} {certificate.verdict.title}. {verdict_reason(certificate)}")
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
    if certificate.by_leaves and not (certificate.fidelity_error and certificate.fidelity_error.exact):
        where += ", up to a number that is the same for all sums of facts"
    lines = [f"{where}: mean square {certificate.objective:.6g}, lower bound {certificate.lower_bound:.6g}."]
    if certificate.fidelity_error is not None:
        lines.append(
            f"Fidelity error: {certificate.fidelity_error}. Relevance error: {certificate.relevance_error}."
        )
        lines.append(f"Typical change (root mean square): {_changes(certificate)}.")
        vacuous = " (vacuous)" if (certificate.relevance_bound or 0.0) >= 1 else ""
        lines.append(
            f"The rule's condition has probability {certificate.event_probability:.3g}; fidelity alone bounds the "
            f"relevance error by {certificate.relevance_bound:.3g}{vacuous}."
        )
    epsilon = certificate.theorem_epsilon
    if epsilon is not None and not certificate.by_leaves:
        limit = f"{epsilon:.3g}{' (vacuous)' if is_vacuous(epsilon) else ''}"
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


def _changes(certificate: "Certificate") -> str:
    """Return how far the output moves, and whether clipping hides a part of it."""
    held, free = certificate.typical_change, certificate.baseline_change
    clipped = ", both understated, because outputs were clipped" if certificate.n_clipped else ""
    return f"{held} while the condition holds, {free} over all neighbors{clipped}"


def on_the_sample(certificate: "Certificate") -> str:
    """Return what the search proved on its sample, and how many facts it left out."""
    n = certificate.n_left_out
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
    return f"{_found(certificate)} {facts} left out, because {their} average effect on the output {zero}."


def _searched(certificate: "Certificate") -> str:
    """Return among which facts and pairs the search looked, given that pairs were asked for."""
    assert certificate.pairs_searched is not None  # pairs were asked for
    (n, n_all), n_out = certificate.pairs_searched, certificate.n_left_out
    facts = f"all facts but {n_out:,} without a clear effect" if n_out else "all facts"
    if not n:
        return f"Candidates were {facts} and none of {n_all:,} pairs, because no two facts have a clear effect."
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
    sample = _sample(certificate)
    gap = f"{certificate.optimality_gap:.2g}"
    match certificate.status:
        case Status.OPTIMAL:
            proven = _PROVEN["leaves" if certificate.by_leaves else certificate.goal]
            return proven.format(size=size, fewer=_fewer(certificate.n_facts), sample=sample)
        case Status.LIMIT | Status.CHOSEN if certificate.goal == "shortest":
            return f"{certificate.n_facts} facts suffice on {sample}; a shorter rule was not ruled out."
        case Status.CHOSEN:
            found, where = f"Rule found on {sample} and preferred by a second sample", "on the first sample, "
            if certificate.exhaustive:  # there is no second sample
                found, where = f"Best rule found on {sample}", ""
            return f"{found}; {where}no other rule is better by more than {gap} (mean square)."
        case Status.LIMIT:
            return (
                f"Best {size} found on {sample} before a limit was reached; the optimum may be better by up to "
                f"{gap} (mean square)."
            )
        case status:
            return f"A {size} from {sample}. {status.value}"


def _fewer(n_facts: int) -> str:
    """Return what the proof says about shorter rules."""
    rules = {0: "no fact is needed for", 1: "a rule without facts misses"}
    return rules.get(n_facts, f"every rule of fewer than {n_facts} facts misses")


def _sample(certificate: "Certificate") -> str:
    """Return the neighbors that the search used, in words."""
    if certificate.by_leaves:
        return "the whole neighborhood"
    return (
        f"all {certificate.n_samples:,} neighbors"
        if certificate.exhaustive
        else f"{certificate.n_samples:,} samples"
    )


def by_theorem(certificate: "Certificate") -> list[str]:
    """Return the sentences that follow without a measurement of relevance; those that say nothing are left out.

    `details_text` shows vacuous bounds, too.
    """
    lines, epsilon, bound = [], certificate.theorem_epsilon, certificate.relevance_bound
    if certificate.exhaustive:
        whole = "The errors went over" if certificate.by_leaves else "The sample was"
        sampled = certificate.stability is not None and not certificate.stability.exact
        rest = "only how often the output stays was sampled" if sampled else "nothing has to be inferred"
        lines.append(f"{whole} the whole neighborhood, so {rest}.")
    elif epsilon is not None and not is_vacuous(epsilon):
        lines.append(
            f"With confidence {100 * certificate.confidence:g}%, by itself and not jointly with the intervals, "
            f"the fidelity error of every sum this short is at most {epsilon:.3g} above its value on the sample."
        )
    if bound is not None and bound < 1 and certificate.fidelity_error is not None and certificate.n_facts:
        limit, share = f"{certificate.fidelity_error.high:.3g}", percent(certificate.event_probability or 0.0)
        lines.append(
            f"The rule's condition is met in {share}% of neighbors, so a fidelity error of at most {limit} alone "
            f"keeps the relevance error below {bound:.3g}."
        )
    return lines
