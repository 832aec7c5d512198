"""Other finders of counterfactual examples: DiCE's random and genetic search, and alibi's prototypes."""

import contextlib
import signal
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.tasks import SEED

Finder = Callable[[int], list[dict[str, Any]]]  # from the position of a row to examples, as whole rows
ALIBI_SECONDS = 60.0  # of processor time per row
DICE = ("dice random", "dice genetic")
PACKAGES = {"dice random": "dice_ml", "dice genetic": "dice_ml", "alibi prototypes": "alibi"}


class CountingModel:
    """A fitted classifier that counts the rows that it is queried about."""

    def __init__(self, model: Any) -> None:
        self.model, self.n_rows, self.classes_ = model, 0, model.classes_

    def predict_proba(self, rows: Any) -> Any:
        """Return the probabilities."""
        self.n_rows += len(rows)
        return self.model.predict_proba(rows)

    def predict(self, rows: Any) -> Any:
        """Return the most probable classes."""
        return self.classes_[self.predict_proba(rows).argmax(axis=1)]


def peer(name: str, model: CountingModel, frame: Any, labels: np.ndarray, numbers: Sequence[str]) -> Finder | None:
    """Return a peer's finder; None if the peer is not installed."""
    if find_spec(PACKAGES[name]) is None:
        return None
    if name in DICE:
        return _dice(model, frame, labels, numbers, name.split()[1])
    return _alibi(model, frame, numbers)


def _dice(model: CountingModel, frame: Any, labels: np.ndarray, numbers: Sequence[str], method: str) -> Finder:
    import dice_ml

    table = dice_ml.Data(
        dataframe=frame.assign(outcome=labels), continuous_features=list(numbers), outcome_name="outcome"
    )
    wrapped = dice_ml.Model(model=model, backend="sklearn", model_type="classifier")
    peer = dice_ml.Dice(table, wrapped, method=method)

    def find(row: int) -> list[dict[str, Any]]:
        options = {"random_seed": SEED} if method == "random" else {}
        try:
            answer = peer.generate_counterfactuals(
                frame.iloc[[row]], total_CFs=1, desired_class="opposite", verbose=False, **options
            )
        except Exception as error:  # DiCE raises if it finds none
            print(f"     dice {method}, row {row}: {type(error).__name__}: {error}"[:150], flush=True)
            return []
        examples = answer.cf_examples_list[0].final_cfs_df
        return [] if examples is None else examples.drop(columns="outcome").to_dict("records")

    return find


def _alibi(model: CountingModel, frame: Any, numbers: Sequence[str]) -> Finder:
    """Counterfactuals guided by prototypes, with default settings; categories are coded by whole numbers."""
    import pandas as pd
    import tensorflow as tf
    from alibi.explainers import CounterfactualProto

    tf.compat.v1.disable_v2_behavior()
    names = [str(name) for name in frame.columns]
    levels = {name: sorted(frame[name].unique(), key=str) for name in names if name not in numbers}
    codes = frame.copy()
    for name, values in levels.items():
        codes[name] = frame[name].map({value: i for i, value in enumerate(values)})
    encoded = codes.to_numpy(dtype=np.float64)

    def decoded(rows: np.ndarray) -> Any:
        columns = {}
        for j, name in enumerate(names):
            values = levels.get(name)
            at = None if values is None else np.clip(np.rint(rows[:, j]).astype(int), 0, len(values) - 1)
            columns[name] = rows[:, j] if at is None else np.array(values, dtype=object)[at]
        return pd.DataFrame(columns).astype(frame.dtypes.to_dict())

    explainer = CounterfactualProto(
        lambda rows: model.predict_proba(decoded(np.asarray(rows, dtype=np.float64))),
        (1, len(names)),
        use_kdtree=True,
        feature_range=(encoded.min(axis=0)[None].astype(np.float32), encoded.max(axis=0)[None].astype(np.float32)),
        cat_vars={names.index(name): len(values) for name, values in levels.items()},
        ohe=False,
    )
    explainer.fit(encoded.astype(np.float32), d_type="abdm", disc_perc=[25, 50, 75])

    def find(row: int) -> list[dict[str, Any]]:
        try:
            with _processor_limit(ALIBI_SECONDS):
                answer = explainer.explain(encoded[[row]].astype(np.float32))
        except TimeoutError:
            return []
        return (
            [] if answer.cf is None else decoded(np.asarray(answer.cf["X"], dtype=np.float64)).to_dict("records")
        )

    return find


@contextlib.contextmanager
def _processor_limit(seconds: float) -> Iterator[None]:
    """Raise `TimeoutError` in the block once the process has used this much processor time."""

    def stop(*_: Any) -> None:
        raise TimeoutError(f"{seconds:g} s of processor time were used")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds, 1.0)  # again and again, because a callback may swallow the error
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
