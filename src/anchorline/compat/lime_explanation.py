"""What LIME's calls return: explanations under LIME's names."""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.errors import MissingDependencyError, ParameterError
from anchorline.facts import Fact
from anchorline.io import write_atomically
from anchorline.render.report import fragment, page
from anchorline.render.statements import fact_text
from anchorline.result.explanation import Explanation

# LIME's switches for the parts of a page, and their defaults.
_SWITCHES = {"predict_proba": True, "show_predicted_value": True, "show_table": True, "show_all": False}
_REGRESSION = 1  # the label that LIME gives to the output of a regression


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class LimeExplanation:
    """Explanations of one row by label, with LIME's names for their parts.

    ``intercept[label]`` and the weights of ``as_map()[label]`` add up to the model's own output: to
    ``predict_proba[label]`` or, in regression (label 1), to ``predicted_value``. A weight is what a fact adds to
    the average over neighbors; LIME's weight is the whole effect of a fact, ``explanations[label].effects``.

    As in LIME, ``score`` and ``local_pred`` belong to the label explained last, which is the predicted label if
    top_labels was given, and label 0 of a regression has the weights with opposite signs. ``min_value`` and
    ``max_value`` are the lowest and the highest output of a regression on the rows that it was asked about.

    Examples
    --------
    >>> from anchorline.compat import LimeTabularExplainer
    >>> rows = np.random.default_rng(0).normal(size=(200, 2))
    >>> explainer = LimeTabularExplainer(rows, mode="regression", feature_names=["a", "b"])
    >>> result = explainer.explain_instance([2.0, 0.1], lambda rows: rows[:, 0])
    >>> result.local_pred, result.predicted_value, result.explanations[1].is_proven
    (array([2.]), 2.0, True)
    """

    mode: str
    explanations: Mapping[int, Explanation]
    feature_names: tuple[str, ...]
    class_names: list[str] | None = None
    predict_proba: np.ndarray | None = None
    top_labels: list[int] | None = None
    min_value: float | None = None
    max_value: float | None = None

    def __post_init__(self) -> None:
        if self.mode == "regression":
            object.__setattr__(self, "class_names", ["negative", "positive"])

    @cached_property
    def local_exp(self) -> dict[int, list[tuple[int, float]]]:
        """(Column number, weight) pairs by label, largest first; numbers of words, or of regions."""
        weights = {
            label: [(self._number(fact), weight) for fact, weight in _pairs(explanation)]
            for label, explanation in self.explanations.items()
        }
        if self.mode == "regression":
            weights = {0: [(column, -weight) for column, weight in weights[_REGRESSION]], **weights}
        return weights

    @property
    def intercept(self) -> dict[int, float]:
        """The base of every sum, which is its average over neighbors, by label."""
        return {label: self.explanations[self._label(label)].base for label in self.local_exp}

    @property
    def scores(self) -> dict[int, float]:
        """The `score` of every label."""
        fits = {label: explanation.fit for label, explanation in self.explanations.items()}
        return {label: float("nan") if fit is None else fit.r2 for label, fit in fits.items()}

    @property
    def score(self) -> float:
        """The share of the output's mean squared change on fresh neighbors that the sum explains.

        It is 1 if the sum follows the model exactly, and 0 if it says no more than the prediction itself. LIME's
        R2 compares with the neighbors' mean, on the sample of the fit, so that the two scores are different
        numbers. NaN if nothing was measured.
        """
        return self.scores[self._last]

    @property
    def local_pred(self) -> np.ndarray:
        """The value of the sum for the row, of shape (1,), which equals the model's output."""
        return np.array([self.explanations[self._last].prediction])

    @property
    def predicted_value(self) -> float | None:
        """The model's output in regression, else None."""
        return self.explanations[_REGRESSION].prediction if self.mode == "regression" else None

    def available_labels(self) -> list[int]:
        """Return the labels that were explained; the predicted label is first if top_labels was given."""
        return list(self.top_labels or self.explanations)

    def as_list(self, label: int = 1) -> list[tuple[str, float]]:
        """Return (fact, weight) pairs, largest first; in regression the label does not matter."""
        explanation = self._explanation(label)
        return [(fact_text(fact, explanation.space), weight) for fact, weight in _pairs(explanation)]

    def as_map(self) -> dict[int, list[tuple[int, float]]]:
        """Return (column number, weight) pairs by label, largest first."""
        return self.local_exp

    def as_pyplot_figure(self, label: int = 1, figsize: tuple[float, float] | None = None) -> Any:
        """Return a pyplot figure that shows the weights as bars."""
        figure = self._explanation(label).plot("bars").figure
        if figsize is not None:
            figure.set_size_inches(figsize)
        return figure

    def as_html(
        self,
        labels: Iterable[int] | None = None,
        predict_proba: bool = True,
        show_predicted_value: bool = True,
        **switches: bool,
    ) -> str:
        """Return a self-contained page: the full report of one label, or several labels one below the other.

        LIME's switches ``predict_proba``, ``show_predicted_value``, ``show_table`` and ``show_all`` are accepted.
        A value other than the default raises a warning, because there is only one layout of the page.
        """
        _warn_of_switches(
            switches | {"predict_proba": predict_proba, "show_predicted_value": show_predicted_value}
        )
        chosen = self._select(labels)
        if len(chosen) == 1:
            return page(chosen[0])
        title = escape(", ".join(explanation.output.name for explanation in chosen))
        return (
            f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head><body>'
            f"{''.join(map(fragment, chosen))}</body></html>\n"
        )

    def save_to_file(self, file_path: str | Path, *arguments: Any, **switches: Any) -> None:
        """Write the page of `as_html`, which has the other arguments, to a file, completely or not at all."""
        write_atomically(file_path, self.as_html(*arguments, **switches))

    def show_in_notebook(
        self, labels: Iterable[int] | None = None, predict_proba: bool = True, **switches: bool
    ) -> None:
        """Show the explanations of the labels in a notebook; the switches are those of `as_html`."""
        try:
            display = import_module("IPython.display")
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                "`show_in_notebook` needs `IPython`, which is not installed. Type "
                "`save_to_file('explanation.html')`, or: pip install ipython"
            ) from error
        _warn_of_switches(switches | {"predict_proba": predict_proba})
        display.display(display.HTML("".join(map(fragment, self._select(labels)))))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({dict(self.explanations)})"

    def __str__(self) -> str:
        return "\n\n".join(map(str, self._select(None)))

    def _repr_html_(self) -> str:
        return "".join(map(fragment, self._select(None)))

    def _number(self, fact: Fact) -> int:
        """Return the number by which LIME knows what a fact is about."""
        return self.feature_names.index(fact.column)

    def _select(self, labels: Iterable[int] | None) -> list[Explanation]:
        return [self._explanation(label) for label in (self.available_labels() if labels is None else labels)]

    def _explanation(self, label: int) -> Explanation:
        explanation = self.explanations.get(self._label(label))
        if explanation is None:
            names: list[Any] = self.class_names or []
            number, available = names.index(label) if label in names else label, self.available_labels()
            if number in available:
                raise ParameterError(f"label is {label!r}, but it must be a number. Type label={number}.")
            raise ParameterError(
                f"Label {label!r} was not explained. The explained labels are {available}. Type "
                f"label={available[0]}, or explain_instance(row, predict_fn, labels=({number!r},))."
            )
        return explanation

    def _label(self, label: int) -> int:
        return _REGRESSION if self.mode == "regression" else label

    @property
    def _last(self) -> int:
        return list(self.explanations)[-1]


def _pairs(explanation: Explanation) -> Iterable[tuple[Fact, float]]:
    return zip(explanation.facts, explanation.contributions.tolist(), strict=True)


def _warn_of_switches(switches: Mapping[str, bool]) -> None:
    """Warn of every switch that differs from its default; the warning points to the caller's caller."""
    for name, value in switches.items():
        if name not in _SWITCHES:
            raise TypeError(f"The keyword {name!r} is unexpected. The switches are {', '.join(_SWITCHES)}.")
        if value != _SWITCHES[name]:
            warnings.warn(
                f"{name}={value!r} has no effect in anchorline: every page shows the model's output, the "
                "facts of the sum and their weights.",
                UserWarning,
                stacklevel=3,
            )
