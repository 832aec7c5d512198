"""``anchorline verify``."""

from collections.abc import Mapping
from typing import Annotated

import typer

from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import one_line, say
from anchorline.cli.inputs import Intervals, Loading
from anchorline.cli.progress import Meter
from anchorline.errors import FormatError, TamperedError
from anchorline.io import read_explanation
from anchorline.result.explanation import Explanation
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
    n_queries = _n_queries(texts)
    space = intervals.space(data, target)
    loaded = loading.load(model)
    outcomes = []
    with Meter("Verifying", n_queries) as meter:
        for line, text in texts.items():
            found = check(text, meter.counted(loaded), space)
            outcomes.append(found.outcome)
            say(f"Line {line}. {one_line(str(found))}" if len(texts) > 1 else one_line(str(found)))
    return next(code for outcome, code in _CODES.items() if outcome in outcomes)


def _n_queries(texts: Mapping[int, str]) -> float | None:
    """About how many queries it takes; None where `check` will say that something was changed."""
    total = 0.0
    for line, text in texts.items():
        try:
            total += 4.0 * Explanation.from_json(text).certificate.n_queries
        except TamperedError:
            return None
        except FormatError as error:
            raise FormatError(f"Line {line}: {error}") if len(texts) > 1 else error from None
    return total


def _explanations(text: str) -> dict[int, str]:
    """The explanations of a file by their lines: one, however it is laid out, or one a line, as rows are."""
    lines = {i: line.strip() for i, line in enumerate(text.split("\n"), start=1) if line.strip()}
    several = len(lines) > 1 and all(line.startswith("{") and line.endswith("}") for line in lines.values())
    return lines if several else {1: text}
