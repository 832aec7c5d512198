"""``anchorline explain``."""

from typing import Annotated

import typer

from anchorline.cli import options as opt
from anchorline.cli.formats import Format, chosen_format, deliver, rendered
from anchorline.cli.inputs import Intervals, Loading, Question, instances, keywords_of
from anchorline.cli.progress import Meter, expected_rows
from anchorline.errors import ParameterError

SUMMARY = "Why is the answer to this row what it is?"
EXAMPLES = """\
anchorline explain model.skops --data train.csv --target approved --row 17
anchorline explain model.onnx --data train.parquet --row 3 --row 8 --format json > why.jsonl
anchorline explain booster.txt --data train.csv --rows new.csv --out 'why-{row}.html'
anchorline explain mypackage.scoring:score --data train.csv --row 0 -k 3 --output-range 300 850
anchorline explain http://localhost:8080/v2/models/credit/infer --data train.csv --row 0"""


def explain(
    *,
    model: opt.Model,
    data: opt.Data,
    row: opt.Rows = None,
    rows: opt.RowsFile = None,
    target: opt.Target = None,
    k: opt.K = 5,
    sigma: opt.Sigma = 1.0,
    samples: opt.Samples = None,
    objective: opt.ObjectiveOption = opt.Objective.fidelity,
    alternatives: Annotated[int, typer.Option("--alternatives", help="List so many other sums as good.")] = 0,
    question: Question,
    intervals: Intervals,
    max_queries: opt.MaxQueries = None,
    seed: opt.Seed = 0,
    form: Annotated[
        Format | None, typer.Option("--format", help="What to make. [default: by --out, else text]")
    ] = None,
    out: opt.Out = None,
    loading: Loading,
) -> None:
    """Explain predictions: why the model's answer to a row is what it is.

    Several rows as JSON are one explanation a line; as pages or pictures, name a file for each by {row}.
    """
    if bool(row) == bool(rows):
        raise ParameterError("Say which rows: --row 0 (repeatable), or --rows FILE.")
    space = intervals.space(data, target)
    asked = instances(row or (), rows, space)
    chosen = chosen_format(form, out, len(asked))
    keywords = keywords_of(
        sigma=sigma, samples=samples, objective=objective.value, max_queries=max_queries, seed=seed
    )
    keywords |= {"alternatives": alternatives}
    loaded = loading.load(model)
    several, parts = len(asked) > 1, []
    with Meter("Explaining", expected_rows(keywords, len(asked))) as meter:
        explainer = question.explainer(meter.counted(loaded), space)
        for done, (number, instance) in enumerate(asked, start=1):
            meter.describe(f"Explaining row {number}")
            explanation = explainer.explain(instance, k=k, **keywords)
            meter.expect(meter.n_rows / done * len(asked))
            content = rendered(explanation, chosen, to_terminal=out is None)
            if several and chosen is Format.text:
                content = f"Row {number}\n{content!s}\n"
            parts.append((number, content))
    deliver(parts, out)
