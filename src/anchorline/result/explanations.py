"""Explanations: the answers for many rows, in order, with failures among them."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, TypeGuard, overload

from anchorline._links import call
from anchorline.errors import ParameterError
from anchorline.result.changes import Changes
from anchorline.result.comparison import Comparison, compare_groups
from anchorline.result.explanation import Explanation
from anchorline.result.labels import RowIds, labeled_frame
from anchorline.result.records import (
    CHANGE_COLUMNS,
    COLUMNS,
    TERM_COLUMNS,
    Failure,
    PendingRow,
    Record,
    change_values,
    content_key,
    failed_record,
    frame_of,
    record_of,
)
from anchorline.result.rules import Rules, find_rules
from anchorline.result.summary import AttributeSummary, Summary, summarize, worst_change

__all__ = [
    "CHANGE_COLUMNS",
    "COLUMNS",
    "TERM_COLUMNS",
    "AttributeSummary",
    "Explanations",
    "Failure",
    "PendingRow",
    "Record",
    "Summary",
    "change_values",
    "content_key",
    "failed_record",
    "frame_of",
    "record_of",
    "summarize",
    "worst_change",
]


class Explanations(Sequence["Explanation | Failure"]):
    """The explanations of many rows, in order; a row that failed is a `Failure`.

    Explanations that came from other processes are parsed when they are accessed, and kept if they are accessed
    by index. A slice is an `Explanations` object too; the ``row`` of a failure and of a frame is the row's place
    in the whole. The index of a pandas frame and the column ``id`` of `anchorline.Explainer.explain_many` are
    kept.

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

    _ids: RowIds | None = None
    _index: Any = None
    _space: Any = None  # of the explainer that made them in this process

    def __init__(self, entries: Iterable["Explanation | Failure"] = ()) -> None:
        entries = list(entries)
        rows = enumerate(entries)
        self._held: tuple[Record | PendingRow, ...] = tuple({"row": i, **record_of(entry)} for i, entry in rows)
        self._read: dict[int, Explanation] = {
            i: entry for i, entry in enumerate(entries) if isinstance(entry, Explanation)
        }

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any] | PendingRow],
        ids: RowIds | None = None,
        index: Any = None,
        space: Any = None,
    ) -> "Explanations":
        """Build from the records that workers and files hold: a row's place, and `COLUMNS`.

        ``ids`` and ``index``, a pandas index, have one entry per record. ``space`` is that of the explainer, by
        which `rules` tests the facts of one row on another.
        """
        many = cls()
        many._held = tuple(record if isinstance(record, PendingRow) else dict(record) for record in records)
        many._ids, many._index, many._space = ids, index, space
        return many

    @property
    def _records(self) -> tuple[Record, ...]:
        """The record of every row; those that are pending are made now, and kept."""
        records = tuple(held.record if isinstance(held, PendingRow) else held for held in self._held)
        self._held = records
        return records

    @property
    def records(self) -> tuple[Record, ...]:
        """A copy of the record of every row: its place, and `COLUMNS`."""
        return tuple(dict(record) for record in self._records)

    def __getstate__(self) -> dict[str, Any]:
        # Parsed again from the records; the space holds the training table.
        return self.__dict__ | {"_held": self._records, "_read": {}, "_space": None}

    def __len__(self) -> int:
        return len(self._held)

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
        held = self._held[place]
        if isinstance(held, PendingRow):
            return self._read.get(place) or held.build()
        if held["error_type"] is not None:
            return self._failure(place, held)
        return self._read.get(place) or Explanation.from_json(held["explanation"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Explanations) and (self._records, self._ids) == (other._records, other._ids)

    def __hash__(self) -> int:
        return hash(tuple(record["explanation"] or record["error"] for record in self._records))

    def __repr__(self) -> str:
        n_failed = len(self.failures)
        return f"Explanations({len(self) - n_failed:,} rows explained, {n_failed:,} failed)"

    @property
    def explained(self) -> "Explanations":
        """The rows that have an explanation."""
        return self._part([i for i, held in enumerate(self._held) if not _has_failed(held)])

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The rows that have no explanation, with their errors."""
        return tuple(self._failure(i, held) for i, held in enumerate(self._held) if _has_failed(held))

    def _failure(self, place: int, record: Record) -> Failure:
        label = None if self._ids is None else self._ids.label(place)
        return Failure(record["row"], record["error"], record["error_type"], label)

    def _part(self, places: Sequence[int]) -> "Explanations":
        part = Explanations.from_records((self._held[i] for i in places), *self._labels(places))
        part._read = {new: self._read[old] for new, old in enumerate(places) if old in self._read}
        part._space = self._space
        return part

    def _labels(self, places: Sequence[int]) -> tuple[RowIds | None, Any]:
        """Return the ids and the index of the rows at these places."""
        ids = None if self._ids is None else self._ids.take(places)
        return ids, None if self._index is None else self._index.take(list(places))

    def to_frame(
        self, backend: Any = "pandas", *, by: str = "row", changes: Callable[[Any], Changes] | None = None
    ) -> Any:
        """Return a frame of the given backend: one row per explained case, or (``by="term"``) one row per term.

        A pandas frame has the index of the frame that was explained. Other frames have it as a column, unless it
        is the default index (0, 1, 2 and so on). The column ``id`` of `anchorline.Explainer.explain_many` follows
        the column ``row``. ``changes``, such as ``explainer.changes``, adds columns about what would change each
        decision: the fewest facts, how many they are, and the new answer.

        Examples
        --------
        >>> import anchorline as al
        >>> many = al.Explainer(lambda z: 0.5 * z[:, 0], al.Hypercube(["a", "b"])).explain_many([[1, 1], [-1, 1]])
        >>> many.to_frame("polars", by="term").select("row", "literal", "contribution").rows()
        [(0, 'a = +1', 0.5), (1, 'a = -1', -0.5)]
        """
        if by == "row":
            kinds = {"row": "place"} | COLUMNS
            columns = {name: [record[name] for record in self._records] for name in kinds}
            if changes is not None:
                kinds |= CHANGE_COLUMNS
                columns |= self._change_columns(changes)
            return labeled_frame(backend, columns, kinds, self._ids, self._index)
        if by != "term":
            raise ParameterError(f"by is {by!r}, but it must be 'row' or 'term'.")
        terms = [
            (place, record["row"], record["key"], term.literal.name, term.literal.text, term.contribution)
            for place, (record, entry) in enumerate(zip(self._records, self, strict=True))
            if isinstance(entry, Explanation)
            for term in entry.terms
        ]
        columns = {name: [term[j] for term in terms] for j, name in enumerate(TERM_COLUMNS, start=1)}
        return labeled_frame(backend, columns, TERM_COLUMNS, *self._labels([term[0] for term in terms]))

    def _change_columns(self, find: Callable[[Any], Changes]) -> dict[str, list[Any]]:
        """Return `CHANGE_COLUMNS`, one value per row; None for rows that failed, and where nothing turns."""
        found = [find(list(each.instance)) if isinstance(each, Explanation) else None for each in self]
        values = [change_values(each) for each in found]
        return {name: [each[name] for each in values] for name in CHANGE_COLUMNS}

    def to_parquet(self, path: str | PathLike[str]) -> None:
        """Write `to_frame` as a Parquet file, without its index; a failure leaves no partial file."""
        call("parquet.write", path, self._records, ids=self._ids)

    @classmethod
    def from_parquet(cls, path: str | PathLike[str]) -> "Explanations":
        """Read a file written by `to_parquet` or ``anchorline batch``; raise `FormatError` for any other."""
        return cls.from_records(call("parquet.read", path), call("parquet.ids", path))

    def summary(self) -> Summary:
        """Summarize which attributes matter, how often, with which sign and size, and the least trustworthy rows.

        Examples
        --------
        >>> import anchorline as al
        >>> rate = lambda z: 0.5 * z[:, 0] - 0.25 * z[:, 1]
        >>> explainer = al.Explainer(rate, al.Hypercube(["income", "debt", "owner"]))
        >>> print(explainer.explain_many([[1, 1, 1], [1, -1, 1], [-1, 1, 1]], k=3).summary())
        3 rows explained, 0 failed; verdicts on the explanations: 3 trustworthy.
        attribute  rows  share  adds  typical size  most often
        income        3   100%   67%          0.50  income = +1 (2)
        debt          3   100%   33%          0.25  debt = +1 (2)
        """
        rows = [held.row if isinstance(held, PendingRow) else held["row"] for held in self._held]
        summary = summarize(zip(rows, self, strict=True))
        if self._ids is None:
            return summary
        listed, ids = {row for row, _, _ in summary.least_trustworthy}, zip(rows, self._ids.values, strict=True)
        return replace(summary, id=self._ids.name, ids={row: value for row, value in ids if row in listed})

    def rules(self, *, space: Any = None, **options: Any) -> Rules:
        """Return the fewest rules that cover the decisions of these rows, each with its measured stability.

        Every rule is the facts of one explanation, together with its decision. It covers the rows of which all
        its facts are true and that have this decision. No smaller set of the candidates covers the wanted share:
        this is proven, or the answer says that the search stopped early, after ten seconds at most.

        Parameters
        ----------
        space
            The explainer's space, for explanations that were read from a file or pickled.
        share
            The share of the decisions to cover (0.9).
        max_rules
            The largest number of rules (10); these then cover as many decisions as possible.
        agreement
            Of the rows of which the facts of a rule are true, the least share that must have its decision (0.95).
        confidence
            The probability that the limits of all measured stabilities hold together (0.95).

        Examples
        --------
        >>> import anchorline as al
        >>> approves = lambda z: 0.5 * z[:, 0] + 0.1
        >>> explainer = al.Explainer(approves, al.Hypercube(["paid", "owner", "new"]), threshold=0)
        >>> rows = [[1, 1, 1], [1, -1, 1], [-1, 1, -1], [-1, -1, 1]]
        >>> rules = explainer.explain_many(rows, k=2).rules(share=1.0)
        >>> [(rule.facts, rule.decision, len(rule.rows)) for rule in rules.rules]
        [(('paid = +1',), 'at or above 0', 2), (('paid = -1',), 'below 0', 2)]
        """
        space = self._space if space is None else space
        if space is None:
            raise ParameterError(
                "These explanations do not know their space, because they were read from a file or sent by "
                "another process. Type: many.rules(space=explainer.space)"
            )
        return find_rules(self._explained_rows(), space, **options)

    def compare(self, other: "Explanations", *, confidence: float = 0.95) -> Comparison:
        """Compare these rows with others: shares of decisions, of verdicts, and of attributes that add or lower.

        The limits of all differences hold together with the ``confidence``.

        Examples
        --------
        >>> import anchorline as al
        >>> space = al.Hypercube(["paid", "owner"])
        >>> explainer = al.Explainer(lambda z: 0.5 * z[:, 0], space, threshold=0)
        >>> good, bad = (explainer.explain_many([[sign, 1]] * 40, k=2) for sign in (1, -1))
        >>> print(good.compare(bad))
        40 rows compared with 40: 4 of 7 shares differ clearly (limits hold together, 95%).
        decision at or above 0: 100% of the first rows, 0% of the second (-100 points, -100 to -70)
        decision below 0: 0% of the first rows, 100% of the second (+100 points, +70 to +100)
        paid adds: 100% of the first rows, 0% of the second (-100 points, -100 to -70)
        paid lowers: 0% of the first rows, 100% of the second (+100 points, +70 to +100)
        """
        first, second = ([entry for _, entry in each._explained_rows()] for each in (self, other))
        return compare_groups(first, second, confidence)

    def _explained_rows(self) -> list[tuple[int, Explanation]]:
        """Return the rows that have an explanation, with their places in the whole."""
        rows = [held.row if isinstance(held, PendingRow) else held["row"] for held in self._held]
        return [(row, entry) for row, entry in zip(rows, self, strict=True) if isinstance(entry, Explanation)]

    def plot(self, ax: Any = None) -> Any:
        """Draw how often each attribute is a reason, on ``ax`` or on new Axes; return the Axes.

        Examples
        --------
        >>> import anchorline as al
        >>> explainer = al.Explainer(lambda z: z[:, 0] / 2 + z[:, 1] / 8, al.Hypercube(["paid", "late"]))
        >>> ax = explainer.explain_many([[1, 1], [1, -1], [-1, -1]], k=2).plot()
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['paid', 'late']
        """
        return call("plot.summary", self.explained, ax)

    def to_shap(self, *, common_base: bool = False) -> Any:
        """Return one `shap.Explanation` of the rows that have an explanation, for SHAP's own plots.

        Its ``instance_names`` are the positions of these rows as texts; `failures` lists the other rows.
        ``common_base=True`` is for the decision plot and the force plot; see `anchorline.compat.shap.to_shap`.

        Examples
        --------
        >>> import anchorline as al
        >>> explainer = al.Explainer(lambda z: z[:, 0] / 2, al.Hypercube(["paid", "late"]), output="score")
        >>> many = explainer.explain_many([[1, 1], [1, 0], [-1, 1]], k=2, errors="keep")
        >>> values = many.to_shap()
        >>> values.shape, values.instance_names, [failure.row for failure in many.failures]
        ((2, 2), ['0', '2'], [1])
        """
        return call("explanations.to_shap", self, common_base=common_base)


def _has_failed(held: Record | PendingRow) -> TypeGuard[Record]:
    """Return whether a row has no explanation."""
    return not isinstance(held, PendingRow) and held["error_type"] is not None
