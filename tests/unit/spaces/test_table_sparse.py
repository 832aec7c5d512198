"""SciPy's sparse matrices and arrays as training tables and as rows: the same bytes as for dense arrays."""

import numpy as np
import pytest
import scipy.sparse

import anchorline as al
from anchorline.spaces import columns

DENSE = np.random.default_rng(3).poisson(0.4, (300, 6)).astype(float)
CHEAP = {"k": 3, "queries": 200}
FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr"]


def model(rows):
    assert isinstance(rows, np.ndarray)
    return np.tanh(rows[:, 0] - rows[:, 1] * rows[:, 2])


def explained(table, row):
    return al.Explainer(model, al.Table(table), output_range=(-1, 1)).explain(row, **CHEAP).to_json()


@pytest.mark.parametrize("kind", ["matrix", "array"])
@pytest.mark.parametrize("name", FORMATS)
def test_a_sparse_table_is_read_like_the_dense_one(name, kind):
    sparse = getattr(scipy.sparse, f"{name}_{kind}")(DENSE)
    row = getattr(scipy.sparse, f"{name}_{kind}")(DENSE[7:8])
    assert al.Table(sparse).fingerprint == al.Table(DENSE).fingerprint
    assert explained(sparse, row) == explained(DENSE, DENSE[7])


def test_a_sparse_vector_is_a_row():
    assert explained(DENSE, scipy.sparse.coo_array(DENSE[7])) == explained(DENSE, DENSE[7])


def test_many_sparse_rows_are_explained():
    explainer = al.Explainer(model, al.Table(scipy.sparse.csr_matrix(DENSE)), output_range=(-1, 1))
    many = explainer.explain_many(scipy.sparse.csr_matrix(DENSE[:3]), **CHEAP)
    assert [e.to_json() for e in many] == [explained(DENSE, row) for row in DENSE[:3]]


def test_a_sparse_table_at_the_limit_is_accepted_and_one_beyond_is_not(monkeypatch):
    sparse = scipy.sparse.csr_matrix(DENSE)
    monkeypatch.setattr(columns, "MAX_DENSE_CELLS", 300 * 6)
    assert al.Table(sparse).schema.n_rows == 300
    monkeypatch.setattr(columns, "MAX_DENSE_CELLS", 300 * 6 - 1)
    with pytest.raises(al.AnchorlineError, match=r"sparse csr_matrix of 300 x 6 = 1,800 cells; .* at most 1,799"):
        al.Table(sparse)
    explainer = al.Explainer(model, al.Table(DENSE), output_range=(-1, 1))
    with pytest.raises(al.AnchorlineError, match=r"`X.tocsr\(\)\[:1000\]`"):
        explainer.explain_many(sparse)
