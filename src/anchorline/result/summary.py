"""Summary of many explanations: which attributes matter, how often and in which direction."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from anchorline.result.explanation import Explanation, Verdict

_WORST_FIRST = (
    *(Verdict.NOT_EXPLAINED, Verdict.UNDECIDED, Verdict.PARTLY_EXPLAINED),
    *(Verdict.EXPLAINED, Verdict.ROBUST),
)
_POOR = _WORST_FIRST[:3]
_MAX_SHOWN, _ROWS_SHOWN = 10, 5


@dataclass(frozen=True, slots=True)
class AttributeSummary:
    """How one attribute matters: its number of rows, the share of them in which it adds, its median size.

    ``facts`` are the statements about it in these rows with their counts, the most frequent first.
    """

    name: str
    n_rows: int
    adds: float
    typical_size: float
    facts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of many explanations.

    ``least_explained`` lists rows, the worst first: place, verdict, and the lower limit of what the facts achieve:
    the share of altered copies with the same decision, or R2. If the rows have ids, ``id`` is the name of their
    column, and ``ids`` are the ids of the listed rows by place.
    """

    n_rows: int
    failures: Mapping[str, int]
    verdicts: Mapping[str, int]
    attributes: tuple[AttributeSummary, ...]
    least_explained: tuple[tuple[int, str, float | None], ...]
    id: str | None = None
    ids: Mapping[int, Any] = field(default_factory=dict)

    @property
    def n_failed(self) -> int:
        """Number of rows without an explanation."""
        return sum(self.failures.values())

    def __str__(self) -> str:
        verdicts = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in self.verdicts.items())
        kinds = ", ".join(f"{_printable(name)} {count:,}" for name, count in self.failures.items())
        lines = [
            f"{self.n_rows - self.n_failed:,} rows explained, {self.n_failed:,} failed"
            f"{f' ({kinds})' if kinds else ''}{f'; verdicts: {verdicts}' if verdicts else ''}."
        ]
        shown = self.attributes[:_MAX_SHOWN]
        width = max([9, *(len(_printable(a.name)) for a in shown)])
        lines += [f"{'attribute':<{width}}  rows  share  adds  typical size  most often"] if shown else []
        for a in shown:
            share, (text, count) = a.n_rows / max(1, self.n_rows - self.n_failed), a.facts[0]
            lines.append(
                f"{_printable(a.name):<{width}}  {a.n_rows:>4}  {share:>5.0%}  {a.adds:>4.0%}  "
                f"{a.typical_size:>12.2f}  {_printable(text)} ({count})"
            )
        more = len(self.attributes) - len(shown)
        lines += [f"... and {more} more"] if more > 0 else []
        poor = {verdict.value for verdict in _POOR}
        worst = [self._shown(*entry) for entry in self.least_explained if entry[1] in poor][:_ROWS_SHOWN]
        of = "" if self.id is None else f" ({_printable(self.id)})"
        lines += [f"Least explained rows{of}: {', '.join(worst)}."] if worst else []
        return "\n".join(lines)

    def _shown(self, row: int, verdict: str, low: float | None) -> str:
        figure = "" if low is None else f", at least {max(0.0, low):.0%}"
        return _printable(f"{self.ids.get(row, row)!s:.60} ({verdict.replace('_', ' ')}{figure})")


def summarize(
    explained: Iterable[tuple[int, Explanation, list[str]]],
    failures: Iterable[str],
    id: str | None = None,
    ids: Mapping[int, Any] | None = None,
) -> Summary:
    """Count attributes, signs and verdicts over rows with their explanations and the texts of their facts."""
    sizes: dict[str, list[float]] = defaultdict(list)
    texts: dict[str, Counter[str]] = defaultdict(Counter)
    judged: list[tuple[int, float, int, str, float | None]] = []
    for row, entry, facts in explained:
        for fact, text, contribution in zip(entry.facts, facts, entry.contributions.tolist(), strict=True):
            sizes[fact.attribute].append(contribution)
            texts[fact.attribute][text] += 1
        achieved = entry.holds if entry.holds is not None else entry.fit
        low = None if achieved is None else achieved.low
        judged.append(
            (_WORST_FIRST.index(entry.verdict), 1.0 if low is None else low, row, entry.verdict.value, low)
        )
    attributes = [
        AttributeSummary(
            name=name,
            n_rows=len(values),
            adds=sum(value > 0 for value in values) / len(values),
            typical_size=median(map(abs, values)),
            facts=tuple(texts[name].most_common()),
        )
        for name, values in sizes.items()
    ]
    judged.sort()
    failed = Counter(failures)
    listed = tuple((row, verdict, low) for _, _, row, verdict, low in judged[:_MAX_SHOWN])
    return Summary(
        n_rows=len(judged) + failed.total(),
        failures=dict(failed.most_common()),
        verdicts=dict(Counter(entry[3] for entry in judged).most_common()),
        attributes=tuple(sorted(attributes, key=lambda a: (-a.n_rows, -a.typical_size, a.name))),
        least_explained=listed,
        id=id,
        ids={} if ids is None else {row: ids[row] for row, *_ in listed},
    )


def _printable(text: str) -> str:
    from anchorline.render.characters import printable

    return printable(text)
