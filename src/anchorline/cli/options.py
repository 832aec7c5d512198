"""Arguments and options that several commands share, and option names in error messages."""

import enum
import re
from collections.abc import Iterator
from dataclasses import dataclass
from inspect import Parameter, signature
from typing import Annotated, Any, get_args

import typer

from anchorline.cli.console import set_debug, set_verbose

# Python keywords that appear in error messages, and the options of the command line that set them.
_OPTION_OF_KEYWORD = {
    "k": "-k",
    "n": "-n",
    "cuts": "--cut",
    "groups": "--group",
    "classes": "--class",
    "column": "--output",
    "allowed": "--allow",
    "n_jobs": "--jobs",
    "requests_per_second": "--rate",
    "max_retries": "--retries",
    **{name: f"--{name}" for name in ("sigma", "queries", "seed", "alternatives", "confidence", "threshold")},
    **{name: f"--{name}" for name in ("holds", "within", "codes", "adverse", "prohibited")},
    **{name: f"--{name}" for name in ("output", "task", "neighbors", "fixed", "categorical", "reference")},
    **{name: f"--{name}" for name in ("parallel", "direction", "cost", "examples")},
    **{name: f"--{name.replace('_', '-')}" for name in ("time_limit", "output_range", "output_scale")},
    **{name: f"--{name.replace('_', '-')}" for name in ("batch_rows", "row_timeout")},
}
_NAMES = "|".join(_OPTION_OF_KEYWORD)
_VALUE = r"\{'([^']+)': \[([^]]+)\]\}|\['([^']+)'\]|\((\S+), (\S+)\)|'([^']*)'|-?[\w.]*\w|(?=[, ])"
_KEYWORD = re.compile(
    rf"(?:^|(?<=\. ))({_NAMES})(?:\['([^']+)'\])? (?=is |has )|(?<![\w.'(])({_NAMES})=({_VALUE})"
)
_EXPLAINER = re.compile(r"Explainer\(model, table, ([^()]*)\)")
_CODES = re.compile(r"\bcodes=\{'([^']+)': (?:\{'([^']+)': )?\('([^']+)', '([^']+)'\)\}+")
_GONE = {  # options of 0.1, and the keywords whose successors are named
    "--samples": "n_samples",
    "--objective": "objective",
    "--sampling": "sampling",
    "--pairs": "pairs",
    "--budget": "budget",
    "--max-queries": "max_queries",
    "--bins": "n_bins",
    "--within": "within",
    "--literals": "literals",
    "--max-facts": "max_facts",
    "--column": "column",
    "--max-samples": "max_samples",
}


def with_option_names(text: str) -> str:
    """Return an error message in which options of the command line replace Python keywords.

    >>> with_option_names("queries is 1, but it must be at least 32. Type queries=300, or queries='auto'.")
    '--queries is 1, but it must be at least 32. Type --queries 300, or --queries auto.'
    >>> with_option_names("n is 0, but it must be a whole number >= 1. Type n=4.")
    '-n is 0, but it must be a whole number >= 1. Type -n 4.'
    >>> with_option_names("Type output_range=(0, 1), or cuts={'age': [30, 40]}, or fixed=['age'].")
    'Type --output-range 0 1, or --cut age=30,40, or --fixed age.'
    >>> with_option_names("cuts['age'] is ['a']; it must list numbers.")
    "--cut age is ['a']; it must list numbers."
    >>> with_option_names("Type Explainer(model, table, output='yes', threshold=0.5).")
    'Type --output yes --threshold 0.5.'
    >>> with_option_names("Add them, such as codes={'age': {'low': ('R01', 'Text')}}.")
    'Add them, such as the line age,low,R01,Text in --codes.'
    """

    def replacement(match: re.Match[str]) -> str:
        subject, column, name, value, key, values, only, low, high, word = match.groups()
        if subject:
            return f"{_OPTION_OF_KEYWORD[subject]} {column + ' ' if column else ''}"
        if key:
            value = f"{key}={values.replace(', ', ',')}".replace("'", "")
        elif low:
            value = f"{low} {high}"
        return f"{_OPTION_OF_KEYWORD[name]} {only or word or value}".rstrip()

    text = _EXPLAINER.sub(lambda match: match[1].replace(", ", " "), text)
    text = _CODES.sub(r"the line \1,\2,\3,\4 in --codes", text)
    return _KEYWORD.sub(replacement, text)


def successor_of(option: str) -> str | None:
    """Return one sentence that names what replaces an option of 0.1; None if the option never existed.

    >>> successor_of("--budget"), successor_of("--frobnicate")
    ('There is no option --budget: --queries is that number.', None)
    """
    if option not in _GONE:
        return None
    from anchorline.changes.find import SUCCESSORS as OF_CHANGES  # noqa: PLC0415  heavy
    from anchorline.explainer import _GONE as OF_EXPLAINERS  # noqa: PLC0415  heavy
    from anchorline.settings import SUCCESSORS  # noqa: PLC0415  heavy
    from anchorline.spaces.table import _GONE as OF_TABLES  # noqa: PLC0415  heavy

    others = OF_EXPLAINERS | {"max_samples": "--max-queries counts all answers of the model per request"}
    why = (others | OF_TABLES | OF_CHANGES | SUCCESSORS | {"within": OF_TABLES["within"]})[_GONE[option]]
    return with_option_names(f"There is no option {option}: {why.removesuffix('.')}.")


@dataclass(frozen=True, slots=True)
class _Option:
    help: str
    names: tuple[str, ...]
    settings: dict[str, Any]


def option(help: str, *names: str, **settings: Any) -> _Option:
    """Describe a field of a group of options; the option is called --like-the-field unless names are given."""
    return _Option(help, names, settings)


def parameters_of(group: Any) -> Iterator[Parameter]:
    """Yield the parameters of a group of options: a dataclass whose fields are described by `option`."""
    for name, parameter in signature(group).parameters.items():
        kind, described = get_args(parameter.annotation)
        names = described.names or (f"--{name.replace('_', '-')}",)
        choice = typer.Option(*names, help=described.help, **described.settings)
        yield parameter.replace(annotation=Annotated[kind, choice])


_MODEL_IS = (
    "A file (.onnx, .skops, XGBoost's .json or .ubj, LightGBM's .txt), module:function, or the address "
    "http(s)://... of an Open Inference or MLflow model (put its token into ANCHORLINE_HTTP_TOKEN)."
)
Model = Annotated[str, typer.Argument(metavar="MODEL", help=_MODEL_IS, show_default=False)]
OldModel = Annotated[str, typer.Argument(metavar="OLD", help=_MODEL_IS, show_default=False)]
NewModel = Annotated[str, typer.Argument(metavar="NEW", help="The other model, likewise.", show_default=False)]
_DATA = typer.Option(
    "--data",
    metavar="FILE",
    help="The table that the model was trained on: .csv, .tsv, .jsonl (also .gz), .parquet, .arrow, .feather.",
    show_default=False,
)
Side = enum.StrEnum("Side", ["below", "above"])
Data = Annotated[str, _DATA]
OptionalData = Annotated[str | None, _DATA]
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
Details = Annotated[bool, typer.Option("--details", help="Also print how we know; of text only.")]
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
