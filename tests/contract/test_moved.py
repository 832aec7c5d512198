"""Import paths that were documented before the package had rooms still import, as the very same modules."""

import importlib
import subprocess
import sys

import pytest

from anchorline import _moved

# Names that the reference listed at the old paths.
DOCUMENTED = {
    "anchorline.assessment": ["Assessment", "assess", "flipped_sums"],
    "anchorline.binarizer": ["Binarizer"],
    "anchorline.evidence": ["Evidence"],
    "anchorline.explanation": ["Alternative", "Certificate", "Explanation", "Term", "Verdict"],
    "anchorline.explanations": ["AttributeSummary", "Explanations", "Failure", "Summary"],
    "anchorline.frontier": ["Frontier", "FrontierPoint"],
    "anchorline.guarantees.estimates": ["Estimate", "Interval"],
    "anchorline.investigation": ["gather", "investigate"],
    "anchorline.literals": ["Literal"],
    "anchorline.models": ["KINDS", "HttpLimits", "load_model"],
    "anchorline.models.onnx_file": ["load"],
    "anchorline.neighbors": ["NeighborSample"],
    "anchorline.optimize.certify": ["check"],
    "anchorline.optimize.solution": ["Solution", "Status"],
    "anchorline.outputs": ["resolve"],
    "anchorline.predictor": ["BATCH_ROWS", "Predictor"],
    "anchorline.sampling": ["DrawnFlips", "EnumeratedFlips", "stream_key"],
    "anchorline.verify": ["Outcome", "Verification", "verify"],
}


@pytest.mark.parametrize(("path", "names"), DOCUMENTED.items())
def test_documented_names_import_from_their_old_paths(path, names):
    module = importlib.import_module(path)
    assert not [name for name in names if not hasattr(module, name)]


@pytest.mark.parametrize("old", _moved.MOVED)
def test_an_old_path_is_the_module_itself(old):
    module = importlib.import_module(f"anchorline.{old}")
    assert module is importlib.import_module(f"anchorline.{_moved.MOVED[old]}")
    assert module.__spec__.name == module.__name__ == f"anchorline.{_moved.MOVED[old]}"


def test_old_paths_work_first_and_without_a_warning():
    code = "from anchorline.models import load_model; import anchorline.explanation as e; print(e.Term.__module__)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "anchorline.result.explanation"


def test_old_paths_are_attributes_too():
    code = "import anchorline as al; print(al.predictor.Predictor.__module__, al.models.load_model.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["anchorline.model.predictor", "load_model"]


def test_paths_that_never_were_are_still_errors():
    with pytest.raises(ModuleNotFoundError, match=r"anchorline\.nothing"):
        importlib.import_module("anchorline.nothing")
    with pytest.raises(ModuleNotFoundError, match=r"anchorline\.model\.loaders\.nothing"):
        importlib.import_module("anchorline.models.nothing")
