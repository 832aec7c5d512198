"""Kinds of models that MLflow keeps, and of models behind an address."""

import atexit
import json
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any

from anchorline.model.loaders import load_model
from tests.first_try.kinds import Try, kind, label, numbers
from tests.first_try.models import NAMES

GROUP = "MLflow and servers"
SETTINGS = {"name": "own", "implementation": "scorer.Scorer"}
SCORER = """
import numpy as np
from mlserver import MLModel
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse


class Scorer(MLModel):
    async def load(self):
        return True

    async def predict(self, payload):
        rows = np.column_stack([NumpyCodec.decode_input(each).reshape(-1) for each in payload.inputs])
        rows = rows if len(payload.inputs) > 1 else NumpyCodec.decode_input(payload.inputs[0])
        p = 1 / (1 + np.exp(9 - rows[:, 0] - rows[:, 1]))
        scores = NumpyCodec.encode_output("predict_proba", np.column_stack([1 - p, p]))
        return InferenceResponse(model_name=self.name, outputs=[scores])
"""


@cache
def _kept(function: str) -> Any:
    """Return a model that MLflow has saved and loaded, which answers as one function of scikit-learn's model."""
    import mlflow

    return mlflow.pyfunc.load_model(_saved(function))


@cache
def _saved(function: str) -> str:
    """Return the folder in which MLflow has saved a model."""
    import mlflow
    from sklearn.linear_model import LogisticRegression

    folder = str(Path(tempfile.mkdtemp()) / "model")
    model = LogisticRegression().fit(numbers(), label())
    mlflow.sklearn.save_model(model, folder, pyfunc_predict_fn=function, serialization_format="cloudpickle")
    return folder


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def _serve(command: list[str], address: str, folder: str = ".") -> None:
    """Start a server, which ends with the tests, and return when it answers."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([sys.executable, *command], cwd=folder, **quiet)
    atexit.register(server.kill)
    for _ in range(900):
        try:
            with urllib.request.urlopen(address, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise TimeoutError(address)


@kind("model", GROUP, "MLflow pyfunc, labels", "mlflow")
def _() -> Try:
    return Try(_kept("predict"), numbers(), columns=NAMES)


@kind("model", GROUP, "MLflow pyfunc, probabilities", "mlflow")
def _() -> Try:
    return Try(_kept("predict_proba"), numbers(), columns=NAMES, keywords={"classes": ["no", "yes"]})


@kind("model", GROUP, "MLflow served, labels", "mlflow", "uvicorn", "httpx")
def _() -> Try:
    return Try(load_model(_served("predict")), numbers(), columns=NAMES)


@kind("model", GROUP, "MLflow served, probabilities", "mlflow", "uvicorn", "httpx")
def _() -> Try:
    model = load_model(_served("predict_proba"))
    return Try(model, numbers(), columns=NAMES, keywords={"classes": ["no", "yes"]})


@cache
def _served(function: str) -> str:
    """Return the address at which MLflow's server answers."""
    port = _free_port()
    program = (
        "import mlflow, uvicorn; from mlflow.pyfunc import scoring_server as server; "
        f"uvicorn.run(server.init(mlflow.pyfunc.load_model({_saved(function)!r})), port={port})"
    )
    _serve(["-c", program], f"http://127.0.0.1:{port}/ping")
    return f"http://127.0.0.1:{port}/invocations"


@kind("model", GROUP, "MLServer by Open Inference", "mlserver", "httpx")
def _() -> Try:
    folder, ports = Path(tempfile.mkdtemp()), [_free_port() for _ in range(3)]
    (folder / "scorer.py").write_text(SCORER)
    (folder / "model-settings.json").write_text(json.dumps(SETTINGS))
    names = ("http_port", "grpc_port", "metrics_port")
    settings = {"host": "127.0.0.1", "parallel_workers": 0, "debug": False} | dict(zip(names, ports, strict=True))
    (folder / "settings.json").write_text(json.dumps(settings))
    command = ["-c", "from mlserver.cli import main; main()", "start", "."]
    _serve(command, f"http://127.0.0.1:{ports[0]}/v2/models/own/ready", str(folder))
    model = load_model(f"http://127.0.0.1:{ports[0]}/v2/models/own/infer")
    return Try(model, numbers(), columns=NAMES, keywords={"classes": ["no", "yes"]})
