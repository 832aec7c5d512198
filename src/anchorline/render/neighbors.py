"""What was tested, in words: what a neighbor is, which values it keeps while the facts hold, and the case."""

from typing import TYPE_CHECKING

from anchorline.render.characters import printable
from anchorline.render.shares import at_least
from anchorline.render.trust import short_condition

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation

_LEAST_REACH = 0.05  # below, so few draws differ from the case that their mean is not known


def neighbor_sentence(explanation: "Explanation") -> str:
    """Return what a neighbor is, in one sentence with its numbers."""
    parameters, n_literals = explanation.parameters, len(explanation.single_literals)
    n, share = parameters.get("n_attributes", n_literals), f"{100 * parameters['flip_probability']:.2g}%"
    each = "its value" if n == 1 else f"each of its {n:,} values"
    kind = str(parameters.get("space", "")).partition(":")[0]
    if parameters.get("redraws"):
        apart = "" if n == 1 else ", independently of each other"
        return (
            f"A neighbor is this case with {each} moved to another interval or category with probability {share}"
            f"{apart}; all its values are drawn from the training table, also those that stay in their interval."
        )
    what, units, verb, source = "case", each, "changed", ""
    if kind == "table":
        source = "; new values come from the training table, from another interval or category"
        if parameters.get("may_stay"):
            source, verb = "; new values are those of any training row, and may be the same", "drawn anew"
        if parameters.get("flips_follow"):
            source = "; new values come together from one similar training row, and decide which facts are broken"
            verb = "replaced"
    elif kind == "text":
        noun = "word" if explanation.literals[0].text.startswith('"') else explanation.literals[0].name.split()[0]
        what, units, verb = (
            "text",
            f"its {noun}" if n == 1 else f"each of its {n:,} different {noun}s",
            "taken out",
        )
    elif kind in ("image", "signal"):
        what, units, verb = kind, "its region" if n == 1 else f"each of its {n:,} regions", "hidden"
    elif kind == "hypercube":
        verb = "reversed"
    else:
        units, verb = "its fact" if n == 1 else f"each of the {n:,} facts about it", "broken"
    apart = "" if n == 1 else f", independently of each other, and at least one {verb}"
    return f"A neighbor is this {what} with {units} {verb} with probability {share}{apart}{source}."


def values_sentence(explanation: "Explanation") -> str:
    """Return with which values the facts were tested, or an empty text if there is nothing to add."""
    certificate = explanation.certificate
    if certificate.stability is None or not explanation.terms or not certificate.held_reach:
        return ""
    untested, unchanged = _untested(explanation), _unchanged(explanation)
    if certificate.keeps_values or "n_attributes" not in explanation.parameters or unchanged > 0.999:
        return untested
    if explanation.parameters.get("redraws"):
        return ""
    facts = "the fact holds" if certificate.n_facts == 1 else "the facts hold"
    facts += " or cancel" if short_condition(certificate).endswith("cancel") else ""
    where = f"In at least {at_least(unchanged)}% of the neighbors in which {facts}"
    behind = "the value behind it is that" if certificate.n_facts == 1 else "the values behind them are those"
    return " ".join(filter(None, (f"{where}, {behind} of this case.", untested)))


def _untested(explanation: "Explanation") -> str:
    """Return which values no neighbor has although the facts allow them: others in the case's own intervals."""
    literals, own = explanation.single_literals, own_intervals(explanation)
    names = dict.fromkeys(literals[j].name for j in held_literals(explanation))
    stay = {literal.text for literal in literals if literal.held == literal.text}  # such as "city = Rome"
    texts = [own[name] for name in names if own[name] not in stay]
    parameters = explanation.parameters
    if parameters.get("redraws") or parameters.get("may_stay") or not texts:  # others in the interval are drawn
        return ""
    listed = texts[0] if len(texts) == 1 else f"{', '.join(texts[:-1])} or {texts[-1]}"
    return f"Other values with {printable(listed)} were not tested."


def own_intervals(explanation: "Explanation") -> dict[str, str]:
    """Return, by attribute, what is true of its value alone: the interval, which comes before its bounds."""
    return {literal.name: literal.text for literal in reversed(explanation.single_literals)}


def held_literals(explanation: "Explanation") -> list[int]:
    """Return the literals that hold while the facts and pairs of the sum hold, in the order of the space."""
    n, support = len(explanation.single_literals), explanation.support.tolist()
    in_pairs = {i for j in support if j >= n for i in explanation.pairs[j - n]}
    return sorted({j for j in support if j < n} | in_pairs)


def _unchanged(explanation: "Explanation") -> float:
    r"""Return how many of the neighbors in the event keep all values that the facts are about.

    .. math:: \frac{(1 - p)^s - (1 - p)^d}{\Pr[A] - (1 - p)^d}

    Here s of the d attributes have a fact; each keeps its value with probability 1 - p.
    """
    certificate, keep = explanation.certificate, 1 - explanation.parameters["flip_probability"]
    n_held = len({explanation.literals[j].name for j in held_literals(explanation)})
    inside = (certificate.event_probability or 1.0) * certificate.held_reach
    return float(min(1.0, (keep**n_held - (1 - certificate.reach)) / inside))


def mean_over_neighbors(explanation: "Explanation") -> float | None:
    """Return the mean output over the neighbors of the search; its draws that equal the case do not count."""
    mean, reach = explanation.neighbors_mean, explanation.certificate.reach
    if mean is None or reach < _LEAST_REACH:
        return None
    low, high = explanation.parameters["output_range"]
    return float(min(max(mean - (explanation.prediction - mean) * (1 - reach) / reach, low), high))


def case_values(explanation: "Explanation") -> dict[str, str]:
    """Return the row's own value per attribute that may change, as text."""
    values: dict[str, str] = {}
    for literal in explanation.single_literals:
        value, name = literal.text, literal.name
        for statement, prefix in ((literal.held, f"{name} keeps its value "), (literal.text, f"{name} = ")):
            if statement.startswith(prefix):
                value = statement.removeprefix(prefix).partition(" or takes ")[0]
        words = {f"{name} is missing": "missing", name: "yes"}
        values.setdefault(name, words.get(value, value))
    return values | {name: value for name, value in explanation.values.items() if name in values}
