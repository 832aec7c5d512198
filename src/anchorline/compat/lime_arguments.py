"""Arguments of LIME's explainers: checked, and what LIME's three explainers share: one explanation per label."""

import contextlib
import hashlib
import json
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from anchorline.errors import AnchorlineError, ParameterError, PredictorError, PredictorOutputError
from anchorline.explainer import Explainer
from anchorline.model import failures
from anchorline.settings import FEWEST_QUERIES, Settings, checked_count

_SELECTIONS = ("auto", "none", "forward_selection", "lasso_path", "highest_weights")
_CALLER = 4  # the stack level of the caller of a method that checks its keywords, seen from a function here
_CLOSE = "neighbors are drawn close to the row, and all of them have the same weight"
_BEST = "the best sum of at most num_features facts is found"
_INSTEAD = {  # of keywords for steps that anchorline does not have
    "kernel_width": _CLOSE,
    "kernel": _CLOSE,
    "distance_metric": _CLOSE,
    "sample_around_instance": "every neighbor keeps about half of the row's own values",
    "sampling_method": "the values of neighbors come from training rows",
    "model_regressor": _BEST,
    "feature_selection": _BEST,
    "verbose": "nothing is printed; type print(result)",
}


def warn_without_effect(**given: tuple[Any, Any]) -> None:
    """Warn of every keyword whose value is not LIME's default; the warning points to the user's call."""
    for name, (value, default) in given.items():
        if name == "feature_selection" and value not in _SELECTIONS:
            raise ParameterError(f"{name} is {value!r}, but it must be one of {', '.join(_SELECTIONS)}.")
        if value is not default and not (isinstance(value, type(default)) and value == default):
            warnings.warn(
                f"{name} has no effect in anchorline: {_INSTEAD[name]}.", UserWarning, stacklevel=_CALLER
            )


def as_list(given: Any, what: str, example: str) -> list[Any]:
    """Return an iterable as a list; a single value or a text raises an error that shows an example to type."""
    with contextlib.suppress(TypeError):
        if not isinstance(given, str):
            return list(given)
    raise ParameterError(f"{what} is {given!r}, but it must be a list. Type {example}.")


def class_labels(class_names: Any) -> list[Any] | None:
    """Return the labels of the columns of the model's answers; None if the model itself knows them."""
    return None if class_names is None else as_list(class_names, "class_names", "class_names=['no', 'yes']")


def seed_from(random_state: Any) -> int:
    """Return a seed for every random state that LIME accepts; a generator's state is read, not changed."""
    if random_state is None:
        return 0
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        state: Any = random_state.get_state(legacy=False)
    elif isinstance(random_state, np.random.Generator):
        state = random_state.bit_generator.state
    else:
        raise ParameterError(
            f"random_state is {random_state!r}, but it must be a whole number >= 0, None (seed 0), a RandomState "
            "or a Generator."
        )
    text = json.dumps(state, default=np.ndarray.tolist, sort_keys=True)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest(), "big")


def settings_from(num_features: Any, num_samples: Any, seed: int) -> Settings:
    """Return what LIME's numbers mean here: the most facts, and the most rows that the model is asked about."""
    numbers = [int(each) if isinstance(each, np.integer) else each for each in (num_features, num_samples)]
    checked_count("num_features", numbers[0], 1, "num_features=5")
    checked_count("num_samples", numbers[1], FEWEST_QUERIES, "num_samples=5000")
    return Settings(k=numbers[0], queries=numbers[1], seed=seed)


def explain_labels(
    explainer: Explainer, instance: Any, labels: Iterable[int], top_labels: int | None, settings: Settings
) -> dict[str, Any]:
    """Explain some labels of one instance, each independently; return fields of `LimeExplanation`."""
    outputs = answer_to(explainer, instance).reshape(-1)
    names = [str(name) for name in explainer.target.classes or range(len(outputs))]
    chosen, highest_first = _choose(labels, top_labels, outputs, names)
    return {
        "mode": "classification",
        "explanations": {label: explainer.explaining(label).explain_with(instance, settings) for label in chosen},
        "class_names": names,
        "predict_proba": outputs,
        "top_labels": highest_first,
    }


def answer_to(explainer: Explainer, instance: Any) -> np.ndarray:
    """Return the model's answer to the instance, (1, c), or (1,) for a single number; not yet checked."""
    target, original = explainer.target, explainer.space.at(instance).original
    try:
        answer = np.asarray(target.ask(original))
    except AnchorlineError:
        raise
    except Exception as error:
        raise PredictorError(failures.failure_text(error, target.ask, original, 1)) from error
    return answer if target.rule is None or answer.ndim < 2 else answer[:, :-1]  # the last is the class it names


def _choose(
    labels: Any, top_labels: Any, outputs: np.ndarray, names: list[str]
) -> tuple[list[int], list[int] | None]:
    """Return the columns to explain and, if ``top_labels`` was given, the same columns with the highest first."""
    if len(outputs) < 2:
        raise PredictorOutputError(
            "mode is 'classification', but predict_fn returns one value per row instead of (n, c) probabilities. "
            "Pass `model.predict_proba`. If the value is a number to explain, type mode='regression'. For a "
            "classifier without probabilities, type anchorline.Explainer(model, table, task='label')."
        )
    if top_labels:
        if isinstance(top_labels, bool) or not isinstance(top_labels, int | np.integer) or top_labels < 0:
            raise ParameterError(f"top_labels is {top_labels!r}, but it must be a number of labels, at least 1.")
        highest_last = [int(label) for label in np.argsort(outputs)[-top_labels:]]
        return highest_last, highest_last[::-1]
    chosen = as_list(labels, "labels", f"labels=({labels!r},)")
    wrong = [label for label in chosen if label not in range(len(outputs)) or isinstance(label, bool)]
    if wrong or not chosen:
        numbers = tuple(names.index(label) if label in names else label for label in chosen)
        hint = f" Type labels={numbers}." if wrong and set(numbers) <= set(range(len(outputs))) else ""
        last = len(outputs) - 1
        raise ParameterError(
            f"labels is {chosen!r}, but it must list columns of the model's answers, 0 to {last}.{hint}"
        )
    return [int(label) for label in chosen], None
