"""Characters from data: shown as text, measured in terminal cells, wrapped and cut without tearing them apart."""

import unicodedata
from collections.abc import Iterator

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_JAMO_TAIL = range(0x1160, 0x1200)  # vowels and finals of Hangul: drawn inside the syllable before them


def printable(text: str) -> str:
    r"""Control codes, bidirectional overrides and line ends as visible escapes.

    Text from data never drives the terminal, and never reorders what stands beside it.

    >>> printable("a\x1b[2Jb\u202ec")
    'a\\x1b[2Jb\\u202ec'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def cells(text: str) -> int:
    r"""How many terminal cells printable text fills: 2 for wide characters, 0 for combining marks.

    >>> cells("age"), cells("年収"), cells("e\u0301")
    (3, 4, 1)
    """
    return sum(map(_cells_of, text))


def _cells_of(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"} or ord(character) in _JAMO_TAIL:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def padded(text: str, width: int, *, right: bool = False) -> str:
    """Text filled up with spaces to a number of cells, on its right or (``right``) on its left.

    >>> padded("年", 4) + "|", padded("7", 3, right=True)
    ('年  |', '  7')
    """
    room = " " * max(0, width - cells(text))
    return room + text if right else text + room


def cut(text: str, width: int, *, ellipsis: str = ELLIPSIS) -> str:
    """Text cut to a number of cells, with an ellipsis where something is missing.

    >>> cut("income in thousands", 10), cut("年収年収年収", 6)
    ('income in…', '年収…')
    """
    if cells(text) <= width:
        return text
    kept, room = "", width - cells(ellipsis)
    for cluster in _clusters(text):
        if cells(kept + cluster) > room:
            break
        kept += cluster
    return kept.rstrip() + ellipsis if room >= 0 else ""


def wrapped(text: str, width: int, *, lines: int | None = None, ellipsis: str = ELLIPSIS) -> list[str]:
    """Text broken at spaces, or inside words that are longer than a line, into lines of at most ``width`` cells.

    With ``lines``, what is beyond that many lines is cut with an ellipsis. At least one line is returned.

    >>> wrapped("worst concave points < 0.14", 12)
    ['worst', 'concave', 'points <', '0.14']
    >>> wrapped("worst concave points < 0.14", 12, lines=2)
    ['worst', 'concave poi…']
    """
    broken, line = [], ""
    for piece in _pieces(text, width):
        if cells((line + piece).rstrip()) <= width:
            line += piece
        else:
            broken.append(line.rstrip())
            line = piece.lstrip()
    broken = [part for part in [*broken, line.rstrip()] if part] or [""]
    if lines is None or len(broken) <= lines:
        return broken
    rest = " ".join(broken[lines - 1 :])
    return [*broken[: lines - 1], cut(rest, width, ellipsis=ellipsis)]


def fitted(text: str, name: str, width: int, lines: int, *, ellipsis: str = ELLIPSIS) -> list[str]:
    """The same, but what is beyond the lines is cut from the name inside the text: the condition stays whole.

    Only where that is not enough, or the name is not in the text, is the end cut.

    >>> fitted("mean of all monthly incomes < 40000", "mean of all monthly incomes", 12, 2)
    ['mean of all', 'mon… < 40000']
    """
    short, room = text, min(cells(name), lines * width)
    while len(wrapped(short, width)) > lines and name in text and room > cells(ellipsis) + 1:
        room -= 1
        short = text.replace(name, cut(name, room, ellipsis=ellipsis), 1)
    if len(wrapped(short, width)) > lines:
        short = text
    return wrapped(short, width, lines=lines, ellipsis=ellipsis)


def _pieces(text: str, width: int) -> Iterator[str]:
    """Words, each with the spaces after it; words longer than a line in parts that fit."""
    word = ""
    for cluster in _clusters(text):
        starts_a_word = word.endswith(" ") and cluster != " "
        if starts_a_word or cells(word.rstrip() + cluster) > width:
            yield word
            word = ""
        word += cluster
    yield word


def _clusters(text: str) -> Iterator[str]:
    """Characters with the marks that sit on them."""
    cluster = ""
    for character in text:
        if cluster and _cells_of(character) > 0:
            yield cluster
            cluster = ""
        cluster += character
    if cluster:
        yield cluster
