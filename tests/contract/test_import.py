"""``import anchorline`` loads no other package; the first use loads NumPy and no heavier one."""

import json
import subprocess
import sys

import pytest

HEAVY = ["sklearn", "scipy", "pandas", "matplotlib", "fastapi", "narwhals", "polars", "pyarrow", "joblib"]
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
        "from anchorline import Explainer, Explanation, Hypercube, explain",
        "import anchorline.optimize, anchorline.guarantees, anchorline.spaces, anchorline.render.text",
        "import anchorline; dir(anchorline); anchorline.__all__",
        "import anchorline as al; e = al.explain(lambda z: z[:, 0] / 2, [1, -1], k=2); e.to_json(); str(e)",
    ],
)
def test_nothing_heavy_is_loaded(code):
    loaded = loaded_after(code)
    assert "anchorline" in loaded
    assert not loaded & {*HEAVY, *OPTIONAL}


def test_the_import_alone_does_not_load_numpy():
    assert "numpy" not in loaded_after("import anchorline; dir(anchorline); anchorline.verify")
    assert "numpy" in loaded_after("from anchorline import Explainer")


@pytest.mark.parametrize("first", ["anchorline.verify", "anchorline.verify.check", "anchorline.explainer"])
def test_verify_is_a_function_whatever_is_imported_first(first):
    assert "numpy" in loaded_after(f"import {first}, anchorline as al; assert callable(al.verify); al.Status")


def test_heavy_packages_come_on_first_use():
    """This proves that the test above would notice a heavy package."""
    assert "sklearn" in loaded_after("import anchorline; anchorline.Binarizer")
    assert "narwhals" in loaded_after(
        "import anchorline as al; al.explain(lambda z: z[:, 0] / 2, [1, -1], k=2).to_frame('pandas')"
    )


def test_the_import_prints_nothing():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import anchorline"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == done.stderr == ""
