"""Computation outside the event loop: a bounded queue, turns, shared jobs and cancellation.

A thread cannot be stopped from outside. It stops itself at its next `checkpoint` when every client of its job has
left or its time is up. Checkpoints are the queries of the model, the steps of the solvers, and the steps of every
other loop that may take long. There, a job also gives its turn to others:

- Jobs that have run for less than half a second come first. While they wait, longer ones together get a
  tenth of the time, so that no number of expensive requests holds up the others, and none is starved.
- Among equals, the lowest `Job.rank` comes first: time that a job has run counts as if it had arrived later. The
  time counts in steps that double, so that equally long jobs end one after another, and not all at the end.

Every accepted job is finished, however many wait: the time limit counts the time that it runs.
"""

import asyncio
import contextlib
import contextvars
import hashlib
import json
import math
import threading
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache
from starlette.requests import ClientDisconnect

from anchorline.studio.access import StudioLimits
from anchorline.studio.observability import Metrics
from anchorline.studio.problems import Problem

_SLICE = 0.5  # seconds; a job that has run for longer makes room for those that have not
_STEP = 1 / 32  # seconds; the first step of the time that counts for the rank
_PATIENCE = 3.0  # seconds by which a job falls behind, per second that it has run
_SHARE = 0.1  # of the time, for long jobs while others wait
_MOST_OWED, _MOST_BORROWED = 0.1, 1.0  # seconds of long jobs in a row while others wait, and without a turn
_CHECK_EVERY = 0.01  # seconds between two looks at the queue
_STUCK_SECONDS = 5.0  # a thread that has not stopped this long after it should is stuck
_ENTRY_BYTES = 1000  # of memory that a cached answer takes beside its bytes, about
_SHUTTING_DOWN = "The server is shutting down. Send the request again when it has restarted."


class JobCanceledError(BaseException):
    """No client waits for this job; not an `Exception`, so that no handler mistakes it for a model's error."""


@dataclass(eq=False, slots=True)
class Job:
    """One computation and the number of requests that wait for it.

    Equal requests have the same ``key`` and share a job; a job with key None is never shared.
    """

    key: str | None
    function: Callable[[], bytes]
    future: "asyncio.Future[bytes]"
    pause: Callable[["Job"], None]
    turn: threading.Event = field(default_factory=threading.Event)
    n_waiters: int = 0
    canceled: float = math.inf  # when it should have stopped
    seconds: float = 0.0  # that count as run before it was resumed for the last time
    resumed: float | None = None  # None while it waits
    checked: float = 0.0
    arrived: float = field(default_factory=time.perf_counter)

    @property
    def running_seconds(self) -> float:
        """How long the job has run, without its pauses."""
        return self.seconds + (0.0 if self.resumed is None else time.perf_counter() - self.resumed)

    @property
    def is_long(self) -> bool:
        """Whether the job has run so long that it makes room for others."""
        return self.running_seconds >= _SLICE

    @property
    def rank(self) -> float:
        """Its turn among equals: the lowest rank comes first."""
        steps = self.running_seconds / _STEP
        counted = 0.0 if steps < 1 else _STEP * 2.0 ** math.floor(math.log2(steps))
        return self.arrived + _PATIENCE * counted


_current: contextvars.ContextVar[Job | None] = contextvars.ContextVar("job", default=None)


def raise_if_canceled() -> None:
    """Raise `JobCanceledError` if the job that this thread runs was canceled."""
    job = _current.get()
    if job is not None and job.canceled < math.inf:
        raise JobCanceledError


def checkpoint() -> None:
    """Stop the job that this thread runs if it was canceled, or pause it while others come first.

    Must not be called by a thread that holds a lock.
    """
    raise_if_canceled()
    job = _current.get()
    if job is not None and time.perf_counter() - job.checked > _CHECK_EVERY:
        job.pause(job)
        raise_if_canceled()


def running_seconds() -> float:
    """Return how long the job of this thread has run, without its pauses; the clock's time outside of jobs."""
    job = _current.get()
    return time.perf_counter() if job is None else job.running_seconds


def request_key(route: str, request: Mapping[str, Any]) -> str:
    """Return the cache key of a request, which does not depend on the order of the request's keys."""
    return hashlib.sha256(f"{route} {json.dumps(request, sort_keys=True)}".encode()).hexdigest()


class JobQueue:
    """Runs jobs, ``limits.workers`` at a time; caches the answers of jobs that have a key.

    Every job has a daemon thread of its own, so that a thread that hangs in a model cannot keep the process alive.
    """

    def __init__(self, limits: StudioLimits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        size = lambda answer: len(answer) + _ENTRY_BYTES  # noqa: E731
        self.cache: LRUCache[str, bytes] = LRUCache(limits.cache_bytes, getsizeof=size)  # for the event loop only
        self._lock = threading.Lock()
        self._waiting: list[Job] = []  # for a turn, whether or not they have begun
        self._running: set[Job] = set()
        self._owed = 0.0  # seconds of running to the long jobs
        self._unfinished: set[Job] = set()
        self.is_closed = False
        self._mean_seconds = 0.3  # a moving average of the duration of a job, for Retry-After
        metrics.jobs_waiting.set_function(lambda: self.n_waiting)
        metrics.jobs_running.set_function(lambda: self.n_running)
        metrics.cache_entries.set_function(lambda: len(self.cache))
        metrics.cache_bytes.set_function(lambda: self.cache.currsize)

    @property
    def n_waiting(self) -> int:
        """The number of jobs that wait for a turn."""
        return len(self._waiting)

    @property
    def n_running(self) -> int:
        """The number of jobs that run."""
        return len(self._running)

    @property
    def n_stuck(self) -> int:
        """The number of jobs that run although nobody has waited for them for several seconds."""
        with self._lock:
            return sum(time.perf_counter() - job.canceled > _STUCK_SECONDS for job in self._running)

    async def run(
        self,
        key: str | None,
        function: Callable[[], bytes],
        wait_for_disconnect: Callable[[], Coroutine[Any, Any, Any]],
        timeout: float | None = None,
        *,
        before: float = 0.0,
    ) -> bytes:
        """Return the answer of ``function``: from the cache, from a job under way with the same key, or computed.

        ``wait_for_disconnect()`` returns when the client has left. Then, or when it has run for too long, the job
        is canceled unless other requests wait for it. Raises `Problem` 429 if the queue is full, and `Problem` 503
        if the job has run for longer than ``timeout`` seconds (by default those of the limits) or all threads are
        stuck. What goes on with work that has run for ``before`` seconds gets the turn of a job that has, too.
        """
        timeout = (self.limits.timeout if timeout is None else timeout) + before
        cached = None if key is None else self.cache.get(key)
        self.metrics.cache_lookups.labels(outcome="miss" if cached is None else "hit").inc()
        if cached is not None:
            return cached
        shared = (job for job in self._unfinished if key is not None and job.key == key)
        job = next(shared, None) or self._submit(key, function, before)
        job.n_waiters += 1
        disconnect = asyncio.ensure_future(wait_for_disconnect())
        outcome = "abandoned"
        try:
            while not job.future.done():
                both: set[asyncio.Future[Any]] = {job.future, disconnect}
                left = max(0.01, timeout - job.running_seconds)
                await asyncio.wait(both, timeout=min(1.0, left), return_when=asyncio.FIRST_COMPLETED)
                if job.future.done():
                    break
                if disconnect.done():
                    outcome = "left"
                    raise ClientDisconnect
                if job.running_seconds > timeout:
                    outcome = "timed out"
                    detail = f"The answer took longer than {timeout - before:g} s."
                    raise Problem(503, detail, retry_after=10)
                if self.n_stuck >= self.limits.workers:
                    raise Problem(503, "The model does not answer. Try again later.", retry_after=10)
            return job.future.result()
        finally:
            disconnect.cancel()
            job.n_waiters -= 1
            if job.n_waiters == 0 and not job.future.done():
                self._cancel(job, outcome)

    def close(self) -> None:
        """Accept no more jobs."""
        self.is_closed = True

    def abandon(self) -> None:
        """Cancel every unfinished job, and answer the requests that wait for one with 503."""
        self.close()
        for job in list(self._unfinished):
            self._cancel(job, "abandoned", Problem(503, _SHUTTING_DOWN, retry_after=10))

    def _submit(self, key: str | None, function: Callable[[], bytes], before: float) -> Job:
        if self.is_closed:
            raise Problem(503, _SHUTTING_DOWN, retry_after=10)
        if len(self._unfinished) >= self.limits.queue + self.limits.workers:
            self.metrics.jobs.labels(outcome="refused").inc()
            seconds = math.ceil(len(self._unfinished) * self._mean_seconds / self.limits.workers)
            detail = "Too many requests are waiting. Try again later."
            raise Problem(429, detail, retry_after=min(60, max(1, seconds)))
        job = Job(key, function, asyncio.get_running_loop().create_future(), self._pause, seconds=before)
        context = contextvars.copy_context()
        threading.Thread(target=context.run, args=(self._work, job), name="studio", daemon=True).start()
        self._unfinished.add(job)
        job.future.add_done_callback(lambda future: self._finish(job))
        with self._lock:
            self._waiting.append(job)
            self._give_turns()
        return job

    def _finish(self, job: Job) -> None:
        self._unfinished.discard(job)
        if job.future.cancelled() or job.future.exception() is not None:
            return
        self.metrics.jobs.labels(outcome="done").inc()
        if job.key is not None:
            with contextlib.suppress(ValueError):  # the answer is larger than the cache
                self.cache[job.key] = job.future.result()

    def _cancel(self, job: Job, outcome: str, problem: Problem | None = None) -> None:
        """Remove the job from the queue, or signal the thread that runs it to stop."""
        if job.future.done():
            return
        self._unfinished.discard(job)
        with self._lock:
            job.canceled = time.perf_counter()
            if job in self._waiting:
                self._waiting.remove(job)
            job.turn.set()  # its thread ends
        self.metrics.jobs.labels(outcome=outcome).inc()
        if problem is None:
            job.future.cancel()
        else:
            job.future.set_exception(problem)

    def _give_turns(self) -> None:
        """Let the next jobs run, as far as there is room; the caller holds the lock."""
        while self._waiting and len(self._running) < self.limits.workers:
            job = self._next()
            self._waiting.remove(job)
            self._running.add(job)
            job.resumed = job.checked = time.perf_counter()
            job.turn.set()

    def _next(self, *running: Job) -> Job:
        """Return the job whose turn it is, among those that wait and the one that may make room."""
        candidates = [*running, *self._waiting]
        long, others = [job for job in candidates if job.is_long], [job for job in candidates if not job.is_long]
        if long and others:
            is_due = self._owed > 0 and not any(job.is_long for job in self._running.difference(running))
            candidates = long if is_due else others
        return min(candidates, key=lambda job: job.rank)

    def _pause(self, job: Job) -> None:
        """Let the calling thread wait if another job comes first."""
        with self._lock:
            now = time.perf_counter()
            elapsed, job.checked = now - job.checked, now
            if any(other.is_long != job.is_long for other in self._waiting):
                owed = self._owed + (-elapsed if job.is_long else _SHARE * elapsed)
                self._owed = min(_MOST_OWED, max(-_MOST_BORROWED, owed))
            if job.canceled < math.inf or self._next(job) is job:
                return
            job.seconds, job.resumed = job.running_seconds, None
            job.turn.clear()
            self._running.discard(job)
            self._waiting.append(job)
            self._give_turns()
        job.turn.wait()

    def _work(self, job: Job) -> None:
        """Run one job once it is its turn."""
        job.turn.wait()
        _current.set(job)
        answer, error = b"", None
        try:
            raise_if_canceled()
            answer = job.function()
        except BaseException as raised:  # passed on to the requests that wait
            error = raised
        with self._lock:
            if job in self._running:
                self._running.remove(job)
                self._mean_seconds += 0.1 * (job.running_seconds - self._mean_seconds)
                self._give_turns()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            job.future.get_loop().call_soon_threadsafe(_settle, job, answer, error)


def _settle(job: Job, answer: bytes, error: BaseException | None) -> None:
    if job.future.done():
        return
    if error is None:
        job.future.set_result(answer)
    elif isinstance(error, Exception):
        job.future.set_exception(error)
    else:
        job.future.cancel()
