"""Collections of texts and images on the command line: a column of a table, and the files of a folder."""

import gc
import weakref
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from anchorline.cli.app import run
from anchorline.cli.options import Given
from anchorline.cli.serve import ImageFiles, collection, image_files, texts_of
from anchorline.errors import InstanceError, ParameterError, TableFileError
from anchorline.studio.access import Proxy, StudioLimits

MODEL = """
import numpy as np

def score(texts):
    return np.array([0.5 + 0.3 * ("great" in text) for text in texts])

def length(rows):
    return rows["length"].to_numpy().astype(float)

def light(images):
    return images.reshape(len(images), -1).mean(axis=1) / 255
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "reviewer.py").write_text(MODEL)
    frame = pd.DataFrame({"id": [1, 2, 3], "review": [None, "great food", "slow"]})
    frame.to_csv(tmp_path / "reviews.csv", index=False)
    (tmp_path / "photos").mkdir()
    for name in ("b.png", "a.JPG"):
        Image.fromarray(np.arange(1200, dtype=np.uint8).reshape(20, 20, 3)).save(tmp_path / "photos" / name)
    (tmp_path / "photos" / "notes.txt").write_text("not an image")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


@pytest.fixture
def served(monkeypatch):
    """Return what would be served, instead of serving it."""
    found = []

    def prepare(model, **options):
        found.append((model, options))
        return SimpleNamespace(run=lambda: None, has_signal=False)

    monkeypatch.setattr("anchorline.studio.server.prepare", prepare)
    return found


def test_a_table_is_served(folder, served):
    pd.DataFrame({"length": range(40), "grade": [i % 7 for i in range(40)]}).to_csv("train.csv", index=False)
    options = ("--data", "train.csv", "--target", "grade", "--threshold", "20", "--port", "0", "--queue", "3")
    options += ("--behind-proxy", "10.0.0.1", "--name", "lengths", "--max-queries", "500", "--upload")
    assert run(["serve", "reviewer:length", *options]) == 0
    model, given = served[0]
    assert model.explainer.space.names == ("length",)
    assert model.truth[0] == "grade"
    assert (model.name, given["port"], given["with_token"]) == ("lengths", 0, True)
    assert given["proxy"] == Proxy("10.0.0.1", None, "")
    assert given["limits"] == StudioLimits(max_queries=500, queue=3, workers=2, timeout=60.0, max_upload=5_000_000)
    assert model.fingerprint is None


def test_a_column_of_texts_and_a_folder_of_images_are_served(folder, served):
    common = ("--output-range", "0", "1", "--threshold", "0.7")
    assert run(["serve", "reviewer:score", "--text", "reviews.csv", "--column", "review", *common]) == 0
    space = served[0][0].explainer.space
    assert (list(space.contents), space.column, space.first) == (["", "great food", "slow"], "review", 1)
    options = ("--images", "photos", "--segments", "grid", "--n-segments", "4")
    assert run(["serve", "reviewer:light", *options, *common]) == 0
    space = served[1][0].explainer.space
    assert list(space.titles) == ["a.JPG", "b.png"]
    assert len(space.at(0).names) == 4


def test_wrong_options_are_named(folder, served, capsys):
    for options, match in (
        ([], "either --demo"),
        (["reviewer:score", "--text", "reviews.csv"], "--column NAME"),
        (["reviewer:score", "--text", "reviews.csv", "--column", "text"], "'review'"),
        (["reviewer:score", "--text", "reviews.csv", "--images", "photos"], "two commands"),
        (["reviewer:score", "--text", "reviews.csv", "--data", "reviews.csv"], "either --demo"),
        (["--text", "reviews.csv", "--column", "review"], "without MODEL"),
        (["reviewer:light", "--images", "nowhere"], "nowhere"),
    ):
        assert run(["serve", *options]) != 0
        assert match in capsys.readouterr().err
    assert not served


def test_files_are_read_when_they_are_needed(folder):
    paths = image_files("photos")
    files = ImageFiles(paths)
    assert [path.name for path in paths] == ["a.JPG", "b.png"]
    assert len(files) == 2
    paths[1].write_bytes(b"not an image")
    assert files[0].shape == (20, 20, 3)
    with pytest.raises(InstanceError, match=r"b\.png"):
        files[1]
    with pytest.raises(InstanceError, match="no image file"):
        image_files(str(folder))


def test_only_two_images_stay_in_memory(folder):
    for i in range(4):
        Image.fromarray(np.zeros((100, 100, 3), dtype=np.uint8)).save(folder / "photos" / f"c{i}.png")
    files = ImageFiles(image_files("photos"))
    kept = [weakref.ref(files[i]) for i in range(len(files)) if files[i] is files[i]]
    assert len(kept) == 6
    gc.collect()
    assert [image() is not None for image in kept] == [False] * 4 + [True] * 2
    assert len(files[-1]) == 100


def test_texts_are_those_of_one_column(folder):
    assert texts_of("reviews.csv", "id") == ["1", "2", "3"]
    with pytest.raises(TableFileError, match="no column 'text'"):
        texts_of("reviews.csv", "text")
    with pytest.raises(ParameterError, match="--column"):
        collection(Given(text="reviews.csv", column=None, images=None))
