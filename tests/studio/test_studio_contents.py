"""Texts and images as cases of the studio: the same explanations as without it, and hostile contents stay text."""

import numpy as np
import pytest

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.spaces.regions import Image
from anchorline.spaces.text import Text
from anchorline.studio.contents import Contents
from anchorline.verify import verify
from helpers.studio import HOSTILE, client_of, live, studio_of

TEXTS = ["Great food, but slow.", "", f"Great {HOSTILE} text", "slow " * 400 + "great"]
SIZES = [(12, 10, 3), (12, 10, 3), (8, 20), (1, 1, 3)]


def score(texts):
    good = np.array([0.5 + 0.3 * ("great" in text.lower()) - 0.2 * ("slow" in text) for text in texts])
    return np.column_stack([1 - good, good])


def light(images):
    share = np.asarray(images).reshape(len(images), -1)[:, :60].mean(axis=1) / 255
    return np.column_stack([1 - share, share])


class Pictures(list):
    """Images that count how often they are read."""

    n_read = 0

    def __getitem__(self, i):
        self.n_read += 1
        return super().__getitem__(i)


@pytest.fixture(scope="module")
def server():
    with live(Explainer(score, Contents(Text(), TEXTS), classes=["bad", "good"]), name="reviews") as running:
        yield running


@pytest.fixture(scope="module")
def pictures():
    rng = np.random.default_rng(0)
    found = Pictures(rng.integers(0, 255, size).astype(np.uint8) for size in SIZES)
    space = Contents(Image("grid", n_segments=6), found, [f"{i}<b>.png" for i in range(len(SIZES))])
    explainer = Explainer(light, space, classes=["dark", "light"])
    with live(explainer) as running, client_of(running, timeout=30) as client:
        yield client, found


def test_a_text_is_listed_and_explained_as_without_the_studio(client):
    page = client.get("/v1/rows", params={"search": "food"}).json()
    assert page["columns"] == ["text"]
    assert page["rows"] == [{"position": 0, "values": TEXTS[:1], "answer": "good", "value": pytest.approx(0.6)}]
    assert client.get("/v1/rows", params={"sort": "high"}).json()["rows"][0]["position"] == 2
    answer = client.post("/v1/explain", json={"row": 0, "k": 3}).text
    expected = Explainer(score, Text(), classes=["bad", "good"]).explain(TEXTS[0], k=3)
    assert answer == expected.to_json()
    assert verify(answer, score, Text()).holds
    assert client.post("/v1/verify", json={"explanation": answer}).json()["holds"]


def test_a_new_text_is_explained(client):
    new = client.post("/v1/explain", json={"row": {"text": "great view"}, "k": 2}).json()
    assert "".join(new["instance"]) == "great view"


def test_words_are_taken_out_and_texts_exchanged(client):
    body = {"row": 0, "k": 3, "broken": ["Great"]}
    facts = [
        fact["attribute"] for fact in client.post("/page/explain", json={"row": 0, "k": 3}).json()["sum"]["facts"]
    ]
    assert facts == ["Great", "slow"]
    found = client.post("/v1/what-if", json=body).json()
    assert found["row"] == {"text": "food, but slow."}
    assert found["is_broken"] == [True, False]
    assert found["prediction"] == pytest.approx(0.3)  # of the class that is explained
    assert found["answer"] == "bad"
    found = client.post(
        "/v1/what-if", json=body | {"broken": ["slow"], "edits": {"text": "Great but slow"}}
    ).json()
    assert found["row"] == {"text": "Great but "}
    assert found["is_broken"] == [False, True]


@pytest.mark.parametrize(
    ("path", "body", "match"),
    [
        ("/v1/explain", {"row": 1}, "no words"),
        ("/v1/explain", {"row": 99}, "99"),
        ("/v1/explain", {"row": {"other": "x"}}, "called 'text'"),
        ("/v1/explain", {"row": {"text": 3}}, "called 'text'"),
        ("/v1/what-if", {"row": 0, "broken": ["nowhere"]}, "not a fact"),
    ],
)
def test_wrong_requests_are_named(client, path, body, match):
    answer = client.post(path, json=body)
    assert answer.status_code == (404 if body.get("row") == 99 else 422), answer.text
    assert match in answer.json()["detail"]


def test_hostile_and_long_texts(client):
    view = client.post("/page/explain", json={"row": 2, "k": 3}).json()
    shown = "".join(run["text"] for run in view["content"]["runs"])
    assert "<script>" in shown  # as JSON, which the page inserts as text
    assert not {"\x1b", "\u202e"} & set(shown)
    report = client.post("/page/report", json={"row": 2, "k": 3}).text
    assert "<script>document.title" not in report
    assert "&lt;script&gt;" in report
    listed = client.get("/v1/rows", params={"search": "#3"}).json()["rows"][0]["values"][0]
    assert len(listed) == 1001
    assert len(client.post("/v1/explain", json={"row": 3, "k": 2}).json()["instance"]) == 2 * 401 + 1
    typed = {"row": {"text": "good " * 8000}, "k": 2, "queries": 100}
    assert client.post("/v1/explain", json=typed).status_code == 200
    typed["row"]["text"] *= 3
    assert client.post("/v1/explain", json=typed).status_code == 422


def test_images_are_named_by_position_and_read_when_needed(pictures):
    client, found = pictures
    before = found.n_read
    page = client.get("/v1/rows", params={"limit": 2}).json()
    assert [row["values"] for row in page["rows"]] == [["0<b>.png"], ["1<b>.png"]]
    assert found.n_read <= before + len(SIZES)
    for position in range(3):  # of two sizes, with and without channels
        view = client.post("/page/explain", json={"row": position, "k": 3}).json()
        content = view["content"]
        assert (content["height"], content["width"]) == SIZES[position][:2]
        assert len(content["regions"]) == len(view["sum"]["facts"])
        assert all(region["area"].startswith("M") for region in content["regions"])
        expected = Explainer(light, Image("grid", n_segments=6), classes=["dark", "light"])
        assert view["json"] == expected.explain(list.__getitem__(found, position), k=3).to_json()
    name = client.post("/page/explain", json={"row": 0, "k": 3}).json()["sum"]["facts"][0]["attribute"]
    changed = client.post("/v1/what-if", json={"row": 0, "k": 3, "broken": [name]}).json()
    assert changed["row"] == {"image": None}
    assert changed["is_broken"].count(True) == 1
    assert client.post("/v1/changes", json={"row": 0}).status_code == 200
    assert client.post("/v1/rule", json={"row": 0, "k": 2}).json()["space"]["noun"] == "regions"
    assert "position" in client.post("/v1/explain", json={"row": {"image": "x"}}).json()["detail"]


def test_other_spaces_and_empty_collections_are_refused():
    with pytest.raises(ParameterError, match=r"needs a Table, or texts or images"):
        studio_of(Explainer(score, Text()))
    with pytest.raises(ParameterError, match="at least one"):
        Contents(Text(), [])
