"""Plain text: the rule in one line, and the certificate in a few."""

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from anchorline.guarantees import is_vacuous
from anchorline.optimize.solution import Status

if TYPE_CHECKING:
    from anchorline.explanation import Certificate, Explanation

_GOALS = {
    "fidelity": "Proven best {size} on {sample}.",
    "relevance": "Proven most relevant rule within the terms allowed, on {sample}.",
    "shortest": "Proven shortest rule on {sample}: no fewer than {facts} facts do.",
}
_DIGITS = 3  # significant digits of the largest number in a rule


def rule(explanation: "Explanation") -> str:
    """One line like ``0.11 [Credit History < 10 yrs] - 0.03 [DTI <= 30%] -> Rate = 0.08``.

    The printed numbers add up exactly, digit for digit, to the printed prediction.
    """
    numbers = [term.contribution for term in explanation.terms]
    names = [f" [{printable(term.literal.text)}]" for term in explanation.terms]
    if explanation.intercept != 0:
        numbers, names = [*numbers, explanation.intercept], [*names, ""]
    texts, total = _adding_up(numbers, explanation.prediction)
    parts = [f"{text}{name}" for text, name in zip(texts, names, strict=True)]
    body = parts[0] if parts else "0"
    for part in parts[1:]:
        body += f" - {part[1:]}" if part.startswith("-") else f" + {part}"
    return f"{body} -> {_head(explanation)} = {total}"


def _head(explanation: "Explanation") -> str:
    """What the sum adds up to: the output, or 1 for "the label is this one"."""
    if explanation.label is None or explanation.parameters.get("task") != "label":
        return printable(explanation.output)
    return f"[{printable(explanation.output)} = {printable(str(explanation.label))}]"


def if_then(explanation: "Explanation") -> str:
    """The support as a rule: ``If a and b then vote stays 1 (in 97.9% of cases, 95% interval ...)``."""
    facts = " and ".join(printable(explanation.literals[j].text) for j in explanation.support) or "anything goes"
    certificate = explanation.certificate
    value = f"{explanation.prediction:.4g}" if explanation.label is None else printable(str(explanation.label))
    broken = "" if certificate.event_is_literal is not False else ", or contributions of broken ones cancel,"
    head = f"If {facts}{broken} then {printable(explanation.output)} stays {value}"
    stability, change = certificate.stability, certificate.typical_change
    confidence = f"{100 * certificate.confidence:g}% interval"
    if stability is not None:
        if stability.exact and stability.value == 1:
            return f"{head}."
        ends = "" if stability.exact else f", {confidence} {_percent(stability.low)} to {_percent(stability.high)}"
        return f"{head} in {_percent(stability.value)}% of cases{ends}."
    if change is None or change.high == 0:
        return f"{head}."
    ends = "" if change.exact else f", {confidence} {change.low:.3g} to {change.high:.3g}"
    return f"{head}, typically within {change.value:.3g}{ends}."


def explanation_text(explanation: "Explanation") -> str:
    """The rule, then the certificate."""
    return f"{rule(explanation)}\n{explanation.certificate}"


def certificate_text(certificate: "Certificate") -> str:
    """Few lines a person understands: on the sample, in the population, the verdict; then what to know."""
    lines = [_on_the_sample(certificate), _in_the_population(certificate)]
    lines.append(f"Verdict: {certificate.verdict.name.lower()}.")
    if certificate.n_clipped:
        clipped = (
            f"{certificate.n_clipped:,} of {certificate.n_queries:,} outputs were beyond output_range and clipped"
        )
        many = certificate.n_clipped > 0.01 * certificate.n_queries
        lines.insert(
            0 if many else 3, f"{clipped}{': pass a wider output_range=(lowest, highest)' if many else ''}."
        )
    if certificate.stopped_because:
        lines.append(f"Sampling stopped: {certificate.stopped_because}.")
    return "\n".join(lines)


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
        vacuous = " (vacuous)" if is_vacuous(epsilon) else ""
        lines.append(f"By theorem, fidelity is within {epsilon:.3g}{vacuous} of the sample's for every such sum.")
    lines.append(f"{certificate.n_queries:,} model queries.")
    return "\n".join(lines)


def _on_the_sample(certificate: "Certificate") -> str:
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


def _in_the_population(certificate: "Certificate") -> str:
    """How often, or how far, the output moves while the facts hold; and without them."""
    change, baseline_change = certificate.typical_change, certificate.baseline_change
    stability, baseline = certificate.stability, certificate.baseline_stability
    if change is None or baseline_change is None:
        return "How far it can be trusted was not measured."
    if stability is not None and baseline is not None:
        told = f"the decision stays the same in {_percent(stability.value)}% of cases"
        ends = "" if stability.exact else f"{_percent(stability.low)} to {_percent(stability.high)}"
        without = f"in {_percent(baseline.value)}%"
    else:
        told = f"the output typically changes by {change.value:.3g}" if change.high > 0 else "the output stays"
        ends = "" if change.exact else f"{change.low:.3g} to {change.high:.3g}"
        without = (
            f"by {baseline_change.value:.3g}" if change.high > 0 else f"it moves by {baseline_change.value:.3g}"
        )
    interval = f" ({100 * certificate.confidence:g}% interval {ends})" if ends else ""
    against = f"; without {_them(certificate)} {without}" if certificate.n_facts else ""
    return f"{_while(certificate)} {told}{interval}{against}."


def _while(certificate: "Certificate") -> str:
    """The condition under which the measurement is true, in words."""
    if certificate.n_facts == 0:
        return "Over all neighbors,"
    facts = "this fact holds" if certificate.n_facts == 1 else f"these {certificate.n_facts} facts hold"
    if not certificate.event_is_literal:
        return f"While {facts}, or contributions of broken ones cancel each other,"
    return f"While {facts},"


def _them(certificate: "Certificate") -> str:
    return "it" if certificate.n_facts == 1 else "them"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}"


def _adding_up(numbers: list[float], total: float) -> tuple[list[str], str]:
    """Round numbers and total to the same decimals so that the rounded ones still add up.

    Every number is rounded down, and the units missing go where most was cut off.
    """
    largest = max((abs(number) for number in [*numbers, total]), default=0.0)
    decimals = max(0, _DIGITS - 1 - math.floor(math.log10(largest))) if largest > 0 else 0
    exact = [Fraction(number) * 10**decimals for number in numbers]
    units = [math.floor(number) for number in exact]
    goal = round(Fraction(total) * 10**decimals)
    by_cut = sorted(range(len(numbers)), key=lambda i: units[i] - exact[i])
    for i in by_cut[: max(0, goal - sum(units))]:
        units[i] += 1
    if sum(units) != goal:  # no numbers at all, or floating point at the edge of a unit
        goal = sum(units)
    while decimals and all(value % 10 == 0 for value in [*units, goal]):
        units, goal, decimals = [value // 10 for value in units], goal // 10, decimals - 1
    return [_decimal(value, decimals) for value in units], _decimal(goal, decimals)


def _decimal(units: int, decimals: int) -> str:
    whole, rest = divmod(abs(units), 10**decimals)
    return ("-" if units < 0 else "") + (f"{whole}.{rest:0{decimals}d}" if decimals else str(whole))


def printable(text: str) -> str:
    """Control codes as visible escapes: text from data never drives the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
