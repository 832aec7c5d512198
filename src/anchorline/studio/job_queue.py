"""Computation outside the event loop: a bounded queue, a few threads, shared jobs and cancellation.

A thread cannot be stopped from outside. It stops itself at its next `checkpoint` when every client of its job has
left or timed out. Checkpoints are the queries of the model, the steps of the solvers, and the steps of every other
loop that may take long. There, a job that has run for long also makes room for others, so that a few expensive
requests cannot delay all others. Jobs take turns in the order of their `Job.rank`: every second that a job has run
counts as if it had arrived several seconds later. A job that has run little thus overtakes expensive ones, and
cheap jobs that keep arriving cannot hold it up for ever.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from anchorline.studio.cache import AnswerCache
from anchorline.studio.limits import StudioLimits
from anchorline.studio.metrics import Metrics
from anchorline.studio.problems import Problem

_thread_state = threading.local()
_SLICE = 0.25  # seconds that a job runs before it makes room for others
_PATIENCE = 3.0  # seconds by which a job makes room for others, per second that it has run
_CHECK_EVERY = 0.01  # seconds between two looks at the queue
_MAX_PAUSED = 16  # jobs that have begun and wait; each keeps its data in memory
_RETRY_LATER = {"Retry-After": "10"}
_SHUTTING_DOWN = "The server is shutting down. Send the request again when it has restarted."


class JobCanceledError(BaseException):
    """No client waits for this job; not an `Exception`, so that no handler mistakes it for a model's error."""


class ClientDisconnectedError(Exception):
    """The client has closed its connection, so that nobody can be answered."""


@dataclass(eq=False, slots=True)
class Job:
    """One computation and the number of requests that wait for it.

    Equal requests have the same ``key`` and share a job; a job with key None is never shared.
    """

    key: str | None
    function: Callable[[], bytes]
    future: "asyncio.Future[bytes]"
    n_waiters: int = 0
    canceled: threading.Event = field(default_factory=threading.Event)
    seconds: float = 0.0  # of running, before it was resumed for the last time
    resumed: float = 0.0
    checked: float = 0.0
    arrived: float = field(default_factory=time.perf_counter)

    @property
    def rank(self) -> float:
        """Its turn while it waits or is paused: the lowest rank comes first."""
        return self.arrived + _PATIENCE * self.seconds

    @property
    def running_seconds(self) -> float:
        """How long the job has run, without its pauses."""
        return self.seconds + time.perf_counter() - self.resumed


def raise_if_canceled() -> None:
    """Raise `JobCanceledError` if the job that this thread runs was canceled."""
    job: Job | None = getattr(_thread_state, "job", None)
    if job is not None and job.canceled.is_set():
        raise JobCanceledError


def checkpoint() -> None:
    """Stop the job that this thread runs if it was canceled, or pause it while jobs that have run less wait.

    Must not be called by a thread that holds a lock.
    """
    raise_if_canceled()
    job: Job | None = getattr(_thread_state, "job", None)
    if job is not None and time.perf_counter() - job.checked > _CHECK_EVERY:
        _thread_state.queue.pause(job)
        job.checked = time.perf_counter()
        raise_if_canceled()


def running_seconds() -> float:
    """Return how long the job of this thread has run, without its pauses; the clock's time outside of jobs."""
    job: Job | None = getattr(_thread_state, "job", None)
    return time.perf_counter() if job is None else job.running_seconds


class JobQueue:
    """Runs jobs in daemon threads; caches the answers of jobs that have a key."""

    def __init__(self, limits: StudioLimits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self.cache = AnswerCache(limits.cache_entries, limits.cache_bytes)
        self._waiting: deque[Job] = deque()
        self._paused: list[Job] = []
        self._changed = threading.Condition()
        self._joinable: dict[str, Job] = {}
        self._unfinished: set[Job] = set()
        self._is_closed = False
        self._mean_seconds = 0.3  # a moving average of the duration of a job, for Retry-After
        self.n_running = 0
        metrics.jobs_waiting.set_function(lambda: self.n_waiting)
        metrics.jobs_running.set_function(lambda: self.n_running)
        metrics.cache_entries.set_function(lambda: len(self.cache))
        metrics.cache_bytes.set_function(lambda: self.cache.n_bytes)

    def start(self) -> None:
        """Start the threads as daemons, so that a thread that hangs in a model cannot keep the process alive.

        Of these threads, at most ``limits.workers`` run at a time; the others have paused jobs or none.
        """
        for number in range(self.limits.workers + _MAX_PAUSED):
            threading.Thread(target=self._run_jobs, name=f"studio-{number}", daemon=True).start()

    @property
    def n_waiting(self) -> int:
        """The number of jobs that no thread has started."""
        return len(self._waiting)

    async def run(
        self,
        key: str | None,
        function: Callable[[], bytes],
        wait_for_disconnect: Callable[[], Coroutine[Any, Any, None]],
    ) -> bytes:
        """Return the answer of ``function``: from the cache, from a job under way with the same key, or computed.

        ``wait_for_disconnect()`` returns when the client has left. Then, or after the timeout, the job is
        canceled unless other requests wait for it. Raises `Problem` 429 if the queue is full, and `Problem` 503
        after the timeout.
        """
        cached = None if key is None else self.cache.get(key)
        self.metrics.cache_lookups.labels(outcome="miss" if cached is None else "hit").inc()
        if cached is not None:
            return cached
        job = (None if key is None else self._joinable.get(key)) or self._submit(key, function)
        job.n_waiters += 1
        disconnect = asyncio.ensure_future(wait_for_disconnect())
        outcome = "abandoned"
        try:
            both: set[asyncio.Future[Any]] = {job.future, disconnect}
            await asyncio.wait(both, timeout=self.limits.timeout, return_when=asyncio.FIRST_COMPLETED)
            if job.future.done():
                return job.future.result()
            outcome = "left" if disconnect.done() else "timed out"
            if disconnect.done():
                raise ClientDisconnectedError
            raise Problem(503, f"The answer took longer than {self.limits.timeout:g} s.", headers=_RETRY_LATER)
        finally:
            disconnect.cancel()
            job.n_waiters -= 1
            if job.n_waiters == 0 and not job.future.done():
                self._cancel(job, outcome)

    def close(self) -> None:
        """Accept no more jobs."""
        self._is_closed = True

    def abandon(self) -> None:
        """Cancel every unfinished job, and answer the requests that wait for one with 503."""
        self.close()
        for job in list(self._unfinished):
            if not job.future.done():
                self._cancel(job, "abandoned", Problem(503, _SHUTTING_DOWN, headers=_RETRY_LATER))

    def _submit(self, key: str | None, function: Callable[[], bytes]) -> Job:
        if self._is_closed:
            raise Problem(503, _SHUTTING_DOWN, headers=_RETRY_LATER)
        job = Job(key, function, asyncio.get_running_loop().create_future())
        with self._changed:
            if len(self._waiting) >= self.limits.queue:
                self.metrics.jobs.labels(outcome="refused").inc()
                seconds = math.ceil(len(self._waiting) * self._mean_seconds / self.limits.workers)
                retry_after = {"Retry-After": str(min(60, max(1, seconds)))}
                raise Problem(429, "Too many requests are waiting. Try again later.", headers=retry_after)
            self._waiting.append(job)
            self._changed.notify_all()
        self._unfinished.add(job)
        if key is not None:
            self._joinable[key] = job
        job.future.add_done_callback(lambda future: self._finish(job))
        return job

    def _forbid_joining(self, job: Job) -> None:
        if job.key is not None and self._joinable.get(job.key) is job:
            del self._joinable[job.key]

    def _finish(self, job: Job) -> None:
        self._unfinished.discard(job)
        self._forbid_joining(job)
        if job.future.cancelled() or job.future.exception() is not None:
            return
        self.metrics.jobs.labels(outcome="done").inc()
        if job.key is not None:
            self.cache.put(job.key, job.future.result())

    def _cancel(self, job: Job, outcome: str, problem: Problem | None = None) -> None:
        """Remove the job from the queue, or signal the thread that runs it to stop."""
        if job.future.done():
            return
        job.canceled.set()
        self._forbid_joining(job)
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)
            self._changed.notify_all()  # a paused job ends
        self.metrics.jobs.labels(outcome=outcome).inc()
        if problem is None:
            job.future.cancel()
        else:
            job.future.set_exception(problem)

    def pause(self, job: Job) -> None:
        """Let the calling thread wait while jobs of a lower rank need its place."""
        with self._changed:
            if not self._must_pause(job):
                return
            job.seconds = job.running_seconds
            self.n_running -= 1
            self._paused.append(job)
            self._changed.notify_all()
            self._changed.wait_for(lambda: job.canceled.is_set() or self._may_resume(job))
            self._paused.remove(job)
            self.n_running += 1
            self._changed.notify_all()
            job.resumed = time.perf_counter()

    def _must_pause(self, job: Job) -> bool:
        seconds = job.running_seconds
        rank = job.arrived + _PATIENCE * seconds
        if self._waiting and seconds > _SLICE and rank > self._waiting[0].rank:
            if len(self._paused) >= _MAX_PAUSED:
                self._end_longest()
                return False
            return True
        return any(rank > other.rank + _PATIENCE * _SLICE for other in self._paused)

    def _end_longest(self) -> None:
        """Cancel the paused job that has run longest, to make room for another one."""
        longest = max(self._paused, key=lambda paused: paused.seconds)
        problem = Problem(503, "Too many expensive requests run at once. Try again later.", headers=_RETRY_LATER)
        longest.future.get_loop().call_soon_threadsafe(self._cancel, longest, "ended", problem)

    def _may_resume(self, job: Job) -> bool:
        """Return whether a place is free, and it is the job's turn."""
        has_place = self.n_running < self.limits.workers
        return has_place and job is min((*self._paused, *self._first), key=lambda other: other.rank)

    def _may_start(self) -> bool:
        """Return whether a place is free, and it is the turn of the first job that waits."""
        if not self._waiting or self.n_running >= self.limits.workers:
            return False
        return self._waiting[0] is min((*self._first, *self._paused), key=lambda other: other.rank)

    @property
    def _first(self) -> list[Job]:
        """The job that has waited longest, if any waits."""
        return [self._waiting[0]] if self._waiting else []

    def _next_job(self) -> Job:
        with self._changed:
            self._changed.wait_for(self._may_start)
            job = self._waiting.popleft()
            self.n_running += 1
            self._changed.notify_all()  # the next one may have a place, too
            job.resumed = job.checked = time.perf_counter()
            return job

    def _run_jobs(self) -> None:
        """Run one job after another, for as long as the thread lives."""
        _thread_state.queue = self
        while True:
            job = self._next_job()
            _thread_state.job = job
            answer, error = b"", None
            try:
                answer = job.function()
            except BaseException as raised:  # passed on to the requests that wait; the thread must survive
                error = raised
            _thread_state.job = None
            with self._changed:
                self.n_running -= 1
                self._mean_seconds += 0.1 * (job.running_seconds - self._mean_seconds)
                self._changed.notify_all()
            loop = job.future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, job, answer, error)
            del job, answer, error  # so that nothing is kept in memory while the thread waits


def _settle(job: Job, answer: bytes, error: BaseException | None) -> None:
    if job.future.done():
        return
    if error is None:
        job.future.set_result(answer)
    elif isinstance(error, Exception):
        job.future.set_exception(error)
    else:
        job.future.cancel()
