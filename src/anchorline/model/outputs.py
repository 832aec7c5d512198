"""Which of a model's numbers is explained, and how a model is asked for it and for the class that it names."""

import contextlib
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from anchorline.errors import ParameterError, PredictorError, PredictorOutputError, listed
from anchorline.model.answers import (
    NamedScores,
    OneOutput,
    TorchModel,
    adapted,
    read_answer,
)
from anchorline.model.loaders import onnx_file
from anchorline.model.loaders.boosters import XgboostModel, from_booster

TASKS = (None, "label", "number")
INPUTS = ("auto", "frame", "array")
SCALES = (None, "probability", "margin")
Steps = tuple[Callable[[Any], Any], ...]


@dataclass(frozen=True, slots=True)
class Target:
    """What to ask a model, and which part of its answer is explained.

    ``classes`` are the labels of the answer's columns, or None if they are not known. ``column`` is the column
    that is explained; None stands for the class that the model predicts at the instance. ``name`` is the name of
    the output; None stands for the name of its class. ``labels`` are the only labels that an answer may hold, or
    None if any label may come. ``rule`` is how the model itself chooses a class, in plain values: a threshold of
    one column, or its `predict`; answers then have one more column, with the number of the chosen class. None
    stands for the most probable class.
    ``contrast`` names all classes and the two whose scores are subtracted, in plain values; None if the answers
    are not such differences. ``known_range`` is the range of the output, if its kind determines it. ``scale`` is
    the name of the margins if a classifier is queried for them, "log-odds" or "margin", and otherwise None.
    ``part`` is the number of the explained one of a classifier's several outputs, or None.
    """

    ask: Callable[[Any], Any]
    task: str | None = None
    classes: tuple[Any, ...] | None = None
    column: int | None = None
    name: str | None = None
    input: str = "auto"
    labels: tuple[Any, ...] | None = None
    rule: Mapping[str, Any] | None = None
    contrast: Mapping[str, Any] | None = None
    known_range: tuple[float, float] | None = None
    scale: str | None = None
    part: int | None = None

    @property
    def asks_predict(self) -> bool:
        """Whether the model's own `predict` is asked beside its scores."""
        return self.rule is not None and "method" in self.rule


@dataclass(frozen=True, slots=True, eq=False)
class Asking(ABC):
    """A function of model inputs that asks ``ask``, which is the model's own or another of these."""

    ask: Callable[..., Any]

    @abstractmethod
    def __call__(self, inputs: Any) -> Any:
        """Return the answers to rows."""

    def scores_only(self) -> Callable[[Any], Any]:
        """Return the same function without the question which class the model names, which `ByPredict` asks."""
        return replace(self, ask=scores_only(self.ask))


def scores_only(ask: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return what answers scores alone, out of what may also ask the model's `predict`."""
    return ask.scores_only() if isinstance(ask, Asking) else ask


def checked_threshold(threshold: float | None) -> float | None:
    """Return the threshold as a finite number, or None."""
    if threshold is None:
        return None
    if isinstance(threshold, (int, float, np.number)) and np.isfinite(threshold):
        return float(threshold)
    raise ParameterError(
        f"threshold is {threshold!r}, but it must be a finite number, or None. Type threshold=0.5."
    )


def checked_range(output_range: tuple[float, float]) -> tuple[float, float]:
    """Return lowest and highest output as floats whose difference can be halved."""
    try:
        low, high = (float(end) for end in output_range)
    except (TypeError, ValueError):
        low = high = np.nan
    half = high / 2 - low / 2
    if not (np.isfinite([low, high, half]).all() and half > 1e-300 and np.isfinite(2 * half)):
        raise ParameterError(
            f"output_range is {output_range!r}, but it must be two finite numbers, lowest first. "
            "Type output_range=(0, 1)."
        )
    return low, high


def plain_label(label: Any) -> str | int | float | bool | None:
    """Return a label as JSON can hold it; JSON has no infinity."""
    fits = label is None or isinstance(label, (str, int)) or (isinstance(label, float) and math.isfinite(label))
    return label if fits else str(label)


def resolve(
    model: Any,
    *,
    output: Any = None,
    task: str | None = None,
    classes: Sequence[Any] | None = None,
    input: str = "auto",
    own_decision: bool = True,
    output_scale: str | None = None,
) -> Target:
    """Return how to query a fitted estimator or a callable.

    A classifier is queried for the probabilities of its classes. It is queried for its labels if it has no
    probabilities, or with ``task="label"``. Any other model is queried for numbers. With ``own_decision``, a
    classifier whose `predict` need not name the most probable class is also queried for the class that it names.
    With ``output_scale="margin"``, a classifier is queried for the margins of its classes. ``output`` is a label,
    a pair of labels, the number of a column of the answers, or a name.
    """
    if task not in TASKS:
        raise ParameterError(f"task is {task!r}, but it must be 'label', 'number' or None.")
    if input not in INPUTS:
        raise ParameterError(f"input is {input!r}, but it must be one of {', '.join(INPUTS)}.")
    model, output, part = _one_output(model, output)
    model, given_task = _callable_model(model, task), task
    ask, task, scale = _scaled_method(model, task, classes, output_scale)
    labels = classes if classes is not None else classes_of(model)
    known = _known_classes(ask, task, labels, classes is not None)
    if isinstance(output, list | tuple):
        form = "array" if wants_arrays(model, input) else input
        return _contrast(ask, task, known, tuple(output), form, scale)
    rule = None
    if own_decision and task is None:
        ask, rule = _with_rule(model, ask, known)
    if wants_arrays(model, input):
        ask, input = OfArrays(ask), "array"
    column = name = None
    is_number = isinstance(output, int | np.integer) and not isinstance(output, bool)
    if is_number and (labels is None or output not in list(labels)):  # a number that is not a label
        column = int(output)
        if column < 0:
            raise ParameterError(
                f"output is {output!r}, but it must be the number of a column of the answers, counted from 0."
            )
        if known is not None and column >= len(known):
            raise ParameterError(f"output is {column}; the model has {len(known)} classes: {listed(known)}.")
    elif output is not None and known is not None:  # the model's own spelling, whether 1, "1" or 1.0 was typed
        column = column_of(output, known)
    elif output is not None:
        name = str(output)
    if task == "label" and name is not None and name in map(str, classes_of(model) or ()):
        raise ParameterError(
            f"output is {output!r}, which is a class, but without class scores, only the label predicted for "
            "the row can be explained. Leave output out. To choose a class, the model needs `predict_proba`."
        )
    fixed = task == "label" and given_task is None and classes is None and labels is not None
    if output is None and part is None:
        name = getattr(model, "output_name", None)
    own = tuple(labels) if fixed else None
    return Target(ask, task, known, column, name, input, own, rule, scale=scale, part=part)


def _contrast(
    ask: Callable[[Any], Any],
    task: str | None,
    classes: tuple[Any, ...] | None,
    pair: tuple[Any, ...],
    input: str,
    scale: str | None,
) -> Target:
    """Return how to query a model for the score of one class minus that of another."""
    if len(pair) != 2 or classes is None or task is not None:
        raise ParameterError(
            f"output is {pair!r}, which asks for the difference of two class scores; this needs two labels, a "
            "model whose answers are scores of known classes, and no task. Type, say, "
            "output=('approved', 'declined'), and for a function also classes=[...]."
        )
    first, second = (column_of(label, classes) for label in pair)
    if first == second:
        raise ParameterError(f"output is {pair!r}, but the two classes must differ.")
    known = method_of(ask) == "predict_proba"
    difference = Difference(OfArrays(ask) if input == "array" else ask, first, second)
    return Target(
        difference,
        "number",
        name=f"{classes[first]} rather than {classes[second]}",
        input=input,
        contrast={
            "classes": [plain_label(label) for label in classes],
            "contrast": [plain_label(classes[first]), plain_label(classes[second])],
        },
        known_range=(-1.0, 1.0) if known else None,
        scale=None if scale is None else "margin",  # of two classes, it is twice the log-odds
    )


def _with_rule(
    model: Any, ask: Callable[[Any], Any], classes: tuple[Any, ...] | None
) -> tuple[Callable[[Any], Any], dict[str, Any] | None]:
    """Return what to call, and how the model chooses a class if that is not always the most probable one."""
    estimator = owner_of(model)
    if not callable(getattr(estimator, "predict_proba", None)) or (
        estimator is not model and method_of(model) != "predict_proba"
    ):
        return ask, None  # a function, or another method, such as predict_log_proba
    rule = own_rule(estimator)
    if rule is not None and ("method" in rule or isinstance(ask, Margins)):  # a threshold is one of probabilities
        known = classes_of(model) or classes
        return ByPredict(ask, estimator.predict, None if known is None else tuple(known)), {"method": "predict"}
    return ask, rule


def classes_of(model: Any) -> Any:
    """Return the labels of a model's columns, or None if it lists none; of a method, those of its object."""
    classes = getattr(owner_of(model), "classes_", None)
    return (_labels(classes) or None) if isinstance(classes, Iterable) else None  # empty for CatBoost's regressors


def _callable_model(model: Any, task: str | None) -> Any:
    """Return a booster of XGBoost, LightGBM or CatBoost as if it were loaded from its file; others as they are.

    So a booster, its file and its classifier are explained alike: two columns for two classes. A pipeline of
    Hugging Face's transformers becomes a classifier, and a module of PyTorch a function of arrays.
    """
    kind = type(model).__module__.partition(".")[0], type(model).__name__
    if kind == ("xgboost", "Booster"):
        return XgboostModel(model.copy(), "booster")  # a copy, because it is set to use one thread
    if kind == ("lightgbm", "Booster"):
        return from_booster(model)
    if kind == ("onnxruntime", "InferenceSession"):
        return _of_session(model)
    if kind == ("catboost", "CatBoost") and classes_of(model) and task != "number":  # its numbers are raw scores
        from catboost import to_classifier  # noqa: PLC0415  only where it is needed

        return to_classifier(model)
    return adapted(model, task)


def _of_session(session: Any) -> Any:
    """Return the model that a session of onnxruntime runs, as if it were loaded from its file."""
    content, path = getattr(session, "_model_bytes", None), getattr(session, "_model_path", None)
    if not content and path:
        content = Path(path).read_bytes()
    if not content:
        raise ParameterError(
            "The InferenceSession does not say which model it runs. Load the file instead: "
            "`anchorline.load_model('model.onnx')`."
        )
    return onnx_file.load(str(path or "session"), "onnx", bytes(content), ())


def _one_output(model: Any, output: Any) -> tuple[Any, Any, int | None]:
    """Return the model of one of several outputs, which ``output`` numbers, what else is asked for, the number."""
    classes: Any = getattr(owner_of(model), "classes_", None)  # a list of those of each output
    is_list = isinstance(classes, list | tuple) and len(classes) > 1
    if not is_list or not all(isinstance(each, list | tuple | np.ndarray) for each in classes):
        return model, output, None
    is_number = isinstance(output, int | np.integer) and not isinstance(output, bool)
    if owner_of(model) is not model or not is_number or not 0 <= output < len(classes):
        raise ParameterError(
            f"The model has {len(classes)} outputs, but one is explained. Pass the fitted model, and type "
            "output=0, the number of one of them, counted from 0."
        )
    return OneOutput(model, int(output)), None, int(output)


def tells_labels_later(model: Any) -> bool:
    """Return whether a model, such as one behind an address, has to be asked for the labels of its columns."""
    return hasattr(model, "classes_for")


def owner_of(model: Any) -> Any:
    """Return the estimator behind a method such as ``model.predict_proba``, or the model itself."""
    owner = getattr(model, "__self__", None)
    return model if owner is None else owner


def method_of(model: Any) -> str:
    """Return the name of a method such as ``model.predict_proba``, or of a function; empty for other models."""
    return str(getattr(model, "__name__", ""))


def _scaled_method(
    model: Any, task: str | None, classes: Sequence[Any] | None, output_scale: str | None
) -> tuple[Callable[[Any], Any], str | None, str | None]:
    """Return what to call, the task of its answers, and the name of its margins if these are explained."""
    if output_scale not in SCALES:
        raise ParameterError(f"output_scale is {output_scale!r}, but it must be 'margin', 'probability' or None.")
    if output_scale != "margin":
        return *_method(model, task), None
    if task is not None:
        raise ParameterError(f"output_scale is 'margin' and task is {task!r}, but margins need no task. Drop one.")
    margins, name = margins_of(model, classes or classes_of(model))
    return margins, None, name


def _method(model: Any, task: str | None) -> tuple[Callable[[Any], Any], str | None]:
    """Return what to call, and the task of its answers."""
    predict = getattr(model, "predict", None)
    if not callable(predict):
        if callable(model):
            return model, task
        if type(model).__name__ == "LocalOutlierFactor":
            raise ParameterError(
                "A LocalOutlierFactor without novelty=True cannot judge new rows. Type "
                "LocalOutlierFactor(novelty=True), and fit it again."
            )
        load = f" Load a file first: `anchorline.load_model({str(model)!r})`."
        raise ParameterError(
            f"predict is a {type(model).__name__}, which is not callable. It must be a fitted estimator, or a "
            f"function of a table of rows, for example `model.predict`.{load * isinstance(model, str | PathLike)}"
        )
    if task != "label" and callable(getattr(model, "predict_proba", None)):
        return model.predict_proba, task
    if task is not None or classes_of(model) is not None:
        return predict, task or "label"
    from sklearn.base import is_clusterer, is_regressor  # noqa: PLC0415  heavy

    with contextlib.suppress(AttributeError, TypeError):  # raised if it is not an estimator at all
        if is_clusterer(model):
            raise ParameterError(
                f"A {type(model).__name__} numbers clusters, which are not decisions. To explain why a row is in "
                "its cluster, type task='label'."
            )
        return predict, "number" if is_regressor(model) else None
    return predict, None


def wants_arrays(model: Any, input: str) -> bool:
    """Return whether a model gets arrays: as asked, or because it was fitted on one and warns about frames."""
    if input != "auto":
        return input == "array"
    estimator = owner_of(model)
    if isinstance(estimator, TorchModel):
        return True
    if type(estimator).__module__.startswith("catboost"):
        return False  # it keeps its names elsewhere and accepts every frame
    return hasattr(estimator, "n_features_in_") and not hasattr(estimator, "feature_names_in_")


@dataclass(frozen=True, slots=True)
class Difference(Asking):
    """A model that returns scores of classes, as a function that returns one score minus another."""

    first: int
    second: int

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the difference of the two scores, (n,)."""
        read = read_answer(self.ask(inputs))
        scores = np.asarray(read.values if isinstance(read, NamedScores) else read, dtype=np.float64)
        if scores.ndim != 2 or scores.shape[1] <= max(self.first, self.second):
            raise PredictorOutputError(
                f"The model returned an answer of shape {scores.shape}, but the difference of two class scores "
                "needs one column per class. Pass a model that returns the scores of all classes."
            )
        return np.asarray(scores[:, self.first] - scores[:, self.second])


@dataclass(frozen=True, slots=True)
class OfArrays(Asking):
    """A model that takes arrays, callable on any table."""

    def __call__(self, inputs: Any) -> Any:
        """Return the model's answer to the table, converted to an array."""
        array = as_array(inputs)
        try:
            return self.ask(array)
        except Exception as error:
            raise PredictorError(
                f"The model raised {type(error).__name__}: {error} (given an array of shape {array.shape}). "
                "If it takes frames, pass input='frame'; otherwise call it on such an array by hand."
            ) from error


def as_array(inputs: Any) -> np.ndarray:
    """Return a table as a 2-D array: float64 if all columns are numbers or booleans, otherwise objects."""
    if isinstance(inputs, np.ndarray):
        return inputs
    import narwhals as nw  # noqa: PLC0415  heavy

    frame = nw.from_native(inputs, eager_only=True)
    if all(dtype.is_numeric() or dtype == nw.Boolean for dtype in frame.schema.values()):
        # By position, because frame[0] of whole-number labels would be a row.
        columns = (frame[:, j].cast(nw.Float64) for j in range(frame.shape[1]))
        return np.column_stack([column.to_numpy().astype(np.float64) for column in columns])
    array = np.empty(frame.shape, dtype=object)
    for j in range(frame.shape[1]):
        column = frame[:, j]
        array[:, j] = column.to_list()
        array[column.is_null().to_numpy(), j] = None if column.dtype == nw.String else np.nan  # never pandas.NA
    return array


def _known_classes(ask: Any, task: str | None, classes: Any, given: bool) -> tuple[Any, ...] | None:
    """Return the labels of the answers' columns; None if answers have no columns, or labels are not known."""
    if isinstance(classes, str) or (classes is not None and not isinstance(classes, Iterable)):
        raise ParameterError(
            f"classes is {classes!r}, but it must be a list of labels, one per column of the answers."
        )
    if task == "label" or classes is None:
        return None
    labels = _labels(classes)
    if any(isinstance(label, list | tuple | np.ndarray) for label in labels):
        raise ParameterError(
            "The classes are lists, as of a model of several outputs, but one is explained. Pass the fitted "
            "model, and type output=0, the number of one of them."
        )
    if len(set(map(str, labels))) < len(labels):
        raise ParameterError(f"classes are {listed(labels)}, but all labels must differ.")
    method = method_of(ask)
    one_number = method == "predict" or (method == "decision_function" and len(labels) == 2)
    return None if one_number and not given else tuple(labels)


def _labels(classes: Iterable[Any]) -> list[Any]:
    """Return labels as Python values, because NumPy's own do not survive JSON."""
    return [label.item() if isinstance(label, np.generic) else label for label in classes]


def place_of(label: Any, classes: Sequence[Any]) -> int | None:
    """Return the number of a label, which is compared by value, then by text; None if it is not one of them."""
    for matches in ([each == label for each in classes], [str(each) == str(label) for each in classes]):
        if any(matches):
            return matches.index(True)
    return None


def column_of(output: Any, classes: tuple[Any, ...]) -> int:
    """Return the column of a class label; raise `ParameterError` if it is not one."""
    column = place_of(output, classes)
    if column is not None:
        return column
    raise ParameterError(f"output is {output!r}; the model's classes are {listed(classes)}. Pick one of them.")


# ---- what is inside a model


class NotReadableError(Exception):
    """Raised where a model cannot be looked into, with the reason as a clause that follows "because"."""


def unwrap(estimator: Any, visit: Callable[[Any], None] = lambda _: None) -> tuple[Any, Steps]:
    """Return the model inside the wrappers, and the transformations of its inputs, first one first.

    Only wrappers whose answers are those of the inner model are opened. ``visit`` sees each, and the model.
    """
    visit(estimator)
    names = {cls.__name__ for cls in type(estimator).__mro__}
    if "Pipeline" in names and hasattr(estimator, "steps"):
        inner, steps = unwrap(estimator.steps[-1][1], visit)
        before = (estimator[:-1].transform,) if len(estimator.steps) > 1 else ()
        return inner, (*before, *steps)
    inner = _inside(estimator, names)
    return (estimator, ()) if inner is None else unwrap(inner, visit)


def _inside(estimator: Any, names: set[str]) -> Any:
    """Return the model whose answers a wrapper passes on; None if the estimator is not such a wrapper."""
    if "BaseSearchCV" in names:
        if not hasattr(estimator, "best_estimator_"):
            raise NotReadableError("the search kept no best estimator (refit=False)")
        return estimator.best_estimator_
    if "FrozenEstimator" in names:
        return estimator.estimator
    if names & {"FixedThresholdClassifier", "TunedThresholdClassifierCV"}:
        return estimator.estimator_  # its probabilities are those of the inner model; only `predict` differs
    if "TransformedTargetRegressor" in names:
        transformer = estimator.transformer_
        if type(transformer).__name__ != "FunctionTransformer" or transformer.inverse_func is not None:
            raise NotReadableError(
                "the predictions of the inner model are transformed (TransformedTargetRegressor)"
            )
        return estimator.regressor_
    return None


def innermost(estimator: Any) -> Any:
    """Return the estimator that a pipeline, a search or a frozen estimator passes its calls to."""
    if type(estimator).__module__.startswith("sklearn."):
        inner = getattr(estimator, "best_estimator_", None)
        if type(estimator).__name__ == "Pipeline":
            inner = estimator.steps[-1][1]
        elif type(estimator).__name__ == "FrozenEstimator":
            inner = estimator.estimator
        if inner is not None:
            return innermost(inner)
    return estimator


# ---- the class that a classifier names, which need not be the most probable one

# Classifiers whose `predict` names the first class with the highest `predict_proba`, in all their settings. Of
# every other classifier, `predict` is called too: SVC and NuSVC fit their probabilities separately, CatBoost has a
# threshold, GradientBoostingClassifier resolves ties the other way, and a class of your own may do anything.
MOST_PROBABLE = frozenset(
    {
        *("BaggingClassifier", "BernoulliNB", "CalibratedClassifierCV", "CategoricalNB", "ComplementNB"),
        *("DecisionTreeClassifier", "ExtraTreeClassifier", "ExtraTreesClassifier", "GaussianNB"),
        *("HistGradientBoostingClassifier", "LabelPropagation", "LabelSpreading", "LinearDiscriminantAnalysis"),
        *("LogisticRegression", "LogisticRegressionCV", "MLPClassifier", "MultinomialNB"),
        *("QuadraticDiscriminantAnalysis", "RandomForestClassifier", "VotingClassifier"),
        *("LGBMClassifier", "XGBClassifier", "XGBRFClassifier"),
    }
)
_LIBRARIES = ("lightgbm", "sklearn", "xgboost")


@dataclass(frozen=True, slots=True)
class ByPredict(Asking):
    """A classifier that is queried for its scores and for the class that its `predict` names.

    ``classes`` are the labels of the columns; None if they are not known, so that labels are column numbers.
    """

    predict: Callable[[Any], Any]
    classes: tuple[Any, ...] | None

    def __call__(self, inputs: Any) -> np.ndarray | NamedScores:
        """Return the scores, and in the last column the number of the class that is named."""
        read = read_answer(self.ask(inputs))
        names = read.names if isinstance(read, NamedScores) else None
        scores = read.values if isinstance(read, NamedScores) else read
        if scores.ndim != 2 or scores.shape[1] < 2:
            return scores  # not scores of classes
        named = self._named(np.asarray(self.predict(inputs)), scores, names)
        both = np.column_stack([scores, named])
        return both if names is None else NamedScores(both, names)

    def scores_only(self) -> Callable[[Any], Any]:
        """Return what answers the scores alone."""
        return self.ask

    def _named(self, labels: np.ndarray, scores: np.ndarray, names: tuple[Any, ...] | None) -> np.ndarray:
        """Return the columns of the named classes; of the most probable ones if `predict` returns no labels."""
        labels = labels[:, 0] if labels.shape == (len(scores), 1) else labels
        if labels.shape != (len(scores),) or (labels.dtype.kind == "f" and (labels % 1).any()):
            return np.asarray(scores.argmax(axis=1))
        known = tuple(range(scores.shape[1])) if self.classes is None and names is None else self.classes or names
        assert known is not None
        columns = {label: j for j, label in enumerate(known)}
        named = [columns.get(label, -1) for label in labels.tolist()]
        if -1 in named:
            raise PredictorOutputError(
                f"The model's `predict` returned {labels[named.index(-1)]!r}, which is not one of its classes "
                f"{list(known)!r:.200}. Pass classes=[...] with the label of every column of `predict_proba`."
            )
        return np.array(named)


def own_rule(estimator: Any) -> dict[str, Any] | None:
    """Return how a classifier names a class, in plain values; None if it always names the most probable one.

    A threshold is read from scikit-learn's threshold classifiers, also where they are the last step of a pipeline
    or the best estimator of a search; any other classifier has to be asked by its `predict`.
    """
    if not callable(getattr(estimator, "predict", None)):
        return None
    inner = innermost(estimator)
    if _has_own_predict(estimator) and _has_own_predict(inner):
        if type(inner).__name__ in MOST_PROBABLE:
            return None
        if (cutoff := _cutoff(inner)) is not None:
            return cutoff
    return {"method": "predict"}


def _has_own_predict(estimator: Any) -> bool:
    """Return whether `predict` is the one of a known library's class, and not replaced on the object."""
    owner = getattr(getattr(estimator, "predict", None), "__self__", None)
    return type(owner) is type(estimator) and type(estimator).__module__.partition(".")[0] in _LIBRARIES


def _cutoff(estimator: Any) -> dict[str, Any] | None:
    """Return the column and the threshold of a fitted threshold classifier that uses probabilities."""
    name, classes = type(estimator).__name__, list(getattr(estimator, "classes_", ()))
    inner = getattr(estimator, "estimator_", getattr(estimator, "estimator", None))
    by_probability = getattr(estimator, "response_method", None) in ("auto", "predict_proba")
    if len(classes) != 2 or not by_probability or not hasattr(inner, "predict_proba"):
        return None
    if name == "FixedThresholdClassifier":
        threshold = 0.5 if estimator.threshold == "auto" else float(estimator.threshold)
        positive = estimator.pos_label
    elif name == "TunedThresholdClassifierCV":
        threshold, positive = float(estimator.best_threshold_), estimator._curve_scorer._get_pos_label()
    else:
        return None
    return {"column": 1 if positive is None else classes.index(positive), "threshold": threshold}


# ---- margins: the scores inside the link function that turns them into probabilities

# How `predict` returns margins, in libraries whose classifiers have no `decision_function`.
_KEYWORDS: dict[str, dict[str, Any]] = {
    "catboost": {"prediction_type": "RawFormulaVal"},
    "lightgbm": {"raw_score": True},
    "xgboost": {"output_margin": True},
}
_OF_LOG_ODDS = ("HistGradientBoostingClassifier", "LogisticRegression", "LogisticRegressionCV")


@dataclass(frozen=True, slots=True)
class Margins(Asking):
    """A classifier that is queried for margins, one column per class.

    Two classes have one margin, that of the second class; the margin of the first class is its negative.
    """

    steps: tuple[Callable[[Any], Any], ...] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, inputs: Any) -> np.ndarray:
        """Return the margins, (n, classes)."""
        for step in self.steps:
            inputs = step(inputs)
        margins = np.asarray(self.ask(inputs, **self.keywords), dtype=np.float64)
        margins = margins[:, 0] if margins.ndim == 2 and margins.shape[1] == 1 else margins
        return margins if margins.ndim == 2 else np.column_stack([-margins, margins])


def margins_of(model: Any, classes: Sequence[Any] | None) -> tuple[Margins, str]:
    """Return how to query a classifier for its margins, and their name: "log-odds" or "margin"."""
    try:
        inner, steps = unwrap(model)
    except NotReadableError:
        inner, steps = model, ()
    library = type(inner).__module__.partition(".")[0]
    margins: Margins | None = None
    if library in _KEYWORDS and callable(getattr(inner, "predict", None)):
        margins = Margins(inner.predict, steps, _KEYWORDS[library])
    elif callable(getattr(model, "decision_function", None)):
        margins = Margins(model.decision_function)
    elif callable(getattr(inner, "margins", None)):  # a loaded file
        margins = Margins(inner.margins, steps)
    if margins is None or classes is None or len(classes) < 2:
        raise ParameterError(
            f"output_scale is 'margin', but a {type(model).__name__} has no margins of classes; it must be a "
            "boosted classifier of scikit-learn, XGBoost, LightGBM or CatBoost, or have `decision_function` and "
            "`classes_`. Leave output_scale out to explain what the model returns."
        )
    return margins, "log-odds" if len(classes) == 2 and _gives_log_odds(inner) else "margin"


def _gives_log_odds(model: Any) -> bool:
    """Return whether the one margin of a classifier of two classes is the logarithm of the odds."""
    names = {cls.__name__ for cls in type(model).__mro__}
    if "GradientBoostingClassifier" in names:
        return bool(model.loss == "log_loss")
    if "LGBMClassifier" in names:
        return bool(model.objective_ == "binary" and model.get_params().get("sigmoid", 1) == 1)
    if "CatBoostClassifier" in names:
        return model.get_all_params().get("loss_function") in ("Logloss", "CrossEntropy")
    objective = getattr(model, "objective", None)  # of XGBoost, and of loaded files
    return bool(names & {*_OF_LOG_ODDS}) or objective in ("binary:logistic", "binary sigmoid:1")
