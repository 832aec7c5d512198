"""A local HTTP server for the tests of `HttpModel`, and the answers that it can give."""

import contextlib
import json
from http.server import BaseHTTPRequestHandler

import pandas as pd

FRAME = pd.DataFrame({"a": [0.5, 1.5, 2.5], "n": [1, 2, 3], "town": ["x", "y", None]})
METADATA = {"name": "m", "inputs": [{"name": "rows", "datatype": "FP32", "shape": [-1, 2]}]}


class Handler(BaseHTTPRequestHandler):
    """Records each request in ``server.requests``, and lets ``server.answer`` reply to it."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        content = self.rfile.read(int(self.headers.get("content-length", 0)))
        body = json.loads(content) if content else None
        self.server.requests.append((self.command, self.path, dict(self.headers), body))
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.server.answer(self, body)

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


def mlflow(request, body):
    """Answer with twice the number in the first column."""
    request.reply({"predictions": [2 * row[0] for row in body["dataframe_split"]["data"]]})


def open_inference(metadata):
    """Return a handler that answers with two class scores from the first value of every row."""

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
    """Return a handler that fails once with each of these statuses, and then answers as `mlflow`."""
    left = list(statuses)

    def answer(request, body):
        if left:
            request.reply({"error": "later"}, left.pop(0), **headers)
        else:
            mlflow(request, body)

    return answer
