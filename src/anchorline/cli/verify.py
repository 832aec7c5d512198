"""``anchorline verify``."""

from collections.abc import Mapping
from typing import Annotated

import typer

from anchorline.changes.result import Changes
from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import one_line, print_result
from anchorline.cli.contents import ContentOptions, read_image
from anchorline.cli.inputs import ModelOptions, TableOptions
from anchorline.cli.progress import QueryProgress
from anchorline.errors import FormatError, ParameterError, TamperedError
from anchorline.io import read_explanation
from anchorline.result.reasons import Reasons
from anchorline.result.verification import Outcome, Verification
from anchorline.verify import verify as check
from anchorline.verify.check import read_result

_CODES = {  # the worst outcome comes first
    Outcome.DOES_NOT_HOLD: Code.DOES_NOT_HOLD,
    Outcome.CANNOT_TELL: Code.CANNOT_TELL,
    Outcome.HOLDS: Code.OK,
}

_NOT_KNOWN = (
    "whether this model is the one in use, whether it answers its users as it answers a verifier, and whether the "
    "data and the names in them are true"
)
_FRESH_QUERIES = 10_000  # 5,000 to 160,000, and most often few

_INSTANCE = "verify(explanation, model, space, instance=image)"
SUMMARY = "Check an explanation, a rule, changes or reasons that somebody else made."
EXAMPLES = """\
anchorline explain model.skops --data train.csv --target approved --row 17 --out why.json
anchorline verify why.json model.skops --data train.csv --target approved && echo it holds"""


def verify(
    *,
    explanation: Annotated[
        str,
        typer.Argument(
            metavar="EXPLANATION",
            help="A JSON file with one explanation, rule, list of changes or of reasons, or with one per line.",
            show_default=False,
        ),
    ],
    model: opt.Model,
    data: opt.OptionalData = None,
    target: opt.Target = None,
    three_lines: Annotated[
        bool, typer.Option("--three-lines", help="Print what was checked, what holds, and what cannot be known.")
    ] = False,
    table_options: TableOptions,
    content_options: ContentOptions,
    model_options: ModelOptions,
) -> Code:
    """Check an explanation or a rule: compute every number again from model and data, and measure fresh copies.

    Options that describe the data must be the same as when the explanation was made. If the file has one
    record per line, all of them are checked, and the exit code is that of the worst outcome. A text needs no
    data, and an image needs --image.
    """
    texts = _split_explanations(read_explanation(explanation))
    n_queries = _estimate_queries(texts)
    space = content_options.space_of(next(iter(texts.values())))
    if space is None:
        if data is None:
            raise ParameterError("An explanation of a table needs its table. Type --data train.csv.")
        space = table_options.space(data, target)
    image = content_options.image
    instance = read_image(image[0]) if image else None
    loaded = model_options.load(model)
    outcomes = []
    with QueryProgress("Verifying", n_queries) as progress:
        for line, text in texts.items():
            verification = check(text, progress.wrap_model(loaded), space, instance=instance)
            outcomes.append(verification.outcome)
            message = one_line(str(verification)).replace(_INSTANCE, "--image FILE")
            message = f"Line {line}. {message}" if len(texts) > 1 else message
            print_result(_in_three_lines(verification, message) if three_lines else message)
    return next(code for outcome, code in _CODES.items() if outcome in outcomes)


def _in_three_lines(verification: Verification, message: str) -> str:
    """Return what was checked, what holds, and what no verifier can know."""
    checked = (
        f"the {verification.subject} in the file, against this model and this data; nothing in it was trusted"
    )
    return f"Checked: {checked}.\nResult: {message}\nCannot be known: {_NOT_KNOWN}."


def _estimate_queries(texts: Mapping[int, str]) -> float | None:
    """Return about how many rows are sent to the model, or None if a text was changed, which `check` reports."""
    total = 0.0
    for line, text in texts.items():
        try:
            total += _queries_of(text)
        except TamperedError:
            return None
        except FormatError as error:
            raise FormatError(f"Line {line}: {error}") if len(texts) > 1 else error from None
    return total


def _queries_of(text: str) -> float:
    """Return about how many rows it takes to check one record."""
    record = read_result(text)
    if isinstance(record, Changes | Reasons):
        return 2.0 * record.n_queries
    return record.queries.total + _FRESH_QUERIES


def _split_explanations(text: str) -> dict[int, str]:
    """Return the explanations of a file by line number: one in any layout, or one per line."""
    lines = {i: line.strip() for i, line in enumerate(text.split("\n"), start=1) if line.strip()}
    one_per_line = len(lines) > 1 and all(line.startswith("{") and line.endswith("}") for line in lines.values())
    return lines if one_per_line else {1: text}
