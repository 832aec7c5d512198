"""Plain text: the rule in one line, and the certificate in a few."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from anchorline.guarantees import is_vacuous
from anchorline.optimize.problem import Status
from anchorline.render.characters import printable as printable  # noqa: PLC0414  others ask here
from anchorline.render.summands import Summand, output_name, summands

if TYPE_CHECKING:
    from anchorline.result.certificate import Certificate
    from anchorline.result.explanation import Explanation
    from anchorline.spaces.base import Literal

_GOALS = {
    "fidelity": "Proven best {size} on {sample}.",
    "relevance": "Proven most relevant rule within the terms allowed, on {sample}.",
    "shortest": "Proven shortest rule on {sample}: no fewer than {facts} facts do.",
}


def rule(explanation: "Explanation", shown: Callable[[Summand], str] = lambda part: part.text) -> str:
    """One line like ``0.11 [Credit History < 10 yrs] - 0.03 [DTI <= 30%] -> Rate = 0.08``.

    The printed numbers add up exactly, digit for digit, to the printed prediction. ``shown`` makes the text of
    what came from data.
    """
    total = summands(explanation)
    parts = [f"{term.number} [{shown(term)}]" for term in total.terms]
    if total.intercept is not None:
        parts.append(total.intercept.number)
    body = parts[0] if parts else "0"
    for part in parts[1:]:
        body += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
    return f"{body} -> {shown(total.total)} = {total.total.number}"


def if_then(explanation: "Explanation") -> str:
    """The support as a rule: ``If a and b then vote stays 1 (in 97.9% of neighbors, 95% interval ...)``."""
    return f"If {' and '.join(facts(explanation)) or 'anything goes'}{consequence(explanation)}"


def facts(explanation: "Explanation") -> list[str]:
    """What must stay true for the rule, printable: one statement a literal of the support.

    A literal may hold more than it says: samples keep the very value, not only the range it is in. Its
    ``held`` says so, where the space wrote one.
    """
    return [printable(_held(explanation.literals[j])) for j in explanation.support]


def _held(literal: "Literal") -> str:
    return str(getattr(literal, "held", "") or literal.text)


def consequence(explanation: "Explanation", shown: Callable[[str], str] = printable) -> str:
    """The rest of the rule, after the facts: that the output stays, how often or how far.

    ``shown`` is applied to what came from data; the rest are letters, digits and signs that need no care.
    """
    certificate = explanation.certificate
    broken = "" if certificate.event_is_literal is not False else ", or contributions of broken ones cancel,"
    if explanation.label is None and certificate.stability is None:
        told = f"{shown(output_name(explanation))} stays {explanation.prediction:.4g}"
    elif certificate.decision == "own class":
        told = f"{shown(explanation.output)} stays the predicted class"
    elif certificate.decision == "class":
        told = "the predicted class stays the same"
    elif explanation.label is None:  # what stays so often is the decision; the number itself moves
        told = f"the decision by {shown(output_name(explanation))} = {explanation.prediction:.4g} stays"
    else:
        told = f"{shown(explanation.output)} stays {shown(str(explanation.label))}"
    then = f"{broken} then {told}"
    stability, change = certificate.stability, certificate.typical_change
    confidence = f"{100 * certificate.confidence:g}% interval"
    if stability is not None:
        if stability.exact and stability.value == 1:
            return f"{then}."
        ends = "" if stability.exact else f", {confidence} {_percent(stability.low)} to {_percent(stability.high)}"
        return f"{then} in {_percent(stability.value)}% of neighbors{ends}."
    if change is None:
        return f"{then}, which was not measured."
    if change.high > 0:
        ends = "" if change.exact else f", {confidence} {change.low:.3g} to {change.high:.3g}"
        then += f", typically within {change.value:.3g}{ends}"
    if certificate.n_clipped_inside:
        then += f", as far as output_range goes: {certificate.n_clipped_inside:,} outputs were beyond it"
    return f"{then}."


def explanation_text(explanation: "Explanation") -> str:
    """The rule, then the certificate."""
    return f"{rule(explanation)}\n{explanation.certificate}"


def certificate_text(certificate: "Certificate") -> str:
    """Few lines a person understands: on the sample, in the population, the verdict; then what to know."""
    lines = [on_the_sample(certificate), in_the_population(certificate)]
    lines.append(f"Verdict: {certificate.verdict.name.lower()}.")
    clipped = clipping(certificate)
    if clipped:
        lines.insert(0 if _clipped_much(certificate) else 3, clipped)
    if certificate.stopped_because:
        lines.append(f"Sampling stopped: {certificate.stopped_because}.")
    return "\n".join(lines)


def clipping(certificate: "Certificate") -> str:
    """That outputs were beyond the range they should be in, and what to do if they were many; else nothing."""
    if not certificate.n_clipped:
        return ""
    told = beyond_range(certificate.n_clipped, certificate.n_queries)
    inside = certificate.n_clipped_inside
    if inside and certificate.stability is None:
        told += f", {inside:,} of them while the reasons stayed: the output moves further than is told here"
    wider = _clipped_much(certificate) or (inside and certificate.stability is None)
    return f"{told}: pass a wider output_range=(lowest, highest)." if wider else f"{told}."


def beyond_range(n_clipped: int, n_queries: int) -> str:
    """How many outputs were beyond the range they should be in."""
    return f"{n_clipped:,} of {n_queries:,} outputs were beyond output_range and clipped"


def _clipped_much(certificate: "Certificate") -> bool:
    return certificate.n_clipped > 0.01 * certificate.n_queries


def short_claim(certificate: "Certificate") -> str:
    """The verdict with the figure it rests on, in one short line for a picture."""
    verdict, condition = certificate.verdict.name.capitalize(), short_condition(certificate)
    stability, change = certificate.stability, certificate.typical_change
    if stability is not None:
        return f"{verdict}: {_decided(certificate)} stays in {_percent(stability.value)}% of neighbors {condition}"
    if change is not None:
        told = f"typically changes by {change.value:.2g}" if change.high > 0 else "stays"
        return f"{verdict}: the output {told} {condition}"
    return "How far it can be trusted was not measured"


def short_condition(certificate: "Certificate") -> str:
    """The condition of the measurement in a few words; the sentence of the certificate says it in full."""
    if certificate.n_facts == 0:
        return "over all neighbors"
    stay = "while the values stay" if certificate.keeps_values else "while the facts hold"
    return stay if certificate.event_is_literal is not False else f"{stay} or cancel"


def details_text(certificate: "Certificate") -> str:
    """The figures behind the sentences, and what theory alone says."""
    lines = [f"On the sample: mean square {certificate.objective:.6g}, at least {certificate.lower_bound:.6g}."]
    if certificate.fidelity_error is not None:
        lines.append(
            f"Fidelity error: {certificate.fidelity_error}. Relevance error: {certificate.relevance_error}."
        )
        lines.append(
            f"The event has probability {certificate.event_probability:.3g}; fidelity alone bounds the relevance "
            f"error by {certificate.relevance_bound:.3g}."
        )
    epsilon = certificate.theorem_epsilon
    if epsilon is not None:
        limit = f"{epsilon:.3g}{' (vacuous)' if is_vacuous(epsilon) else ''}"
        lines.append(f"By theorem, no such sum's fidelity error is more than {limit} above that on the sample.")
    lines.append(f"{certificate.n_queries:,} model queries.")
    return "\n".join(lines)


def on_the_sample(certificate: "Certificate") -> str:
    """What is proved, or not, about the sample that was searched."""
    if certificate.n_terms == 0:
        return "The prediction is zero: an empty sum adds up to it, and explains nothing."
    size = f"{certificate.n_terms}-term explanation"
    neighbors = "all {:,} neighbors" if certificate.exhaustive else "{:,} samples"
    sample = neighbors.format(certificate.n_samples)
    match certificate.status:
        case Status.OPTIMAL:
            return _GOALS[certificate.goal].format(size=size, facts=certificate.n_facts, sample=sample)
        case Status.LIMIT | Status.CHOSEN if certificate.goal == "shortest":
            return f"{certificate.n_facts} facts suffice on {sample}; that fewer do was not ruled out."
        case Status.CHOSEN:
            better = f"{certificate.optimality_gap:.2g}"
            return (
                f"Rule found on {sample} and preferred by a second sample; on the first, one is {better} better."
            )
        case Status.LIMIT:
            gap = certificate.optimality_gap
            return f"Best {size} found on {sample} before a limit; the best may be {gap:.2g} better (mean square)."
        case status:
            return f"A {size} from {sample}. {status.value}"


def in_the_population(certificate: "Certificate") -> str:
    """How often, or how far, the output moves while the facts hold; and over all neighbors."""
    change, baseline_change = certificate.typical_change, certificate.baseline_change
    stability, baseline = certificate.stability, certificate.baseline_stability
    if change is None or baseline_change is None:
        return "How far it can be trusted was not measured."
    if stability is not None and baseline is not None:
        told = f"{_decided(certificate)} stays the same in {_percent(stability.value)}% of neighbors"
        ends = "" if stability.exact else f"{_percent(stability.low)} to {_percent(stability.high)}"
        overall = f"in {_percent(baseline.value)}%"
        alike = stability.low <= baseline.high
    else:
        told = f"the output typically changes by {change.value:.3g}" if change.high > 0 else "the output stays"
        ends = "" if change.exact else f"{change.low:.3g} to {change.high:.3g}"
        overall = (
            f"by {baseline_change.value:.3g}" if change.high > 0 else f"it moves by {baseline_change.value:.3g}"
        )
        alike = change.high >= baseline_change.low
    interval = f" ({100 * certificate.confidence:g}% interval {ends})" if ends else ""
    against = f"; over all neighbors {overall}" if certificate.n_facts else ""
    matters = " No difference was measured: the facts may not matter." if certificate.n_facts and alike else ""
    return f"{_while(certificate)} {told}{interval}{against}.{matters}"


def _decided(certificate: "Certificate") -> str:
    """What a decision is about."""
    if certificate.decision in ("class", "own class"):
        return "the predicted class"
    return "the label" if certificate.decision == "label" else "the decision"


def by_theorem(certificate: "Certificate") -> list[str]:
    """What follows without a measurement of relevance, each with the words that say when it is empty."""
    lines, epsilon, bound = [], certificate.theorem_epsilon, certificate.relevance_bound
    if certificate.exhaustive:
        lines.append("The sample was the whole neighborhood: there is nothing to infer.")
    elif epsilon is not None:
        empty = ": vacuous at this sample size, it promises nothing" if is_vacuous(epsilon) else ""
        lines.append(
            f"With confidence {100 * certificate.confidence:g}%, the fidelity error of every sum this short is at "
            f"most {epsilon:.3g} above its value on the sample{empty}."
        )
    if bound is not None and certificate.fidelity_error is not None and certificate.n_facts:
        limit, share = f"{certificate.fidelity_error.high:.3g}", _percent(certificate.event_probability or 0.0)
        empty = ": vacuous" if bound >= 1 else ""
        lines.append(
            f"The rule's condition is met in {share}% of neighbors, so a fidelity error of at most {limit} alone "
            f"keeps the relevance error below {bound:.3g}{empty}."
        )
    return lines or ["No theorem applies: the search had no box, or sought no bound."]


def _while(certificate: "Certificate") -> str:
    """The condition under which the measurement is true, in words."""
    if certificate.n_facts == 0:
        return "Over all neighbors,"
    if certificate.keeps_values:
        facts = "this value stays" if certificate.n_facts == 1 else f"these {certificate.n_facts} values stay"
    else:
        facts = "this fact holds" if certificate.n_facts == 1 else f"these {certificate.n_facts} facts hold"
    if not certificate.event_is_literal:
        return f"While {facts}, or contributions of broken ones cancel each other,"
    return f"While {facts},"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"
