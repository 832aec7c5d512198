"""``anchorline frontier``."""

import enum
from typing import Annotated

import typer

from anchorline.cli import options as opt
from anchorline.cli.console import print_result, printable_lines
from anchorline.cli.formats import format_by_name, png_bytes
from anchorline.cli.inputs import CacheOptions, ModelOptions, OutputOptions, TableOptions, keywords_of
from anchorline.cli.progress import QueryProgress, expected_rows
from anchorline.errors import ParameterError
from anchorline.io import write_atomically


class FrontierFormat(enum.StrEnum):
    """Output format of a frontier."""

    text = "text"
    png = "png"


_BY_SUFFIX = {"": FrontierFormat.text, ".txt": FrontierFormat.text, ".png": FrontierFormat.png}
SUMMARY = "Show how many terms an explanation needs."
EXAMPLES = """\
anchorline frontier model.skops --data train.csv --target approved --row 17
anchorline frontier model.onnx --data train.parquet --row 3 -k 12 --out frontier.png"""


def frontier(
    *,
    model: opt.Model,
    data: opt.Data,
    row: Annotated[
        int,
        typer.Option("--row", metavar="N", min=0, help="A row of the data, counted from 0.", show_default=False),
    ],
    target: opt.Target = None,
    max_k: Annotated[int, typer.Option("-k", help="Largest number of terms to try; the smallest is 1.")] = 8,
    sigma: opt.Sigma = 1.0,
    samples: Annotated[
        int | None, typer.Option("--samples", metavar="N", help="Neighbors to search with. [default: 5000]")
    ] = None,
    output_options: OutputOptions,
    table_options: TableOptions,
    budget: opt.Budget = None,
    max_queries: opt.MaxQueries = None,
    seed: opt.Seed = 0,
    form: Annotated[FrontierFormat | None, opt.FORMAT] = None,
    out: opt.Out = None,
    model_options: ModelOptions,
    cache_options: CacheOptions,
) -> None:
    """Show how many terms an explanation needs: the best sum of 1, 2, ... terms, and the errors of each."""
    chosen_format = format_by_name(form, out, _BY_SUFFIX)
    if max_k < 1:
        raise ParameterError(f"-k is {max_k}, but it must be at least 1. Type: -k 8")
    keywords = keywords_of(
        sigma=sigma, samples=samples, objective="fidelity", max_queries=max_queries, seed=seed, budget=budget
    )
    space = table_options.space(data, target)
    loaded = model_options.load(model)
    cache = cache_options.open(model, loaded)
    with QueryProgress("Tracing", expected_rows(keywords, 1), announce=budget is not None) as progress:
        explainer = output_options.explainer(progress.wrap_model(loaded), space, cache)
        trace = explainer.frontier(row, range(1, max_k + 1), **keywords)
    if chosen_format is FrontierFormat.png:
        from anchorline.render import plot  # noqa: PLC0415  needs matplotlib

        write_atomically(str(out), png_bytes(plot.frontier(trace)))
    elif out is not None:
        write_atomically(out, f"{printable_lines(trace)}\n")
    else:
        print_result(printable_lines(trace))
