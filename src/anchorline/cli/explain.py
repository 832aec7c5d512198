"""``anchorline explain``."""

from typing import Annotated

from anchorline.cli import options as opt
from anchorline.cli.contents import ContentOptions, space_and_instances
from anchorline.cli.formats import Format, choose_format, render, write_results
from anchorline.cli.inputs import (
    CacheOptions,
    ExplainOptions,
    ModelOptions,
    OutputOptions,
    TableOptions,
)
from anchorline.cli.progress import QueryProgress, expected_rows

SUMMARY = "Explain why the model gives this row its prediction."
EXAMPLES = """\
anchorline explain model.skops --data train.csv --target approved --row 17
anchorline explain model.onnx --data train.parquet --row 3 --row 8 --format json > why.jsonl
anchorline explain booster.txt --data train.csv --rows new.csv --out 'why-{row}.html'
anchorline explain mypackage.scoring:score --data train.csv --row 0 -k 3 --output-range 300 850
anchorline explain mypackage.reviews:classify --text "Great food, but slow."
anchorline explain mypackage.photos:classify --image cat.png --segments grid --out why.html
anchorline explain http://localhost:8080/v2/models/credit/infer --data train.csv --row 0 --queries 300"""


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
    model_options: ModelOptions,
    cache_options: CacheOptions,
) -> None:
    """Explain why the model gives a row, or each of several rows, its prediction.

    A row of --data is chosen by --row or --rows. A text (--text, --text-file) or an image (--image) needs no data.
    With several rows, JSON output has one explanation per line. Pages and pictures need one file per row: put
    {row} into the name in --out.
    """
    space, instances = space_and_instances(content_options, table_options, data, row, rows, target)
    chosen_format = choose_format(form, out, len(instances))
    keywords, number = explain_options.keywords(), explain_options.n_queries
    loaded = model_options.load(model)
    cache = cache_options.open(model, loaded)
    several, contents = len(instances) > 1, []
    expected = expected_rows(number, len(instances))
    with QueryProgress("Explaining", expected, announce=number is not None) as progress:
        explainer = output_options.explainer(progress.wrap_model(loaded), space, cache)
        for n_done, (place, instance) in enumerate(instances, start=1):
            progress.describe(f"Explaining row {place}")
            explanation = explainer.explain(instance, **keywords)
            progress.set_expected(progress.n_rows / n_done * len(instances))
            content = render(explanation, chosen_format, details=details, to_terminal=out is None)
            if several and chosen_format is Format.text:
                content = f"Row {place}\n{content!s}\n"
            contents.append((place, content))
    write_results(contents, out)
