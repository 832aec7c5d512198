"""LightGBM's own text files: models that return numbers or class scores, depending on the objective."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.errors import MissingDependencyError, ModelFileError
from anchorline.model.loaders.files import Options, read_whole
from anchorline.model.loaders.rows import InputRows

MAX_BYTES = 2**31 - 1


def load(name: str, kind: str, options: Options) -> "LightgbmModel":
    """Read the file with LightGBM's own reader, after checks of its first lines and its last section."""
    try:
        import lightgbm  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError.for_package("lightgbm", "boosters") from error
    try:
        text = read_whole(Path(name), MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{name!r} is not a LightGBM model: the file is not valid UTF-8.") from error
    head = _head(text)
    if not re.match(r"tree\r?\n", text) or "feature_names" not in head:
        raise ModelFileError(f"{name!r} is not a LightGBM model. Type: booster.save_model('model.txt')")
    if "end of trees" not in text:  # LightGBM's reader would read past the end of the text
        raise ModelFileError(f"{name!r} is cut off: it lacks the line 'end of trees'.")
    try:
        booster = lightgbm.Booster(model_str=text)
    except Exception as error:
        raise ModelFileError(f"LightGBM cannot read {name!r}: {error}") from error
    return LightgbmModel(booster, head, _categories(text, head, name), name)


def from_booster(booster: Any) -> "LightgbmModel":
    """Return the model of a booster object, which answers like the file that the booster writes."""
    text = booster.model_to_string()
    try:
        categories = _categories(text, _head(text), "booster")
    except ModelFileError:
        categories = None  # LightGBM matches the categories itself, but by position only
    return LightgbmModel(type(booster)(model_str=text), _head(text), categories, "booster")


def _head(text: str) -> dict[str, str]:
    """Return the settings above the first tree."""
    return dict(line.split("=", 1) for line in text.partition("\nTree=")[0].splitlines() if "=" in line)


class LightgbmModel:
    """A callable on frames and 2-D arrays: probabilities (n, c) of the classes 0, 1, ..., or numbers (n,).

    ``categories`` are those of every column, by its position; None if LightGBM has to match them.
    """

    def __init__(
        self, booster: Any, head: dict[str, str], categories: dict[int, list[Any]] | None, name: str
    ) -> None:
        self.booster, self._categories, self._name = booster, categories, name
        self._names = list(booster.feature_name())
        self._has_default_names = self._names == [f"Column_{i}" for i in range(len(self._names))]
        self.feature_names_in_ = None if self._has_default_names else self._names
        self.objective = head.get("objective", "")
        self._is_binary = self.objective.split(" ")[0] == "binary"
        n_classes = int(head.get("num_class", "1"))
        if self._is_binary:
            n_classes = 2
        self.classes_ = list(range(n_classes)) if n_classes > 1 else None

    def __repr__(self) -> str:
        return f"LightgbmModel({self._name!r})"

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the model's answers to rows."""
        answer = np.asarray(self.booster.predict(self.features(inputs), num_threads=1), dtype=np.float64)
        return np.column_stack([1 - answer, answer]) if self._is_binary else answer

    def margins(self, inputs: Any) -> np.ndarray:
        """Return the sums of trees inside the link function: (n,) for two classes, otherwise (n, c)."""
        return np.asarray(self.booster.predict(self.features(inputs), raw_score=True, num_threads=1))

    def features(self, inputs: Any) -> Any:
        """Return what LightGBM gets for rows: numbers (n, m) with codes for categories, or the rows themselves.

        LightGBM gets the rows themselves if it has to match their categories.
        """
        if self._categories is None:
            return inputs
        rows = InputRows(inputs)
        if self._has_default_names and not (rows.names and set(self._names) <= set(rows.names)):
            positions = rows.all_positions(len(self._names))
        else:
            positions = rows.positions(self._names, _lightgbm_name)
        categories = self._categories_of(rows, positions, self._categories)
        columns = [
            rows.codes(position, categories[j]) if j in categories else rows.numbers(position)
            for j, position in enumerate(positions)
        ]
        return np.column_stack(columns)

    @staticmethod
    def _categories_of(
        rows: InputRows, positions: Sequence[int], categories: dict[int, list[Any]]
    ) -> dict[int, list[Any]]:
        """Return the category lists by column: those of the categorical columns of ``rows``, in their order.

        LightGBM itself matches lists and columns like that. Where the numbers of lists and of categorical columns
        differ, the columns are those that `_categories` derived from the file.
        """
        lists = categories.values()
        columns = [j for j, position in enumerate(positions) if rows.is_category(position)]
        return dict(zip(columns, lists, strict=True)) if len(columns) == len(lists) else categories


def _lightgbm_name(name: str) -> str:
    """Return the name of a column as LightGBM writes it into its files."""
    return re.sub(r"\s", "_", name)


def _categories(text: str, head: dict[str, str], name: str) -> dict[int, list[Any]]:
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
    infos = dict(enumerate(head.get("feature_infos", "").split(" ")))
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

    The result is shorter than ``lists`` if some list fits no column.
    """
    left = iter(columns)
    matches = (next((j for j in left if _fits(infos.get(j, "none"), categories)), None) for categories in lists)
    return [j for j in matches if j is not None]


def _fits(info: str, categories: list[Any]) -> bool:
    """Return whether the values that the file records for a column can be codes; "none" is an unused column."""
    return info == "none" or set(info.strip("[]").split(":")) <= {str(code) for code in range(-1, len(categories))}
