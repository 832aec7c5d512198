"""Groups of options that several commands share, and what the commands build from them: model, space, rows."""

import contextlib
import hashlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anchorline.cli import options as opt
from anchorline.errors import CacheError, ParameterError, TableFileError
from anchorline.explainer import Explainer
from anchorline.io import read_rows, read_table
from anchorline.model.cache import AnswerCache
from anchorline.model.fingerprint import fingerprint
from anchorline.model.loaders import HttpLimits, load_model
from anchorline.model.loaders.http_endpoint import redact_address

_RUNTIMES = ("numpy", "sklearn", "onnxruntime", "xgboost", "lightgbm")  # which compute the answers of model files


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelOptions:
    """Options on what kind of model to load, and on what loading it may do."""

    kind: opt.ModelKind = None
    trust: opt.Trust = None
    trust_pickle: opt.TrustPickle = False
    timeout: opt.Timeout = 60.0
    batch_rows: opt.BatchRows = 1000
    rate: opt.Rate = None
    parallel: opt.Parallel = 1
    retries: opt.Retries = 4

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

    bins: opt.Bins = 4
    fixed: opt.Fixed = None
    group: opt.Group = None
    within: opt.WithinOption = opt.Within.keep
    neighbors: opt.NeighborsOption = opt.Neighbors.independent
    literals: opt.LiteralsOption = opt.Literals.bounds

    def space(self, path: str, target: Sequence[str] | None) -> Any:
        """Return the space of a table file without its target columns."""
        return self.space_and_truth(path, target)[0]

    def space_and_truth(self, path: str, target: Sequence[str] | None) -> tuple[Any, tuple[str, list[Any]] | None]:
        """Return the space of a table file without its targets, and name and values of the first target."""
        import narwhals as nw  # noqa: PLC0415  heavy

        whole = read_table(path)
        space = self._space(_drop_columns(whole, target or (), path))
        if not target:
            return space, None
        return space, (target[0], nw.from_native(whole, eager_only=True)[target[0]].to_list())

    def _space(self, frame: Any) -> Any:
        from anchorline.spaces.table import Table  # noqa: PLC0415  heavy

        groups = _parse_groups(self.group or ())
        return Table(
            frame,
            n_bins=self.bins,
            fixed=self.fixed or (),
            groups=groups,
            within=self.within.value,
            neighbors=self.neighbors.value,
            literals=self.literals.value,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """Options on which output of the model is explained."""

    output: opt.Output = None
    column: opt.Column = None
    task: opt.TaskOption = None
    classes: opt.Classes = None
    output_range: opt.OutputRange = None
    threshold: opt.Threshold = None
    output_scale: opt.OutputScale = None

    def explainer(self, model: Any, space: Any, cache: AnswerCache | None = None) -> Explainer:
        """Return an explainer for the chosen output."""
        return Explainer(
            model,
            space,
            output=self.output,
            column=_column_number(self.column),
            task=self.task,
            classes=self.classes or None,
            output_range=self.output_range,
            threshold=self.threshold,
            output_scale=self.output_scale,
            cache=cache,
        )


def _column_number(column: str | None) -> int | None:
    if column is None or column.isdecimal():
        return None if column is None else int(column)
    raise ParameterError(
        f"--column is {column!r}, but it must be a whole number from 0 on. Type: --column 1, or --output CLASS"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheOptions:
    """Options on where answers are kept."""

    cache: opt.Cache = None
    cache_key: opt.CacheKey = None

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
    if Path(spec).is_file() and not getattr(model, "has_external_data", False):
        if type(model).__module__.partition(".")[0] == "anchorline":  # it runs what the file holds
            return _file_key(spec)
        with contextlib.suppress(CacheError):
            return f"{_file_key(spec)} {fingerprint(model)}"
    name = redact_address(spec) if "://" in spec else spec
    raise ParameterError(
        f"{name!r} cannot be recognized in a later run, because it may answer differently "
        "while it looks the same. Type --cache-key 'name and version of the model', and change the key "
        "whenever the model changes."
    )


def _file_key(path: str) -> str:
    with Path(path).open("rb") as file:
        content = hashlib.file_digest(file, "sha256").hexdigest()
    versions = [(name, getattr(sys.modules.get(name), "__version__", "")) for name in _RUNTIMES]
    return hashlib.sha256(repr((content, versions)).encode()).hexdigest()


def keywords_of(
    *,
    sigma: float,
    samples: int | str | None,
    objective: str,
    max_queries: int | None,
    seed: int,
    pairs: str | None = None,
    budget: int | None = None,
    sampling: str = "auto",
) -> dict[str, Any]:
    """Return the keywords of `Explainer.explain`, except k, from the values of options."""
    n_samples: int | str | None = samples
    if isinstance(samples, str) and samples != "auto":
        try:
            n_samples = int(samples)
        except ValueError:
            raise ParameterError(
                f"--samples is {samples!r}, but it must be a whole number or auto. Type: --samples 5000"
            ) from None
    return {
        "sigma": sigma,
        "n_samples": n_samples,
        "objective": objective,
        "sampling": sampling,
        "max_queries": max_queries,
        "budget": budget,
        "seed": seed,
        "pairs": None if pairs is None else str(pairs),
    }


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


def rows_like(space: Any, path: str) -> Any:
    """Return the rows of a file in the types of the training table.

    The rows of a CSV file are dictionaries. A file that stores types is returned as a frame.
    """
    from anchorline.spaces.columns import BOOLEAN, NUMBER  # noqa: PLC0415  heavy

    schema, numbers = space.schema, set()
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
