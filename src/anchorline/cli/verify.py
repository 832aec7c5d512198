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

_CODES = {
    Outcome.HOLDS: Code.OK,
    Outcome.DOES_NOT_HOLD: Code.DOES_NOT_HOLD,
    Outcome.CANNOT_TELL: Code.CANNOT_TELL,
}

SUMMARY = "Check somebody's explanation."
EXAMPLES = """\
anchorline explain model.skops --data train.csv --target approved --row 17 --out why.json
anchorline verify why.json model.skops --data train.csv --target approved && echo it holds"""


def verify(
    *,
    explanation: Annotated[str, typer.Argument(metavar="EXPLANATION", help="The JSON file.", show_default=False)],
    model: opt.Model,
    data: opt.Data,
    target: opt.Target = None,
    intervals: Intervals,
    loading: Loading,
) -> Code:
    """Check somebody's explanation with the model and the data: find every figure again.

    The options that describe the data must be those it was made with.
    """
    text = read_explanation(explanation)
    try:
        n_queries: float | None = 4.0 * Explanation.from_json(text).certificate.n_queries
    except TamperedError:
        n_queries = None  # `check` says so
    space = intervals.space(data, target)
    loaded = loading.load(model)
    with Meter("Verifying", n_queries) as meter:
        found = check(text, meter.counted(loaded), space)
    say(one_line(str(found)))
    return _CODES[found.outcome]
