"""Hostile clients: which requests are refused, and which details no answer contains."""

import contextlib
import http.client
import logging
import pathlib
import socket
import time

import httpx
import numpy as np
import pytest
from pydantic import ValidationError

from anchorline.errors import ParameterError
from anchorline.explainer import Explainer
from anchorline.spaces.table import Table
from anchorline.studio import server as studio_server
from anchorline.studio.access import Access, StudioLimits, host_name, is_loopback, is_same_origin
from anchorline.studio.guard import check_json
from anchorline.studio.problems import Problem
from anchorline.studio.schemas import ExplainRequest
from helpers.sealing import resealed
from helpers.studio import HOSTILE, becomes_true, hostile_explainer, live

OPEN = {"/health", "/ready", "/login", "/static/style.css", "/static/landing.js"}
QUICK = {"queries": 200}


@pytest.fixture(scope="module")
def server():
    limits = StudioLimits(max_queries=500, max_body=20_000, body_timeout=0.6)
    with live(hostile_explainer(), limits=limits) as running:
        yield running


@pytest.fixture
def stranger(server):
    with httpx.Client(base_url=server.base, timeout=20) as opened:
        yield opened


def raw(server, text):
    """Send bytes unchanged, and return the answer up to the end of its headers."""
    with socket.create_connection(("127.0.0.1", int(server.base.rpartition(":")[2])), timeout=5) as caller:
        caller.sendall(text if isinstance(text, bytes) else text.encode())
        answer = b""
        while True:
            part = caller.recv(65_536)
            answer += part
            if not part or b"\r\n\r\n" in answer:
                return answer


def is_problem(answer, status):
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == status
    assert "Traceback" not in answer.text
    return True


def test_every_route_needs_the_token(stranger, client):
    routes = client.get("/openapi.json").json()["paths"]
    assert len(routes) >= 12
    del routes["/health"], routes["/ready"]
    for path, methods in routes.items():
        for method in methods:
            address = path.replace("{name}", "model")
            assert is_problem(stranger.request(method, address, json={} if method == "post" else None), 401)
    for path in ("/openapi.json", "/static/app.js", "/static/index.html", "/metrics", "/v1/rows", "/page/about"):
        assert stranger.get(path).status_code == 401
        assert stranger.get(path).headers["www-authenticate"] == "Bearer"
    for path in OPEN - {"/login"}:
        assert stranger.get(path).status_code == 200


def test_the_landing_page_tells_nothing(stranger):
    landing = stranger.get("/")
    assert (landing.status_code, landing.headers["content-type"]) == (401, "text/html; charset=utf-8")
    assert "token" in landing.text
    assert "cell" not in landing.text


@pytest.mark.parametrize("wrong", ["0", "x", "Bearer", "\u00e9\u00e9", "a" * 5000])
def test_a_wrong_token_is_no_token(stranger, server, wrong):
    for value in (f"Bearer {wrong}", wrong, f"Basic {server.token}", f"Bearer {server.token}x"):
        assert stranger.get("/v1/rows", headers={"Authorization": value.encode()}).status_code == 401
    cookie = f"{server.studio.access.cookie_name}={wrong}"
    assert stranger.get("/v1/rows", headers={"Cookie": cookie.encode()}).status_code == 401
    assert stranger.get("/v1/rows", params={"token": server.token}).status_code == 401  # only the page's link may


def test_the_link_gives_a_cookie_and_loses_the_token(stranger, server):
    got = stranger.get("/", params={"case": "3", "token": server.token, "k": "4"})
    assert (got.status_code, got.headers["location"]) == (303, "/?case=3&k=4")
    cookie = got.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path=/" in cookie
    assert server.token not in cookie + got.text
    assert stranger.get("/").status_code == 200  # with the cookie
    assert stranger.get("/v1/rows").status_code == 200
    assert server.token not in stranger.get("/").text
    wrong = httpx.get(f"{server.base}/", params={"token": "wrong"})
    assert wrong.status_code == 401
    assert "set-cookie" not in wrong.headers


def test_the_form_gives_the_cookie_too(stranger, server):
    assert "set-cookie" not in stranger.post("/login", data={"token": "wrong"}).headers
    got = stranger.post("/login", data={"token": f" {server.token} "})
    assert (got.status_code, got.headers["location"]) == (303, "/")
    assert stranger.get("/v1/rows").status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "a@localhost", "localhost/x"]
)
def test_other_names_are_refused(client, host):
    assert is_problem(client.get("/v1/rows", headers={"Host": host}), 421)
    assert is_problem(client.get("/", headers={"Host": host}), 421)


def test_own_names_are_known_whatever_the_port(client):
    for host in ("localhost", "localhost:9999", "127.0.0.1:1", "[::1]:80", "LOCALHOST"):
        assert client.get("/health", headers={"Host": host}).status_code == 200


def test_no_host_at_all(server):
    assert raw(server, "GET /v1/rows HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 421")


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://localhost:1", "file://", "x"])
def test_other_sites_are_refused(client, server, origin):
    for method, path in (
        ("POST", "/v1/explain"),
        ("GET", "/v1/rows"),
        ("OPTIONS", "/v1/explain"),
        ("POST", "/login"),
    ):
        answer = client.request(method, path, headers={"Origin": origin})
        assert is_problem(answer, 403)
        assert not [name for name in answer.headers if name.startswith("access-control")]
    assert client.get("/v1/rows", headers={"Origin": server.base}).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pictures_and_scripts_of_other_sites_are_refused(client, site):
    """Requests without an Origin, for example of <img src=...>, are refused; a link to the page is allowed."""
    for path in ("/v1/rows", "/metrics", "/static/app.js", "/health"):
        assert is_problem(client.get(path, headers={"Sec-Fetch-Site": site}), 403)
    assert client.get("/", headers={"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "navigate"}).status_code == 200
    assert client.get("/v1/rows", headers={"Sec-Fetch-Site": "same-origin"}).status_code == 200


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"x" * 30_000, 413),
        (b'{"row":' + b"[" * 5000 + b"]" * 5000 + b"}", 400),
        (b'{"row":' + b'{"a":' * 40 + b"1" + b"}" * 40 + b"}", 400),
        (b'{"row": NaN}', 400),
        (b'{"row": {"cell": Infinity}}', 400),
        (b'{"row": 1, "sigma": 1e999}', 400),
        (b'{"row": 1, "row": 2}', 400),
        (b'{"row": {"cell": "\\ud800"}}', 400),
        (b"\xff\xfe", 400),
        (b"{", 400),
        (b'{"row": ' + b"9" * 5000 + b"}", 400),
        (b"", 422),
        (b"[]", 422),
        (b"null", 422),
        (b'{"row": "1"}', 422),
        (b'{"row": true}', 422),
        (b'{"row": -1}', 422),
        (b'{"row": 1.5}', 422),
        (b'{"row": 120}', 404),
        (b'{"row": [1, 2]}', 422),
        (b'{"row": {}}', 422),
        (b'{"row": {"cell": {"a": 1}}}', 422),
        (b'{"row": 1, "k": 21}', 422),
        (b'{"row": 1, "k": "5"}', 422),
        (b'{"row": 1, "sigma": 9}', 422),
        (b'{"row": 1, "sigma": -0.1}', 422),
        (b'{"row": 1, "queries": 501}', 422),
        (b'{"row": 1, "queries": 31}', 422),
        (b'{"row": 1, "seed": 1e3}', 422),
        (b'{"row": 1, "solver": "gurobi"}', 422),
        (b'{"row": 1, "time_limit": 1}', 422),
        (b'{"row": 1, "__class__": "x"}', 422),
    ],
)
def test_hostile_bodies(client, body, status):
    assert is_problem(
        client.post("/v1/explain", content=body, headers={"Content-Type": "application/json"}), status
    )


def seconds_to_check(body):
    """Return the minimum over twenty runs of this thread's CPU time."""
    durations = []
    for _ in range(20):
        start = time.thread_time()
        with contextlib.suppress(Problem):
            check_json(body)
        durations.append(time.thread_time() - start)
    return min(durations)


@pytest.mark.parametrize(
    ("head", "unit"),
    [
        (b'{"a":"', b'\\"'),
        (b'{"a":"', b"\\"),
        (b'{"a":"', b"\\u00"),
        (b'{"a":"', b"\x00"),
        (b'{"a":"', b"[{"),
        (b'{"', b'\\"":"'),
        (b"", b'"'),
        (b"[", b"[],"),
        (b"[", b"1,"),
        (b"[", b"1e5,"),
        (b"[", b"9"),
        (b"[0.", b"9"),
        (b"", b"]"),
        (b"", b"\n"),
        (b"", b"\xc3"),
    ],
)
def test_eight_times_the_body_takes_eight_times_the_time(head, unit):
    """The check blocks the event loop, so that it must not take quadratic time, which was 14 s for 40 kB."""
    small, large = (seconds_to_check(head + unit * (size // len(unit))) for size in (4000, 32_000))
    assert large < 24 * small


def test_a_string_without_an_end_hides_no_nesting():
    for body in (b"[" * 40 + b'"', b'["\\"",' + b"[" * 40, b'["a\\\\",' + b"[" * 40):
        with pytest.raises(Problem, match="not valid JSON"):
            check_json(body)
    for depth in (33, 40, 5000):
        for body in (b"[" * depth + b"1" + b"]" * depth, b'{"a":' * depth + b'""' + b"}" * depth):
            with pytest.raises(Problem, match="nested more than 32 levels deep"):
                check_json(body)
    check_json(b'{"a":[' * 16 + b"1" + b"]}" * 16)
    check_json(b'["' + b"[" * 40 + b'\\"' + b"[" * 40 + b'"]')


def test_a_row_is_refused_at_its_first_wrong_value():
    """Listing 75,000 wrong values with five errors per value would block the event loop for seconds."""
    wide, bad = {str(i): 1 for i in range(75_000)}, {str(i): [] for i in range(4000)}
    requests = [
        (ExplainRequest, {"row": wide}),
        (ExplainRequest, {"row": bad}),
        (ExplainRequest, {"row": bad | wide}),
    ]
    for request, body in requests:
        with pytest.raises(ValidationError) as raised:
            request.model_validate(body)
        assert raised.value.error_count() <= 2


def test_a_body_without_an_announced_length_is_bounded_too(client):
    endless = (b"x" * 1000 for _ in range(1000))
    try:
        answer = client.post("/v1/explain", content=endless, headers={"Content-Type": "application/json"})
        assert answer.status_code == 413
    except httpx.WriteError:
        pass  # the server closed the connection while the client was still sending


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""])
def test_only_json_is_read(client, kind):
    """A form on another site can send these types without a preflight request, so that they are refused."""
    assert is_problem(client.post("/v1/explain", content=b'{"row": 1}', headers={"Content-Type": kind}), 415)


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static/%2e%2e%2f%2e%2e%2fetc/passwd",
        "/static//etc/passwd",
        "/static/app.js%00.css",
        "/static/",
        "//evil.example/static/app.js",
        "/%s%n",
    ],
)
def test_path_tricks_find_nothing(server, path):
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n\r\n"
    status = raw(server, head).split(b" ")[1]
    assert status in (b"404", b"405", b"400")


def test_every_answer_has_the_headers(client, stranger):
    for answer in (
        *map(client.get, ("/", "/v1/rows", "/nothing")),
        *map(stranger.get, ("/", "/v1/rows", "/health")),
    ):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["cache-control"] == "no-store"
        assert "server" not in answer.headers


def test_the_pages_files_ask_nobody_else(client):
    names = [file.name for file in (pathlib.Path(studio_server.__file__).parent / "static").iterdir()]
    assert {"index.html", "landing.html", "style.css", "app.js", "icon.svg"} < {*names}
    for name in names:
        text = client.get(f"/static/{name}").text.replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text
        for sink in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "style="):
            assert sink not in text, name


def test_a_models_own_words_stay_in_the_logs(caplog):
    def fails(rows):
        if len(rows) > 1:
            raise RuntimeError("SECRET /home/somebody/model.bin")
        return np.zeros(len(rows))

    explainer = Explainer(fails, Table(np.arange(20.0).reshape(10, 2)), output_range=(-1, 1))
    limits = StudioLimits(max_queries=500)  # the model is not asked about the table
    with live(explainer, limits=limits) as server, caplog.at_level(logging.INFO, logger="anchorline.studio"):
        headers = {"Authorization": f"Bearer {server.token}"}
        answer = httpx.post(f"{server.base}/v1/explain", json={"row": 1}, headers=headers)
        assert is_problem(answer, 502)
        assert "SECRET" not in answer.text
        assert "SECRET" in caplog.text


def test_a_bug_is_told_without_its_words(server, client, monkeypatch, caplog):
    def broken(*arguments):
        raise KeyError("SECRET")

    monkeypatch.setattr(server.studio.served[""].service, "rows", broken)
    answer = client.get("/v1/rows", params={"search": "something new"})
    assert is_problem(answer, 500)
    assert "SECRET" not in answer.text
    assert answer.headers["content-security-policy"]
    assert becomes_true(lambda: "SECRET" in caplog.text)


def test_logs_and_headers_cannot_be_forged(server, client, caplog):
    with caplog.at_level(logging.INFO, logger="anchorline.studio"):
        client.get("/a%0d%0ainjected%1b[2J")
        answer = client.get("/health", headers={"X-Request-ID": "bad id\tx"})
        client.get("/v1/rows", params={"search": "private words", "token": server.token})
        assert becomes_true(lambda: len(caplog.records) >= 3)
    assert answer.headers["x-request-id"].isalnum()
    lines = [record.getMessage() for record in caplog.records]
    assert all("\n" not in line and "\x1b" not in line for line in lines)
    assert not [line for line in lines if "private" in line or server.token in line]


def test_markup_stays_text(client):
    view = client.post("/page/explain", json={"row": 1, **QUICK}).json()
    assert HOSTILE in {fact["attribute"] for fact in view["sum"]["facts"]}  # the page inserts JSON as text
    assert "\x1b" not in view["output"] + "".join(fact["text"] for fact in view["sum"]["facts"])
    report = client.post("/page/report", json={"row": 1, **QUICK}).text
    assert "<script" not in report
    assert "&lt;script&gt;" in report


def forged(client, **settings):
    """Return a sealed explanation with other settings than it was made with."""
    made = client.post("/v1/explain", json={"row": 1, **QUICK}).json()
    return resealed(made | {"settings": made["settings"] | settings})


@pytest.mark.parametrize(
    "settings",
    [{"queries": 10**9}, {"queries": "auto"}, {"k": 10**6}, {"alternatives": 1000}, {"queries": [1]}, {"k": "x"}],
)
def test_a_forged_explanation_cannot_order_work(client, settings):
    start = time.perf_counter()
    answer = client.post("/v1/verify", json={"explanation": forged(client, **settings)})
    assert is_problem(answer, 422)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize("settings", [{"seed": -1}, {"seed": 5}, {"sigma": "x"}, {"unknown": 1}])
def test_a_forged_explanation_does_not_hold(client, settings):
    answer = client.post("/v1/verify", json={"explanation": forged(client, **settings)})
    assert answer.status_code == 200
    assert not answer.json()["holds"]


def test_slow_clients_are_left(server, monkeypatch):
    head = f"POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
    head += "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{"
    start = time.perf_counter()
    assert raw(server, head).startswith(b"HTTP/1.1 408")
    assert time.perf_counter() - start < 3
    monkeypatch.setattr(studio_server, "_HEADER_SECONDS", 0.3)
    assert raw(server, "GET / HTTP/1.1\r\nHost: loc") == b""
    address = ("127.0.0.1", int(server.base.rpartition(":")[2]))
    with socket.create_connection(address, timeout=5) as caller:  # one complete request, then half of another one
        caller.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET /he")
        while caller.recv(65_536):  # until the server closes the connection; otherwise the socket times out
            pass


def test_websockets_are_refused(server):
    head = (
        "GET /v1/rows HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    assert not raw(server, head).startswith(b"HTTP/1.1 101")


def test_without_a_token_only_on_this_machine():
    explainer = hostile_explainer()
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(ParameterError, match="Without a token"):
            studio_server.prepare(explainer, on_ready=print, host=host, port=0, with_token=False)
    with live(explainer, with_token=False) as server:
        assert httpx.get(f"{server.base}/v1/rows").status_code == 200
        assert httpx.get(f"{server.base}/v1/rows", headers={"Host": "evil.example"}).status_code == 421
        assert httpx.get(f"{server.base}/v1/rows", headers={"Origin": "http://evil.example"}).status_code == 403


def test_a_chosen_token_must_be_long(monkeypatch):
    for token in (
        "",
        f"{'x' * 16},short",
        f"{'x' * 16},",
        "short",
        "x" * 15,
        "with space and more",
        "\u00e9" * 20,
        "a&b=" * 5,
    ):
        monkeypatch.setenv("ANCHORLINE_STUDIO_TOKEN", token)
        with pytest.raises(ParameterError, match="16"):
            studio_server.token_from_environment()
    monkeypatch.setenv("ANCHORLINE_STUDIO_TOKEN", "x" * 16)
    assert studio_server.token_from_environment() == "x" * 16


def test_tokens_differ_and_cookies_differ(monkeypatch):
    access = [Access(token, frozenset({"localhost"})) for token in ("a" * 20, "b" * 20)]
    assert access[0].cookie_name != access[1].cookie_name
    assert not access[1].admits(None, access[0].set_cookie(False).partition(";")[0])
    assert access[0].admits(None, f"other=1; {access[0].set_cookie(False).partition(';')[0]}")
    assert "Secure" in access[0].set_cookie(True)
    monkeypatch.delenv("ANCHORLINE_STUDIO_TOKEN", raising=False)
    assert len({studio_server.token_from_environment() for _ in range(50)}) == 50


def test_an_old_token_is_admitted_beside_a_new_one():
    new, old = "n" * 20, "o" * 20
    access, before = Access(f"{new},{old}", frozenset()), Access(old, frozenset())
    assert access.is_token(new)
    assert access.is_token(old)
    assert not access.is_token(f"{new},{old}")
    assert access.admits(f"Bearer {old}", None)
    assert access.admits(None, before.set_cookie(False).partition(";")[0])  # a browser stays logged in
    assert access.set_cookie(False) == Access(new, frozenset()).set_cookie(False)
    assert not Access(new, frozenset()).admits(None, before.set_cookie(False).partition(";")[0])


def test_names_and_origins():
    assert host_name("[::1]:80") == "::1"
    assert host_name("LOCALHOST:1") == "localhost"
    assert host_name("localhost:x") is host_name("a b/c") is host_name("u@h") is None
    assert is_same_origin("http://h:1", "h:1")
    assert not is_same_origin("http://h:2", "h:1")
    assert is_loopback("127.9.9.9")
    assert not is_loopback("localhost.example")


def test_a_taken_port_is_told():
    taken = studio_server.bind("127.0.0.1", 0)
    assert taken.proto == socket.IPPROTO_TCP  # asyncio sets TCP_NODELAY only for this protocol
    try:
        with pytest.raises(ParameterError, match="--port 0"):
            studio_server.bind("127.0.0.1", taken.getsockname()[1])
    finally:
        taken.close()


def test_too_many_headers_are_refused(server):
    connection = http.client.HTTPConnection("127.0.0.1", int(server.base.rpartition(":")[2]), timeout=5)
    try:
        connection.request("GET", "/health", headers={f"X-{i}": "x" * 1000 for i in range(600)})
        assert connection.getresponse().status >= 400
    except (ConnectionError, http.client.HTTPException):
        pass  # the server closed the connection immediately
    finally:
        connection.close()
