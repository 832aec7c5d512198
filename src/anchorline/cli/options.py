"""Arguments and options that commands share."""

import enum
import re
from typing import Annotated

import typer

from anchorline.cli.console import set_debug, set_verbose
from anchorline.model.loaders import KINDS

# Keywords of Python that errors speak of, as they are typed here.
_OPTIONS = {"n_bins": "--bins", "n_samples": "--samples", "max_queries": "--max-queries", "groups": "--group"}
_OPTIONS |= {"output_range": "--output-range", "classes": "--class", "n_jobs": "--jobs", "k": "-k"}
_OPTIONS |= {name: f"--{name}" for name in ("sigma", "seed", "threshold", "output", "column", "task", "within")}
_NAMES, _VALUE = "|".join(_OPTIONS), r"\((\S+), (\S+)\)|'(\w+)'|-?[\w.]*\w|(?=,)"
_KEYWORD = re.compile(rf"(?:^|(?<=\. ))({_NAMES}) is |(?<![\w.'(])({_NAMES})=({_VALUE})")


def in_options(text: str) -> str:
    """An error's advice in the words of the command line.

    >>> in_options("n_bins is 1; needed at least 2. Type n_bins=4, or output_range=(0, 1), or task='label'.")
    '--bins is 1; needed at least 2. Type --bins 4, or --output-range 0 1, or --task label.'
    """

    def typed(found: re.Match[str]) -> str:
        subject, name, value, low, high, word = found.groups()
        if subject:
            return f"{_OPTIONS[subject]} is "
        return f"{_OPTIONS[name]} {f'{low} {high}' if low else word or value}".rstrip()

    return _KEYWORD.sub(typed, text)


Kind = enum.StrEnum("Kind", {name: name for name in KINDS})  # type: ignore[misc]


class Within(enum.StrEnum):
    """What an unflipped attribute does."""

    keep = "keep"
    redraw = "redraw"


class Task(enum.StrEnum):
    """What the model's answers are."""

    label = "label"
    number = "number"


class Objective(enum.StrEnum):
    """What the best sum is best at."""

    fidelity = "fidelity"
    relevance = "relevance"


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A file (.onnx, .skops, XGBoost's .json or .ubj, LightGBM's .txt), module:function, or an address "
        "http(s)://... of an Open Inference or MLflow model (its token in ANCHORLINE_HTTP_TOKEN).",
        show_default=False,
    ),
]
ModelKind = Annotated[Kind | None, typer.Option("--kind", help="What MODEL is, if its name does not tell.")]
Trust = Annotated[
    list[str] | None,
    typer.Option("--trust", metavar="TYPE", help="A type that a skops file may make; repeat it for several."),
]
TrustPickle = Annotated[
    bool, typer.Option("--trust-pickle", help="Load a pickle or joblib file, which runs the code in it.")
]
Timeout = Annotated[float, typer.Option("--timeout", metavar="SECONDS", help="How long an HTTP model may take.")]
BatchRows = Annotated[int, typer.Option("--batch-rows", help="Rows a request to an HTTP model.")]
Data = Annotated[
    str,
    typer.Option(
        "--data",
        metavar="FILE",
        help="The table the model was trained on: .csv, .tsv, .jsonl (also .gz), .parquet, .arrow, .feather.",
        show_default=False,
    ),
]
Target = Annotated[
    list[str] | None,
    typer.Option(
        "--target", metavar="COLUMN", help="A column to leave out: the target, an identifier. Repeatable."
    ),
]
Rows = Annotated[
    list[int] | None,
    typer.Option("--row", metavar="N", min=0, help="A row of the data, counted from 0. Repeatable."),
]
RowsFile = Annotated[
    str | None, typer.Option("--rows", metavar="FILE", help="A table whose rows are explained, all of them.")
]
Bins = Annotated[int, typer.Option("--bins", help="Intervals that numbers and dates are cut into.")]
Fixed = Annotated[
    list[str] | None,
    typer.Option("--fixed", metavar="COLUMN", help="A column that never changes. Repeatable."),
]
Group = Annotated[
    list[str] | None,
    typer.Option("--group", metavar="NAME=A,B", help="Columns that change together. Repeatable."),
]
WithinOption = Annotated[
    Within,
    typer.Option("--within", help="Whether an attribute that is not changed keeps its value, or its interval."),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output", metavar="CLASS", help="The class explained (else the predicted), or the output's name."
    ),
]
Column = Annotated[int | None, typer.Option("--column", help="The class explained, by its column from 0.")]
TaskOption = Annotated[Task | None, typer.Option("--task", help="Whether whole numbers are labels or numbers.")]
Classes = Annotated[
    list[str] | None,
    typer.Option("--class", metavar="LABEL", help="The label of the model's next column. Repeat it for all."),
]
OutputRange = Annotated[
    tuple[float, float] | None,
    typer.Option("--output-range", metavar="LOW HIGH", help="Lowest and highest output."),
]
Threshold = Annotated[float | None, typer.Option("--threshold", help="The decision is: output >= threshold.")]
K = Annotated[int, typer.Option("-k", help="Most terms, the intercept included.")]
Sigma = Annotated[float, typer.Option("--sigma", help="How local: the larger, the closer the neighbors.")]
Samples = Annotated[
    str | None, typer.Option("--samples", metavar="N|auto", help="Neighbors to search with. [default: 5000]")
]
ObjectiveOption = Annotated[
    Objective, typer.Option("--objective", help="The sum that fits best, or facts that hold it.")
]
MaxQueries = Annotated[int | None, typer.Option("--max-queries", help="Most rows to show to the model.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed gives the same bytes.")]
Out = Annotated[
    str | None,
    typer.Option("--out", metavar="PATH", help="Write there, whole or not at all, instead of printing."),
]
Debug = Annotated[
    bool, typer.Option("--debug", callback=set_debug, help="Show the whole trace of an error.", is_eager=True)
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", callback=set_verbose, help="Tell more while working.", is_eager=True)
]
