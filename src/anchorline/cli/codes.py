"""What an error becomes: an exit code, and a message in the words of the command line."""

import enum
import re
from typing import Any

from anchorline import errors


class Code(enum.IntEnum):
    """Exit codes; `HELP` explains them to users."""

    OK = 0
    DOES_NOT_HOLD = 1
    USAGE = 2
    INPUT = 3
    MODEL = 4
    OUTPUT = 5
    CANNOT_TELL = 6
    MISSING = 7
    BUG = 70
    INTERRUPTED = 130
    BROKEN_PIPE = 141
    TERMINATED = 143


HELP = """\
\b
Exit codes:
  0  success                           6    no answer: verify cannot decide, no explanation, rule or change
  1  the explanation does not hold          was found, or part of a benchmark failed
  2  wrong usage                       7    a required package is missing
  3  the data, model, row or           70   a bug in anchorline
     explanation cannot be used        130  interrupted by Ctrl-C
  4  the model failed or cannot be     141  the reader of the output closed it
     reached                           143  terminated
  5  the result cannot be written"""

_BY_ERROR: tuple[tuple[Any, Code], ...] = (
    (errors.MissingDependencyError, Code.MISSING),
    (errors.OutputFileError, Code.OUTPUT),
    ((errors.ModelFileError, errors.UntrustedError, errors.ModelInputError), Code.INPUT),
    ((errors.TableFileError, errors.FormatError, errors.JournalError, errors.InstanceError), Code.INPUT),
    ((errors.PredictorError, errors.RowError, errors.WorkerError, errors.PredictorOutputError), Code.MODEL),
    ((errors.BudgetError, errors.ParameterError), Code.USAGE),
    (errors.AnchorlineError, Code.CANNOT_TELL),
)


def code_of(error: BaseException) -> Code:
    """Return the exit code of an error; an error that is not an `AnchorlineError` is a bug."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Code.BUG)


def root_cause(error: BaseException) -> BaseException:
    """Return the error to report: an `AnchorlineError` raised by a model is clearer than the error around it."""
    while isinstance(error, errors.PredictorError) and isinstance(error.__cause__, errors.AnchorlineError):
        error = error.__cause__
    return error


# Python keywords that appear in error messages, and the options of the command line that set them.
_SAME_NAMES = """
    sigma queries seed alternatives confidence threshold holds within codes adverse prohibited output task
    neighbors fixed categorical reference parallel direction cost examples time_limit output_range output_scale
    batch_rows row_timeout"""
_OPTION_OF_KEYWORD = {
    **{name: f"--{name.replace('_', '-')}" for name in _SAME_NAMES.split()},
    **{"k": "-k", "n": "-n", "cuts": "--cut", "groups": "--group", "classes": "--class", "column": "--output"},
    **{"allowed": "--allow", "n_jobs": "--jobs", "requests_per_second": "--rate", "max_retries": "--retries"},
}
_NAMES = "|".join(_OPTION_OF_KEYWORD)
_VALUE = r"\{'([^']+)': \[([^]]+)\]\}|\['([^']+)'\]|\((\S+), (\S+)\)|'([^']*)'|-?[\w.]*\w|(?=[, ])"
_KEYWORD = rf"(?:^|(?<=\. ))({_NAMES})(?:\['([^']+)'\])? (?=is |has )|(?<![\w.'(])({_NAMES})=({_VALUE})"
_EXPLAINER = r"Explainer\(model, table, ([^()]*)\)"
_CODES = r"\bcodes=\{'([^']+)': (?:\{'([^']+)': )?\('([^']+)', '([^']+)'\)\}+"


def with_option_names(text: str) -> str:
    """Return an error message in which options of the command line replace Python keywords.

    >>> with_option_names("queries is 1, but it must be at least 32. Type queries=300, or queries='auto'.")
    '--queries is 1, but it must be at least 32. Type --queries 300, or --queries auto.'
    >>> with_option_names("n is 0, but it must be a whole number >= 1. Type n=4.")
    '-n is 0, but it must be a whole number >= 1. Type -n 4.'
    >>> with_option_names("Type output_range=(0, 1), or cuts={'age': [30, 40]}, or fixed=['age'].")
    'Type --output-range 0 1, or --cut age=30,40, or --fixed age.'
    >>> with_option_names("cuts['age'] is ['a']; it must list numbers.")
    "--cut age is ['a']; it must list numbers."
    >>> with_option_names("Type Explainer(model, table, output='yes', threshold=0.5).")
    'Type --output yes --threshold 0.5.'
    >>> with_option_names("Add them, such as codes={'age': {'low': ('R01', 'Text')}}.")
    'Add them, such as the line age,low,R01,Text in --codes.'
    """

    def replacement(match: re.Match[str]) -> str:
        subject, column, name, value, key, values, only, low, high, word = match.groups()
        if subject:
            return f"{_OPTION_OF_KEYWORD[subject]} {column + ' ' if column else ''}"
        if key:
            value = f"{key}={values.replace(', ', ',')}".replace("'", "")
        elif low:
            value = f"{low} {high}"
        return f"{_OPTION_OF_KEYWORD[name]} {only or word or value}".rstrip()

    text = re.sub(_EXPLAINER, lambda match: match[1].replace(", ", " "), text)
    text = re.sub(_CODES, r"the line \1,\2,\3,\4 in --codes", text)
    return re.sub(_KEYWORD, replacement, text)


def successor_of(option: str) -> str | None:
    """Return one sentence that names what replaces an option of 0.1; None if the option never existed.

    >>> successor_of("--budget"), successor_of("--frobnicate")
    ('There is no option --budget: --queries is that number.', None)
    """
    from anchorline.changes.settings import SUCCESSORS as OF_CHANGES  # noqa: PLC0415  heavy
    from anchorline.explainer import _GONE as OF_EXPLAINERS  # noqa: PLC0415  heavy
    from anchorline.settings import SUCCESSORS  # noqa: PLC0415  heavy
    from anchorline.spaces.table import _GONE as OF_TABLES  # noqa: PLC0415  heavy

    name = option.removeprefix("--").replace("-", "_")
    keyword = {"samples": "n_samples", "bins": "n_bins"}.get(name, name)
    others = {"max_samples": "--max-queries counts all answers of the model per request"}
    why = (OF_EXPLAINERS | OF_CHANGES | SUCCESSORS | OF_TABLES | others).get(keyword)
    return why and with_option_names(f"There is no option {option}: {why.removesuffix('.')}.")
