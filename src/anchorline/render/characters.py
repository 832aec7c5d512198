"""Characters from data: escape, measure in terminal cells, wrap and truncate them without splitting clusters."""

import re
import unicodedata
from collections.abc import Iterator

ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_JOINERS = "\u200c\u200d"
_JAMO_TAIL = range(0x1160, 0x1200)  # Hangul vowels and finals, which are drawn inside the syllable before them


def printable(text: str) -> str:
    r"""Return the text with control codes, bidirectional overrides and line ends as visible escapes.

    Text from data can therefore neither control the terminal nor reorder the text beside it. Joiners inside a word
    or an emoji stay.

    >>> printable("a\x1b[2Jb\u202ec")
    'a\\x1b[2Jb\\u202ec'
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or _joins(text, i) else c.encode("unicode_escape").decode()
        for i, c in enumerate(text)
    )


def printable_lines(text: str) -> str:
    r"""Return a text as `printable` does, but with its tabs and line ends.

    >>> printable_lines("a\tb\r\n\x07")
    'a\tb\n\\x07'
    """
    parts = re.split("([\n\t])", text.replace("\r\n", "\n"))
    return "".join(part if part in ("\n", "\t") else printable(part) for part in parts)


def _joins(text: str, place: int) -> bool:
    """Return whether a character is a joiner between two letters, marks or symbols, as in Persian and in emoji."""
    if text[place] not in _JOINERS or not 0 < place < len(text) - 1:
        return False
    return all(unicodedata.category(text[beside])[0] in "LMS" for beside in (place - 1, place + 1))


def cell_width(text: str) -> int:
    r"""Return the number of terminal cells that printable text fills.

    A wide character fills 2 cells and a combining mark 0.

    >>> cell_width("age"), cell_width("年収"), cell_width("e\u0301")
    (3, 4, 1)
    """
    return sum(map(_character_width, text))


def _character_width(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"} or ord(character) in _JAMO_TAIL:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1


def pad(text: str, width: int, *, align_right: bool = False) -> str:
    """Return the text padded with spaces to ``width`` cells, aligned left or (``align_right``) right.

    >>> pad("年", 4) + "|", pad("7", 3, align_right=True)
    ('年  |', '  7')
    """
    spaces = " " * max(0, width - cell_width(text))
    return spaces + text if align_right else text + spaces


def truncate(text: str, width: int) -> str:
    """Return the text shortened to at most ``width`` cells, with an ellipsis in place of the missing end.

    >>> truncate("income in thousands", 10), truncate("年収年収年収", 6)
    ('income in…', '年収…')
    """
    if cell_width(text) <= width:
        return text
    kept, room = "", width - 1
    for cluster in _clusters(text):
        if cell_width(kept + cluster) > room:
            break
        kept += cluster
    return kept.rstrip() + ELLIPSIS if room >= 0 else ""


def wrap(text: str, width: int, *, max_lines: int | None = None) -> list[str]:
    """Return the text as lines of at most ``width`` cells; there is always at least one line.

    Lines break at spaces, or inside a word that is longer than a line. With ``max_lines``, the last line is
    truncated with an ellipsis if there is more text.

    >>> wrap("worst concave points < 0.14", 12)
    ['worst', 'concave', 'points <', '0.14']
    >>> wrap("worst concave points < 0.14", 12, max_lines=2)
    ['worst', 'concave poi…']
    """
    lines, line = [], ""
    for piece in _pieces(text, width):
        if cell_width((line + piece).rstrip()) <= width:
            line += piece
        else:
            lines.append(line.rstrip())
            line = piece.lstrip()
    lines = [part for part in [*lines, line.rstrip()] if part] or [""]
    if max_lines is None or len(lines) <= max_lines:
        return lines
    rest = " ".join(lines[max_lines - 1 :])
    return [*lines[: max_lines - 1], truncate(rest, width)]


def _pieces(text: str, width: int) -> Iterator[str]:
    """Yield the words, each with the spaces after it, and words longer than a line in parts that fit."""
    word = ""
    for cluster in _clusters(text):
        starts_a_word = word.endswith(" ") and cluster != " "
        if starts_a_word or cell_width(word.rstrip() + cluster) > width:
            yield word
            word = ""
        word += cluster
    yield word


def _clusters(text: str) -> Iterator[str]:
    """Yield each character together with the combining marks that follow it."""
    cluster = ""
    for character in text:
        if cluster and _character_width(character) > 0:
            yield cluster
            cluster = ""
        cluster += character
    if cluster:
        yield cluster
