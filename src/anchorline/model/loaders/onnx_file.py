"""ONNX models, run by onnxruntime on the CPU: no custom operators, no data from outside the model's folder."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import TYPE_CHECKING, Any

import numpy as np

from anchorline.errors import MissingDependencyError, ModelFileError, ModelInputError, UntrustedError
from anchorline.model.loaders.loading import read_whole
from anchorline.model.loaders.rows import InputRows, listed

if TYPE_CHECKING:
    from anchorline.model.loaders.loading import Options

MAX_BYTES = 2**31 - 1  # what a protocol buffer can be
_FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
_INTEGERS = {f"tensor({kind})": np.dtype(kind) for kind in ("int64", "int32", "int16", "int8", "uint8")}
_SAME_VALUES = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
_EXTERNAL = 1  # onnx.TensorProto.EXTERNAL


def load(name: str, kind: str, options: "Options") -> "OnnxModel":
    """Read and check the file, then hand the very bytes that were checked to onnxruntime."""
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
        raise ModelFileError(f"{name!r} is no ONNX model: {error}") from error
    if not model.graph.node:
        raise ModelFileError(f"{name!r} is no ONNX model: it computes nothing.")
    outside = _check_external_data(model, path)
    return OnnxModel(content, str(path.resolve().parent) if outside else None, _labels(model.graph), name)


class OnnxModel:
    """A callable on frames and 2-D arrays: class scores (n, c), numbers (n,), or labels (n,).

    A model with several inputs gets one column each, by name; with one input, all columns as a matrix.
    Missing texts are passed as the empty text, missing numbers as NaN.
    """

    def __init__(self, content: bytes, folder: str | None, labels: dict[str, list[Any] | None], name: str) -> None:
        self._content, self._folder, self._name = content, folder, name
        self._open()
        self._inputs, outputs = self._session.get_inputs(), self._session.get_outputs()
        self._wanted, self._form = _choose_outputs(outputs, name)
        self.classes_ = _classes(labels, outputs, self._wanted, self._form)

    def _open(self) -> None:
        import onnxruntime  # noqa: PLC0415

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what fails is raised; nothing is printed
        options.intra_op_num_threads = 1  # sums in one order: the same bytes on every machine
        options.add_session_config_entry("session.load_model_format", "ONNX")
        if self._folder is not None:
            options.add_session_config_entry("session.model_external_initializers_file_folder_path", self._folder)
        try:
            self._session = onnxruntime.InferenceSession(
                self._content, options, providers=["CPUExecutionProvider"]
            )
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
        """Ask the model about rows."""
        rows = InputRows(inputs)
        answers = self._session.run(self._wanted, self._feed(rows))
        if self._form == "maps":
            classes = self.classes_ or list(answers[0][0])
            return np.array([[row[label] for label in classes] for row in answers[0]], dtype=np.float64)
        if self._form == "columns":
            return np.column_stack(answers).astype(np.float64)
        answer = np.asarray(answers[0])
        return _flat(answer if self._form == "labels" else answer.astype(np.float64))

    def _feed(self, rows: InputRows) -> dict[str, np.ndarray]:
        names = [argument.name for argument in self._inputs]
        if len(names) == 1 and not _is_column(self._inputs[0], rows):
            argument = self._inputs[0]
            positions = rows.exactly(_width(argument))
            columns = [_cast(rows, position, argument.type) for position in positions]
            return {argument.name: np.column_stack(columns)}
        wide = [argument.name for argument in self._inputs if _width(argument) not in (None, 1)]
        if wide:
            raise ModelInputError(
                f"The model has several inputs, and {listed(wide)} take more than one column: wrap it in a "
                "function and pass module:function."
            )
        feed = {}
        for argument, position in zip(self._inputs, rows.positions(names, _identifier), strict=True):
            values = _cast(rows, position, argument.type)
            feed[argument.name] = values if len(argument.shape) == 1 else values[:, None]
        return feed


def _is_column(argument: Any, rows: InputRows) -> bool:
    """Whether a model's only input is one column of several, known by its name."""
    return _width(argument) in (None, 1) and rows.names is not None and argument.name in rows.names


def _width(argument: Any) -> int | None:
    """How many columns an input takes, if it says so."""
    if len(argument.shape) == 1:
        return 1
    if len(argument.shape) != 2:
        raise ModelInputError(f"The model's input {argument.name!r} has shape {argument.shape}; needed a table.")
    return argument.shape[1] if isinstance(argument.shape[1], int) else None


def _identifier(name: str) -> str:
    """How exporters write a column's name: as an identifier."""
    return re.sub(r"\W", "_", name)


def _cast(rows: InputRows, position: int, kind: str) -> np.ndarray:
    if kind == "tensor(string)":
        return np.array(rows.texts(position), dtype=object)
    if kind in _FLOATS:
        with np.errstate(over="ignore"):
            return rows.numbers(position).astype(_FLOATS[kind])
    if kind in _INTEGERS:
        return _fitting(rows.integers(position), _INTEGERS[kind], position)
    if kind == "tensor(bool)":
        return _fitting(rows.integers(position), np.dtype(bool), position)
    raise ModelInputError(f"The model's input has type {kind}; needed numbers, booleans or texts.")


def _fitting(values: np.ndarray, dtype: np.dtype[Any], position: int) -> np.ndarray:
    """The values in a narrower type; refused where it does not hold them."""
    cast = values.astype(dtype)
    wrong = np.flatnonzero(cast.astype(values.dtype) != values)
    if len(wrong):
        raise ModelInputError(f"Column {position} holds {values[wrong[0]]}; the model's input is of type {dtype}.")
    return cast


def _choose_outputs(outputs: Sequence[Any], name: str) -> tuple[list[str], str]:
    """Which outputs to ask for, and what they are: scores before numbers, numbers before labels."""
    maps = [output for output in outputs if output.type.startswith("seq(map(")]
    numbers = [output for output in outputs if output.type in _FLOATS]
    if maps:
        return [maps[0].name], "maps"
    if len(numbers) > 1 and len(outputs) > len(numbers) and all(len(output.shape) == 1 for output in numbers):
        return [output.name for output in numbers], "columns"  # one output a class, beside the label
    if numbers:
        return [next((o for o in numbers if "prob" in o.name.lower()), numbers[0]).name], "numbers"
    if outputs and outputs[0].type.startswith("tensor("):
        return [outputs[0].name], "labels"
    raise ModelFileError(f"{name!r} has outputs {[output.type for output in outputs]}; needed numbers or labels.")


def _flat(answer: np.ndarray) -> np.ndarray:
    return answer[:, 0] if answer.ndim == 2 and answer.shape[1] == 1 else answer


def _classes(
    labels: dict[str, list[Any] | None], outputs: Sequence[Any], wanted: list[str], form: str
) -> list[Any] | None:
    """The labels of the columns: of the maps themselves, else of the label beside the scores, if they fit."""
    shape = next(output.shape for output in outputs if output.name == wanted[0])
    width = len(wanted) if form == "columns" else shape[1] if len(shape) == 2 else None
    beside = [labels.get(output.name) for output in outputs if (output.name in wanted) == (form == "maps")]
    told = [found for found in beside if found is not None and (len(found) == width or not isinstance(width, int))]
    return told[0] if told and all(found == told[0] for found in told) else None


def _labels(graph: Any) -> dict[str, list[Any] | None]:
    """The labels that each output can take, in the order of the classes, where the graph tells."""
    makers = {output: node for node in graph.node for output in node.output}
    constants = {part.name: part for part in graph.initializer if part.data_location != _EXTERNAL}
    return {output.name: _traced(output.name, makers, constants) for output in graph.output}


def _traced(value: str, makers: dict[str, Any], constants: dict[str, Any]) -> list[Any] | None:
    """The labels at the end of the way back: a classifier's, or those of a table in which places are looked up.

    Labels off that way are those of inner estimators, which may be others.
    """
    tables, found = [], None
    for _ in makers:  # no way back is longer
        node = makers.get(value)
        found = _class_list(node) if node is not None and value == node.output[0] else None
        if node is None or found is not None:
            break
        if node.op_type in ("ArrayFeatureExtractor", "Gather") and node.input[0] in constants:
            tables.append(_entries(constants[node.input[0]]))
            value = node.input[1]
        elif node.op_type in _SAME_VALUES:
            value = node.input[0]
        else:
            break
    for table in reversed(tables):  # the places are a classifier's labels, or else columns, from 0
        found = table if found is None else [table[int(p)] for p in found if p in range(len(table))]
    return found


def _class_list(node: Any) -> list[Any] | None:
    """The labels of a node that classifies, or None."""
    for attribute in node.attribute:
        if attribute.name in ("classlabels_strings", "classlabels_int64s", "classlabels_ints"):
            found = [text.decode("utf-8", "replace") for text in attribute.strings] or list(attribute.ints)
            if found:
                return found
    return None


def _entries(constant: Any) -> list[Any]:
    from onnx import numpy_helper  # noqa: PLC0415

    entries = numpy_helper.to_array(constant).ravel().tolist()
    return [entry.decode("utf-8", "replace") if isinstance(entry, bytes) else entry for entry in entries]


def _check_external_data(model: Any, path: Path) -> bool:
    """Whether weights lie in other files; all of them must be plain files below the model's folder."""
    folder = path.resolve().parent
    found = False
    for tensor in _tensors(model):
        if tensor.data_location != _EXTERNAL and not tensor.external_data:
            continue
        found = True
        for location in [entry.value for entry in tensor.external_data if entry.key == "location"] or [""]:
            _check_location(location, folder, path)  # each: which of two is read, only the reader knows
    return found


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
    # A link leads elsewhere, inside its folder or not, today or tomorrow.
    linked = any((folder / part).is_symlink() for part in [PurePosixPath(location), *posix.parents])
    if escapes or linked or not target.resolve().is_relative_to(folder):
        raise UntrustedError(
            f"{str(path)!r} wants to read {location!r}, which is not a plain file in its own folder; a model "
            "could read any file that way. Ask its maker for a model in one file."
        )
    if not target.is_file():
        raise ModelFileError(f"{str(path)!r} needs {location!r} beside it, which is not there.")


def _tensors(message: Any) -> Iterator[Any]:
    """Every tensor in a model, wherever it hides: graphs inside nodes, functions, sparse ones."""
    if message.DESCRIPTOR.name == "TensorProto":
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if hasattr(value, "ListFields"):
            yield from _tensors(value)
        else:
            for below in value:
                if hasattr(below, "ListFields"):
                    yield from _tensors(below)
