"""Two groups of explained rows compared: shares of rows, and differences whose limits all hold together."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from anchorline._links import call
from anchorline.errors import ParameterError
from anchorline.guarantees import Estimate, estimate_share
from anchorline.result.explanation import Explanation
from anchorline.result.frames import frame_in
from anchorline.result.summary import by_attribute

KINDS = ("decision", "verdict", "adds", "lowers")  # what shares are about, in the order of the differences
_MAX_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A share of the rows of each of two groups, and by how much the second exceeds the first.

    ``kind`` is "decision" or "verdict", and ``name`` the decision or verdict; or "adds" or "lowers", and ``name``
    the attribute that raises or lowers the explained output of these rows.
    """

    kind: str
    name: str
    first: Estimate
    second: Estimate

    @property
    def value(self) -> float:
        """The measured difference, second minus first."""
        return self.second.value - self.first.value

    @property
    def low(self) -> float:
        """The lower limit of the difference."""
        return self.second.low - self.first.high

    @property
    def high(self) -> float:
        """The upper limit of the difference."""
        return self.second.high - self.first.low

    @property
    def is_clear(self) -> bool:
        """Whether the limits exclude zero."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The differences of two groups of explained rows; all limits hold together with ``confidence``.

    They are about the populations of which the rows of each group are independent draws. ``outputs`` are the
    explained outputs; if there are several, attributes add to or lower the output of each row's own explanation.
    """

    differences: tuple[Difference, ...]
    n_first: int
    n_second: int
    confidence: float
    outputs: tuple[str, ...]

    @property
    def clear(self) -> tuple[Difference, ...]:
        """The differences whose limits exclude zero, the largest first."""
        found = [each for each in self.differences if each.is_clear]
        return tuple(sorted(found, key=lambda each: -abs(each.value)))

    def to_frame(self, backend: Any = "pandas") -> Any:
        """Return a frame of the given backend: one row per difference."""
        columns: dict[str, list[Any]] = {
            name: [getattr(each, name) for each in self.differences]
            for name in ("kind", "name", "value", "low", "high")
        }
        columns["first"] = [each.first.value for each in self.differences]
        columns["second"] = [each.second.value for each in self.differences]
        return frame_in(backend, columns)

    def __str__(self) -> str:
        clear, total = self.clear, len(self.differences)
        lines = [
            f"{self.n_first:,} rows compared with {self.n_second:,}: {len(clear)} of {total} shares differ "
            f"clearly (limits hold together, {self.confidence:.0%})."
        ]
        lines += [sentence(each, self.outputs) for each in clear[:_MAX_SHOWN]]
        lines += [f"... and {len(clear) - _MAX_SHOWN} more"] if len(clear) > _MAX_SHOWN else []
        if len(self.outputs) > 1:
            names = call("printable", ", ".join(self.outputs))
            lines.append(
                f"Rows explain different outputs ({names}). Pass output= to the explainer to compare one."
            )
        return "\n".join(lines)


def sentence(difference: Difference, outputs: Sequence[str] = ()) -> str:
    """Return a difference in words; ``outputs`` are the explained ones."""
    name, own = call("printable", difference.name), "" if len(outputs) < 2 else " the row's own output"
    subject = {
        "decision": f"decision {name}",
        "verdict": f"verdict {name.lower()}",
        "adds": f"{name} adds{own and f' to{own}'}",
        "lowers": f"{name} lowers{own}",
    }[difference.kind]
    low, high = math.floor(100 * difference.low), math.ceil(100 * difference.high)  # never too narrow
    limits = f"{low:+} to {high:+}"
    if difference.is_clear and low * high <= 0:  # it must not seem to include zero
        limits = f"{math.floor(1000 * difference.low) / 10:+} to {math.ceil(1000 * difference.high) / 10:+}"
    return (
        f"{subject}: {difference.first.value:.0%} of the first rows, {difference.second.value:.0%} of the second "
        f"({100 * difference.value:+.0f} points, {limits})"
    )


def compare_groups(
    first: Sequence[Explanation], second: Sequence[Explanation], confidence: float = 0.95
) -> Comparison:
    r"""Return the differences of all shares of two groups; see `Explanations.compare`.

    Every one of the 2 M shares has an exact (Clopper-Pearson) interval of confidence
    :math:`1 - \delta / (2 M)`, with :math:`\delta = 1 - \text{confidence}`, so that all hold together, and with
    them all M differences.
    """
    for name, group in (("first", first), ("second", second)):
        if not group:
            raise ParameterError(
                f"The {name} group has no explanation, but a comparison needs one at least. Explain some of its "
                "rows first: explainer.explain_many(rows)"
            )
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence is {confidence!r}, but it must be between 0 and 1. Type 0.95.")
    counts = [
        Counter(share for explanation in group for share in _shares(explanation)) for group in (first, second)
    ]
    order = {kind: place for place, kind in enumerate(KINDS)}
    # Attributes that are a reason nowhere count too, so that the number of limits depends on no sum.
    subjects = {subject for explanation in (*first, *second) for subject in _subjects(explanation)}
    names = sorted(subjects | {*counts[0], *counts[1]}, key=lambda subject: (order[subject[0]], subject[1]))
    each = 1 - (1 - confidence) / (2 * len(names))
    return Comparison(
        differences=tuple(
            Difference(
                kind=kind,
                name=name,
                first=estimate_share(counts[0][kind, name], len(first), each),
                second=estimate_share(counts[1][kind, name], len(second), each),
            )
            for kind, name in names
        ),
        n_first=len(first),
        n_second=len(second),
        confidence=confidence,
        outputs=tuple(sorted({explanation.output for explanation in (*first, *second)})),
    )


def _shares(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """Yield the kinds and names of the shares that a row counts in, each once."""
    if explanation.certificate.decided is not None:
        yield "decision", explanation.certificate.decided
    yield "verdict", explanation.verdict.name
    for name, total in by_attribute(explanation).items():
        if total != 0:
            yield "adds" if total > 0 else "lowers", name


def _subjects(explanation: Explanation) -> Iterator[tuple[str, str]]:
    """Yield the shares that are measured because of this row, whatever its sum is."""
    for literal in explanation.literals:
        yield from (("adds", literal.name), ("lowers", literal.name))
