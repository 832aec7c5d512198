"""``anchorline frontier``."""

import enum
from typing import Annotated

import typer

from anchorline.cli import options as opt
from anchorline.cli.console import printable_lines
from anchorline.cli.formats import format_by_name, png_bytes, write_results
from anchorline.cli.inputs import CacheOptions, ModelOptions, OutputOptions, SearchOptions, TableOptions
from anchorline.cli.progress import QueryProgress, expected_rows
from anchorline.errors import ParameterError

FrontierFormat = enum.StrEnum("FrontierFormat", ["text", "png"])
_BY_SUFFIX = {"": FrontierFormat.text, ".txt": FrontierFormat.text, ".png": FrontierFormat.png}
SUMMARY = "Show how many facts an explanation needs."
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
    max_k: Annotated[int, typer.Option("-k", help="Largest number of facts to try; the smallest is 1.")] = 8,
    search_options: SearchOptions,
    output_options: OutputOptions,
    table_options: TableOptions,
    form: Annotated[FrontierFormat | None, opt.FORMAT] = None,
    out: opt.Out = None,
    model_options: ModelOptions,
    cache_options: CacheOptions,
) -> None:
    """Show how many facts an explanation needs: the best sum of 1, 2, ... facts, and how well each fits."""
    chosen_format = format_by_name(form, out, _BY_SUFFIX)
    if max_k < 1:
        raise ParameterError(f"-k is {max_k}, but it must be at least 1. Type: -k 8")
    keywords, number = search_options.keywords(), search_options.n_queries
    space = table_options.space(data, target)
    loaded = model_options.load(model)
    cache = cache_options.open(model, loaded)
    with QueryProgress("Tracing", expected_rows(number, 1), announce=number is not None) as progress:
        explainer = output_options.explainer(progress.wrap_model(loaded), space, cache)
        found = explainer.frontier(row, range(1, max_k + 1), **keywords)
    content: str | bytes = printable_lines(found)
    if chosen_format is FrontierFormat.png:
        from anchorline.render.pictures import plot_frontier  # noqa: PLC0415  needs matplotlib

        content = png_bytes(plot_frontier(found))
    write_results([(row, content)], out)
