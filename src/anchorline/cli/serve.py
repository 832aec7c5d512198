"""``anchorline serve``, and the cases that it can serve instead of a table: texts, and images of a folder."""

import functools
import logging
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import narwhals as nw
import numpy as np

from anchorline.cli import options as opt
from anchorline.cli.configuration import PREFIX, Plan, read_configuration
from anchorline.cli.console import State, is_terminal, print_message, print_result
from anchorline.cli.inputs import (
    choices_of,
    explainer_of,
    file_digest,
    has_external_data,
    image_space,
    import_pillow,
    load,
    open_cache,
    read_image,
    rows_like,
    space_of_frame,
    space_of_table,
    split_table,
    text_space,
)
from anchorline.cli.options import Given, argument, command, one_of, option, switch
from anchorline.errors import (
    AnchorlineError,
    InstanceError,
    MissingDependencyError,
    ParameterError,
    TableFileError,
)
from anchorline.io import read_table

TOKEN_VARIABLE = "ANCHORLINE_STUDIO_TOKEN"
_FIRST_QUERIES = 100
_SUFFIXES = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".tif", ".tiff", ".webp"}
_SERVER = {
    "demo": switch("Serve a built-in model and its data."),
    "host": option(str, "Address to listen on; by default only this machine.", default="127.0.0.1"),
    "port": option(int, "Port to listen on; 0 selects a free port.", default=8377, min=0, max=65_535),
    "no_token": switch("Admit every user of this machine without a token; only on a loopback host."),
    "token_file": option(Path, "A file with the token, or with several on lines of their own.", "FILE"),
    "allow_host": option(list[str], "Another host name of this server. Repeatable.", "NAME"),
    "max_queries": option(int, "Maximum number of answers of the model per request.", default=20_000, min=32),
    "queue": option(int, "Maximum number of waiting requests; more receive 429.", default=64, min=1),
    "workers": option(int, "Number of requests computed at the same time.", default=2, min=1, max=64),
    "upload": switch("Let users open files with cases of their own, which stay in memory."),
    "time_limit": option(float, "Maximum duration of a request.", "SECONDS", default=60.0, min=0.1),
    "root_path": option(str, "Prefix of the public addresses behind a proxy.", "PATH", default=""),
    "behind_proxy": option(str, "Address of the proxy whose headers are trusted.", "ADDRESS"),
    "user_header": option(str, "Header in which the proxy names the user.", "NAME"),
    "audit_log": option(Path, "Append who asked for which case, and when.", "FILE"),
    "log_format": option(one_of("text", "json"), "Write the log as text or as JSON lines.", default="text"),
}
_SHOWN = {
    "name": option(str, "Name of the model.", "NAME"),
    "immutable": option(list[str], "A column that nobody can change. Repeatable.", "COLUMN"),
    "previous": option(str, "The model before, with which the page compares MODEL.", "MODEL"),
    "codes": option(
        str, "State the reasons of adverse decisions with this map of codes; needs --threshold.", "FILE"
    ),
    **opt.LETTER,
}
_COLLECTION = {
    "text": option(str, "A table with a column of texts to serve.", "FILE"),
    "column": option(str, "With --text: the column of the texts.", "NAME"),
    "images": option(str, "A folder with image files to serve.", "DIR"),
}


@command(
    "Explore explanations in a browser, and serve them over HTTP.",
    {
        "model": argument("[MODEL]", "The model, as in `explain`.", default=None),
        "model_option": option(str, "The model, given as an option.", "MODEL", "--model"),
        "data": option(str, "The table that the model was trained on.", "FILE"),
        "cases": option(
            str,
            "The rows to explain, instead of those of --data; with the --target column, also what came true.",
            "FILE",
        ),
        "config": option(
            Any,
            "A TOML file with these options by name, the tables names, units, labels and groups, and several "
            "[[model]] if there are.",
            "FILE",
            callback=read_configuration,
            parser=Path,
            is_eager=True,
        ),
        "check": switch("Load everything, ask the model once, and end without serving."),
    }
    | _SERVER
    | _SHOWN
    | opt.TARGET
    | opt.OUTPUT
    | opt.TABLE
    | opt.CUT
    | _COLLECTION
    | opt.ASKING,
    """\
anchorline serve --demo
anchorline serve model.onnx --data train.parquet --target approved --cases today.parquet
anchorline serve --config config.toml --check
anchorline serve mypackage.reviews:classify --text reviews.csv --column text
anchorline serve mypackage.photos:classify --images photos --max-queries 1000
anchorline serve model.skops --data train.csv --target approved --output yes --threshold 0.5 --codes codes.csv
anchorline serve model.skops --data train.csv --host 0.0.0.0 --allow-host studio.example.org
ANCHORLINE_STUDIO_TOKEN=... anchorline serve model.onnx --data train.parquet --port 8000""",
    auto_envvar_prefix=PREFIX,
)
def serve(given: Given) -> None:
    """Serve a page on which anybody can choose a case and understand its decision, and an HTTP interface.

    In a terminal, the printed link contains the token that every request needs, unless ANCHORLINE_STUDIO_TOKEN is
    that token. The browser keeps a cookie after the first use.
    """
    is_json = given.log_format == "json"
    print_progress: Any = logging.getLogger("anchorline.studio").info if is_json else print_message
    try:
        from anchorline.studio.access import Proxy, StudioLimits  # noqa: PLC0415  the extra may be missing
        from anchorline.studio.opened import MAX_UPLOAD  # noqa: PLC0415
        from anchorline.studio.problems import LogFormatter  # noqa: PLC0415

        State.log.setFormatter(LogFormatter(as_json=is_json))
        print_progress("Starting the studio.")
        from anchorline.studio.server import prepare  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingDependencyError.for_package(str(error.name), "studio") from error
    plan = {"": (given, {})} if given.config is None else given.config.plan(given)
    models = _models(plan, lambda name, text: print_progress(f"{name}: {text}" if name else text))
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    logging.getLogger("anchorline.studio.reload").setLevel(logging.INFO)

    def again() -> Any:
        plan = {"": (given, {})} if given.config is None else given.config.again()
        models = _models(plan, lambda name, text: None)
        return models.get("", models)

    # A terminal that is closed sends SIGHUP, too, and should end the server.
    reload = None if any(map(os.isatty, range(3))) else again
    server = prepare(
        models.get("", models),
        on_ready=functools.partial(_print_link, given.token_file),
        reload=reload,
        token_file=given.token_file,
        host=given.host,
        port=given.port,
        with_token=not given.no_token,
        allow_hosts=frozenset(given.allow_host or ()),
        proxy=Proxy(given.behind_proxy, given.user_header, given.root_path),
        audit_log=given.audit_log,
        limits=StudioLimits(
            **given.of(("max_queries", "queue", "workers")),
            timeout=given.time_limit,
            max_upload=MAX_UPLOAD if given.upload else 0,
        ),
    )
    if given.check:
        server.close()
        print_result("Everything is in order.")
        return
    server.run()
    if server.has_signal:  # Python would wait for the model's threads, and unload every library
        sys.stdout.flush()
        os._exit(0)


def _models(plan: Plan, say: Callable[[str, str], Any]) -> dict[str, Any]:
    """Return the models to serve by name; if several are wrong, the error names all."""
    from anchorline.studio.display import about_model  # noqa: PLC0415  heavy

    models, errors = {}, []
    for name, (given, tables) in plan.items():
        try:
            with about_model(name):
                models[name] = _model(given, tables, functools.partial(say, name))
        except AnchorlineError as error:
            errors.append(error)
    if errors:
        errors[0].args = (" ".join(map(str, errors)),)
        raise errors[0]
    return models


def _model(given: Given, tables: Mapping[str, Any], say: Callable[[str], Any]) -> Any:
    """Return one model with its table and its cases, after it has answered a first question."""
    from anchorline.studio.display import Display, Model, Previous  # noqa: PLC0415  heavy
    from anchorline.studio.opened import truth_in  # noqa: PLC0415

    spec, data, is_collection = given.model or given.model_option, given.data, given.text or given.images
    is_something = bool(spec or data or is_collection)
    if given.demo == is_something or (given.model and given.model_option) or (data and is_collection):
        raise ParameterError(
            "`anchorline serve` needs either --demo, or one MODEL and its --data, --text or --images. "
            "Type: anchorline serve --demo, or: anchorline serve MODEL --data FILE"
        )
    say("Loading the model and the cases." if is_collection else "Loading the model and the table.")
    explainer, default_name, truth = _demo() if given.demo else _loaded(given, spec)
    cases = None
    if given.cases is not None:
        if data is None:
            raise ParameterError("--cases was given without the table of the model. Add --data FILE.")
        cases = rows_like(explainer.space, given.cases, also=given.target or ())
        truth = truth_in(cases, given.target[0]) if given.target else None
    previous = None
    if given.previous is not None:
        if spec is None or data is None:
            raise ParameterError("--previous was given without MODEL and its table. Add MODEL --data FILE.")
        before, choices = load(given, given.previous), choices_of(given, explainer.model)
        previous = Previous(_model_name(given.previous), before, space_of_table(given), choices)
    say("Asking the model for its first answers.")
    # Errors of the model and the data appear now instead of in the browser. The first text may be empty.
    explainer.explain(explainer.space.first if is_collection else 0, k=2, queries=_FIRST_QUERIES)
    return Model(
        explainer=explainer,
        name=given.name or default_name,
        cases=cases,
        truth=truth,
        reasons=_reason_settings(given, explainer),
        fingerprint=None if spec is None else _digest(spec, explainer.model),
        display=Display(**tables, immutable=given.immutable or ()),
        previous=previous,
    )


def _demo() -> tuple[Any, str, Any]:
    """Return the explainer, the name and the true outcomes of the demonstration."""
    # Small trees gain nothing from several threads, and waiting ones take the processor from others.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from anchorline.studio.demo import demo_explainer, demo_truth  # noqa: PLC0415  the extra may be missing

    return demo_explainer(), "loan-decisions", demo_truth()


def _loaded(given: Given, spec: str | None) -> tuple[Any, str, Any]:
    """Return the explainer of a model, its default name, and the true outcomes if there is a target."""
    truth, is_collection = None, given.text is not None or given.images is not None
    if spec is None or (given.data is None and not is_collection):
        missing, present = ("MODEL", "Data") if spec is None else ("--data FILE", "MODEL")
        raise ParameterError(f"{present} was given without {missing}. Type: anchorline serve MODEL --data FILE")
    if is_collection:
        space = collection(given)
    else:
        frame, target = split_table(given.data, given.target or ())
        space, truth = space_of_frame(given, frame), target if target is None else (target.name, target.to_list())
    cache = open_cache(given, spec, loaded := load(given, spec))
    return explainer_of(given, loaded, space, cache), _model_name(spec), truth


def _model_name(spec: str) -> str:
    """Return a model's name from its file or address, without the query, which may contain a key."""
    return Path(urlsplit(spec).path if "://" in spec else spec).stem


def _reason_settings(given: Given, explainer: Any) -> Any:
    """Return the settings of the reasons that the page states for adverse decisions; None without codes."""
    if given.codes is None:
        if given.prohibited:
            raise ParameterError("--prohibited is about reasons, which need codes. Type --codes FILE.")
        return None
    if explainer.target.classes is not None and explainer.target.column is None:
        raise ParameterError("Reasons are about the score of one class. Type --output CLASS --threshold NUMBER.")
    return explainer.reason_settings(codes=given.codes, adverse=given.adverse, prohibited=given.prohibited or ())


def _digest(spec: str, model: Any) -> str | None:
    """Return the SHA-256 of a model's file; None for models that are not a file, or that need others."""
    return None if not Path(spec).is_file() or has_external_data(model) else f"sha256:{file_digest(spec)}"


def _print_link(token_file: Path | None, link: str) -> None:
    """Print the link; the token in it only if this server made it, and to a terminal, because logs are kept."""
    address, _, token = link.partition("?token=")
    is_given = TOKEN_VARIABLE in os.environ or token_file is not None
    print_result(f"Open {link if token and not is_given and is_terminal() else address}")
    if is_given and token:
        print_result(f"The token is that of {TOKEN_VARIABLE if token_file is None else token_file}.")
    elif token and not is_terminal():
        print_result(f"The token is printed to terminals only. Set {TOKEN_VARIABLE} to choose it.")
    print_result("Stop with Ctrl-C.")


# ---- texts and images


def collection(given: Given) -> Any:
    """Return the texts or the images that are served, as cases."""
    from anchorline.studio.contents import Contents  # noqa: PLC0415  the extra may be missing

    if given.text is not None and given.images is not None:
        raise ParameterError("Both --text and --images are given. Serve them by two commands.")
    if given.images is not None:
        paths = image_files(given.images)
        return Contents(image_space(given), ImageFiles(paths), [path.name for path in paths])
    if given.column is None:
        raise ParameterError("--text is given without the column of the texts. Type: --column NAME")
    return Contents(text_space(given), texts_of(given.text, given.column), column=given.column)


def texts_of(path: str, column: str) -> list[str]:
    """Return a column of texts; missing ones are empty."""
    frame = nw.from_native(read_table(path), eager_only=True)
    if column not in frame.columns:
        raise TableFileError(f"{path!r} has no column {column!r} (--column). It has {frame.columns!r:.300}.")
    texts = frame[column]
    return ["" if lacks else str(text) for text, lacks in zip(texts.to_list(), texts.is_null(), strict=True)]


class ImageFiles(Sequence[np.ndarray]):
    """Images that are read when they are needed; the last two stay in memory."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = paths
        self._read = functools.lru_cache(maxsize=2)(self._image)

    def __len__(self) -> int:
        return len(self._paths)

    def __getitem__(self, i: Any) -> Any:
        return self._read(range(len(self))[i])

    def _image(self, i: int) -> np.ndarray:
        try:
            return read_image(str(self._paths[i]))
        except InstanceError:  # whose message names the folder, which readers of the page need not know
            raise InstanceError(f"{self._paths[i].name!r} cannot be read as an image.") from None


def image_files(folder: str) -> list[Path]:
    """Return the image files of a folder in the order of their names; those that cannot be opened are left out."""
    try:
        paths = sorted(path for path in Path(folder).iterdir() if path.suffix.lower() in _SUFFIXES)
    except OSError as error:
        raise InstanceError(f"{folder!r} cannot be read: {error.strerror}. Type: --images FOLDER") from None
    if not paths:
        raise InstanceError(f"{folder!r} contains no image file ({', '.join(sorted(_SUFFIXES))}).")
    readable = [path for path in paths if _is_image(path)]
    if not readable:
        raise InstanceError(f"None of the {len(paths)} image files in {folder!r} can be opened.")
    if len(readable) < len(paths):
        left_out = [path.name for path in paths if path not in readable]
        print_message(f"{len(left_out)} files cannot be opened and are left out: {', '.join(left_out[:5])}.")
    return readable


def _is_image(path: Path) -> bool:
    """Return whether a file begins like an image; its pixels are not read."""
    pillow = import_pillow()
    try:
        with pillow.open(path):
            return True
    except (pillow.DecompressionBombError, OSError, SyntaxError, ValueError):
        return False
