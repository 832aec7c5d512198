"""Groups of options that several commands share, and what the commands build from them: model, space, rows."""

import contextlib
import enum
import hashlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from anchorline.cli.options import option
from anchorline.errors import CacheError, ParameterError, TableFileError
from anchorline.explainer import Explainer
from anchorline.io import read_rows, read_table
from anchorline.model.cache import AnswerCache, fingerprint
from anchorline.model.loaders import KINDS, HttpLimits, load_model
from anchorline.model.loaders.http_endpoint import redact_address
from anchorline.model.loaders.rows import FileModel
from anchorline.model.outputs import classes_of
from anchorline.settings import Settings
from anchorline.spaces.table import NEIGHBORS

_RUNTIMES = ("numpy", "sklearn", "onnxruntime", "xgboost", "lightgbm")  # which compute the answers of model files
_USUAL = Settings()

Kind = enum.StrEnum("Kind", {name: name for name in KINDS})  # type: ignore[misc]
Neighbors = enum.StrEnum("Neighbors", {name: name for name in NEIGHBORS})  # type: ignore[misc]
Scale = enum.StrEnum("Scale", ["probability", "margin"])
Task = enum.StrEnum("Task", ["label", "number"])


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchOptions:
    """Options on the altered copies that are asked about."""

    sigma: Annotated[float, option("Concentration: the larger it is, the fewer values are replaced.")] = (
        _USUAL.sigma
    )
    queries: Annotated[
        str, option("Most answers of the model, in all; auto: until decided.", metavar="N|auto")
    ] = str(_USUAL.queries)
    seed: Annotated[int, option("Random seed. The same seed gives the same bytes.")] = _USUAL.seed

    @property
    def n_queries(self) -> int | None:
        """The number of queries that was asked for; None for auto."""
        if self.queries == "auto":
            return None
        try:
            return int(self.queries)
        except ValueError:
            raise ParameterError(
                f"--queries is {self.queries!r}, but it must be a whole number or auto. Type: --queries 300"
            ) from None

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of `Explainer.explain`."""
        number = self.n_queries
        return asdict(self) | {"queries": "auto" if number is None else number}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions(SearchOptions):
    """Options on the sum, and on what is stated about it."""

    k: Annotated[int | None, option("Most facts of a sum. [default: 4; of texts and images 8]", "-k")] = None
    alternatives: Annotated[int, option("Number of other sums that fit as well, to list too.")] = (
        _USUAL.alternatives
    )
    confidence: Annotated[float, option("With which all limits hold together.")] = _USUAL.confidence
    time_limit: Annotated[
        float | None, option("For the proof. [default: a number of steps]", metavar="SECONDS")
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Options on what kind of model to load, and on what loading it may do."""

    kind: Annotated[Kind | None, option("Kind of MODEL, if its name does not show it.")] = None
    trust: Annotated[
        list[str] | None, option("A type that a skops file may create. Repeatable.", metavar="TYPE")
    ] = None
    trust_pickle: Annotated[bool, option("Load a pickle or joblib file, although this runs code from it.")] = False
    timeout: Annotated[float, option("Time limit for a reply of an HTTP model.", metavar="SECONDS")] = 60.0
    batch_rows: Annotated[int, option("Rows per request to an HTTP model.")] = 1000
    rate: Annotated[
        float | None, option("Requests per second to an HTTP model. [default: no limit]", metavar="N")
    ] = None
    parallel: Annotated[int, option("Requests to an HTTP model at once.", metavar="N")] = 1
    retries: Annotated[int, option("Further attempts if a request to an HTTP model fails.", metavar="N")] = 4

    def load(self, spec: str) -> Any:
        """Return the model of a file, a module:function or an address."""
        limits = HttpLimits(
            read_timeout=self.timeout,
            total_timeout=5 * self.timeout,
            batch_rows=self.batch_rows,
            requests_per_second=self.rate,
            parallel=self.parallel,
            max_retries=self.retries,
        )
        trust = self.trust or ()
        return load_model(spec, kind=self.kind, trust=trust, trust_pickle=self.trust_pickle, http=limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """Options on how a table becomes a space."""

    cut: Annotated[
        list[str] | None, option("Further cut points of numbers or dates. Repeatable.", metavar="COLUMN=A,B")
    ] = None
    group: Annotated[
        list[str] | None,
        option(
            "Columns that are replaced together. Repeatable. Or auto: indicators that exclude each other.",
            metavar="NAME=A,B",
        ),
    ] = None
    fixed: Annotated[list[str] | None, option("A column that never changes. Repeatable.", metavar="COLUMN")] = None
    categorical: Annotated[
        list[str] | None, option("Numbers to read as categories. Repeatable.", metavar="COLUMN")
    ] = None
    reference: Annotated[
        str | None,
        option(
            "The rows that values are drawn from: a file, all of --data (default), or near: those at --threshold.",
            metavar="FILE|all|near",
        ),
    ] = None
    neighbors: Annotated[
        Neighbors,
        option(
            "Whether each new value of a copy comes from a row of its own (independent), or all of them "
            "from one row that is like the explained one (realistic)."
        ),
    ] = Neighbors["independent"]

    def space(self, path: str, target: Sequence[str] | None) -> Any:
        """Return the space of a table file without its target columns."""
        return self.space_and_truth(path, target)[0]

    def space_and_truth(self, path: str, target: Sequence[str] | None) -> tuple[Any, tuple[str, list[Any]] | None]:
        """Return the space of a table file without its targets, and name and values of the first target."""
        import narwhals as nw  # noqa: PLC0415  heavy

        whole = read_table(path)
        space = self._space(_drop_columns(whole, target or (), path), target or ())
        if not target:
            return space, None
        return space, (target[0], nw.from_native(whole, eager_only=True)[target[0]].to_list())

    def _space(self, frame: Any, target: Sequence[str]) -> Any:
        from anchorline.spaces.table import Table  # noqa: PLC0415  heavy

        reference: Any = self.reference
        neighbors: Any = self.neighbors.value
        if reference not in (None, "all", "near"):
            reference = columns_left(reference, target)
        return Table(
            frame,
            cuts={name: _listed_values(text) for name, text in split_pairs("--cut", self.cut)},
            groups=_parse_groups(self.group or ()),
            fixed=self.fixed or (),
            categorical=self.categorical or (),
            reference=reference,
            neighbors=neighbors,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Options on which output of the model is explained."""

    output: Annotated[
        str | None,
        option(
            "The class to explain, by its label or its number from 0, by default the predicted one; of a number, "
            "its name and unit: 'price [EUR]'.",
            metavar="CLASS",
        ),
    ] = None
    output_scale: Annotated[
        Scale | None, option("Explain a classifier's probabilities (default) or its margins.")
    ] = None
    task: Annotated[Task | None, option("Whether whole numbers that the model returns are labels or numbers.")] = (
        None
    )
    classes: Annotated[
        list[str] | None,
        option("The label of the model's next column. Repeat it for every column.", "--class", metavar="LABEL"),
    ] = None
    threshold: Annotated[float | None, option("The decision is whether output >= threshold.")] = None
    output_range: Annotated[
        tuple[float, float] | None, option("Lowest and highest possible output.", metavar="LOW HIGH")
    ] = None

    def explainer(self, model: Any, space: Any, cache: AnswerCache | None = None) -> Explainer:
        """Return an explainer for the chosen output."""
        return Explainer(model, space, cache=cache, **self.choices(model))

    def choices(self, model: Any) -> dict[str, Any]:
        """Return keywords of `Explainer` for the chosen output."""
        output: Any = self.output
        if output is not None and output.isdecimal():
            labels = [str(label) for label in self.classes or classes_of(model) or ()]
            output = output if output in labels else int(output)
        return {
            "output": output,
            "output_scale": None if self.output_scale is None else self.output_scale.value,
            "task": None if self.task is None else self.task.value,
            "classes": self.classes or None,
            "threshold": self.threshold,
            "output_range": self.output_range,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedModelOptions(ModelOptions):
    """Options on the model that is asked, and on where its answers are kept."""

    cache: Annotated[
        str | None, option("A file of answers, so that the model is never asked twice.", metavar="FILE")
    ] = None
    cache_key: Annotated[
        str | None,
        option(
            "Name and version of the model in the cache; needed for module:function and for HTTP models.",
            metavar="NAME",
        ),
    ] = None

    def open(self, spec: str, model: Any) -> AnswerCache | None:
        """Return the cache of a model that was loaded from ``spec``, or None if none is asked for.

        A file is recognized by its content and by the versions of the packages that run it. Code, addresses and
        files that refer to others need a key, because they may answer differently while they look the same.
        """
        if self.cache is None:
            if self.cache_key is not None:
                raise ParameterError("--cache-key is given without a file. Type: --cache answers.db")
            return None
        return AnswerCache(self.cache, key=self.cache_key or _recognized(spec, model))


def _recognized(spec: str, model: Any) -> str:
    """Return a key of a model from a file; raise `ParameterError` if other code or files may change it."""
    is_loaded = isinstance(model, FileModel)  # it runs what the file holds
    if Path(spec).is_file() and not (is_loaded and model.has_external_data):
        if is_loaded:
            return _file_key(spec)
        with contextlib.suppress(CacheError):
            return f"{_file_key(spec)} {fingerprint(model)}"
    name = redact_address(spec) if "://" in spec else spec
    raise ParameterError(
        f"{name!r} cannot be recognized in a later run, because it may answer differently "
        "while it looks the same. Type --cache-key 'name and version of the model', and change the key "
        "whenever the model changes."
    )


def file_digest(path: str) -> str:
    """Return the SHA-256 digest of a file, in hexadecimal."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _file_key(path: str) -> str:
    content = file_digest(path)
    versions = [(name, getattr(sys.modules.get(name), "__version__", "")) for name in _RUNTIMES]
    return hashlib.sha256(repr((content, versions)).encode()).hexdigest()


def require_rows(row: Sequence[int] | None, rows: str | None) -> None:
    """Raise `ParameterError` unless exactly one of --row and --rows is given."""
    if bool(row) == bool(rows):
        raise ParameterError(
            f"{'Both --row and --rows are' if row else 'Neither --row nor --rows is'} given, but exactly one "
            "of them is needed. Type --row 0 (repeatable), or --rows FILE."
        )


def instances_to_explain(rows: Sequence[int], rows_file: str | None, space: Any) -> list[tuple[int, Any]]:
    """Return (row number, instance) pairs: positions in the training table, or the rows of another file."""
    if rows_file is None:
        return [(row, row) for row in rows]
    return list(enumerate(_as_dictionaries(rows_like(space, rows_file))))


def rows_like(space: Any, path: str, also: Iterable[str] = ()) -> Any:
    """Return the rows of a file in the types of the training table, and the columns ``also`` by their looks.

    The rows of a CSV file are dictionaries. A file that stores types is returned as a frame.
    """
    from anchorline.spaces.columns import BOOLEAN, NUMBER  # noqa: PLC0415  heavy

    schema, numbers = space.schema, {*also}
    for name, column, dtype in zip(schema.names, schema.columns, schema.types, strict=True):
        categories = (dtype.categories or {}).values()  # categories can be numbers or booleans
        if column.kind in (NUMBER, BOOLEAN) or any(not isinstance(value, str) for value in categories):
            numbers.add(name)
    return read_rows(path, numbers=numbers)


def _as_dictionaries(rows: Any) -> Iterable[dict[str, Any]]:
    import narwhals as nw  # noqa: PLC0415  heavy

    return rows if isinstance(rows, list) else nw.from_native(rows, eager_only=True).iter_rows(named=True)


def split_target(frame: Any, target: str | None, path: str) -> tuple[Any, Any]:
    """Return a table without its target, and the target's values, or None without a target."""
    import narwhals as nw  # noqa: PLC0415  heavy

    if target is None:
        return frame, None
    remaining = _drop_columns(frame, [target], path)
    return remaining, nw.from_native(frame, eager_only=True)[target].to_numpy()


def columns_left(path: str, target: Sequence[str] | None) -> Any:
    """Return the table of a file without those of its columns that are targets; they need not be there."""
    import narwhals as nw  # noqa: PLC0415  heavy

    table = nw.from_native(read_table(path), eager_only=True)
    return table.drop([name for name in target or () if name in table.columns]).to_native()


def _drop_columns(frame: Any, columns: Sequence[str], path: str) -> Any:
    import narwhals as nw  # noqa: PLC0415  heavy

    table = nw.from_native(frame, eager_only=True)
    missing = [column for column in columns if column not in table.columns]
    if missing:
        raise TableFileError(f"{path!r} has no column {missing[0]!r} (--target). It has {table.columns!r:.300}.")
    remaining = table.drop(list(columns))
    if not remaining.columns:
        raise TableFileError(f"{path!r} has no column left after --target. Leave out at least one --target.")
    return remaining.to_native()


def split_pairs(option: str, texts: Sequence[str] | None) -> list[tuple[str, str]]:
    """Return the columns and values of texts COLUMN=VALUE; a column's name may contain an equals sign."""
    pairs = [text.rpartition("=") for text in texts or ()]
    for text, (name, sign, value) in zip(texts or (), pairs, strict=True):
        if not (name and sign and value):
            raise ParameterError(f"{option} is {text!r}, but it must have the form COLUMN=VALUE.")
    return [(name, value) for name, _, value in pairs]


def parse_values(text: str) -> Any:
    """Return a range LOW..HIGH as a tuple, and values A,B as a list; an open end is None."""
    low, dots, high = text.partition("..")
    return (_value(low), _value(high)) if dots else _listed_values(text)


def _listed_values(text: str) -> list[Any]:
    return [_value(value) for value in text.split(",")]


def _value(text: str) -> Any:
    """Return a number if the text is one, None for an empty text, and otherwise the text."""
    if not text:
        return None
    try:
        return float(text)
    except ValueError:
        return text


def _parse_groups(texts: Sequence[str]) -> dict[str, list[str]] | str:
    if list(texts) == ["auto"]:
        return "auto"
    groups: dict[str, list[str]] = {}
    for text in texts:
        name, sign, members = text.partition("=")
        if not sign or not name or not members:
            raise ParameterError(f"--group is {text!r}, but it must have the form NAME=A,B, or be auto.")
        groups.setdefault(name, []).extend(members.split(","))
    return groups
