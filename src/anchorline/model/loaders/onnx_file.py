"""ONNX models, which onnxruntime runs on the CPU.

Custom operators and data from outside the model's folder are refused.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from anchorline.errors import MissingDependencyError, ModelFileError, ModelInputError, UntrustedError
from anchorline.model.loaders.files import Options, read_whole
from anchorline.model.loaders.rows import InputRows, list_names

MAX_BYTES = 2**31 - 1  # the largest protocol buffer
_FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
_INTEGERS = {f"tensor({kind})": np.dtype(kind) for kind in ("int64", "int32", "int16", "int8", "uint8")}
_SAME_VALUES = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
_EXTERNAL = 1  # onnx.TensorProto.EXTERNAL


def load(name: str, kind: str, options: Options) -> "OnnxModel":
    """Read and check the file, then pass exactly the checked bytes to onnxruntime."""
    try:
        import onnx  # noqa: PLC0415
        import onnxruntime  # noqa: F401, PLC0415
    except ImportError as error:
        raise MissingDependencyError.for_package("onnx and onnxruntime", "onnx") from error
    path = Path(name)
    content = read_whole(path, MAX_BYTES)
    try:
        model = onnx.load_model_from_string(content)
    except Exception as error:
        raise ModelFileError(f"{name!r} is not an ONNX model: {error}") from error
    if not model.graph.node:
        raise ModelFileError(f"{name!r} is not an ONNX model: its graph has no nodes.")
    has_external_data = _check_external_data(model, path)
    return OnnxModel(
        content, str(path.resolve().parent) if has_external_data else None, _labels(model.graph), name
    )


class OnnxModel:
    """A callable on frames and 2-D arrays: class scores (n, c), numbers (n,), or labels (n,).

    A model with several inputs gets one column per input, matched by name. A model with one input gets all
    columns as a matrix. Missing texts are passed as the empty text, missing numbers as NaN.
    """

    def __init__(self, content: bytes, folder: str | None, labels: dict[str, list[Any] | None], name: str) -> None:
        self.content, self._folder, self._name = content, folder, name
        self.has_external_data = folder is not None
        self._open()
        self._inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        self._wanted, self._form = _choose_outputs(outputs, name)
        self.classes_ = _classes(labels, outputs, self._wanted, self._form)
        names = [argument.name for argument in self._inputs]
        self.feature_names_in_ = names if len(names) > 1 else None  # one input may take any number of columns

    def _open(self) -> None:
        import onnxruntime  # noqa: PLC0415

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # failures are raised, so that nothing is printed
        options.intra_op_num_threads = 1  # a fixed order of summation, for the same bytes on every machine
        options.add_session_config_entry("session.load_model_format", "ONNX")
        if self._folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", self._folder)
        try:
            self._session = onnxruntime.InferenceSession(self.content, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            text = " ".join(str(error).split())
            raise ModelFileError(f"onnxruntime cannot run {self._name!r}: {text}") from error

    def __getstate__(self) -> dict[str, Any]:
        hidden = ("_session", "_inputs")
        return {key: value for key, value in self.__dict__.items() if key not in hidden}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()
        self._inputs = self._session.get_inputs()

    def __repr__(self) -> str:
        return f"OnnxModel({self._name!r})"

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the model's answers to rows."""
        rows = InputRows(inputs)
        answers = self._session.run(self._wanted, self._feed(rows))
        if self._form == "maps":
            classes = self.classes_ or list(answers[0][0])
            return np.array([[row[label] for label in classes] for row in answers[0]], dtype=np.float64)
        if self._form == "columns":
            return np.column_stack(answers).astype(np.float64)
        answer = np.asarray(answers[0])
        answer = answer if self._form == "labels" else answer.astype(np.float64)
        return answer[:, 0] if answer.ndim == 2 and answer.shape[1] == 1 else answer

    def _feed(self, rows: InputRows) -> dict[str, np.ndarray]:
        names = [argument.name for argument in self._inputs]
        if len(names) == 1 and not _is_column(self._inputs[0], rows):
            argument = self._inputs[0]
            positions = rows.all_positions(_width(argument))
            columns = [_cast(rows, position, argument.type) for position in positions]
            return {argument.name: np.column_stack(columns)}
        wide = [argument.name for argument in self._inputs if _width(argument) not in (None, 1)]
        if wide:
            raise ModelInputError(
                f"The model has several inputs, and {list_names(wide)} take more than one column. There must be "
                "one column per input. Wrap the model in a function and pass module:function."
            )
        feed = {}
        for argument, position in zip(self._inputs, rows.positions(names, _identifier), strict=True):
            values = _cast(rows, position, argument.type)
            feed[argument.name] = values if len(argument.shape) == 1 else values[:, None]
        return feed


def _is_column(argument: Any, rows: InputRows) -> bool:
    """Return whether a model's only input is a single column, which has the same name in ``rows``."""
    return _width(argument) in (None, 1) and rows.names is not None and argument.name in rows.names


def _width(argument: Any) -> int | None:
    """Return how many columns an input takes, or None if the model leaves it open."""
    if len(argument.shape) == 1:
        return 1
    if len(argument.shape) != 2:
        raise ModelInputError(
            f"The model's input {argument.name!r} has shape {argument.shape}, but it must be a table."
        )
    return argument.shape[1] if isinstance(argument.shape[1], int) else None


def _identifier(name: str) -> str:
    """Return the name of a column as exporters write it: as an identifier."""
    return re.sub(r"\W", "_", name)


def _cast(rows: InputRows, position: int, kind: str) -> np.ndarray:
    if kind == "tensor(string)":
        return np.array(rows.texts(position), dtype=object)
    if kind in _FLOATS:
        with np.errstate(over="ignore"):
            return rows.numbers(position).astype(_FLOATS[kind])
    if kind in _INTEGERS:
        return _narrowed(rows.integers(position), _INTEGERS[kind], position)
    if kind == "tensor(bool)":
        return _narrowed(rows.integers(position), np.dtype(bool), position)
    raise ModelInputError(f"The model's input has type {kind}, but it must take numbers, booleans or texts.")


def _narrowed(values: np.ndarray, dtype: np.dtype[Any], position: int) -> np.ndarray:
    """Return the values in a narrower type; raise `ModelInputError` if one does not fit into it."""
    cast = values.astype(dtype)
    wrong = np.flatnonzero(cast.astype(values.dtype) != values)
    if len(wrong):
        raise ModelInputError(
            f"Column {position} holds {values[wrong[0]]}; the model needs values of type {dtype}."
        )
    return cast


def _choose_outputs(outputs: Sequence[Any], name: str) -> tuple[list[str], str]:
    """Return the names of the outputs to compute, and their form: "maps", "columns", "numbers" or "labels".

    Scores are preferred to plain numbers, and plain numbers to labels.
    """
    maps = [output for output in outputs if output.type.startswith("seq(map(")]
    numbers = [output for output in outputs if output.type in _FLOATS]
    if maps:
        return [maps[0].name], "maps"
    if len(numbers) > 1 and len(outputs) > len(numbers) and all(len(output.shape) == 1 for output in numbers):
        return [output.name for output in numbers], "columns"  # one output per class, in addition to the label
    if numbers:
        return [next((o for o in numbers if "prob" in o.name.lower()), numbers[0]).name], "numbers"
    if outputs and outputs[0].type.startswith("tensor("):
        return [outputs[0].name], "labels"
    raise ModelFileError(
        f"{name!r} has outputs of type {[output.type for output in outputs]}, but one must be numbers or labels."
    )


def _classes(
    labels: dict[str, list[Any] | None], outputs: Sequence[Any], wanted: list[str], form: str
) -> list[Any] | None:
    """Return the labels of the columns, or None if they are unknown.

    They are the labels of the maps, or those of the label output next to the scores if their number fits.
    """
    shape = next(output.shape for output in outputs if output.name == wanted[0])
    width = len(wanted) if form == "columns" else shape[1] if len(shape) == 2 else None
    lists = [labels.get(output.name) for output in outputs if (output.name in wanted) == (form == "maps")]
    fitting = [
        known for known in lists if known is not None and (len(known) == width or not isinstance(width, int))
    ]
    return fitting[0] if fitting and all(known == fitting[0] for known in fitting) else None


def _labels(graph: Any) -> dict[str, list[Any] | None]:
    """Return the labels that each output can take, in the order of the classes; None if the graph has none."""
    makers = {output: node for node in graph.node for output in node.output}
    constants = {part.name: part for part in graph.initializer if part.data_location != _EXTERNAL}
    return {output.name: _trace_labels(output.name, makers, constants) for output in graph.output}


def _trace_labels(value: str, makers: dict[str, Any], constants: dict[str, Any]) -> list[Any] | None:
    """Return the labels that a value can take, or None: follow the graph from the value back to its source.

    The source is a classifier node, or a table in which positions are looked up. Labels elsewhere in the graph
    belong to inner estimators and may differ.
    """
    tables, labels = [], None
    for _ in makers:  # no path is longer than the number of nodes
        node = makers.get(value)
        labels = _class_list(node) if node is not None and value == node.output[0] else None
        if node is None or labels is not None:
            break
        if node.op_type in ("ArrayFeatureExtractor", "Gather") and node.input[0] in constants:
            tables.append(_entries(constants[node.input[0]]))
            value = node.input[1]
        elif node.op_type in _SAME_VALUES:
            value = node.input[0]
        else:
            break
    for table in reversed(tables):  # positions are the labels of a classifier, or column numbers from 0
        labels = table if labels is None else [table[int(p)] for p in labels if p in range(len(table))]
    return labels


def _class_list(node: Any) -> list[Any] | None:
    """Return the labels of a classifier node, or None for any other node."""
    for attribute in node.attribute:
        if attribute.name in ("classlabels_strings", "classlabels_int64s", "classlabels_ints"):
            labels = [text.decode("utf-8", "replace") for text in attribute.strings] or list(attribute.ints)
            if labels:
                return labels
    return None


def _entries(constant: Any) -> list[Any]:
    from onnx import numpy_helper  # noqa: PLC0415

    entries = numpy_helper.to_array(constant).ravel().tolist()
    return [entry.decode("utf-8", "replace") if isinstance(entry, bytes) else entry for entry in entries]


def _check_external_data(model: Any, path: Path) -> bool:
    """Return whether weights are in other files; raise unless all these are plain files in the model's folder."""
    folder = path.resolve().parent
    has_external_data = False
    for tensor in _tensors(model):
        if tensor.data_location != _EXTERNAL and not tensor.external_data:
            continue
        has_external_data = True
        for location in [entry.value for entry in tensor.external_data if entry.key == "location"] or [""]:
            _check_location(location, folder, path)  # all of them, because readers differ in which they use
    return has_external_data


def _check_location(location: str, folder: Path, path: Path) -> None:
    windows, posix = PureWindowsPath(location), PurePosixPath(location)
    escapes = (
        not location
        or "\0" in location
        or windows.anchor
        or posix.is_absolute()
        or ".." in {*windows.parts, *posix.parts}
    )
    target = folder if escapes else folder / location
    # Symbolic links are refused even if they point into the folder, because their target can change later.
    linked = any((folder / part).is_symlink() for part in [PurePosixPath(location), *posix.parents])
    if escapes or linked or not target.resolve().is_relative_to(folder):
        raise UntrustedError(
            f"{str(path)!r} refers to {location!r}, which is not a plain file in its own folder; a model could "
            "read any file that way. Ask its author for a model in one file."
        )
    if not target.is_file():
        raise ModelFileError(f"{str(path)!r} needs the file {location!r} in its folder, which lacks it.")


def _tensors(message: Any) -> Iterator[Any]:
    """Yield every tensor in a model, also those in subgraphs, functions and sparse tensors."""
    if message.DESCRIPTOR.name == "TensorProto":
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if hasattr(value, "ListFields"):
            yield from _tensors(value)
        else:
            for part in value:
                if hasattr(part, "ListFields"):
                    yield from _tensors(part)
