"""What pictures show, and where: steps of the sum, marked texts, regions, stretches, and the strips of a rule.

Nothing here draws: `drawings` makes SVG of these places for pages, and `pictures` draws them with matplotlib.
Places refer to facts by their number in the result.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

import numpy as np

from anchorline.facts import KINDS, Fact
from anchorline.render.characters import ELLIPSIS, cell_width, truncate
from anchorline.render.digits import percent
from anchorline.render.statements import (
    LACKS,
    Result,
    Words,
    digits_of,
    fact_text,
    own_text,
    shown,
    statements_of,
    value_text,
)
from anchorline.result.explanation import Explanation
from anchorline.result.frontier import Frontier
from anchorline.result.rule import Rule, Strip
from anchorline.spaces.regions import shown_picture
from anchorline.spaces.text import places_of

LONGEST_TEXT = 20_000  # characters that are shown in full
_CONTEXT = 300  # characters on each side of a mark in a longer text
_LABEL = 0.08  # width of a number per width of a curve
_MOST_POINTS = 1500  # of a curve; more would not be visible
# From which share of copies on: how opaque a part is, and in words. So few steps remain distinct in print, too.
STEPS = (
    (0.95, 1.0, "95% or more"),
    (0.8, 0.68, "80 to 95%"),
    (0.5, 0.42, "50 to 80%"),
    (0.2, 0.2, "20 to 50%"),
    (0.0, 0.05, "under 20%"),
)
UNKNOWN = "not tried"
_GAP, _THIN = 0.015, 0.02  # before missing values, and their least width, per width of a band
_CELL = 0.022  # width of a character per width of a band, on a phone
_LONGEST = 24  # characters of a label


# The sum.


@dataclass(frozen=True, slots=True)
class Step:
    """A line of the sum: "start", "fact" or "total", its text, its printed number, and the levels that it joins.

    The start has no level before it, and the total none after it.
    """

    kind: str
    text: str
    number: str
    before: float | None
    after: float | None


def steps_of(explanation: Explanation) -> list[Step]:
    """Return the lines of the sum from the start to the total; without facts, only the total."""
    words, lines = Words(explanation), [each for each in statements_of(explanation) if each.amount]
    levels = [*accumulate(explanation.contributions.tolist(), initial=explanation.base)]
    parts = zip(lines, [None, *levels], levels, strict=False)
    steps = [Step(each.kind, each.text, each.amount, before, after) for each, before, after in parts]
    output = f"{words.output} [{words.unit.strip()}]" if words.unit else words.output
    return [*steps, Step("total", output, digits_of(explanation).total, explanation.prediction, None)]


# What was explained.


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
    values = values.T if explanation.space.get("channels") == "first" else values
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


def points_of(frontier: Frontier) -> list[tuple[int, float, bool]]:
    """Return (k, R2, whether it is proven) of a frontier, which starts without facts."""
    points = zip(frontier.points, frontier.r2, strict=True)
    return [(0, 0.0, True), *((point.k, max(0.0, r2), point.status == "proven") for point, r2 in points)]


# The strips of a rule: all values of a column as a band, as wide as they are frequent.


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a band from ``start`` to ``end``, in shares of its width: the step of its shade, and its words."""

    start: float
    end: float
    step: int | None
    text: str

    @property
    def shade(self) -> float | None:
        """How opaque the part is; None if no copy was tried there."""
        return None if self.step is None else STEPS[self.step][1]

    @property
    def middle(self) -> float:
        """Where the middle of the part is."""
        return (self.start + self.end) / 2


@dataclass(frozen=True, slots=True)
class Label:
    """A text at a place of a band: in row 0, 1, ... below it, or above it (row -1)."""

    place: float
    anchor: str
    text: str
    row: int


@dataclass(frozen=True, slots=True)
class Band:
    """One strip, ready to be drawn: fact, parts, the ends of the frame, the row's own place, and labels."""

    fact: str
    parts: tuple[Part, ...]
    frame: tuple[float, float]
    own: float
    labels: tuple[Label, ...]

    @property
    def n_rows(self) -> int:
        """Number of rows of labels below the band."""
        return 1 + max((label.row for label in self.labels), default=-1)

    @property
    def summary(self) -> str:
        """The fact and its parts in words, for readers who do not see them."""
        return f"{self.fact}. {'; '.join(part.text for part in self.parts)}."


def bands_of(rule: Rule) -> tuple[Band, ...]:
    """Return one band per fact of a rule."""
    kind = str(rule.space.get("kind"))
    return tuple(_band(fact, strip, kind) for fact, strip in zip(rule.facts, rule.strips, strict=True))


def steps_in(bands: Sequence[Band]) -> list[tuple[float | None, str]]:
    """Return the shades that a legend has to explain, each with its words; the last may be that of no copies."""
    is_unknown = any(part.step is None for band in bands for part in band.parts)
    return [*((opacity, text) for _, opacity, text in STEPS), *([(None, UNKNOWN)] if is_unknown else [])]


def _band(fact: Fact, strip: Strip, kind: str) -> Band:
    names, places = _names(fact, strip, kind), _places(strip)
    stays = [*strip.stays, *[None] * (len(places) - len(strip.stays))]
    parts = []
    for (start, end), share, name in zip(places, stays, names, strict=True):
        step = None if share is None else next(i for i, (least, *_) in enumerate(STEPS) if share >= least)
        often = UNKNOWN if share is None else f"{percent(share)} of copies"
        parts.append(Part(start, end, step, f"{name}: {often}"))
    last = len(parts) - 1
    own, ends = min(strip.own, last), (min(strip.first, last), min(strip.last - 1, last))
    if fact.kind == "missing" and strip.missing > 0:
        own, ends = last, (last, last)
    frame = parts[ends[0]].start, parts[ends[1]].end
    labels = tuple(_labels(fact, strip, names, parts, own, frame))
    return Band(fact_text(fact, kind, here=True), tuple(parts), frame, parts[own].middle, labels)


def _places(strip: Strip) -> list[tuple[float, float]]:
    """Return where each part begins and ends; missing values are a part of their own at the end."""
    total = sum(strip.shares)
    missing = max(_THIN, strip.missing / (total + strip.missing)) if strip.missing > 0 else 0.0
    scale = (1.0 - missing - (_GAP if missing else 0.0)) / (total or 1.0)
    places, end = list[tuple[float, float]](), 0.0
    for share in strip.shares:
        places.append((end, end + share * scale))
        end += share * scale
    return [*places, *([(1.0 - missing, 1.0)] if missing else [])]


def _names(fact: Fact, strip: Strip, kind: str) -> list[str]:
    """Return what the values of each part are called."""
    if not any(KINDS[fact.kind]):
        own, other = _own_and_other(fact, kind)
        names = [own if i == strip.own else other for i in range(len(strip.shares))]
    else:
        bounds = [value_text(bound, fact.column, is_bound=True) for bound in strip.labels]
        names = [f"below {bounds[0]}"] if bounds else ["all"]
        names += [f"{low} to {high}" for low, high in pairwise(bounds)]
        names += [f"{bounds[-1]} or more"] if bounds else []
    return [*names, *(["missing"] if strip.missing > 0 else [])]


def _own_and_other(fact: Fact, kind: str) -> tuple[str, str]:
    """Return the names of the row's own part and of the other one, if a fact has no bounds."""
    if fact.kind == "present":
        return "present", LACKS.get(kind, LACKS["image"])[1]
    if fact.kind == "missing":
        return "missing", "not missing"
    if kind == "hypercube":
        is_sign = isinstance(fact.value, int)
        return (f"{fact.value:+d}", f"{-fact.value:+d}") if is_sign else (shown(fact.value), "reversed")
    return value_text(fact.value, fact.column), "others"


def _labels(
    fact: Fact, strip: Strip, names: Sequence[str], parts: Sequence[Part], own: int, frame: tuple[float, float]
) -> Iterator[Label]:
    """Yield the row's own value above the band; below it bounds, the other values, and missing ones."""
    has_bounds = any(KINDS[fact.kind])
    yield _label(parts[own].middle, own_text(fact) if has_bounds and fact.value is not None else names[own], -1)
    others = [i for i in range(len(strip.shares)) if i != own]
    wanted = []
    if has_bounds:
        bounds = zip(frame, (fact.low, fact.high), strict=True)
        wanted = [(at, value_text(each, fact.column, is_bound=True)) for at, each in bounds if each is not None]
    elif others:
        wanted = [((parts[others[0]].start + parts[others[-1]].end) / 2, names[others[0]])]
    if strip.missing > 0 and own != len(parts) - 1:
        wanted.append((1.0, "missing"))
    ends = list[float]()  # of the last label in each row
    for place, name in wanted:
        label = _label(place, name, 0)
        width = _CELL * cell_width(label.text)
        start = label.place - {"start": 0.0, "middle": width / 2, "end": width}[label.anchor]
        end = start + width
        row = next((i for i, last in enumerate(ends) if start > last + _CELL), len(ends))
        ends[row : row + 1] = [end]
        yield replace(label, row=row)


def _label(place: float, text: str, row: int) -> Label:
    """Return a label that does not leave the band, if it is short enough."""
    text = truncate(text, _LONGEST)
    half = _CELL * cell_width(text) / 2
    anchor = "middle" if half <= place <= 1 - half else "start" if place < 0.5 else "end"
    return Label(place, anchor, text, row)
