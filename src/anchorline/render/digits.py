"""Numbers as a person would write them: sums whose printed parts still add up, shares, bounds and dates."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

_LARGE, _SMALL = 12, -6  # powers of ten from and below which numbers share an exponent
_NEGLIGIBLE = 1e-7  # of a total: smaller parts have no digits of their own
_LARGE_PART = 0.05  # of a probability, whose two decimals say enough
_MORE = 2  # decimals that small parts may add to those of the largest
_SIDES = 4  # decimals at most that show on which side of a threshold a total lies
_ROUNDING = 1e-9  # of a percent
_NUMBER = re.compile(r"-?[\d,]+(\.\d+)?")
_YEAR = re.compile(r"(^|[^a-z])(year|yr)s?([^a-z]|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PrintedSum:
    """The numbers of a sum as texts with one number of decimals; contributions have their signs."""

    base: str
    contributions: tuple[str, ...]
    total: str
    decimals: int
    step: int = 1  # 1,000 if contributions are rounded to thousands
    shift: int = 0  # the power of ten that all numbers share

    def number(self, value: float) -> str:
        """Return another number with the digits of the contributions."""
        return _written(_units(value, self.decimals, self.shift, self.step), self.decimals, self.shift)


def printed_sum(
    contributions: Sequence[float],
    base: float,
    total: float,
    *,
    is_probability: bool = False,
    line: float | None = None,
) -> PrintedSum:
    """Round a sum for readers: one number of decimals, and the printed numbers add up digit for digit.

    The largest contribution has two or three digits; if it is a probability of at least 0.05, two decimals. Parts
    that would be printed as zero, and probabilities that would be printed as 0 or 1, add up to two decimals. A
    total beside a threshold (``line``) has the decimals that show on which side it lies, unless more than four
    would be needed. Every number is rounded to the nearest unit; the units that are then missing go to the numbers
    that rounding changed most, or to the base, which is not rounded more than the total.

    >>> printed_sum([0.182, 0.157, -0.031], 0.614, 0.922, is_probability=True).contributions
    ('+0.18', '+0.16', '-0.03')
    >>> printed_sum([125067.3, -52424.1], 1258156.8, 1330800.0)
    PrintedSum(base='1,257,800', contributions=('+125,000', '-52,000'), total='1,330,800', decimals=0, step=1000, \
shift=0)
    """
    values = [*contributions, base]
    power = max(map(_power, (*values, total)))
    shift = power if power >= _LARGE or power < _SMALL else 0
    shifted = [float(Fraction(value) * Fraction(10) ** -shift) for value in (*contributions, total)]
    wanted = _decimals(shifted, is_probability and not shift)
    decimals = max(0, wanted)
    if line is not None and total != line:
        sided = (each for each in range(decimals, _SIDES + 1) if not _is_across(total, line, each, shift))
        decimals = next(sided, decimals)
    step = 1 if decimals else 10 ** -min(0, wanted)
    goal, units = _units(total, decimals, shift), [_units(value, decimals, shift, step) for value in values]
    if step > 1:
        units[-1] = goal - sum(units[:-1])
    else:
        units = _adding_up(units, [Fraction(value) * Fraction(10) ** (decimals - shift) for value in values], goal)
    if not is_probability and all(unit % 10**decimals == 0 for unit in (*units, goal)):
        units, goal, decimals = [unit // 10**decimals for unit in units], goal // 10**decimals, 0
    signs = [
        "-" if unit < 0 or (unit == 0 and value < 0) else "+" for unit, value in zip(units, values, strict=True)
    ]
    return PrintedSum(
        base=_written(units[-1], decimals, shift),
        contributions=tuple(
            sign + _written(abs(unit), decimals, shift) for sign, unit in zip(signs, units[:-1], strict=False)
        ),
        total=_written(goal, decimals, shift),
        decimals=decimals,
        step=step,
        shift=shift,
    )


def _adding_up(units: Sequence[int], exact: Sequence[Fraction], goal: int) -> list[int]:
    """Return units that add up to the goal: those that rounding changed most the other way are changed."""
    units = list(units)
    missing = goal - sum(units)
    sign = 1 if missing > 0 else -1
    order = sorted(range(len(units)), key=lambda i: sign * (units[i] - exact[i]))
    for place in range(abs(missing)):
        units[order[place % len(order)]] += sign
    return units


def _decimals(values: Sequence[float], is_probability: bool) -> int:
    """Return the number of decimals of contributions, negative for thousands; the last value is the total."""
    *parts, total = values
    largest = max(map(abs, parts), default=0.0)
    if largest <= _NEGLIGIBLE * abs(total):  # a number alone has three digits, a probability two decimals
        largest = 0.1 if is_probability else abs(total) / 10
        parts = []
    power = _power(largest or 1.0)
    if is_probability:
        decimals = 2 if largest >= _LARGE_PART else max(2, 1 - power)
    else:
        decimals = max(1 - power, min(0, 2 - power)) if parts else max(0, 1 - power)
    needed = max([decimals, *(-_power(value) for value in (*parts, total) if abs(value) > 1e-6 * largest)])
    decimals = min(needed, decimals + _MORE)
    while is_probability and 0 < total < 1 and round(total, decimals) in (0, 1) and decimals < 4:
        decimals += 1
    return decimals


def _is_across(total: float, line: float, decimals: int, shift: int) -> bool:
    """Return whether a total, rounded, would lie on a threshold or on its other side."""
    units, exact = _units(total, decimals, shift), Fraction(line) * Fraction(10) ** (decimals - shift)
    return units <= exact if total > line else units >= exact


def _power(value: float) -> int:
    return math.floor(math.log10(abs(value))) if value else 0


def _units(value: float, decimals: int, shift: int, step: int = 1) -> int:
    return step * round(Fraction(value) * Fraction(10) ** (decimals - shift) / step)


def _written(units: int, decimals: int, shift: int = 0) -> str:
    whole, rest = divmod(abs(units), 10**decimals)
    text = f"{whole:,}.{rest:0{decimals}d}" if decimals else f"{whole:,}"
    return ("-" if units < 0 else "") + text + (f"e{shift:+03d}" if shift else "")


def amount(value: float, digits: int = 2) -> str:
    """Return a measured amount with few digits.

    >>> [amount(value) for value in (312.4, 8.34, 0.0312, -0.0, 1234.5, 2e-9)]
    ['310', '8.3', '0.031', '0', '1,200', '2e-09']
    """
    rounded = float(f"{value:.{digits - 1}e}") + 0.0  # -0.0 is 0
    if rounded and not _SMALL <= _power(rounded) < _LARGE:
        return f"{rounded:.{digits - 1}g}"
    return f"{rounded:,.{max(0, digits - 1 - _power(rounded)) if rounded else 0}f}"


def amounts(values: Sequence[float], digits: int = 2) -> tuple[str, ...]:
    """Return measured amounts of one kind with one number of decimals: the largest has few digits.

    Small ones that would be printed as zero add up to two decimals.

    >>> amounts((1.2, 0.003)), amounts((1.2, 1e-5))
    (('1.200', '0.003'), ('1.200', '0.000'))
    >>> amounts((-0.00375, -0.00692, -0.000576), 3), amounts((12345.0, 11876.0), 3), amounts((0.0, 2e-9))
    (('-0.00375', '-0.00692', '-0.00058'), ('12,300', '11,900'), ('0', '2e-09'))
    """
    power = max(_power(float(f"{value:.{digits - 1}e}")) for value in values if value) if any(values) else 0
    if not _SMALL <= power < _LARGE:
        return tuple(amount(value, digits) for value in values)
    decimals = least = digits - 1 - power
    while decimals < least + _MORE and any(value and not round(value, decimals) for value in values):
        decimals += 1
    return tuple(f"{round(value, decimals) + 0.0:,.{max(0, decimals)}f}" for value in values)  # -0.0 is 0


def same_decimals(texts: Sequence[str]) -> list[str]:
    """Return printed numbers with the most decimals that one of them has; anything else stays as it is.

    >>> same_decimals(["0.95", "0.9"]), same_decimals(["6,480", "9,000.5"]), same_decimals(["car", "0.9"])
    (['0.95', '0.90'], ['6,480.0', '9,000.5'], ['car', '0.9'])
    """
    if not all(map(_NUMBER.fullmatch, texts)):
        return list(texts)
    most = max(len(text.partition(".")[2]) for text in texts)
    parts = [text.partition(".") for text in texts]
    return [f"{whole}.{rest.ljust(most, '0')}" if most else whole for whole, _, rest in parts]


def told_apart(one: float, other: float) -> tuple[str, str]:
    """Return two numbers with as many digits, three at least, as show that they differ.

    >>> told_apart(0.7476828686084582, 0.7301), told_apart(0.5, 0.5000001), told_apart(0.5, 0.5)
    (('0.748', '0.730'), ('0.5000000', '0.5000001'), ('0.5', '0.5'))
    """
    for digits in range(3, 17):
        texts = amounts((one, other), digits)
        if len({*texts}) > 1:
            return texts[0], texts[1]
    return repr(one), repr(other)


def exact_number(value: float, column: str = "") -> str:
    """Return all digits of a number, with thousands separators; a column of years has none.

    >>> exact_number(39000.0), exact_number(0.14), exact_number(2005, "year built"), exact_number(-1250.5)
    ('39,000', '0.14', '2005', '-1,250.5')
    """
    if value and not _SMALL <= _power(value) < 16:
        return f"{value:g}"
    exact = Decimal(repr(float(value)) if isinstance(value, float) else value)
    text = f"{exact.to_integral() if exact == exact.to_integral() else exact:,f}"
    return text.replace(",", "") if len(text) == 5 and _YEAR.search(column.replace("_", " ")) else text


def own_number(value: float, low: float | None, high: float | None, column: str = "") -> str:
    """Return an instance's own number beside its bounds: with their decimals, and with no digits that say nothing.

    As printed, it still meets the bounds.

    >>> own_number(1.2, 1.05, None), own_number(0.139999, None, 0.14), own_number(17.123456789, 15.0, None)
    ('1.20', '0.139999', '17.12')
    """
    bounds = [bound for bound in (low, high) if bound is not None]
    least = max((len(exact_number(bound).partition(".")[2]) for bound in bounds), default=0)
    rounded = next(
        (
            each
            for digits in (4, 6, 9)
            if abs((each := float(f"{value:.{digits}g}")) - value) <= 0.001 * abs(value)
            and (low is None or each >= low)
            and (high is None or each < high)
        ),
        value,
    )
    text = exact_number(int(value) if float(value).is_integer() else rounded, column)
    whole, _, rest = text.partition(".")
    return f"{whole}.{rest.ljust(least, '0')}" if least and "e" not in text else text


def date_text(text: str, like: str = "") -> str:
    """Return a date in ISO format, without a time if it is midnight or if the date beside it (``like``) has none.

    >>> date_text("2015-03-01T00:00:00"), date_text("2015-03-01T13:45:00")
    ('2015-03-01', '2015-03-01 13:45')
    >>> date_text("2015-03-01T13:45:00", like="2015-01-01")
    '2015-03-01'
    """
    day, _, time = text.replace("T", " ").partition(" ")
    if like and " " not in date_text(like):
        return day
    time = re.sub(r"(?<=:\d\d):00(\.0+)?$", "", time)
    return day if time in ("", "00:00") else f"{day} {time}"


def percent(share: float) -> str:
    """Return a share in percent; only nothing is 0% and only everything 100%.

    >>> [percent(share) for share in (0.636, 0.9999, 1.0, 0.001)]
    ['64%', 'over 99%', '100%', 'under 1%']
    """
    rounded = round(100 * share)
    if rounded == 100 and share < 1:
        return "over 99%"
    return "under 1%" if rounded == 0 and share > 0 else f"{rounded}%"


def at_least(low: float) -> str:
    """Return a lower limit in words, rounded down.

    >>> at_least(0.9889)
    'at least 98%'
    """
    return f"at least {math.floor(100 * low + _ROUNDING)}%"


def between(low: float, high: float, decimals: int = 0) -> str:
    """Return a range in percent, rounded outward.

    >>> between(0.8012, 0.857), between(0.80126, 0.857, decimals=1)
    ('80 to 86%', '80.1 to 85.7%')
    """
    unit = 10**decimals
    ends = math.floor(100 * unit * low + _ROUNDING) / unit, math.ceil(100 * unit * high - _ROUNDING) / unit
    return f"{ends[0]:g}%" if ends[0] == ends[1] else f"{ends[0]:g} to {ends[1]:g}%"
