"""``anchorline compare``."""

from typing import Any

from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import print_message, printable_lines
from anchorline.cli.formats import choose_format, write_results
from anchorline.cli.inputs import choices_of, columns_left, explainer_of, load, space_of_table
from anchorline.cli.options import Given, argument, command, option
from anchorline.cli.progress import QueryProgress, expected_rows
from anchorline.compare.cohorts import compare_cohorts
from anchorline.compare.models import CompareSettings, compare_models
from anchorline.errors import ParameterError
from anchorline.render.comparisons import gate_sentences
from anchorline.result.comparison import Comparison, Drift, Outcome

_FORMATS = ("text", "json", "html", "junit")
_USUAL = CompareSettings()
_PER_COHORT_ROW = 257  # queries: the row and its copies
_CODES = {Outcome.PASSED: Code.OK, Outcome.FAILED: Code.DOES_NOT_HOLD, Outcome.UNDECIDED: Code.USAGE}
COMPARE = {
    "n": option(int, "Rows that are explained.", None, "-n", default=_USUAL.n),
    "by": option(list[str], "Compare decisions by the values of a column, too. Repeatable.", "COLUMN"),
    "within": option(float, "How much a number may differ. [default: 10% of the spread of outputs]", "AMOUNT"),
    "rules": option(int, "Rows whose old rules are tried on the new model, at most 50.", default=_USUAL.rules),
    "max_decisions": option(float, "Gate: the largest share of rows that may be decided differently.", "SHARE"),
    "max_reasons": option(float, "Gate: the largest share of old explanations that may be refuted.", "SHARE"),
    "protect": option(
        list[str], "Gate: columns whose effect may not rise by 5% of the spread. Repeatable.", "A,B"
    ),
    **opt.SIGMA,
    **opt.SEED,
    **opt.CONFIDENCE,
}


@command(
    "Compare two models, or this month's rows with last month's.",
    {"old": argument("OLD", opt.MODEL_IS), "new": argument("NEW", "The other model, likewise.")}
    | opt.DATA
    | {"rows": option(str, "A table from which rows are taken, instead of --data.", "FILE")}
    | opt.TARGET
    | COMPARE
    | opt.OUTPUT
    | opt.TABLE
    | opt.format_of(*_FORMATS)
    | opt.OUT
    | opt.LOADING,
    """\
anchorline compare old.skops new.skops --data train.parquet
anchorline compare old.skops new.skops --data train.csv --target approved --max-decisions 0.02 --protect sex,age
anchorline compare old.skops new.skops --data train.csv --by sex --out compare.html
anchorline compare model.skops model.skops --data march.csv --rows april.csv --output declined""",
)
def compare(given: Given) -> Code:
    """Compare the decisions and the reasons of two models on the same altered copies of the same rows.

    If OLD and NEW are the same, the rows of --data are compared with those of --rows. The exit code is 0 if the
    limits of all figures are below their gates, 1 if one is above, and 2 if that is undecided; 0 without a gate.
    """
    own: dict[str, Any] = given.of(COMPARE)
    protect = tuple(name for text in own.pop("protect") or () for name in text.split(","))
    settings = CompareSettings(groups=tuple(own.pop("by") or ()), protect=protect, **own)
    form, is_drift = choose_format(given, _FORMATS), given.old == given.new
    space, frame = space_of_table(given), columns_left(given.rows or given.data, given.target)
    first = load(given, given.old)
    found: Comparison | Drift
    expected = expected_rows(_PER_COHORT_ROW, 2 * settings.n) if is_drift else expected_rows(None, settings.n)
    with QueryProgress("Comparing", expected, announce=True) as progress:
        if is_drift:
            if given.rows is None:
                raise ParameterError("OLD and NEW are the same, so that rows are compared. Type: --rows april.csv")
            if form == "junit":
                raise ParameterError(
                    "--format is junit, which is for gates, and rows have none. Type: --format json"
                )
            explainer = explainer_of(given, progress.wrap_model(first), space)
            found = compare_cohorts(explainer, columns_left(given.data, given.target), frame, settings)
        else:
            models = progress.wrap_model(first), progress.wrap_model(load(given, given.new))
            found = compare_models(*models, space, frame, settings, choices_of(given, first))
    shown = {"json": "to_json", "html": "to_html", "junit": "to_junit", "text": "__str__"}[form]
    content = getattr(found, shown)()
    write_results([(0, printable_lines(content) if form == "text" else content)], given.out)
    if isinstance(found, Drift):
        return Code.OK
    for says in gate_sentences(found) if given.out is not None else ():
        print_message(says)
    return _CODES[found.outcome]
