"""``anchorline explain``."""

from typing import Annotated

import typer

from anchorline.cli import options as opt
from anchorline.cli.contents import ContentOptions
from anchorline.cli.formats import Format, choose_format, render, write_results
from anchorline.cli.inputs import (
    CacheOptions,
    ModelOptions,
    OutputOptions,
    TableOptions,
    instances_to_explain,
    keywords_of,
    require_rows,
)
from anchorline.cli.progress import QueryProgress, expected_rows
from anchorline.errors import ParameterError

SUMMARY = "Explain why the model gives this row its prediction."
EXAMPLES = """\
anchorline explain model.skops --data train.csv --target approved --row 17
anchorline explain model.onnx --data train.parquet --row 3 --row 8 --format json > why.jsonl
anchorline explain booster.txt --data train.csv --rows new.csv --out 'why-{row}.html'
anchorline explain mypackage.scoring:score --data train.csv --row 0 -k 3 --output-range 300 850
anchorline explain mypackage.reviews:classify --text "Great food, but slow."
anchorline explain mypackage.photos:classify --image cat.png --segments grid --out why.html
anchorline explain http://localhost:8080/v2/models/credit/infer --data train.csv --row 0 --budget 300"""


def explain(
    *,
    model: opt.Model,
    data: opt.OptionalData = None,
    row: opt.Rows = None,
    rows: opt.RowsFile = None,
    target: opt.Target = None,
    k: opt.K = 5,
    sigma: opt.Sigma = 1.0,
    samples: opt.Samples = None,
    objective: opt.ObjectiveOption = opt.Objective.fidelity,
    sampling: opt.SamplingOption = opt.Sampling.auto,
    pairs: opt.PairsOption = None,
    alternatives: Annotated[
        int, typer.Option("--alternatives", help="Number of equally good sums to list as well.")
    ] = 0,
    output_options: OutputOptions,
    table_options: TableOptions,
    content_options: ContentOptions,
    budget: opt.Budget = None,
    max_queries: opt.MaxQueries = None,
    seed: opt.Seed = 0,
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
    if content_options.is_given:
        content_options.check_without_table(data=data, row=row, rows=rows, target=target)
        space, instances = content_options.space(), content_options.instances()
    else:
        _check_row(data, row, rows)
        space = table_options.space(str(data), target)
        instances = instances_to_explain(row or (), rows, space)
    chosen_format = choose_format(form, out, len(instances))
    keywords = keywords_of(
        sigma=sigma,
        samples=samples,
        objective=objective.value,
        sampling=sampling.value,
        max_queries=max_queries,
        seed=seed,
        pairs=pairs,
        budget=budget,
    )
    keywords |= {"alternatives": alternatives}
    loaded = model_options.load(model)
    cache = cache_options.open(model, loaded)
    several, contents = len(instances) > 1, []
    expected = expected_rows(keywords, len(instances))
    with QueryProgress("Explaining", expected, announce=budget is not None) as progress:
        explainer = output_options.explainer(progress.wrap_model(loaded), space, cache)
        for n_done, (number, instance) in enumerate(instances, start=1):
            progress.describe(f"Explaining row {number}")
            explanation = explainer.explain(instance, k=k, **keywords)
            progress.set_expected(progress.n_rows / n_done * len(instances))
            content = render(explanation, chosen_format, to_terminal=out is None)
            if several and chosen_format is Format.text:
                content = f"Row {number}\n{content!s}\n"
            contents.append((number, content))
    write_results(contents, out)


def _check_row(data: str | None, row: list[int] | None, rows: str | None) -> None:
    """Raise `ParameterError` unless a table is given, and exactly one of --row and --rows."""
    if data is None:
        raise ParameterError(
            "Neither --data nor a text or image is given. Type --data train.csv --row 0, --text 'Great food', "
            "--text-file review.txt, or --image photo.png."
        )
    require_rows(row, rows)
