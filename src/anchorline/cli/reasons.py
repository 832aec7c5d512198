"""``anchorline reasons``."""

from dataclasses import dataclass
from typing import Annotated, Any

import typer

from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import print_message, printable_lines
from anchorline.cli.formats import Format, choose_format, write_results
from anchorline.cli.inputs import (
    AskedModelOptions,
    OutputOptions,
    TableOptions,
    instances_to_explain,
    require_rows,
)
from anchorline.cli.options import Side, option, with_option_names
from anchorline.cli.progress import QueryProgress
from anchorline.errors import FavorableError, ParameterError, ReasonsError
from anchorline.result.reasons import Reasons
from anchorline.settings import ReasonSettings

_USUAL = ReasonSettings()
_QUERIES = 5000.0  # of one row, about
SUMMARY = "State the main reasons of an adverse decision, by your own map of codes."
EXAMPLES = """\
anchorline reasons model.skops --data train.csv --target approved --output yes --threshold 0.5 --row 17
anchorline reasons model.skops --data train.csv --target approved --output yes --threshold 0.5 --row 17 \
--codes codes.csv --reference near --letter
anchorline reasons risk.onnx --data train.csv --threshold 0.2 --adverse above --rows new.csv --codes codes.csv \
--format json > reasons.jsonl
anchorline reasons model.skops --data train.csv --target approved --output yes --threshold 0.5 --row 17 \
--codes codes.csv --recourse --prohibited sex --out file.html"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasonOptions:
    """Options on the reasons and their codes."""

    codes: Annotated[
        str | None,
        option("The map of codes: a CSV file (attribute,when,code,text) or a JSON file.", metavar="FILE"),
    ] = None
    n: Annotated[int, option("Most reasons.", "-n")] = _USUAL.n
    adverse: Annotated[Side, option("The side of --threshold on which a decision is adverse.")] = Side.below
    prohibited: Annotated[
        list[str] | None, option("A column that must never be a reason. Repeatable.", metavar="COLUMN")
    ] = None
    recourse: Annotated[bool, option("Also say what another value of each reason alone would do.")] = False
    time: Annotated[str, option("A time for the record.", metavar="TEXT")] = ""
    queries: Annotated[
        int | None,
        option(
            "Most answers of the model. [default: until it is clear, or known within 1% of the largest]",
            metavar="N",
        ),
    ] = None
    seed: Annotated[int, option("Random seed. The same seed gives the same bytes.")] = _USUAL.seed

    def keywords(self) -> dict[str, Any]:
        """Return the keywords of `Explainer.reasons`."""
        names = ("codes", "n", "recourse", "time", "seed")
        own = {name: getattr(self, name) for name in names} | {"adverse": self.adverse.value}
        return own | {"prohibited": self.prohibited or (), "queries": self.queries or "auto"}


def reasons(
    *,
    model: opt.Model,
    data: opt.Data,
    row: opt.Rows = None,
    rows: opt.RowsFile = None,
    target: opt.Target = None,
    reason_options: ReasonOptions,
    output_options: OutputOptions,
    table_options: TableOptions,
    letter: Annotated[bool, typer.Option("--letter", help="Print the texts of the letter only.")] = False,
    details: opt.Details = False,
    form: Annotated[Format | None, opt.FORMAT] = None,
    out: opt.Out = None,
    model_options: AskedModelOptions,
) -> Code:
    """State the main reasons of an adverse decision, worst first, compared with a reference.

    The decision is that of --threshold. With --reference near, the case is compared with the rows that score at
    the threshold or slightly beyond it. With several rows, JSON output has one record per line, pages need one
    file per row, and rows with a favorable decision are skipped. If no row has reasons, the exit code is 6.
    """
    require_rows(row, rows)
    if letter and reason_options.codes is None:
        raise ParameterError("--letter prints the texts of your codes. Type --codes FILE.")
    space = table_options.space(data, target)
    instances = instances_to_explain(row or (), rows, space)
    chosen_format = choose_format(form, out, len(instances))
    if chosen_format is Format.png:
        raise ParameterError("Reasons have no picture. Type --format html.")
    keywords, loaded = reason_options.keywords(), model_options.load(model)
    cache, found = model_options.open(model, loaded), list[tuple[int, Reasons]]()
    with QueryProgress("Comparing", _QUERIES * len(instances)) as progress:
        explainer = output_options.explainer(progress.wrap_model(loaded), space, cache)
        for at, instance in instances:
            try:
                found.append((at, explainer.reasons(instance, **keywords)))
            except FavorableError as error:
                print_message(with_option_names(f"Row {at}: {error}"))
            except ReasonsError as error:
                raise error if len(instances) == 1 else type(error)(f"Row {at}: {error}") from None
    shown = [(at, _shown(each, chosen_format, letter, details, f"Row {at}")) for at, each in found]
    if len(instances) > 1 and chosen_format is Format.text:
        shown = [(at, f"Row {at}\n{text}\n") for at, text in shown]
    if shown:
        write_results(shown, out)
    return Code.OK if found else Code.CANNOT_TELL


def _shown(reasons: Reasons, form: Format, letter: bool, details: bool, case: str) -> str:
    if letter:
        return printable_lines("\n".join(reasons.letter()))
    if form is Format.json:
        return reasons.to_json()
    if form is Format.html:
        return reasons.to_html(case)
    return printable_lines(reasons.details() if details else reasons)
