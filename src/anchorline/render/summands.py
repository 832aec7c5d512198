"""The numbers of a sum as every picture shows them: rounded so that they still add up, digit for digit."""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from anchorline.render.characters import printable

if TYPE_CHECKING:
    from anchorline.result.explanation import Explanation

INTERCEPT = "intercept"
_DIGITS, _TERM_DIGITS = 3, 2  # significant digits of the largest number in a sum, and of its largest term
_MAX_DIGITS = 12  # of the largest number: more are noise, and too wide for a column
_LARGE, _SMALL = 12, -6  # powers of ten from and below which numbers are written as 1.23e+12
_WHOLE = 1e-6  # of a unit: what is cut off by floating point


@dataclass(frozen=True, slots=True)
class Summand:
    """One line of a picture: its text, its value, the value as printed (no plus sign), and whose it is.

    ``name`` is the part of the text that may be shortened; the rest, the condition, may not.
    """

    text: str
    value: float
    number: str
    name: str = ""

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
    level, has_level = explanation.intercept, explanation.intercept != 0
    values = [term.contribution for term in explanation.terms] + [level] * has_level
    numbers, total = adding_up(values, explanation.prediction)
    terms = tuple(
        Summand(printable(term.literal.text), term.contribution, number, printable(term.literal.name))
        for term, number in zip(explanation.terms, numbers, strict=False)
    )
    return Summands(
        terms=terms,
        intercept=Summand(INTERCEPT, level, numbers[-1]) if has_level else None,
        total=Summand(head(explanation), explanation.prediction, total, printable(explanation.output)),
    )


def output_name(explanation: "Explanation") -> str:
    """The output as readers call it: ``P(benign)`` where it is the probability of a class, or its score."""
    name, parameters = printable(explanation.output), explanation.parameters
    if parameters.get("probability"):
        return f"P({name})"
    is_score = parameters.get("classes") is not None and parameters.get("task") != "number"
    return f"score of class {name}" if is_score else name


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

    ``numbers`` are the terms, largest first, then the intercept if there is one. The largest of all has three
    digits and the largest term two, however large the level it stands on. Equal numbers are printed equal
    where the sum permits it, if need be by one more decimal. Very large and very small ones share a power of ten.

    >>> adding_up([1 / 3, 1 / 3, 1 / 3], 1.0)
    (['0.34', '0.33', '0.33'], '1.00')
    >>> adding_up([0.157, -0.001, 2010.0], 2010.156)
    (['0.16', '-0.00', '2010.00'], '2010.16')
    >>> adding_up([3e17, -4e15], 2.96e17)
    (['3.00e+17', '-0.04e+17'], '2.96e+17')
    """
    if not numbers:  # the total is nothing but floating point
        return [], "0"
    power = _power(max(abs(number) for number in [*numbers, total]))
    shift = power if power >= _LARGE or power < _SMALL else 0
    most = _MAX_DIGITS - 1 - (power + len("e+300") if shift else max(power, 0))
    wanted = max(_DIGITS - 1 - power, _TERM_DIGITS - 1 - _power(numbers[0]), -shift)
    units, goal, places = _units(numbers, total, min(wanted, most), most)
    while places + shift > 0 and all(value % 10 == 0 for value in [*units, goal]):
        units, goal, places = [value // 10 for value in units], goal // 10, places - 1
    ending = f"e{shift:+03d}" if shift else ""
    printed = [
        _decimal(unit, places + shift, value < 0) + ending for unit, value in zip(units, numbers, strict=True)
    ]
    return printed, _decimal(goal, places + shift, goal < 0) + ending


def _power(number: float) -> int:
    """The power of ten of the first digit; of zero, 0."""
    return math.floor(math.log10(abs(number))) if number else 0


def _units(numbers: list[float], total: float, places: int, most: int) -> tuple[list[int], int, int]:
    """Numbers and total in units of the last printed place, that add up; and the place."""
    alike: dict[str, list[int]] = {}  # equal but for the last bits
    for i, number in enumerate(numbers):
        alike.setdefault(f"{number:.9g}", []).append(i)
    together, apart = list(alike.values()), [[i] for i in range(len(numbers))]
    for tried, groups in ((places, together), (min(places + 1, most), together), (places, apart)):
        goal = round(Fraction(total) * Fraction(10) ** tried)
        units = _rounded([Fraction(number) * Fraction(10) ** tried for number in numbers], goal, groups)
        if sum(units) == goal:
            return units, goal, tried
    return units, sum(units), places  # floating point at the edge of a unit


def _rounded(exact: list[Fraction], goal: int, groups: list[list[int]]) -> list[int]:
    """Each number rounded down or up, those of a group alike, to the sum ``goal`` if that can be.

    Of all ways to get there, the one of the smallest squared error: for every number of units to be added, the
    cheapest choice of groups that are rounded up is kept. What is whole already stays.
    """
    units = [round(number) if abs(number - round(number)) < _WHOLE else math.floor(number) for number in exact]
    cheapest: dict[int, tuple[float, list[int]]] = {0: (0.0, [])}
    for group in groups:
        cut = float(exact[group[0]] - units[group[0]])
        if cut < _WHOLE:
            continue
        for added, (cost, raised) in list(cheapest.items()):
            more, dearer = added + len(group), cost + len(group) * (1 - 2 * cut)
            if more not in cheapest or dearer < cheapest[more][0]:
                cheapest[more] = (dearer, raised + group)
    for i in cheapest.get(goal - sum(units), (0.0, []))[1]:
        units[i] += 1
    return units


def _decimal(units: int, decimals: int, negative: bool) -> str:
    whole, rest = divmod(abs(units), 10**decimals)
    return ("-" if negative else "") + (f"{whole}.{rest:0{decimals}d}" if decimals else str(whole))
