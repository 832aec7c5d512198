"""skops models answer as their originals do; types and trees that cannot be trusted are refused."""

import os
import zipfile

import numpy as np
import pytest
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.feature_selection import SelectFromModel
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from anchorline import errors
from anchorline.model.loaders import load_model
from helpers.model_tables import LABELS, NUMBERS, TABLE, fit_pipeline


@pytest.mark.parametrize(
    "final",
    [RandomForestClassifier(5, random_state=0), LogisticRegression(), HistGradientBoostingClassifier(max_iter=5)],
    ids=lambda final: type(final).__name__,
)
def test_a_skops_pipeline_answers_like_its_original(tmp_path, final):
    model = fit_pipeline(final)
    skops.io.dump(model, tmp_path / "model.skops")
    loaded = load_model(tmp_path / "model.skops")
    np.testing.assert_array_equal(loaded.predict_proba(TABLE), model.predict_proba(TABLE))


def test_skops_models_with_categories_load(tmp_path):
    frame = TABLE.assign(town=TABLE["town"].astype("category"))
    model = HistGradientBoostingClassifier(max_iter=5).fit(frame, LABELS)
    skops.io.dump(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "model.skops").predict(frame), model.predict(frame))


def test_an_unlisted_type_is_refused_and_named(tmp_path):
    path = tmp_path / "model.skops"
    skops.io.dump(make_pipeline(FunctionTransformer(os.path.basename), LogisticRegression()), path)
    with pytest.raises(errors.UntrustedError, match=r"posixpath.basename.*--trust posixpath.basename"):
        load_model(path)
    assert hasattr(load_model(path, trust=["posixpath.basename"]), "predict")
    skops.io.dump(KNeighborsClassifier().fit(NUMBERS, LABELS), path)
    with pytest.raises(errors.UntrustedError, match=r"sklearn.neighbors._kd_tree.KDTree"):
        load_model(path)
    with pytest.raises(errors.ParameterError, match=r"Type trust=\['a.B'\]"):
        load_model(path, trust="a.B")


@pytest.mark.parametrize("harm", ["child", "loop", "feature", "columns", "unknown", "tree"])
def test_a_tree_that_is_out_of_range_is_refused(tmp_path, harm):
    forest = RandomForestClassifier(2, random_state=0).fit(NUMBERS, LABELS)
    tree = forest.estimators_[0].tree_
    if harm == "child":
        tree.children_left[0] = 10**6
    elif harm == "loop":
        tree.children_left[0] = 0
    elif harm == "feature":
        tree.feature[0] = 10**6
    elif harm == "columns":
        forest.n_features_in_ = 0
    elif harm == "unknown":
        del forest.n_features_in_
    else:
        forest.estimators_[0].n_features_in_ = 1
    skops.io.dump(forest, tmp_path / "model.skops")
    with pytest.raises(errors.ModelFileError, match="refers to nodes or columns out of range"):
        load_model(tmp_path / "model.skops")


@pytest.mark.parametrize(
    "model",
    [
        BaggingClassifier(make_pipeline(StandardScaler(), DecisionTreeClassifier()), 2, max_features=1),
        VotingClassifier([("a", RandomForestClassifier(2)), ("b", HistGradientBoostingClassifier(max_iter=2))]),
        StackingClassifier([("a", GradientBoostingClassifier(n_estimators=2))], cv=2),
        AdaBoostClassifier(n_estimators=2),
        CalibratedClassifierCV(ExtraTreesClassifier(2), cv=2),
        make_pipeline(
            ColumnTransformer([("s", SelectFromModel(DecisionTreeClassifier()), ["net income", "children"])]),
            HistGradientBoostingClassifier(max_iter=2),
        ),
    ],
    ids=lambda model: type(model).__name__,
)
def test_valid_trees_are_not_refused(tmp_path, model):
    model.fit(NUMBERS, LABELS)
    skops.io.dump(model, tmp_path / "model.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "model.skops").predict(NUMBERS), model.predict(NUMBERS))


@pytest.mark.parametrize("field", ["left", "feature_idx"])
def test_a_boosted_tree_that_is_out_of_range_is_refused(tmp_path, field):
    model = HistGradientBoostingClassifier(max_iter=2).fit(NUMBERS, LABELS)
    model._predictors[0][0].nodes[field][0] = 10**6
    skops.io.dump(model, tmp_path / "model.skops")
    with pytest.raises(errors.ModelFileError, match="refers to nodes or columns out of range"):
        load_model(tmp_path / "model.skops")


def test_files_that_are_not_skops_files(tmp_path):
    path = tmp_path / "model.skops"
    path.write_bytes(b"tree\n")
    with pytest.raises(errors.ModelFileError, match="is not a skops file"):
        load_model(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "a")
    with pytest.raises(errors.ModelFileError, match=r"no schema.json"):
        load_model(path)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("schema.json", '{"__class__": "list"}')
    with pytest.raises(errors.ModelFileError, match="damaged"):
        load_model(path)
    skops.io.dump([1, 2], path)
    with pytest.raises(errors.ModelFileError, match="holds an object of type list"):
        load_model(path)
