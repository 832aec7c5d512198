"""Common models on common tables: each explanation adds up to the prediction and is verified."""

import copy
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

import anchorline as al
from anchorline.errors import ParameterError, PredictorError, PredictorOutputError

OPTIONS = {"k": 4, "queries": 600}
N = 240


def mixed(seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(18, 80, N),
            "hours": np.where(rng.random(N) < 0.1, np.nan, rng.normal(40, 10, N).round(1)),
            "work": pd.Series(
                np.where(rng.random(N) < 0.1, None, rng.choice(["Private", "State"], N)), dtype="str"
            ),
            "plan": pd.Categorical(rng.choice(["basic", "gold"], N), categories=["unused", "basic", "gold"]),
            "member": rng.random(N) < 0.5,
        }
    )
    level = (frame.age - 45) / 20 + (frame.hours.fillna(40) - 40) / 10 + (frame.work == "Private") - frame.member
    return frame, level + rng.normal(0, 0.3, N)


FRAME, LEVEL = mixed()
YES = np.where(LEVEL > 0, "yes", "no")
FOUR = pd.cut(LEVEL, [-99, -1, 0, 1, 99], labels=["d", "c", "b", "a"]).astype(str).to_numpy()
NUMBERS = FRAME[["age", "hours"]].fillna(40.0)


def pipeline(final, numbers=("age", "hours", "member"), texts=("work", "plan")):
    encode = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="none", missing_values=None),
        OneHotEncoder(handle_unknown="ignore"),
    )
    fill = make_pipeline(SimpleImputer(), StandardScaler())
    return make_pipeline(ColumnTransformer([("n", fill, list(numbers)), ("t", encode, list(texts))]), final)


def check(explanation, model, table, number):
    """Assert that the terms sum to the model's output, and that the JSON can be verified."""
    assert explanation.prediction == pytest.approx(number, abs=1e-12)
    assert explanation.base + explanation.contributions.sum() == pytest.approx(number, abs=1e-12)
    verification = al.verify(explanation.to_json(), model, table, seed=1)
    assert verification.holds, str(verification)
    assert "nan" not in str(explanation)


# --- pipelines -------------------------------------------------------------------------------------------


def object_texts(frame):
    return frame.astype({"work": object, "plan": object}).where(frame.notna(), None)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_pipeline_on_mixed_data_with_holes(kind):
    train = object_texts(FRAME).astype({"hours": float, "age": int, "member": bool})
    if kind == "polars":
        train = pl.from_pandas(FRAME.astype({"plan": "str"})).with_columns(pl.col("member").cast(pl.Int8))
    model = pipeline(LogisticRegression()).fit(train, YES)
    table = al.Table(train)
    explanation = al.Explainer(model, table, output="yes").explain(5, **OPTIONS)
    check(explanation, model, table, model.predict_proba(train[5:6])[0, 1])
    assert explanation.output.name == "yes"
    assert {*table.at(5).names} == set(FRAME.columns)


def test_a_search_over_pipelines():
    train = object_texts(FRAME).astype({"hours": float, "age": int, "member": bool})
    search = GridSearchCV(pipeline(LogisticRegression()), {"logisticregression__C": [0.1, 1.0]}, cv=2)
    model, table = search.fit(train, YES), al.Table(train)
    check(al.Explainer(model, table).explain(0, **OPTIONS), model, table, model.predict_proba(train[:1]).max())


# --- native categories -----------------------------------------------------------------------------------


def booster(name):
    native = FRAME.assign(work=FRAME["work"].astype("category"))
    if name == "XGBoost":
        from xgboost import XGBClassifier

        return XGBClassifier(n_estimators=10, max_depth=3, n_jobs=1, enable_categorical=True), native, YES == "yes"
    if name == "LightGBM":
        from lightgbm import LGBMClassifier

        return LGBMClassifier(n_estimators=10, n_jobs=1, verbose=-1), native, YES
    if name == "CatBoost":
        from catboost import CatBoostClassifier

        texts = native["work"].cat.add_categories("none").fillna("none")
        model = CatBoostClassifier(
            iterations=10,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
            cat_features=["work", "plan"],
        )
        return model, native.assign(work=texts), YES
    return HistGradientBoostingClassifier(max_iter=10, categorical_features="from_dtype"), native, YES


def test_a_catboost_regressor_has_an_empty_list_of_classes_and_is_explained_as_a_number():
    from catboost import CatBoostRegressor

    inputs, target = FRAME[["age", "hours"]].fillna(0.0), FRAME["age"] * 2.0
    model = CatBoostRegressor(iterations=5, thread_count=1, verbose=False, allow_writing_files=False)
    explanation = al.Explainer(model.fit(inputs, target), inputs).explain(0, **OPTIONS)
    assert len(model.classes_) == 0
    assert explanation.output.kind == "number"
    assert explanation.prediction == pytest.approx(float(model.predict(inputs[:1])[0]))


def test_scores_that_are_none_of_the_models_classes_are_not_taken_for_labels():
    from catboost import CatBoost

    parameters = {"loss_function": "Logloss", "iterations": 5, "verbose": 0, "allow_writing_files": False}
    inputs = FRAME[["age", "hours"]].fillna(0.0)
    model = CatBoost(parameters).fit(inputs, (YES == "yes").astype(int))
    scorer = SimpleNamespace(classes_=(0, 1), predict=model.predict)
    with pytest.raises(ParameterError, match=r"classes are \[0, 1\].*it answers.*task='number'"):
        al.Explainer(scorer, inputs).explain(0, **OPTIONS)
    scored = al.Explainer(model, inputs, task="number").explain(0, **OPTIONS)
    assert scored.prediction == pytest.approx(float(model.predict(inputs[:1])[0]))


def test_a_booster_of_xgboost_is_asked_as_if_it_came_from_a_file():
    import xgboost

    inputs = FRAME[["age", "hours"]].astype(float)
    matrix = xgboost.DMatrix(inputs, YES == "yes")
    model = xgboost.train({"objective": "binary:logistic", "nthread": 2}, matrix, 5)
    explanation = al.Explainer(model, inputs, output=1).explain(0, **OPTIONS)
    assert explanation.prediction == pytest.approx(float(model.predict(matrix)[0]))
    assert explanation.output.is_probability


@pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")  # all are near 0 or 1
def test_probabilities_added_up_in_float32_may_be_a_little_below_0_and_above_1():
    def forest(rows):
        yes = np.where(rows["age"] < 40, np.float32(-3.6e-7), np.float32(1.0000004))
        return np.column_stack([yes, 1 - yes])

    table = al.Table(FRAME[["age", "hours"]])
    for row in range(20):
        explanation = al.Explainer(forest, table).explain(row, **OPTIONS)
        assert explanation.output.is_probability
        assert explanation.prediction == 1.0


@pytest.mark.parametrize("name", ["XGBoost", "LightGBM", "CatBoost", "scikit-learn"])
def test_gradient_boosting_on_native_categories(name):
    model, train, target = booster(name)
    if name == "XGBoost":
        target = target.astype(int)
    model.fit(train, target)
    table = al.Table(train)
    explanation = al.Explainer(model, table).explain(train.iloc[7], **OPTIONS)
    check(explanation, model, table, float(model.predict_proba(train.iloc[[7]]).max()))
    assert explanation.output.name in {"yes", "no", "0", "1"}


@pytest.mark.parametrize("name", ["XGBoost", "LightGBM", "CatBoost"])
def test_boosters_fitted_on_arrays(name):
    model, _, _ = booster(name)
    if name == "CatBoost":
        model.set_params(cat_features=None)
    model.fit(NUMBERS.to_numpy(), (LEVEL > 0).astype(int).to_numpy())
    for table in (al.Table(NUMBERS), al.Table(NUMBERS.to_numpy())):
        explanation = al.Explainer(model, table, input="array").explain(0, **OPTIONS)
        check(explanation, model, table, float(model.predict_proba(NUMBERS.to_numpy()[:1]).max()))


# --- regressors ------------------------------------------------------------------------------------------


def test_a_regressor_in_its_own_units():
    model = HistGradientBoostingRegressor(max_iter=10).fit(NUMBERS, 1000 * LEVEL)
    table = al.Table(NUMBERS)
    explanation = al.Explainer(model, table, output="price").explain(3, k=4)
    number = model.predict(NUMBERS[3:4])[0]
    assert abs(explanation.base + explanation.contributions.sum() - number) <= 1e-12 * abs(number)
    predictions = model.predict(NUMBERS)
    assert (explanation.output.low, explanation.output.high) == (predictions.min(), predictions.max())
    assert al.verify(explanation.to_json(), model, table).holds


@pytest.mark.filterwarnings("ignore::anchorline.errors.SetupWarning")  # it is constant
def test_a_constant_regressor():
    explanation = al.Explainer(lambda X: np.full(len(X), 7.5), al.Table(NUMBERS)).explain(0, **OPTIONS)
    assert explanation.prediction == explanation.base == 7.5


def test_several_outputs_need_a_column():
    model = LinearRegression().fit(NUMBERS, np.c_[LEVEL, -3 * LEVEL])
    table = al.Table(NUMBERS)
    with pytest.raises(ParameterError, match=r"2 numbers per row.*Type output=0"):
        al.Explainer(model, table).explain(0)
    explanation = al.Explainer(model, table, output=1).explain(0, **OPTIONS)
    assert explanation.output.name == "output 1"
    check(explanation, model, table, model.predict(NUMBERS[:1])[0, 1])


def test_a_model_that_fails_on_training_rows_is_named():
    def fragile(rows):
        if len(rows) == N:
            raise ValueError("boom")
        return rows["age"] / 7

    with pytest.raises(PredictorError, match="boom"):
        al.Explainer(fragile, al.Table(NUMBERS)).explain(0)
    with pytest.raises(PredictorOutputError, match="nan for"):
        al.Explainer(lambda X: np.where(len(X) == N, np.nan, X["age"] / 7), al.Table(NUMBERS)).explain(0)


# --- classes ---------------------------------------------------------------------------------------------


def test_four_classes_each_and_together():
    train = object_texts(FRAME).astype({"hours": float, "age": int, "member": bool})
    model = pipeline(LogisticRegression(max_iter=500)).fit(train, FOUR)
    table, scores = al.Table(train), model.predict_proba(train[9:10])[0]
    explanations = [al.Explainer(model, table, output=label).explain(9, **OPTIONS) for label in "abcd"]
    for explanation, number in zip(explanations, scores, strict=True):
        check(explanation, model, table, number)
    assert sum(explanation.prediction for explanation in explanations) == pytest.approx(1, abs=1e-12)
    predicted = al.Explainer(model, table).explain(9, **OPTIONS)
    assert predicted.output.name == model.classes_[scores.argmax()]
    assert predicted.contributions.tolist() == explanations[scores.argmax()].contributions.tolist()
    assert al.Explainer(model, table, output=2).explain(9, **OPTIONS).to_json() == explanations[2].to_json()


@pytest.mark.parametrize(
    ("target", "outputs", "name"),
    [
        ((LEVEL > 0).astype(int), [1, "1", 1.0, np.int64(1), True], "1"),
        (LEVEL > 0, [True, "True", np.bool_(True), 1], "True"),
        (YES, ["yes", np.str_("yes")], "yes"),
    ],
)
def test_a_class_by_its_label(target, outputs, name):
    model, table = LogisticRegression().fit(NUMBERS, target), al.Table(NUMBERS)
    explanations = [al.Explainer(model, table, output=output).explain(0, **OPTIONS) for output in outputs]
    assert {explanation.output.name for explanation in explanations} == {name}
    assert len({explanation.to_json() for explanation in explanations}) == 1
    check(explanations[0], model, table, model.predict_proba(NUMBERS[:1])[0, 1])


def test_methods_know_the_classes_of_their_object():
    model, table = LogisticRegression().fit(NUMBERS, YES), al.Table(NUMBERS)
    whole = al.Explainer(model, table, output="yes").explain(0, **OPTIONS)
    method = al.Explainer(model.predict_proba, table, output="yes").explain(0, **OPTIONS)
    assert whole.to_json() == method.to_json()
    check(method, model.predict_proba, table, model.predict_proba(NUMBERS[:1])[0, 1])
    with pytest.raises(ParameterError, match=r"'maybe'; the model's classes are 'no', 'yes'"):
        al.Explainer(model.predict_proba, table, output="maybe")


@pytest.mark.parametrize("target", [YES, (LEVEL > 0).astype(int)])
def test_scores_of_two_classes_are_one_number(target):
    model, table = LogisticRegression().fit(NUMBERS, target), al.Table(NUMBERS)
    explanation = al.Explainer(model.decision_function, table, output="score", threshold=0).explain(0, **OPTIONS)
    check(explanation, model.decision_function, table, model.decision_function(NUMBERS[:1])[0])
    assert explanation.holds is not None


def test_scores_of_many_classes_are_not_probabilities():
    model, table = LogisticRegression(max_iter=500).fit(NUMBERS, FOUR), al.Table(NUMBERS)
    explanation = al.Explainer(model.decision_function, table, output="b").explain(0, **OPTIONS)
    check(explanation, model.decision_function, table, model.decision_function(NUMBERS[:1])[0, 1])
    assert not explanation.output.is_probability


def test_a_function_with_classes():
    model, table = LogisticRegression().fit(NUMBERS, YES), al.Table(NUMBERS)

    def ask(rows):
        return model.predict_proba(rows)

    explanation = al.Explainer(ask, table, output="good", classes=["bad", "good"]).explain(0, **OPTIONS)
    check(explanation, ask, table, model.predict_proba(NUMBERS[:1])[0, 1])
    with pytest.raises(ParameterError, match=r"2 columns without names.*classes=.*output=0"):
        al.Explainer(ask, table, output="good").explain(0)
    with pytest.raises(ParameterError, match="3 classes were given, but the model returns 2 columns"):
        al.Explainer(ask, table, classes=["a", "b", "c"]).explain(0)


# --- labels ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [FOUR, (LEVEL > 0).astype(int), LEVEL > 0])
def test_a_classifier_without_probabilities_explains_its_label(target):
    model, table = LinearSVC().fit(NUMBERS, target), al.Table(NUMBERS)
    explanation = al.Explainer(model, table).explain(0, **OPTIONS)
    check(explanation, model, table, 1.0)
    label = model.predict(NUMBERS[:1])[0]
    assert explanation.output.decision == label
    assert type(explanation.output.decision) is type(label.item() if hasattr(label, "item") else label)
    with pytest.raises(
        ParameterError, match=r"which is a class, but without class scores, only the label predicted"
    ):
        al.Explainer(model, table, output=model.classes_[1])


def test_texts_are_labels_and_integers_are_asked_about():
    model, table = DecisionTreeClassifier(max_depth=3).fit(NUMBERS, FOUR), al.Table(NUMBERS)
    check(al.Explainer(model.predict, table, output="grade").explain(0, **OPTIONS), model.predict, table, 1.0)
    check(al.Explainer(model, table, task="label").explain(0, **OPTIONS), model, table, 1.0)

    def codes(rows):
        return rows["age"].to_numpy() // 10

    with pytest.raises(PredictorOutputError, match=r"labels or numbers\? .*task='label', otherwise task='number'"):
        al.Explainer(codes, table).explain(0)
    assert (
        al.Explainer(codes, table, task="label").explain(0, **OPTIONS).output.decision == NUMBERS["age"][0] // 10
    )
    numbers = al.Explainer(codes, table, task="number").explain(0, **OPTIONS)
    check(numbers, codes, table, NUMBERS["age"][0] // 10)


# --- arrays and frames -----------------------------------------------------------------------------------


@pytest.mark.parametrize("final", [LogisticRegression(), make_pipeline(StandardScaler(), LogisticRegression())])
def test_an_estimator_fitted_on_arrays_is_given_arrays(final):
    """Given a frame, the estimator would warn, and warnings are errors in these tests."""
    model = copy.deepcopy(final).fit(NUMBERS.to_numpy(), YES)
    expected = model.predict_proba(NUMBERS.to_numpy()[:1]).max()
    for train in (NUMBERS, pl.from_pandas(NUMBERS), pl.from_pandas(NUMBERS).to_arrow(), NUMBERS.to_numpy()):
        table = al.Table(train)
        for one in (model, model.predict_proba):
            explanation = al.Explainer(one, table).explain(0, **OPTIONS)
            assert explanation.output.choices.input == "array"
            check(explanation, one, table, expected)


def test_frames_with_whole_numbers_as_labels():
    """scikit-learn treats whole numbers as if the frame had no column names."""
    train = NUMBERS.set_axis([1, 0], axis=1)
    model, table = LogisticRegression().fit(train, YES), al.Table(train)
    check(al.Explainer(model, table).explain(0, **OPTIONS), model, table, model.predict_proba(train[:1]).max())


def test_a_function_of_arrays():
    def only_arrays(rows):
        assert type(rows) is np.ndarray
        return rows[:, 0] / 100

    table = al.Table(NUMBERS)
    with pytest.raises(PredictorError, match="pass input='array'"):
        al.Explainer(only_arrays, table).explain(0)
    explanation = al.Explainer(only_arrays, table, input="array").explain(0, **OPTIONS)
    check(explanation, only_arrays, table, NUMBERS["age"][0] / 100)


@pytest.mark.parametrize("error", [ValueError("database is down"), NotFittedError("fit it"), KeyError("age")])
def test_arrays_are_not_the_answer_to_every_error(error):
    def fail(rows):
        raise error

    with pytest.raises(PredictorError, match=r"\)\. Call the model on such a DataFrame by hand\.$"):
        al.Explainer(fail, al.Table(NUMBERS)).explain(0)


@pytest.mark.parametrize("convert", [lambda frame: frame, pl.from_pandas, pa.Table.from_pandas, np.asarray])
def test_the_row_whose_answer_is_not_finite_is_quoted(convert):
    def fail(rows):
        ages = np.asarray(rows)[:, 0]
        return np.where(ages == ages[1], np.nan, 0.5)

    with pytest.raises(PredictorOutputError, match=r"first for row 1: [\[{].*\d+.*[\]}]\. It must return finite"):
        al.Explainer(fail, al.Table(convert(NUMBERS))).explain(0)


def test_an_array_of_mixed_data_holds_objects():
    batches = []

    def only_arrays(rows):
        batches.append(rows)
        return np.array([row[0] for row in rows]) / 100

    al.Explainer(only_arrays, al.Table(FRAME), input="array").explain(0, **OPTIONS)
    rows = np.concatenate(batches)
    assert rows.dtype == object
    assert {type(value) for value in rows[:, 1]} == {float}
    assert set(rows[:, 2]) == {"Private", "State", None}


def test_a_function_of_frames():
    def only_frames(rows):
        assert list(rows.columns) == list(FRAME.columns)
        assert list(rows.dtypes) == list(FRAME.dtypes)
        return rows["age"] / 100

    table = al.Table(FRAME)
    check(al.Explainer(only_frames, table).explain(0, **OPTIONS), only_frames, table, FRAME["age"][0] / 100)


def test_a_bare_frame_is_a_table():
    model = LogisticRegression().fit(NUMBERS, YES)
    bare = al.Explainer(model, NUMBERS).explain(0, **OPTIONS)
    assert bare.to_json() == al.Explainer(model, al.Table(NUMBERS)).explain(0, **OPTIONS).to_json()


def test_a_model_may_spoil_its_input():
    def polite(rows):
        return rows["age"].to_numpy() / 100 + rows["hours"].to_numpy() / 1000

    def rude(rows):
        answer = polite(rows)
        rows.loc[:, "age"] = 0
        rows.iloc[:, 1] = -1.0
        return answer

    train, table = NUMBERS.copy(), al.Table(NUMBERS)
    expected = al.Explainer(polite, table).explain(0, **OPTIONS).to_json()
    assert al.Explainer(rude, al.Table(train)).explain(train.iloc[0], **OPTIONS).to_json() == expected
    pd.testing.assert_frame_equal(train, NUMBERS)


# --- verification detects false claims -------------------------------------------------------------------


def test_another_model_table_or_class_does_not_hold():
    model, table = RandomForestClassifier(5, random_state=0).fit(NUMBERS, YES), al.Table(NUMBERS)
    text = al.Explainer(model, table, output="yes").explain(0, **OPTIONS).to_json()
    assert al.verify(text, model, table).holds
    other = RandomForestClassifier(5, random_state=1).fit(NUMBERS, YES)
    changed = NUMBERS.copy()
    changed.loc[17, "hours"] += 1e-9
    swapped = copy.deepcopy(model)
    swapped.classes_ = swapped.classes_[::-1]
    for one, space in (
        (other, table),
        (model, al.Table(changed)),
        (model, al.Table(NUMBERS, cuts={"age": [33.3]})),
        (swapped, table),
        (lambda X: model.predict_proba(X)[:, ::-1], table),
    ):
        assert al.verify(text, one, space).outcome.value == "does not hold"


# --- forms of the row ------------------------------------------------------------------------------------


def test_all_forms_of_a_row_meet_the_model_alike():
    train = object_texts(FRAME).astype({"hours": float, "age": int, "member": bool})
    model = pipeline(LogisticRegression()).fit(train, YES)
    explainer, series = al.Explainer(model, al.Table(train)), train.iloc[5]
    forms = [5, 5 - N, series, train.iloc[[5]], series.to_dict(), series.tolist(), tuple(series)]
    assert len({explainer.explain(form, **OPTIONS).to_json() for form in forms}) == 1
