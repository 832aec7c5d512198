"""Explanations: many rows' answers in order, failures among them, and what they have in common."""

import dataclasses
import hashlib
import json
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from statistics import median
from typing import Any, overload

from anchorline.errors import ParameterError
from anchorline.result.explanation import Certificate, Explanation, Verdict
from anchorline.result.frames import frame_in

# What is told of a row in every frame and file, with its type; all may be missing but the key.
COLUMNS = {
    "key": "text",
    "output": "text",
    "prediction": "number",
    "intercept": "number",
    "rule": "text",
    "verdict": "text",
    "status": "text",
    "relevance_error": "number",
    "stability": "number",
    "error_type": "text",
    "error": "text",
    "explanation": "text",
}
Record = dict[str, Any]
_SEVERITY = (Verdict.UNRELIABLE, Verdict.WEAK, Verdict.UNKNOWN, Verdict.TRUSTWORTHY)
_MAX_SHOWN = 10


@dataclasses.dataclass(frozen=True, slots=True)
class Failure:
    """A row that has no explanation, and why."""

    row: int
    error: str
    error_type: str = "Exception"

    def __str__(self) -> str:
        return f"Row {self.row} has no explanation. {self.error_type}: {self.error}"


class Explanations(Sequence["Explanation | Failure"]):
    """Many rows' explanations, in order; a row that failed is a `Failure`.

    Explanations that came from other processes are read when they are looked at, and kept if asked for by
    number. Slices are `Explanations` again; ``row`` of a failure and of a frame's column is the row's place
    in the whole.

    Examples
    --------
    >>> import anchorline as al
    >>> explainer = al.Explainer(lambda z: 0.5 * z[:, 0] + 0.25 * z[:, 1] * z[:, 2], al.Hypercube(["a", "b", "c"]))
    >>> many = explainer.explain_many([[1, 1, 1], [-1, 1, -1], [1, 0, 1]], k=2, errors="keep")
    >>> many
    Explanations(2 rows explained, 1 failed)
    >>> many[1].terms[0].literal.text
    'a = -1'
    >>> many[2].error_type
    'InstanceError'
    """

    def __init__(self, entries: Iterable["Explanation | Failure"] = ()) -> None:
        entries = list(entries)
        rows = enumerate(entries)
        self._records: tuple[Record, ...] = tuple({"row": i, **record_of(entry)} for i, entry in rows)
        self._read: dict[int, Explanation] = {
            i: entry for i, entry in enumerate(entries) if isinstance(entry, Explanation)
        }

    @classmethod
    def of_records(cls, records: Iterable[Mapping[str, Any]]) -> "Explanations":
        """Of the records that workers and files hold: a row's place, and `COLUMNS`."""
        many = cls()
        many._records = tuple(dict(record) for record in records)
        return many

    @property
    def records(self) -> tuple[Record, ...]:
        """What is told of every row: its place, and `COLUMNS`; copies."""
        return tuple(dict(record) for record in self._records)

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_read": {}}  # read again from the records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> "Explanation | Failure": ...
    @overload
    def __getitem__(self, index: slice) -> "Explanations": ...
    def __getitem__(self, index: int | slice) -> "Explanation | Failure | Explanations":
        if isinstance(index, slice):
            part = Explanations.of_records(self._records[index])
            places = enumerate(range(*index.indices(len(self))))
            part._read = {new: self._read[old] for new, old in places if old in self._read}
            return part
        place = range(len(self))[index]
        entry = self._entry(place)
        if isinstance(entry, Explanation):
            self._read[place] = entry
        return entry

    def __iter__(self) -> Iterator["Explanation | Failure"]:
        return map(self._entry, range(len(self)))  # nothing is kept: there may be a million

    def _entry(self, place: int) -> "Explanation | Failure":
        record = self._records[place]
        if record["error_type"] is not None:
            return Failure(record["row"], record["error"], record["error_type"])
        return self._read.get(place) or Explanation.from_json(record["explanation"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Explanations) and self._records == other._records

    def __hash__(self) -> int:
        return hash(tuple(record["explanation"] or record["error"] for record in self._records))

    def __repr__(self) -> str:
        n_failed = len(self.failures)
        return f"Explanations({len(self) - n_failed:,} rows explained, {n_failed:,} failed)"

    @property
    def explained(self) -> "Explanations":
        """The rows that have an explanation."""
        return self._where(lambda record: record["error_type"] is None)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The rows that have none, and why."""
        failed = (record for record in self._records if record["error_type"] is not None)
        return tuple(Failure(record["row"], record["error"], record["error_type"]) for record in failed)

    def _where(self, wanted: Callable[[Record], bool]) -> "Explanations":
        places = [i for i, record in enumerate(self._records) if wanted(record)]
        part = Explanations.of_records(self._records[i] for i in places)
        part._read = {new: self._read[old] for new, old in enumerate(places) if old in self._read}
        return part

    def to_frame(self, backend: Any = "pandas", *, by: str = "row") -> Any:
        """A frame of the given backend: one row a row explained, or (``by="term"``) one a term.

        Examples
        --------
        >>> import anchorline as al
        >>> many = al.Explainer(lambda z: 0.5 * z[:, 0], al.Hypercube(["a", "b"])).explain_many([[1, 1], [-1, 1]])
        >>> many.to_frame("polars", by="term").select("row", "literal", "contribution").rows()
        [(0, 'a = +1', 0.5), (1, 'a = -1', -0.5)]
        """
        if by == "row":
            return frame_of(self._records, ["row"], backend)
        if by != "term":
            raise ParameterError(f"by is {by!r}; needed 'row' or 'term'.")
        terms = [
            (record["row"], record["key"], term.literal.name, term.literal.text, term.contribution)
            for record, entry in zip(self._records, self, strict=True)
            if isinstance(entry, Explanation)
            for term in entry.terms
        ]
        names = {"row": "place", "key": "text", "name": "text", "literal": "text", "contribution": "number"}
        return frame_in(backend, {name: [term[j] for term in terms] for j, name in enumerate(names)}, names)

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write `to_frame` as a Parquet file, whole or not at all."""
        from anchorline.batch.parquet import write_parquet  # noqa: PLC0415  stands above

        write_parquet(path, self._records)

    @classmethod
    def from_parquet(cls, path: str | PathLike[str]) -> "Explanations":
        """Read what `to_parquet` or ``anchorline batch`` wrote; `FormatError` if it is anything else."""
        from anchorline.batch.parquet import read_parquet  # noqa: PLC0415  stands above

        return cls.of_records(read_parquet(path))

    def summary(self) -> "Summary":
        """Which attributes matter, how often, with which sign and size; the least trustworthy rows.

        Examples
        --------
        >>> import anchorline as al
        >>> rate = lambda z: 0.5 * z[:, 0] - 0.25 * z[:, 1]
        >>> explainer = al.Explainer(rate, al.Hypercube(["income", "debt", "owner"]))
        >>> print(explainer.explain_many([[1, 1, 1], [1, -1, 1], [-1, 1, 1]], k=3).summary())
        3 rows explained, 0 failed; 3 trustworthy.
        attribute  rows  share  adds  typical size  most often
        income        3   100%   67%          0.50  income = +1 (2)
        debt          3   100%   33%          0.25  debt = +1 (2)
        """
        return summarize(self)


@dataclasses.dataclass(frozen=True, slots=True)
class AttributeSummary:
    """How one attribute matters: in how many rows, in which share of them it adds, its median size.

    ``literals`` are its statements in these rows, with their numbers, the most frequent first.
    """

    name: str
    n_rows: int
    adds: float
    typical_size: float
    literals: tuple[tuple[str, int], ...]


@dataclasses.dataclass(frozen=True, slots=True)
class Summary:
    """What many explanations have in common.

    ``least_trustworthy`` holds rows, the worst first: place, verdict, and how often or how far (as a share
    of the output range) the output may change although the reasons stay, by the bad end of its interval.
    """

    n_rows: int
    failures: Mapping[str, int]
    verdicts: Mapping[str, int]
    attributes: tuple[AttributeSummary, ...]
    least_trustworthy: tuple[tuple[int, str, float | None], ...]

    @property
    def n_failed(self) -> int:
        """Rows without an explanation."""
        return sum(self.failures.values())

    def __str__(self) -> str:
        from anchorline.render.text import printable  # noqa: PLC0415  pictures come after

        verdicts = ", ".join(f"{count:,} {name.lower()}" for name, count in self.verdicts.items())
        kinds = ", ".join(f"{printable(name)} {count:,}" for name, count in self.failures.items())
        lines = [
            f"{self.n_rows - self.n_failed:,} rows explained, {self.n_failed:,} failed"
            f"{f' ({kinds})' if kinds else ''}{f'; {verdicts}' if verdicts else ''}."
        ]
        shown = self.attributes[:_MAX_SHOWN]
        width = max([9, *(len(printable(a.name)) for a in shown)])
        lines += [f"{'attribute':<{width}}  rows  share  adds  typical size  most often"] if shown else []
        for a in shown:
            share, (text, count) = a.n_rows / max(1, self.n_rows - self.n_failed), a.literals[0]
            lines.append(
                f"{printable(a.name):<{width}}  {a.n_rows:>4}  {share:>5.0%}  {a.adds:>4.0%}  "
                f"{a.typical_size:>12.2f}  {printable(text)} ({count})"
            )
        more = len(self.attributes) - len(shown)
        lines += [f"... and {more} more"] if more > 0 else []
        worst = [entry for entry in self.least_trustworthy if entry[1] in ("UNRELIABLE", "WEAK")][:5]
        if worst:
            told = ", ".join(f"{row} ({verdict.lower()}, {figure:.0%})" for row, verdict, figure in worst)
            lines.append(f"Least trustworthy rows: {told}.")
        return "\n".join(lines)


def summarize(many: Iterable["Explanation | Failure"]) -> Summary:
    """Count attributes, signs, verdicts and failures, one explanation at a time."""
    found: dict[str, list[float]] = defaultdict(list)
    texts: dict[str, Counter[str]] = defaultdict(Counter)
    failures: Counter[str] = Counter()
    judged: list[tuple[int, float, int, str, float | None]] = []
    entries = many if isinstance(many, Explanations) else Explanations(many)
    for record, entry in zip(entries._records, entries, strict=True):
        if isinstance(entry, Failure):
            failures[entry.error_type] += 1
            continue
        for term in entry.terms:
            found[term.literal.name].append(term.contribution)
            texts[term.literal.name][term.literal.text] += 1
        worst = worst_change(entry.certificate)
        judged.append((_SEVERITY.index(entry.verdict), -(worst or 0.0), record["row"], entry.verdict.name, worst))
    attributes = [
        AttributeSummary(
            name=name,
            n_rows=len(values),
            adds=sum(value > 0 for value in values) / len(values),
            typical_size=median(abs(value) for value in values),
            literals=tuple(texts[name].most_common()),
        )
        for name, values in found.items()
    ]
    attributes.sort(key=lambda a: (-a.n_rows, -a.typical_size, a.name))
    judged.sort()
    return Summary(
        n_rows=len(entries),
        failures=dict(failures.most_common()),
        verdicts=dict(Counter(entry[3] for entry in judged).most_common()),
        attributes=tuple(attributes),
        least_trustworthy=tuple((row, verdict, worst) for _, _, row, verdict, worst in judged[:_MAX_SHOWN]),
    )


def worst_change(certificate: Certificate) -> float | None:
    """How often, or how far as a share of the output range, the output may change although the reasons stay."""
    if certificate.stability is not None:
        return 1 - certificate.stability.low
    return None if certificate.relevance_error is None else math.sqrt(certificate.relevance_error.high)


def record_of(entry: "Explanation | Failure") -> Record:
    """What is told of one row: `COLUMNS`."""
    if isinstance(entry, Failure):
        return failed_record(None, entry.error_type, entry.error)
    from anchorline.render.text import rule  # noqa: PLC0415  pictures come after

    certificate = entry.certificate
    return {
        "key": content_key(entry.instance),
        "output": _clean(entry.output),
        "prediction": entry.prediction,
        "intercept": entry.intercept,
        "rule": _clean(rule(entry)),
        "verdict": entry.verdict.name,
        "status": certificate.status.name,
        "relevance_error": None if certificate.relevance_error is None else certificate.relevance_error.value,
        "stability": None if certificate.stability is None else certificate.stability.value,
        "error_type": None,
        "error": None,
        "explanation": entry.to_json(),
    }


def failed_record(key: str | None, error_type: str, error: str) -> Record:
    """What is told of a row without explanation."""
    record = dict.fromkeys(COLUMNS)
    return record | {"key": key, "error_type": _clean(error_type), "error": _clean(error)}


def content_key(values: Iterable[Any]) -> str:
    """A row's identity by its plain values: the same wherever and in whatever order it is met."""
    return hashlib.sha256(json.dumps(list(values), default=str).encode()).hexdigest()[:32]


def frame_of(records: Sequence[Mapping[str, Any]], first: Sequence[str], backend: Any) -> Any:
    """Records as a frame of typed columns: those of ``first`` (places), then `COLUMNS`."""
    names = dict.fromkeys(first, "place") | COLUMNS
    return frame_in(backend, {name: [record[name] for record in records] for name in names}, names)


def _clean(text: str) -> str:
    """A text that every file can hold: half a surrogate pair becomes its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
