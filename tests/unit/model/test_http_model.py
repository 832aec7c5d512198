"""A model behind an address, served by the test itself: slow, failing, redirecting, oversized, lying."""

import contextlib
import json
import logging
import pickle
import threading
import time
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from anchorline import Explainer, Table, errors, verify
from anchorline.cli.inputs import ModelOptions
from anchorline.model.loaders import HttpLimits, load_model
from anchorline.model.loaders.http_endpoint import shown

FRAME = pd.DataFrame({"a": [0.5, 1.5, 2.5], "n": [1, 2, 3], "town": ["x", "y", None]})
QUICK = HttpLimits(first_wait=0.01, longest_wait=0.05, connect_timeout=2.0, read_timeout=0.4, total_timeout=1.0)
METADATA = {"name": "m", "inputs": [{"name": "rows", "datatype": "FP32", "shape": [-1, 2]}]}


class Handler(BaseHTTPRequestHandler):
    """Answers what ``server.answer`` makes of each request."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        self.server.seen.append((self.command, self.path, dict(self.headers), json.loads(body) if body else None))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.server.answer(self, self.server.seen[-1][3])

    do_GET = do_POST

    def log_message(self, *args):
        pass

    def reply(self, content, status=200, **headers):
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(raw)


@pytest.fixture
def server(monkeypatch):
    for name in (
        "ANCHORLINE_HTTP_TOKEN",
        "ANCHORLINE_HTTP_USER",
        "ANCHORLINE_HTTP_PASSWORD",
        "HTTP_PROXY",
        "http_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads, running.seen = True, []
    running.handle_error = lambda *_: None  # a client that hangs up is what some tests are about
    running.address = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield running
    running.shutdown()
    running.server_close()
    thread.join()


@pytest.fixture
def load():
    """Load a model, and close its connection afterwards."""
    models = []

    def loaded(*args, **keywords):
        models.append(load_model(*args, **{"http": QUICK, **keywords}))
        return models[-1]

    yield loaded
    for model in models:
        model.close()


def mlflow(request, body):
    """The number in the first column, times two."""
    request.reply({"predictions": [2 * row[0] for row in body["dataframe_split"]["data"]]})


def open_inference(metadata):
    """Two class scores from the first value of every row."""

    def answer(request, body):
        if body is None:
            return request.reply(metadata) if metadata is not None else request.reply({}, 404)
        first = body["inputs"][0]
        n, d = first["shape"]
        p = [first["data"][i * d] / 10 for i in range(n)]
        output = {"name": "probabilities", "shape": [n, 2], "datatype": "FP64"}
        label = {"name": "label", "shape": [n], "datatype": "INT64", "data": [0] * n}
        return request.reply({"outputs": [label, output | {"data": [v for x in p for v in (1 - x, x)]}]})

    return answer


def flaky(*statuses, **headers):
    """Fail so often, then answer."""
    left = list(statuses)

    def answer(request, body):
        if left:
            request.reply({"error": "later"}, left.pop(0), **headers)
        else:
            mlflow(request, body)

    return answer


# --- what is said ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make", [lambda f: f, pl.from_pandas, pa.Table.from_pandas], ids=["pandas", "polars", "arrow"]
)
def test_mlflow_gets_columns_and_rows(server, load, make):
    server.answer = mlflow
    model = load(f"{server.address}/invocations")
    assert model(make(FRAME)).tolist() == [1.0, 3.0, 5.0]
    split = server.seen[0][3]["dataframe_split"]
    assert split == {"columns": ["a", "n", "town"], "data": [[0.5, 1, "x"], [1.5, 2, "y"], [2.5, 3, None]]}


def test_mlflow_scores_by_label_and_other_shapes(server, load):
    answers = {
        "scores": [{"no": 0.5, "yes": 0.5}] * 3,
        "lists": [[0.25, 0.75]] * 3,
        "labels": ["no", "yes", "no"],
        "named": [{"y": 5.0}] * 3,
    }
    model = load(f"{server.address}/invocations")
    server.answer = lambda request, body: request.reply({"predictions": answers["lists"]})
    np.testing.assert_array_equal(model(FRAME), answers["lists"])
    assert model.classes_ is None
    server.answer = lambda request, body: request.reply({"predictions": answers["scores"]})
    np.testing.assert_array_equal(model(FRAME), [[0.5, 0.5]] * 3)
    assert model.classes_ == ["no", "yes"]
    server.answer = lambda request, body: request.reply(answers["labels"])
    assert model(FRAME).tolist() == answers["labels"]
    server.answer = lambda request, body: request.reply({"predictions": answers["named"]})
    with pytest.raises(
        errors.RemoteModelError, match=r"not all have the same names: 'no', 'yes', then {'y': 5.0}"
    ):
        model(FRAME)
    model = load(f"{server.address}/invocations")
    assert model(FRAME).tolist() == [5.0] * 3
    assert model.classes_ is None


def by_label(request, body):
    """Scores of two classes from the first column, by label: in another order for every other row."""
    pairs = [[("yes", row[0] / 10), ("no", 1 - row[0] / 10)] for row in body["dataframe_split"]["data"]]
    request.reply({"predictions": [dict(pair[:: -1 if i % 2 else 1]) for i, pair in enumerate(pairs)]})


def test_mlflow_scores_are_ordered_by_their_labels(server, load):
    server.answer = by_label
    model = load(f"{server.address}/invocations", http=HttpLimits(batch_rows=2))
    np.testing.assert_allclose(model(FRAME), [[0.95, 0.05], [0.85, 0.15], [0.75, 0.25]])
    assert model.classes_ == ["no", "yes"]
    flipped = {"no": 0.75, "yes": 0.25}
    server.answer = lambda request, body: request.reply({"predictions": [flipped]})
    np.testing.assert_array_equal(model(FRAME[2:]), [[0.75, 0.25]])
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy(FRAME[2:]), [[0.75, 0.25]])
    copy.close()
    server.answer = lambda request, body: request.reply({"predictions": [flipped | {"perhaps": 0.0}]})
    with pytest.raises(errors.RemoteModelError, match=r"not all have the same names: 'no', 'yes', then"):
        model(FRAME[2:])


def test_explanations_are_called_by_the_labels_that_mlflow_tells(server, load):
    server.answer = by_label
    table = Table(pd.DataFrame({"a": np.linspace(0, 10, 40), "b": np.arange(40.0) % 3}))
    model = load(f"{server.address}/invocations")
    found = [Explainer(model, table, output=output).explain(3, k=2, n_samples=200) for output in (None, "yes")]
    assert [explanation.output for explanation in found] == ["no", "yes"]
    for explanation in found:
        for asked in (model, load(f"{server.address}/invocations")):
            assert verify(explanation.to_json(), asked, table).holds
    wrong = Explainer(partial(model), table, output="yes", column=0).explain(3, k=2, n_samples=200)
    assert not verify(wrong, model, table).holds


def test_labels_are_learnt_where_only_answers_tell_them(server, load):
    server.answer = by_label
    model, table = load(f"{server.address}/invocations"), Table(FRAME)
    for output, column in (("no", 0), ("yes", 1)):
        assert Explainer(model, table, output=output).target.column == column
        assert [len(body["dataframe_split"]["data"]) for *_, body in server.seen] == [1]
    Explainer(load(f"{server.address}/invocations"), table, classes=["1", "0"])
    Explainer(load(f"{server.address}/v2/models/m/infer"), table)
    assert len(server.seen) == 1
    server.answer = flaky(*[400] * 20)
    Explainer(load(f"{server.address}/invocations"), table)  # other rows may do
    server.answer = flaky(*[503] * 20)
    with pytest.raises(errors.RemoteModelError, match="tried 5 times"):
        Explainer(load(f"{server.address}/invocations"), table)


def test_rows_go_in_batches_of_fixed_size(server, load):
    server.answer = mlflow
    model = load(f"{server.address}/invocations", http=HttpLimits(batch_rows=4))
    rows = np.arange(20.0).reshape(10, 2)
    assert model(rows).tolist() == (2 * rows[:, 0]).tolist()
    assert [len(body["dataframe_split"]["data"]) for *_, body in server.seen] == [4, 4, 2]
    assert server.seen[0][3]["dataframe_split"]["columns"] == ["x0", "x1"]


@pytest.mark.parametrize("path", ["/v2/models/m/infer", "/v2/models/m", "/v2/models/m/versions/2/infer"])
def test_open_inference_matrix(server, load, path):
    server.answer = open_inference(METADATA)
    model = load(f"{server.address}{path}")
    np.testing.assert_allclose(model(FRAME[["a", "n"]]), [[0.95, 0.05], [0.85, 0.15], [0.75, 0.25]])
    (get, about, *_), (post, infer, _, body) = server.seen
    assert (get, post) == ("GET", "POST")
    assert infer == f"{about}/infer"
    tensor = {"name": "rows", "shape": [3, 2], "datatype": "FP32", "data": [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]}
    assert body == {"inputs": [tensor]}
    with pytest.raises(errors.ModelInputError, match="needs 2 columns and got 3"):
        model(FRAME)


@pytest.mark.parametrize("metadata", ["named", "none"])
def test_open_inference_columns(server, load, metadata):
    kinds = {"a": "FP64", "n": "INT64", "town": "BYTES"}
    inputs = [{"name": name, "datatype": kind, "shape": [-1, 1]} for name, kind in kinds.items()]
    server.answer = open_inference({"inputs": inputs} if metadata == "named" else None)
    model = load(f"{server.address}/v2/models/m/infer")
    turned = FRAME[["town", "n", "a"]] if metadata == "named" else FRAME
    assert model(turned).shape == (3, 2)
    sent = {part["name"]: part for part in server.seen[-1][3]["inputs"]}
    assert {name: part["datatype"] for name, part in sent.items()} == kinds
    assert sent["town"]["data"] == ["x", "y", None]
    assert sent["n"]["shape"] == [3, 1]
    if metadata == "named":
        with pytest.raises(errors.ModelInputError, match="needs the columns 'town'"):
            model(FRAME[["a", "n"]])


def test_open_inference_metadata_that_cannot_be_had(server, load):
    """A server without metadata is asked all the same; one that is down is given up once, not twice."""
    server.answer = open_inference(None)
    assert load(f"{server.address}/v2/models/m/infer")(FRAME[["a", "n"]]).shape == (3, 2)
    server.seen.clear()
    server.answer = flaky(*[503] * 20)
    with pytest.raises(errors.RemoteModelError, match="tried 5 times"):
        load(f"{server.address}/v2/models/m/infer")(FRAME)
    assert {method for method, *_ in server.seen} == {"GET"}


# --- what can go wrong -------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_failing_server_is_asked_again(server, load, status):
    server.answer = flaky(status, status)
    assert load(f"{server.address}/invocations")(FRAME).tolist() == [1.0, 3.0, 5.0]
    assert len(server.seen) == 3


def test_retry_after_is_heeded_up_to_a_limit(server, load):
    server.answer = flaky(429, Retry_After="3600")
    start = time.monotonic()
    limits = HttpLimits(first_wait=0.0, longest_wait=0.3)
    assert load(f"{server.address}/invocations", http=limits)(FRAME).tolist() == [1.0, 3.0, 5.0]
    assert 0.3 <= time.monotonic() - start < 5
    server.answer = flaky(503, Retry_After="Wed, 21 Oct 2015 07:28:00 GMT")
    assert load(f"{server.address}/invocations")(FRAME).tolist() == [1.0, 3.0, 5.0]


def test_a_server_that_keeps_failing_is_given_up(server, load):
    server.answer = flaky(*[503] * 20)
    with pytest.raises(errors.RemoteModelError, match=r"answered 503: .*later.*tried 5 times"):
        load(f"{server.address}/invocations")(FRAME)
    assert len(server.seen) == 5


@pytest.mark.parametrize("status", [400, 404, 500])
def test_other_failures_are_final(server, load, status):
    server.answer = flaky(*[status] * 20)
    with pytest.raises(errors.RemoteRefusalError, match=f"answered {status}"):
        load(f"{server.address}/invocations")(FRAME)
    assert len(server.seen) == 1


def test_nobody_there(load, server):
    server.server_close()
    limits = HttpLimits(max_retries=1, first_wait=0.0)
    with pytest.raises(errors.RemoteModelError, match=r"cannot be reached: ConnectError \(tried 2 times\)"):
        load(f"{server.address}/invocations", http=limits)(FRAME)


def test_a_slow_server_times_out(server, load):
    server.answer = lambda request, body: time.sleep(2)
    start = time.monotonic()
    with pytest.raises(errors.RemoteModelError, match=r"did not answer within 0.4 s"):
        load(f"{server.address}/invocations")(FRAME)
    assert time.monotonic() - start < 1.9


def test_a_dripping_server_times_out(server, load):
    def drip(request, body):
        request.send_response(200)
        request.send_header("Content-Length", "1000")
        request.end_headers()
        for _ in range(100):
            request.wfile.write(b" ")
            time.sleep(0.1)

    server.answer = drip
    start = time.monotonic()
    with pytest.raises(errors.RemoteModelError, match=r"took more than 1 s"):
        load(f"{server.address}/invocations")(FRAME)
    assert time.monotonic() - start < 3


def test_a_server_that_drips_its_headers_times_out(server, load):
    def drip(request, body):
        for i in range(20):
            request.wfile.write(b"HTTP/1.1 200 OK\r\n" if i == 0 else b"X-%d: 1\r\n" % i)
            time.sleep(0.1)

    server.answer = drip
    start = time.monotonic()
    with pytest.raises(errors.RemoteModelError, match=r"took more than 0.5 s"):
        load(f"{server.address}/invocations", http=HttpLimits(read_timeout=0.4, total_timeout=0.5))(FRAME)
    assert time.monotonic() - start < 1.5
    server.answer = mlflow
    forever = HttpLimits(total_timeout=float("inf"))
    assert load(f"{server.address}/invocations", http=forever)(FRAME).tolist() == [1.0, 3.0, 5.0]


def test_connections_are_kept_and_not_shared(server, load):
    places, both = [], threading.Barrier(2)

    def meet(request, body):
        places.append(request.client_address)
        with contextlib.suppress(threading.BrokenBarrierError):
            both.wait(timeout=2)
        mlflow(request, body)

    server.answer = meet
    model = load(f"{server.address}/invocations", http=HttpLimits())
    for _ in range(2):
        threads = [threading.Thread(target=model, args=(FRAME,)) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(places) == 4
    assert len(set(places)) == 2


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(server, load, status, monkeypatch):
    monkeypatch.setenv("ANCHORLINE_HTTP_TOKEN", "hunter2")
    other = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    place = f"http://u:sesame@127.0.0.1:{other.server_port}/invocations?key=abc"
    server.answer = lambda request, body: request.reply({}, status, Location=place)
    with pytest.raises(errors.RemoteModelError, match=r"redirects to 'http://127.0.0.1:\d+/invocations") as raised:
        load(f"{server.address}/invocations")(FRAME)
    other.server_close()
    assert not {"sesame", "abc", "hunter2"} & set(str(raised.value).replace("=", " ").split())
    assert len(server.seen) == 1


def test_an_oversized_answer_is_not_read_to_the_end(server, load):
    sent = []

    def flood(request, body):
        request.send_response(200)
        request.send_header("Content-Length", str(10**9))
        request.end_headers()
        for _ in range(1000):
            request.wfile.write(b"x" * 10**5)
            sent.append(1)

    server.answer = flood
    limits = HttpLimits(max_answer_bytes=10**6)
    model = load(f"{server.address}/invocations", http=limits)
    with pytest.raises(errors.RemoteModelError, match=r"more than 1,000,000 bytes"):
        model(FRAME)
    assert len(sent) < 900


def test_compressed_answers_are_refused(server, load):
    server.answer = lambda request, body: request.reply(b"\x1f\x8b", Content_Encoding="gzip")
    with pytest.raises(errors.RemoteModelError, match="answered compressed"):
        load(f"{server.address}/invocations")(FRAME)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ({"predictions": [1.0, 2.0]}, r"shape \(2,\) to 3 rows"),
        ({"predictions": [1.0, 2.0, 3.0, 4.0]}, r"shape \(4,\) to 3 rows"),
        (b'{"predictions": [1.0, NaN, 3.0]}', r"answered nan to row 1"),
        (b'{"predictions": [1.0, Infinity, 3.0]}', r"answered inf to row 1"),
        ({"predictions": [1.0, None, 3.0]}, r"answered nan to row 1"),
        ({"predictions": [[0.5], [0.5, 0.5], [1]]}, "cannot be read"),
        ({"predictions": ["a", 1, "b"]}, "cannot be read: there are texts and numbers"),
        ({"predictions": [{"a": 1}, {"b": 1}, {"a": 1}]}, "do not all have the same names"),
        ({"predictions": "soon"}, "no list of predictions"),
        ({"predictions": [10**400, 1, 1]}, "cannot be read: int too large"),
        (b"<html>", "cannot be read"),
        (b"[" * 100_000, "cannot be read"),
        (b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_answers_are_checked(server, load, content, match):
    server.answer = lambda request, body: request.reply(content)
    with pytest.raises(errors.RemoteModelError, match=match):
        load(f"{server.address}/invocations")(FRAME)


@pytest.mark.parametrize(
    "outputs",
    [
        [],
        [{"name": "y", "shape": [2], "data": [1.0, 2.0, 3.0]}],
        [{"name": "y", "shape": [3, 2], "data": [1.0] * 3}],
        5,
    ],
)
def test_open_inference_answers_are_checked(server, load, outputs):
    server.answer = lambda request, body: request.reply({"outputs": outputs})
    with pytest.raises(errors.RemoteModelError, match="cannot be read"):
        load(f"{server.address}/v2/models/m/infer")(FRAME)


def test_numbers_json_cannot_carry(server, load):
    server.answer = mlflow
    with pytest.raises(errors.ModelInputError, match="infinite number"):
        load(f"{server.address}/invocations")(FRAME.assign(a=np.inf))
    assert not server.seen


def test_the_budget_is_kept(server, load):
    server.answer = mlflow
    model = load(f"{server.address}/invocations", http=HttpLimits(max_queries=5))
    model(FRAME)
    with pytest.raises(
        errors.BudgetError,
        match=r"6 rows would have gone .* max_queries is 5. Type http=HttpLimits\(max_queries=12",
    ):
        model(FRAME)
    assert len(server.seen) == 1


def test_there_is_no_budget_that_nobody_asked_for(server, load):
    """A file of many rows would end in the middle, at a row that depends on the number of processes."""
    server.answer = mlflow
    for model in (load(f"{server.address}/invocations"), ModelOptions().load(f"{server.address}/invocations")):
        model._n_queries = 10**9
        assert model(FRAME).tolist() == [1.0, 3.0, 5.0]
        model.close()


# --- secrets -----------------------------------------------------------------------------------------


def test_the_token_is_sent_and_never_shown(server, load, monkeypatch, caplog):
    monkeypatch.setenv("ANCHORLINE_HTTP_TOKEN", "hunter2-secret")

    def guarded(request, body):
        authorization = request.headers.get("Authorization")
        if authorization != "Bearer hunter2-secret":
            request.reply({}, 401)
        elif body["dataframe_split"]["columns"] == ["a"]:
            request.reply({"you sent": authorization}, 400)
        else:
            mlflow(request, body)

    server.answer = guarded
    model = load(f"{server.address}/invocations?key=sesame")
    with caplog.at_level(logging.DEBUG):
        assert model(FRAME).tolist() == [1.0, 3.0, 5.0]
        with pytest.raises(errors.RemoteModelError, match=r"answered 400: .*\*\*\*") as raised:
            model(FRAME[["a"]])
    assert server.seen[0][1] == "/invocations?key=sesame"
    kept = [repr(model), str(vars(model.__class__)), repr(pickle.dumps(model)), str(raised.value), caplog.text]
    assert not any("hunter2" in text for text in kept)
    assert "sesame" not in repr(model) + str(raised.value) + caplog.text
    assert "HTTP Request: POST" in caplog.text  # httpx did log
    again = pickle.loads(pickle.dumps(model))
    assert again(FRAME).tolist() == [1.0, 3.0, 5.0]
    again.close()


def test_a_wrong_token(server, load):
    server.answer = flaky(401)
    with pytest.raises(errors.RemoteModelError, match=r"answered 401: set ANCHORLINE_HTTP_TOKEN"):
        load(f"{server.address}/invocations")(FRAME)


@pytest.mark.parametrize("token", ["", "long-" * 400])
def test_a_server_that_repeats_what_it_was_sent_tells_nobody_else(server, load, monkeypatch, token):
    monkeypatch.setenv("ANCHORLINE_HTTP_TOKEN", token)
    monkeypatch.setenv("ANCHORLINE_HTTP_USER", "ada")
    monkeypatch.setenv("ANCHORLINE_HTTP_PASSWORD", "sesame")
    server.answer = lambda request, body: request.reply({request.path: request.headers["Authorization"]}, 400)
    with pytest.raises(errors.RemoteModelError, match="answered 400") as raised:
        load(f"{server.address}/invocations?api-key=open%20up")(FRAME)
    assert not any(secret in str(raised.value) for secret in ("sesame", "YWRhOnNlc2FtZQ", "open", "long-"))


def test_user_and_password(server, load, monkeypatch):
    monkeypatch.setenv("ANCHORLINE_HTTP_USER", "ada")
    monkeypatch.setenv("ANCHORLINE_HTTP_PASSWORD", "sesame")
    server.answer = mlflow
    load(f"{server.address}/invocations")(FRAME)
    assert server.seen[0][2]["Authorization"] == "Basic YWRhOnNlc2FtZQ=="


def test_a_token_that_is_none(server, load, monkeypatch):
    monkeypatch.setenv("ANCHORLINE_HTTP_TOKEN", "two\nlines")
    with pytest.raises(errors.ParameterError, match="ANCHORLINE_HTTP_TOKEN holds a blank") as raised:
        load(f"{server.address}/invocations")(FRAME)
    assert "two" not in str(raised.value)


def test_unencrypted_credentials_are_warned_of(load, monkeypatch, caplog):
    monkeypatch.setenv("ANCHORLINE_HTTP_TOKEN", "hunter2")
    load("http://model.example/invocations")
    assert "unencrypted" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(
    ("address", "match"),
    [
        ("http://ada:sesame@localhost/invocations", "holds a user or password"),
        ("http:///invocations", "is no address"),
        ("http://localhost:99999/invocations", "is no address"),
        ("http://[::1/invocations", "is no address"),
        ("http://local host/invocations", "is no address"),
        ("http://256.1.1.1/invocations", "is no address"),
        ("http://a..b/invocations", "is no address"),
        ("http://xn--/invocations", "is no address"),
        ("http://xn--a/invocations", "is no address"),
    ],
)
@pytest.mark.parametrize("kind", [None, "mlflow"])
def test_addresses_that_are_refused(address, match, kind):
    with pytest.raises(errors.ModelFileError, match=match) as raised:
        load_model(address, kind=kind)
    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize("place", ["http://xn--/invocations", "http://256.1.1.1/", "http://[::1/"])
def test_redirects_to_what_is_no_address(server, load, place):
    server.answer = lambda request, body: request.reply({}, 307, Location=place)
    with pytest.raises(errors.RemoteModelError):
        load(f"{server.address}/invocations")(FRAME)


def test_addresses_without_a_protocol():
    with pytest.raises(errors.ModelFileError, match="Pass kind='mlflow'") as raised:
        load_model("https://u:sesame@model.example/score?key=abc")
    assert "sesame" not in str(raised.value)
    assert load_model("https://model.example/score", kind="mlflow").address == "https://model.example/score"
    with pytest.raises(errors.ModelFileError, match="Pass kind='mlflow'"):
        load_model("https://invocations?a=/invocations")


def test_what_is_shown_of_an_address():
    assert shown("https://u:p@host:8443/a/b?key=1#x") == "https://host:8443/a/b?..."
    assert shown("http://[::1]:80/") == "http://[::1]:80/"
    assert shown("/moved?key=1") == "/moved"
