"""``anchorline rule``."""

from dataclasses import dataclass
from typing import Annotated, Any

from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import printable_lines
from anchorline.cli.contents import ContentOptions, space_and_instances
from anchorline.cli.formats import Format, choose_format, png_bytes, write_results
from anchorline.cli.inputs import (
    CacheOptions,
    ModelOptions,
    OutputOptions,
    SearchOptions,
    TableOptions,
)
from anchorline.cli.options import option
from anchorline.cli.progress import QueryProgress, expected_rows
from anchorline.errors import ParameterError
from anchorline.result.rule import Rule
from anchorline.settings import RuleSettings

_USUAL = RuleSettings()
SUMMARY = "Find the few facts while which the decision stays."
EXAMPLES = """\
anchorline rule model.skops --data train.csv --target approved --row 17
anchorline rule model.skops --data train.csv --target approved --row 17 --holds 0.99 -k 6
anchorline rule model.skops --data train.csv --target approved --row 17 --holds none -k 2
anchorline rule price.txt --data train.csv --row 3 --within 25 --out rule.html
anchorline rule model.onnx --data train.parquet --rows new.csv --format json > rules.jsonl
anchorline rule mypackage.reviews:classify --text "Great food, but slow.\""""


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
    model_options: ModelOptions,
    cache_options: CacheOptions,
) -> Code:
    """Find the fewest facts, each as wide as possible, while which the decision stays.

    A row of --data is chosen by --row or --rows. A text (--text, --text-file) or an image (--image) needs no data.
    With several rows, JSON output has one rule per line. Pages and pictures need one file per row: put {row} into
    the name in --out. If the facts of a rule do not hold as often as asked, the exit code is 6.
    """
    space, instances = space_and_instances(content_options, table_options, data, row, rows, target)
    chosen_format = choose_format(form, out, len(instances))
    keywords, number = rule_options.keywords(), rule_options.n_queries
    loaded = model_options.load(model)
    cache = cache_options.open(model, loaded)
    found = list[tuple[int, Rule]]()
    expected = expected_rows(number, len(instances))
    with QueryProgress("Searching", expected, announce=number is not None) as progress:
        explainer = output_options.explainer(progress.wrap_model(loaded), space, cache)
        for n_done, (place, instance) in enumerate(instances, start=1):
            progress.describe(f"Searching for row {place}")
            found.append((place, explainer.rule(instance, **keywords)))
            progress.set_expected(progress.n_rows / n_done * len(instances))
    shown = [(place, _shown(each, chosen_format, details)) for place, each in found]
    if len(shown) > 1 and chosen_format is Format.text:
        shown = [(place, f"Row {place}\n{text!s}\n") for place, text in shown]
    write_results(shown, out)
    return Code.OK if all(each.is_reached for _, each in found) else Code.CANNOT_TELL


def _shown(rule: Rule, form: Format, details: bool) -> str | bytes:
    if form is Format.json:
        return rule.to_json()
    if form is Format.html:
        return rule.to_html()
    if form is Format.png:
        return png_bytes(rule.plot())
    return printable_lines(rule.details() if details else rule)
