"""Pieces of a page: escaped text, and drawings in SVG without styles of their own, so that a strict policy holds.

Blue and solid adds, orange and dashed (or hatched) subtracts, everywhere.
"""

import base64
import hashlib
import html
import math
import re
import unicodedata
from collections.abc import Sequence
from importlib import resources

import numpy as np

from anchorline.render.characters import printable, printable_lines
from anchorline.render.geometry import Band, Curve, Picture, Run, Step, outline, points_of, runs_in, steps_in
from anchorline.render.statements import CAPTIONS, Subject, column_text, shown
from anchorline.result.explanation import Share
from anchorline.result.frontier import Frontier
from anchorline.spaces.regions import png_file

_RIGHT_TO_LEFT = {"R", "AL"}  # directions of characters
_LONGEST_WHOLE = 24  # characters of a word that stays on one line with its number
_PIXELATED = 128  # images with a longer side below this are enlarged without smoothing
_WIDTH, _HEIGHT = 720, 230  # of drawn curves
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 12, 24, 26


def escape(text: str) -> str:
    r"""Return text from data as HTML, with visible control codes; it cannot become markup.

    >>> escape('<b title="\x1b">')
    '&lt;b title=&quot;\\x1b&quot;&gt;'
    """
    return html.escape(printable(text), quote=True)


def minus(number: str) -> str:
    """Return a printed number with a minus sign, which is as wide as a plus sign."""
    return escape(number.replace("-", "\N{MINUS SIGN}"))


class Sentences:
    """Sentences about one result as HTML; names in them that run from right to left are isolated."""

    def __init__(self, explanation: Subject) -> None:
        output, facts = explanation.output, explanation.facts
        named = [output.name, output.unit, output.decision, *(output.classes or ()), *(output.runner_up or ())]
        named += [part for fact in facts for part in (fact.column, column_text(fact.column), fact.value)]
        named += explanation.space.get("names", ())
        names = {
            shown(name)
            for name in named
            if isinstance(name, str) and _RIGHT_TO_LEFT & {*map(unicodedata.bidirectional, name)}
        }
        longest_first = sorted(names, key=lambda name: (-len(name), name))
        self._names = re.compile(f"({'|'.join(map(re.escape, longest_first)) or '(?!)'})")

    def __call__(self, text: str) -> str:
        """Return a sentence as HTML."""
        parts = self._names.split(text)
        return "".join(f"<bdi>{escape(part)}</bdi>" if i % 2 else escape(part) for i, part in enumerate(parts))


def style_sheet(*names: str) -> str:
    """Return the style sheets of these names, which are files beside this module."""
    room = resources.files(__package__)
    return "".join(room.joinpath(name).read_text(encoding="utf-8") for name in names)


def view(body: str) -> str:
    """Return a view for a notebook cell, whose styles apply to nothing else."""
    return f'<div class="anchorline"><style>{style_sheet("sum.css")}</style>{body}</div>'


def document(title: str, body: str, *, has_images: bool = False) -> str:
    """Return a page around what its main element holds: without scripts, and loading nothing.

    It has light and dark colors, and prints on A4. The policy in its head allows its own style sheet, by its hash,
    and, if it has any, images that are part of it.
    """
    style = style_sheet("sum.css", "page.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    images = "img-src data:; " if has_images else ""
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; {images}base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="generator" content="anchorline"><meta name="referrer" content="no-referrer">'
        f'<title>{escape(title)}</title><style>{style}</style></head><body><main class="anchorline">{body}'
        f"<footer>{CAPTIONS['footer']}</footer></main></body></html>\n"
    )


def sign_of(contribution: float) -> str:
    """Return the class of what adds or subtracts."""
    return "al-plus" if contribution > 0 else "al-minus"


# The sum.


class Scale:
    """The map from values to percentages of a width, with a small margin on both sides."""

    def __init__(self, values: Sequence[float]) -> None:
        low, high = min(values), max(values)
        # Halve before subtracting, because the difference of two numbers near the largest float overflows.
        half = (high / 2 - low / 2) or abs(high) / 2 or 0.5
        self._low, self._half = low - 0.06 * half, half * 1.06

    def __call__(self, value: float) -> str:
        """Return the place of a value."""
        return f"{100 * (value / 2 - self._low / 2) / self._half:.2f}%"

    def width(self, start: float, end: float) -> str:
        """Return the distance between two values."""
        return f"{abs(100 * (end / 2 - start / 2) / self._half):.2f}%"


def sum_track(scale: Scale, step: Step) -> str:
    """Return one row of a waterfall: a bar from a level to the next, or a dot at the first or the last level."""
    parts, before, after = "", step.before, step.after
    for level, y1, y2 in ((before, "0", "50%"), (after, "50%", "100%")):
        if level is not None:
            parts += f'<line x1="{scale(level)}" x2="{scale(level)}" y1="{y1}" y2="{y2}"/>'
    if before is not None and after is not None:
        parts += (
            f'<rect class="{sign_of(after - before)}" x="{scale(min(before, after))}" y="50%" '
            f'width="{scale.width(before, after)}" height="16" transform="translate(0 -8)"/>'
        )
    else:
        level = before if after is None else after
        assert level is not None
        parts += f'<circle cx="{scale(level)}" cy="50%" r="5"/>'
    return f'<svg width="100%" height="100%" aria-hidden="true">{parts}</svg>'


def meters(bars: Sequence[tuple[str, Share | float]], largest: float) -> str:
    """Return labeled bars from 0 to ``largest``; the limits of a share are drawn as a line across its end.

    They repeat numbers of the sentence above them, and are hidden from screen readers. Labels are HTML.
    """
    rows = ""
    for number, (label, bar) in enumerate(bars):
        value = bar.value if isinstance(bar, Share) else bar
        parts = f'<rect class="al-share{number}" width="{100 * value / largest:.2f}%" height="100%"/>'
        if isinstance(bar, Share) and bar.high > bar.low:
            low, high = (f"{100 * limit / largest:.2f}%" for limit in (bar.low, bar.high))
            parts += f'<line x1="{low}" x2="{high}" y1="50%" y2="50%"/>'
        rows += f"<div>{label}</div><svg>{parts}</svg>"
    return f'<div class="al-meters" aria-hidden="true">{rows}</div>'


# What was explained.


def text_markup(runs: Sequence[Run], contributions: Sequence[float], numbers: Sequence[str]) -> str:
    """Return a text with its words marked, and their numbers: straight underlines add, wavy ones subtract."""
    body = ""
    for run in runs:
        text = html.escape(printable_lines(run.text), quote=True)
        if run.fact is None:
            body += text
            continue
        is_whole = len(run.text) <= _LONGEST_WHOLE and len(run.text.split()) == 1
        number = f"<sup>{minus(numbers[run.fact])}</sup>" if numbers[run.fact] else ""
        body += (
            f'<mark class="{sign_of(contributions[run.fact])}{" al-whole" * is_whole}"><bdi>{text}</bdi>'
            f"{number}</mark>"
        )
    return f'<div class="al-text" dir="auto" tabindex="0" role="region" aria-label="The text">{body}</div>'


def picture_markup(
    picture: Picture, contributions: Sequence[float], labels: Sequence[str], whose: str = "the sum"
) -> str:
    """Return an image with its regions outlined, and beside it these regions alone; labels say what each adds."""
    height, width, _ = picture.rgb.shape
    size = max(height, width)
    source = base64.b64encode(png_file(picture.rgb)).decode()
    image = (
        f'<image class="al-photo{" al-pixels" * (size < _PIXELATED)}" width="{width}" height="{height}" '
        f'href="data:image/png;base64,{source}"/>'
    )
    step = f"{size / 48:.3g}"
    hatch = (
        f'<defs><pattern id="al-hatch-{size}" width="{step}" height="{step}" patternUnits="userSpaceOnUse" '
        f'patternTransform="rotate(45)"><rect class="al-line" width="{size / 144:.3g}" height="{step}"/>'
        "</pattern></defs>"
    )
    rest = np.ones((height, width), dtype=bool)
    areas = numbers = ""
    for region in picture.regions:
        rest &= ~region.mask
        adds = contributions[region.fact] > 0
        edges = edge_path(region.mask)
        fill = "" if adds else f' fill="url(#al-hatch-{size})"'
        areas += (
            f'<g class="{sign_of(contributions[region.fact])}"><title>{escape(labels[region.fact])}</title>'
            f'<path class="al-area"{fill} d="{area_path(region.mask)}"/><path class="al-halo" d="{edges}"/>'
            f'<path class="al-edge" d="{edges}"/></g>'
        )
        y, x = region.middle
        place = f'x="{x + 0.5}" y="{y + 0.5}" dy="0.35em" font-size="{size / 18:.3g}"'
        numbers += f"<text {place}>{escape(region.name)}</text>"
    box = f'viewBox="0 0 {width} {height}" role="img"'
    return (
        f'<div class="al-pictures"><svg {box} aria-label="The image, with the regions of {whose} outlined">{image}'
        f'{hatch}{areas}{numbers}</svg><svg {box} aria-label="The regions of {whose} alone">{image}'
        f'<path class="al-rest" d="{area_path(rest)}"/></svg></div>'
    )


def area_path(mask: np.ndarray) -> str:
    """Return the pixels of a mask as the data of an SVG path, one rectangle per run."""
    return "".join(f"M{x} {y}h{end - x}v1h{x - end}z" for y, row in enumerate(mask) for x, end in runs_in(row))


def edge_path(mask: np.ndarray) -> str:
    """Return the border of a mask as the data of an SVG path."""
    return "".join(f"M{x0} {y0}L{x1} {y1}" for x0, y0, x1, y1 in outline(mask))


def curve_markup(
    curve: Curve, contributions: Sequence[float], numbers: Sequence[str], whose: str = "the sum"
) -> str:
    """Return a signal with the stretches of its facts shaded; the number of each is above it."""
    last = max(1, int(curve.points[-1]))
    frame = _Frame((0, last), (float(curve.values.min()), float(curve.values.max())))
    body = frame.axes([tick for tick in _ticks(0, last) if tick == round(tick)])
    for first, end, fact in curve.stretches:
        x0, x1 = frame.x(max(0, first - 0.5)), frame.x(min(last, end + 0.5))
        body += (
            f'<g class="{sign_of(contributions[fact])}"><rect class="al-area" x="{x0:.1f}" y="{_TOP}" '
            f'width="{x1 - x0:.1f}" height="{_HEIGHT - _TOP - _BOTTOM}"/></g>'
        )
    for channel in curve.values.T:
        points = (f"{frame.x(x):.1f},{frame.y(y):.1f}" for x, y in zip(curve.points, channel, strict=True))
        body += f'<polyline class="al-curve" points="{" ".join(points)}"/>'
    for middle, fact, row in curve.labels():
        place = f'x="{frame.x(middle):.1f}" y="{_TOP - 8 + 20 * row}"'
        body += f'<text class="al-middle" {place}>{minus(numbers[fact])}</text>' if numbers[fact] else ""
    label = f"The signal, with the stretches of {whose} shaded"
    return f'<svg class="al-chart" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">{body}</svg>'


# The strips of a rule.


def strip_markup(band: Band) -> str:
    """Return one strip: parts in shades of one color, the fact as a frame, the row's own place as a triangle."""
    top, height = 26, 20  # of the band, in pixels; above it the row's own value, below it rows of labels
    body = ""
    for part in band.parts:
        place = f'x="{_share(part.start)}" width="{_share(part.end - part.start)}" y="{top}" height="{height}"'
        body += f"<g><title>{escape(part.text)}</title><rect {_shade(part.shade)} {place}/></g>"
    start, end = band.frame
    place = f'x="{_share(start)}" width="{_share(end - start)}" y="{top - 2}" height="{height + 4}"'
    body += f'<rect class="al-frame" {place}/>'
    body += f'<svg x="{_share(band.own)}"><path class="al-own" d="M-6 {top - 9}h12l-6 9z"/></svg>'
    for label in band.labels:
        y = top - 12 if label.row < 0 else top + height + 16 * (label.row + 1)
        body += f'<text class="al-{label.anchor}" x="{_share(label.place)}" y="{y}">{escape(label.text)}</text>'
    size = f'width="100%" height="{top + height + 16 * band.n_rows + 6}"'
    return f'<svg class="al-strip" {size} role="img" aria-label="{escape(band.summary)}">{body}</svg>'


def strip_legend(bands: Sequence[Band]) -> str:
    """Return what the shades of strips mean."""
    steps = ""
    for opacity, text in steps_in(bands):
        box = f'<rect {_shade(opacity)} width="22" height="12"/>'
        swatch = f'<svg width="22" height="12" aria-hidden="true">{box}</svg>'
        steps += f"<span>{swatch} {escape(text)}</span> "
    return f'<p class="al-caption al-steps">{steps}</p>'


def _shade(opacity: float | None) -> str:
    return 'class="al-untried"' if opacity is None else f'class="al-shade" fill-opacity="{opacity}"'


def _share(share: float) -> str:
    return f"{100 * share:.2f}%"


def frontier_markup(frontier: Frontier, label: str) -> str:
    """Return R2 over the number of facts; hollow points are not proven best."""
    points = points_of(frontier)
    frame = _Frame((-0.3, points[-1][0] + 0.3), (0.0, 1.0))
    body = frame.axes([k for k, *_ in points])
    line = " ".join(f"{frame.x(k):.1f},{frame.y(r2):.1f}" for k, r2, _ in points)
    body += f'<polyline class="al-curve" points="{line}"/>'
    for k, r2, is_proven in points:
        mark = "" if is_proven else ' class="al-open"'
        body += f'<circle{mark} cx="{frame.x(k):.1f}" cy="{frame.y(r2):.1f}" r="4"/>'
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}"'
    return f'<svg class="al-chart al-frontier" {box}>{body}</svg>'


class _Frame:
    """The coordinates of a chart, and the axes around it."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self._x, (low, high) = x, y
        self._y = (low, high) if high > low else (low - 0.5, high + 0.5)

    def x(self, value: float) -> float:
        low, high = self._x
        return _LEFT + (value - low) / (high - low) * (_WIDTH - _LEFT - _RIGHT)

    def y(self, value: float) -> float:
        low, high = self._y
        return _TOP + (high - value) / (high - low) * (_HEIGHT - _TOP - _BOTTOM)

    def axes(self, x_ticks: Sequence[float]) -> str:
        """Return faint lines with their values, and the values below."""
        parts = ""
        for value in _ticks(*self._y):
            y = self.y(value)
            parts += f'<path class="al-grid" d="M{_LEFT} {y:.1f}H{_WIDTH - _RIGHT}"/>'
            parts += f'<text class="al-end" x="{_LEFT - 8}" y="{y + 4:.1f}">{minus(f"{value:.6g}")}</text>'
        for value in x_ticks:
            parts += f'<text class="al-middle" x="{self.x(value):.1f}" y="{_HEIGHT - 8}">{value:g}</text>'
        return parts


def _ticks(low: float, high: float) -> list[float]:
    """Return round numbers between two values, in steps of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(high - low))
    step = next(unit * power for unit in (0.2, 0.5, 1, 2) if (high - low) / (unit * power) <= 6)
    return [step * number for number in range(math.ceil(low / step), math.floor(high / step) + 1)]
