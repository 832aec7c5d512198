"""The model as the studio asks it: by one thread at a time, counted, and not at all for those who have left."""

import copy
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from anchorline.explainer import Explainer
from anchorline.studio.metrics import Metrics
from anchorline.studio.work import check_wanted


class Gate:
    """A callable on rows behind a lock: many models are not made for two threads."""

    def __init__(self, ask: Callable[[Any], Any], lock: threading.Lock, metrics: Metrics) -> None:
        self._ask, self._lock, self._metrics = ask, lock, metrics

    def __call__(self, inputs: Any) -> Any:
        """Ask, when it is this thread's turn and somebody still waits."""
        check_wanted()
        with self._lock:
            check_wanted()  # it may have been a long wait
            answer = self._ask(inputs)
        self._metrics.count("anchorline_model_rows_total", len(inputs) if hasattr(inputs, "__len__") else 1)
        return answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") and name != "__self__":
            raise AttributeError(name)
        return getattr(self._ask, name)


def gated(explainer: Explainer, metrics: Metrics) -> tuple[Explainer, Any]:
    """The explainer and its model, both behind one gate; the ones given stay as they are."""
    lock = threading.Lock()
    shadow = copy.copy(explainer)
    shadow.target = replace(explainer.target, ask=Gate(explainer.target.ask, lock, metrics))
    shadow.model = _model(explainer.model, lock, metrics)
    return shadow, shadow.model


def _model(model: Any, lock: threading.Lock, metrics: Metrics) -> Any:
    """The model with its methods behind the gate, for those who ask it directly."""
    if not callable(getattr(model, "predict", None)):
        return Gate(model, lock, metrics)
    shadow = copy.copy(model)
    for name in ("predict", "predict_proba"):
        method = getattr(model, name, None)
        if callable(method):
            try:
                setattr(shadow, name, Gate(method, lock, metrics))
            except AttributeError:  # fixed attributes: asked without the gate
                return model
    return shadow
