"""Images: regions, hidden values, records, refusals and bounded memory."""

import json

import numpy as np
import pytest

from anchorline.errors import (
    FormatError,
    InstanceError,
    InstanceNeededError,
    MissingDependencyError,
    ParameterError,
)
from anchorline.explainer import Explainer
from anchorline.spaces.hypercube import Hypercube
from anchorline.spaces.regions import (
    LARGEST,
    Image,
    Signal,
    colors,
    cut_image,
    png_file,
    positions,
    recorded_picture,
    shown_picture,
)
from anchorline.spaces.text import Text


def photo(height=40, width=60, channels=3, dtype=np.uint8):
    rng = np.random.default_rng(0)
    shape = (height, width) if channels is None else (height, width, channels)
    waves = np.add.outer(np.sin(np.arange(height) / 5), np.cos(np.arange(width) / 7))
    noise = rng.random(shape) * 0.2
    image = (waves if channels is None else waves[:, :, None]) / 4 + 0.5 + noise
    image = (image - image.min()) / max(image.max() - image.min(), 1e-9)
    return image if np.dtype(dtype).kind == "f" else (image * np.iinfo(dtype).max).astype(dtype)


@pytest.mark.parametrize("hidden", ["mean", "blur", 0, (0, 128, 255), "image"])
@pytest.mark.parametrize("segments", ["slic", "grid"])
def test_requirements_for_a_space(segments, hidden):
    image = photo()
    hidden = np.full(image.shape, 7) if isinstance(hidden, str) and hidden == "image" else hidden
    space = Image(segments, hidden, n_segments=12)
    n = space.at(image)
    d = len(n.names)
    assert 4 <= d <= 24
    assert (n.realize_flips(np.zeros((1, d), dtype=bool)) == image).all()
    assert (n.original == image[None]).all()
    one_each = n.realize_flips(np.eye(d, dtype=bool))
    for j in range(d):
        inside = n.labels == j
        assert (one_each[j][~inside] == image[~inside]).all()
        assert (one_each[j][inside] == n.hidden[inside]).all()
    again = Image(segments, hidden, n_segments=12).at(n.instance)  # a small uint8 image is recorded as it is
    assert (again.key, again.names, again.instance) == (n.key, n.names, n.instance)
    assert json.loads(json.dumps(n.instance)) == n.instance
    flips = np.random.default_rng(0).random((6, d)) < 0.4
    assert (n.realize_flips(flips)[2:4] == n.realize_flips(flips[2:4])).all()
    assert n.realize_flips(np.asfortranarray(flips)).flags.c_contiguous


def test_hidden_values():
    image = np.array([[0, 10, 100, 200], [20, 30, 100, 201]], dtype=np.uint8)
    labels = np.array([[5, 5, 9, 9], [5, 5, 9, 9]])
    n = Image(labels).at(image)
    assert [n.fact(j).attribute for j in (0, 1)] == ["region 5", "region 9"]
    assert [n.fact(j).value for j in (0, 1)] == ["region 5 (left)", "region 9 (right)"]
    assert n.realize_flips(np.array([[True, False]]))[0].tolist() == [[15, 15, 100, 200], [15, 15, 100, 201]]
    assert n.realize_flips(np.array([[False, True]]))[0, 0].tolist() == [0, 10, 150, 150]
    assert Image(lambda given: labels, hidden=300).at(image).hidden.max() == 255  # stays in the type's range
    assert Image(labels, flatten=True).at(image).original.shape == (1, 8)
    assert Image(labels.tolist()).at(image).key == n.key


def test_regions_are_numbered_in_reading_order_and_named_by_their_places():
    labels, numbers = cut_image(photo(90, 90), "slic", 9)
    assert numbers == list(range(1, labels.max() + 2))
    assert labels[0, 0] == 0
    assert labels[-1, -1] == labels.max()
    assert positions(np.arange(9).reshape(3, 3)) == (
        ["top left", "top", "top right", "left", "center", "right", "bottom left", "bottom", "bottom right"]
    )


@pytest.mark.parametrize(
    "image",
    [
        photo(1, 1),
        photo(1, 1, None),
        photo(1, 9),
        photo(9, 1, 1),
        photo(40, 30, 4),
        photo(40, 30, 2),
        photo(40, 30, None, np.uint16),
        photo(40, 30, 3, np.uint16),
        photo(40, 30, None, float),
        photo(40, 30, 3, float) * 1000 - 500,
        photo(12, 13, 7),
        photo(20, 20, None) > 100,
        np.zeros((5, 5)),
        np.full((5, 5), -3),
    ],
    ids=lambda image: f"{image.shape}-{image.dtype}",
)
def test_images_of_every_kind(image):
    for segments in ("slic", "grid"):
        space = Image(segments, 7, n_segments=9)
        n = space.at(image)
        realized = n.realize_flips(np.ones((3, len(n.names)), dtype=bool))
        assert (realized.shape, realized.dtype) == ((3, *image.shape), image.dtype)
        rgb, labels = shown_picture(n.instance[3:])
        assert rgb.shape[:2] == labels.shape == image.shape[:2]
        assert labels.max() == len(n.names) - 1


@pytest.mark.parametrize(
    ("space", "values"),
    [
        (Image("grid"), np.arange(64.0).reshape(8, 8)),  # every pixel is a region, and its own mean
        (Image("grid", 0, n_segments=4), np.zeros((8, 8))),
        (Signal(4), np.repeat([1.0, 5.0, 2.0, 3.0], 6)),
    ],
)
def test_copies_that_would_all_be_equal_are_refused(space, values):
    with pytest.raises(InstanceError, match=r"all altered copies would be equal\. .* hidden=0"):
        Explainer(lambda arrays: arrays.reshape(len(arrays), -1).mean(axis=1), space).explain(values)


@pytest.mark.parametrize("space", [Image, Signal, Text, Hypercube])
def test_an_unknown_keyword_is_named(space):
    with pytest.raises(TypeError, match=rf"{space.__name__}\(\) got an unexpected keyword 'n_segment'"):
        space(n_segment=5)


@pytest.mark.parametrize(
    ("image", "needed"),
    [
        (np.zeros(5), r"shape \(5,\)"),
        (np.zeros((2, 3, 4, 3)), "explain_many"),
        (np.zeros((0, 4)), "must be numbers"),
        (np.full((2, 2), np.nan), "not finite"),
        ("picture.png", "must be numbers"),
        (np.array([["a", "b"]]), "must be numbers"),
        (None, "must be numbers"),
        ([[1, 2], [3]], "must be numbers"),
    ],
)
def test_what_is_not_an_image_is_refused(image, needed):
    with pytest.raises(InstanceError, match=needed):
        Image("grid").at(image)


def test_wrong_parameters_are_refused():
    for options in ({"segments": "quick"}, {"segments": None}, {"n_segments": 0}, {"n_segments": 2.5}):
        with pytest.raises(ParameterError, match="must be"):
            Image(**options)
    for hidden in ("black", [["a"]]):
        with pytest.raises(ParameterError, match="hidden is"):
            Image(hidden=hidden)
    with pytest.raises(InstanceError, match="hidden has shape"):
        Image("grid", hidden=(1, 2)).at(photo())
    with pytest.raises(InstanceError, match="one per pixel"):
        Image(np.zeros((3, 3), dtype=int)).at(photo())
    with pytest.raises(InstanceError, match=r"at most 4,000"):
        Image(np.arange(4900).reshape(70, 70)).at(np.zeros((70, 70)))


def test_without_scikit_image_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "skimage.segmentation", None)
    with pytest.raises(MissingDependencyError, match="image"):
        Image().at(photo())


def test_parameters_are_part_of_the_fingerprint():
    options = [{}, {"segments": "grid"}, {"segments": np.eye(3, dtype=int)}, {"hidden": "blur"}, {"hidden": 0}]
    spaces = [Image(**one) for one in [*options, {"hidden": 1}, {"n_segments": 9}, {"flatten": True}]]
    assert len({space.fingerprint for space in spaces}) == 8


def test_pictures_are_recorded_and_read():
    image, labels = photo(400, 700), cut_image(photo(400, 700), "grid", 30)[0]
    record = recorded_picture(image, labels)
    rgb, small = shown_picture(record)
    assert rgb.shape == (133, 233, 3)
    assert max(rgb.shape) <= LARGEST
    assert (rgb == colors(image)[1::3, 1::3]).all()
    assert set(small.ravel().tolist()) == set(labels.ravel().tolist())
    from io import BytesIO

    from PIL import Image as Pillow  # an independent reader of PNG files

    assert (np.asarray(Pillow.open(BytesIO(png_file(rgb)))) == rgb).all()


@pytest.mark.parametrize(
    "record",
    [["", []], ["!!!", [0, 1]], [None, None], ["AAAA", [0]], [5, 5], ["iVBORw0KGgo=", [0, 1, 2]], []],
)
def test_broken_pictures_are_refused(record):
    with pytest.raises(FormatError, match="cannot be read"):
        shown_picture(record)


def test_calls_are_small_for_ordinary_photos():
    assert Image("grid").at(photo(224, 224, 3, float)).rows_per_call == 55
    assert Image("grid").at(photo(8, 8, None)).rows_per_call == 4096
    large = np.zeros((2100, 2100))  # 35 MB in few pixels
    assert Image("grid", n_segments=4).at(large).rows_per_call == 1


def test_only_a_small_copy_of_an_image_is_recorded():
    space, image = Image("grid"), photo(300, 300)
    there = space.at(image)
    assert len(json.dumps(there.instance)) < 500_000
    with pytest.raises(InstanceNeededError, match="instance=image"):
        space.at(there.instance)
    with pytest.raises(InstanceNeededError, match="instance=image"):
        space.at(space.at(photo(dtype=float)).instance)
    gray = space.at(photo(30, 30, None))
    assert space.at(gray.instance).key == gray.key
    with pytest.raises(InstanceError, match="cannot be read"):
        space.at(["", [1, 2], "uint8", "!!!", []])


def test_lists_of_images():
    images = np.zeros((2, 8, 8))
    assert [len(Image("grid").instances(given)) for given in (images, list(images))] == [2, 2]
    with pytest.raises(ParameterError, match="list of images"):
        Image("grid").instances(images[0])
    assert (Image.noun, Image.default_k) == ("regions", 8)
