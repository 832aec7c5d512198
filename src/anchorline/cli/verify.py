"""``anchorline verify``."""

from typing import Annotated

import typer

from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import one_line, say
from anchorline.cli.inputs import Intervals, Loading
from anchorline.cli.progress import Meter
from anchorline.errors import TamperedError
from anchorline.explanation import Explanation
from anchorline.io import read_explanation
from anchorline.verify import Outcome
from anchorline.verify import verify as check

_CODES = {  # the worst first
    Outcome.DOES_NOT_HOLD: Code.DOES_NOT_HOLD,
    Outcome.CANNOT_TELL: Code.CANNOT_TELL,
    Outcome.HOLDS: Code.OK,
}

SUMMARY = "Check somebody's explanation."
EXAMPLES = """\
anchorline explain model.skops --data train.csv --target approved --row 17 --out why.json
anchorline verify why.json model.skops --data train.csv --target approved && echo it holds"""


def verify(
    *,
    explanation: Annotated[
        str, typer.Argument(metavar="EXPLANATION", help="The JSON file, or lines of JSON.", show_default=False)
    ],
    model: opt.Model,
    data: opt.Data,
    target: opt.Target = None,
    intervals: Intervals,
    loading: Loading,
) -> Code:
    """Check somebody's explanation with the model and the data: find every figure again.

    The options that describe the data must be those it was made with. Of several explanations, one a line,
    each is checked, and the exit code is that of the worst.
    """
    texts = _explanations(read_explanation(explanation))
    try:
        n_queries: float | None = sum(4.0 * Explanation.from_json(text).certificate.n_queries for text in texts)
    except TamperedError:
        n_queries = None  # `check` says so
    space = intervals.space(data, target)
    loaded = loading.load(model)
    outcomes = []
    with Meter("Verifying", n_queries) as meter:
        for line, text in enumerate(texts, start=1):
            found = check(text, meter.counted(loaded), space)
            outcomes.append(found.outcome)
            say(f"Line {line}. {one_line(str(found))}" if len(texts) > 1 else one_line(str(found)))
    return next(code for outcome, code in _CODES.items() if outcome in outcomes)


def _explanations(text: str) -> list[str]:
    """The explanations of a file: one, however it is laid out, or one a line as several rows are written."""
    lines = [line for line in text.split("\n") if line.strip()]
    several = len(lines) > 1 and all(line.startswith("{") and line.rstrip().endswith("}") for line in lines)
    return lines if several else [text]
