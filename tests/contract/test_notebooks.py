"""The notebooks run from top to bottom without a network, and are stored without output."""

import json
import pathlib

import pytest

nbclient = pytest.importorskip("nbclient", reason="the notebooks need: pip install 'anchorline[test]'")
nbformat = pytest.importorskip("nbformat", reason="the notebooks need: pip install 'anchorline[test]'")

NOTEBOOKS = sorted((pathlib.Path(__file__).parents[2] / "examples" / "notebooks").glob("*.ipynb"))


def test_there_are_notebooks():
    assert len(NOTEBOOKS) >= 6


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_output_is_stored(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    nbformat.validate(notebook)
    for cell in notebook["cells"]:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_and_explains(path, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    )
    client.execute()
    shown = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("xplain" in output.get("text", "") for output in shown)
    assert not list(tmp_path.iterdir())
