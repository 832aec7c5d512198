"""The function that every engine calls: it takes a frame of rows and returns a frame of explanations."""

import contextlib
import functools
import io
import pickle
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, BinaryIO

import numpy as np

from anchorline.batch.rows import RESERVED_NAMES, check_id, rows_of
from anchorline.batch.sharing import share_calls
from anchorline.changes.result import Changes
from anchorline.errors import FavorableError, ParameterError, UnpackableError
from anchorline.explainer import Explainer
from anchorline.model.predictor import contain_exits
from anchorline.result.explanations import (
    COLUMNS,
    REASON_COLUMNS,
    RULE_COLUMNS,
    Record,
    content_key,
    failed_record,
    reason_record,
    record_of,
    rule_record,
)
from anchorline.result.frames import clean_text, frame_in
from anchorline.settings import ReasonSettings, RuleSettings, Settings
from anchorline.spaces.columns import kind_of, level_of, to_narwhals

# Further columns about what would change each decision; all are missing where nothing turns it.
CHANGE_COLUMNS = {"change": "text", "change_facts": "number", "change_decision": "text", "change_output": "number"}
SHARED_ROWS = 16  # rows whose queries go to the model in one call, with share_calls=True
_lock = threading.Lock()
_active_limits: list[Any] = []  # of `one_blas_thread`, one per caller inside
PIECES_PER_CORE = 4  # of rows that come in one piece, so that cores finish at about the same time


@dataclass(frozen=True)
class ReasonWork:
    """With which rows and settings the reasons of adverse decisions are found."""

    reference: Any
    settings: ReasonSettings

    @classmethod
    def of(cls, explainer: Explainer, given: Any, settings: Settings) -> "ReasonWork | None":
        """Return the work that codes, or keywords of `reasons`, describe; setups without reasons are refused."""
        if given is None or given is False:
            return None
        known = {field.name for field in fields(ReasonSettings)}
        is_keywords = isinstance(given, Mapping) and "codes" in given and {*given} <= known
        keywords = dict(given) if is_keywords else {"codes": None if given is True else given}
        shared = {name: getattr(settings, name) for name in ("queries", "seed", "confidence")}
        own = cls(keywords.get("reference"), explainer.reason_settings(**shared | keywords))
        explainer.referring_to(own.reference, own.settings)
        return own

    def record(self, explainer: Explainer, row: Any) -> Record:
        """Return `REASON_COLUMNS` of a row."""
        try:
            compared = explainer.referring_to(self.reference, self.settings)
            return reason_record(compared.reasons_with(row, self.settings))
        except FavorableError:
            return reason_record(None)

    def identity(self, explainer: Explainer) -> dict[str, Any]:
        """Return what determines the reasons of a row."""
        compared = explainer.referring_to(self.reference, self.settings)
        return {**self.settings.to_dict(), "table": compared.space.fingerprint}


@dataclass(frozen=True)
class Work:
    """The explainer and the settings that are applied to every row.

    ``share`` is the number of rows whose queries go to the model in one call; with 1, rows do not share calls.
    ``changes`` adds what would change each decision to the records, ``rule`` the rule of each row, and
    ``reasons`` the reasons for each adverse decision.
    """

    explainer: Explainer
    settings: Settings = field(default_factory=Settings)
    share: int = 1
    changes: bool = False
    rule: RuleSettings | None = None
    reasons: ReasonWork | None = None

    @classmethod
    def from_keywords(
        cls,
        explainer: Explainer,
        *,
        share_calls: bool = False,
        changes: bool = False,
        rule: bool | Mapping[str, Any] = False,
        reasons: Any = None,
        **keywords: Any,
    ) -> "Work":
        """Return the work with the settings that these keywords describe; ``rule`` may be keywords of `rule`."""
        settings = Settings.from_keywords("explain_many", **keywords)
        own_rule, own_reasons = _rule_settings(rule, settings), ReasonWork.of(explainer, reasons, settings)
        return cls(explainer, settings, SHARED_ROWS if share_calls else 1, changes, own_rule, own_reasons)

    @property
    def columns(self) -> dict[str, str]:
        """The columns of a frame of records, with their types."""
        further = COLUMNS | (CHANGE_COLUMNS if self.changes else {}) | (RULE_COLUMNS if self.rule else {})
        return further | (REASON_COLUMNS if self.reasons else {})

    def record(self, row: Any) -> Record:
        """Explain one row; an error becomes part of the record, so that the next row can follow."""
        return self._record(self.explainer, row)

    def records(self, rows: Sequence[Any]) -> list[Record]:
        """Explain rows and return their records in order."""
        if self.share == 1:
            return [self.record(row) for row in rows]
        return share_calls(self.explainer, self._record, rows, self.share)

    def _record(self, explainer: Explainer, row: Any) -> Record:
        try:
            with contain_exits():
                record = record_of(explainer.explain_with(row, self.settings))
                record |= {} if self.rule is None else rule_record(explainer.rule_with(row, self.rule))
                record |= {} if self.reasons is None else self.reasons.record(explainer, row)
                return record | change_values(self.find_changes(explainer, row)) if self.changes else record
        except Exception as error:
            return self.failed(row, type(error).__name__, str(error))

    def find_changes(self, explainer: Explainer, row: Any) -> Changes:
        """Return the change of the fewest facts; a number of queries counts anew for it."""
        limits: dict[str, Any] = {} if self.settings.is_auto else {"queries": self.settings.queries}
        return explainer.changes(row, n=1, seed=self.settings.seed, **limits)

    def failed(self, row: Any, error_type: str, error: str) -> Record:
        """Return the record of a row without explanation."""
        record = failed_record(_failed_row_key(self.explainer, row), error_type, error)
        record |= {} if self.rule is None else rule_record(None)
        record |= {} if self.reasons is None else reason_record(None)
        return record | change_values(None) if self.changes else record

    def prepared(self) -> "Work":
        """Ask about the rows of the table, so that workers need not; return this work."""
        self.ask_table()
        self.warn()
        return self

    def warn(self) -> None:
        """Warn about the model and its table, because workers do not; errors are left to the rows."""
        try:
            with contain_exits():
                _ = self.explainer.findings
        except Exception:
            return
        self.explainer.warn(stacklevel=6)

    def ask_table(self) -> None:
        """Ask about the rows of the table, if the settings ask for them; errors are left to the rows."""
        with contextlib.suppress(Exception), contain_exits():
            asks = self.settings.is_auto or (self.rule is not None and self.rule.is_auto)
            self.explainer.table_answers(ask=asks)


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread, because the last bits of a model's answers may depend on the number of threads.

    When several callers overlap, the last to leave restores the original limit.
    """
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  comes with scikit-learn

    with _lock:
        # Every caller sets the limit, because a BLAS library may have been loaded since the last one did.
        _active_limits.append(threadpool_limits(1, user_api="blas"))
    try:
        yield
    finally:
        with _lock:
            if len(_active_limits) > 1:
                _active_limits.pop()  # the first entry stays, because it remembers the original limits
            else:
                _active_limits.pop().restore_original_limits()


def _rule_settings(rule: Any, settings: Settings) -> RuleSettings | None:
    """Return the settings of the rules: those that `explain` shares with `rule`, and the given keywords."""
    if rule is False:
        return None
    if rule is not True and not isinstance(rule, Mapping):
        raise ParameterError(
            f"rule is {rule!r}, but it must be True, False or keywords of `rule`. Type rule=dict(holds=0.9)."
        )
    shared = {name: getattr(settings, name) for name in ("sigma", "queries", "seed", "confidence")}
    return RuleSettings.from_keywords("rule", **shared | ({} if rule is True else dict(rule)))


def change_values(changes: Changes | None) -> Record:
    """Return `CHANGE_COLUMNS` of one row: the fewest new values that turn the decision, and the new answer."""
    best = None if changes is None else next(iter(changes), None)
    if best is None:
        return dict.fromkeys(CHANGE_COLUMNS)
    values = [f"{name} = {value}" for name, value in best.values.items()]
    return {
        "change": clean_text("; ".join(values)),
        "change_facts": len(best.moves),
        "change_decision": None if best.decision is None else clean_text(str(best.decision)),
        "change_output": best.output,
    }


def _failed_row_key(explainer: Explainer, row: Any) -> str:
    """Return the key of a row without explanation, from its instance, or from its texts if it is unreadable."""
    try:
        return content_key(explainer.space.at(row).instance)
    except Exception:  # the space cannot read the row, which is why it failed
        if isinstance(row, Mapping):
            names = explainer.space.names
            row = [row.get(name) for name in names] if names else list(row.values())
        values = row if isinstance(row, Sequence | np.ndarray) and not isinstance(row, str) else [row]
        return content_key(["unreadable", *map(_canonical_text, values)])


def _canonical_text(value: Any) -> str | None:
    """Return a text that does not depend on the library of the value: 1 and 1.0 have one text, NaN has None."""
    kind = kind_of(value)
    with contextlib.suppress(Exception):  # the value is of another kind, or too large
        return None if kind is None else level_of(value, kind)
    return str(value)


def pack_work(work: Work) -> bytes:
    """Serialize the work, including functions defined interactively; raise `UnpackableError` if that fails."""
    import cloudpickle  # noqa: PLC0415  heavy

    try:
        content: bytes = cloudpickle.dumps(work)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UnpackableError(f"The model cannot be packed for another process ({reason}).") from error
    return content


def unpack_work(file: BinaryIO) -> Work:
    """Read work that `pack_work` wrote, usually in another process; raise `UnpackableError` if that fails."""
    try:
        work: Work = pickle.load(file)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise UnpackableError(f"The model cannot be unpacked in another process ({reason}).") from error
    return work


class PackedWork:
    """Work as bytes, which is sent to other processes and unpacked once per process, for any number of frames."""

    def __init__(self, work: Work) -> None:
        self._content = pack_work(work)

    def explain(self, frame: Any, id: str | None = None) -> Any:
        """Call `explain_partition` with the packed work; raise `UnpackableError` if it cannot be unpacked."""
        return explain_partition(frame, _opened(self._content), id)


@functools.lru_cache(maxsize=1)  # only one, because models are large
def _opened(content: bytes) -> Work:
    return unpack_work(io.BytesIO(content))


def explain_partition(frame: Any, work: Work, id: str | None = None) -> Any:
    """Explain every row of a frame; return a frame of the same library with the column ``id`` and `Work.columns`.

    A row that fails has its error in the columns ``error_type`` and ``error``. Without ``id``, rows are
    identified by ``key``, a digest of their values.

    Examples
    --------
    >>> import polars as pl
    >>> train = pl.DataFrame({"age": [25, 31, 47, 52], "name": ["a", "b", "c", "d"]})
    >>> explainer = Explainer(lambda f: f["age"].to_numpy() / 100, train.select("age"))
    >>> explain_partition(train[:2], Work(explainer), id="name").select("name", "prediction").rows()
    [('a', 0.25), ('b', 0.31)]
    """
    import narwhals as nw  # noqa: PLC0415  heavy

    given = to_narwhals(frame, ParameterError, eager_only=True)
    if not isinstance(given, nw.DataFrame):
        raise ParameterError(f"Got a {type(frame).__name__}, not a frame. Type explainer.explain_many(rows).")
    check_id(id, given.columns)
    # A space without names reads values by position, so the id is removed, or it would be read as a value.
    by_name = work.explainer.space.schema is not None
    rows = rows_of(frame if by_name or id is None else given.drop(id).to_native(), work.explainer)
    with one_blas_thread():
        records = work.records(rows.take(0, len(rows)))
    columns = {name: [record[name] for record in records] for name in work.columns}
    result = nw.from_native(frame_in(given.implementation, columns, work.columns), eager_only=True)
    native = result.to_native()
    if hasattr(native, "insert") and hasattr(native, "index"):  # pandas: keep the index, which identifies rows
        reserved = {*RESERVED_NAMES, id}  # an index with such a name could not be written beside the column
        native.index = frame.index.set_names([None if name in reserved else name for name in frame.index.names])
        if id is not None:
            native.insert(0, id, frame[id])
        return native
    return native if id is None else result.with_columns(given[id]).select(id, *work.columns).to_native()


def wrong_frame_error(frame: Any, needed: str, call: str) -> ParameterError:
    """Return the error for an engine that got a frame of another kind; ``call`` creates the right kind."""
    kind = type(frame)
    return ParameterError(
        f"Got a {kind.__module__.partition('.')[0]} {kind.__name__}, not {needed}. Type {call}, or, to use "
        "this machine only, explainer.explain_many(frame)."
    )
