"""Limit BLAS to one thread while rows are explained.

The last bits of a model's answers may depend on the number of threads.
"""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_lock = threading.Lock()
_active_limits: list[Any] = []  # one per caller inside the context; the thread count belongs to the whole process


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread; when several callers overlap, the last to leave restores the original limit."""
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
