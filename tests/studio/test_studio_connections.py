"""Connections and proxies: slow readers, too many connections, odd HTTP, prefixes, schemes, users, audit log."""

import contextlib
import json
import socket
import time

import httpx
import pytest

from anchorline.errors import ParameterError
from anchorline.studio import server as studio_server
from anchorline.studio.access import Access, Proxy, StudioLimits, is_address, is_same_origin
from helpers.studio import SlowModel, becomes_true, begun, client_of, live, slow_explainer

PUBLIC = {"Host": "studio.example.org"}


def explainer():
    return slow_explainer(SlowModel(0))


@pytest.fixture(scope="module")
def server():
    with live(explainer()) as running:
        yield running


def address_of(server):
    return "127.0.0.1", int(server.base.rpartition(":")[2])


def send(server, text):
    """Send bytes unchanged, and return everything until the server closes the connection, or for a second."""
    with socket.create_connection(address_of(server), timeout=1) as caller:
        caller.sendall(text.encode())
        answer = b""
        try:
            while part := caller.recv(65_536):
                answer += part
        except TimeoutError:
            return answer, False
        return answer, True


def test_slow_readers_are_cut_off_without_a_token_too(server, monkeypatch):
    """Each sends some requests and reads none of the answers; small buffers make few requests enough."""
    server._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    monkeypatch.setattr(studio_server, "_READ_SECONDS", 0.5)
    monkeypatch.setattr(studio_server, "_WATCH_SECONDS", 0.1)
    requests = b"GET /static/style.css HTTP/1.1\r\nHost: localhost\r\n\r\n" * 20
    callers = []
    for _ in range(6):
        caller = socket.socket()
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        caller.connect(address_of(server))
        caller.settimeout(0.2)
        callers.append(caller)
    assert becomes_true(lambda: len(server.server_state.connections) >= 6)
    for caller in callers:
        with contextlib.suppress(OSError):  # the server may read no more, because nobody reads its answers
            caller.sendall(requests)
    assert becomes_true(lambda: not server.server_state.connections, seconds=20)
    for caller in callers:
        caller.close()
    assert httpx.get(f"{server.base}/health").status_code == 200


def test_a_connection_too_many_gets_a_problem():
    """Every connection has a request under way, so that none can make room."""
    with live(slow_explainer(SlowModel(0.3)), limits=StudioLimits(concurrency=3)) as server:
        waiting = [socket.create_connection(address_of(server)) for _ in range(3)]
        body = json.dumps({"row": 1})
        head = f"POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        for caller in waiting:
            caller.sendall(head.encode())
        assert becomes_true(lambda: sum(not one.is_idle for one in server.server_state.connections) == 3)
        answer = httpx.get(f"{server.base}/v1/rows")
        assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
        assert answer.json()["detail"].startswith("The server has too many open connections")
        assert answer.headers["x-request-id"] == answer.json()["request_id"]
        for caller in waiting:
            caller.close()
        assert becomes_true(lambda: not server.server_state.connections)
        assert httpx.get(f"{server.base}/health").status_code == 200


@pytest.mark.parametrize("foreign", ['prefs={"a":1}', "a=b=c", "odd", "[x]=1", 'q="a;b"', "=", ";;"])
def test_cookies_of_other_programs_lock_nobody_out(server, foreign):
    access = server.studio.access
    own = access.set_cookie(secure=False).partition(";")[0]
    for cookies in (f"{foreign}; {own}", f"{own}; {foreign}", own):
        assert httpx.get(f"{server.base}/v1/rows", headers={"Cookie": cookies}).status_code == 200
    assert httpx.get(f"{server.base}/v1/rows", headers={"Cookie": foreign}).status_code == 401


def test_a_wrong_token_gets_a_message(server):
    for answer in (
        httpx.get(f"{server.base}/", params={"token": "wrong", "case": "3"}),
        httpx.post(f"{server.base}/login", data={"token": "wrong"}),
    ):
        assert answer.status_code == 401
        assert "This token is not valid" in answer.text
        assert "set-cookie" not in answer.headers
    assert "not valid" not in httpx.get(f"{server.base}/").text
    with httpx.Client(base_url=server.base) as admitted:  # an old link still leads to the case
        admitted.get("/", params={"token": server.token})
        answer = admitted.get("/", params={"token": "wrong", "case": "3"})
        assert (answer.status_code, answer.headers["location"]) == (303, "/?case=3")


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "http://a]b", "[", "http://\x7f"])
def test_a_malformed_origin_is_another_site(server, client, origin):
    assert not is_same_origin(origin, "localhost")
    assert client.get("/v1/rows", headers={"Origin": origin.encode()}).status_code == 403


def test_two_lengths_of_one_body_are_refused_and_the_connection_closed(server):
    head = "POST /v1/explain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {server.token}\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer, is_closed = send(server, head + "0\r\n\r\nGET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1
    assert is_closed


@pytest.mark.parametrize("start", ["", "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"])
@pytest.mark.parametrize(
    "head", ["GET /health HTTP/1.1\nHost: localhost\n\n", "GET /health HTTP/1.1\r\nHost: localhost\nA: b\r\n\r\n"]
)
def test_a_bare_line_feed_is_refused(server, start, head):
    answer, is_closed = send(server, start + head)
    last = b"HTTP/1.1" + answer.rpartition(b"HTTP/1.1")[2]
    assert last.startswith(b"HTTP/1.1 400")
    assert b"application/problem+json" in last
    assert is_closed


def test_invalid_http_gets_a_problem(server):
    answer, is_closed = send(server, "nonsense\r\n\r\n")
    assert b"application/problem+json" in answer
    assert is_closed


def test_head_is_get_without_a_body(server, client):
    for path in ("/health", "/v1/rows", "/", "/static/app.js", "/openapi.json", "/metrics"):
        head, get = client.head(path), client.get(path)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == get.headers["content-type"]
    assert client.head("/v1/explain").status_code == 405
    assert httpx.head(f"{server.base}/v1/rows").status_code == 401


def test_a_probe_by_address_reaches_health_only(server):
    for host in ("10.1.2.3", "10.1.2.3:8377", "[fd00::1]:80"):
        answer = httpx.get(f"{server.base}/health", headers={"Host": host})
        assert (answer.status_code, answer.json()) == (200, {"status": "ok"})
        assert httpx.get(f"{server.base}/v1/rows", headers={"Host": host}).status_code == 421
    assert httpx.get(f"{server.base}/health", headers={"Host": "evil.example"}).status_code == 421
    assert not is_address("10.1.2.3.evil.example")
    assert not is_address(None)


@pytest.fixture(scope="module")
def behind_proxy(tmp_path_factory):
    log = tmp_path_factory.mktemp("audit") / "audit.jsonl"
    proxy = Proxy("127.0.0.1", "X-Forwarded-User", "/studio")
    hosts = frozenset({"studio.example.org"})
    with live(explainer(), proxy=proxy, allow_hosts=hosts, audit_log=log) as running:
        running.log = log
        yield running


def test_a_proxy_with_a_prefix_and_tls(behind_proxy):
    """The proxy may remove the prefix or leave it."""
    headers = PUBLIC | {"X-Forwarded-Proto": "https"}
    for path in ("/", "/studio/"):
        answer = httpx.get(
            f"{behind_proxy.base}{path}", params={"token": behind_proxy.token, "case": "1"}, headers=headers
        )
        assert answer.headers["location"] == "/studio/?case=1"
        assert "; Path=/studio/;" in answer.headers["set-cookie"]
        assert answer.headers["set-cookie"].endswith("; Secure")
    answer = httpx.post(f"{behind_proxy.base}/login", data={"token": behind_proxy.token}, headers=headers)
    assert answer.headers["location"] == "/studio/"
    assert "Secure" in answer.headers["set-cookie"]
    assert httpx.get(f"{behind_proxy.base}/studio", headers=headers).headers["location"] == "/studio/"
    with client_of(behind_proxy) as client:
        assert client.get("/studio/v1/rows", headers=PUBLIC).status_code == 200
        assert client.get("/studio/static/app.js", headers=PUBLIC).status_code == 200
        assert client.get("/openapi.json").json()["servers"] == [{"url": "/studio"}]
        for name in ("index.html", "landing.html"):
            page = client.get(f"/static/{name}").text
            assert 'href="/' not in page
            assert 'src="/' not in page
            assert 'action="/' not in page


def test_headers_of_other_senders_do_not_count(server):
    answer = httpx.get(f"{server.base}/", params={"token": server.token}, headers={"X-Forwarded-Proto": "https"})
    assert "Secure" not in answer.headers["set-cookie"]
    proxy = Proxy("10.0.0.0/8", "X-Forwarded-User")
    scope, headers = {"client": ("10.1.2.3", 5), "scheme": "http"}, {"x-forwarded-user": "ann"}
    assert proxy.user(scope, headers) == "ann"
    assert proxy.user(scope | {"client": ("11.1.2.3", 5)}, headers) is None
    assert proxy.user(scope | {"client": None}, headers) is None
    assert proxy.scheme(scope | {"client": ("11.1.2.3", 5)}, {"x-forwarded-proto": "https"}) == "http"
    assert proxy.scheme(scope, {"x-forwarded-proto": "javascript"}) == "http"


def test_the_audit_log_says_who_explained_which_case_and_when(behind_proxy):
    quick = {"queries": 100}
    with client_of(behind_proxy) as client:
        client.post(
            "/v1/explain", json={"row": 7, **quick}, headers={"X-Forwarded-User": "ann", "X-Request-ID": "r1"}
        )
        client.post(
            "/v1/explain", json={"row": {"0": 1, "1": 2, "2": 3}, **quick}, headers={"X-Forwarded-User": "bo"}
        )
        client.post("/v1/what-if", json={"row": 7, "edits": {"nothing": 1}, **quick})
    lines = [json.loads(line) for line in behind_proxy.log.read_text().splitlines()]
    first, second, third = (line for line in lines if line["route"] in ("explain", "what-if"))
    assert (first["user"], first["case"], first["route"], first["request_id"]) == ("ann", 7, "explain", "r1")
    assert first["outcome"] == "answered"
    assert first["time"].startswith(time.strftime("%Y-", time.gmtime()))
    assert second["user"] == "bo"
    assert second["case"].startswith("sha256:")
    assert third["user"] is None
    assert third["outcome"] == "failed"


def test_the_audit_log_says_which_cases_were_summarized(behind_proxy):
    with client_of(behind_proxy, timeout=30) as client:
        job = begun(client, "/v1/overview", search="0>1", n_rows=2, k=2).removeprefix("/studio")
        client.get(f"{job}/result?format=csv")
        client.get("/v1/rows?search=0<0&limit=4")
    lines = {line["route"]: line for line in map(json.loads, behind_proxy.log.read_text().splitlines())}
    assert (lines["overview"]["search"], lines["overview"]["n_rows"]) == ("0>1", 2)
    assert lines["table"]["job"] == lines["overview"]["job"] == job.rpartition("/")[2]
    assert (lines["rows"]["search"], lines["rows"]["offset"], lines["rows"]["limit"]) == ("0<0", 0, 4)


@pytest.mark.parametrize(
    "options",
    [{"network": "proxy"}, {"user_header": "X-User"}, {"root_path": "studio"}, {"root_path": "/studio/"}],
)
def test_nonsense_about_the_proxy_is_refused(options):
    with pytest.raises(ParameterError):
        Proxy(**options)


def test_a_cookie_of_a_prefix_is_for_that_prefix():
    assert "Path=/a/;" in Access("t" * 20, frozenset()).set_cookie(secure=True, root_path="/a")


def test_an_audit_log_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(ParameterError, match="audit log"):
        studio_server.prepare(explainer(), on_ready=print, port=0, audit_log=tmp_path / "missing" / "log")
