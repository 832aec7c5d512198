"""Work off the event loop: a bounded queue, a few threads, one computation for equal requests, cancellation.

A thread cannot be stopped from outside; it stops itself at the next question to the model (`check_wanted`)
when everybody who waited for it has left, or the time is over.
"""

import asyncio
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from anchorline.studio.cache import Cache
from anchorline.studio.limits import Limits
from anchorline.studio.metrics import Metrics
from anchorline.studio.problems import Problem

_of_thread = threading.local()
_LATER = {"Retry-After": "10"}


class Cancelled(BaseException):
    """Nobody waits for this any more; not an `Exception`, so that no handler takes it for a model's error."""


class Left(Exception):
    """The client has left: there is nobody to answer."""


@dataclass(eq=False, slots=True)
class Job:
    """One computation, and how many wait for it; equal requests have the same ``key`` (None: they have none)."""

    key: str | None
    function: Callable[[], bytes]
    future: "asyncio.Future[bytes]"
    waiters: int = 0
    unwanted: threading.Event = field(default_factory=threading.Event)


def check_wanted() -> None:
    """Leave the computation of this thread if nobody waits for it."""
    job: Job | None = getattr(_of_thread, "job", None)
    if job is not None and job.unwanted.is_set():
        raise Cancelled


class Work:
    """Runs jobs in daemon threads; answers that have a key are kept, and computed once for all who ask."""

    def __init__(self, limits: Limits, metrics: Metrics) -> None:
        self.limits, self.metrics = limits, metrics
        self.cache = Cache(limits.cache_entries, limits.cache_bytes)
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._under_way: dict[str, Job] = {}
        self._unfinished: set[Job] = set()
        self._closed = False
        self._seconds = 0.3  # how long a job usually takes, for Retry-After
        self.n_running = 0

    def start(self) -> None:
        """Start the threads; daemons, so that one that hangs in a model cannot keep the process."""
        for number in range(self.limits.workers):
            threading.Thread(target=self._serve, name=f"studio-{number}", daemon=True).start()

    @property
    def n_waiting(self) -> int:
        """Jobs that no thread has begun."""
        return len(self._waiting)

    async def run(
        self, key: str | None, function: Callable[[], bytes], gone: Callable[[], Coroutine[Any, Any, None]]
    ) -> bytes:
        """The answer of ``function``: kept, under way for somebody else, or computed now.

        ``gone()`` returns when the client has left: then, or after the time-out, the job is dropped unless
        others wait for it too. `Problem` 429 where the queue is full, 503 where the time is over.
        """
        found = None if key is None else self.cache.get(key)
        self.metrics.count("anchorline_cache_total", outcome="miss" if found is None else "hit")
        if found is not None:
            return found
        job = (None if key is None else self._under_way.get(key)) or self._submit(key, function)
        job.waiters += 1
        left = asyncio.ensure_future(gone())
        why = "abandoned"
        try:
            both: set[asyncio.Future[Any]] = {job.future, left}
            await asyncio.wait(both, timeout=self.limits.timeout, return_when=asyncio.FIRST_COMPLETED)
            if job.future.done():
                return job.future.result()
            why = "left" if left.done() else "timed out"
            if left.done():
                raise Left
            raise Problem(503, f"No answer within {self.limits.timeout:g} s.", headers=_LATER)
        finally:
            left.cancel()
            job.waiters -= 1
            if job.waiters == 0 and not job.future.done():
                self._drop(job, why)

    def close(self) -> None:
        """Take no more jobs."""
        self._closed = True

    def abandon(self) -> None:
        """Give up whatever is not finished; those who wait are told."""
        self.close()
        for job in list(self._unfinished):
            if not job.future.done():
                self._drop(job, "abandoned", Problem(503, "The server is shutting down.", headers=_LATER))

    def _submit(self, key: str | None, function: Callable[[], bytes]) -> Job:
        if self._closed:
            raise Problem(503, "The server is shutting down.", headers=_LATER)
        job = Job(key, function, asyncio.get_running_loop().create_future())
        with self._changed:
            if len(self._waiting) >= self.limits.queue:
                self.metrics.count("anchorline_jobs_total", outcome="refused")
                seconds = min(60, max(1, math.ceil(len(self._waiting) * self._seconds / self.limits.workers)))
                raise Problem(429, "Too much is waiting. Try again.", headers={"Retry-After": str(seconds)})
            self._waiting.append(job)
            self._changed.notify()
        self._unfinished.add(job)
        if key is not None:
            self._under_way[key] = job
        job.future.add_done_callback(lambda future: self._forget(job))
        return job

    def _leave(self, job: Job) -> None:
        """Nobody can join the job any more."""
        if job.key is not None and self._under_way.get(job.key) is job:
            del self._under_way[job.key]

    def _forget(self, job: Job) -> None:
        self._unfinished.discard(job)
        self._leave(job)
        if job.future.cancelled() or job.future.exception() is not None:
            return
        self.metrics.count("anchorline_jobs_total", outcome="done")
        if job.key is not None:
            self.cache.put(job.key, job.future.result())

    def _drop(self, job: Job, why: str, problem: Problem | None = None) -> None:
        """Nobody waits for the job: take it out of the queue, or tell its thread."""
        job.unwanted.set()
        self._leave(job)
        with self._changed:
            if job in self._waiting:
                self._waiting.remove(job)
        self.metrics.count("anchorline_jobs_total", outcome=why)
        if problem is None:
            job.future.cancel()
        else:
            job.future.set_exception(problem)

    def _serve(self) -> None:
        """A thread's life: one job after the other."""
        while True:
            with self._changed:
                while not self._waiting:
                    self._changed.wait()
                job = self._waiting.popleft()
                self.n_running += 1
            _of_thread.job = job
            began = time.perf_counter()
            answer, error = b"", None
            try:
                answer = job.function()
            except BaseException as raised:  # told to whoever waits; the thread lives on
                error = raised
            _of_thread.job = None
            with self._changed:
                self.n_running -= 1
                self._seconds += 0.1 * (time.perf_counter() - began - self._seconds)
            loop = job.future.get_loop()
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, job, answer, error)
            del job, answer, error  # nothing is held while waiting


def _settle(job: Job, answer: bytes, error: BaseException | None) -> None:
    if job.future.done():
        return
    if error is None:
        job.future.set_result(answer)
    elif isinstance(error, Exception):
        job.future.set_exception(error)
    else:
        job.future.cancel()
