"""``anchorline changes``."""

import enum
import re
from dataclasses import dataclass
from typing import Annotated, Any

from anchorline.changes.result import Changes
from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import printable_lines
from anchorline.cli.formats import format_by_name, write_results
from anchorline.cli.inputs import (
    CacheOptions,
    ModelOptions,
    OutputOptions,
    TableOptions,
    instances_to_explain,
    parse_values,
    require_rows,
    split_pairs,
)
from anchorline.cli.options import option
from anchorline.cli.progress import QueryProgress
from anchorline.errors import ParameterError

ChangesFormat = enum.StrEnum("ChangesFormat", ["text", "json", "html"])
Examples = enum.StrEnum("Examples", ["values", "rows"])
_BY_SUFFIX = {"": ChangesFormat.text, ".txt": ChangesFormat.text, ".json": ChangesFormat.json}
_BY_SUFFIX |= {".jsonl": ChangesFormat.json, ".html": ChangesFormat.html, ".htm": ChangesFormat.html}
_OPTIONS = {
    r"\btarget=(?=')": "--goal ",
    r"\b(the )?target(?= (is|must|out)\b|[,.])": "--goal",
    "pass a threshold to the Explainer": "type --threshold NUMBER",
    "leave the threshold out of the Explainer": "leave --threshold out",
}
SUMMARY = "Find the few facts whose change turns the decision."
EXAMPLES = """\
anchorline changes model.skops --data train.csv --target approved --row 17
anchorline changes model.skops --data train.csv --target approved --row 17 --goal approved --fixed age
anchorline changes model.skops --data train.csv --target approved --row 17 --examples rows
anchorline changes price.txt --data train.csv --row 3 --goal '>= 300' --allow rooms=3..6 --direction area=up
anchorline changes model.onnx --data train.parquet --rows new.csv --cost income=2 --format json > changes.jsonl"""


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
    model_options: ModelOptions,
    cache_options: CacheOptions,
) -> Code:
    """Find sets of few facts whose change turns the decision, with an example that was asked of the model.

    Columns that may not change are named by --fixed. If nothing turns the decision for a row, the exit code is 6.
    """
    require_rows(row, rows)
    chosen_format = format_by_name(form, out, _BY_SUFFIX)
    space = table_options.space(data, target)
    instances = instances_to_explain(row or (), rows, space)
    keywords = change_options.keywords()
    loaded = model_options.load(model)
    cache = cache_options.open(model, loaded)
    found = list[tuple[int, Changes]]()
    with QueryProgress("Searching", 5000.0 * len(instances)) as progress:
        explainer = output_options.explainer(progress.wrap_model(loaded), space, cache)
        for at, instance in instances:
            progress.describe(f"Searching for row {at}")
            try:
                found.append((at, explainer.changes(instance, **keywords)))
            except ParameterError as error:
                raise type(error)(_by_options(str(error))) from None
    shown = [(at, _shown(each, chosen_format, details)) for at, each in found]
    if len(shown) > 1 and chosen_format is ChangesFormat.text:
        shown = [(at, f"Row {at}\n{text}\n") for at, text in shown]
    write_results(shown, out)
    return Code.OK if all(len(each) for _, each in found) else Code.CANNOT_TELL


def _by_options(message: str) -> str:
    """Name the options of the command in a message that names the arguments of Python."""
    for pattern, named in _OPTIONS.items():
        message = re.sub(pattern, named, message)
    return message


def _shown(changes: Changes, form: ChangesFormat, details: bool) -> str:
    if form is ChangesFormat.json:
        return changes.to_json()
    if form is ChangesFormat.html:
        return changes.to_html()
    return printable_lines(f"{changes}\n\n{changes.details()}" if details else changes)


def _weight(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ParameterError(
            f"--cost of {name!r} is {text!r}, but it must be a number. Type: --cost {name}=2"
        ) from None
