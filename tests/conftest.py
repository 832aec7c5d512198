"""What holds for every test: written modules are forgotten, and a test of a missing extra is skipped."""

import re
import sys
from importlib.util import find_spec

import pytest

from anchorline.errors import MissingDependencyError

# What extras install, by the names under which it is imported; pandas is what every test has.
OF_EXTRAS = """catboost clarabel cvxpy dask distributed fastapi gurobipy httpx lightgbm lime matplotlib onnx
onnxruntime PIL playwright polars prometheus_client psutil pyarrow pydantic pyscipopt pyspark ray rich schemathesis
shap skimage skl2onnx skops slise starlette typer uvicorn xgboost""".split()  # noqa: SIM905


def missing_extra(text: str) -> str:
    """Return the name of the package that an error says is missing, if it is one of an extra and is missing."""
    found = re.search(r"No module named '(\w+)", text)
    name = found[1] if found else ""
    return name if name in OF_EXTRAS and find_spec(name) is None else ""


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    """Skip a file that imports a package of a missing extra."""
    report = yield
    name = missing_extra(str(report.longrepr)) if report.failed else ""
    if name:
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {name} is not installed")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """Skip a test that needs a package of a missing extra."""
    report = yield
    error = call.excinfo.value if call.excinfo and report.failed else None
    is_ours = isinstance(error, MissingDependencyError) and error.__cause__ is not None
    name = missing_extra(str(error.__cause__ if is_ours else error)) if isinstance(error, ImportError) else ""
    if name:
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {name} is not installed")
    return report


@pytest.fixture(autouse=True)
def forget_written_modules(tmp_path_factory):
    """Forget modules from pytest's own folder: two tests may write `scorer.py`, and one process runs both."""
    before = len(sys.modules)
    yield
    if len(sys.modules) == before:
        return
    folder = str(tmp_path_factory.getbasetemp())
    for name, module in list(sys.modules.copy().items()):
        if str(vars(module).get("__file__")).startswith(folder):
            del sys.modules[name]
