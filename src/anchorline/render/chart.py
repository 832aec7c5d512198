"""A chart of errors over k as inline SVG, drawn in the colors of the page and described in words."""

import html
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anchorline.guarantees import Estimate
    from anchorline.render.frontier_like import FrontierLike

_WIDTH, _HEIGHT = 640.0, 272.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 12.0, 14.0, 56.0
BEYOND_AXIS = "; some extend beyond the axis"
_MAX_BAND = 3.0  # the axis ends at this multiple of the highest point of the curves, even if bands are taller


def frontier_chart(frontier: "FrontierLike") -> str:
    """Return an SVG figure of fidelity error (solid, round) and relevance error (dashed, square) with bands."""
    ks = [point.k for point in frontier.points]
    series = {
        "fidelity": [point.fidelity_error for point in frontier.points],
        "relevance": [point.relevance_error for point in frontier.points],
    }
    highest, cuts_bands = axis_end(frontier)
    frame = _Frame(ks, highest)
    curves = "".join(_series(frame, name, ks, estimates) for name, estimates in series.items())
    warnings = "".join(f" {html.escape(warning)}" for warning in frontier.warnings)
    return (
        f'<figure class="frontier"><svg viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
        f'aria-label="{html.escape(_description(frontier), quote=True)}">{frame.axes()}{curves}</svg>'
        f'<figcaption class="note">{_key("fidelity")} fidelity error of the sum. '
        f"{_key('relevance')} relevance error while the reasons stay. "
        "Errors are mean squares, with the output scaled to [\u22121, +1]. All bands hold together with "
        f"{100 * frontier.confidence:g}% confidence{BEYOND_AXIS if cuts_bands else ''}.{warnings}"
        "</figcaption></figure>"
    )


def axis_end(frontier: "FrontierLike") -> tuple[float, bool]:
    """Return the largest error on the axis, and whether bands extend beyond it.

    Very wide bands are cut off, because on an axis that shows them in full the curves would look flat.
    """
    pairs = ((point.fidelity_error, point.relevance_error) for point in frontier.points)
    estimates = [estimate for pair in pairs for estimate in pair if estimate is not None]
    curves = max((estimate.value for estimate in estimates), default=0.0)
    bands = max((estimate.high for estimate in estimates), default=0.0)
    highest = (min(bands, _MAX_BAND * curves) if curves else bands) or 1.0
    return highest, bands > highest


def _description(frontier: "FrontierLike") -> str:
    points = [
        f"k = {point.k}: fidelity error {_value(point.fidelity_error)}, "
        f"relevance error {_value(point.relevance_error)}"
        for point in frontier.points
    ]
    return "Errors over k. " + "; ".join(points) + "."


def _value(estimate: "Estimate | None") -> str:
    return "not measured" if estimate is None else f"{estimate.value:.3g}"


class _Frame:
    """The coordinates of values on the drawing, and the axes around them."""

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
        """Return a few faint grid lines with their values, every k, and the label of the axis."""
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
        parts.append(
            f'<text x="{middle:g}" y="{_HEIGHT - 6:g}" text-anchor="middle">k: maximum number of terms</text>'
        )
        return "".join(parts)


def _ticks(highest: float) -> list[float]:
    """Return round numbers from zero up to ``highest``, in steps of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(highest))
    step = next(unit * power for unit in (0.2, 0.5, 1, 2) if highest / (unit * power) <= 6)
    return [step * number for number in range(int(highest / step) + 1)]


def _series(frame: _Frame, name: str, ks: list[int], estimates: list["Estimate | None"]) -> str:
    measured = [(frame.x(k), one) for k, one in zip(ks, estimates, strict=True) if one is not None]
    if not measured:
        return ""
    upper = [f"{x:.1f} {frame.y(estimate.high):.1f}" for x, estimate in measured]
    lower = [f"{x:.1f} {frame.y(estimate.low):.1f}" for x, estimate in reversed(measured)]
    line = [f"{x:.1f} {frame.y(estimate.value):.1f}" for x, estimate in measured]
    marks = "".join(_mark(name, x, frame.y(estimate.value)) for x, estimate in measured)
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
