"""Errors name what was received, what is needed and what to type, and leave no partial result behind."""

import inspect
import pickle
import re

import numpy as np
import pytest

import anchorline as al
from anchorline import errors
from anchorline.errors import (
    InstanceError,
    ParameterError,
    PredictorError,
    PredictorOutputError,
)

X = [1, -1, 1] * 7


def good(z):
    return 0.5 * z[:, 0]


def raises(z):
    raise KeyError("column 'age'")


CHOICES = {"names", "output", "task", "classes", "threshold", "output_range"}


def explained(model, x, **options):
    names = options.pop("names", None)
    choices = {name: options.pop(name) for name in CHOICES & options.keys()}
    return al.Explainer(model, al.Hypercube(names), **choices).explain(x, **options)


def explain(model=good, x=X, **options):
    return lambda: explained(model, x, **options)


def array(answer):
    return lambda z: answer(len(z))


NAN = float("nan")
# Per case: the call, its error, what was received, what is needed, and what to type (None if not in the message).
TABLE = {
    "x 2-D": (explain(x=[[1, -1], [1, 1]]), InstanceError, "(2, 2)", "one row", "x[0]"),
    "x 0-D": (explain(x=1), InstanceError, "shape ()", "one row", None),
    "x empty": (explain(x=[]), InstanceError, "(0,)", "d >= 1", None),
    "x ragged": (explain(x=[[1], [1, -1]]), InstanceError, "not numeric", "-1 and +1", None),
    "x text": (explain(x=["yes", "no"]), InstanceError, "yes", "-1 and +1", None),
    "x NaN": (explain(x=[1, NAN, 1]), InstanceError, "x[1] is nan", "-1 or +1", "Explainer(model, table)"),
    "x inf": (explain(x=[1, 1, np.inf]), InstanceError, "x[2] is inf", "-1 or +1", "Explainer(model, table)"),
    "x 0/1": (explain(x=[1, 0, 1]), InstanceError, "x[1] is 0", "-1 or +1", "2 * x - 1"),
    "x real": (explain(x=[0.5, 1]), InstanceError, "x[0] is 0.5", "-1 or +1", "Explainer(model, table)"),
    "too few names": (explain(names=["a"]), InstanceError, "21 values", "1 names", None),
    "names": (explain(names=[("a",)] * 21), ParameterError, "('a',)", "a text, or two", None),
    "k 0": (explain(k=0), ParameterError, "k is 0", ">= 1", None),
    "k -1": (explain(k=-1), ParameterError, "k is -1", ">= 1", None),
    "k real": (explain(k=2.0), ParameterError, "k is 2.0", "whole number", None),
    "k bool": (explain(k=True), ParameterError, "k is True", "whole number", None),
    "k text": (explain(k="5"), ParameterError, "k is '5'", "whole number", None),
    "sigma < 0": (explain(sigma=-0.1), ParameterError, "sigma is -0.1", "finite number >= 0", None),
    "sigma NaN": (explain(sigma=NAN), ParameterError, "sigma is nan", "finite number >= 0", None),
    "sigma inf": (explain(sigma=np.inf), ParameterError, "sigma is inf", "finite number >= 0", None),
    "sigma text": (explain(sigma="1"), ParameterError, "sigma is '1'", "finite number >= 0", None),
    "sigma None": (explain(sigma=None), ParameterError, "sigma is None", "finite number >= 0", None),
    "seed": (explain(seed=-1), ParameterError, "seed is -1", ">= 0", None),
    "seed None": (explain(seed=None), ParameterError, "seed is None", "whole number", "seed=0"),
    "queries 0": (explain(queries=0), ParameterError, "queries is 0", "whole number >= 32", "queries='auto'"),
    "queries real": (explain(queries=1e3), ParameterError, "queries is 1000.0", "whole number", "queries=300"),
    "queries text": (explain(queries="many"), ParameterError, "queries is 'many'", "whole number", "'auto'"),
    "confidence": (explain(confidence=1), ParameterError, "confidence is 1", "above 0.5 and below 1", "0.95"),
    "alternatives": (explain(alternatives=-1), ParameterError, "alternatives is -1", ">= 0", "alternatives=3"),
    "time_limit": (explain(time_limit=-1), ParameterError, "time_limit is -1", "above 0", "time_limit="),
    "time_limit NaN": (explain(time_limit=NAN), ParameterError, "time_limit is nan", "above 0", "time_limit="),
    "task": (explain(task="class"), ParameterError, "task is 'class'", "it must be", "'label'"),
    "range": (explain(output_range=(1, 0)), ParameterError, "output_range is (1, 0)", "lowest first", None),
    "range text": (explain(output_range="ab"), ParameterError, "output_range is 'ab'", "lowest first", None),
    "threshold text": (explain(threshold="a"), ParameterError, "threshold is 'a'", "number", None),
    "threshold NaN": (explain(threshold=NAN), ParameterError, "threshold is nan", "number", None),
    "no model": (
        explain(None),
        ParameterError,
        "NoneType",
        "a fitted estimator, or a function",
        "`model.predict`",
    ),
    "model raises": (explain(raises), PredictorError, "KeyError: \"column 'age'\"", "(1, 21)", "`predict`"),
    "rows": (
        explain(array(lambda n: np.zeros(n + 1))),
        PredictorOutputError,
        "(2,)",
        "(1,)",
        "one number per row",
    ),
    "3-D": (explain(array(lambda n: np.zeros((n, 3, 2)))), PredictorOutputError, "(1, 3, 2)", "(1,)", None),
    "scalar": (explain(array(lambda n: 0.5)), PredictorOutputError, "()", "(1,)", "one number per row"),
    "None": (explain(array(lambda n: None)), PredictorOutputError, "None", "1 numbers", "`return`"),
    "objects": (explain(array(lambda n: [{}] * n)), PredictorOutputError, "{}", "numbers", "task='label'"),
    "integers": (
        explain(array(lambda n: [3] * n)),
        PredictorOutputError,
        "3",
        "labels or numbers",
        "task='label'",
    ),
    "NaN": (
        explain(array(lambda n: [NAN] * n)),
        PredictorOutputError,
        "nan for 1 of 1 rows of one call, first for row 0: [1.0, -1.0,",
        "finite numbers",
        "Call `model` on that row by hand.",
    ),
    "infinity": (explain(array(lambda n: [-np.inf] * n)), PredictorOutputError, "-inf for 1 of 1", "finite", None),
    "beyond": (
        explain(array(lambda n: [7.5] * n), output_range=(-1, 1)),
        PredictorOutputError,
        "7.5",
        "(-1, 1)",
        "output_range=(",
    ),
}


@pytest.mark.parametrize("case", TABLE)
def test_a_message_names_what_was_received_and_what_is_needed(case):
    call, error, received, needed, _ = TABLE[case]
    with pytest.raises(errors.AnchorlineError) as caught:
        call()
    assert type(caught.value) is error
    message = str(caught.value)
    assert received in message
    assert needed in message
    assert "\n" not in message
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (error, message)


@pytest.mark.parametrize("case", [case for case, row in TABLE.items() if row[4] is not None])
def test_a_message_names_what_to_type(case):
    call, error, _, _, advice = TABLE[case]
    with pytest.raises(error) as caught:
        call()
    assert advice in str(caught.value)


@pytest.mark.parametrize(
    "case", ["x 0-D", "x empty", "x ragged", "x text", "k 0", "sigma < 0", "queries 0", "NaN", "infinity"]
)
def test_a_message_holds_code_to_copy(case):
    """The message has code in backticks, or a keyword with a value."""
    call, error, *_ = TABLE[case]
    with pytest.raises(error) as caught:
        call()
    assert re.search(r"`[^`]+`|\b[a-z_]+=[\w'\"(.]", str(caught.value))


INVALID_ARGUMENTS = [
    case for case, row in TABLE.items() if row[1] in (InstanceError, ParameterError) and case != "no model"
]


@pytest.mark.parametrize("case", INVALID_ARGUMENTS)
def test_an_invalid_argument_costs_at_most_one_query(case):
    """At most x itself is queried, because models may be slow or cost money."""
    n_queries = 0

    def model(z):
        nonlocal n_queries
        n_queries += len(z)
        return good(z)

    call, error, *_ = TABLE[case]
    options = inspect.getclosurevars(call).nonlocals
    with pytest.raises(error):
        explained(model, options["x"], **options["options"])
    assert n_queries <= 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("k", np.int64(3)),
        ("queries", np.int32(300)),
        ("seed", np.uint8(7)),
        ("alternatives", np.int64(1)),
        ("sigma", np.float32(0.5)),
        ("confidence", np.float32(0.75)),
        ("time_limit", np.float32(30)),
    ],
)
def test_numpy_numbers_are_numbers(name, value):
    ours, plain = (explain(**{"queries": 200} | {name: each})() for each in (value, value.item()))
    assert ours.to_json() == plain.to_json()


def test_numpy_numbers_count_copies_and_facts():
    explainer = al.Explainer(good, al.Hypercube())
    assert len(explainer.copies(X, n=np.int64(5))) == 5
    assert explainer.frontier(X, ks=np.arange(1, 3)).points == explainer.frontier(X, ks=[1, 2]).points


def test_an_unknown_keyword_is_a_type_error():
    with pytest.raises(TypeError, match="querys"):
        explained(good, X, querys=5)


@pytest.mark.parametrize("bad", [raises, lambda z: np.full(len(z), NAN), lambda z: np.zeros((len(z), 2, 2))])
@pytest.mark.parametrize("when", [1, 2, 3])
def test_an_error_leaves_no_state_behind(bad, when):
    """Once its model answers again, the same explainer gives the same explanation as a new one."""
    calls = 0

    def model(z):
        nonlocal calls
        calls += 1
        return bad(z) if calls == when else good(z)

    explainer = al.Explainer(model, al.Hypercube())
    answer = None
    with pytest.raises((PredictorError, PredictorOutputError, ParameterError)):
        answer = explainer.explain(X, queries=9000)
    assert answer is None
    assert calls == when  # no query after the error
    assert explainer.explain(X, queries=9000).to_json() == explained(good, X, queries=9000).to_json()


# --- the tree of errors ------------------------------------------------------------------------------

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, Exception) and value.__module__ == errors.__name__
]
BUILT = [
    errors.PredictorOutputError.wrong_shape((5, 2), 5),
    errors.PredictorOutputError.wrong_shape((5, 1), 5),
    errors.CertificateError.crossed(0.25, 0.5),
    errors.MissingDependencyError.for_package("pyscipopt", "scip"),
]


@pytest.mark.parametrize(
    "error", [cls("what happened", 5) for cls in CLASSES] + BUILT, ids=lambda error: type(error).__name__
)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_every_error_pickles(error, protocol):
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is type(error)
    assert again.args == error.args
    assert str(again) == str(error)


@pytest.mark.parametrize("cls", CLASSES)
def test_every_error_is_ours_and_a_builtin(cls):
    assert issubclass(cls, errors.AnchorlineError | Warning)
    assert cls.__doc__
    if cls is not errors.AnchorlineError:
        builtins = [base for base in cls.__mro__ if base.__module__ == "builtins"]
        assert builtins[0] not in (Exception, BaseException, object)


def test_built_errors_name_what_to_type():
    texts = [str(error) for error in BUILT]
    assert "(5, 2)" in texts[0]
    assert "predict_proba(X)[:, 1]" in texts[0]
    assert ".ravel()" in texts[1]
    assert "0.5 exceeds objective 0.25" in texts[2]
    assert "pip install 'anchorline[scip]'" in texts[3]
