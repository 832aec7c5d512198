"""LightGBM's own text files: numbers or class scores, as the objective says."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anchorline.errors import MissingDependencyError, ModelFileError
from anchorline.model.loaders.loading import read_whole
from anchorline.model.loaders.rows import InputRows

if TYPE_CHECKING:
    from anchorline.model.loaders.loading import Options

MAX_BYTES = 2**31 - 1


def load(name: str, kind: str, options: "Options") -> "LightgbmModel":
    """Read the file with LightGBM's own reader, after a look at its head and its end."""
    try:
        import lightgbm  # noqa: PLC0415
    except ImportError as error:
        raise MissingDependencyError.for_package("lightgbm", "boosters") from error
    try:
        text = read_whole(Path(name), MAX_BYTES).decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelFileError(f"{name!r} is no LightGBM model: it is no text.") from error
    head = dict(line.split("=", 1) for line in text.partition("\nTree=")[0].splitlines() if "=" in line)
    if not re.match(r"tree\r?\n", text) or "feature_names" not in head:
        raise ModelFileError(f"{name!r} is no LightGBM model. Type: booster.save_model('model.txt')")
    if "end of trees" not in text:  # LightGBM's reader would go on past the end
        raise ModelFileError(f"{name!r} is cut off: it has no end of trees.")
    try:
        booster = lightgbm.Booster(model_str=text)
    except Exception as error:
        raise ModelFileError(f"LightGBM cannot read {name!r}: {error}") from error
    return LightgbmModel(booster, head, _categories(text, head, name), name)


class LightgbmModel:
    """A callable on frames and 2-D arrays: probabilities (n, c) of the classes 0, 1, ..., or numbers (n,)."""

    def __init__(self, booster: Any, head: dict[str, str], categories: dict[int, list[Any]], name: str) -> None:
        self._booster, self._categories, self._name = booster, categories, name
        self._names = list(booster.feature_name())
        self._nameless = self._names == [f"Column_{i}" for i in range(len(self._names))]
        self._objective = head.get("objective", "").split(" ")[0]
        n_classes = int(head.get("num_class", "1"))
        if self._objective == "binary":
            n_classes = 2
        self.classes_ = list(range(n_classes)) if n_classes > 1 else None

    def __repr__(self) -> str:
        return f"LightgbmModel({self._name!r})"

    def __call__(self, inputs: Any) -> np.ndarray:
        """Ask the model about rows."""
        rows = InputRows(inputs)
        if self._nameless and not (rows.names and set(self._names) <= set(rows.names)):
            positions = rows.exactly(len(self._names))
        else:
            positions = rows.positions(self._names, _as_written)
        categories = self._categories_of(rows, positions)
        columns = [
            rows.codes(position, categories[j]) if j in categories else rows.numbers(position)
            for j, position in enumerate(positions)
        ]
        answer = np.asarray(self._booster.predict(np.column_stack(columns), num_threads=1), dtype=np.float64)
        return np.column_stack([1 - answer, answer]) if self._objective == "binary" else answer

    def _categories_of(self, rows: InputRows, positions: Sequence[int]) -> dict[int, list[Any]]:
        """As LightGBM has it: the lists belong to the columns whose type is a category; else as the file tells."""
        lists = self._categories.values()
        columns = [j for j, position in enumerate(positions) if rows.is_category(position)]
        return dict(zip(columns, lists, strict=True)) if len(columns) == len(lists) else self._categories


def _as_written(name: str) -> str:
    """How LightGBM writes a column's name."""
    return re.sub(r"\s", "_", name)


def _categories(text: str, head: dict[str, str], name: str) -> dict[int, list[Any]]:
    """The categories of each categorical column, in the order of their codes; none where codes were given."""
    lines = re.findall(r"^pandas_categorical:(.*)$", text, flags=re.MULTILINE)
    try:
        lists = [list(part) for part in (json.loads(lines[-1]) if lines else None) or ()]
    except (TypeError, ValueError) as error:
        raise ModelFileError(f"{name!r} has a damaged list of categories: {error}") from error
    told = re.findall(r"^\[categorical_feature: ([\d,]*)\]", text, flags=re.MULTILINE)
    infos = dict(enumerate(head.get("feature_infos", "").split(" ")))
    named = [int(number) for number in told[-1].split(",") if number] if told else []
    listed = [j for j, info in infos.items() if re.match(r"-?\d", info)]  # no interval
    for columns in (named, listed, list(infos)):  # the last, because ordered categories are trained on as numbers
        first = _owners(lists, columns, infos)
        last = _owners(lists[::-1], columns[::-1], infos)[::-1]
        if first == last and len(first) == len(lists):
            return dict(zip(first, lists, strict=True))
    raise ModelFileError(
        f"{name!r} lists the categories of {len(lists)} columns, and it cannot be told which: LightGBM does not "
        "write their names. Train it again with every categorical column as a pandas category, unordered, and "
        "without categorical_feature."
    )


def _owners(lists: list[list[Any]], columns: list[int], infos: dict[int, str]) -> list[int]:
    """The first columns, in their order, that the lists fit, in theirs; fewer where they do not."""
    left = iter(columns)
    found = (next((j for j in left if _fits(infos.get(j, "none"), categories)), None) for categories in lists)
    return [j for j in found if j is not None]


def _fits(info: str, categories: list[Any]) -> bool:
    """Whether the values that the file tells of a column can be codes; of a column never used, it tells none."""
    return info == "none" or set(info.strip("[]").split(":")) <= {str(code) for code in range(-1, len(categories))}
