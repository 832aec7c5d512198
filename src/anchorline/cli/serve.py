"""``anchorline serve``."""

import logging
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from anchorline.cli import options as opt
from anchorline.cli.console import print_result
from anchorline.cli.inputs import ModelOptions, OutputOptions, TableOptions
from anchorline.errors import MissingDependencyError, ParameterError
from anchorline.explainer import Explainer

SUMMARY = "Explore explanations in a browser, and serve them over HTTP."
EXAMPLES = """\
anchorline serve --demo
anchorline serve model.onnx --data train.parquet --target approved
anchorline serve model.skops --data train.csv --host 0.0.0.0 --allow-host studio.example.org
ANCHORLINE_STUDIO_TOKEN=... anchorline serve model.onnx --data train.parquet --port 8000"""

_Model = Annotated[str | None, typer.Argument(metavar="[MODEL]", help="As in `explain`.", show_default=False)]
_ModelOption = Annotated[str | None, typer.Option("--model", metavar="MODEL", help="The same, as an option.")]
_Data = Annotated[str | None, typer.Option("--data", metavar="FILE", help="The table the model was trained on.")]


def serve(
    *,
    model: _Model = None,
    model_option: _ModelOption = None,
    data: _Data = None,
    demo: Annotated[bool, typer.Option("--demo", help="A built-in model and data.")] = False,
    host: Annotated[str, typer.Option("--host", help="Where to listen; else this machine only.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65_535, help="0: any that is free.")] = 8377,
    no_token: Annotated[
        bool, typer.Option("--no-token", help="Let everybody on this machine in; only on a loopback host.")
    ] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name that browsers call this server. Repeatable."),
    ] = None,
    name: Annotated[str | None, typer.Option("--name", help="What the model is called.")] = None,
    max_samples: Annotated[
        int, typer.Option("--max-samples", min=1, max=100_000, help="Most neighbors a request may ask for.")
    ] = 20_000,
    queue: Annotated[int, typer.Option("--queue", min=1, help="Requests that may wait; then 429.")] = 64,
    workers: Annotated[int, typer.Option("--workers", min=1, max=64, help="Requests computed at a time.")] = 2,
    time_limit: Annotated[
        float, typer.Option("--time-limit", min=0.1, metavar="SECONDS", help="How long a request may take.")
    ] = 60.0,
    target: opt.Target = None,
    output_options: OutputOptions,
    table_options: TableOptions,
    model_options: ModelOptions,
) -> None:
    """Open a page where anybody can pick a case and understand the decision; programs are answered, too.

    The link that is printed holds a token. It is needed for everything, and kept in a cookie after first use.
    """
    try:
        from anchorline.studio.limits import Limits  # noqa: PLC0415  FastAPI and uvicorn are an extra
        from anchorline.studio.server import prepare  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingDependencyError.for_package(str(error.name), "studio") from error
    spec = model or model_option
    if demo == bool(spec or data) or (model and model_option):
        raise ParameterError("Say what to serve: --demo, or a MODEL and its --data.")
    if demo:
        from anchorline.studio.demo import demo_explainer  # noqa: PLC0415

        explainer, called = demo_explainer(), "loan-decisions"
    else:
        if spec is None or data is None:
            raise ParameterError("A MODEL needs its --data, and --data a MODEL.")
        space = table_options.space(data, target)
        loaded = model_options.load(spec)
        explainer, called = output_options.explainer(loaded, space), _name_of(spec)
    _warm(explainer)
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    prepare(
        explainer,
        tell=_tell,
        name=name or called,
        host=host,
        port=port,
        with_token=not no_token,
        allow_hosts=frozenset(allow_host or ()),
        limits=Limits(max_samples=max_samples, queue=queue, workers=workers, timeout=time_limit),
    ).run()


def _name_of(spec: str) -> str:
    """What a model is called after its file or address; a query may hold a key."""
    return Path(urlsplit(spec).path if "://" in spec else spec).stem


def _warm(explainer: Explainer) -> None:
    """Explain the first row once: what is wrong with model and data is told now, not in the browser."""
    explainer.explain(0, k=2, n_samples=50, n_certify=0)


def _tell(link: str) -> None:
    print_result(f"Open {link}")
    print_result("Stop with Ctrl-C.")
