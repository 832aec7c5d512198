"""What the process's exit code says."""

import enum

from anchorline import errors


class Code(enum.IntEnum):
    """Exit codes; `HELP` tells them to people."""

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
  0  done                              5    the result cannot be written
  1  the explanation does not hold     6    no answer: verify cannot tell, no explanation is found,
  2  wrong usage                            or part of a benchmark failed
  3  data, model, row or explanation   7    a package is missing
     cannot be used                    70   a bug
  4  the model failed, or cannot be    130  Ctrl-C; 143 terminated
     reached                           141  nobody reads the output any more"""

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
    """The exit code of an error; of one that is not ours, a bug's."""
    return next((code for kind, code in _BY_ERROR if isinstance(error, kind)), Code.BUG)


def root_of(error: BaseException) -> BaseException:
    """The error to tell: one of ours that a model raised is clearer than the one it was wrapped in."""
    while isinstance(error, errors.PredictorError) and isinstance(error.__cause__, errors.AnchorlineError):
        error = error.__cause__
    return error
