"""What the options name: the model, the table, and the cases; a case is a row, a text or an image."""

import contextlib
import hashlib
import io
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from anchorline.cli.options import Given
from anchorline.errors import CacheError, InstanceError, MissingDependencyError, ParameterError, TableFileError
from anchorline.explainer import Explainer
from anchorline.io import read_rows, read_table
from anchorline.model.cache import AnswerCache, fingerprint
from anchorline.model.loaders import HttpLimits, load_model
from anchorline.model.loaders.http_endpoint import redact_address
from anchorline.model.loaders.rows import FileModel
from anchorline.model.outputs import classes_of
from anchorline.spaces.regions import Image
from anchorline.spaces.table import Table
from anchorline.spaces.text import Text

_RUNTIMES = ("numpy", "sklearn", "onnxruntime", "xgboost", "lightgbm")  # which compute the answers of model files
_MAX_BYTES = 64 * 2**20  # of a text or an image file


# ---- the model


def load(given: Given, spec: str) -> Any:
    """Return the model of a file, a module:function or an address."""
    limits = HttpLimits(
        read_timeout=given.timeout,
        total_timeout=5 * given.timeout,
        batch_rows=given.batch_rows,
        requests_per_second=given.rate,
        parallel=given.parallel,
        max_retries=given.retries,
    )
    return load_model(spec, kind=given.kind, trust=given.trust or (), trust_pickle=given.trust_pickle, http=limits)


def open_cache(given: Given, spec: str, model: Any) -> AnswerCache | None:
    """Return the cache of a model that was loaded from ``spec``, or None if none is asked for.

    A file is recognized by its content and by the versions of the packages that run it. Code, addresses and
    files that refer to others need a key, because they may answer differently while they look the same.
    """
    if given.cache is None:
        if given.cache_key is not None:
            raise ParameterError("--cache-key is given without a file. Type: --cache answers.db")
        return None
    return AnswerCache(given.cache, key=given.cache_key or _recognized(spec, model))


def _recognized(spec: str, model: Any) -> str:
    if Path(spec).is_file() and not has_external_data(model):
        versions = [(name, getattr(sys.modules.get(name), "__version__", "")) for name in _RUNTIMES]
        key = hashlib.sha256(repr((file_digest(spec), versions)).encode()).hexdigest()
        if isinstance(model, FileModel):  # it runs what the file holds
            return key
        with contextlib.suppress(CacheError):
            return f"{key} {fingerprint(model)}"
    name = redact_address(spec) if "://" in spec else spec
    raise ParameterError(
        f"{name!r} cannot be recognized in a later run, because it may answer differently "
        "while it looks the same. Type --cache-key 'name and version of the model', and change the key "
        "whenever the model changes."
    )


def has_external_data(model: Any) -> bool:
    """Return whether a model's file refers to other files."""
    return isinstance(model, FileModel) and model.has_external_data


def file_digest(path: str) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def explainer_of(given: Given, model: Any, space: Any, cache: AnswerCache | None = None) -> Explainer:
    """Return an explainer for the chosen output."""
    return Explainer(model, space, cache=cache, **choices_of(given, model))


def choices_of(given: Given, model: Any) -> dict[str, Any]:
    """Return keywords of `Explainer` for the chosen output."""
    output: Any = given.output
    if output is not None and output.isdecimal():
        labels = [str(label) for label in given.classes or classes_of(model) or ()]
        output = output if output in labels else int(output)
    others = given.of(("output_scale", "task", "threshold", "output_range"))
    return {"output": output, "classes": given.classes or None, **others}


def n_queries_of(given: Given) -> int | None:
    """Return the number of queries that was asked for; None for auto."""
    if given.queries == "auto":
        return None
    number: int = to_number(given.queries, int, "--queries", "a whole number or auto. Type: --queries 300")
    return number


def search_keywords(given: Given, group: Iterable[str]) -> dict[str, Any]:
    """Return the values of a group that contains --queries, as keywords of `Explainer`."""
    number = n_queries_of(given)
    return given.of(group) | {"queries": "auto" if number is None else number}


# ---- the table


def space_of_table(given: Given) -> Any:
    """Return the space of --data without its targets."""
    return space_of_frame(given, split_table(given.data, given.target or ())[0])


def space_of_frame(given: Given, frame: Any) -> Any:
    """Return the space of a table without its targets."""
    reference: Any = given.reference
    if reference not in (None, "all", "near"):
        reference = columns_left(reference, given.target)
    return Table(
        frame,
        cuts={name: _listed(text) for name, text in pairs_of("--cut", given.cut)},
        groups=_groups_of(given.group or ()),
        fixed=given.fixed or (),
        categorical=given.categorical or (),
        reference=reference,
        neighbors=given.neighbors,
    )


def split_table(path: str, targets: Sequence[str]) -> tuple[Any, Any]:
    """Return the table of a file without its targets, and the first target's column, or None without one."""
    table = nw.from_native(read_table(path), eager_only=True)
    missing = [column for column in targets if column not in table.columns]
    if missing:
        raise TableFileError(f"{path!r} has no column {missing[0]!r} (--target). It has {table.columns!r:.300}.")
    remaining = table.drop(list(targets))
    if not remaining.columns:
        raise TableFileError(f"{path!r} has no column left after --target. Leave out at least one --target.")
    return remaining.to_native(), table[targets[0]] if targets else None


def columns_left(path: str, targets: Sequence[str] | None) -> Any:
    """Return the table of a file without those of its columns that are targets; they need not be there."""
    table = nw.from_native(read_table(path), eager_only=True)
    return table.drop([name for name in targets or () if name in table.columns]).to_native()


def _groups_of(texts: Sequence[str]) -> dict[str, list[str]] | str:
    if list(texts) == ["auto"]:
        return "auto"
    groups: dict[str, list[str]] = {}
    for text in texts:
        name, _, members = text.partition("=")
        if not name or not members:
            raise ParameterError(f"--group is {text!r}, but it must have the form NAME=A,B, or be auto.")
        groups.setdefault(name, []).extend(members.split(","))
    return groups


def pairs_of(option: str, texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return the columns and values of texts COLUMN=VALUE; a column's name may contain an equals sign."""
    pairs = [text.rpartition("=") for text in texts or ()]
    for name, sign, value in pairs:
        if not (name and value):
            raise ParameterError(f"{option} is {name + sign + value!r}, but it must have the form COLUMN=VALUE.")
    return [(name, value) for name, _, value in pairs]


def to_values(text: str) -> Any:
    """Return a range LOW..HIGH as a tuple, and values A,B as a list; an open end is None."""
    low, dots, high = text.partition("..")
    return (_value(low), _value(high)) if dots else _listed(text)


def _listed(text: str) -> list[Any]:
    return [_value(value) for value in text.split(",")]


def _value(text: str) -> Any:
    """Return a number if the text is one, None for an empty text, and otherwise the text."""
    with contextlib.suppress(ValueError):
        return float(text)
    return text or None


def to_number(text: str, kind: Callable[[str], Any], option: str, needed: str) -> Any:
    """Return a text as a number; an error says what is needed instead."""
    try:
        return kind(text)
    except ValueError:
        raise ParameterError(f"{option} is {text!r}, but it must be {needed}") from None


# ---- the cases


def numbered_cases(given: Given) -> tuple[Any, list[tuple[int, Any]]]:
    """Return what a command is about: the space of a table, of texts or of images, and its numbered cases."""
    takes_contents = "image" in vars(given)
    texts = [*(given.text or ()), *map(read_text, given.text_file or ())] if takes_contents else []
    images = [read_image(path) for path in given.image or ()] if takes_contents else []
    if texts or images:
        needless = next((name for name in ("data", "row", "rows", "target") if getattr(given, name)), None)
        if needless is not None:
            raise ParameterError(
                f"--{needless} is given together with a text or an image, which needs no table. Leave out one of "
                "them."
            )
        if texts and images:
            raise ParameterError("Texts and images are given together. Explain them in two commands.")
        return (
            (text_space(given), list(enumerate(texts))) if texts else (image_space(given), list(enumerate(images)))
        )
    if given.data is None:
        raise ParameterError(
            "Neither --data nor a text or image is given. Type --data train.csv --row 0, --text 'Great food', "
            "--text-file review.txt, or --image photo.png."
        )
    if bool(given.row) == bool(given.rows):
        said = "Both --row and --rows are" if given.row else "Neither --row nor --rows is"
        raise ParameterError(
            f"{said} given, but exactly one of them is needed. Type --row 0 (repeatable), or --rows FILE."
        )
    space = space_of_table(given)
    if given.rows is None:
        return space, [(row, row) for row in given.row]
    rows = rows_like(space, given.rows)
    named = rows if isinstance(rows, list) else nw.from_native(rows, eager_only=True).iter_rows(named=True)
    return space, list(enumerate(named))


def rows_like(space: Any, path: str, also: Iterable[str] = ()) -> Any:
    """Return the rows of a file in the types of the training table, and the columns ``also`` by their looks.

    The rows of a CSV file are dictionaries. A file that stores types is returned as a frame.
    """
    return read_rows(path, numbers={*space.parsed, *also})


def text_space(given: Given) -> Text:
    """Return the space of texts."""
    return Text(given.unit, "delete" if given.mask is None else given.mask)


def image_space(given: Given) -> Image:
    """Return the space of images."""
    return Image(given.segments, given.hidden, given.n_segments)


def read_text(path: str) -> str:
    """Return the text of a UTF-8 file, with or without a byte-order mark."""
    try:
        return _file_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InstanceError(
            f"{path!r} is not a text in UTF-8 ({error.reason} at byte {error.start}). Convert it to UTF-8 first."
        ) from None


def read_image(path: str) -> np.ndarray:
    """Return the pixels of an image file: (h, w) or (h, w, channels)."""
    pillow = import_pillow()
    content = io.BytesIO(_file_bytes(path))
    try:
        with pillow.open(content) as picture:
            if picture.mode == "P":  # a palette of colors
                return np.asarray(picture.convert("RGBA" if "transparency" in picture.info else "RGB"))
            return np.asarray(picture)
    except (pillow.DecompressionBombError, OSError, SyntaxError, ValueError) as error:
        reason = "its format is unknown" if isinstance(error, pillow.UnidentifiedImageError) else str(error)
        raise InstanceError(f"{path!r} cannot be read as an image: {reason}. Pass a PNG or JPEG file.") from None


def import_pillow() -> Any:
    """Return Pillow's module of images, which is optional."""
    try:
        from PIL import Image  # noqa: PLC0415  heavy
    except ImportError as error:
        raise MissingDependencyError.for_package("PIL", "image") from error
    return Image


def _file_bytes(path: str) -> bytes:
    try:
        size = Path(path).stat().st_size
        if size > _MAX_BYTES:
            raise InstanceError(f"{path!r} has {size:,} bytes; at most {_MAX_BYTES:,} are read.")
        return Path(path).read_bytes()
    except OSError as error:
        raise InstanceError(f"{path!r} cannot be read: {error.strerror}.") from None
