"""Options as tables: a command names the groups that it takes, and gets the values as one object."""

import enum
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from types import SimpleNamespace
from typing import Annotated, Any

import typer

from anchorline.model.loaders import KINDS
from anchorline.settings import Settings
from anchorline.spaces.table import NEIGHBORS

REQUIRED = Parameter.empty
_USUAL = Settings()


class Given(SimpleNamespace):
    """The value of every option of a command."""

    def of(self, names: Iterable[str]) -> dict[str, Any]:
        """Return the values of some options, such as those of a group."""
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Option:
    """One option; it is called --like-its-place in the table unless names are given. None stands for no value."""

    kind: Any
    help: str
    metavar: str | None = None
    default: Any = None
    names: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    is_argument: bool = False

    def parameter(self, name: str) -> Parameter:
        """Return the parameter of a function from which typer makes the option."""
        kind = self.kind | None if self.default is None else self.kind
        settings = {"help": self.help, "metavar": self.metavar, **self.settings}
        if self.is_argument:
            info: Any = typer.Argument(show_default=False, **settings)
        else:
            info = typer.Option(*(self.names or (f"--{name.replace('_', '-')}",)), **settings)
        return Parameter(name, Parameter.KEYWORD_ONLY, default=self.default, annotation=Annotated[kind, info])


def option(
    kind: Any, help: str, metavar: str | None = None, *names: str, default: Any = None, **settings: Any
) -> Option:
    """Describe an option whose value is one of a kind, or a list of them."""
    return Option(kind, help, metavar, default, names, settings)


def argument(metavar: str, help: str, default: Any = REQUIRED) -> Option:
    """Describe what is typed without a name."""
    return Option(str, help, metavar, default, is_argument=True)


def switch(help: str) -> Option:
    """Describe an option that is given or not."""
    return Option(bool, help, default=False)


def one_of(*names: str) -> Any:
    """Return the kind of an option with these values."""
    return enum.StrEnum("Choice", {name: name for name in names})


@dataclass(frozen=True)
class Command:
    """A command: what it does, with which options, and what its help says."""

    run: Callable[[Given], Any]
    summary: str
    options: Mapping[str, Option]
    examples: str
    context: Mapping[str, Any]  # settings of typer's context

    def __call__(self, **values: Any) -> Any:
        """Run with the values that typer has read."""
        plain = {name: each.value if isinstance(each, enum.Enum) else each for name, each in values.items()}
        return self.run(Given(**plain))


def command(
    summary: str, options: Mapping[str, Option], examples: str, **context: Any
) -> Callable[[Callable[[Given], Any]], Command]:
    """Decorate the function of a command; its docstring is the help text."""
    return lambda run: Command(run, summary, options, examples, context)


# ---- the groups that several commands share

MODEL_IS = (
    "A file (.onnx, .skops, XGBoost's .json or .ubj, LightGBM's .txt), module:function, or the address "
    "http(s)://... of an Open Inference or MLflow model (put its token into ANCHORLINE_HTTP_TOKEN)."
)
MODEL = {"model": argument("MODEL", MODEL_IS)}
_DATA = "The table that the model was trained on: .csv, .tsv, .jsonl (also .gz), .parquet, .arrow, .feather."
DATA = {"data": option(str, _DATA, "FILE", default=REQUIRED)}
OPTIONAL_DATA = {"data": option(str, _DATA, "FILE", show_default=False)}
ROWS = {
    "row": option(list[int], "A row of the data, counted from 0. Repeatable.", "N", min=0),
    "rows": option(str, "A table whose rows are all explained.", "FILE"),
}
TARGET = {
    "target": option(list[str], "A column to leave out: first the target, then identifiers. Repeatable.", "COLUMN")
}
DETAILS = {"details": switch("Also print how we know (text output only).")}
OUT = {"out": option(str, "Write to this file instead of printing. A failure leaves no partial file.", "PATH")}
SEED = {"seed": option(int, "Random seed. The same seed gives the same bytes.", default=_USUAL.seed)}
SIGMA = {
    "sigma": option(float, "Concentration: the larger it is, the fewer values are replaced.", default=_USUAL.sigma)
}
CONFIDENCE = {
    "confidence": option(float, "Confidence with which all limits hold together.", default=_USUAL.confidence)
}
_QUERIES = option(
    str, "Maximum number of queries to the model; auto: until the verdict is decided.", "N|auto", default="auto"
)
SEARCH = SIGMA | {"queries": _QUERIES} | SEED
EXPLAIN = {
    **SEARCH,
    "k": option(int, "Maximum number of facts in a sum. [default: 4; 8 for texts and images]", None, "-k"),
    "alternatives": option(int, "How many other sums that fit as well to list.", default=0),
    **CONFIDENCE,
    "time_limit": option(float, "Time limit for the proof. [default: a fixed number of steps]", "SECONDS"),
}
LETTER = {
    "adverse": option(
        one_of("below", "above"), "The side of --threshold on which a decision is adverse.", default="below"
    ),
    "prohibited": option(list[str], "A column that must never be a reason. Repeatable.", "COLUMN"),
}
OUTPUT = {
    "output": option(
        str,
        "The class to explain, by its label or its number from 0, by default the predicted one; of a number, "
        "its name and unit: 'price [EUR]'.",
        "CLASS",
    ),
    "output_scale": option(
        one_of("probability", "margin"), "Explain a classifier's probabilities (default) or its margins."
    ),
    "task": option(
        one_of("label", "number"), "Whether whole numbers that the model returns are labels or numbers."
    ),
    "classes": option(
        list[str], "The label of the model's next column. Repeat it for every column.", "LABEL", "--class"
    ),
    "threshold": option(float, "The decision is whether output >= threshold."),
    "output_range": option(tuple[float, float], "Lowest and highest possible output.", "LOW HIGH"),
}
TABLE = {
    "cut": option(list[str], "Further cut points of numbers or dates. Repeatable.", "COLUMN=A,B"),
    "group": option(
        list[str],
        "Columns that are replaced together. Repeatable. Or auto: indicators that exclude each other.",
        "NAME=A,B",
    ),
    "fixed": option(list[str], "A column that never changes. Repeatable.", "COLUMN"),
    "categorical": option(list[str], "Numbers to read as categories. Repeatable.", "COLUMN"),
    "reference": option(
        str,
        "The rows that values are drawn from: a file, all of --data (default), or near: rows that just pass.",
        "FILE|all|near",
    ),
    "neighbors": option(
        one_of(*NEIGHBORS),
        "Whether each new value of a copy comes from a row of its own (independent), or all of them "
        "from one row that is like the explained one (realistic).",
        default="independent",
    ),
}
CUT = {
    "unit": option(str, "What is taken out of a text: word or sentence.", default="word"),
    "mask": option(str, "What replaces a word. [default: words are deleted]"),
    "segments": option(str, "How an image is cut: slic or grid.", default="slic"),
    "n_segments": option(int, "About how many regions an image has.", default=64),
    "hidden": option(str, "What a hidden region shows: mean or blur.", default="mean"),
}
CONTENT = {
    **CUT,
    "text": option(list[str], "A text to explain. Repeatable.", "TEXT"),
    "text_file": option(list[str], "A file with one text. Repeatable.", "FILE"),
    "image": option(list[str], "An image file to explain. Repeatable.", "FILE"),
}
LOADING = {
    "kind": option(one_of(*KINDS), "Kind of MODEL, if its name does not show it."),
    "trust": option(list[str], "A type that a skops file may create. Repeatable.", "TYPE"),
    "trust_pickle": switch("Load a pickle or joblib file, although this runs code from it."),
    "timeout": option(float, "Time limit for a reply of an HTTP model.", "SECONDS", default=60.0),
    "batch_rows": option(int, "Rows per request to an HTTP model.", default=1000),
    "rate": option(float, "Requests per second to an HTTP model. [default: no limit]", "N"),
    "parallel": option(int, "Parallel requests to an HTTP model.", "N", default=1),
    "retries": option(int, "Retries if a request to an HTTP model fails.", "N", default=4),
}
ASKING = {
    **LOADING,
    "cache": option(str, "A file of answers, so that the model is never asked twice.", "FILE"),
    "cache_key": option(
        str, "Name and version of the model in the cache; needed for module:function and for HTTP models.", "NAME"
    ),
}


def format_of(*names: str) -> dict[str, Option]:
    """Return the option for the format of what is written."""
    about = "Output format. [default: by the name in --out, else text]"
    return {"form": option(one_of(*names), about, None, "--format")}
