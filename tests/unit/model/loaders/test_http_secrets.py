"""`HttpModel` sends credentials to the server, and never shows them anywhere else; addresses are checked."""

import logging
import pickle

import pytest

from anchorline import errors
from anchorline.model.loaders import load_model
from anchorline.model.loaders.http_endpoint import redact_address
from helpers.model_server import FRAME, flaky, mlflow


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
    assert server.requests[0][1] == "/invocations?key=sesame"
    texts = [repr(model), str(vars(model.__class__)), repr(pickle.dumps(model)), str(raised.value), caplog.text]
    assert not any("hunter2" in text for text in texts)
    assert "sesame" not in repr(model) + str(raised.value) + caplog.text
    assert "HTTP Request: POST" in caplog.text  # httpx logged the request
    again = pickle.loads(pickle.dumps(model))
    assert again(FRAME).tolist() == [1.0, 3.0, 5.0]
    again.close()


def test_a_wrong_token(server, load):
    server.answer = flaky(401)
    with pytest.raises(errors.RemoteModelError, match=r"answered 401: set ANCHORLINE_HTTP_TOKEN"):
        load(f"{server.address}/invocations")(FRAME)


@pytest.mark.parametrize("token", ["", "long-" * 400])
def test_secrets_that_a_server_repeats_are_not_shown(server, load, monkeypatch, token):
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
    assert server.requests[0][2]["Authorization"] == "Basic YWRhOnNlc2FtZQ=="


def test_a_token_that_is_not_valid(server, load, monkeypatch):
    monkeypatch.setenv("ANCHORLINE_HTTP_TOKEN", "two\nlines")
    with pytest.raises(errors.ParameterError, match="ANCHORLINE_HTTP_TOKEN contains a blank") as raised:
        load(f"{server.address}/invocations")(FRAME)
    assert "two" not in str(raised.value)


def test_a_warning_about_unencrypted_credentials(load, monkeypatch, caplog):
    monkeypatch.setenv("ANCHORLINE_HTTP_TOKEN", "hunter2")
    load("http://model.example/invocations")
    assert "unencrypted" in caplog.text
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize(
    ("address", "match"),
    [
        ("http://ada:sesame@localhost/invocations", "holds a user or password"),
        ("http:///invocations", "is not a valid address"),
        ("http://localhost:99999/invocations", "is not a valid address"),
        ("http://[::1/invocations", "is not a valid address"),
        ("http://local host/invocations", "is not a valid address"),
        ("http://256.1.1.1/invocations", "is not a valid address"),
        ("http://a..b/invocations", "is not a valid address"),
        ("http://xn--/invocations", "is not a valid address"),
        ("http://xn--a/invocations", "is not a valid address"),
    ],
)
@pytest.mark.parametrize("kind", [None, "mlflow"])
def test_addresses_that_are_refused(address, match, kind):
    with pytest.raises(errors.ModelFileError, match=match) as raised:
        load_model(address, kind=kind)
    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize("location", ["http://xn--/invocations", "http://256.1.1.1/", "http://[::1/"])
def test_redirects_to_invalid_addresses(server, load, location):
    server.answer = lambda request, body: request.reply({}, 307, Location=location)
    with pytest.raises(errors.RemoteModelError):
        load(f"{server.address}/invocations")(FRAME)


def test_addresses_without_a_protocol():
    with pytest.raises(errors.ModelFileError, match="Pass kind='mlflow'") as raised:
        load_model("https://u:sesame@model.example/score?key=abc")
    assert "sesame" not in str(raised.value)
    assert load_model("https://model.example/score", kind="mlflow").address == "https://model.example/score"
    with pytest.raises(errors.ModelFileError, match="Pass kind='mlflow'"):
        load_model("https://invocations?a=/invocations")


def test_redacted_addresses():
    assert redact_address("https://u:p@host:8443/a/b?key=1#x") == "https://host:8443/a/b?..."
    assert redact_address("http://[::1]:80/") == "http://[::1]:80/"
    assert redact_address("/moved?key=1") == "/moved"
