"""XGBoost's own files, .json and .ubj, and LightGBM's, .txt: numbers or class scores, as their objective says."""

import itertools
import json
import math
import re
from typing import Any

import numpy as np

from anchorline.errors import ModelFileError, ModelInputError
from anchorline.model.loaders.rows import FileModel, InputRows

_TWO_CLASSES = ("binary:logistic", "binary:hinge")  # XGBoost's objectives that return the probability of class 1


def load(name: str, kind: str, content: bytes, trust: tuple[str, ...]) -> "XgboostModel | LightgbmModel":
    """Read a file with the library's own reader, after checks that LightGBM leaves out."""
    if kind == "xgboost":
        import xgboost  # noqa: PLC0415

        if not content.lstrip().startswith(b"{"):
            raise ModelFileError(
                f"{name!r} is not an XGBoost model in JSON or UBJSON. Type: booster.save_model('model.json')"
            )
        return XgboostModel(xgboost.Booster(model_file=bytearray(content)), name)
    import lightgbm  # noqa: PLC0415

    text = content.decode("utf-8")
    if not re.match(r"tree\r?\n", text) or "feature_names" not in _head(text):
        raise ModelFileError(f"{name!r} is not a LightGBM model. Type: booster.save_model('model.txt')")
    if "end of trees" not in text:  # LightGBM's reader would read past the end of the text
        raise ModelFileError(f"{name!r} is cut off: it lacks the line 'end of trees'.")
    return LightgbmModel(lightgbm.Booster(model_str=text), _head(text), _lists_of(text, name), name)


class XgboostModel(FileModel):
    """A callable on frames and 2-D arrays: probabilities (n, c) of the classes 0, 1, ..., or numbers (n,)."""

    def __init__(self, booster: Any, name: str) -> None:
        super().__init__(name)
        self.booster = booster
        booster.set_param({"nthread": 1, "device": "cpu"})
        learner = json.loads(booster.save_config())["learner"]
        self.objective = str(learner["objective"]["name"])
        self.feature_names_in_ = booster.feature_names  # None if the model identifies columns by their order
        self._types = booster.feature_types or ["q"] * booster.num_features()
        trees = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
        trees = trees.get("gbtree", trees)  # dart stores its trees one level lower
        self._categories = [_decoded(part) for part in trees.get("model", {}).get("cats", {}).get("enc") or ()]
        best = booster.attr("best_iteration")
        self.iterations = (0, int(best) + 1 if best is not None else 0)
        n_classes = 2 if self.objective in _TWO_CLASSES else 0
        if self.objective.startswith("multi:"):
            n_classes = int(learner["learner_model_param"]["num_class"])
        self.classes_ = list(range(n_classes)) if n_classes > 1 else None

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the model's answers to rows."""
        is_margin = self.objective == "multi:softmax"  # it returns labels; its margins give probabilities
        answer = self._predict(inputs, output_margin=is_margin)
        if self.objective in _TWO_CLASSES:  # in float32, as XGBClassifier computes it, for the same bytes
            return np.column_stack([1 - answer, answer])
        answer = np.asarray(answer, dtype=np.float64)
        if is_margin:
            powers = np.exp(answer - answer.max(axis=1, keepdims=True))
            return np.asarray(powers / powers.sum(axis=1, keepdims=True))
        return answer

    def margins(self, inputs: Any) -> np.ndarray:
        """Return the sums of trees inside the link function: (n,) for two classes, otherwise (n, c)."""
        return self._predict(inputs, output_margin=True)

    def _predict(self, inputs: Any, output_margin: bool) -> np.ndarray:
        import xgboost  # noqa: PLC0415

        names, types = self.feature_names_in_, self.booster.feature_types
        matrix = xgboost.DMatrix(self.features(inputs), feature_names=names, feature_types=types, nthread=1)
        return np.asarray(
            self.booster.predict(matrix, output_margin=output_margin, iteration_range=self.iterations)
        )

    def features(self, inputs: Any) -> np.ndarray:
        """Return the numbers (n, m) that XGBoost gets for rows, with codes for categories."""
        rows, names = InputRows(inputs), self.feature_names_in_
        positions = rows.all_positions(self.booster.num_features()) if names is None else rows.positions(names)
        return np.column_stack([self._column(rows, position, j) for j, position in enumerate(positions)])

    def _column(self, rows: InputRows, position: int, j: int) -> np.ndarray:
        is_category = self._types[j] == "c"
        if is_category and j < len(self._categories) and self._categories[j]:
            return rows.codes(position, self._categories[j], unknown=None)
        try:
            return rows.numbers(position)
        except ModelInputError as error:
            if not is_category:
                raise
            raise ModelInputError(
                f"Column {rows.column_label(position)} holds categories, and the model file does not list the "
                "categories that it was trained on. Pass their codes 0, 1, ..., or save the model again with "
                "XGBoost 3.1 or later."
            ) from error


def _decoded(encoding: dict[str, Any]) -> list[Any]:
    """Return the categories of a feature in the order of their codes."""
    values = encoding["values"]
    if "offsets" not in encoding:
        return [value for value in values if not (isinstance(value, float) and math.isnan(value))]
    text = bytes(value & 0xFF for value in values)
    return [text[start:stop].decode("utf-8", "replace") for start, stop in itertools.pairwise(encoding["offsets"])]


class LightgbmModel(FileModel):
    """A callable on frames and 2-D arrays: probabilities (n, c) of the classes 0, 1, ..., or numbers (n,).

    ``categories`` are those of every column, by its position; None if LightGBM has to match them.
    """

    def __init__(
        self, booster: Any, head: dict[str, str], categories: dict[int, list[Any]] | None, name: str
    ) -> None:
        super().__init__(name)
        self.booster, self._categories = booster, categories
        self._names = list(booster.feature_name())
        self._has_default_names = self._names == [f"Column_{i}" for i in range(len(self._names))]
        self.feature_names_in_ = None if self._has_default_names else self._names
        self.objective = head.get("objective", "")
        self._is_binary = self.objective.split(" ")[0] == "binary"
        n_classes = 2 if self._is_binary else int(head.get("num_class", "1"))
        self.classes_ = list(range(n_classes)) if n_classes > 1 else None

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the model's answers to rows."""
        answer = np.asarray(self.booster.predict(self.features(inputs), num_threads=1), dtype=np.float64)
        return np.column_stack([1 - answer, answer]) if self._is_binary else answer

    def margins(self, inputs: Any) -> np.ndarray:
        """Return the sums of trees inside the link function: (n,) for two classes, otherwise (n, c)."""
        return np.asarray(self.booster.predict(self.features(inputs), raw_score=True, num_threads=1))

    def features(self, inputs: Any) -> Any:
        """Return what LightGBM gets for rows: numbers (n, m) with codes for categories, or the rows themselves.

        LightGBM gets the rows themselves if it has to match their categories. It matches lists and categorical
        columns in their order; where their numbers differ, the columns are those that were derived from the file.
        """
        if self._categories is None:
            return inputs
        rows = InputRows(inputs)
        if self._has_default_names and not (rows.names and set(self._names) <= set(rows.names)):
            positions = rows.all_positions(len(self._names))
        else:  # its files have no blanks in names
            positions = rows.positions(self._names, lambda name: re.sub(r"\s", "_", name))
        own = [j for j, position in enumerate(positions) if rows.is_category(position)]
        lists = self._categories
        if len(own) == len(lists):
            lists = dict(zip(own, lists.values(), strict=True))
        columns = [
            rows.codes(position, lists[j]) if j in lists else rows.numbers(position)
            for j, position in enumerate(positions)
        ]
        return np.column_stack(columns)


def from_booster(booster: Any) -> LightgbmModel:
    """Return the model of a booster object of LightGBM, which answers like the file that the booster writes."""
    text = booster.model_to_string()
    try:
        categories = _lists_of(text, "booster")
    except ModelFileError:
        categories = None  # LightGBM matches the categories itself, but by position only
    return LightgbmModel(type(booster)(model_str=text), _head(text), categories, "booster")


def _head(text: str) -> dict[str, str]:
    """Return the settings above the first tree."""
    return dict(line.split("=", 1) for line in text.partition("\nTree=")[0].splitlines() if "=" in line)


def _lists_of(text: str, name: str) -> dict[int, list[Any]]:
    """Return the categories by column, in the order of their codes.

    A column whose codes were given in training has no list. The file does not name the columns of its lists, so
    they are found by the values that it records: a match counts if it is the only possible one.
    """
    lines = re.findall(r"^pandas_categorical:(.*)$", text, flags=re.MULTILINE)
    try:
        lists = [list(part) for part in (json.loads(lines[-1]) if lines else None) or ()]
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{name!r} has a damaged list of categories: {error}") from error
    settings = re.findall(r"^\[categorical_feature: ([\d,]*)\]", text, flags=re.MULTILINE)
    infos = dict(enumerate(_head(text).get("feature_infos", "").split(" ")))
    in_settings = [int(number) for number in settings[-1].split(",") if number] if settings else []
    # The file records a list of values for a categorical column, and an interval for a number.
    with_values = [j for j, info in infos.items() if re.match(r"-?\d", info)]
    # All columns come last, because LightGBM trains on ordered categories as on numbers.
    for columns in (in_settings, with_values, list(infos)):
        first = _match_columns(lists, columns, infos)
        last = _match_columns(lists[::-1], columns[::-1], infos)[::-1]
        if first == last and len(first) == len(lists):
            return dict(zip(first, lists, strict=True))
    raise ModelFileError(
        f"{name!r} lists the categories of {len(lists)} columns, but LightGBM does not write the names of these "
        "columns, and they cannot be inferred. Train the model again with every categorical column as an "
        "unordered pandas category, and without categorical_feature."
    )


def _match_columns(lists: list[list[Any]], columns: list[int], infos: dict[int, str]) -> list[int]:
    """Return, for each list in order, the first column after the previous match that it fits.

    A list fits if the values that the file records for the column can be its codes; "none" is an unused column.
    The result is shorter than ``lists`` if some list fits no column.
    """
    left, found = iter(columns), list[int | None]()
    for part in lists:
        codes = {str(code) for code in range(-1, len(part))}
        recorded = ((j, infos.get(j, "none")) for j in left)
        fitting = (j for j, info in recorded if info == "none" or set(info.strip("[]").split(":")) <= codes)
        found.append(next(fitting, None))
    return [j for j in found if j is not None]
