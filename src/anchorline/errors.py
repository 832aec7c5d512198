"""Every error anchorline raises on purpose, in one tree.

::

    AnchorlineError
    |- InstanceError (ValueError)             the instance to explain is not one the space knows
    |- ParameterError (ValueError)            k, sigma, n_samples, ... out of range
    |- SampleError (ValueError)               flips, drops or weights that do not fit together
    |- PredictorError (RuntimeError)          the model raised
    |  `- RemoteModelError (RuntimeError)     a model behind an address failed, or answered what cannot be used
    |     `- RemoteRefusalError (RuntimeError)  it said no, and asking again would not help
    |- PredictorOutputError (ValueError)      the model answered, but not with one finite number a row
    |- BudgetError (RuntimeError)             the work asked for needs more queries than `max_queries`
    |- NotOptimalError (RuntimeError)         a proved optimum was required and none was reached
    |- InfeasibleError (ArithmeticError)      no explanation satisfies box and anchoring
    |- NumericalError (ArithmeticError)       statistics too ill-conditioned to decide
    |- CertificateError (ArithmeticError)     a solver's claims contradict each other
    |- BackendError (RuntimeError)            an outside solver answered something we do not know
    |- MissingDependencyError (ImportError)   an optional package is not installed, or cannot be imported
    |- ModelFileError (ValueError)            a model cannot be loaded: not found, damaged, or of another kind
    |- UntrustedError (ValueError)            loading it would run code, or make types nobody vouched for
    |- ModelInputError (ValueError)           the rows have not the columns or values that the loaded model needs
    |- TableFileError (ValueError)            a file is not a table that can be read
    |- OutputFileError (OSError)              a file could not be written; nothing half-written is left
    |- RowError (RuntimeError)                one row of many has no explanation
    |- WorkerError (RuntimeError)             worker processes died, and not because of one row
    |  `- UnpackableError (RuntimeError)      a model cannot be sent to another process
    |- JournalError (ValueError)              a batch cannot begin or go on with the files that are there
    |- FormatError (ValueError)               a text is not an explanation of a known schema
    `- TamperedError (FormatError)            it was one, and was changed

Messages say what came, what is needed and what to type. All of them pickle.
"""

import sys
from typing import Any


class AnchorlineError(Exception):
    """Base of every error anchorline raises on purpose."""


class InstanceError(AnchorlineError, ValueError):
    """The instance to explain is not one the space knows."""


class ParameterError(AnchorlineError, ValueError):
    """A parameter is out of range."""


class SampleError(AnchorlineError, ValueError):
    """Flips, drops or weights do not fit together."""


class PredictorError(AnchorlineError, RuntimeError):
    """The model raised while it was queried."""


class PredictorOutputError(AnchorlineError, ValueError):
    """The model answered, but not with one finite number a row."""

    @classmethod
    def wrong_shape(cls, shape: tuple[int, ...], n: int) -> "PredictorOutputError":
        """Build the error for an answer of the wrong shape."""
        hint = "Return one number per row."
        if len(shape) == 2 and shape[1] > 1:
            hint = "Pick one column: `lambda X: model.predict_proba(X)[:, 1]`."
        elif len(shape) == 2:
            hint = "Flatten it: `lambda X: model.predict(X).ravel()`."
        return cls(f"The predictor returned shape {shape}; needed ({n},). {hint}")

    @classmethod
    def not_numbers(cls, answer: Any) -> "PredictorOutputError":
        """Build the error for an answer that is an array of something else."""
        return cls(
            f"The predictor returned {answer.dtype} values of shape {answer.shape}, such as {answer.flat[:1]}; "
            "needed numbers. For labels pass task='label'."
        )


class BudgetError(AnchorlineError, RuntimeError):
    """The work asked for needs more model queries than allowed."""


class NotOptimalError(AnchorlineError, RuntimeError):
    """A proved optimum was required and none was reached."""


class InfeasibleError(AnchorlineError, ArithmeticError):
    """No explanation with at most k terms satisfies box and anchoring."""


class NumericalError(AnchorlineError, ArithmeticError):
    """The statistics are too ill-conditioned to decide."""


class CertificateError(AnchorlineError, ArithmeticError):
    """A solver's claims contradict each other."""

    @classmethod
    def crossed(cls, objective: float, lower_bound: float) -> "CertificateError":
        """Build the error for a lower bound above the objective."""
        return cls(
            f"Lower bound {lower_bound!r} exceeds objective {objective!r}. "
            "This is a bug in the solver, not in your data: please report it."
        )


class BackendError(AnchorlineError, RuntimeError):
    """An outside solver failed or answered something unknown."""


class MissingDependencyError(AnchorlineError, ImportError):
    """An optional package is not installed, or cannot be imported."""

    @classmethod
    def for_package(cls, package: str, extra: str) -> "MissingDependencyError":
        """Build the error that names the extra to install; while one is handled that says more, with its words."""
        error = sys.exception()
        broken = isinstance(error, ImportError) and not isinstance(error, ModuleNotFoundError)
        why = f"cannot be imported here ({error})" if broken else "is not installed"
        again = " --upgrade" if broken else ""
        return cls(f"This needs `{package}`, which {why}. Type: pip install{again} 'anchorline[{extra}]'")


class ModelFileError(AnchorlineError, ValueError):
    """A model cannot be loaded: not found, damaged, or of another kind."""


class UntrustedError(AnchorlineError, ValueError):
    """Loading it would run code, or make types nobody vouched for."""


class ModelInputError(AnchorlineError, ValueError):
    """The rows have not the columns or values that the loaded model needs."""


class RemoteModelError(PredictorError):
    """A model behind an address failed, or answered what cannot be used."""


class RemoteRefusalError(RemoteModelError):
    """A model behind an address said no, and asking again would not help."""


class TableFileError(AnchorlineError, ValueError):
    """A file is not a table that can be read."""


class OutputFileError(AnchorlineError, OSError):
    """A file could not be written; nothing half-written is left."""


class RowError(AnchorlineError, RuntimeError):
    """One row of many has no explanation."""


class WorkerError(AnchorlineError, RuntimeError):
    """Worker processes died, and not because of one row."""


class UnpackableError(WorkerError):
    """A model cannot be sent to another process."""


class JournalError(AnchorlineError, ValueError):
    """A batch cannot begin or go on with the files that are there."""


class FormatError(AnchorlineError, ValueError):
    """A text is not an explanation of a known schema."""


class TamperedError(FormatError):
    """A text was an explanation once, and was changed."""
