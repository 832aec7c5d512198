"""The numbers of a sum as every picture prints them: rounded so that they still add up, digit for digit."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from anchorline.render.characters import printable

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation

STARTING_LEVEL = "starting level"  # the word that readers see for the intercept
_DIGITS, _TERM_DIGITS = 3, 2  # significant digits of the largest number in a sum, and of its largest term
_MAX_DIGITS = 12  # of the largest number; further digits are noise and too wide for a column
_LARGE, _SMALL = 12, -6  # powers of ten from and below which numbers are written as 1.23e+12
_WHOLE = 1e-6  # of a unit; a smaller remainder is a floating-point error


@dataclass(frozen=True, slots=True)
class Summand:
    """One line of a picture: its text, its value, the printed value (without a plus sign) and its name.

    ``name`` is the part of the text that may be shortened; the rest of the text, the condition, may not.
    """

    text: str
    value: float
    number: str
    name: str = ""

    @property
    def signed(self) -> str:
        """The printed number with its sign, which shows whether it is added or subtracted."""
        return self.number if self.number.startswith("-") else f"+{self.number}"


@dataclass(frozen=True, slots=True)
class Summands:
    """The terms, largest first, the intercept (None if it is zero), and their total.

    The printed numbers of ``terms`` and ``intercept`` add up exactly to the printed number of ``total``.
    """

    terms: tuple[Summand, ...]
    intercept: Summand | None
    total: Summand

    @property
    def parts(self) -> tuple[Summand, ...]:
        """Everything that is added: the terms, then the intercept."""
        return self.terms if self.intercept is None else (*self.terms, self.intercept)


def summands(explanation: "Explanation") -> Summands:
    """Return the sum of an explanation, rounded for printing; all texts are printable.

    >>> import anchorline as al
    >>> e = al.explain(lambda z: z[:, 0] / 2 + z[:, 1] / 8, [1, -1], k=2, names=["paid", "late"], output="score")
    >>> [(part.text, part.signed) for part in summands(e).parts], summands(e).total.number
    ([('paid = +1', '+0.500'), ('late = -1', '-0.125')], '0.375')
    """
    intercept, has_intercept = explanation.intercept, explanation.intercept != 0
    values = [term.contribution for term in explanation.terms] + [intercept] * has_intercept
    numbers, total = round_preserving_sum(values, explanation.prediction)
    terms = tuple(
        Summand(printable(term.literal.text), term.contribution, number, printable(term.literal.name))
        for term, number in zip(explanation.terms, numbers, strict=False)
    )
    return Summands(
        terms=terms,
        intercept=Summand(STARTING_LEVEL, intercept, numbers[-1]) if has_intercept else None,
        total=Summand(total_name(explanation), explanation.prediction, total, printable(explanation.output)),
    )


def added_together(explanation: "Explanation") -> dict[str, Decimal]:
    """Return, by printable name of an attribute, what the facts about it add together, as printed."""
    sums: dict[str, Decimal] = {}
    for term in summands(explanation).terms:
        sums[term.name] = sums.get(term.name, Decimal(0)) + Decimal(term.number)
    return sums


def output_name(explanation: "Explanation") -> str:
    """Return the name of the output for readers, such as ``P(benign)`` if it is the probability of a class."""
    name, parameters = printable(explanation.output), explanation.parameters
    if parameters.get("probability"):
        return f"P({name})"
    if "output_scale" in parameters:
        return f"{parameters['output_scale']} of {name}"
    is_score = parameters.get("classes") is not None and parameters.get("task") != "number"
    return f"score of class {name}" if is_score else name


def quantity(explanation: "Explanation") -> str:
    """Return the name of the output without its unit, which sentences write after the numbers."""
    return output_name(explanation).removesuffix(f" [{explanation.certificate.unit}]")


def predicted(explanation: "Explanation", format_name: Callable[[str], str] = printable) -> str:
    """Return the output as a part of a sentence, so that it is not taken for the thing itself.

    Such names are ``the predicted price``, but ``P(benign)`` and ``f(x)`` as they are.
    """
    name = quantity(explanation)
    is_plain = name.endswith(")") or explanation.parameters.get("classes")
    return format_name(name) if is_plain else f"the predicted {format_name(name)}"


def total_name(explanation: "Explanation") -> str:
    """Return the name of the total: the output, or ``[output = label]`` where a label is explained."""
    if explanation.label is None or explanation.parameters.get("task") != "label":
        return output_name(explanation)
    return f"[{printable(explanation.output)} = {printable(str(explanation.label))}]"


def axis_name(explanation: "Explanation") -> str:
    """Return the quantity that the numbers of the sum measure: the output, or the meaning of +1 and -1."""
    if explanation.label is None or explanation.parameters.get("task") != "label":
        return output_name(explanation)
    label = printable(str(explanation.label))
    return f"{printable(explanation.output)} (+1: {label}, \N{MINUS SIGN}1: any other)"


def round_preserving_sum(numbers: list[float], total: float) -> tuple[list[str], str]:
    """Round the numbers and their total to the same number of decimals so that they still add up.

    ``numbers`` are the terms, largest first, then the intercept if there is one. The largest of all numbers is
    printed with at least three significant digits and the largest term with at least two, however large the
    intercept is. There are as many decimals as it takes to print no term as zero, unless the largest number would
    need more than twelve digits. Equal numbers are printed equal if the sum permits it, with one more decimal if
    necessary. Very large and very small numbers share a power of ten.

    >>> round_preserving_sum([1 / 3, 1 / 3, 1 / 3], 1.0)
    (['0.34', '0.33', '0.33'], '1.00')
    >>> round_preserving_sum([0.157, -0.001, 2010.0], 2010.156)
    (['0.157', '-0.001', '2010.000'], '2010.156')
    >>> round_preserving_sum([3e17, -4e15], 2.96e17)
    (['3.00e+17', '-0.04e+17'], '2.96e+17')
    """
    if not numbers:  # the total is zero up to floating-point error
        return [], "0"
    power = _power(max(abs(number) for number in [*numbers, total]))
    shift = power if power >= _LARGE or power < _SMALL else 0
    max_places = _MAX_DIGITS - 1 - (power + len("e+300") if shift else max(power, 0))
    smallest = min((abs(number) for number in numbers if number), default=1.0)
    places = max(_DIGITS - 1 - power, _TERM_DIGITS - 1 - _power(numbers[0]), -_power(smallest), -shift)
    units, goal, places = _in_units(numbers, total, min(places, max_places), max_places)
    while places + shift > 0 and all(value % 10 == 0 for value in [*units, goal]):
        units, goal, places = [value // 10 for value in units], goal // 10, places - 1
    exponent = f"e{shift:+03d}" if shift else ""
    printed = [
        _decimal(unit, places + shift, value < 0) + exponent for unit, value in zip(units, numbers, strict=True)
    ]
    return printed, _decimal(goal, places + shift, goal < 0) + exponent


def _power(number: float) -> int:
    """Return the power of ten of the first digit; that of zero is 0."""
    return math.floor(math.log10(abs(number))) if number else 0


def _in_units(numbers: list[float], total: float, places: int, max_places: int) -> tuple[list[int], int, int]:
    """Return numbers and total as integers that add up, in units of the last printed place; and that place."""
    equal: dict[str, list[int]] = {}  # positions of numbers that differ in their last bits at most
    for i, number in enumerate(numbers):
        equal.setdefault(f"{number:.9g}", []).append(i)
    together, apart = list(equal.values()), [[i] for i in range(len(numbers))]
    for attempt, groups in ((places, together), (min(places + 1, max_places), together), (places, apart)):
        goal = round(Fraction(total) * Fraction(10) ** attempt)
        units = _round_to_goal([Fraction(number) * Fraction(10) ** attempt for number in numbers], goal, groups)
        if sum(units) == goal:
            return units, goal, attempt
    return units, sum(units), places  # a floating-point error at the edge of a unit


def _round_to_goal(exact: list[Fraction], goal: int, groups: list[list[int]]) -> list[int]:
    """Round each number down or up, the numbers of a group alike, so that the sum is ``goal`` if possible.

    Among all choices with that sum, take one of the smallest squared error: for every number of units to add, keep
    the cheapest choice of groups to round up. Numbers that are whole already stay unchanged.
    """
    units = [round(number) if abs(number - round(number)) < _WHOLE else math.floor(number) for number in exact]
    cheapest: dict[int, tuple[float, list[int]]] = {0: (0.0, [])}
    for group in groups:
        remainder = float(exact[group[0]] - units[group[0]])
        if remainder < _WHOLE:
            continue
        for added, (cost, raised) in list(cheapest.items()):
            new_added, new_cost = added + len(group), cost + len(group) * (1 - 2 * remainder)
            if new_added not in cheapest or new_cost < cheapest[new_added][0]:
                cheapest[new_added] = (new_cost, raised + group)
    for i in cheapest.get(goal - sum(units), (0.0, []))[1]:
        units[i] += 1
    return units


def _decimal(units: int, decimals: int, negative: bool) -> str:
    whole, rest = divmod(abs(units), 10**decimals)
    return ("-" if negative else "") + (f"{whole}.{rest:0{decimals}d}" if decimals else str(whole))
