"""Other finders of counterfactual examples: DiCE's random and genetic search."""

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.tasks import SEED

Finder = Callable[[int], list[dict[str, Any]]]  # from the position of a row to examples, as whole rows
DICE = ("dice random", "dice genetic")


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
    """Return the finder of a method in `DICE`; None if DiCE is not installed."""
    if find_spec("dice_ml") is None:
        return None
    import dice_ml

    method = name.split()[1]
    table = dice_ml.Data(
        dataframe=frame.assign(outcome=labels), continuous_features=list(numbers), outcome_name="outcome"
    )
    wrapped = dice_ml.Model(model=model, backend="sklearn", model_type="classifier")
    dice = dice_ml.Dice(table, wrapped, method=method)

    def find(row: int) -> list[dict[str, Any]]:
        options = {"random_seed": SEED} if method == "random" else {}
        try:
            answer = dice.generate_counterfactuals(
                frame.iloc[[row]], total_CFs=1, desired_class="opposite", verbose=False, **options
            )
        except Exception as error:  # DiCE raises if it finds none
            print(f"     dice {method}, row {row}: {type(error).__name__}: {error}"[:150], flush=True)
            return []
        examples = answer.cf_examples_list[0].final_cfs_df
        return [] if examples is None else examples.drop(columns="outcome").to_dict("records")

    return find
