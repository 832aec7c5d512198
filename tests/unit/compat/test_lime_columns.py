"""LIME's attributes, discretizers, statistics and sparse matrices: the same columns, cut at the same places."""

import warnings

import numpy as np
import pandas as pd
import pytest
from lime import lime_tabular
from lime.discretize import DecileDiscretizer, EntropyDiscretizer, QuartileDiscretizer
from lime.submodular_pick import SubmodularPick
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import FixedThresholdClassifier

from anchorline.compat import LimeTabularExplainer

FEW = {"num_samples": 400}


def lime_statistics(rows, discretizer):
    """Return LIME's statistics of an array of numbers, as the users of LIME compute them."""
    codes = discretizer.discretize(rows)
    counted = {j: np.unique(codes[:, j].astype(int), return_counts=True) for j in range(rows.shape[1])}
    return {
        "means": discretizer.means,
        "stds": discretizer.stds,
        "mins": discretizer.mins,
        "maxs": discretizer.maxs,
        "feature_values": {j: values.tolist() for j, (values, _) in counted.items()},
        "feature_frequencies": {j: counts.tolist() for j, (_, counts) in counted.items()},
    }


def test_attributes_of_categories_are_limes(mixed):
    rows, _, keywords = mixed
    theirs, ours = (
        explainer_type(rows, **keywords)
        for explainer_type in (lime_tabular.LimeTabularExplainer, LimeTabularExplainer)
    )
    assert ours.categorical_features == theirs.categorical_features == [0, 1, 2, 3]
    assert ours.categorical_names == theirs.categorical_names
    for column in (1, 2):  # categories
        assert ours.feature_values[column] == theirs.feature_values[column]
        assert ours.feature_frequencies[column].tolist() == theirs.feature_frequencies[column].tolist()
    for column in (0, 3):  # numbers: four intervals, with a quarter of the rows each
        assert ours.feature_values[column] == theirs.feature_values[column] == [0, 1, 2, 3]
        assert ours.feature_frequencies[column] == pytest.approx(theirs.feature_frequencies[column], abs=0.05)
    assert ours.discretizer.to_discretize == theirs.discretizer.to_discretize == [0, 3]


def test_columns_without_names():
    """'0 >= 0.66' looks like a statement about the number 0."""
    rows = np.random.default_rng(0).normal(size=(200, 2))
    explainer = LimeTabularExplainer(rows, mode="regression")
    result = explainer.explain_instance(rows[0], lambda rows: rows[:, 0], **FEW)
    assert explainer.feature_names == ["0", "1"]
    assert result.as_list()[0][0].split()[0 if "<=" not in result.as_list()[0][0] else 2] == "x0"
    frame = pd.DataFrame({"age": rows[:, 0], "pay": rows[:, 1]})
    assert LimeTabularExplainer(frame).feature_names == ["age", "pay"]


def test_the_discretizer_names_the_facts(mixed):
    rows, predict_proba, keywords = mixed
    explainer = LimeTabularExplainer(rows, **keywords)
    result = explainer.explain_instance(rows[3], predict_proba, num_features=4, **FEW)
    codes = explainer.discretizer.discretize(rows[3])
    facts = [explainer.discretizer.names[column][int(codes[column])] for column in (0, 3)]
    assert set(facts) & {text for text, _ in result.as_list()}
    assert codes[1:3].tolist() == rows[3, 1:3].tolist()  # categories stay
    assert explainer.discretizer.discretize(rows)[3].tolist() == codes.tolist()


def test_a_missing_number_is_the_last_interval():
    rows = np.array([[1.0], [2.0], [3.0], [np.nan]])
    explainer = LimeTabularExplainer(rows, mode="regression")
    assert explainer.discretizer.names[0][-1] == "x0 is missing"
    assert explainer.feature_values[0] == [0, 1, 2, 3]
    assert explainer.discretizer.discretize(rows)[:, 0].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("kind", [QuartileDiscretizer, DecileDiscretizer, EntropyDiscretizer])
def test_a_discretizer_of_lime_cuts_the_same_rows(kind, iris):
    data, _ = iris  # its columns have many ties, so that quartiles are values of several rows
    theirs = kind(data.data, [1], data.feature_names, labels=data.target, random_state=0)
    explainer = LimeTabularExplainer(data.data, categorical_features=[1], discretizer=theirs)
    assert explainer.discretizer.to_discretize == theirs.to_discretize == [0, 2, 3]
    assert explainer.discretizer.discretize(data.data).tolist() == theirs.discretize(data.data).tolist()


def test_statistics_give_rows_that_have_them(iris):
    data, model = iris
    theirs = QuartileDiscretizer(data.data, [], data.feature_names, random_state=0)
    stats = lime_statistics(data.data, theirs)
    with pytest.warns(UserWarning, match="columns independent of each other") as caught:
        explainer = LimeTabularExplainer(
            np.zeros((2, 4)), feature_names=data.feature_names, training_data_stats=stats
        )
    assert caught[0].filename == __file__
    rows = np.column_stack([column.values for column in explainer.table.schema.columns])
    drawn = theirs.undiscretize(theirs.discretize(rows))  # LIME's own draws from these statistics
    for j in range(4):
        codes = theirs.discretize(rows)[:, j].astype(int)
        shares = np.array(stats["feature_frequencies"][j]) / len(data.data)
        assert np.bincount(codes) / len(rows) == pytest.approx(shares, abs=0.001)
        for code in range(4):
            inside, theirs_inside = rows[codes == code, j], drawn[codes == code, j]
            assert stats["mins"][j][code] <= inside.min() <= inside.max() <= stats["maxs"][j][code]
            assert inside.mean() == pytest.approx(theirs_inside.mean(), abs=0.05)
            assert inside.std() == pytest.approx(theirs_inside.std(), abs=0.05)
    assert np.abs(np.corrcoef(rows.T) - np.eye(4)).max() < 0.1
    result = explainer.explain_instance(data.data[0], model.predict_proba, labels=(0,), num_features=2, **FEW)
    assert {text.split()[0] for text, _ in result.as_list(0)} == {"petal"}


def test_statistics_of_categories_and_of_an_interval_of_one_value():
    rows = np.array([[1.0, 5.0], [2.0, 5.0], [2.0, 5.0], [2.0, 9.0]] * 5)
    stats = lime_statistics(rows, QuartileDiscretizer(rows, [0], ["kind", "size"]))
    with pytest.warns(UserWarning, match="training_data_stats"):
        explainer = LimeTabularExplainer(rows[:2], categorical_features=[0], training_data_stats=stats)
    kinds, sizes = (column.values for column in explainer.table.schema.columns)
    assert np.unique(kinds, return_counts=True)[1].tolist() == [500, 1500]
    assert np.mean(sizes == 5) == 0.75
    assert explainer.feature_frequencies[1].tolist() == [0.75, 0.25]


@pytest.mark.parametrize("make", [sparse.csr_matrix, sparse.csc_matrix, sparse.csr_array])
def test_a_sparse_table_gives_sparse_rows_to_the_model(make):
    rows = np.random.default_rng(0).poisson(0.4, (300, 6)).astype(float)
    classifier = FixedThresholdClassifier(LogisticRegression(), threshold=0.7, pos_label="more")
    model = classifier.fit(rows, np.where(rows[:, 0] > rows[:, 1], "more", "less"))
    dense = LimeTabularExplainer(rows).explain_instance(rows[3], model.predict_proba, **FEW)
    received = set()

    def predict_proba(given):
        received.add(type(given))
        return model.predict_proba(given.toarray())

    table = make(rows)
    row = table[3] if make is sparse.csr_matrix else table[[3], :]
    for predict_fn in (predict_proba, model.predict_proba):
        result = LimeTabularExplainer(table).explain_instance(row, predict_fn, **FEW)
        assert result.as_list() == dense.as_list()
    assert received == {make}
    assert result.class_names == ["less", "more"]  # the method's own
    assert result.explanations == dense.explanations  # also in the model's own decisions


def test_numbers_are_cut_although_discretize_continuous_is_false(iris):
    data, model = iris
    with pytest.warns(UserWarning, match="discretize_continuous has no effect") as caught:
        explainer = LimeTabularExplainer(data.data, categorical_features=[1], discretize_continuous=False)
    assert caught[0].filename == __file__
    assert explainer.categorical_features == [1]
    usual = LimeTabularExplainer(data.data, categorical_features=[1])
    lists = [e.explain_instance(data.data[0], model.predict_proba, **FEW).as_list() for e in (explainer, usual)]
    assert lists[0] == lists[1]


def test_submodular_pick_takes_our_results(iris):
    data, model = iris
    explainer = LimeTabularExplainer(data.data, feature_names=data.feature_names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        picked = SubmodularPick(
            explainer,
            data.data[::30],
            model.predict_proba,
            "full",
            num_exps_desired=2,
            num_features=2,
            num_samples=200,
        )
    assert len(picked.sp_explanations) == 2
