"""`HttpModel` and servers that are slow, fail, redirect, or send answers that are too large or wrong."""

import contextlib
import threading
import time
from http.server import ThreadingHTTPServer

import numpy as np
import pytest

from anchorline import errors
from anchorline.model.loaders import HttpLimits
from helpers.model_server import FRAME, Handler, flaky, mlflow


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_failing_server_is_queried_again(server, load, status):
    server.answer = flaky(status, status)
    assert load(f"{server.address}/invocations")(FRAME).tolist() == [1.0, 3.0, 5.0]
    assert len(server.requests) == 3


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
    assert len(server.requests) == 5


@pytest.mark.parametrize("status", [400, 404, 500])
def test_other_failures_are_final(server, load, status):
    server.answer = flaky(*[status] * 20)
    with pytest.raises(errors.RemoteRefusalError, match=f"answered {status}"):
        load(f"{server.address}/invocations")(FRAME)
    assert len(server.requests) == 1


def test_a_server_that_is_not_running(load, server):
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
    location = f"http://u:sesame@127.0.0.1:{other.server_port}/invocations?key=abc"
    server.answer = lambda request, body: request.reply({}, status, Location=location)
    with pytest.raises(errors.RemoteModelError, match=r"redirects to 'http://127.0.0.1:\d+/invocations") as raised:
        load(f"{server.address}/invocations")(FRAME)
    other.server_close()
    assert not {"sesame", "abc", "hunter2"} & set(str(raised.value).replace("=", " ").split())
    assert len(server.requests) == 1


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
    with pytest.raises(errors.RemoteModelError, match="sent a compressed answer"):
        load(f"{server.address}/invocations")(FRAME)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ({"predictions": [1.0, 2.0]}, r"shape \(2,\) for 3 rows"),
        ({"predictions": [1.0, 2.0, 3.0, 4.0]}, r"shape \(4,\) for 3 rows"),
        (b'{"predictions": [1.0, NaN, 3.0]}', r"returned nan for row 1"),
        (b'{"predictions": [1.0, Infinity, 3.0]}', r"returned inf for row 1"),
        ({"predictions": [1.0, None, 3.0]}, r"returned nan for row 1"),
        ({"predictions": [[0.5], [0.5, 0.5], [1]]}, "cannot be read"),
        ({"predictions": ["a", 1, "b"]}, "cannot be read: the answer mixes texts and numbers"),
        ({"predictions": [{"a": 1}, {"b": 1}, {"a": 1}]}, "do not all have the same labels"),
        ({"predictions": "soon"}, "holds no list of predictions"),
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


def test_numbers_that_json_does_not_have(server, load):
    server.answer = mlflow
    with pytest.raises(errors.ModelInputError, match="infinite number"):
        load(f"{server.address}/invocations")(FRAME.assign(a=np.inf))
    assert not server.requests


def test_the_budget_is_kept(server, load):
    server.answer = mlflow
    model = load(f"{server.address}/invocations", http=HttpLimits(max_queries=5))
    model(FRAME)
    with pytest.raises(
        errors.BudgetError,
        match=r"to 6; its max_queries is 5. Type http=HttpLimits\(max_queries=12",
    ):
        model(FRAME)
    assert len(server.requests) == 1


def test_the_default_budget_is_unlimited(server, load):
    """A limit by default would stop a large file at a row that depends on the number of processes."""
    server.answer = mlflow
    model = load(f"{server.address}/invocations")
    model._n_queries = 10**9
    assert model(FRAME).tolist() == [1.0, 3.0, 5.0]
    model.close()


def test_limits_are_numbers():
    with pytest.raises(errors.ParameterError, match="batch_rows is 0"):
        HttpLimits(batch_rows=0)
    with pytest.raises(errors.ParameterError, match="read_timeout is None, but it must be a number above 0"):
        HttpLimits(read_timeout=None)
    assert HttpLimits(max_retries=0).max_retries == 0
