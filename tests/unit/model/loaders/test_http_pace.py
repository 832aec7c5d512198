"""Requests at a limited rate and in parallel: answers keep their order, and turns their distance."""

import itertools
import threading
import time

import numpy as np
import pandas as pd
import pytest

from anchorline.errors import ParameterError
from anchorline.model.loaders import HttpLimits
from helpers.model_server import mlflow

FRAME = pd.DataFrame({"a": np.arange(12.0)})


def test_parallel_answers_keep_their_order(server, load):
    under_way, most, lock = [0], [0], threading.Lock()

    def answer(request, body):
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.05 if body["dataframe_split"]["data"][0][0] % 2 else 0.15)
        mlflow(request, body)
        with lock:
            under_way[0] -= 1

    server.answer = answer
    model = load(f"{server.address}/invocations", http=HttpLimits(batch_rows=1, parallel=4))
    assert model(FRAME).tolist() == (2 * FRAME["a"]).tolist()
    assert 2 <= most[0] <= 4


def test_requests_keep_their_distance(server, load):
    starts = []

    def answer(request, body):
        starts.append(time.monotonic())
        mlflow(request, body)

    server.answer = answer
    limits = HttpLimits(batch_rows=2, parallel=3, requests_per_second=20)
    model = load(f"{server.address}/invocations", http=limits)
    begin = time.monotonic()
    assert model(FRAME).tolist() == (2 * FRAME["a"]).tolist()
    assert time.monotonic() - begin >= 5 / 20
    assert len(starts) == 6
    assert all(later >= first for first, later in itertools.pairwise(starts))


@pytest.mark.parametrize("limits", [{"parallel": 0}, {"requests_per_second": 0}, {"requests_per_second": "2"}])
def test_bad_limits_are_named(limits):
    with pytest.raises(ParameterError, match="must be a number above 0"):
        HttpLimits(**limits)
