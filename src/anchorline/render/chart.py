"""A chart of errors over k as inline SVG: drawn in the page's own colours, described in words."""

import html
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate
    from anchorline.render.plot import FrontierLike

_WIDTH, _HEIGHT = 640.0, 272.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 12.0, 14.0, 56.0
BEYOND = "; some end beyond the axis"
_TALLEST = 3.0  # times the highest point of the curves, the bands that are shown to their end


def frontier_chart(frontier: "FrontierLike") -> str:
    """Fidelity error (solid, round) and relevance error (dashed, square) over k, with their bands, as SVG."""
    ks = [point.k for point in frontier.points]
    series = {
        "fidelity": [point.fidelity_error for point in frontier.points],
        "relevance": [point.relevance_error for point in frontier.points],
    }
    highest, is_cut = highest_shown(frontier)
    frame = _Frame(ks, highest)
    drawn = "".join(_series(frame, name, ks, found) for name, found in series.items())
    warned = "".join(f" {html.escape(warning)}" for warning in frontier.warnings)
    return (
        f'<figure class="frontier"><svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
        f'aria-label="{html.escape(_described(frontier), quote=True)}">{frame.axes()}{drawn}</svg>'
        f'<figcaption class="note">{_key("fidelity")} fidelity error: of the sum. '
        f"{_key('relevance')} relevance error: while the reasons stay. "
        "Mean squares, output scaled to [\u22121, +1]; all bands hold together with "
        f"{100 * frontier.confidence:g}% confidence{BEYOND if is_cut else ''}.{warned}</figcaption></figure>"
    )


def highest_shown(frontier: "FrontierLike") -> tuple[float, bool]:
    """Where the axis of errors ends, and whether it cuts bands: those so wide that the curves would be flat."""
    both = ((point.fidelity_error, point.relevance_error) for point in frontier.points)
    found = [estimate for pair in both for estimate in pair if estimate is not None]
    curves = max((estimate.value for estimate in found), default=0.0)
    bands = max((estimate.high for estimate in found), default=0.0)
    highest = (min(bands, _TALLEST * curves) if curves else bands) or 1.0
    return highest, bands > highest


def _described(frontier: "FrontierLike") -> str:
    told = [
        f"k = {point.k}: fidelity error {_value(point.fidelity_error)}, "
        f"relevance error {_value(point.relevance_error)}"
        for point in frontier.points
    ]
    return "Errors over k. " + "; ".join(told) + "."


def _value(estimate: "Estimate | None") -> str:
    return "not measured" if estimate is None else f"{estimate.value:.3g}"


class _Frame:
    """Places of values on the drawing, and the axes around them."""

    def __init__(self, ks: list[int], highest: float) -> None:
        self._ks, self._highest = ks, highest * 1.05
        self._first, self._last = min(ks), max(ks)

    def x(self, k: int) -> float:
        span = self._last - self._first
        share = 0.5 if span == 0 else 0.04 + 0.92 * (k - self._first) / span
        return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)

    def y(self, error: float) -> float:
        return _TOP + (1 - min(1.0, error / self._highest)) * (_HEIGHT - _TOP - _BOTTOM)

    def axes(self) -> str:
        """A few faint lines with their values, every k, and what they mean."""
        parts = []
        for value in _ticks(self._highest):
            y = self.y(value)
            parts.append(f'<path class="grid" d="M{_LEFT:g} {y:.1f}H{_WIDTH - _RIGHT:g}"/>')
            parts.append(f'<text x="{_LEFT - 8:g}" y="{y + 4:.1f}" text-anchor="end">{value:.2g}</text>')
        for k in self._ks:
            parts.append(
                f'<text x="{self.x(k):.1f}" y="{_HEIGHT - _BOTTOM + 23:g}" text-anchor="middle">{k}</text>'
            )
        middle = (_LEFT + _WIDTH - _RIGHT) / 2
        parts.append(f'<text x="{middle:g}" y="{_HEIGHT - 6:g}" text-anchor="middle">k: most terms allowed</text>')
        return "".join(parts)


def _ticks(highest: float) -> list[float]:
    """Round numbers from zero up to the highest: steps of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(highest))
    step = next(unit * power for unit in (0.2, 0.5, 1, 2) if highest / (unit * power) <= 6)
    return [step * number for number in range(int(highest / step) + 1)]


def _series(frame: _Frame, name: str, ks: list[int], estimates: list["Estimate | None"]) -> str:
    known = [(frame.x(k), found) for k, found in zip(ks, estimates, strict=True) if found is not None]
    if not known:
        return ""
    upper = [f"{x:.1f} {frame.y(found.high):.1f}" for x, found in known]
    lower = [f"{x:.1f} {frame.y(found.low):.1f}" for x, found in reversed(known)]
    line = [f"{x:.1f} {frame.y(found.value):.1f}" for x, found in known]
    marks = "".join(_mark(name, x, frame.y(found.value)) for x, found in known)
    return (
        f'<g class="{name}"><path class="band" d="M{"L".join([*upper, *lower])}Z"/>'
        f'<path class="line" d="M{"L".join(line)}"/>{marks}</g>'
    )


def _key(name: str) -> str:
    line = '<path class="line" d="M0 6H32"/>'
    return f'<svg class="key {name}" viewBox="0 0 32 12" aria-hidden="true">{line}{_mark(name, 16, 6)}</svg>'


def _mark(name: str, x: float, y: float) -> str:
    if name == "fidelity":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    return f'<rect x="{x - 3.7:.1f}" y="{y - 3.7:.1f}" width="7.4" height="7.4"/>'
