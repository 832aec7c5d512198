"""The explained text, image or signal, with the places that its facts are about.

Places refer to facts by their number in the explanation, so that report and pictures mark them alike.
"""

import re
from dataclasses import dataclass

import numpy as np

from anchorline.render.characters import ELLIPSIS
from anchorline.render.statements import Result
from anchorline.spaces.regions import shown_picture
from anchorline.spaces.text import places_of

LONGEST_TEXT = 20_000  # characters that are shown in full
_CONTEXT = 300  # characters on each side of a mark in a longer text
_LABEL = 0.08  # width of a number per width of a curve
_MOST_POINTS = 1500  # of a curve; more would not be visible


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of a text, and the number of the fact that it is about, or None."""

    text: str
    fact: int | None = None


def text_runs(explanation: Result) -> list[Run]:
    """Return a text as stretches with and without a fact; none if the instance is not a text.

    A text of more than 20,000 characters is shortened to what is near its marks.
    """
    pieces = explanation.instance
    if explanation.space.get("kind") != "text" or not all(isinstance(piece, str) for piece in pieces):
        return []
    marks = {
        2 * place + 1: number for number, fact in enumerate(explanation.facts) for place in places_of(pieces, fact)
    }
    runs, plain = list[Run](), ""
    for place, piece in enumerate(pieces):
        if place in marks:
            runs += [Run(plain), Run(piece, marks[place])]
            plain = ""
        else:
            plain += piece
    runs = [run for run in [*runs, Run(plain)] if run.text]
    if sum(map(len, pieces)) <= LONGEST_TEXT:
        return runs
    ends = {0: "first", len(runs) - 1: "last"}
    return [run if run.fact is not None else _near(run.text, ends.get(i, "")) for i, run in enumerate(runs)]


def _near(text: str, end: str) -> Run:
    """Return what is near the marks before and after a stretch; there is none at an end of the text."""
    if len(text) <= 2 * _CONTEXT:
        return Run(text)
    before, after = "" if end == "first" else text[:_CONTEXT], "" if end == "last" else text[-_CONTEXT:]
    return Run(f"{before} {ELLIPSIS} {after}")


@dataclass(frozen=True, eq=False)
class Region:
    """A region of an image: its number, its fact, its pixels (h, w), and the pixel in its middle (row, column)."""

    name: str
    fact: int
    mask: np.ndarray
    middle: tuple[int, int]


@dataclass(frozen=True, eq=False)
class Picture:
    """A small copy of an image (h, w, 3), and the regions that facts are about."""

    rgb: np.ndarray
    regions: tuple[Region, ...]


def picture_of(explanation: Result) -> Picture | None:
    """Return an image as it is recorded, with the regions of the facts; None if the instance is not an image."""
    if explanation.space.get("kind") != "image":
        return None
    rgb, labels = shown_picture(explanation.instance[3:])
    numbers = {name: number for number, name in enumerate(explanation.space.get("names", ()))}
    regions = []
    for j, fact in enumerate(explanation.facts):
        mask = labels == numbers.get(fact.attribute, -1)
        if mask.any():  # a tiny region may be missing in the small copy
            rows, columns = np.nonzero(mask)
            nearest = np.argmin((rows - rows.mean()) ** 2 + (columns - columns.mean()) ** 2)
            middle = int(rows[nearest]), int(columns[nearest])
            regions.append(Region(fact.attribute.removeprefix("region "), j, mask, middle))
    return Picture(rgb, tuple(regions))


def outline(mask: np.ndarray) -> list[tuple[int, int, int, int]]:
    """Return the edges of a mask as segments (x0, y0, x1, y1) between pixels.

    Examples
    --------
    >>> outline(np.array([[True, True]]))
    [(0, 0, 2, 0), (0, 1, 2, 1), (0, 0, 0, 1), (2, 0, 2, 1)]
    """
    padded = np.pad(mask, 1)
    across = padded[1:, 1:-1] != padded[:-1, 1:-1]  # horizontal edges, (h + 1, w)
    along = padded[1:-1, 1:] != padded[1:-1, :-1]  # vertical edges, (h, w + 1)
    edges = [(x, y, end, y) for y, row in enumerate(across) for x, end in runs_in(row)]
    return edges + [(x, y, x, end) for x, column in enumerate(along.T) for y, end in runs_in(column)]


def runs_in(row: np.ndarray) -> list[tuple[int, int]]:
    """Return where the runs of True in a row start and end."""
    changes = np.diff(np.r_[False, row, False].astype(np.int8))
    starts, ends = np.flatnonzero(changes == 1), np.flatnonzero(changes == -1)
    return list(zip(starts.tolist(), ends.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class Curve:
    """A signal: points (n,), values (n, channels), and the stretches (first, last, fact) that facts are about."""

    points: np.ndarray
    values: np.ndarray
    stretches: tuple[tuple[int, int, int], ...]

    def labels(self) -> list[tuple[float, int, int]]:
        """Return (middle, fact, row) of every stretch; a label too near the one before is in the second row."""
        labels, room = list[tuple[float, int, int]](), _LABEL * max(1, int(self.points[-1]))
        for first, last, fact in sorted(self.stretches):
            middle = (first + last) / 2
            is_near = bool(labels) and middle - labels[-1][0] < room
            labels.append((middle, fact, 1 - labels[-1][2] if is_near else 0))
        return labels


def curve_of(explanation: Result) -> Curve | None:
    """Return a signal with the stretches of the facts; None if the instance is not a signal.

    Of a long signal, the lowest and the highest point of each of 750 parts are kept.
    """
    if explanation.space.get("kind") != "signal":
        return None
    values = np.array(explanation.instance, dtype=np.float64)
    values = values[:, None] if values.ndim == 1 else values
    points = np.arange(len(values))
    if len(values) > _MOST_POINTS:
        parts = np.array_split(points, _MOST_POINTS // 2)
        mean = values.mean(axis=1)
        ends = {int(part[pick(mean[part])]) for part in parts for pick in (np.argmin, np.argmax)}
        points = np.array(sorted(ends))
    stretches = []
    for j, fact in enumerate(explanation.facts):
        ends_of = re.fullmatch(r"points (\d+) to (\d+)", fact.attribute)
        if ends_of:
            stretches.append((int(ends_of[1]), int(ends_of[2]), j))
    return Curve(points, values[points], tuple(stretches))
