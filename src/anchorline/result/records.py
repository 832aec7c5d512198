"""One record per explained row, as frames, files and worker processes hold it."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anchorline._links import call
from anchorline.result.changes import Changes
from anchorline.result.explanation import Explanation
from anchorline.result.frames import frame_in

# The columns of every frame and file of explanations, with their types; only the key is never missing.
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
# The columns of a frame with one row per term.
TERM_COLUMNS = {"row": "place", "key": "text", "name": "text", "literal": "text", "contribution": "number"}
# Further columns about what would change each decision; all are missing where nothing turns it.
CHANGE_COLUMNS = {"change": "text", "change_facts": "number", "change_label": "text", "change_output": "number"}
Record = dict[str, Any]


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


@dataclass(frozen=True, slots=True, eq=False)
class PendingRow:
    """A row whose explanation is found, and assembled by ``build`` when it is looked at."""

    row: int
    build: Callable[[], Explanation]

    @property
    def record(self) -> "Record":
        """The record of the row, with its place."""
        return {"row": self.row} | record_of(self.build())


def change_values(changes: Changes | None) -> Record:
    """Return `CHANGE_COLUMNS` of one row: the fewest facts that turn the decision, and the new answer."""
    best = None if changes is None else next(iter(changes), None)
    if best is None:
        return dict.fromkeys(CHANGE_COLUMNS)
    label = None if best.label is None else clean_text(str(best.label))
    facts = clean_text(" and ".join(best.facts))
    return {"change": facts, "change_facts": best.n_facts, "change_label": label, "change_output": best.output}


def record_of(entry: Explanation | Failure) -> Record:
    """Return the record of one row: `COLUMNS`."""
    if isinstance(entry, Failure):
        return failed_record(None, entry.error_type, entry.error)
    certificate = entry.certificate
    return {
        "key": content_key(entry.instance),
        "output": clean_text(entry.output),
        "prediction": entry.prediction,
        "intercept": entry.intercept,
        "rule": clean_text(call("explanation.sum", entry)),
        "verdict": entry.verdict.name,
        "status": certificate.status.name,
        "relevance_error": None if certificate.relevance_error is None else certificate.relevance_error.value,
        "stability": None if certificate.stability is None else certificate.stability.value,
        "error_type": None,
        "error": None,
        "explanation": entry.to_json(),
    }


def failed_record(key: str | None, error_type: str, error: str) -> Record:
    """Return the record of a row that has no explanation."""
    record = dict.fromkeys(COLUMNS)
    return record | {"key": key, "error_type": clean_text(error_type), "error": clean_text(error)}


def content_key(values: Iterable[Any]) -> str:
    """Return the identity of a row by its plain values, which does not depend on its place."""
    return hashlib.sha256(json.dumps(list(values), default=str).encode()).hexdigest()[:32]


def frame_of(records: Sequence[Mapping[str, Any]], first: Sequence[str], backend: Any) -> Any:
    """Return records as a frame of typed columns: those of ``first`` (places), then `COLUMNS`."""
    names = dict.fromkeys(first, "place") | COLUMNS
    return frame_in(backend, {name: [record[name] for record in records] for name in names}, names)


def clean_text(text: str) -> str:
    """Return a text that every file can hold, with half surrogate pairs escaped."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")
