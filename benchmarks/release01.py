"""Release 0.1, for comparisons: it runs in a child process with an environment of its own.

``ANCHORLINE_01`` names the Python executable of an environment in which commit 1f6deb0 is installed. Without it,
comparisons leave out the columns of 0.1. The child reads the model and the frame from a file, then one request per
line, and answers with one line each, so that both releases can take turns row by row.
"""

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import joblib
import numpy as np

VARIABLE = "ANCHORLINE_01"
_ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class OldExplanation:
    """What 0.1 said about a row: facts as (column, text), largest contribution first; processor time and memory.

    ``megabytes``: by how much the process grew beyond its largest size before.
    """

    facts: tuple[tuple[str, str], ...]
    verdict: str
    seconds: float
    megabytes: float


def python_of_01() -> str | None:
    """Return the Python executable of 0.1's environment, or None, after a line that says so."""
    python = os.environ.get(VARIABLE)
    if python is None:
        print(f"   without 0.1: set {VARIABLE} to the Python of an environment that has it", flush=True)
    return python


class Release01:
    """A child process that explains rows of a frame with release 0.1; use it in a `with` statement."""

    def __init__(self, python: str, model: Any, frame: Any, **keywords: Any) -> None:
        self._folder = tempfile.TemporaryDirectory()
        file = Path(self._folder.name) / "model.joblib"
        joblib.dump((model, frame, keywords), file)
        packages = sysconfig.get_path("purelib")  # libraries of models that 0.1's environment may lack
        command = [python, "-W", "ignore", "-m", "benchmarks.release01", str(file), packages]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # finds 0.1 only
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        self._child = subprocess.Popen(
            command, cwd=_ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def __enter__(self) -> "Release01":
        return self

    def __exit__(self, *_: object) -> None:
        _stream(self._child.stdin).close()
        self._child.wait()
        _stream(self._child.stdout).close()
        self._folder.cleanup()

    def explain(self, row: int, **keywords: Any) -> OldExplanation:
        """Explain a row of the frame, by its number."""
        requests, answers = _stream(self._child.stdin), _stream(self._child.stdout)
        print(json.dumps({"row": row, "keywords": keywords}), file=requests, flush=True)
        line = answers.readline()
        if not line:
            raise RuntimeError(f"Release 0.1 ended with code {self._child.wait()}; its messages are above.")
        found = json.loads(line)
        facts = tuple((column, text) for column, text in found["facts"])
        return OldExplanation(facts, found["verdict"], found["seconds"], found["megabytes"])


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


def rows_with(column: str, text: str, values: Any) -> np.ndarray:
    """Return of which values of a column a fact of 0.1 is true as it reads: booleans (n,).

    Examples
    --------
    >>> import pandas as pd
    >>> ages = pd.Series([3.0, 15.0, 40.0, None])
    >>> rows_with("age", "5 <= age < 22", ages).tolist(), rows_with("age", "age is missing", ages).tolist()
    ([False, True, False, False], [False, False, False, True])
    """
    before, _, after = text.partition(column)
    after = after.strip()
    if after in ("is missing", "is not missing"):
        return np.asarray(values.isna() == (after == "is missing"))
    if after.endswith("rare values"):  # "is one of 3 rare values"
        rare = values.astype(object).value_counts().index[-int(after.split()[3]) :]
        return np.asarray(values.astype(object).isin(rare))
    sign, _, right = after.partition(" ")
    if sign == "=":
        if values.dtype == "category" or values.dtype.kind not in "biuf":
            return np.asarray(values.astype(object).astype(str) == right)
        return np.asarray(values == _number(right))
    true = np.ones(len(values), dtype=bool)
    if before:
        true &= np.asarray(values >= _number(before.removesuffix(" <= ")))
    if sign:
        compare = {"<": np.less, "<=": np.less_equal, ">=": np.greater_equal, ">": np.greater}[sign]
        true &= np.asarray(compare(values.to_numpy(dtype=float), _number(right)))
    return true


def largest_size() -> float:
    """Return the most memory that this process has used, in megabytes."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _number(text: str) -> float:
    return float({"True": "1", "False": "0"}.get(text, text).replace(",", ""))


def main(file: str, packages: str) -> None:
    """Answer requests about the model and frame of a file; runs in 0.1's environment."""
    answers, sys.stdout = sys.stdout, sys.stderr
    sys.path.append(packages)
    warnings.simplefilter("ignore")
    import anchorline

    model, frame, choices = joblib.load(file)
    explainer = anchorline.Explainer(model, anchorline.Table(frame), **choices)
    for line in sys.stdin:
        request = json.loads(line)
        start, size = time.process_time(), largest_size()
        explanation: Any = explainer.explain(request["row"], **request["keywords"])
        seconds, megabytes = time.process_time() - start, largest_size() - size
        facts = [(term.literal.name, term.literal.text) for term in explanation.terms]
        verdict = explanation.certificate.verdict
        answer = {"facts": facts, "verdict": verdict.name.lower() if verdict else ""}
        answer |= {"seconds": seconds, "megabytes": megabytes}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
