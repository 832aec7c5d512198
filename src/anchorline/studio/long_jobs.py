"""Long work as resources: a job has an address, goes on by itself, and is kept for a while after its end.

A job goes on in steps, each of which is a job of the queue, so that long work takes turns with all requests.
Nobody sees the jobs of others.
"""

import asyncio
import contextlib
import json
import secrets
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

from starlette.requests import ClientDisconnect

from anchorline.errors import AnchorlineError
from anchorline.studio.cohort import STEP_SECONDS
from anchorline.studio.job_queue import JobQueue
from anchorline.studio.problems import INTERNAL_ERROR, Problem, logger, problem_from_error

_UNASKED_SECONDS = 60.0  # a job that nobody asks about for this time is canceled
_KEEP_SECONDS = 3600.0  # after its end
_MOST_KEPT = 12  # that have ended; each may hold a few hundred explanations
_MOST_RUNNING, _MOST_OF_USER = 12, 4  # so that one user leaves room for the others
_MOST_BEFORE = 8.0  # seconds that count as run of a job that has run for longer
_BETWEEN_TRIES = 0.2  # seconds before a step that found no room is tried again
_MOST_LATE = 3  # steps in a row that may take too long
_LOOK_SECONDS = 1.0  # between two looks whether who follows a job is still there
_EVENTS = {"running": "progress", "done": "done", "failed": "problem", "canceled": "canceled"}


@dataclass(frozen=True, slots=True)
class Work:
    """What a job does: ``step`` goes on and returns JSON, with ``is_done`` and ``progress`` if there may be more.

    ``table`` returns what is known so far as a file of a format, if there is such a table. Work that ``has_steps``
    goes on after one that took too long, because the next one may leave out what was slow.
    """

    step: Callable[[], bytes]
    table: Callable[[str], bytes] | None = None
    has_steps: bool = False


class LongJob:
    """One job of a user: its state, and what is known so far; ``about`` is the id of the user's file, if any."""

    def __init__(
        self, kind: str, model: str, user: str | None, request_id: str, work: Work, about: str | None = None
    ) -> None:
        self.id = secrets.token_urlsafe(16)
        self.kind, self.model, self.user, self._request_id = kind, model, user, request_id
        self.step: Callable[[], bytes] | None = work.step  # None after the end, because it holds a model
        self.table, self.has_steps, self.about = work.table, work.has_steps, about
        self.state, self.progress = "running", 0.0
        self.result: bytes | None = None
        self.problem = Problem(409, "The job has no result yet. Ask again later.", retry_after=1)
        self.asked, self.ended = time.monotonic(), 0.0
        self.running: asyncio.Future[None] | None = None
        self._changed = asyncio.Event()

    def describe(self) -> dict[str, Any]:
        """Return the state for clients."""
        problem = json.loads(self.problem.body(self._request_id)) if self.state == "failed" else None
        content = {"id": self.id, "kind": self.kind, "state": self.state, "progress": self.progress}
        return content | {"problem": problem}

    def known(self) -> bytes:
        """Return the result as far as it is known; raise the `Problem` because of which there is none."""
        if self.result is None or self.state == "failed":
            raise self.problem
        return self.result

    def note(self, **now: Any) -> None:
        """Change the state, and wake up who follows it."""
        vars(self).update(now)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    @property
    def left(self) -> float:
        """In how many seconds the job is canceled if nobody asks about it."""
        return self.asked + _UNASKED_SECONDS - time.monotonic()

    async def until_unasked(self) -> None:
        """Return when nobody has asked about the job for too long."""
        while self.left > 0:
            await asyncio.sleep(self.left)

    async def events(self, has_left: Callable[[], Any]) -> AsyncIterator[bytes]:
        """Yield a server-sent event for the state and for every change, with the result as far as it is known."""
        while True:
            changed, state = self._changed, json.dumps(self.describe()).encode()
            result = b"null" if self.result is None else self.result.replace(b"\n", b" ")
            yield b'event: %b\ndata: %b, "result": %b}\n\n' % (_EVENTS[self.state].encode(), state[:-1], result)
            while not changed.is_set():
                if self.state != "running" or await has_left():
                    return
                self.asked = time.monotonic()
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), _LOOK_SECONDS)


class LongJobs:
    """The jobs of all users; for the event loop only."""

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._jobs: dict[str, LongJob] = {}
        self._turns: WeakValueDictionary[str | None, asyncio.Lock] = WeakValueDictionary()  # by user

    def start(
        self, job: LongJob, *, seconds: float, most: int = _MOST_OF_USER, end: Callable[[str], None]
    ) -> None:
        """Let a job go on by itself, each step for at most so many ``seconds``; ``end`` receives the outcome.

        Raises `Problem` 429 if the user has ``most`` jobs of this kind, or too many, or if there is no room.
        """
        running = [each for each in self._jobs.values() if each.state == "running"]
        own = [each for each in running if each.user == job.user]
        same = [each for each in own if each.kind == job.kind]
        limits = ((most, same, f"of yours of the kind {job.kind!r}"), (_MOST_OF_USER, own, "of yours"))
        for limit, found, which in (*limits, (_MOST_RUNNING, running, "of all users")):
            if len(found) >= limit:
                detail = f"Jobs {which} that are under way: {limit}, which is the maximum. Try again later."
                raise Problem(429, detail, retry_after=5)
        self._jobs[job.id] = job
        job.running = asyncio.ensure_future(self._run(job, seconds, end))

    def find(self, id: str, model: str, user: str | None) -> LongJob:
        """Return a user's job about a model; raise `Problem` 404 if there is none."""
        job = self._jobs.get(id)
        if job is None or (job.model, job.user) != (model, user):
            detail = f"No job of yours has this id. The last {_MOST_KEPT} are kept for an hour after their end."
            raise Problem(404, detail)
        job.asked = time.monotonic()
        return job

    def cancel(self, job: LongJob | None) -> None:
        """Stop a job, or forget one that has ended."""
        if job is None or job.running is None:
            return
        if job.state == "running":
            job.running.cancel()
        else:
            self._jobs.pop(job.id, None)

    def forget(self, about: str) -> None:
        """Stop and forget the jobs about a file that was closed."""
        for job in [each for each in self._jobs.values() if each.about == about]:
            self.cancel(job)
            self._jobs.pop(job.id, None)

    async def _run(self, job: LongJob, seconds: float, end: Callable[[str], None]) -> None:
        state, problem = "canceled", Problem(410, "The job was canceled before it had a result.")
        try:
            await self._go_on(job, seconds)
            state = "done"
        except ClientDisconnect:  # nobody asks
            pass
        except (Problem, AnchorlineError) as error:
            state, problem = "failed", error if isinstance(error, Problem) else problem_from_error(error)
        except Exception:
            logger.exception("A job failed.")
            state, problem = "failed", Problem(500, INTERNAL_ERROR)
        finally:
            try:
                end({"done": "answered"}.get(state, state))
            except Problem as error:  # nobody could account for the answer
                state, problem = "failed", error
            job.note(state=state, problem=problem, step=None, ended=time.monotonic())
            self._drop()
            asyncio.get_running_loop().call_later(_KEEP_SECONDS, self._jobs.pop, job.id, None)

    async def _go_on(self, job: LongJob, seconds: float) -> None:
        n_late, before, turn = 0, 0.0, self._turns.setdefault(job.user, asyncio.Lock())
        while job.step is not None:
            try:
                async with turn:  # the jobs of a user go on in turns, so that they are no more work than one
                    result = await self._queue.run(None, job.step, job.until_unasked, seconds, before=before)
            except Problem as problem:
                is_full = problem.status == 429 and job.left > 0  # the queue: the next step waits until it is not
                n_late += not is_full
                is_late = problem.status == 503 and job.has_steps and n_late <= _MOST_LATE
                if self._queue.is_closed or not (is_full or is_late):
                    raise
                await asyncio.sleep(_BETWEEN_TRIES)
            else:
                n_late, before, content = 0, min(before + STEP_SECONDS, _MOST_BEFORE), json.loads(result)
                if content.get("is_done", True):
                    job.note(result=result, progress=1.0)
                    return
                job.note(result=result, progress=content["progress"])

    def _drop(self) -> None:
        """Forget the oldest ended job of whoever has most of them, if there are too many."""
        ended = [each for each in self._jobs.values() if each.state != "running"]
        if len(ended) > _MOST_KEPT:
            counts = Counter(each.user for each in ended)
            del self._jobs[min(ended, key=lambda each: (-counts[each.user], each.ended)).id]
