"""``anchorline explain``, ``rule``, ``frontier`` and ``changes``: questions about rows, asked in one flow."""

import enum
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import typer

from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import printable_lines
from anchorline.cli.contents import ContentOptions, space_and_instances
from anchorline.cli.formats import (
    Format,
    choose_format,
    format_by_name,
    plain_text,
    png_bytes,
    render,
    terminal_text,
    write_results,
)
from anchorline.cli.inputs import (
    AskedModelOptions,
    ExplainOptions,
    OutputOptions,
    SearchOptions,
    TableOptions,
    instances_to_explain,
    parse_values,
    require_rows,
    split_pairs,
)
from anchorline.cli.options import option
from anchorline.cli.progress import QueryProgress, expected_rows
from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.settings import RuleSettings

ChangesFormat = enum.StrEnum("ChangesFormat", ["text", "json", "html"])
FrontierFormat = enum.StrEnum("FrontierFormat", ["text", "png"])
Examples = enum.StrEnum("Examples", ["values", "rows"])
_Answer = TypeVar("_Answer")
_USUAL = RuleSettings()
_OPTIONS = {
    r"\btarget=(?=')": "--goal ",
    r"\b(the )?target(?= (is|must|out)\b|[,.])": "--goal",
    "pass a threshold to the Explainer": "type --threshold NUMBER",
    "leave the threshold out of the Explainer": "leave --threshold out",
}


def _answers(
    ask: Callable[[Explainer, Any], _Answer],
    instances: Sequence[tuple[int, Any]],
    title: str,
    number: int | None,
    model: str,
    space: Any,
    options: tuple[OutputOptions, AskedModelOptions],
) -> Iterator[tuple[int, _Answer]]:
    """Yield the answer of each instance with its number; ``number`` is that of the queries, None for auto."""
    output_options, model_options = options
    loaded = model_options.load(model)
    cache = model_options.open(model, loaded)
    expected = expected_rows(number, len(instances))
    with QueryProgress(title, expected, announce=number is not None) as progress:
        explainer = output_options.explainer(progress.wrap_model(loaded), space, cache)
        for n_done, (place, instance) in enumerate(instances, start=1):
            progress.describe(f"{title} row {place}")
            yield place, ask(explainer, instance)
            progress.set_expected(progress.n_rows / n_done * len(instances))


def _write(shown: Sequence[tuple[int, str | bytes]], form: enum.StrEnum, out: str | None) -> None:
    """Write what is shown of each row; several texts are headed by their rows."""
    if len(shown) > 1 and form == Format.text:
        shown = [(place, f"Row {place}\n{text!s}\n") for place, text in shown]
    write_results(shown, out)


def explain(
    *,
    model: opt.Model,
    data: opt.OptionalData = None,
    row: opt.Rows = None,
    rows: opt.RowsFile = None,
    target: opt.Target = None,
    explain_options: ExplainOptions,
    output_options: OutputOptions,
    table_options: TableOptions,
    content_options: ContentOptions,
    details: opt.Details = False,
    form: Annotated[Format | None, opt.FORMAT] = None,
    out: opt.Out = None,
    model_options: AskedModelOptions,
) -> None:
    """Explain why the model gives a row, or each of several rows, its prediction.

    A row of --data is chosen by --row or --rows. A text (--text, --text-file) or an image (--image) needs no data.
    With several rows, JSON output has one explanation per line. Pages and pictures need one file per row: put
    {row} into the name in --out.
    """
    space, instances = space_and_instances(content_options, table_options, data, row, rows, target)
    chosen_format = choose_format(form, out, len(instances))
    keywords, text = explain_options.keywords(), terminal_text if out is None else plain_text
    found = _answers(
        lambda explainer, instance: explainer.explain(instance, **keywords),
        instances,
        "Explaining",
        explain_options.n_queries,
        model,
        space,
        (output_options, model_options),
    )
    shown = [(place, render(each, chosen_format, lambda e: text(e, details=details))) for place, each in found]
    _write(shown, chosen_format, out)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOptions(SearchOptions):
    """Options on the rule, and on how often the decision must stay."""

    holds: Annotated[
        str,
        option(
            "Share of altered copies with the facts that must keep the decision; none: the most that -k facts "
            "hold.",
            metavar="SHARE|none",
        ),
    ] = str(_USUAL.holds)
    k: Annotated[int, option("Most facts of a rule.", "-k")] = _USUAL.k
    within: Annotated[
        float | None,
        option(
            "How much a number may change and still stay. [default: 10% of the prediction or of the spread of "
            "outputs, whichever is larger]",
            metavar="AMOUNT",
        ),
    ] = None
    confidence: Annotated[float, option("With which all limits hold together.")] = _USUAL.confidence

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of `Explainer.rule`."""
        return SearchOptions.keywords(self) | {"holds": self._share()}

    def _share(self) -> float | None:
        if self.holds == "none":
            return None
        try:
            return float(self.holds)
        except ValueError:
            raise ParameterError(
                f"--holds is {self.holds!r}, but it must be a share or none. Type: --holds 0.95"
            ) from None


def rule(
    *,
    model: opt.Model,
    data: opt.OptionalData = None,
    row: opt.Rows = None,
    rows: opt.RowsFile = None,
    target: opt.Target = None,
    rule_options: RuleOptions,
    output_options: OutputOptions,
    table_options: TableOptions,
    content_options: ContentOptions,
    details: opt.Details = False,
    form: Annotated[Format | None, opt.FORMAT] = None,
    out: opt.Out = None,
    model_options: AskedModelOptions,
) -> Code:
    """Find the fewest facts, each as wide as possible, while which the decision stays.

    A row of --data is chosen by --row or --rows. A text (--text, --text-file) or an image (--image) needs no data.
    With several rows, JSON output has one rule per line. Pages and pictures need one file per row: put {row} into
    the name in --out. If the facts of a rule do not hold as often as asked, the exit code is 6.
    """
    space, instances = space_and_instances(content_options, table_options, data, row, rows, target)
    chosen_format = choose_format(form, out, len(instances))
    keywords, reached = rule_options.keywords(), list[bool]()
    found = _answers(
        lambda explainer, instance: explainer.rule(instance, **keywords),
        instances,
        "Searching for",
        rule_options.n_queries,
        model,
        space,
        (output_options, model_options),
    )
    shown = list[tuple[int, str | bytes]]()
    for place, each in found:
        reached.append(each.is_reached)
        content = render(each, chosen_format, lambda e: printable_lines(e.details() if details else e))
        shown.append((place, content))
    _write(shown, chosen_format, out)
    return Code.OK if all(reached) else Code.CANNOT_TELL


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
    model_options: AskedModelOptions,
) -> None:
    """Show how many facts an explanation needs: the best sum of 1, 2, ... facts, and how well each fits."""
    chosen_format = format_by_name(form, out, FrontierFormat)
    if max_k < 1:
        raise ParameterError(f"-k is {max_k}, but it must be at least 1. Type: -k 8")
    keywords = search_options.keywords()
    found = _answers(
        lambda explainer, row: explainer.frontier(row, range(1, max_k + 1), **keywords),
        [(row, row)],
        "Tracing",
        search_options.n_queries,
        model,
        table_options.space(data, target),
        (output_options, model_options),
    )
    for _, each in found:
        content: str | bytes = printable_lines(each)
        if chosen_format is FrontierFormat.png:
            from anchorline.render.pictures import plot_frontier  # noqa: PLC0415  needs matplotlib

            content = png_bytes(plot_frontier(each))
        _write([(row, content)], chosen_format, out)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeOptions:
    """Options on which changes are wanted."""

    goal: Annotated[
        str | None,
        option(
            "The wanted class, or a limit ('>= 300') or move ('+50') of the output. [default: another class]",
            metavar="WISH",
        ),
    ] = None
    n: Annotated[int, option("Maximum number of changes to list.", "-n")] = 3
    k: Annotated[
        int | None, option("Maximum number of facts that change. [default: 3; of rows, any number]", "-k")
    ] = None
    examples: Annotated[
        Examples, option("'values': few facts, any training values. 'rows': whole training rows.")
    ] = Examples.values
    allow: Annotated[
        list[str] | None, option("A range LOW..HIGH, or values A,B. Repeatable.", metavar="COLUMN=VALUES")
    ] = None
    direction: Annotated[
        list[str] | None, option("The only direction of a column. Repeatable.", metavar="COLUMN=up|down")
    ] = None
    cost: Annotated[
        list[str] | None, option("How much a change of a column counts. Repeatable.", metavar="COLUMN=WEIGHT")
    ] = None
    queries: Annotated[int | None, option("Most answers of the model. [default: 100000]", metavar="N")] = None
    seed: Annotated[int, option("Random seed. The same seed gives the same bytes.")] = 0

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of `Explainer.changes`."""
        return {
            "target": self.goal,
            "n": self.n,
            "k": self.k,
            "examples": self.examples.value,
            "allowed": {name: parse_values(text) for name, text in split_pairs("--allow", self.allow)},
            "direction": dict(split_pairs("--direction", self.direction)),
            "cost": {name: _weight(name, text) for name, text in split_pairs("--cost", self.cost)},
            "queries": self.queries,
            "seed": self.seed,
        }


def changes(
    *,
    model: opt.Model,
    data: opt.Data,
    row: opt.Rows = None,
    rows: opt.RowsFile = None,
    target: opt.Target = None,
    change_options: ChangeOptions,
    output_options: OutputOptions,
    table_options: TableOptions,
    details: opt.Details = False,
    form: Annotated[ChangesFormat | None, opt.FORMAT] = None,
    out: opt.Out = None,
    model_options: AskedModelOptions,
) -> Code:
    """Find sets of few facts whose change turns the decision, with an example that was asked of the model.

    Columns that may not change are named by --fixed. If nothing turns the decision for a row, the exit code is 6.
    """
    require_rows(row, rows)
    chosen_format = format_by_name(form, out, ChangesFormat)
    space = table_options.space(data, target)
    instances = instances_to_explain(row or (), rows, space)
    keywords, turned = change_options.keywords(), list[bool]()

    def ask(explainer: Explainer, instance: Any) -> Any:
        try:
            return explainer.changes(instance, **keywords)
        except ParameterError as error:
            raise type(error)(_by_options(str(error))) from None

    def text(each: Any) -> str:
        return printable_lines(f"{each}\n\n{each.details()}" if details else each)

    shown = list[tuple[int, str | bytes]]()
    options = (output_options, model_options)
    for place, each in _answers(ask, instances, "Searching for", None, model, space, options):
        turned.append(len(each) > 0)
        shown.append((place, render(each, chosen_format, text)))
    _write(shown, chosen_format, out)
    return Code.OK if all(turned) else Code.CANNOT_TELL


def _by_options(message: str) -> str:
    """Name the options of the command in a message that names the arguments of Python."""
    for pattern, named in _OPTIONS.items():
        message = re.sub(pattern, named, message)
    return message


def _weight(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(
            f"--cost of {name!r} is {text!r}, but it must be a number. Type: --cost {name}=2"
        ) from None


#: The summary and the examples of each command.
COMMANDS: dict[Callable[..., Any], tuple[str, str]] = {
    explain: (
        "Explain why the model gives this row its prediction.",
        """\
anchorline explain model.skops --data train.csv --target approved --row 17
anchorline explain model.onnx --data train.parquet --row 3 --row 8 --format json > why.jsonl
anchorline explain booster.txt --data train.csv --rows new.csv --out 'why-{row}.html'
anchorline explain mypackage.scoring:score --data train.csv --row 0 -k 3 --output-range 300 850
anchorline explain mypackage.reviews:classify --text "Great food, but slow."
anchorline explain mypackage.photos:classify --image cat.png --segments grid --out why.html
anchorline explain http://localhost:8080/v2/models/credit/infer --data train.csv --row 0 --queries 300""",
    ),
    rule: (
        "Find the few facts while which the decision stays.",
        """\
anchorline rule model.skops --data train.csv --target approved --row 17
anchorline rule model.skops --data train.csv --target approved --row 17 --holds 0.99 -k 6
anchorline rule model.skops --data train.csv --target approved --row 17 --holds none -k 2
anchorline rule price.txt --data train.csv --row 3 --within 25 --out rule.html
anchorline rule model.onnx --data train.parquet --rows new.csv --format json > rules.jsonl
anchorline rule mypackage.reviews:classify --text "Great food, but slow.\"""",
    ),
    frontier: (
        "Show how many facts an explanation needs.",
        """\
anchorline frontier model.skops --data train.csv --target approved --row 17
anchorline frontier model.onnx --data train.parquet --row 3 -k 12 --out frontier.png""",
    ),
    changes: (
        "Find the few facts whose change turns the decision.",
        """\
anchorline changes model.skops --data train.csv --target approved --row 17
anchorline changes model.skops --data train.csv --target approved --row 17 --goal approved --fixed age
anchorline changes model.skops --data train.csv --target approved --row 17 --examples rows
anchorline changes price.txt --data train.csv --row 3 --goal '>= 300' --allow rooms=3..6 --direction area=up
anchorline changes model.onnx --data train.parquet --rows new.csv --cost income=2 --format json > changes.jsonl""",
    ),
}
