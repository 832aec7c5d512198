"""Whether requests about cases can be answered; `/health`, in contrast, says only that the server is alive."""

import asyncio
import logging
import time

import numpy as np

from anchorline.studio.audit import CANNOT_WRITE, AuditLog
from anchorline.studio.catalog import Catalog
from anchorline.studio.job_queue import JobQueue
from anchorline.studio.problems import Problem

logger = logging.getLogger("anchorline.studio")
_RECENT = 10.0  # seconds; a model that answered within this time is not asked again
_PATIENCE = 5.0  # seconds within which the model must answer
_NO_ANSWER = "The model does not answer."


class Readiness:
    """Looks at the threads and the audit log, and asks the model about the first case."""

    def __init__(self, jobs: JobQueue, audit: AuditLog, catalog: Catalog) -> None:
        self._jobs, self._audit, self._catalog = jobs, audit, catalog
        self._question: asyncio.Future[bytes] | None = None

    async def reasons(self) -> list[str]:
        """Return why requests cannot be answered; nothing if they can."""
        n_stuck, n_workers = self._jobs.n_stuck, self._jobs.limits.workers
        reasons = [] if await self._model_answers() else [_NO_ANSWER]
        if n_stuck:
            reasons.append(f"{n_stuck} of {n_workers} workers {'is' if n_stuck == 1 else 'are'} stuck.")
        if self._audit.failed and not self._audit.resume():
            reasons.append(CANNOT_WRITE)
        return reasons

    async def _model_answers(self) -> bool:
        """Ask about one case, by one question for all who want to know; an answer holds for a while."""
        if time.monotonic() - self._jobs.metrics.answered < _RECENT:
            return True
        if self._question is None or self._question.done():
            asked = self._jobs.run(None, self._ask, asyncio.Event().wait)
            self._question = asyncio.ensure_future(asked)
        await asyncio.wait({self._question}, timeout=_PATIENCE)
        if not self._question.done():
            logger.error("The model has not answered a question about one case for %g s.", _PATIENCE)
            return False
        error = self._question.exception()
        if error is not None and not isinstance(error, Problem):
            logger.error("The model failed on the first case.", exc_info=error)
        return error is None

    def _ask(self) -> bytes:
        self._catalog.ask_rows(np.zeros(1, dtype=np.intp))
        return b""
