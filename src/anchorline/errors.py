"""Every error that anchorline raises on purpose, in one tree.

Messages say what was received, what is needed and what to type. All errors can be pickled.

`SetupWarning` (UserWarning) is the only warning: a model and its table do not seem to belong together.
"""

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

_P = ParamSpec("_P")
_R = TypeVar("_R")


def unknown_keyword(call: str, name: str, known: Iterable[str]) -> TypeError:
    """Build the error for a keyword that a call does not have; it names a similar one, whatever its case."""
    by_lower_case = {other.lower(): other for other in known}
    near = difflib.get_close_matches(name.lower(), by_lower_case, 1)
    every = ", ".join(sorted(by_lower_case.values()))
    hint = f"Did you mean {by_lower_case[near[0]]!r}?" if near else f"The keywords are {every}."
    return TypeError(f"{call}() got an unexpected keyword {name!r}. {hint}")


def names_similar_keywords(
    call: str, gone: Mapping[str, str] | None = None, lacking: str = ""
) -> Callable[[Callable[_P, _R]], Callable[_P, _R]]:
    """Decorate a function so that an unknown keyword raises `unknown_keyword`; ``call`` is what people type.

    ``gone`` maps keywords of earlier releases to what replaces them, as a sentence. ``lacking`` is said if an
    argument without a default is not given.
    """

    def decorate(function: Callable[_P, _R]) -> Callable[_P, _R]:
        parameters = inspect.signature(function).parameters
        known = [name for name in parameters if name != "self"]
        required = [name for name, each in parameters.items() if each.default is each.empty]

        @functools.wraps(function)
        def checked(*arguments: _P.args, **keywords: _P.kwargs) -> _R:
            for name in keywords:
                if name not in known and name in (gone or {}):
                    raise TypeError(f"{call}() no longer has the keyword {name!r}. {(gone or {})[name]}")
                if name not in known:
                    raise unknown_keyword(call, name, known)
            if lacking and any(name not in keywords for name in required[len(arguments) :]):
                raise TypeError(lacking)
            return function(*arguments, **keywords)

        return checked

    return decorate


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Return the first names as a text for a message, and how many there are if there are more."""
    names = list(names)
    shown = ", ".join(map(repr, names[:most]))
    return f"{shown}, ... ({len(names)} in all)" if len(names) > most else shown or "none"


class SetupWarning(UserWarning):
    """A model and its table do not seem to belong together, so that explanations would mislead.

    ``code`` names the kind of finding, and ``columns`` the columns concerned; see docs/tables.md.
    """

    def __init__(self, text: str, code: str = "", columns: tuple[str, ...] = ()) -> None:
        super().__init__(text)
        self.code, self.columns = code, columns


class AnchorlineError(Exception):
    """Base of every error that anchorline raises on purpose."""


class InstanceError(AnchorlineError, ValueError):
    """The instance to explain does not belong to the space."""


class InstanceNeededError(InstanceError):
    """A record identifies its instance but does not contain it, so that the instance itself is needed."""


class ParameterError(AnchorlineError, ValueError):
    """A parameter is out of range."""


class ReasonsError(AnchorlineError, ValueError):
    """No reasons may be stated for a decision."""


class FavorableError(ReasonsError):
    """The decision is favorable, so nothing is adverse."""


class ProhibitedError(ReasonsError):
    """A prohibited attribute would be a principal reason."""


class UnmappedError(ReasonsError):
    """A reason has no code."""


class SampleError(AnchorlineError, ValueError):
    """Cells, flips, drops or weights do not fit together."""


class PredictorError(AnchorlineError, RuntimeError):
    """The model raised an exception while it was queried."""


class PredictorOutputError(AnchorlineError, ValueError):
    """The model did not return one finite number per row."""

    @classmethod
    def wrong_shape(cls, shape: tuple[int, ...], n: int) -> "PredictorOutputError":
        """Build the error for an answer of the wrong shape."""
        hint = "Return one number per row."
        if len(shape) == 2 and shape[1] > 1:
            hint = "Pick one column: `lambda X: model.predict_proba(X)[:, 1]`."
        elif len(shape) == 2:
            hint = "Flatten it: `lambda X: model.predict(X).ravel()`."
        return cls(f"The predictor returned shape {shape}; it must return ({n},). {hint}")

    @classmethod
    def not_numbers(cls, answer: Any) -> "PredictorOutputError":
        """Build the error for an answer whose values are not numbers."""
        return cls(
            f"The predictor returned {answer.dtype} values of shape {answer.shape}, for example "
            f"{answer.flat[:1]}; it must return numbers. If the model returns labels, pass task='label'."
        )


class BudgetError(AnchorlineError, RuntimeError):
    """The request needs more model queries than allowed."""


class CacheError(AnchorlineError, RuntimeError):
    """A file of answers is damaged, cannot be written, or cannot recognize this model."""


class NotOptimalError(AnchorlineError, RuntimeError):
    """A proved optimum was required and was not reached."""


class InfeasibleError(AnchorlineError, ArithmeticError):
    """No explanation with at most k terms satisfies both the box and anchoring."""


class NumericalError(AnchorlineError, ArithmeticError):
    """The statistics are too ill-conditioned to decide."""


class CertificateError(AnchorlineError, ArithmeticError):
    """Figures of a solution or of a result contradict each other."""

    @classmethod
    def crossed(cls, objective: float, lower_bound: float) -> "CertificateError":
        """Build the error for a lower bound above the objective."""
        return cls(
            f"Lower bound {lower_bound!r} exceeds objective {objective!r}. "
            "This is a bug in the solver, not in your data: please report it."
        )


class BackendError(AnchorlineError, RuntimeError):
    """An external solver failed or returned an unknown status."""


class MissingDependencyError(AnchorlineError, ImportError):
    """An optional package is not installed, or cannot be imported."""

    @classmethod
    def for_package(cls, package: str, extra: str) -> "MissingDependencyError":
        """Build the error that names the extra to install.

        If an `ImportError` is being handled that is not a `ModuleNotFoundError`, the package is installed but
        broken; the message then quotes that error.
        """
        error = sys.exception()
        is_broken = isinstance(error, ImportError) and not isinstance(error, ModuleNotFoundError)
        reason = f"cannot be imported here ({error})" if is_broken else "is not installed"
        upgrade = " --upgrade" if is_broken else ""
        return cls(f"This needs `{package}`, which {reason}. Type: pip install{upgrade} 'anchorline[{extra}]'")


class ModelFileError(AnchorlineError, ValueError):
    """A model cannot be loaded: not found, damaged, or of another kind."""


class UntrustedError(AnchorlineError, ValueError):
    """Loading the model would run code, or build types that are not trusted."""


class ModelInputError(AnchorlineError, ValueError):
    """The rows lack columns or values that the loaded model needs."""


class RemoteModelError(PredictorError):
    """A model behind an address failed, or its answer is unusable."""


class RemoteRefusalError(RemoteModelError):
    """The server of a model refused the request, and another attempt would not help."""


class TableFileError(AnchorlineError, ValueError):
    """A file cannot be read as a table."""


class OutputFileError(AnchorlineError, OSError):
    """A file could not be written; no partial file is left."""


class RowError(AnchorlineError, RuntimeError):
    """One row of many has no explanation."""


class WorkerError(AnchorlineError, RuntimeError):
    """Worker processes died, and a single row is not the cause."""


class UnpackableError(WorkerError):
    """A model cannot be sent to another process."""


class JournalError(AnchorlineError, ValueError):
    """A batch cannot start or resume with the existing files."""


class FormatError(AnchorlineError, ValueError):
    """A text is not an explanation of a known schema."""


class TamperedError(FormatError):
    """An explanation was changed after it was written."""
