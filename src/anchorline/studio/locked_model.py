"""The model as the studio queries it: by one thread at a time, counted, and only while a client waits."""

import copy
import threading
import time
from collections.abc import Callable
from typing import Any

from anchorline.explainer import Explainer
from anchorline.studio.job_queue import checkpoint, raise_if_canceled
from anchorline.studio.metrics import Metrics


class LockedPredict:
    """A predict function behind a lock, because many models are not thread-safe."""

    def __init__(self, predict: Callable[[Any], Any], lock: threading.Lock, metrics: Metrics) -> None:
        self._predict, self._lock, self._metrics = predict, lock, metrics

    def __call__(self, inputs: Any, **keywords: Any) -> Any:
        """Query the model once this thread holds the lock, unless every client has left."""
        checkpoint()
        with self._lock:
            raise_if_canceled()  # the clients may have left while this thread waited for the lock
            answer = self._predict(inputs, **keywords)
        self._metrics.model_rows.inc(len(inputs) if hasattr(inputs, "__len__") else 1)
        self._metrics.answered = time.monotonic()
        return answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "__self__":
            raise AttributeError(name)
        return getattr(self._predict, name)


def lock_model(explainer: Explainer, metrics: Metrics, *, ask_table: bool) -> tuple[Explainer, Any]:
    """Return copies of the explainer and of its model that share one lock; the model does not change.

    With ``ask_table``, the model is asked about the rows of the table now, so that no explanation depends on which
    ones came before it.
    """
    explainer.table_answers(ask=ask_table)
    lock = threading.Lock()
    locked = explainer.asking_through(lambda ask: LockedPredict(ask, lock, metrics))
    return locked, _lock_methods(explainer.model, lock, metrics)


def _lock_methods(model: Any, lock: threading.Lock, metrics: Metrics) -> Any:
    """Return a copy of the model with locked methods, for `verify`, which queries the model directly."""
    if not callable(getattr(model, "predict", None)):
        return LockedPredict(model, lock, metrics)
    locked = copy.copy(model)
    for name in ("predict", "predict_proba", "decision_function"):
        method = getattr(model, name, None)
        if callable(method):
            try:
                setattr(locked, name, LockedPredict(method, lock, metrics))
            except AttributeError:  # the model's attributes are read-only, so it is queried without the lock
                return model
    return locked
