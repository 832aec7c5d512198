"""``anchorline frontier``."""

import enum
from typing import Annotated

import typer

from anchorline.cli import options as opt
from anchorline.cli.console import lines_of, say
from anchorline.cli.formats import format_by_name, picture
from anchorline.cli.inputs import Intervals, Loading, Question, keywords_of
from anchorline.cli.progress import Meter, expected_rows
from anchorline.errors import ParameterError
from anchorline.io import write_atomically


class FrontierFormat(enum.StrEnum):
    """What is made of a frontier."""

    text = "text"
    png = "png"


_BY_SUFFIX = {"": FrontierFormat.text, ".txt": FrontierFormat.text, ".png": FrontierFormat.png}
SUMMARY = "How many reasons are needed?"
EXAMPLES = """\
anchorline frontier model.skops --data train.csv --target approved --row 17
anchorline frontier model.onnx --data train.parquet --row 3 -k 12 --out frontier.png"""


def frontier(
    *,
    model: opt.Model,
    data: opt.Data,
    row: Annotated[
        int, typer.Option("--row", metavar="N", min=0, help="A row of the data, from 0.", show_default=False)
    ],
    target: opt.Target = None,
    most: Annotated[int, typer.Option("-k", help="Most terms: 1, 2, ... up to so many are tried.")] = 8,
    sigma: opt.Sigma = 1.0,
    samples: Annotated[
        int | None, typer.Option("--samples", metavar="N", help="Neighbors to search with. [default: 5000]")
    ] = None,
    question: Question,
    intervals: Intervals,
    max_queries: opt.MaxQueries = None,
    seed: opt.Seed = 0,
    form: Annotated[
        FrontierFormat | None, typer.Option("--format", help="What to make. [default: by --out, else text]")
    ] = None,
    out: opt.Out = None,
    loading: Loading,
) -> None:
    """How many reasons are needed: the best sum of 1, 2, ... terms, and what each is worth."""
    chosen = format_by_name(form, out, _BY_SUFFIX)
    if most < 1:
        raise ParameterError(f"-k is {most}; needed at least 1.")
    keywords = keywords_of(sigma=sigma, samples=samples, objective="fidelity", max_queries=max_queries, seed=seed)
    space = intervals.space(data, target)
    loaded = loading.load(model)
    with Meter("Tracing", expected_rows(keywords, 1)) as meter:
        explainer = question.explainer(meter.counted(loaded), space)
        found = explainer.frontier(row, range(1, most + 1), **keywords)
    if chosen is FrontierFormat.png:
        from anchorline.render import plot  # noqa: PLC0415  needs matplotlib

        write_atomically(str(out), picture(plot.frontier(found)))
    elif out is not None:
        write_atomically(out, f"{lines_of(found)}\n")
    else:
        say(lines_of(found))
