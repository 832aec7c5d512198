"""The exit codes of the process, and which error leads to which code."""

import enum

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

_BY_ERROR: tuple[tuple[type[Exception], Code], ...] = (
    (errors.MissingDependencyError, Code.MISSING),
    (errors.OutputFileError, Code.OUTPUT),
    (errors.ModelFileError, Code.INPUT),
    (errors.UntrustedError, Code.INPUT),
    (errors.ModelInputError, Code.INPUT),
    (errors.TableFileError, Code.INPUT),
    (errors.FormatError, Code.INPUT),
    (errors.JournalError, Code.INPUT),
    (errors.InstanceError, Code.INPUT),
    (errors.PredictorError, Code.MODEL),
    (errors.RowError, Code.MODEL),
    (errors.WorkerError, Code.MODEL),
    (errors.PredictorOutputError, Code.MODEL),
    (errors.BudgetError, Code.USAGE),
    (errors.ParameterError, Code.USAGE),
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
