"""Images and signals: regions, hidden values, records, refusals, bounded memory, and verification."""

import json
import tracemalloc

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

import anchorline as al
from anchorline.errors import (
    FormatError,
    InstanceError,
    InstanceNeededError,
    MissingDependencyError,
    ParameterError,
)
from anchorline.spaces.picture import LARGEST, colors, png_file, recorded_picture, shown_picture
from anchorline.spaces.segments import cut_image, positions


def photo(height=40, width=60, channels=3, dtype=np.uint8):
    rng = np.random.default_rng(0)
    shape = (height, width) if channels is None else (height, width, channels)
    waves = np.add.outer(np.sin(np.arange(height) / 5), np.cos(np.arange(width) / 7))
    noise = rng.random(shape) * 0.2
    image = (waves if channels is None else waves[:, :, None]) / 4 + 0.5 + noise
    image = (image - image.min()) / max(image.max() - image.min(), 1e-9)
    return image if np.dtype(dtype).kind == "f" else (image * np.iinfo(dtype).max).astype(dtype)


def brightness(images):
    """Return the mean of the upper left quarter, from 0 to 1."""
    n, height, width = images.shape[:3]
    return images[:, : height // 2, : width // 2].reshape(n, -1).mean(axis=1) / 255


@pytest.mark.parametrize("hidden", ["mean", "blur", 0, (0, 128, 255), "image"])
@pytest.mark.parametrize("segments", ["slic", "grid"])
def test_requirements_for_a_space(segments, hidden):
    image = photo()
    hidden = np.full(image.shape, 7) if isinstance(hidden, str) and hidden == "image" else hidden
    space = al.Image(segments, hidden, n_segments=12)
    n = space.at(image)
    d = len(n.literals)
    assert 4 <= d <= 24
    assert (n.realize(np.zeros((1, d), dtype=bool)) == image).all()
    assert (n.original == image[None]).all()
    one_each = n.realize(np.eye(d, dtype=bool))
    for j in range(d):
        inside = n.labels == j
        assert (one_each[j][~inside] == image[~inside]).all()
        assert (one_each[j][inside] == n.hidden[inside]).all()
    again = al.Image(segments, hidden, n_segments=12).at(n.instance)  # a small uint8 image is recorded as it is
    assert (again.key, again.literals, again.instance) == (n.key, n.literals, n.instance)
    assert json.loads(json.dumps(n.instance)) == n.instance
    flips = np.random.default_rng(0).random((6, d)) < 0.4
    assert (n.realize(flips)[2:4] == n.realize(flips[2:4])).all()
    assert n.realize(np.asfortranarray(flips)).flags.c_contiguous


def test_hidden_values():
    image = np.array([[0, 10, 100, 200], [20, 30, 100, 201]], dtype=np.uint8)
    labels = np.array([[5, 5, 9, 9], [5, 5, 9, 9]])
    n = al.Image(labels).at(image)
    assert [literal.text for literal in n.literals] == [
        "region 5 (left) is visible",
        "region 9 (right) is visible",
    ]
    assert n.realize(np.array([[True, False]]))[0].tolist() == [[15, 15, 100, 200], [15, 15, 100, 201]]
    assert n.realize(np.array([[False, True]]))[0, 0].tolist() == [0, 10, 150, 150]
    assert al.Image(lambda given: labels, hidden=300).at(image).hidden.max() == 255  # stays in the type's range
    assert al.Image(labels, flatten=True).at(image).original.shape == (1, 8)
    assert al.Image(labels.tolist()).at(image).key == n.key


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
        space = al.Image(segments, n_segments=9)
        n = space.at(image)
        realized = n.realize(np.ones((3, len(n.literals)), dtype=bool))
        assert (realized.shape, realized.dtype) == ((3, *image.shape), image.dtype)
        rgb, labels = shown_picture(n.instance[3:])
        assert rgb.shape[:2] == labels.shape == image.shape[:2]
        assert labels.max() == len(n.literals) - 1
        e = al.Explainer(lambda images: (images[:, 0, 0] != 0).reshape(len(images), -1).mean(axis=1), space)
        assert e.explain(image, k=2, n_samples=20, n_certify=20).to_html().count("<svg ") == 2


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
        al.Image("grid").at(image)


def test_wrong_parameters_are_refused():
    for options in ({"segments": "quick"}, {"segments": None}, {"n_segments": 0}, {"n_segments": 2.5}):
        with pytest.raises(ParameterError, match="must be"):
            al.Image(**options)
    for hidden in ("black", [["a"]]):
        with pytest.raises(ParameterError, match="hidden is"):
            al.Image(hidden=hidden)
    with pytest.raises(InstanceError, match="hidden has shape"):
        al.Image("grid", hidden=(1, 2)).at(photo())
    with pytest.raises(InstanceError, match="one per pixel"):
        al.Image(np.zeros((3, 3), dtype=int)).at(photo())
    with pytest.raises(InstanceError, match=r"at most 4,000"):
        al.Image(np.arange(4900).reshape(70, 70)).at(np.zeros((70, 70)))


def test_without_scikit_image_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "skimage.segmentation", None)
    with pytest.raises(MissingDependencyError, match="image"):
        al.Image().at(photo())


def test_parameters_are_part_of_the_fingerprint():
    options = [{}, {"segments": "grid"}, {"segments": np.eye(3, dtype=int)}, {"hidden": "blur"}, {"hidden": 0}]
    spaces = [al.Image(**one) for one in [*options, {"hidden": 1}, {"n_segments": 9}, {"flatten": True}]]
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


def test_a_large_image_needs_little_memory():
    """An image of 4,000 x 3,000 pixels has 36 MB; neighbors are made one at a time."""
    image = np.zeros((3000, 4000, 3), dtype=np.uint8)
    image[:1500, :2000] = 200
    n_rows = []

    def bright(images):
        n_rows.append(len(images))
        return images[:, ::100, ::100].astype(float).mean(axis=(1, 2, 3)) / 255

    tracemalloc.start()
    e = al.Explainer(bright, al.Image("grid", hidden=0, n_segments=4)).explain(image, k=2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert max(n_rows) == 1
    assert [term.literal.name for term in e.terms] == ["region 1"]
    assert peak < 700e6
    assert len(e.to_json()) < 300_000


def test_calls_are_small_for_ordinary_photos():
    assert al.Image("grid").at(photo(224, 224, 3, float)).rows_per_call == 55
    assert al.Image("grid").at(photo(8, 8, None)).rows_per_call == 4096


def test_a_model_of_digits_is_explained_and_verified_with_the_image():
    digits, numbers = load_digits(return_X_y=True)
    model = LogisticRegression(max_iter=3000).fit(digits, numbers)
    space = al.Image(np.arange(64).reshape(8, 8), hidden=0, flatten=True)
    explainer, image = al.Explainer(model, space), digits[3].reshape(8, 8)
    e = explainer.explain(image, k=5, n_samples=1000, n_certify=1000)
    assert e.output == "3"
    assert explainer.explain(image, k=5, n_samples=1000, n_certify=1000).to_json() == e.to_json()
    assert al.verify(e.to_json(), model, space, instance=image, seed=0).holds
    needed = al.verify(e.to_json(), model, space)
    assert "instance is needed" in str(needed)
    assert needed.outcome.name == "CANNOT_TELL"
    assert "not the recorded one" in str(al.verify(e.to_json(), model, space, instance=digits[4].reshape(8, 8)))
    with pytest.raises(InstanceNeededError, match="instance=image"):
        space.at(e.instance)
    many = explainer.explain_many(digits[3:5].reshape(2, 8, 8), k=5, n_samples=1000, n_certify=1000)
    assert many[0].to_json() == e.to_json()
    listed = explainer.explain_many([image], k=5, n_samples=1000, n_certify=1000)
    assert listed[0].to_json() == e.to_json()
    with pytest.raises(ParameterError, match="list of images"):
        explainer.explain_many(image)


def test_a_small_color_image_is_verified_from_its_json_alone():
    space, image = al.Image("grid", n_segments=9), photo(30, 30)
    e = al.Explainer(brightness, space, output_range=(0, 1)).explain(image, k=3)
    assert al.verify(e.to_json(), brightness, space, seed=0).holds
    gray = photo(30, 30, None)
    e = al.Explainer(brightness, space, output_range=(0, 1)).explain(gray, k=3)
    assert al.verify(e.to_json(), brightness, space, seed=0).holds


def test_calls_of_any_size_give_the_same_bytes(monkeypatch):
    explainer = al.Explainer(brightness, al.Image("grid", n_segments=9), output_range=(0, 1))
    options = {"k": 3, "n_samples": 300, "n_certify": 200, "sampling": "draw"}
    whole = explainer.explain(photo(), **options).to_json()
    monkeypatch.setattr("anchorline.spaces.regions._CALL_BYTES", 7 * photo().nbytes)
    assert explainer.explain(photo(), **options).to_json() == whole


def test_signals():
    times = np.arange(200)
    signal = np.sin(times / 9)
    peak = lambda signals: np.abs(signals[:, 60:80]).max(axis=1)  # noqa: E731
    for hidden in ("mean", "interpolate", 0.0):
        space = al.Signal(segments=10, hidden=hidden)
        e = al.Explainer(peak, space, output="peak", output_range=(0, 1)).explain(signal, k=3, n_samples=500)
        assert e.terms[0].literal.text in ("points 60 to 79 are visible", "starting level") or hidden != 0.0
        assert al.verify(e.to_json(), peak, space, seed=0).holds
    several = np.column_stack([signal, signal**2])
    n = al.Signal(segments=times // 50).at(several)
    assert len(n.literals) == 4
    assert (al.Signal(segments=lambda given: times // 50).at(several).labels == n.labels).all()
    assert n.realize(np.ones((1, 4), dtype=bool))[0, 0].tolist() == pytest.approx(
        several[:50].mean(axis=0).tolist()
    )
    for wrong in (0, "ten", True):
        with pytest.raises(ParameterError, match="segments is"):
            al.Signal(segments=wrong)
    with pytest.raises(ParameterError, match="hidden is"):
        al.Signal(hidden="zero")
    with pytest.raises(InstanceError, match="must be numbers"):
        al.Signal().at("abc")
    with pytest.raises(InstanceError, match="shape"):
        al.Signal().at(np.zeros((2, 2, 2)))
    with pytest.raises(InstanceError, match="one per point"):
        al.Signal(segments=np.zeros(3, dtype=int)).at(signal)
