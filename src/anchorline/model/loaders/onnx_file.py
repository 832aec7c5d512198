"""ONNX models, which onnxruntime runs on the CPU.

Custom operators and data from outside the model's folder are refused.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from anchorline.errors import ModelFileError, ModelInputError, UntrustedError, listed
from anchorline.model.loaders.rows import FileModel, InputRows

_FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
_INTEGERS = {f"tensor({kind})": np.dtype(kind) for kind in ("int64", "int32", "int16", "int8", "uint8", "bool")}
_SAME_VALUES = ("Cast", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
_EXTERNAL = 1  # onnx.TensorProto.EXTERNAL


def load(name: str, kind: str, content: bytes, trust: tuple[str, ...]) -> "OnnxModel":
    """Check the content of a file, then pass exactly the checked bytes to onnxruntime."""
    import onnx  # noqa: PLC0415

    model = onnx.load_model_from_string(content)
    if not model.graph.node:
        raise ModelFileError(f"{name!r} is not an ONNX model: its graph has no nodes.")
    folder = Path(name).resolve().parent
    locations = list(_locations(model))
    for location in locations:
        _check_location(location, folder, name)
    return OnnxModel(content, str(folder) if locations else None, _labels(model.graph), name)


class OnnxModel(FileModel):
    """A callable on frames and 2-D arrays: class scores (n, c), numbers (n,), or labels (n,).

    A model with several inputs gets one column per input, matched by name. A model with one input gets all
    columns as a matrix. Missing texts are passed as the empty text, missing numbers as NaN.
    """

    def __init__(self, content: bytes, folder: str | None, labels: dict[str, list[Any] | None], name: str) -> None:
        super().__init__(name)
        self.content, self._folder = content, folder
        self.has_external_data = folder is not None
        self.__setstate__({})
        outputs, names = self._session.get_outputs(), [argument.name for argument in self._inputs]
        self._wanted, self._form = _choose_outputs(outputs, name)
        self.classes_ = _classes(labels, outputs, self._wanted, self._form)
        self.feature_names_in_ = names if len(names) > 1 else None  # one input may take any number of columns

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key not in ("_session", "_inputs")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        import onnxruntime  # noqa: PLC0415

        self.__dict__.update(state)
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
        self._inputs = self._session.get_inputs()

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the model's answers to rows."""
        answers = self._session.run(self._wanted, self._feed(InputRows(inputs)))
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
        widths = [_width(argument) for argument in self._inputs]
        if len(names) == 1 and not (widths[0] in (None, 1) and names[0] in (rows.names or ())):
            kind, positions = self._inputs[0].type, rows.all_positions(widths[0])
            return {names[0]: np.column_stack([_cast(rows, position, kind) for position in positions])}
        wide = [name for name, width in zip(names, widths, strict=True) if width not in (None, 1)]
        if wide:
            raise ModelInputError(
                f"The model has several inputs, and {listed(wide)} take more than one column. There must be "
                "one column per input. Wrap the model in a function and pass module:function."
            )
        # Exporters write the names of columns as identifiers.
        positions = rows.positions(names, lambda name: re.sub(r"\W", "_", name))
        cast = [_cast(rows, p, argument.type) for p, argument in zip(positions, self._inputs, strict=True)]
        pairs = zip(self._inputs, cast, strict=True)
        return {part.name: values if len(part.shape) == 1 else values[:, None] for part, values in pairs}


def _width(argument: Any) -> int | None:
    """Return how many columns an input takes, or None if the model leaves it open."""
    if len(argument.shape) not in (1, 2):
        raise ModelInputError(
            f"The model's input {argument.name!r} has shape {argument.shape}, but it must be a table."
        )
    width = argument.shape[1] if len(argument.shape) == 2 else 1
    return width if isinstance(width, int) else None


def _cast(rows: InputRows, position: int, kind: str) -> np.ndarray:
    """Return a column in a tensor's type; raise `ModelInputError` if a whole number does not fit into it."""
    if kind == "tensor(string)":
        return np.array(rows.texts(position), dtype=object)
    if kind in _FLOATS:
        with np.errstate(over="ignore"):
            return rows.numbers(position).astype(_FLOATS[kind])
    if kind not in _INTEGERS:
        raise ModelInputError(f"The model's input has type {kind}, but it must take numbers, booleans or texts.")
    values = rows.integers(position)
    cast = values.astype(_INTEGERS[kind])
    wrong = np.flatnonzero(cast.astype(values.dtype) != values)
    if len(wrong):
        raise ModelInputError(
            f"Column {position} holds {values[wrong[0]]}; the model needs values of type {cast.dtype}."
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
    fitting = [part for part in lists if part is not None and (len(part) == width or not isinstance(width, int))]
    return fitting[0] if fitting and all(part == fitting[0] for part in fitting) else None


def _labels(graph: Any) -> dict[str, list[Any] | None]:
    """Return the labels that each output can take, in the order of the classes; None if the graph has none.

    The graph is followed from an output back to a classifier node, or to a table in which positions are looked up.
    Labels elsewhere in the graph belong to inner estimators and may differ.
    """
    from onnx import numpy_helper  # noqa: PLC0415

    makers = {output: node for node in graph.node for output in node.output}
    constants = {part.name: part for part in graph.initializer if part.data_location != _EXTERNAL}

    def trace(value: str) -> list[Any] | None:
        node = makers.get(value)
        if node is None:
            return None
        for attribute in node.attribute if value == node.output[0] else ():
            if attribute.name in ("classlabels_strings", "classlabels_int64s", "classlabels_ints"):
                labels = _texts(attribute.strings) or list(attribute.ints)
                if labels:
                    return labels
        if node.op_type in ("ArrayFeatureExtractor", "Gather") and node.input[0] in constants:
            table = _texts(numpy_helper.to_array(constants[node.input[0]]).ravel().tolist())
            places = trace(node.input[1])  # labels of a classifier; without one, column numbers from 0
            return table if places is None else [table[int(p)] for p in places if p in range(len(table))]
        return trace(node.input[0]) if node.op_type in _SAME_VALUES else None

    return {output.name: trace(output.name) for output in graph.output}


def _texts(entries: Sequence[Any]) -> list[Any]:
    return [entry.decode("utf-8", "replace") if isinstance(entry, bytes) else entry for entry in entries]


def _locations(message: Any) -> Iterator[str]:
    """Yield where tensors have their values, if in other files; also tensors in subgraphs and sparse tensors.

    All locations of a tensor are yielded, because readers differ in which they use.
    """
    if message.DESCRIPTOR.name == "TensorProto":
        if message.data_location == _EXTERNAL or message.external_data:
            yield from [part.value for part in message.external_data if part.key == "location"] or [""]
        return
    for field, value in message.ListFields():
        if field.message_type is not None:
            for part in [value] if hasattr(value, "ListFields") else value:
                if hasattr(part, "ListFields"):
                    yield from _locations(part)


def _check_location(location: str, folder: Path, name: str) -> None:
    """Raise unless a location is a plain file in the model's folder."""
    windows, posix = PureWindowsPath(location), PurePosixPath(location)
    escapes = "\0" in location or windows.anchor or posix.is_absolute() or ".." in {*windows.parts, *posix.parts}
    target = folder if escapes or not location else folder / location
    # Symbolic links are refused even if they point into the folder, because their target can change later.
    linked = not escapes and any((folder / part).is_symlink() for part in [posix, *posix.parents])
    if target == folder or linked or not target.resolve().is_relative_to(folder):
        raise UntrustedError(
            f"{name!r} refers to {location!r}, which is not a plain file in its own folder; a model could "
            "read any file that way. Ask its author for a model in one file."
        )
    if not target.is_file():
        raise ModelFileError(f"{name!r} needs the file {location!r} in its folder, which lacks it.")
