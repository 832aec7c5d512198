"""The command ``anchorline serve``."""

import enum
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from anchorline.cli import options as opt
from anchorline.cli.configuration import PREFIX, read_configuration
from anchorline.cli.console import State, is_terminal, print_message, print_result
from anchorline.cli.contents import CollectionOptions
from anchorline.cli.inputs import AskedModelOptions, OutputOptions, TableOptions, file_digest, rows_like
from anchorline.cli.options import Side, option
from anchorline.errors import MissingDependencyError, ParameterError
from anchorline.model.loaders.rows import FileModel

SETTINGS = {"auto_envvar_prefix": PREFIX}
SUMMARY = "Explore explanations in a browser, and serve them over HTTP."
TOKEN_VARIABLE = "ANCHORLINE_STUDIO_TOKEN"
_FIRST_QUERIES = 100
LogFormat = enum.StrEnum("LogFormat", ["text", "json"])
EXAMPLES = """\
anchorline serve --demo
anchorline serve model.onnx --data train.parquet --target approved --cases today.parquet
anchorline serve --config config.toml --check
anchorline serve mypackage.reviews:classify --text reviews.csv --column text
anchorline serve mypackage.photos:classify --images photos --max-queries 1000
anchorline serve model.skops --data train.csv --target approved --output yes --threshold 0.5 --codes codes.csv
anchorline serve model.skops --data train.csv --host 0.0.0.0 --allow-host studio.example.org
ANCHORLINE_STUDIO_TOKEN=... anchorline serve model.onnx --data train.parquet --port 8000"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """Options on the server, on who may use it, and on what one request may take."""

    demo: Annotated[bool, option("Serve a built-in model and its data.")] = False
    host: Annotated[str, option("Address to listen on; by default only this machine.")] = "127.0.0.1"
    port: Annotated[int, option("Port to listen on; 0 selects a free port.", min=0, max=65_535)] = 8377
    no_token: Annotated[
        bool, option("Admit every user of this machine without a token; only on a loopback host.")
    ] = False
    allow_host: Annotated[
        list[str] | None, option("Another host name of this server. Repeatable.", metavar="NAME")
    ] = None
    name: Annotated[str | None, option("Name of the model.")] = None
    max_queries: Annotated[int, option("Maximum number of answers of the model per request.", min=32)] = 20_000
    queue: Annotated[int, option("Maximum number of waiting requests; more receive 429.", min=1)] = 64
    workers: Annotated[int, option("Number of requests computed at the same time.", min=1, max=64)] = 2
    time_limit: Annotated[float, option("Maximum duration of a request.", min=0.1, metavar="SECONDS")] = 60.0
    root_path: Annotated[str, option("Prefix of the public addresses behind a proxy.", metavar="PATH")] = ""
    behind_proxy: Annotated[
        str | None, option("Address of the proxy whose headers are trusted.", metavar="ADDRESS")
    ] = None
    user_header: Annotated[str | None, option("Header in which the proxy names the user.", metavar="NAME")] = None
    immutable: Annotated[
        list[str] | None, option("A column that nobody can change. Repeatable.", metavar="COLUMN")
    ] = None
    previous: Annotated[
        str | None, option("The model before, with which the page compares MODEL.", metavar="MODEL")
    ] = None
    audit_log: Annotated[Path | None, option("Append who asked for which case, and when.", metavar="FILE")] = None
    log_format: Annotated[LogFormat, option("Write the log as text or as JSON lines.")] = LogFormat.text


@dataclass(frozen=True, slots=True, kw_only=True)
class LetterOptions:
    """Options on the reasons that the page states for adverse decisions; see `anchorline reasons`."""

    codes: Annotated[
        str | None,
        option(
            "State the reasons of adverse decisions with this map of codes; needs --threshold.", metavar="FILE"
        ),
    ] = None
    adverse: Annotated[Side, option("The side of --threshold on which a decision is adverse.")] = Side.below
    prohibited: Annotated[
        list[str] | None, option("A column that must never be a reason. Repeatable.", metavar="COLUMN")
    ] = None

    def settings(self, explainer: Any) -> Any:
        """Return the settings of the reasons; None without codes."""
        if self.codes is None:
            if self.prohibited:
                raise ParameterError("--prohibited is about reasons, which need codes. Type --codes FILE.")
            return None
        if explainer.target.classes is not None and explainer.target.column is None:
            raise ParameterError(
                "Reasons are about the score of one class. Type --output CLASS --threshold NUMBER."
            )
        return explainer.reason_settings(
            codes=self.codes, adverse=self.adverse.value, prohibited=self.prohibited or ()
        )


def serve(
    *,
    model: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="The model, as in `explain`.", show_default=False)
    ] = None,
    model_option: Annotated[
        str | None, typer.Option("--model", metavar="MODEL", help="The model, given as an option.")
    ] = None,
    data: Annotated[
        str | None, typer.Option("--data", metavar="FILE", help="The table that the model was trained on.")
    ] = None,
    cases: Annotated[
        str | None,
        typer.Option(
            "--cases",
            metavar="FILE",
            help="The rows to explain, instead of those of --data; with the --target column, also what came true.",
        ),
    ] = None,
    config: Annotated[
        Any,
        typer.Option(
            "--config",
            metavar="FILE",
            help="A TOML file with these options by name, and the tables names, units, labels and groups.",
            callback=read_configuration,
            parser=Path,
            is_eager=True,
        ),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Load everything, ask the model once, and end without serving.")
    ] = False,
    server_options: ServerOptions,
    letter_options: LetterOptions,
    target: opt.Target = None,
    output_options: OutputOptions,
    table_options: TableOptions,
    collection_options: CollectionOptions,
    model_options: AskedModelOptions,
) -> None:
    """Serve a page on which anybody can choose a case and understand its decision, and an HTTP interface.

    In a terminal, the printed link contains the token that every request needs, unless ANCHORLINE_STUDIO_TOKEN is
    that token. The browser keeps a cookie after the first use.
    """
    is_json = server_options.log_format is LogFormat.json
    print_progress: Any = logging.getLogger("anchorline.studio").info if is_json else print_message
    try:
        from anchorline.studio.access import Proxy, StudioLimits  # noqa: PLC0415  the extra may be missing
        from anchorline.studio.display import Display, Previous  # noqa: PLC0415
        from anchorline.studio.problems import LogFormatter  # noqa: PLC0415

        State.log.setFormatter(LogFormatter(as_json=is_json))
        print_progress("Starting the studio.")
        from anchorline.studio.server import prepare  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingDependencyError.for_package(str(error.name), "studio") from error
    given, spec, is_collection = server_options, model or model_option, collection_options.is_given
    if given.demo == bool(spec or data or is_collection) or (model and model_option) or (data and is_collection):
        raise ParameterError(
            "`anchorline serve` needs either --demo, or one MODEL and its --data, --text or --images. "
            "Type: anchorline serve --demo, or: anchorline serve MODEL --data FILE"
        )
    print_progress("Loading the model and the cases." if is_collection else "Loading the model and the table.")
    parts = (collection_options, table_options, output_options, model_options)
    explainer, default_name, truth = _demo() if given.demo else _loaded(spec, data, target, *parts)
    rows = None
    if cases is not None:
        if data is None:
            raise ParameterError("--cases was given without the table of the model. Add --data FILE.")
        rows = rows_like(explainer.space, cases, also=target or ())
        truth = _truth(rows, target[0]) if target else None
    previous = None
    if given.previous is not None:
        if spec is None or data is None:
            raise ParameterError("--previous was given without MODEL and its table. Add MODEL --data FILE.")
        before, table = model_options.load(given.previous), table_options.space(data, target)
        previous = Previous(_model_name(given.previous), before, table, output_options.choices(explainer.model))
    print_progress("Asking the model for its first answers.")
    # Errors of the model and the data appear now instead of in the browser. The first text may be empty.
    explainer.explain(explainer.space.first if is_collection else 0, k=2, queries=_FIRST_QUERIES)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    display = Display(**config or {}, immutable=given.immutable or ())
    server = prepare(
        explainer,
        on_ready=_print_link,
        name=given.name or default_name,
        host=given.host,
        port=given.port,
        with_token=not given.no_token,
        allow_hosts=frozenset(given.allow_host or ()),
        proxy=Proxy(given.behind_proxy, given.user_header, given.root_path),
        audit_log=given.audit_log,
        display=display,
        previous=previous,
        cases=rows,
        truth=truth,
        reasons=letter_options.settings(explainer),
        fingerprint=None if spec is None else _digest(spec, explainer.model),
        limits=StudioLimits(
            max_queries=given.max_queries, queue=given.queue, workers=given.workers, timeout=given.time_limit
        ),
    )
    if check:
        server.close()
        print_result("Everything is in order.")
        return
    server.run()
    if server.has_signal:  # Python would wait for the model's threads, and unload every library
        sys.stdout.flush()
        os._exit(0)


def _demo() -> tuple[Any, str, Any]:
    """Return the explainer, the name and the true outcomes of the demonstration."""
    # Small trees gain nothing from several threads, and waiting ones take the processor from others.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    from anchorline.studio.demo import demo_explainer, demo_truth  # noqa: PLC0415  the extra may be missing

    return demo_explainer(), "loan-decisions", demo_truth()


def _loaded(
    spec: str | None,
    data: str | None,
    target: list[str] | None,
    collection_options: CollectionOptions,
    table_options: TableOptions,
    output_options: OutputOptions,
    model_options: AskedModelOptions,
) -> tuple[Any, str, Any]:
    """Return the explainer of a model, its default name, and the true outcomes if there is a target."""
    if spec is None or (data is None and not collection_options.is_given):
        missing, given = ("MODEL", "Data") if spec is None else ("--data FILE", "MODEL")
        raise ParameterError(f"{given} was given without {missing}. Type: anchorline serve MODEL --data FILE")
    truth = None
    if data is None:
        space: Any = collection_options.space()
    else:
        space, truth = table_options.space_and_truth(data, target)
    cache = model_options.open(spec, loaded := model_options.load(spec))
    return output_options.explainer(loaded, space, cache), _model_name(spec), truth


def _truth(rows: Any, target: str) -> tuple[str, list[Any]] | None:
    """Return the name and the values of the outcomes of some rows, or None if they lack them."""
    import narwhals as nw  # noqa: PLC0415  heavy

    if isinstance(rows, list):
        return (target, [row[target] for row in rows]) if rows and target in rows[0] else None
    frame = nw.from_native(rows, eager_only=True)
    return (target, frame[target].to_list()) if target in frame.columns else None


def _model_name(spec: str) -> str:
    """Return a model's name from its file or address, without the query, which may contain a key."""
    return Path(urlsplit(spec).path if "://" in spec else spec).stem


def _digest(spec: str, model: Any) -> str | None:
    """Return the SHA-256 of a model's file; None for models that are not a file, or that need others."""
    if not Path(spec).is_file() or (isinstance(model, FileModel) and model.has_external_data):
        return None
    return f"sha256:{file_digest(spec)}"


def _print_link(link: str) -> None:
    """Print the link; the token in it only if this server made it, and to a terminal, because logs are kept."""
    address, _, token = link.partition("?token=")
    is_given = TOKEN_VARIABLE in os.environ
    print_result(f"Open {link if token and not is_given and is_terminal() else address}")
    if is_given and token:
        print_result(f"The token is that of {TOKEN_VARIABLE}.")
    elif token and not is_terminal():
        print_result(f"The token is printed to terminals only. Set {TOKEN_VARIABLE} to choose it.")
    print_result("Stop with Ctrl-C.")
