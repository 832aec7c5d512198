"""The rule in one or two sentences: which facts speak for the answer, which against it, and how often it stays."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from anchorline.render.characters import printable
from anchorline.render.claims import amount, quoted, stays, value
from anchorline.render.neighbors import own_intervals
from anchorline.render.shares import possible, share_of, weighted
from anchorline.render.summands import added_together, predicted, quantity, summands
from anchorline.render.text import about_the_class
from anchorline.render.trust import joint_interval, without_worth
from anchorline.spaces.joining import held_together

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation, Term
    from anchorline.spaces.base import Literal

Format = Callable[[str, str], str]


def if_then(explanation: "Explanation") -> str:
    """Return the support as a rule: ``If a and b then vote stays 1 in 97.9% of neighbors, joint ...``.

    If facts count against the answer, they are named first: ``a speaks for vote = 1; b speaks against it. If both
    hold, then vote stays 1 ...``. For numbers, facts raise or lower the output.
    """
    return rule_sentence(explanation)


def rule_sentence(
    explanation: "Explanation",
    format_fact: Format = lambda text, name: text,
    format_name: Callable[[str], str] = printable,
) -> str:
    """Return the rule: what the facts speak for, and how often the output stays while they hold.

    ``format_fact`` is applied to a printable statement and the printable name in it, ``format_name`` to other
    names and labels; both come from data. All other text is safe as it is.
    """
    certificate, parts = explanation.certificate, about_the_class(explanation, format_name)
    if not explanation.terms:
        return " ".join([*parts, _without_facts(explanation, format_name)])
    held = _held(explanation)
    sides = _sides(explanation, format_fact, format_name)
    facts = _listed([format_fact(printable(text), printable(name)) for name, text in held])
    is_stated = sides and all(literal.held == literal.text for literal in _literals(explanation))
    condition = _all_hold(certificate.n_facts) if is_stated else facts
    parts += [sides] if sides else []
    if certificate.stability is None:
        claim = _claim(explanation, format_name)
        return " ".join([*parts, f"How often {claim} {'if' if sides else 'while'} {condition} was not measured."])
    otherwise = (
        ", or if the contributions of broken facts cancel," if certificate.event_is_literal is False else ""
    )
    comma = otherwise or ","
    return " ".join([*parts, f"If {condition}{comma} then {_consequence(explanation, format_name)}"])


def _without_facts(explanation: "Explanation", format_name: Callable[[str], str]) -> str:
    """Return the rule of a sum that holds no fact: what was measured over all neighbors."""
    share = explanation.certificate.free_share
    if share is None:
        return f"No fact is held, and how often {_claim(explanation, format_name)} was not measured."
    neighbors = f"{possible(share, explanation.certificate.reach)}{weighted(share)}"
    return f"Over all {neighbors}, {_consequence(explanation, format_name)}"


def _held(explanation: "Explanation") -> list[tuple[str, str]]:
    """Return statements that are together true exactly where no fact and no pair is broken, after their names.

    A conjunction holds where its two facts hold. A parity also holds where both are broken.
    """
    d, support = len(explanation.single_literals), explanation.support.tolist()
    singles, pairs = [j for j in support if j < d], [j for j in support if j >= d]
    if pairs and explanation.parameters["pairs"] == "and":
        singles = sorted({*singles, *(i for j in pairs for i in explanation.pairs[j - d])})
        pairs = []
    held = [
        (name, _plain(text, name, own_intervals(explanation)[name]))
        for name, text in held_together([explanation.literals[j] for j in singles])
    ]
    return [*held, *((explanation.literals[j].name, f"({explanation.literals[j].held})") for j in pairs)]


def _by_attribute(explanation: "Explanation") -> list[tuple[str, str, float]]:
    """Return name, statement and contribution of every fact, largest first.

    Facts about one attribute that point the same way are one, with what they add together; others are broken by
    lower and by higher values, whose effects are opposite. A pair is a fact of its own, in parentheses, so that
    its "and" does not join two facts.
    """
    singles = [term for term in explanation.terms if term.index < len(explanation.single_literals)]
    by_name: dict[str, list[Term]] = {}
    for term in singles:
        by_name.setdefault(term.literal.name, []).append(term)
    sums, facts = added_together(explanation), []
    for name, terms in by_name.items():
        sides = _by_side(explanation, terms)
        if len({effect > 0 for _, effect in sides}) > 1 or len(terms) == 1:
            facts += [(name, text, effect) for text, effect in sides]
            continue
        text = f"{name} (its {len(terms)} facts together: {sums[printable(name)]:+f})"
        facts.append((name, text, sum(term.contribution for term in terms)))
    pairs = [term for term in explanation.terms if term.index >= len(explanation.single_literals)]
    facts += [(term.literal.name, f"({term.literal.text})", term.contribution) for term in pairs]
    return sorted(facts, key=lambda fact: -abs(fact[2]))


def _by_side(explanation: "Explanation", terms: list["Term"]) -> list[tuple[str, float]]:
    """Return what lower and higher values of an attribute break, as facts and what these add.

    A value beyond a stated bound breaks the stated interval, too; one on the other side breaks the interval alone.
    """
    name = terms[0].literal.name
    interval = [term for term in terms if term.literal.text == own_intervals(explanation)[name]]
    bounds = [term for term in terms if term not in interval]
    others = [
        literal.text
        for literal in explanation.single_literals
        if literal.name == name and all(literal.text != term.literal.text for term in terms)
    ]
    if not (len(interval) == len(bounds) == len(others) == 1):
        return [(term.literal.text, term.contribution) for term in terms]
    whole, bound = interval[0].contribution, bounds[0]
    return [(bound.literal.text, whole + bound.contribution), (others[0], whole)]


def _sides(explanation: "Explanation", format_fact: Format, format_name: Callable[[str], str]) -> str:
    """Return which facts speak for and against the answer, or an empty text where all of them point one way.

    A fact speaks for a class or label if its contribution is positive, and for a decision by a threshold if its
    contribution points to the side of the threshold on which the output lies.
    """
    goal, sign = goal_of(explanation, format_name)
    pro: list[str] = []
    contra: list[str] = []
    for name, text, contribution in _by_attribute(explanation):
        fact = format_fact(printable(text), printable(name))
        (pro if sign * contribution > 0 else contra).append(fact)
    if goal is None:  # a number has no right side, and the output of another class than the predicted one neither
        return _raising(explanation, pro, contra, predicted(explanation, format_name))
    if not contra:
        return ""
    if not pro:
        return f"{_verb(contra, 'speak')} against {goal}."
    return f"{_verb(pro, 'speak')} for {goal}; {_verb(contra, 'speak')} against it."


def _raising(explanation: "Explanation", pro: list[str], contra: list[str], name: str) -> str:
    """Return which facts raise and lower the output; an empty text if all facts of a number point one way."""
    if pro and contra:
        return f"{_verb(pro, 'raise')} {name}; {_verb(contra, 'lower')} it."
    if explanation.certificate.decision != "class":
        return ""
    return f"{_verb(pro, 'raise')} {name}." if pro else f"{_verb(contra, 'lower')} {name}."


def goal_of(explanation: "Explanation", format_name: Callable[[str], str] = printable) -> tuple[str | None, int]:
    """Return the answer that facts speak for, and the sign of contributions that do; None if it is a number."""
    kind, output = explanation.certificate.decision, format_name(explanation.output)
    if kind == "own class":
        return quoted(explanation.output, format_name), 1
    if explanation.label is not None:
        return f"{output} = {value(str(explanation.label), format_name)}", 1
    threshold = explanation.parameters.get("threshold")
    if kind != "threshold" or threshold is None:
        return None, 1
    above = explanation.prediction >= threshold
    side = f"{'at or above' if above else 'below'} {amount(explanation.certificate, threshold, 4)}"
    return f"{format_name(quantity(explanation))} {side}", 1 if above else -1


def _verb(facts: Sequence[str], verb: str) -> str:
    """Return the facts as the subject of a verb: "a raises", "a and b raise", "a, b and c raise"."""
    return f"{_listed(facts)} {verb}{'s' if len(facts) == 1 else ''}"


def _listed(parts: Sequence[str]) -> str:
    """Return parts as a list: "a", "a and b", "a, b and c"."""
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _literals(explanation: "Explanation") -> list["Literal"]:
    return [explanation.literals[j] for j in explanation.support]


def _plain(text: str, name: str, interval: str) -> str:
    """Return what holds in fewer words; higher and lower values are those beyond the interval of the own one.

    >>> _plain("age keeps its value 41 or takes a higher one", "age", "37 <= age < 48")
    'age stays 41 or is at least 48'
    >>> _plain("age keeps its value 41 or takes a lower one >= 25", "age", "37 <= age < 48")
    'age stays 41 or is at least 25 and below 37'
    >>> _plain("age keeps its value 41 or takes another one < 60", "age", "37 <= age < 48")
    'age stays 41 or is another value below 60'
    """
    text = text.replace(f"{name} keeps its value ", f"{name} stays ", 1)
    low, _, high = interval.partition(f" <= {name} < ")
    others = {
        "a higher one": f"at least {high}" if high else "higher",
        "a lower one": f"below {low}" if high else "lower",
        "another one": "",
    }
    kept, found, tail = text.rpartition(" or takes ")
    which = next((start for start in others if tail.startswith(start)), None)
    if not found or which is None:
        return text
    limit = tail.removeprefix(which)  # such as " >= 25", " < 60" or " with 25 <= age < 60"
    sign, _, edge = limit.strip().partition(" ")
    bound = {">=": f"at least {edge}", "<": f"below {edge}"}.get(sign, "")
    if which == "another one":
        return f"{kept} or is another value{' of' * (sign == '>=')}{f' {bound}' if bound else limit}"
    return f"{kept} or is {' and '.join(sorted(filter(None, [others[which], bound])))}"


def _all_hold(n: int) -> str:
    """Return the condition in which all facts of the rule hold, in words."""
    return {1: "it holds", 2: "both hold"}.get(n, f"all {n} hold")


def _consequence(explanation: "Explanation", format_name: Callable[[str], str]) -> str:
    """Return the part of the rule after the facts: what stays, and how often."""
    certificate = explanation.certificate
    share, reach = certificate.held_share, certificate.held_reach
    if not certificate.n_facts:
        share, reach = certificate.free_share, certificate.reach
    assert share is not None  # it was measured
    claim, interval = _claim(explanation, format_name), f"{joint_interval(certificate)} "
    if certificate.n_facts and not certificate.held_reach:
        return f"{claim}, because nothing else can change."
    stays_in = f"{claim} in {share_of(share, reach, interval, bare=not certificate.n_facts)}"
    return f"{stays_in}{without_worth(certificate)}."


def _claim(explanation: "Explanation", format_name: Callable[[str], str]) -> str:
    """Return the statement of what stays: the output, the label, the class or the decision."""
    certificate, name = explanation.certificate, predicted(explanation, format_name)
    within, threshold = certificate.same_within, explanation.parameters.get("threshold")
    if certificate.decision in ("class", "own class"):
        return stays(certificate, format_name)
    if explanation.label is not None:
        return (
            f"the predicted {format_name(explanation.output)} stays {value(str(explanation.label), format_name)}"
        )
    if threshold is not None:
        side = "at or above" if explanation.prediction >= threshold else "below"
        return f"{name} stays {side} {amount(certificate, threshold, 4)}"
    number = amount(certificate, summands(explanation).total.number)
    return f"{name} stays within {amount(certificate, within)} of {number}" if within else f"{name} stays {number}"
