"""What holds while several literals hold: bounds of one attribute are joined to one statement."""

from collections.abc import Sequence

from anchorline.spaces.base import Literal


def held_together(literals: Sequence[Literal]) -> list[tuple[str, str]]:
    """Return statements that are together true exactly where all these literals hold, after their attributes.

    Two bounds of one attribute become one statement, and a bound that another literal implies is left out.

    Examples
    --------
    >>> value = "age keeps its value 41"
    >>> lower = Literal("age", "age >= 37", f"{value} or takes a higher one")
    >>> upper = Literal("age", "age < 48", f"{value} or takes a lower one")
    >>> held_together([lower, Literal("member", "member = True"), upper])
    [('age', 'age keeps its value 41'), ('member', 'member = True')]
    >>> held_together([Literal("age", "age >= 37"), Literal("age", "age < 48")])
    [('age', '37 <= age < 48')]
    """
    by_name: dict[str, list[str]] = {}
    for literal in literals:
        by_name.setdefault(literal.name, []).append(literal.held)
    return [(name, text) for name, texts in by_name.items() for text in _joined(name, texts)]


def _joined(name: str, texts: list[str]) -> list[str]:
    """Return what literals of one attribute say together; texts that are not about bounds stay as they are."""
    if len(texts) == 1:
        return texts
    kept = [text.partition(" or takes ") for text in texts if text.startswith(f"{name} keeps its value ")]
    values = {value for value, _, _ in kept}
    if len(values) == 1:
        (value,) = values
        others = [text for text in texts if not text.startswith(value)]
        if value in texts or value.replace(" keeps its value ", " = ", 1) in others:  # it implies all bounds
            return [text for text in texts if " or takes " not in text]
        free = _other_values(name, [tail for _, _, tail in kept])
        return texts if free is None else [f"{value}{free}", *others]
    lower, upper = _tightest(name, texts)
    bounds = [text for text in texts if text.startswith((f"{name} >= ", f"{name} < "))]
    interval = f"{lower} <= {name} < {upper}"
    if len(bounds) < 2 or not (lower and upper):
        return texts
    return [interval, *(text for text in texts if text not in (interval, *bounds))]


def _other_values(name: str, tails: Sequence[str]) -> str | None:
    """Return which values other than its own an attribute may take, given all these; None if it is not clear."""
    higher, lower = "a higher one" in tails, "a lower one" in tails
    if higher and lower:
        return ""
    limits = [f"{name} {tail.removeprefix('another one ')}" for tail in tails if tail.startswith("another one ")]
    least, most = _tightest(name, limits)
    if higher:
        return " or takes a higher one" + (f" < {most}" if most else "")
    if lower:
        return " or takes a lower one" + (f" >= {least}" if least else "")
    if least and most:
        return f" or takes another one with {least} <= {name} < {most}"
    return f" or takes another one >= {least}" if least else f" or takes another one < {most}" if most else None


def _tightest(name: str, texts: Sequence[str]) -> tuple[str, str]:
    """Return the edges of the tightest lower and upper bound among these texts, or empty texts."""
    lowers = [text.removeprefix(f"{name} >= ") for text in texts if text.startswith(f"{name} >= ")]
    uppers = [text.removeprefix(f"{name} < ") for text in texts if text.startswith(f"{name} < ")]
    return max(lowers, key=_order, default=""), min(uppers, key=_order, default="")


def _order(edge: str) -> tuple[float, str]:
    """Return a key that sorts numbers by size, and dates, which are written with the year first, by time."""
    try:
        return float(edge), ""
    except ValueError:
        return 0.0, edge
