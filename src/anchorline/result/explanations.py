"""Explanations: the answers for many rows, in order, with failures among them, and one record per row."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from statistics import median
from typing import Any, overload

from anchorline.errors import ParameterError
from anchorline.result.explanation import Explanation, Verdict
from anchorline.result.frames import RowIds, clean_text, labeled_frame
from anchorline.result.reasons import Reasons
from anchorline.result.rule import Rule, Rules

# Columns of every frame and file of explanations that are figures, with their places in the JSON and their types.
FIGURES = {
    "output": ("output.name", "text"),
    "decision": ("output.decision", "text"),
    "prediction": ("prediction", "number"),
    "base": ("base", "number"),
    "verdict": ("verdict", "text"),
    "holds": ("holds.value", "number"),
    "holds_low": ("holds.low", "number"),
    "all": ("all.value", "number"),
    "r2": ("fit.r2", "number"),
    "status": ("proof.status", "text"),
    "queries": ("queries.total", "number"),
}
# All columns with their types; only the key is never missing.
COLUMNS = {
    "key": "text",
    **{name: kind for name, (_, kind) in FIGURES.items()},
    "facts": "text",
    "error_type": "text",
    "error": "text",
    "explanation": "text",
}
# Further columns of frames and files with rules: the facts of the rule, three of its figures, and its sealed JSON.
RULE_FIGURES = {
    "rule_verdict": ("verdict", "text"),
    "rule_holds_low": ("holds.low", "number"),
    "rule_coverage": ("coverage", "number"),
}
RULE_COLUMNS = {"rule_facts": "text", **{name: kind for name, (_, kind) in RULE_FIGURES.items()}, "rule": "text"}
# Further columns with reasons: their codes, or attributes if there are none, what is close, and their sealed JSON.
REASON_COLUMNS = {"reason_codes": "text", "reason_near_ties": "text", "reasons": "text"}
# The columns of a frame with one row per fact.
FACT_COLUMNS = {
    "row": "place",
    "key": "text",
    "attribute": "text",
    "fact": "text",
    "contribution": "number",
    "effect": "number",
}
Record = dict[str, Any]
WORST_FIRST = (
    *(Verdict.NOT_EXPLAINED, Verdict.UNDECIDED, Verdict.PARTLY_EXPLAINED),
    *(Verdict.EXPLAINED, Verdict.ROBUST),
)
_MAX_LISTED = 10  # rows in a summary
_NO_RULES = "The rows were explained without rules. Type explain_many(frame, rule=True)."


@dataclass(frozen=True, slots=True)
class Failure:
    """A row that has no explanation, and the error that prevented one."""

    row: int
    error: str
    error_type: str = "Exception"
    label: str | None = field(default=None, repr=False)  # the row's own id, such as "case 17"

    def __str__(self) -> str:
        row = f"Row {self.row}" if self.label is None else f"Row {self.row} ({self.label})"
        return f"{row} has no explanation. {self.error_type}: {self.error}"


def record_of(entry: Explanation | Failure) -> Record:
    """Return the record of one row: `COLUMNS`."""
    if isinstance(entry, Failure):
        return failed_record(None, entry.error_type, entry.error)
    text = entry.to_json()
    body = json.loads(text)
    figures = {"key": content_key(body["instance"]), "facts": _joined_facts(entry), "explanation": text}
    return dict.fromkeys(COLUMNS) | _figures(body, FIGURES) | figures


def rule_record(rule: Rule | None) -> Record:
    """Return `RULE_COLUMNS` of one row; all are missing if it failed."""
    if rule is None:
        return dict.fromkeys(RULE_COLUMNS)
    text = rule.to_json()
    return {"rule_facts": _joined_facts(rule), **_figures(json.loads(text), RULE_FIGURES), "rule": text}


def reason_record(reasons: Reasons | None) -> Record:
    """Return `REASON_COLUMNS` of one row; all are missing if it failed, or if its decision is favorable."""
    if reasons is None:
        return dict.fromkeys(REASON_COLUMNS)
    codes = "; ".join(reason.code or reason.attribute for reason in reasons)
    ties = clean_text("; ".join(reasons.near_ties))
    return {"reason_codes": clean_text(codes), "reason_near_ties": ties, "reasons": reasons.to_json()}


def _figures(body: Any, places: Mapping[str, tuple[str, str]]) -> Record:
    record: Record = {}
    for name, (place, kind) in places.items():
        value = body
        for step in place.split("."):
            value = None if value is None else value[step]
        record[name] = clean_text(str(value)) if kind == "text" and value is not None else value
    return record


def _joined_facts(result: Explanation | Rule) -> str:
    return clean_text("; ".join(_fact_texts(result)))


def _fact_texts(result: Explanation | Rule) -> list[str]:
    from anchorline.render.statements import fact_text

    return [fact_text(fact, result.space) for fact in result.facts]


def failed_record(key: str | None, error_type: str, error: str) -> Record:
    """Return the record of a row that has no explanation."""
    record = dict.fromkeys(COLUMNS)
    return record | {"key": key, "error_type": clean_text(error_type), "error": clean_text(error)}


def content_key(values: Iterable[Any]) -> str:
    """Return the identity of a row by its plain values, which does not depend on its place."""
    return hashlib.sha256(json.dumps(list(values), default=str).encode()).hexdigest()[:32]


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
        from anchorline.render.text import summary_text

        return summary_text(self)


def summarize(
    explained: Iterable[tuple[int, Explanation]],
    failures: Iterable[str],
    id: str | None = None,
    ids: Mapping[int, Any] | None = None,
) -> Summary:
    """Count attributes, signs and verdicts over rows with their explanations; failures are types of errors."""
    sizes: dict[str, list[float]] = defaultdict(list)
    texts: dict[str, Counter[str]] = defaultdict(Counter)
    judged: list[tuple[int, float, int, str, float | None]] = []
    for row, entry in explained:
        for fact, text, contribution in zip(
            entry.facts, _fact_texts(entry), entry.contributions.tolist(), strict=True
        ):
            sizes[fact.attribute].append(contribution)
            texts[fact.attribute][text] += 1
        achieved = entry.holds if entry.holds is not None else entry.fit
        low = None if achieved is None else achieved.low
        judged.append(
            (WORST_FIRST.index(entry.verdict), 1.0 if low is None else low, row, entry.verdict.value, low)
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
    listed = tuple((row, verdict, low) for _, _, row, verdict, low in judged[:_MAX_LISTED])
    return Summary(
        n_rows=len(judged) + failed.total(),
        failures=dict(failed.most_common()),
        verdicts=dict(Counter(entry[3] for entry in judged).most_common()),
        attributes=tuple(sorted(attributes, key=lambda a: (-a.n_rows, -a.typical_size, a.name))),
        least_explained=listed,
        id=id,
        ids={} if ids is None else {row: ids[row] for row, *_ in listed},
    )


class Explanations(Sequence["Explanation | Failure"]):
    """The explanations of many rows, in order; a row that failed is a `Failure`.

    Explanations are parsed when they are accessed, and kept if they are accessed by index. A slice is an
    `Explanations` object too; the ``row`` of a failure and of a frame is the row's place in the whole. The index
    of a pandas frame and the column ``id`` of `anchorline.Explainer.explain_many` are kept.

    Examples
    --------
    >>> from anchorline.explainer import Explainer
    >>> from anchorline.spaces.hypercube import Hypercube
    >>> explainer = Explainer(lambda z: 0.5 * z[:, 0], Hypercube(["a", "b", "c"]))
    >>> many = explainer.explain_many([[1, 1, 1], [-1, 1, -1], [1, 0, 1]], k=2, errors="keep")
    >>> many
    Explanations(2 rows explained, 1 failed)
    >>> many.to_frame()["facts"].tolist()[:2]
    ['a = +1', 'a = -1']
    >>> many[2].error_type
    'InstanceError'
    """

    _ids: RowIds | None = None
    _index: Any = None

    def __init__(self, entries: Iterable["Explanation | Failure"] = ()) -> None:
        self._records: tuple[Record, ...] = tuple(
            {"row": place, **record_of(entry)} for place, entry in enumerate(entries)
        )
        self._read: dict[int, Explanation] = {}

    @classmethod
    def from_records(
        cls, records: Iterable[Mapping[str, Any]], ids: RowIds | None = None, index: Any = None
    ) -> "Explanations":
        """Build from the records that workers and files hold: a row's place, `COLUMNS`, maybe `RULE_COLUMNS`.

        ``ids`` and ``index``, a pandas index, have one entry per record.
        """
        many = cls()
        many._records = tuple(map(dict, records))
        many._ids, many._index = ids, index
        return many

    @property
    def records(self) -> tuple[Record, ...]:
        """A copy of the record of every row: its place, and `COLUMNS`."""
        return tuple(map(dict, self._records))

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_read": {}}  # parsed again from the records

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> "Explanation | Failure": ...
    @overload
    def __getitem__(self, index: slice) -> "Explanations": ...
    def __getitem__(self, index: int | slice) -> "Explanation | Failure | Explanations":
        if isinstance(index, slice):
            return self._part(range(*index.indices(len(self))))
        place = range(len(self))[index]
        entry = self._entry(place)
        if isinstance(entry, Explanation):
            self._read[place] = entry
        return entry

    def __iter__(self) -> Iterator["Explanation | Failure"]:
        return map(self._entry, range(len(self)))  # nothing is kept, because there may be a million

    def _entry(self, place: int) -> "Explanation | Failure":
        record = self._records[place]
        if record["error_type"] is not None:
            label = None if self._ids is None else self._ids.label(place)
            return Failure(record["row"], record["error"], record["error_type"], label)
        return self._read.get(place) or Explanation.from_json(record["explanation"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Explanations) and (self._records, self._ids) == (other._records, other._ids)

    def __hash__(self) -> int:
        return hash(tuple(record["explanation"] or record["error"] for record in self._records))

    def __repr__(self) -> str:
        n_failed = len(self._places(failed=True))
        return f"Explanations({len(self) - n_failed:,} rows explained, {n_failed:,} failed)"

    @property
    def has_rules(self) -> bool:
        """Whether the rows were explained with ``rule=True``."""
        return any("rule" in record for record in self._records)

    def rule(self, index: int) -> "Rule | Failure":
        """Return the rule of one row, if the rows were explained with ``rule=True``.

        Examples
        --------
        >>> from anchorline.explainer import Explainer
        >>> from anchorline.spaces.hypercube import Hypercube
        >>> vote = lambda z: (z[:, :3].sum(axis=1) > 0) * 2 - 1
        >>> explainer = Explainer(vote, Hypercube(["a", "b", "c", "d"]))
        >>> many = explainer.explain_many([[1, 1, -1, 1], [1, -1, -1, 1]], rule=True)
        >>> many.rule(1) == explainer.rule([1, -1, -1, 1]), many.to_frame()["rule_facts"].tolist()
        (True, ['a = +1; b = +1', 'b = -1; c = -1'])
        """
        if not self.has_rules:
            raise ParameterError(_NO_RULES)
        place = range(len(self))[index]
        text = self._records[place].get("rule")
        if text is not None:
            return Rule.from_json(text)
        entry = self._entry(place)
        if isinstance(entry, Failure):
            return entry
        raise ParameterError(f"Row {self._records[place]['row']} was explained without a rule.")

    def reasons(self, index: int) -> Reasons | None:
        """Return the reasons of one row, if the rows were explained with ``reasons=``; None if it is favorable."""
        record = self._records[range(len(self))[index]]
        if "reasons" not in record:
            raise ParameterError("The rows have no reasons. Type explain_many(frame, reasons=codes).")
        return None if record["reasons"] is None else Reasons.from_json(record["reasons"])

    def rules(self, agree: float | None = None) -> Rules:
        """Return the fewest rules that cover these rows, if they were explained with ``rule=True``.

        Candidates are the rows' own rules that hold as often as asked. A rule covers every row that has its facts
        and gets its decision; of the rows with its facts, at least the share ``agree`` must get it (by default the
        share that the rule was asked to hold).

        Examples
        --------
        >>> from itertools import product
        >>> from anchorline.explainer import Explainer
        >>> from anchorline.spaces.hypercube import Hypercube
        >>> vote = lambda z: (z[:, :3].sum(axis=1) > 0) * 2 - 1
        >>> explainer = Explainer(vote, Hypercube(["a", "b", "c", "d"]))
        >>> rules = explainer.explain_many(list(product([1, -1], repeat=4)), rule=True).rules()
        >>> len(rules), rules.left_over, rules.is_proven, [len(each.alike) for each in rules]
        (6, (), True, [4, 4, 4, 4, 4, 4])
        """
        from anchorline.rules.cover import cover

        if not self.has_rules:
            raise ParameterError(_NO_RULES)
        texts = {record["row"]: record.get("rule") for record in self._records}
        found = {row: Rule.from_json(text) for row, text in texts.items() if text is not None}
        return cover(found, len(self) - len(found), agree)

    @property
    def _columns(self) -> dict[str, str]:
        has_reasons = any("reasons" in record for record in self._records)
        return COLUMNS | (RULE_COLUMNS if self.has_rules else {}) | (REASON_COLUMNS if has_reasons else {})

    @property
    def explained(self) -> "Explanations":
        """The rows that have an explanation."""
        return self._part(self._places(failed=False))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The rows that have no explanation, with their errors."""
        return tuple(each for each in map(self._entry, self._places(failed=True)) if isinstance(each, Failure))

    def _places(self, *, failed: bool) -> list[int]:
        return [i for i, record in enumerate(self._records) if (record["error_type"] is not None) == failed]

    def _part(self, places: Sequence[int]) -> "Explanations":
        part = Explanations.from_records((self._records[i] for i in places), *self._labels(places))
        part._read = {new: self._read[old] for new, old in enumerate(places) if old in self._read}
        return part

    def _labels(self, places: Sequence[int]) -> tuple[RowIds | None, Any]:
        """Return the ids and the index of the rows at these places."""
        ids = None if self._ids is None else self._ids.take(places)
        return ids, None if self._index is None else self._index.take(list(places))

    def to_frame(self, backend: Any = "pandas", *, by: str = "row") -> Any:
        """Return a frame of the given backend: one row per explained case, or (``by="fact"``) one row per fact.

        A pandas frame has the index of the frame that was explained. Other frames have it as a column, unless it
        is the default index (0, 1, 2 and so on). The column ``id`` of `anchorline.Explainer.explain_many` follows
        the column ``row``. Rules and reasons add `RULE_COLUMNS` and `REASON_COLUMNS`.

        Examples
        --------
        >>> from anchorline.explainer import Explainer
        >>> from anchorline.spaces.hypercube import Hypercube
        >>> explainer = Explainer(lambda z: 0.5 * z[:, 0], Hypercube(["a", "b"]))
        >>> facts = explainer.explain_many([[1, 1], [-1, 1]], sigma=0).to_frame("polars", by="fact")
        >>> facts.select("row", "fact", "contribution", "effect").rows()
        [(0, 'a = +1', 0.5, 1.0), (1, 'a = -1', -0.5, -1.0)]
        """
        if by == "row":
            kinds = {"row": "place"} | self._columns
            columns = {name: [record.get(name) for record in self._records] for name in kinds}
            return labeled_frame(backend, columns, kinds, self._ids, self._index)
        if by != "fact":
            raise ParameterError(f"by is {by!r}, but it must be 'row' or 'fact'.")
        facts = [
            (place, record["row"], record["key"], fact.attribute, text, contribution, effect)
            for place, (record, entry) in enumerate(zip(self._records, self, strict=True))
            if isinstance(entry, Explanation)
            for fact, text, contribution, effect in zip(
                entry.facts,
                map(clean_text, _fact_texts(entry)),
                entry.contributions.tolist(),
                entry.effects.tolist(),
                strict=True,
            )
        ]
        columns = {name: [fact[j] for fact in facts] for j, name in enumerate(FACT_COLUMNS, start=1)}
        return labeled_frame(backend, columns, FACT_COLUMNS, *self._labels([fact[0] for fact in facts]))

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write `to_frame` as a Parquet file, without its index; a failure leaves no partial file."""
        from anchorline.batch.parquet import write_parquet

        write_parquet(path, self._records, ids=self._ids, kinds=self._columns)

    @classmethod
    def from_parquet(cls, path: str | PathLike[str]) -> "Explanations":
        """Read a file written by `to_parquet` or ``anchorline batch``; raise `FormatError` for any other."""
        from anchorline.batch.parquet import read_ids, read_parquet

        return cls.from_records(read_parquet(path), read_ids(path))

    def to_shap(self, *, common_base: bool = False, codes: bool = False) -> Any:
        """Return the rows that have an explanation as one `shap.Explanation`, for SHAP's own plots.

        ``common_base=True`` gives all rows one base value, as SHAP's decision and force plots require, and
        ``codes=True`` numbers in place of texts, as its violins and cohorts do.
        """
        from anchorline.compat.shap import to_shap

        return to_shap(self.explained or self, common_base=common_base, codes=codes)

    def summary(self) -> Summary:
        """Summarize which attributes matter, how often, with which sign and size, and the least explained rows.

        Examples
        --------
        >>> from anchorline.explainer import Explainer
        >>> from anchorline.spaces.hypercube import Hypercube
        >>> rate = lambda z: 0.5 * z[:, 0] - 0.25 * z[:, 1]
        >>> explainer = Explainer(rate, Hypercube(["income", "debt", "owner"]))
        >>> print(explainer.explain_many([[1, 1, 1], [1, -1, 1], [-1, 1, 1]], sigma=0).summary())
        3 rows explained, 0 failed; verdicts: 3 explained.
        attribute  rows  share  adds  typical size  most often
        income        3   100%   67%          0.50  income = +1 (2)
        debt          3   100%   33%          0.25  debt = +1 (2)
        """
        explained = (
            (record["row"], entry)
            for record, entry in zip(self._records, self, strict=True)
            if isinstance(entry, Explanation)
        )
        failures = [record["error_type"] for record in self._records if record["error_type"] is not None]
        if self._ids is None:
            return summarize(explained, failures)
        rows = [record["row"] for record in self._records]
        return summarize(explained, failures, self._ids.name, dict(zip(rows, self._ids.values, strict=True)))
