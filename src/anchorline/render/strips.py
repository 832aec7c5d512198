"""The strips of a rule as places and shades, from which page and picture draw them alike.

A band has all values of one column, as wide as they are frequent; the fact is a frame, the row's own value a mark.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from anchorline.facts import Fact
from anchorline.render.characters import cell_width, truncate
from anchorline.render.digits import percent
from anchorline.render.statements import fact_text, own_text, shown, value_text
from anchorline.result.rule import Rule, Strip

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


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a band from ``start`` to ``end``, in shares of its width: the step of its shade, and its words."""

    start: float
    end: float
    step: int | None
    text: str


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
    return tuple(
        _band(fact, strip, str(rule.space.get("kind")))
        for fact, strip in zip(rule.facts, rule.strips, strict=True)
    )


def steps_in(bands: Sequence[Band]) -> list[tuple[float | None, str]]:
    """Return the shades that a legend has to explain, each with its words; the last may be that of no copies."""
    is_unknown = any(part.step is None for band in bands for part in band.parts)
    return [*((opacity, text) for _, opacity, text in STEPS), *([(None, UNKNOWN)] if is_unknown else [])]


def _band(fact: Fact, strip: Strip, kind: str) -> Band:
    names = _names(fact, strip, kind)
    places = _places(strip)
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
    middle = (parts[own].start + parts[own].end) / 2
    frame = parts[ends[0]].start, parts[ends[1]].end
    labels = tuple(_labels(fact, strip, names, parts, own, frame))
    return Band(fact_text(fact, kind, here=True), tuple(parts), frame, middle, labels)


def _places(strip: Strip) -> list[tuple[float, float]]:
    """Return where each part begins and ends; missing values are a part of their own at the end."""
    total = sum(strip.shares) + strip.missing or 1.0
    missing = max(_THIN, strip.missing / total) if strip.missing > 0 else 0.0
    room = 1.0 - missing - (_GAP if missing else 0.0)
    scale, places, end = room / (sum(strip.shares) or 1.0), list[tuple[float, float]](), 0.0
    for share in strip.shares:
        places.append((end, end + share * scale))
        end += share * scale
    return [*places, *([(1.0 - missing, 1.0)] if missing else [])]


def _names(fact: Fact, strip: Strip, kind: str) -> list[str]:
    """Return what the values of each part are called."""
    if fact.kind in ("equals", "present", "missing"):
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
        return "present", "absent" if kind == "text" else "hidden"
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
    middle = [(part.start + part.end) / 2 for part in parts]
    has_bounds = fact.kind in ("at_least", "below", "between")
    text = own_text(fact) if has_bounds and fact.value is not None else names[own]
    yield _label(middle[own], text, -1)
    wanted = []
    if has_bounds:
        wanted += [
            (place, value_text(bound, fact.column, is_bound=True))
            for place, bound in zip(frame, (fact.low, fact.high), strict=True)
            if bound is not None
        ]
    else:
        others = [i for i in range(len(strip.shares)) if i != own]
        places = (parts[others[0]].start + parts[others[-1]].end) / 2 if others else 0.0
        wanted += [(places, names[others[0]])] if others else []
    if strip.missing > 0 and own != len(parts) - 1:
        wanted.append((1.0, "missing"))
    ends = list[float]()  # of the last label in each row
    for place, name in wanted:
        label = _label(place, name, 0)
        start, end = _extent(label)
        row = next((i for i, last in enumerate(ends) if start > last + _CELL), len(ends))
        ends[row : row + 1] = [end]
        yield Label(label.place, label.anchor, label.text, row)


def _label(place: float, text: str, row: int) -> Label:
    """Return a label that does not leave the band, if it is short enough."""
    text = truncate(text, _LONGEST)
    half = _CELL * cell_width(text) / 2
    anchor = "middle" if half <= place <= 1 - half else "start" if place < 0.5 else "end"
    return Label(place, anchor, text, row)


def _extent(label: Label) -> tuple[float, float]:
    width = _CELL * cell_width(label.text)
    start = label.place - {"start": 0.0, "middle": width / 2, "end": width}[label.anchor]
    return start, start + width
