"""Tables and readers of literals that the tests of spaces share."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest


@pytest.fixture
def people():
    """A frame with a number, a category, a number that most rows share, and a date."""
    return pd.DataFrame(
        {
            "age": np.r_[np.arange(20, 64), 37, 48],
            "workclass": ["Private"] * 30 + ["State-gov"] * 16,
            "capital-gain": [0] * 40 + [2174, 3000, 5178, 7688, 14084, 99999],
            "date": pd.date_range("2018-01-01", periods=46, freq="10D"),
        }
    )


@pytest.fixture(scope="session")
def texts():
    """A function that returns the texts of a row's literals."""

    def texts_of(table, row):
        return [literal.text for literal in table.at(row).literals]

    return texts_of


@pytest.fixture(scope="session")
def held():
    """A function that returns what a row's literals state about neighbors that do not flip them."""

    def held_texts_of(table, row):
        return [literal.held for literal in table.at(row).literals]

    return held_texts_of


@pytest.fixture(scope="session")
def natively():
    """A function that returns the values of a column as the frame's own library has them."""

    def native_values(frame, name="x"):
        return frame[name].to_pylist() if isinstance(frame, pa.Table) else list(frame[name])

    return native_values
