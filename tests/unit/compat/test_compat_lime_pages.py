"""Pages, notebooks and figures of `LimeExplanation`."""

import errno
import os
import sys
import types

import pytest

from anchorline.compat import LimeTabularExplainer
from anchorline.errors import MissingDependencyError, OutputFileError

FEW = {"num_samples": 400}


def test_pages(iris, tmp_path):
    data, model = iris
    explainer = LimeTabularExplainer(data.data, class_names=["a & b", "b", "c"])
    one = explainer.explain_instance(data.data[0], model.predict_proba, labels=(0,), **FEW)
    two = explainer.explain_instance(data.data[0], model.predict_proba, top_labels=2, **FEW)
    for result, n in ((one, 1), (two, 2)):
        page = result.as_html(predict_proba=True, show_table=True, show_all=False)
        assert page.startswith("<!DOCTYPE html>")
        assert "<script" not in page
        assert page.count('class="anchorline"') == n
        result.save_to_file(tmp_path / "page.html")
        assert (tmp_path / "page.html").read_text(encoding="utf-8") == page
    assert "<title>a &amp; b, " in two.as_html()
    assert two.as_html(labels=[0]) == one.as_html()
    assert two._repr_html_().count('class="anchorline"') == 2
    with pytest.warns(UserWarning, match="show_all has no effect"):
        one.as_html(show_all=True)
    with pytest.raises(TypeError, match="show_everything"):
        one.as_html(show_everything=True)


def test_limes_positional_arguments(iris, tmp_path):
    data, model = iris
    result = LimeTabularExplainer(data.data).explain_instance(data.data[0], model.predict_proba, **FEW)
    result.save_to_file(tmp_path / "page.html", None, True, True)
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == result.as_html(None, True, True)
    with pytest.warns(UserWarning, match="predict_proba has no effect"):
        result.as_html([1], False)


def test_a_page_is_written_whole_or_not_at_all(iris, tmp_path, monkeypatch):
    data, model = iris
    result = LimeTabularExplainer(data.data).explain_instance(data.data[0], model.predict_proba, **FEW)
    with pytest.raises(OutputFileError, match="the folder does not exist"):
        result.save_to_file(tmp_path / "none" / "page.html")

    def fail(descriptor):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "fsync", fail)
    (tmp_path / "page.html").write_text("old")
    with pytest.raises(OutputFileError, match="the disk is full"):
        result.save_to_file(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text() == "old"


def test_show_in_notebook(iris, monkeypatch):
    data, model = iris
    result = LimeTabularExplainer(data.data).explain_instance(data.data[0], model.predict_proba, **FEW)
    displayed = []
    module = types.ModuleType("IPython.display")
    module.HTML, module.display = str, displayed.append
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", module)
    result.show_in_notebook(show_table=True, show_all=False)
    assert 'class="anchorline"' in displayed[0]
    monkeypatch.setitem(sys.modules, "IPython", None)
    monkeypatch.setitem(sys.modules, "IPython.display", None)
    with pytest.raises(MissingDependencyError, match="save_to_file"):
        result.show_in_notebook()


def test_without_matplotlib_the_extra_is_named(mixed, monkeypatch):
    rows, predict_proba, keywords = mixed
    result = LimeTabularExplainer(rows, **keywords).explain_instance(rows[3], predict_proba, **FEW)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingDependencyError, match=r"anchorline\[plot\]"):
        result.as_pyplot_figure()
