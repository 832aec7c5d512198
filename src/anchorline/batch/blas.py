"""One BLAS thread while rows are explained: a model's last bits may depend on their number."""

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

_lock = threading.Lock()
_within: list[Any] = []  # the limits set by the threads that are inside; the number is the whole process's


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread; the last one out, of several that are inside, puts back what the first one met."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  comes with scikit-learn

    with _lock:
        _within.append(threadpool_limits(1, user_api="blas"))  # each: a library may have been loaded since
    try:
        yield
    finally:
        with _lock:
            if len(_within) > 1:
                _within.pop()  # not the first, whose limits were those of before
            else:
                _within.pop().restore_original_limits()
