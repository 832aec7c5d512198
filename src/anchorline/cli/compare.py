"""``anchorline compare``."""

import enum
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import print_message, printable_lines
from anchorline.cli.formats import format_by_name, write_results
from anchorline.cli.inputs import ModelOptions, OutputOptions, TableOptions, columns_left
from anchorline.cli.options import option
from anchorline.cli.progress import QueryProgress, expected_rows
from anchorline.compare.cohorts import compare_cohorts
from anchorline.compare.models import CompareSettings, compare_models
from anchorline.errors import ParameterError
from anchorline.render.comparisons import gate_sentences
from anchorline.result.comparison import Comparison, Drift, Outcome

Form = enum.StrEnum("Form", ["text", "json", "html", "junit"])
_USUAL = CompareSettings()
_PER_COHORT_ROW = 257  # queries: the row and its copies
_CODES = {Outcome.PASSED: Code.OK, Outcome.FAILED: Code.DOES_NOT_HOLD, Outcome.UNDECIDED: Code.USAGE}
SUMMARY = "Compare two models, or this month's rows with last month's."
EXAMPLES = """\
anchorline compare old.skops new.skops --data train.parquet
anchorline compare old.skops new.skops --data train.csv --target approved --max-decisions 0.02 --protect sex,age
anchorline compare old.skops new.skops --data train.csv --by sex --out compare.html
anchorline compare model.skops model.skops --data march.csv --rows april.csv --output declined"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """Options on what is compared, and on what is allowed."""

    n: Annotated[int, option("Rows that are explained.", "-n")] = _USUAL.n
    by: Annotated[
        list[str] | None,
        option("Compare decisions by the values of a column, too. Repeatable.", "--by", metavar="COLUMN"),
    ] = None
    within: Annotated[
        float | None,
        option("How much a number may differ. [default: 10% of the spread of outputs]", metavar="AMOUNT"),
    ] = None
    rules: Annotated[int, option("Rows whose old rules are tried on the new model, at most 50.")] = _USUAL.rules
    max_decisions: Annotated[
        float | None, option("Gate: the largest share of rows that may be decided otherwise.", metavar="SHARE")
    ] = None
    max_reasons: Annotated[
        float | None, option("Gate: the largest share of old explanations that may be refuted.", metavar="SHARE")
    ] = None
    protect: Annotated[
        list[str] | None,
        option("Gate: columns whose effect may not rise by 5% of the spread. Repeatable.", metavar="A,B"),
    ] = None
    sigma: Annotated[float, option("Concentration: the larger it is, the fewer values are replaced.")] = (
        _USUAL.sigma
    )
    seed: Annotated[int, option("Random seed. The same seed gives the same bytes.")] = _USUAL.seed
    confidence: Annotated[float, option("With which all limits hold together.")] = _USUAL.confidence

    def settings(self) -> CompareSettings:
        """Return the settings of `anchorline.compare`."""
        own = asdict(self)
        protect = [name for text in own.pop("protect") or () for name in text.split(",")]
        return CompareSettings(groups=tuple(own.pop("by") or ()), protect=tuple(protect), **own)


def compare(
    *,
    old: opt.OldModel,
    new: opt.NewModel,
    data: opt.Data,
    rows: Annotated[
        str | None,
        typer.Option("--rows", metavar="FILE", help="A table from which rows are taken, instead of --data."),
    ] = None,
    target: opt.Target = None,
    compare_options: CompareOptions,
    output_options: OutputOptions,
    table_options: TableOptions,
    form: Annotated[Form | None, opt.FORMAT] = None,
    out: opt.Out = None,
    model_options: ModelOptions,
) -> Code:
    """Compare the decisions and the reasons of two models on the same altered copies of the same rows.

    If OLD and NEW are the same, the rows of --data are compared with those of --rows. The exit code is 0 if the
    limits of all figures are below their gates, 1 if one is above, and 2 if that is undecided; 0 without a gate.
    """
    settings, chosen = compare_options.settings(), format_by_name(form, out, Form)
    space = table_options.space(data, target)
    frame = columns_left(rows or data, target)
    first = model_options.load(old)
    found: Comparison | Drift
    expected = expected_rows(_PER_COHORT_ROW, 2 * settings.n) if old == new else expected_rows(None, settings.n)
    with QueryProgress("Comparing", expected, announce=True) as progress:
        if old == new:
            if rows is None:
                raise ParameterError("OLD and NEW are the same, so that rows are compared. Type: --rows april.csv")
            explainer = output_options.explainer(progress.wrap_model(first), space)
            found = compare_cohorts(explainer, columns_left(data, target), frame, settings)
        else:
            models = progress.wrap_model(first), progress.wrap_model(model_options.load(new))
            choices = output_options.choices(first)
            found = compare_models(*models, space, frame, settings, choices)
    write_results([(0, _shown(found, chosen))], out)
    if out is not None and isinstance(found, Comparison):
        for says in gate_sentences(found):
            print_message(says)
    return _CODES[found.outcome] if isinstance(found, Comparison) else Code.OK


def _shown(found: Comparison | Drift, form: Form) -> str:
    if form is Form.json:
        return found.to_json()
    if form is Form.html:
        return found.to_html()
    if form is Form.junit:
        if isinstance(found, Drift):
            raise ParameterError("--format is junit, which is for gates, and rows have none. Type: --format json")
        return found.to_junit()
    return printable_lines(found)
