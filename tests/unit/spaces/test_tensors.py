"""Tensors that a gradient is wanted of, as every space and every call with many rows receives them."""

import numpy as np
import pytest

from anchorline import Explainer, Hypercube, Image, Signal, Table


class Tensor:
    """What PyTorch's tensors that require a gradient do: only what is detached becomes an array."""

    def __init__(self, values, is_detached=False):
        self.values, self.is_detached = np.asarray(values, dtype=float), is_detached

    def detach(self):
        return Tensor(self.values, is_detached=True)

    def cpu(self):
        return self

    def numpy(self):
        if not self.is_detached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return self.values

    def __array__(self, dtype=None, copy=None):
        return self.numpy()


def total(rows):
    return np.asarray(rows).reshape(len(rows), -1).sum(axis=1)


@pytest.mark.parametrize(
    ("space", "instance"),
    [
        (Hypercube(), [1, -1, 1]),
        (Signal(segments=4), np.arange(16.0)),
        (Image(segments="grid", hidden=0), np.arange(1.0, 65.0).reshape(8, 8)),
        (Table(np.arange(60.0).reshape(20, 3)), [3.0, 7.0, 8.0]),
    ],
    ids=["hypercube", "signal", "image", "table"],
)
def test_a_tensor_that_requires_a_gradient_is_an_instance(space, instance):
    explainer = Explainer(total, space, output="total")
    assert explainer.explain(Tensor(instance), queries=100) == explainer.explain(np.array(instance), queries=100)


def test_many_rows_may_be_such_a_tensor():
    rows = np.arange(60.0).reshape(20, 3)
    many = Explainer(total, Table(rows), output="total").explain_many(Tensor(rows[:2]), queries=100)
    assert [e.prediction for e in many] == [3.0, 12.0]
