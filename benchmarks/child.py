"""Child processes with environments of their own, which answer requests line by line.

A child reads what it works on from a file, then one request per line, and answers with one line each, so that
several packages can take turns row by row. This module imports nothing of the library, because other environments
run it.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import joblib

_ROOT = Path(__file__).parents[1]


class Child:
    """A process that runs a module of the benchmarks with another Python; use it in a `with` statement.

    The module is called with the file that holds ``content``, and then with the other arguments.
    """

    def __init__(self, python: str, module: str, content: Any, *arguments: str) -> None:
        self._folder, self._module = tempfile.TemporaryDirectory(), module
        file = Path(self._folder.name) / "content.joblib"
        joblib.dump(content, file)
        command = [python, "-W", "ignore", "-m", module, str(file), *arguments]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            command, cwd=_ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> "Child":
        return self

    def __exit__(self, *_: object) -> None:
        _stream(self._process.stdin).close()
        self._process.wait()
        _stream(self._process.stdout).close()
        self._folder.cleanup()

    def ask(self, **request: Any) -> dict[str, Any]:
        """Return the answer to a request; both are plain values that JSON can hold."""
        requests, answers = _stream(self._process.stdin), _stream(self._process.stdout)
        print(json.dumps(request), file=requests, flush=True)
        line = answers.readline()
        if not line:
            raise RuntimeError(f"{self._module} ended with code {self._process.wait()}; its messages are above.")
        return dict(json.loads(line))


def serve(start: Callable[[], Callable[[dict[str, Any]], dict[str, Any]]]) -> None:
    """Answer the requests of a parent by a function that ``start`` returns; what is printed goes to stderr."""
    answers, sys.stdout = sys.stdout, sys.stderr
    warnings.simplefilter("ignore")
    answer = start()
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line))), file=answers, flush=True)


def python_of(variable: str, package: str) -> str | None:
    """Return the Python that an environment variable names, or None, after a line that says so."""
    python = os.environ.get(variable)
    if python is None:
        print(f"   without {package}: set {variable} to the Python of an environment that has it", flush=True)
    return python


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream
