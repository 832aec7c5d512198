"""XGBoost's own files, .json and .ubj: models that return numbers or class scores, depending on the objective."""

import itertools
import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.errors import MissingDependencyError, ModelFileError, ModelInputError
from anchorline.model.loaders.files import Options, read_whole
from anchorline.model.loaders.rows import InputRows

MAX_BYTES = 2**31 - 1
_TWO_CLASSES = ("binary:logistic", "binary:hinge")  # objectives that return the probability of class 1


def load(name: str, kind: str, options: Options) -> "XgboostModel":
    """Read the file with XGBoost's own reader."""
    try:
        import xgboost  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError.for_package("xgboost", "boosters") from error
    content = read_whole(Path(name), MAX_BYTES)
    if not content.lstrip().startswith(b"{"):
        raise ModelFileError(
            f"{name!r} is not an XGBoost model in JSON or UBJSON. Type: booster.save_model('model.json')"
        )
    try:
        return XgboostModel(xgboost.Booster(model_file=bytearray(content)), name)
    except ModelFileError:
        raise
    except Exception as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
        raise ModelFileError(f"XGBoost cannot read {name!r}: {reason}") from error


class XgboostModel:
    """A callable on frames and 2-D arrays: probabilities (n, c) of the classes 0, 1, ..., or numbers (n,)."""

    def __init__(self, booster: Any, name: str) -> None:
        self.booster, self._name = booster, name
        booster.set_param({"nthread": 1, "device": "cpu"})
        objective = json.loads(booster.save_config())["learner"]["objective"]["name"]
        self.objective = str(objective)
        self._names, self._types = booster.feature_names, booster.feature_types
        self.feature_names_in_ = self._names  # None if the model identifies columns by their order
        self._categories = _categories(json.loads(booster.save_raw("json")))
        best = booster.attr("best_iteration")
        self.iterations = (0, int(best) + 1 if best is not None else 0)
        n_classes = 2 if self.objective in _TWO_CLASSES else self._n_classes()
        self.classes_ = list(range(n_classes)) if n_classes > 1 else None

    def _n_classes(self) -> int:
        if not self.objective.startswith("multi:"):
            return 0
        return int(json.loads(self.booster.save_config())["learner"]["learner_model_param"]["num_class"])

    def __repr__(self) -> str:
        return f"XgboostModel({self._name!r})"

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the model's answers to rows."""
        margin = self.objective == "multi:softmax"  # it returns labels; its margins give probabilities
        answer = self._predict(inputs, output_margin=margin)
        if self.objective in _TWO_CLASSES:  # in float32, as XGBClassifier computes it, for the same bytes
            return np.column_stack([1 - answer, answer])
        answer = np.asarray(answer, dtype=np.float64)
        if margin:
            powers = np.exp(answer - answer.max(axis=1, keepdims=True))
            return np.asarray(powers / powers.sum(axis=1, keepdims=True))
        return answer

    def margins(self, inputs: Any) -> np.ndarray:
        """Return the sums of trees inside the link function: (n,) for two classes, otherwise (n, c)."""
        return self._predict(inputs, output_margin=True)

    def _predict(self, inputs: Any, output_margin: bool) -> np.ndarray:
        import xgboost  # noqa: PLC0415

        matrix = xgboost.DMatrix(
            self.features(inputs), feature_names=self._names, feature_types=self._types, nthread=1
        )
        return np.asarray(
            self.booster.predict(matrix, output_margin=output_margin, iteration_range=self.iterations)
        )

    def features(self, inputs: Any) -> np.ndarray:
        """Return the numbers (n, m) that XGBoost gets for rows, with codes for categories."""
        rows = InputRows(inputs)
        n_columns = self.booster.num_features()
        positions = rows.all_positions(n_columns) if self._names is None else rows.positions(self._names)
        columns = []
        for j, position in enumerate(positions):
            if self._types is None or self._types[j] != "c":
                columns.append(rows.numbers(position))
            elif self._categories is not None and self._categories[j]:
                columns.append(rows.codes(position, self._categories[j], unknown=None))
            else:
                columns.append(_read_codes(rows, position))
        return np.column_stack(columns)


def _read_codes(rows: InputRows, position: int) -> np.ndarray:
    """Return a column that must hold codes, because the model file has no list of its categories."""
    try:
        return rows.numbers(position)
    except ModelInputError as error:
        raise ModelInputError(
            f"Column {rows.column_label(position)} holds categories, and the model file does not list the "
            "categories that it was trained on. Pass their codes 0, 1, ..., or save the model again with XGBoost "
            "3.1 or later."
        ) from error


def _categories(model: dict[str, Any]) -> list[list[Any]] | None:
    """Return the categories of every feature in the order of their codes, or None if the file has none."""
    booster = model["learner"]["gradient_booster"]
    booster = booster.get("gbtree", booster)  # dart stores its trees one level lower
    encodings = booster.get("model", {}).get("cats", {}).get("enc")
    if not encodings:
        return None
    return [_decoded(encoding) for encoding in encodings]


def _decoded(encoding: dict[str, Any]) -> list[Any]:
    values = encoding["values"]
    if "offsets" not in encoding:
        return [value for value in values if not (isinstance(value, float) and math.isnan(value))]
    offsets, text = encoding["offsets"], bytes(value & 0xFF for value in values)
    return [text[start:stop].decode("utf-8", "replace") for start, stop in itertools.pairwise(offsets)]
