"""What an explanation claims to stay: a class, a label, a decision, or a number within a distance of its value."""

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING

from anchorline.render.characters import printable

if TYPE_CHECKING:
    from anchorline.result.certificate import Certificate

Format = Callable[[str], str]
_SAME_OUTPUT = "the output stays the same"
_LARGEST = 1e12  # that is written without an exponent


def stays(certificate: "Certificate", format_name: Format = printable) -> str:
    """Return the claim as a clause: ``"good" stays the predicted class``, ``the output stays within 5 of ...``.

    ``format_name`` is applied to names from data.
    """
    kind, decided, within = certificate.decision, certificate.decided, certificate.same_within
    if kind in ("class", "own class"):
        stays_same = "the predicted class stays the same"
        return stays_same if decided is None else f"{quoted(decided, format_name)} stays the predicted class"
    if kind == "label":
        return "the label stays the same" if decided is None else f"the label stays {value(decided, format_name)}"
    if kind == "threshold":
        return "the decision stays the same" if decided is None else f"the output stays {format_name(decided)}"
    return f"the output stays within {amount(certificate, within)} of its value" if within else _SAME_OUTPUT


def subject(certificate: "Certificate") -> str:
    """Return the name of what may change: the predicted class, the label, the decision or the output."""
    if certificate.decision in ("class", "own class"):
        return "the predicted class"
    return {"label": "the label", "threshold": "the decision"}.get(certificate.decision or "", "the output")


def by_more(certificate: "Certificate") -> str:
    """Return from which size on a number counts as changed, such as `` by more than 5``, or an empty text."""
    return f" by more than {amount(certificate, certificate.same_within)}" if certificate.same_within else ""


def amount(certificate: "Certificate", number: float | str, digits: int = 6) -> str:
    """Return a number in words of the output: with its unit if the output has one, and without an exponent."""
    text = number if isinstance(number, str) else brief(number, digits)
    return f"{text} {certificate.unit}" if certificate.unit else text


def brief(number: float, digits: int = 6) -> str:
    """Return a number with that many significant digits.

    >>> brief(227_634.2, 3), brief(0.25)
    ('228000', '0.25')
    """
    text = f"{number:.{digits}g}"
    return f"{Decimal(text):f}" if "e+" in text and abs(number) < _LARGEST else text


def quoted(text: str, format_name: Format = printable) -> str:
    """Return the name of a class in quotation marks, so that it cannot be read as a part of the sentence."""
    return f'"{format_name(text)}"'


def value(text: str, format_name: Format = printable) -> str:
    """Return a label in quotation marks unless it is a number.

    >>> value("good"), value("-1")
    ('"good"', '-1')
    """
    try:
        float(text)
    except ValueError:
        return quoted(text, format_name)
    return format_name(text)
