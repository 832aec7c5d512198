"""Two records of the same case, figure by figure."""

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from anchorline.result.explanation import Explanation
from anchorline.result.rule import Rule
from anchorline.result.verification import Reason

ROUNDING = 1e-9  # computed figures may differ by this, relative to their size, or to that of what they measure
_LAST_BITS = 1e-12  # of outputs: what rounding may add to differences of outputs, which may be much smaller
_LEFT_OPEN = 1e-3  # of the variance: which bound a search proves within this depends on ties, and so on rounding
# What follows from the rest, and what is repeated.
_NO_FIGURE = re.compile(r"^(sha256|versions|output\.choices)\b")
_COMPUTED = re.compile(
    r"^(prediction|base|contributions|effects|fit|proof|holds|holds_drawn|holds_law|all|output\.(low|high|spread"
    r"|runner_up)|alternatives\[\d+\]\.(contributions|objective)|within|coverage|strips\[\d+\]\.(shares|stays|missing))\b"
)
_IN_OUTPUT_UNITS = re.compile(
    r"^(prediction|base|contributions|effects|output|within|fit\.(error|baseline|mean_output))|\.contributions\b"
)
_SQUARED = re.compile(r"^proof|\.objective$")


Reproduced = Explanation | Rule
"""Records that are made again from their settings, and compared."""


def differences(stated: Reproduced, found: Reproduced) -> list[Reason]:
    """Return every figure that differs, by its place in the JSON; numbers that were computed up to rounding."""
    ours, own = leaves_of(stated.to_json()), leaves_of(found.to_json())
    outputs, drops = [found.prediction], [0.0]
    if isinstance(stated, Explanation) and isinstance(found, Explanation):
        outputs += [found.base]
        drops += [*found.effects.tolist(), *([] if found.fit is None else [found.fit.baseline])]
        bounds = stated.proof.lower_bound, found.proof.lower_bound
        if abs(bounds[0] - bounds[1]) <= _LEFT_OPEN * found.proof.variance:
            ours["proof.lower_bound"] = own["proof.lower_bound"]
    scale = _Scale(max(map(abs, outputs)), max(map(abs, drops)))
    return [
        Reason("differs", where, ours.get(where), own.get(where))
        for where in sorted(ours.keys() | own.keys())
        if where not in ours or where not in own or not _same(where, ours[where], own[where], scale)
    ]


@dataclass(frozen=True, slots=True)
class _Scale:
    """The largest output, and the largest difference of outputs, as the verifier finds them."""

    output: float
    drop: float

    def tolerance(self, where: str) -> float:
        """Return by how much rounding may change a figure, whatever its size: shares, outputs, or squares."""
        of_drops = ROUNDING * self.drop + _LAST_BITS * self.output
        if _SQUARED.search(where):
            return of_drops * self.drop
        return of_drops if _IN_OUTPUT_UNITS.search(where) else ROUNDING


def leaves_of(text: str) -> dict[str, Any]:
    """Return every figure of a record by its place: ``{"facts[0].low": 21.5, ...}``.

    Examples
    --------
    >>> leaves_of('{"holds": {"value": 0.9}, "effects": [1.5], "sha256": "0"}')
    {'holds.value': 0.9, 'effects[0]': 1.5}
    """
    return {where: value for where, value in _flat("", json.loads(text)) if not _NO_FIGURE.search(where)}


def _flat(where: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for name, below in value.items():
            key = name if name.isidentifier() else json.dumps(name)  # no other key looks like a place in a list
            yield from _flat(f"{where}.{key}" if where else key, below)
    elif isinstance(value, list) and value:
        for place, below in enumerate(value):
            yield from _flat(f"{where}[{place}]", below)
    else:
        yield where, value


def _same(where: str, stated: Any, found: Any, scale: _Scale) -> bool:
    """Return whether two values are equal; a float that was computed up to rounding, in its own units."""
    if not (isinstance(stated, float) and isinstance(found, float) and _COMPUTED.search(where)):
        return type(stated) is type(found) and bool(stated == found)  # 1 is not 1.0, which is printed otherwise
    return math.isclose(stated, found, rel_tol=ROUNDING, abs_tol=scale.tolerance(where))
