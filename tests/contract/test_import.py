"""``import anchorline`` loads no other package; the first use loads NumPy and narwhals, and no heavier one."""

import json
import subprocess
import sys

import pytest

HEAVY = ["sklearn", "scipy", "pandas", "matplotlib", "fastapi", "polars", "pyarrow", "joblib"]
EXPLAINED = (
    "import anchorline as al; e = al.Explainer(lambda z: z[:, 0] / 2, al.Hypercube()).explain([1, -1], k=2)"
)
OPTIONAL = ["pyscipopt", "gurobipy", "cvxpy", "clarabel", "lime"]


def loaded_after(code):
    """Return the top-level packages that a new process has loaded after it ran ``code``."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(sorted({{name.split('.')[0] for name in sys.modules}})))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    return set(json.loads(done.stdout.splitlines()[-1]))


@pytest.mark.parametrize(
    "code",
    [
        "import anchorline",
        "from anchorline import Explainer, Explanation, Hypercube, Verdict",
        "import anchorline.optimize, anchorline.guarantees, anchorline.spaces, anchorline.render.text",
        "import anchorline; dir(anchorline); anchorline.__all__",
        f"{EXPLAINED}; e.to_json(); str(e); e.details(); e.to_html()",
    ],
)
def test_nothing_heavy_is_loaded(code):
    loaded = loaded_after(code)
    assert "anchorline" in loaded
    assert not loaded & {*HEAVY, *OPTIONAL}


def test_the_import_alone_does_not_load_numpy():
    loaded = loaded_after("import anchorline; dir(anchorline); anchorline.verify")
    assert not loaded & {"numpy", "narwhals"}
    assert "numpy" in loaded_after("from anchorline import Explainer")


@pytest.mark.parametrize("first", ["anchorline.verify", "anchorline.verify.check", "anchorline.explainer"])
def test_verify_is_a_function_whatever_is_imported_first(first):
    assert "numpy" in loaded_after(f"import {first}, anchorline as al; assert callable(al.verify); al.Verdict")


def test_heavy_packages_come_on_first_use():
    """This proves that the test above would notice a heavy package."""
    assert "sklearn" in loaded_after("from anchorline.paper import Binarizer")
    assert "pandas" in loaded_after(f"{EXPLAINED}; e.to_frame('pandas')")


def test_the_import_prints_nothing():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import anchorline"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == done.stderr == ""
