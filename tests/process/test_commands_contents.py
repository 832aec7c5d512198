"""Texts and images on the command line: explained, drawn, verified, and refused by name."""

import json

import numpy as np
import pytest
from PIL import Image

from anchorline.cli.inputs import read_image, read_text
from anchorline.errors import InstanceError

MODEL = """
import numpy as np

def score(texts):
    good = np.array([0.5 + 0.3 * ("great" in text.lower()) - 0.2 * ("slow" in text) for text in texts])
    return np.column_stack([1 - good, good])

def light(images):
    share = images[:, : images.shape[1] // 2].reshape(len(images), -1).mean(axis=1) / 255
    return np.column_stack([1 - share, share])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("contents")
    (place / "critic.py").write_text(MODEL)
    (place / "review.txt").write_bytes("\ufeffGreat food, but slow!".encode())
    pixels = np.random.default_rng(0).integers(0, 255, (300, 40, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(place / "photo.png")
    return place


@pytest.fixture
def run_in(folder, run_here, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.syspath_prepend(folder)
    return run_here


def test_a_text_is_explained_and_verified(run_in):
    done = run_in("explain", "critic:score", "--text-file", "review.txt", "-k", 3)
    assert done.returncode == 0, done.stderr
    assert "+0." in done.stdout
    assert '"Great"' in done.stdout
    done = run_in("explain", "critic:score", "--text", "Great", "--text", "slow day", "--format", "json")
    texts = ["".join(json.loads(line)["instance"]) for line in done.stdout.splitlines()]
    assert texts == ["Great", "slow day"]
    run_in("explain", "critic:score", "--text", "Great food", "--mask", "[M]", "--out", "why.json")
    assert run_in("verify", "why.json", "critic:score", "--mask", "[M]").returncode == 0
    assert run_in("verify", "why.json", "critic:score").returncode != 0


def test_rules_of_a_text_and_an_image_are_verified(run_in):
    done = run_in("rule", "critic:score", "--text", "Great food, but slow!", "--out", "rule.json")
    assert done.returncode == 0, done.stderr
    assert run_in("verify", "rule.json", "critic:score").stdout.startswith("The rule holds")
    options = ("--image", "photo.png", "--segments", "grid", "--n-segments", 8)
    done = run_in("rule", "critic:light", *options, "--queries", 600, "--out", "rule.json")
    assert done.returncode in (0, 6), done.stderr
    assert run_in("verify", "rule.json", "critic:light", *options).stdout.startswith("The rule holds")


def test_an_image_is_explained_drawn_and_verified(folder, run_in):
    options = ("--image", "photo.png", "--segments", "grid", "--n-segments", 8, "--queries", 200)
    done = run_in("explain", "critic:light", *options, "--out", "why.json")
    assert done.returncode == 0, done.stderr
    done = run_in("explain", "critic:light", *options, "--out", "why.png")
    assert (folder / "why.png").read_bytes().startswith(b"\x89PNG"), done.stderr
    same = ("--segments", "grid", "--n-segments", 8)
    assert run_in("verify", "why.json", "critic:light", "--image", "photo.png", *same).returncode == 0
    done = run_in("verify", "why.json", "critic:light", *same)
    assert "Pass the image itself: --image FILE." in done.stdout


def test_wrong_options_are_refused_by_name(run_in):
    for options, needed in [
        ((), "Neither --data nor a text or image"),
        (("--text", "a", "--data", "train.csv"), "needs no table"),
        (("--text", "a", "--image", "photo.png"), "in two commands"),
        (("--text", "..."), "no words"),
    ]:
        done = run_in("explain", "critic:score", *options)
        assert done.returncode != 0
        assert needed in done.stderr
        assert "Traceback" not in done.stderr


def test_files_that_cannot_be_read(folder, tmp_path):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    with pytest.raises(InstanceError, match="UTF-8"):
        read_text(str(tmp_path / "latin.txt"))
    with pytest.raises(InstanceError, match="cannot be read"):
        read_text(str(tmp_path / "nothing.txt"))
    with pytest.raises(InstanceError, match="its format is unknown"):
        read_image(str(folder / "review.txt"))
    cut = (folder / "photo.png").read_bytes()[:300]
    (tmp_path / "cut.png").write_bytes(cut)
    with pytest.raises(InstanceError, match="cannot be read as an image"):
        read_image(str(tmp_path / "cut.png"))
    gray = Image.fromarray(np.arange(16, dtype=np.uint16).reshape(4, 4) * 4000)
    gray.save(tmp_path / "gray.png")
    assert read_image(str(tmp_path / "gray.png")).shape == (4, 4)
    Image.new("P", (3, 2)).save(tmp_path / "palette.png")
    assert read_image(str(tmp_path / "palette.png")).shape == (2, 3, 3)
