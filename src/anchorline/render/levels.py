"""What the numbers of a sum mean: the starting level, the means to compare it with, and what a neighbor is."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from anchorline.render.summands import STARTING_LEVEL, output_name, summands

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation


def legend(
    explanation: "Explanation", mark: str = "", format_name: Callable[[str], str] = lambda name: name
) -> str:
    """Return the sentences that define the numbers of an explanation, one per line.

    ``mark`` says how a picture marks the mean over the neighbors, such as " (dashed line)". ``format_name`` is
    applied to the printable name of the output, which comes from data; all other text is safe as it is.

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2 + 0.25, [1, -1], k=2, names=["paid", "late"], output="score")
    >>> print(legend(e).partition(". ")[0])
    The starting level 0.25 is what the sum gives if every contribution is taken away once
    """
    return "\n".join([*level_sentences(explanation, mark, format_name), neighbor_sentence(explanation)])


def level_sentences(
    explanation: "Explanation", mark: str = "", format_name: Callable[[str], str] = lambda name: name
) -> list[str]:
    """Return what the starting level is, where the sum ends if all facts are broken, and the means beside it."""
    intercept, n_facts = summands(explanation).intercept, len(explanation.terms)
    parts, means, mean = [], "", explanation.neighbors_mean
    if mean is not None:
        means = f"The mean of {format_name(output_name(explanation))} is {mean:.3g} over the neighbors{mark}."
    if intercept is not None and n_facts:
        level = f"The {STARTING_LEVEL} {intercept.number}"
        parts.append(f"{level} is what the sum gives if every contribution is taken away once.")
        means = f"The {STARTING_LEVEL} is not a mean. {means}" if means else ""
    elif intercept is not None:
        parts.append(f"The {STARTING_LEVEL} is the prediction itself, because the sum has no facts.")
    if n_facts:
        parts.append(f"A broken fact takes its contribution away twice{_all_broken(explanation)}.")
    return [line for line in (" ".join(parts), means) if line]


def far_end(explanation: "Explanation") -> float:
    r"""Return what the sum gives if every fact is broken, :math:`f(x) - 2 \sum_j u_j`."""
    return explanation.prediction - 2 * float(explanation.contributions.sum())


def _all_broken(explanation: "Explanation") -> str:
    """Return what the sum gives if all facts are broken, and whether that leaves the range of the output."""
    parameters = explanation.parameters
    # Several facts about one attribute may exclude each other, and so may pairs that share a fact.
    if "n_attributes" in parameters or (explanation.pairs and parameters["pairs"] == "parity"):
        return ""
    n_facts, end = len(explanation.terms), far_end(explanation)
    broken = "the fact" if n_facts == 1 else f"all {n_facts} facts"
    low, high = explanation.parameters["output_range"]
    slack = 1e-9 * (high - low)
    text = f"; with {broken} broken, the sum gives {end:.3g}"
    if low - slack <= end <= high + slack:
        return text
    return f"{text}, outside the output range {low:.4g} to {high:.4g}: so far from the case, the sum does not fit"


def neighbor_sentence(explanation: "Explanation") -> str:
    """Return what a neighbor is, in one sentence with its numbers."""
    parameters, n_literals = explanation.parameters, len(explanation.single_literals)
    n, share = parameters.get("n_attributes", n_literals), f"{100 * parameters['flip_probability']:.2g}%"
    each = "its value" if n == 1 else f"each of its {n:,} values"
    kind = str(parameters.get("space", "")).partition(":")[0]
    independently = "" if n == 1 else ", independently of each other"
    if kind == "hypercube":
        return f"A neighbor is this case with {each} reversed with probability {share}{independently}."
    if kind == "table":
        changed = f"{each} changed with probability {share}{independently}"
        return f"A neighbor is this case with {changed}; new values come from the training table."
    if kind == "text":
        noun = "word" if explanation.literals[0].text.startswith('"') else explanation.literals[0].name.split()[0]
        units = f"its {noun}" if n == 1 else f"each of its {n:,} different {noun}s"
        return f"A neighbor is this text with {units} taken out with probability {share}{independently}."
    if kind in ("image", "signal"):
        units = "its region" if n == 1 else f"each of its {n:,} regions"
        return f"A neighbor is this {kind} with {units} hidden with probability {share}{independently}."
    facts = "its fact" if n == 1 else f"each of its {n:,} facts"
    return f"A neighbor is this case with {facts} broken with probability {share}{independently}."


def case_values(explanation: "Explanation") -> dict[str, str]:
    """Return the row's own value per attribute that may change, as text."""
    values: dict[str, str] = {}
    for literal in explanation.single_literals:
        value, name = literal.text, literal.name
        for statement, prefix in ((literal.held, f"{name} keeps its value "), (literal.text, f"{name} = ")):
            if statement.startswith(prefix):
                value = statement.removeprefix(prefix).partition(" or takes ")[0]
        values.setdefault(name, "missing" if value == f"{name} is missing" else value)
    return values
