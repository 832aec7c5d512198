"""``anchorline verify``."""

from anchorline.changes.result import Changes
from anchorline.cli import options as opt
from anchorline.cli.codes import Code
from anchorline.cli.console import one_line, print_result
from anchorline.cli.inputs import image_space, load, read_image, space_of_table, text_space
from anchorline.cli.options import Given, argument, command, switch
from anchorline.cli.progress import QueryProgress
from anchorline.errors import FormatError, ParameterError, TamperedError
from anchorline.io import read_explanation
from anchorline.result.reasons import Reasons
from anchorline.result.verification import Outcome
from anchorline.verify import verify as check
from anchorline.verify.check import read_result

_CODES = {  # the worst outcome comes first
    Outcome.DOES_NOT_HOLD: Code.DOES_NOT_HOLD,
    Outcome.CANNOT_TELL: Code.CANNOT_TELL,
    Outcome.HOLDS: Code.OK,
}
_THREE_LINES = """\
Checked: the {subject} in the file, against this model and this data; nothing in it was trusted.
Result: {message}
Cannot be known: whether this model is the one in use, whether it answers its users as it answers a verifier, and \
whether the data and the names in them are true."""
_FRESH_QUERIES = 10_000  # 5,000 to 160,000, and most often few
_INSTANCE = "verify(explanation, model, space, instance=image)"


@command(
    "Check an explanation, a rule, changes or reasons that somebody else made.",
    {
        "explanation": argument(
            "EXPLANATION",
            "A JSON file with one explanation, rule, list of changes or of reasons, or with one per line.",
        )
    }
    | opt.MODEL
    | opt.OPTIONAL_DATA
    | opt.TARGET
    | {"three_lines": switch("Print what was checked, what holds, and what cannot be known.")}
    | opt.TABLE
    | opt.CONTENT
    | opt.LOADING,
    """\
anchorline explain model.skops --data train.csv --target approved --row 17 --out why.json
anchorline verify why.json model.skops --data train.csv --target approved && echo it holds""",
)
def verify(given: Given) -> Code:
    """Check an explanation or a rule: compute every number again from model and data, and measure fresh copies.

    Options that describe the data must be the same as when the explanation was made. If the file has one
    record per line, all of them are checked, and the exit code is that of the worst outcome. A text needs no
    data, and an image needs --image.
    """
    texts = _by_line(read_explanation(given.explanation))
    kind, n_queries = _kind_and_queries(texts)
    if kind in ("text", "image"):
        space = text_space(given) if kind == "text" else image_space(given)
    elif given.data is None:
        raise ParameterError("An explanation of a table needs its table. Type --data train.csv.")
    else:
        space = space_of_table(given)
    instance = read_image(given.image[0]) if given.image else None
    loaded = load(given, given.model)
    outcomes = []
    with QueryProgress("Verifying", n_queries) as progress:
        for line, text in texts.items():
            verification = check(text, progress.wrap_model(loaded), space, instance=instance)
            outcomes.append(verification.outcome)
            message = one_line(str(verification)).replace(_INSTANCE, "--image FILE")
            message = f"Line {line}. {message}" if len(texts) > 1 else message
            checked = _THREE_LINES.format(subject=verification.subject, message=message)
            print_result(checked if given.three_lines else message)
    return next(code for outcome, code in _CODES.items() if outcome in outcomes)


def _by_line(text: str) -> dict[int, str]:
    """Return the records of a file by line number: one in any layout, or one per line."""
    lines = {i: line.strip() for i, line in enumerate(text.split("\n"), start=1) if line.strip()}
    one_per_line = len(lines) > 1 and all(line.startswith("{") and line.endswith("}") for line in lines.values())
    return lines if one_per_line else {1: text}


def _kind_and_queries(texts: dict[int, str]) -> tuple[str, float | None]:
    """Return the kind of the first record's space, and about how many rows are sent to the model.

    The number is None if a record was changed, which the verification reports.
    """
    kind, total = "table", 0.0
    for line, text in texts.items():
        try:
            record = read_result(text)
        except TamperedError:
            return kind, None
        except FormatError as error:
            raise FormatError(f"Line {line}: {error}") if len(texts) > 1 else error from None
        kind = str(record.space["kind"]) if line == min(texts) else kind
        if isinstance(record, Changes | Reasons):
            total += 2.0 * record.n_queries
        else:
            total += record.queries.total + _FRESH_QUERIES
    return kind, total
