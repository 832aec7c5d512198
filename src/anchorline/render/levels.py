"""What the numbers of a sum mean: the starting level, and the means to compare it with."""

from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from anchorline.render.claims import amount, brief, value
from anchorline.render.neighbors import mean_over_neighbors, neighbor_sentence, own_intervals
from anchorline.render.summands import STARTING_LEVEL, added_together, predicted, summands

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation

VERDICT_SENTENCE = "The verdict does not say whether the answer is right."


def legend(
    explanation: "Explanation",
    mark: str = "",
    format_name: Callable[[str], str] = lambda name: name,
    training: tuple[float, str] | None = None,
) -> str:
    """Return the sentences that define the numbers of an explanation, one per line.

    ``mark`` says how a picture marks the mean over the neighbors, such as " (dashed line)". ``format_name`` is
    applied to the printable name of the output, which comes from data; all other text is safe as it is.
    ``training`` is the mean over the training table, if it is known, and its mark.

    Examples
    --------
    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2 + 0.25, [1, -1], k=2, names=["paid", "late"], output="score")
    >>> print(legend(e).partition(". ")[0])
    The starting level 0.25 is what the sum gives if the contribution is taken away once
    """
    return "\n".join(
        [
            *level_sentences(explanation, mark, format_name, training),
            *same_sentences(explanation, format_name),
            neighbor_sentence(explanation),
            VERDICT_SENTENCE,
        ]
    )


def same_sentences(explanation: "Explanation", format_name: Callable[[str], str] = lambda name: name) -> list[str]:
    """Return what the decision is, or within which distance a number counts as unchanged; nothing for classes."""
    within, limit = explanation.certificate.same_within, explanation.parameters.get("threshold")
    if explanation.certificate.decision == "threshold" and limit is not None:
        least = amount(explanation.certificate, limit, 4)
        return [f"The decision is whether {predicted(explanation, format_name)} is at least {least}."]
    if within is None:
        return []
    low, high = explanation.parameters["output_range"]
    why = f"a tenth of the output range {brief(low, 4)} to {amount(explanation.certificate, high, 4)}"
    if explanation.certificate.learned_range:
        why = "a tenth of the range that holds the middle 90% of outputs on the training table"
    why = "as the maker of the explanation requested" if explanation.parameters.get("same_is_given") else why
    return [
        f"An output counts as unchanged if it moves by at most {amount(explanation.certificate, within)}, {why}."
    ]


def level_sentences(
    explanation: "Explanation",
    mark: str = "",
    format_name: Callable[[str], str] = lambda name: name,
    training: tuple[float, str] | None = None,
) -> list[str]:
    """Return what the starting level is, where the sum ends if all facts are broken, and the means beside it."""
    intercept, n_facts = summands(explanation).intercept, len(explanation.terms)
    parts, means, mean = [], "", mean_over_neighbors(explanation)
    if mean is not None:
        table = ""
        if training is not None:
            table = f", and {amount(explanation.certificate, training[0], 3)} over the training table{training[1]}"
        what = f"The mean of {predicted(explanation, format_name)}"
        what = "On this scale, the mean" if is_label(explanation) else what
        clipped = ", with outputs clipped" if explanation.certificate.n_clipped else ""
        means = f"{what} is {amount(explanation.certificate, mean, 3)} over the neighbors{mark}{clipped}{table}."
    if intercept is not None and n_facts:
        level = f"The {STARTING_LEVEL} {amount(explanation.certificate, intercept.number)}"
        every = "the" if n_facts == 1 else "every"
        parts.append(f"{level} is what the sum gives if {every} contribution is taken away once.")
        means = f"The {STARTING_LEVEL} is not a mean. {means}" if means else ""
    elif intercept is not None:
        parts.append(f"The {STARTING_LEVEL} is the prediction itself, because the sum has no facts.")
    if n_facts:
        parts.append(f"In the sum, a broken fact takes its contribution away twice{_all_broken(explanation)}.")
        parts.append("The sum is exact for this case and approximate elsewhere.")
    parts += _together(explanation, format_name)
    if is_label(explanation):
        label = value(str(explanation.label), format_name)
        parts.append(f"In the sum, 1 stands for the label {label}, and -1 for any other.")
    return [line for line in (" ".join(parts), means) if line]


def _together(explanation: "Explanation", format_name: Callable[[str], str]) -> list[str]:
    """Return what several facts about one attribute add together, in one sentence per attribute."""
    counts, certificate = Counter(term.name for term in summands(explanation).terms), explanation.certificate
    return [
        f"The {counts[name]} facts about {format_name(name)} add {amount(certificate, f'{total:f}')} together."
        for name, total in added_together(explanation).items()
        if counts[name] > 1
    ]


def is_label(explanation: "Explanation") -> bool:
    """Return whether the sum stands for a label, so that its numbers are not those of the model."""
    return explanation.label is not None and explanation.parameters.get("task") == "label"


def far_end(explanation: "Explanation") -> float:
    r"""Return what the sum gives if every fact is broken, :math:`f(x) - 2 \sum_j u_j`."""
    return explanation.prediction - 2 * float(explanation.contributions.sum())


def _all_broken(explanation: "Explanation") -> str:
    """Return what the sum gives if all facts are broken, and whether the sum can leave the range of the output."""
    terms, parameters = summands(explanation).terms, explanation.parameters
    if explanation.pairs:  # pairs that share a fact may exclude each other
        return ""
    broken = {1: "the fact", 2: "both facts"}.get(len(terms), f"all {len(terms)} facts")
    low, high = parameters["output_range"]
    learned = (
        "range of outputs on the training table," if explanation.certificate.learned_range else "output range"
    )
    slack = 1e-9 * (high - low)
    known = f"the {learned} {brief(low, 4)} to {amount(explanation.certificate, high, 4)}"

    def leaves(end: float) -> bool:
        return not low - slack <= end <= high + slack

    text, end, shown = "", far_end(explanation), _far_end_as_printed(explanation)
    if len({term.name for term in terms}) == len(terms):  # facts about one attribute may exclude each other
        text = f"; with {broken} broken, the sum gives about {amount(explanation.certificate, f'{shown:f}')}"
        if leaves(end) and leaves(float(shown)):
            return f"{text}, outside {known}: so far from the case, the sum does not fit"
    if any(leaves(explanation.prediction - 2 * taken) for taken in _most_taken(explanation)):
        return f"{text}{', and' if text else ';'} with some facts broken, the sum leaves {known}"
    return text


def _most_taken(explanation: "Explanation") -> tuple[float, float]:
    """Return the largest and the smallest sum of contributions of facts that can be broken together.

    Of the two bounds of one attribute, one is broken at a time, and its interval with either of them. Of several
    bounds on one side, it is not known here which are broken together; then nothing is claimed.
    """
    by_attribute: dict[str, list[tuple[str, float]]] = {}
    for term in explanation.terms:
        by_attribute.setdefault(term.literal.name, []).append((term.literal.text, term.contribution))
    own, largest, smallest = own_intervals(explanation), 0.0, 0.0
    for name, facts in by_attribute.items():
        interval = sum(amount for text, amount in facts if text == own[name])
        bounds = [(text.startswith(f"{name} >= "), amount) for text, amount in facts if text != own[name]]
        below = [amount for is_lower, amount in bounds if is_lower]
        above = [amount for is_lower, amount in bounds if not is_lower]
        if max(len(below), len(above)) > 1:
            return 0.0, 0.0
        sums = [interval + sum(below), interval + sum(above)]
        largest, smallest = largest + max(0.0, *sums), smallest + min(0.0, *sums)
    return largest, smallest


def _far_end_as_printed(explanation: "Explanation") -> Decimal:
    """Return what a reader computes for the far end from the printed numbers."""
    printed = summands(explanation)
    level = Decimal(0) if printed.intercept is None else Decimal(printed.intercept.number)
    return level - sum((Decimal(term.number) for term in printed.terms), Decimal(0))
