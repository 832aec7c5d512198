"""Which cases requests are about: those of the server, or those of a file that one user has opened.

An opened file is in memory only. It is forgotten when its user closes it, or does not ask for a while.
"""

import contextlib
import hashlib
import os
import secrets
import time
import uuid
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import narwhals as nw
from cachetools import LRUCache

from anchorline.errors import AnchorlineError, ParameterError, listed
from anchorline.explainer import Explainer
from anchorline.io.isolated import read_isolated
from anchorline.render.characters import printable
from anchorline.spaces.table import Table
from anchorline.studio.catalog import Catalog, TableCases
from anchorline.studio.cohort import Cohort, Truth
from anchorline.studio.display import Display
from anchorline.studio.job_queue import checkpoint
from anchorline.studio.known import Known, Rules
from anchorline.studio.problems import Problem

HEADER = "x-anchorline-file"  # by which a request says which opened file it is about
MAX_UPLOAD = 5_000_000  # bytes of a file
MAX_UPLOAD_ROWS = 5_000
KEEP_SECONDS = 1800.0  # without a request
_MAX_FILES, _MAX_PER_USER = 16, 4
_MAX_COHORTS = 12  # in memory; each holds up to a thousand explanations
_MAX_EXPLANATIONS = 64  # and rules, in memory; a few kilobytes each
_MAX_KNOWN = 8  # choices of settings for which searches know verdicts; a byte per case, and some per fact
_MAX_NAME = 80  # characters
_DIGEST = 16  # characters, which links of the page contain
_LONGEST_LINE = 300  # characters of what is wrong with a file


class CaseSet:
    """Cases, their true outcomes, and everything that is kept about them."""

    def __init__(
        self,
        explainer: Explainer,
        display: Display,
        codes: Sequence[tuple[str, str, str, str]],
        cases: Any = None,
        truth: tuple[str, Sequence[Any]] | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.id, self.about = uuid.uuid4().hex, about or {}  # name, rows and digest of an opened file
        self.catalog = Catalog(explainer, cases, display)
        self.truth = None if truth is None else Truth(*truth, self.catalog.n_rows, display.label)
        if self.truth is not None and explainer.target.task != "number":
            self.catalog.rightness = self.truth.rightness
        self.topics = self.catalog.topics(codes) if isinstance(explainer.space, Table) else None
        self.explained: LRUCache[str, Any] = LRUCache(_MAX_EXPLANATIONS)
        self.known: LRUCache[str, Known] = LRUCache(_MAX_KNOWN)
        self.cohorts: LRUCache[str, Cohort] = LRUCache(_MAX_COHORTS)  # so that one that was stopped goes on
        self.rules: LRUCache[str, Rules] = LRUCache(_MAX_KNOWN)
        self.n_noted = 0


_current: ContextVar[CaseSet | None] = ContextVar("cases", default=None)


def current_cases() -> CaseSet | None:
    """Return the cases of the opened file that this request is about; None for those of the server."""
    return _current.get()


@contextlib.contextmanager
def about_cases(cases: CaseSet | None) -> Iterator[None]:
    """Answer a request about some cases."""
    token = _current.set(cases)
    try:
        yield
    finally:
        _current.reset(token)


def truth_in(cases: Any, target: str) -> tuple[str, list[Any]] | None:
    """Return the name and the values of the outcomes of some cases, or None if they lack them."""
    if isinstance(cases, list):
        return (target, [case[target] for case in cases]) if cases and target in cases[0] else None
    frame = nw.from_native(cases, eager_only=True)
    return (target, frame[target].to_list()) if target in frame.columns else None


def read_file(
    name: str, raw: bytes, explainer: Explainer, display: Display, codes: Sequence[Any], target: str | None
) -> CaseSet:
    """Return the cases in a file, as ``--cases`` reads them; raise `Problem` 422 that says what is wrong."""
    name = printable(os.path.basename(name.replace("\\", "/")))[-_MAX_NAME:]
    space = explainer.space
    if not isinstance(space, Table):
        raise Problem(422, "The cases are not rows of a table, so that no file of cases can be opened.")
    also = () if target is None else (target,)
    try:
        columns = list(dict.fromkeys([*space.names, *also]))
        cases = read_isolated(raw, name, {*space.parsed, *also}, columns, MAX_UPLOAD_ROWS, checkpoint)
        held = (cases[0] if cases else ()) if isinstance(cases, list) else cases.columns
        lacking = [each for each in space.names if each not in held]
        if lacking:
            raise Problem(422, f"{name!r} lacks the columns {listed(lacking)}."[:_LONGEST_LINE])
        _check_cells(space, cases)
        about = {"name": name, "rows": len(cases), "digest": hashlib.sha256(raw).hexdigest()[:_DIGEST]}
        found = CaseSet(
            explainer, display, codes, cases, None if target is None else truth_in(cases, target), about
        )
        found.catalog.answer_table.at([0])  # what the model cannot read appears now
    except AnchorlineError as error:
        reason = printable(str(error).partition("\n")[0]).partition(" Pass ")[0]  # advice for programs
        text = reason if name in reason else f"{name!r} cannot be used. {reason}"
        raise Problem(422, text[:_LONGEST_LINE]) from error
    return found


def _check_cells(space: Table, cases: Any) -> None:
    """Raise an error that names the first row with a value that the table does not take."""

    def error_in(n: int) -> AnchorlineError | None:
        first = (
            cases[:n] if isinstance(cases, list) else nw.from_native(cases, eager_only=True).head(n).to_native()
        )
        try:
            TableCases(space, first)
        except AnchorlineError as error:
            return error
        return None

    if error_in(len(cases)) is not None:
        n = bisect_left(range(1, len(cases)), True, key=lambda n: error_in(n) is not None) + 1
        raise ParameterError(f"Row {n}: {error_in(n)}")


@dataclass(slots=True)
class _Entry:
    user: str | None
    service: str
    cases: CaseSet
    used: float


class OpenFiles:
    """The files that users have opened; for the event loop only. ``forget`` drops what is kept under an id."""

    def __init__(self, forget: Callable[[str], None]) -> None:
        self._entries: dict[str, _Entry] = {}
        self._forget = forget

    def add(self, user: str | None, service: str, cases: CaseSet) -> str:
        """Keep the cases of a user; return the name by which only this user can ask for them.

        The file that this user has not asked for longest makes room. Raises `Problem` 429 if all users together
        have too many.
        """
        self.forget_idle()
        own = sorted((entry.used, key) for key, entry in self._entries.items() if entry.user == user)
        for _, key in own[: max(0, len(own) - _MAX_PER_USER + 1)]:
            self._drop(key)
        if len(self._entries) >= _MAX_FILES:
            raise Problem(429, f"{_MAX_FILES} files are open at the moment. Try again later.", retry_after=60)
        key = secrets.token_urlsafe(24)
        self._entries[key] = _Entry(user, service, cases, time.monotonic())
        return key

    def find(self, key: str | None, user: str | None, service: str) -> CaseSet | None:
        """Return the cases of an opened file, or None if the request names none.

        Raises `Problem` 404 if it is not open, or was opened by somebody else or with another model.
        """
        if key is None:
            return None
        self.forget_idle()
        entry = self._entries.get(key)
        if entry is None or (entry.user, entry.service) != (user, service):
            detail = (
                f"The file is not open. Files are closed after {KEEP_SECONDS / 60:g} minutes without a request."
            )
            raise Problem(404, detail, members={"type": "urn:anchorline:file-closed"})
        entry.used = time.monotonic()
        return entry.cases

    def close(self, key: str | None, user: str | None) -> None:
        """Forget a file of this user."""
        entry = self._entries.get(key or "")
        if entry is not None and entry.user == user:
            self._drop(key or "")

    def keep(self, services: Collection[str]) -> None:
        """Forget the files that were opened with models that are not served any more."""
        for key in [key for key, entry in self._entries.items() if entry.service not in services]:
            self._drop(key)

    def forget_idle(self) -> float | None:
        """Forget files that nobody asks for; return after how many seconds the next one is due, or None."""
        now = time.monotonic()
        for key in [key for key, entry in self._entries.items() if now - entry.used >= KEEP_SECONDS]:
            self._drop(key)
        return min((KEEP_SECONDS - now + entry.used for entry in self._entries.values()), default=None)

    def _drop(self, key: str) -> None:
        self._forget(self._entries.pop(key).cases.id)
