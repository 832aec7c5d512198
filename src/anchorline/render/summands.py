"""The numbers of a sum as every picture shows them: rounded so that they still add up, digit for digit."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from anchorline.render.characters import printable

if TYPE_CHECKING:
    from anchorline.explanation import Explanation

INTERCEPT = "intercept"
_DIGITS = 3  # significant digits of the largest number in a sum


@dataclass(frozen=True, slots=True)
class Summand:
    """One line of a picture: its text, its value, and the value as printed (no plus sign)."""

    text: str
    value: float
    number: str

    @property
    def signed(self) -> str:
        """The printed number with its sign: something is added or taken away."""
        return self.number if self.number.startswith("-") else f"+{self.number}"


@dataclass(frozen=True, slots=True)
class Summands:
    """The terms, largest first, the intercept (None if there is none), and what they add up to.

    The printed numbers of ``terms`` and ``intercept`` add up exactly to that of ``total``.
    """

    terms: tuple[Summand, ...]
    intercept: Summand | None
    total: Summand

    @property
    def parts(self) -> tuple[Summand, ...]:
        """Everything that is added: the terms, then the intercept."""
        return self.terms if self.intercept is None else (*self.terms, self.intercept)


def summands(explanation: "Explanation") -> Summands:
    """The sum of an explanation, rounded for printing; texts are printable.

    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2 + z[:, 1] / 8, [1, -1], k=2, names=["paid", "late"], output="score")
    >>> [(part.text, part.signed) for part in summands(e).parts], summands(e).total.number
    ([('paid = +1', '+0.500'), ('late = -1', '-0.125')], '0.375')
    """
    texts = [printable(term.literal.text) for term in explanation.terms]
    values = [term.contribution for term in explanation.terms]
    if explanation.intercept != 0:
        texts, values = [*texts, INTERCEPT], [*values, explanation.intercept]
    numbers, total = adding_up(values, explanation.prediction)
    parts = [Summand(*part) for part in zip(texts, values, numbers, strict=True)]
    n_terms = len(explanation.terms)
    return Summands(
        terms=tuple(parts[:n_terms]),
        intercept=parts[n_terms] if len(parts) > n_terms else None,
        total=Summand(head(explanation), explanation.prediction, total),
    )


def output_name(explanation: "Explanation") -> str:
    """The output as readers call it: ``P(benign)`` where it is the probability of a class."""
    name = printable(explanation.output)
    return f"P({name})" if explanation.parameters.get("probability") else name


def head(explanation: "Explanation") -> str:
    """What the sum adds up to: the output, or 1 for "the label is this one"."""
    if explanation.label is None or explanation.parameters.get("task") != "label":
        return output_name(explanation)
    return f"[{printable(explanation.output)} = {printable(str(explanation.label))}]"


def axis_name(explanation: "Explanation") -> str:
    """What the numbers of the sum are measured in: the output, or what +1 and -1 stand for."""
    if explanation.label is None or explanation.parameters.get("task") != "label":
        return output_name(explanation)
    label = printable(str(explanation.label))
    return f"{printable(explanation.output)} (+1: {label}, \N{MINUS SIGN}1: any other)"


def adding_up(numbers: list[float], total: float) -> tuple[list[str], str]:
    """Round numbers and total to the same decimals so that the rounded ones still add up.

    Every number is rounded down, and the units missing go where most was cut off.

    >>> adding_up([1 / 3, 1 / 3, 1 / 3], 1.0)
    (['0.34', '0.33', '0.33'], '1.00')
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
