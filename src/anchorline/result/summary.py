"""Summary of many explanations: which attributes matter, how often and in which direction."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from anchorline._links import call
from anchorline.result.certificate import Certificate, Verdict
from anchorline.result.explanation import Explanation
from anchorline.result.records import Failure

# The worst first.
SEVERITY = (
    *(Verdict.UNRELIABLE, Verdict.WEAK, Verdict.UNDECIDED),
    *(Verdict.UNKNOWN, Verdict.ROBUST, Verdict.TRUSTWORTHY),
)
_MAX_SHOWN = 10


@dataclass(frozen=True, slots=True)
class AttributeSummary:
    """How one attribute matters: its number of rows, the share of them in which it adds, its median size.

    If several terms of a row are about the attribute, their sum counts. ``literals`` are its statements in these
    rows with their counts, the most frequent first.
    """

    name: str
    n_rows: int
    adds: float
    typical_size: float
    literals: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of many explanations.

    ``least_trustworthy`` lists rows, the worst first: place, verdict, and how often the output may change although
    the reasons stay, by the bad end of its interval. If the rows have ids, ``id`` is the name of their column, and
    ``ids`` are the ids of the listed rows by place.
    """

    n_rows: int
    failures: Mapping[str, int]
    verdicts: Mapping[str, int]
    attributes: tuple[AttributeSummary, ...]
    least_trustworthy: tuple[tuple[int, str, float | None], ...]
    id: str | None = None
    ids: Mapping[int, Any] = field(default_factory=dict)

    @property
    def n_failed(self) -> int:
        """Number of rows without an explanation."""
        return sum(self.failures.values())

    def __str__(self) -> str:
        verdicts = ", ".join(f"{count:,} {name.lower()}" for name, count in self.verdicts.items())
        kinds = ", ".join(f"{_printable(name)} {count:,}" for name, count in self.failures.items())
        lines = [
            f"{self.n_rows - self.n_failed:,} rows explained, {self.n_failed:,} failed"
            f"{f' ({kinds})' if kinds else ''}{f'; verdicts on the explanations: {verdicts}' if verdicts else ''}."
        ]
        shown = self.attributes[:_MAX_SHOWN]
        width = max([9, *(len(_printable(a.name)) for a in shown)])
        lines += [f"{'attribute':<{width}}  rows  share  adds  typical size  most often"] if shown else []
        for a in shown:
            share, (text, count) = a.n_rows / max(1, self.n_rows - self.n_failed), a.literals[0]
            lines.append(
                f"{_printable(a.name):<{width}}  {a.n_rows:>4}  {share:>5.0%}  {a.adds:>4.0%}  "
                f"{a.typical_size:>12.2f}  {_printable(text)} ({count})"
            )
        more = len(self.attributes) - len(shown)
        lines += [f"... and {more} more"] if more > 0 else []
        worst = [entry for entry in self.least_trustworthy if entry[1] in ("UNRELIABLE", "WEAK", "UNDECIDED")][:5]
        if worst:
            rows = ", ".join(f"{self._shown(row)} ({name.lower()}, {figure:.0%})" for row, name, figure in worst)
            of = "" if self.id is None else f" ({_printable(self.id)})"
            lines.append(f"Rows with the least trustworthy explanations{of}: {rows}.")
        return "\n".join(lines)

    def _shown(self, row: int) -> str:
        return _printable(f"{self.ids.get(row, row)!s:.60}")


def summarize(entries: Iterable[tuple[int, Explanation | Failure]]) -> Summary:
    """Count attributes, signs, verdicts and failures over (row, entry) pairs, one explanation at a time."""
    contributions: dict[str, list[float]] = defaultdict(list)
    texts: dict[str, Counter[str]] = defaultdict(Counter)
    failures: Counter[str] = Counter()
    judged: list[tuple[int, float, int, str, float | None]] = []
    for row, entry in entries:
        if isinstance(entry, Failure):
            failures[entry.error_type] += 1
            continue
        for term in entry.terms:
            texts[term.literal.name][term.literal.text] += 1
        for name, total in by_attribute(entry).items():
            contributions[name].append(total)
        worst = worst_change(entry.certificate)
        judged.append((SEVERITY.index(entry.verdict), -(worst or 0.0), row, entry.verdict.name, worst))
    attributes = [_attribute(name, values, texts[name]) for name, values in contributions.items()]
    attributes.sort(key=lambda a: (-a.n_rows, -a.typical_size, a.name))
    judged.sort()
    return Summary(
        n_rows=len(judged) + failures.total(),
        failures=dict(failures.most_common()),
        verdicts=dict(Counter(entry[3] for entry in judged).most_common()),
        attributes=tuple(attributes),
        least_trustworthy=tuple((row, verdict, worst) for _, _, row, verdict, worst in judged[:_MAX_SHOWN]),
    )


def by_attribute(explanation: Explanation) -> dict[str, float]:
    """Return what the terms about each attribute add together."""
    totals: dict[str, float] = {}
    for term in explanation.terms:
        totals[term.literal.name] = totals.get(term.literal.name, 0.0) + term.contribution
    return totals


def _attribute(name: str, values: list[float], texts: Counter[str]) -> AttributeSummary:
    return AttributeSummary(
        name=name,
        n_rows=len(values),
        adds=sum(value > 0 for value in values) / len(values),
        typical_size=median(abs(value) for value in values),
        literals=tuple(texts.most_common()),
    )


def worst_change(certificate: Certificate) -> float | None:
    """Return how often the output may change although the reasons stay, by the bad end of the interval.

    It is None if that was not measured.
    """
    return None if certificate.stability is None else 1 - certificate.stability.low


def _printable(text: str) -> str:
    return str(call("printable", text))
