"""Arguments and options that several commands share, and option names in error messages."""

import enum
import re
from typing import Annotated

import typer

from anchorline.cli.console import set_debug, set_verbose
from anchorline.model.loaders import KINDS

# Python keywords that appear in error messages, and the options of the command line that set them.
_OPTION_OF_KEYWORD = {
    "n_bins": "--bins",
    "n_samples": "--samples",
    "max_queries": "--max-queries",
    "budget": "--budget",
    "groups": "--group",
    "output_range": "--output-range",
    "output_scale": "--output-scale",
    "classes": "--class",
    "n_jobs": "--jobs",
    "requests_per_second": "--rate",
    "max_retries": "--retries",
    "batch_rows": "--batch-rows",
    "parallel": "--parallel",
    "k": "-k",
    **{
        name: f"--{name}"
        for name in (
            "sigma",
            "seed",
            "threshold",
            "output",
            "column",
            "task",
            "within",
            "neighbors",
            "literals",
            "sampling",
        )
    },
}
_NAMES, _VALUE = "|".join(_OPTION_OF_KEYWORD), r"\((\S+), (\S+)\)|'(\w+)'|-?[\w.]*\w|(?=,)"
_KEYWORD = re.compile(rf"(?:^|(?<=\. ))({_NAMES}) is |(?<![\w.'(])({_NAMES})=({_VALUE})")


def with_option_names(text: str) -> str:
    """Return an error message in which options of the command line replace Python keywords.

    >>> with_option_names("n_bins is 1, but it must be at least 2. Type n_bins=4.")
    '--bins is 1, but it must be at least 2. Type --bins 4.'
    >>> with_option_names("Type output_range=(0, 1), or task='label'.")
    'Type --output-range 0 1, or --task label.'
    """

    def replacement(match: re.Match[str]) -> str:
        subject, name, value, low, high, word = match.groups()
        if subject:
            return f"{_OPTION_OF_KEYWORD[subject]} is "
        return f"{_OPTION_OF_KEYWORD[name]} {f'{low} {high}' if low else word or value}".rstrip()

    return _KEYWORD.sub(replacement, text)


Kind = enum.StrEnum("Kind", {name: name for name in KINDS})  # type: ignore[misc]


class Within(enum.StrEnum):
    """What happens to an attribute that is not flipped."""

    keep = "keep"
    redraw = "redraw"


class Neighbors(enum.StrEnum):
    """Where the values of flipped attributes come from."""

    independent = "independent"
    realistic = "realistic"
    similar = "similar"


class Literals(enum.StrEnum):
    """What may be stated about a number or date."""

    bounds = "bounds"
    intervals = "intervals"
    thresholds = "thresholds"


class Sampling(enum.StrEnum):
    """Where the neighbors come from."""

    auto = "auto"
    draw = "draw"
    enumerate = "enumerate"
    leaves = "leaves"


class Task(enum.StrEnum):
    """What the model returns."""

    label = "label"
    number = "number"


class Scale(enum.StrEnum):
    """On which scale the scores of a classifier are explained."""

    probability = "probability"
    margin = "margin"


class Objective(enum.StrEnum):
    """What the best sum optimizes."""

    fidelity = "fidelity"
    relevance = "relevance"


class Pairs(enum.StrEnum):
    """Which pairs of facts a sum may state."""

    conjunction = "and"
    parity = "parity"


Model = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A file (.onnx, .skops, XGBoost's .json or .ubj, LightGBM's .txt), module:function, or the address "
        "http(s)://... of an Open Inference or MLflow model (put its token into ANCHORLINE_HTTP_TOKEN).",
        show_default=False,
    ),
]
ModelKind = Annotated[Kind | None, typer.Option("--kind", help="Kind of MODEL, if its name does not show it.")]
Trust = Annotated[
    list[str] | None,
    typer.Option("--trust", metavar="TYPE", help="A type that a skops file may create. Repeatable."),
]
TrustPickle = Annotated[
    bool, typer.Option("--trust-pickle", help="Load a pickle or joblib file, although this runs code from it.")
]
Timeout = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="Time limit for a reply of an HTTP model.")
]
BatchRows = Annotated[int, typer.Option("--batch-rows", help="Rows per request to an HTTP model.")]
Rate = Annotated[
    float | None,
    typer.Option("--rate", metavar="N", help="Requests per second to an HTTP model. [default: no limit]"),
]
Parallel = Annotated[int, typer.Option("--parallel", metavar="N", help="Requests to an HTTP model at once.")]
Retries = Annotated[
    int, typer.Option("--retries", metavar="N", help="Further attempts if a request to an HTTP model fails.")
]
Cache = Annotated[
    str | None,
    typer.Option("--cache", metavar="FILE", help="A file of answers, so that the model is never asked twice."),
]
CacheKey = Annotated[
    str | None,
    typer.Option(
        "--cache-key",
        metavar="NAME",
        help="Name and version of the model in the cache; needed for module:function and for HTTP models.",
    ),
]
Data = Annotated[
    str,
    typer.Option(
        "--data",
        metavar="FILE",
        help="The table that the model was trained on: .csv, .tsv, .jsonl (also .gz), .parquet, .arrow, .feather.",
        show_default=False,
    ),
]
OptionalData = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="FILE",
        help="The table that the model was trained on: .csv, .tsv, .jsonl (also .gz), .parquet, .arrow, .feather.",
        show_default=False,
    ),
]
Target = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        metavar="COLUMN",
        help="A column to leave out: first the target, then identifiers. Repeatable.",
    ),
]
Rows = Annotated[
    list[int] | None,
    typer.Option("--row", metavar="N", min=0, help="A row of the data, counted from 0. Repeatable."),
]
RowsFile = Annotated[
    str | None, typer.Option("--rows", metavar="FILE", help="A table whose rows are all explained.")
]
Bins = Annotated[int, typer.Option("--bins", help="Number of intervals for each column of numbers or dates.")]
Fixed = Annotated[
    list[str] | None,
    typer.Option("--fixed", metavar="COLUMN", help="A column that keeps its value in all neighbors. Repeatable."),
]
Group = Annotated[
    list[str] | None,
    typer.Option(
        "--group",
        metavar="NAME=A,B",
        help="Columns that are flipped together. Repeatable. Or auto: indicators that exclude each other.",
    ),
]
WithinOption = Annotated[
    Within,
    typer.Option(
        "--within",
        help="Whether an attribute that is not flipped keeps its value (keep) or only its interval (redraw).",
    ),
]
NeighborsOption = Annotated[
    Neighbors,
    typer.Option(
        "--neighbors",
        help="Whether each flipped attribute takes its value from a row of its own (independent), or all of them "
        "from one row that is like the explained one (realistic), whose values may also decide which facts break "
        "(similar).",
    ),
]
LiteralsOption = Annotated[
    Literals,
    typer.Option(
        "--literals",
        help="What may be stated about a number or date: its interval and the bounds of the interval (bounds), "
        "only its interval (intervals), or also every edge as a bound (thresholds).",
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        metavar="CLASS",
        help="The class to explain, by default the predicted one; for a number, its name and unit: 'price [EUR]'.",
    ),
]
Column = Annotated[
    str | None,
    typer.Option(
        "--column",
        metavar="N",
        help="The class to explain, by its column, counted from 0. With `serve --text`: the column of the texts.",
    ),
]
TaskOption = Annotated[
    Task | None, typer.Option("--task", help="Whether whole numbers that the model returns are labels or numbers.")
]
Classes = Annotated[
    list[str] | None,
    typer.Option(
        "--class", metavar="LABEL", help="The label of the model's next column. Repeat it for every column."
    ),
]
OutputRange = Annotated[
    tuple[float, float] | None,
    typer.Option("--output-range", metavar="LOW HIGH", help="Lowest and highest possible output."),
]
Threshold = Annotated[
    float | None, typer.Option("--threshold", help="The decision is whether output >= threshold.")
]
OutputScale = Annotated[
    Scale | None,
    typer.Option("--output-scale", help="Explain a classifier's probabilities (default) or its margins."),
]
K = Annotated[int, typer.Option("-k", help="Maximum number of terms, the starting level included.")]
Sigma = Annotated[
    float, typer.Option("--sigma", help="Concentration: the larger it is, the closer are the neighbors.")
]
Samples = Annotated[
    str | None, typer.Option("--samples", metavar="N|auto", help="Neighbors to search with. [default: 5000]")
]
PairsOption = Annotated[
    Pairs | None,
    typer.Option("--pairs", help="Also offer pairs of facts, which count as two terms each: conjunctions (and)."),
]
ObjectiveOption = Annotated[
    Objective,
    typer.Option(
        "--objective",
        help="Find the sum with the best fit (fidelity), or the facts that best preserve the output (relevance).",
    ),
]
SamplingOption = Annotated[
    Sampling,
    typer.Option(
        "--sampling",
        help="Draw neighbors (draw), ask for all of them (enumerate), compute sums over the leaves of a model's "
        "trees (leaves), or choose what is exact and cheap (auto).",
    ),
]
MaxQueries = Annotated[int | None, typer.Option("--max-queries", help="Maximum number of rows sent to the model.")]
Budget = Annotated[
    int | None,
    typer.Option(
        "--budget",
        metavar="N",
        help="Queries per explanation in all, split between search and certificate, for models that are slow.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", help="Random seed. The same seed gives the same bytes.")]
FORMAT = typer.Option("--format", help="Output format. [default: by the name in --out, else text]")
Out = Annotated[
    str | None,
    typer.Option(
        "--out", metavar="PATH", help="Write to this file instead of printing. A failure leaves no partial file."
    ),
]
Debug = Annotated[
    bool, typer.Option("--debug", callback=set_debug, help="Print the full traceback of an error.", is_eager=True)
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", callback=set_verbose, help="Print more log messages.", is_eager=True)
]
