"""The model as the studio queries it: by one thread at a time, counted, and only while a client waits."""

import copy
import threading
from collections.abc import Callable
from dataclasses import replace
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
        return answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "__self__":
            raise AttributeError(name)
        return getattr(self._predict, name)


def lock_model(explainer: Explainer, metrics: Metrics) -> tuple[Explainer, Any]:
    """Return copies of the explainer and of its model that share one lock; the originals do not change."""
    lock = threading.Lock()
    locked = copy.copy(explainer)
    locked.target = replace(explainer.target, ask=LockedPredict(explainer.target.ask, lock, metrics))
    locked.model = _lock_methods(explainer.model, lock, metrics)
    return locked, locked.model


def _lock_methods(model: Any, lock: threading.Lock, metrics: Metrics) -> Any:
    """Return a copy of the model with locked methods, for callers that query the model directly."""
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
