"""Every ``__all__`` is sorted, complete and importable."""

import importlib
import inspect
import pathlib

import pytest

import anchorline

ROOT = pathlib.Path(anchorline.__file__).parent
ROOMS = sorted(path.parent.name for path in ROOT.glob("*/__init__.py") if "__all__" in path.read_text("utf-8"))
PACKAGES = ["anchorline", *(f"anchorline.{room}" for room in ROOMS)]
# Names may be added; none may be removed.
PROMISED = {
    "AnchorlineError",
    "AnswerCache",
    "Changes",
    "Explainer",
    "Explanation",
    "Explanations",
    "Frontier",
    "Hypercube",
    "Image",
    "Signal",
    "Table",
    "Text",
    "Verdict",
    "__version__",
    "verify",
}
GONE = {"Binarizer", "Certificate", "Literal", "Status", "assess", "explain"}  # of 0.1


def ruff_order(name):
    """Return the sort key of ruff's order (RUF022): constants, classes, other names."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_sorted_and_importable(package):
    module = importlib.import_module(package)
    assert module.__all__ == sorted(set(module.__all__), key=ruff_order)
    for name in module.__all__:
        assert getattr(module, name) is not None


@pytest.mark.parametrize("package", PACKAGES)
def test_all_is_exact(package):
    """Every class and function of the module without a leading underscore is in ``__all__``."""
    module = importlib.import_module(package)
    defined_here = {
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__.startswith("anchorline")
    }
    imported = _imported_for_own_use(module)
    unlisted = {name for name in defined_here - set(module.__all__) if getattr(module, name) not in imported}
    assert not unlisted


def _imported_for_own_use(module):
    """Return what a package imports for its own use: errors."""
    kinds = filter(inspect.isclass, vars(module).values())
    return [kind for kind in kinds if issubclass(kind, anchorline.AnchorlineError)]


def test_nothing_promised_is_missing():
    assert set(anchorline.__all__) >= PROMISED
    assert not set(anchorline.__all__) & GONE
    assert not [name for name in GONE if hasattr(anchorline, name)]


def test_dir_shows_all_and_only_that():
    assert dir(anchorline) == sorted(anchorline.__all__)


def test_star_import_brings_all_names():
    names = {}
    exec("from anchorline import *", names)
    assert set(anchorline.__all__) <= set(names)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match=r"anchorline.*no attribute 'expalin'"):
        anchorline.expalin  # noqa: B018


def test_the_version_is_the_distributions():
    from importlib.metadata import version

    assert anchorline.__version__ == version("anchorline")


@pytest.mark.parametrize("name", ["Explanation", "Explainer", "Table", "AnswerCache"])
def test_lazy_and_eager_names_are_the_same_objects(name):
    value = getattr(anchorline, name)
    assert value is getattr(importlib.import_module(value.__module__), name)
