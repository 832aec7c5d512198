"""Altered copies to look at: a frame of neighbors with the model's outputs."""

from typing import Any

import numpy as np

from anchorline.result.frames import frame_in
from anchorline.search.case import Case
from anchorline.spaces.base import Space


def altered_copies(case: Case, space: Space, n: int) -> Any:
    """Return n neighbors of an opened case, drawn by its law: their values, the output, and whether it stays.

    A table gives a frame of its own kind, or of pandas if it is an array. Of other spaces, a column per attribute
    says whether the copy has it unchanged.
    """
    donors = case.draw("copies", 0, n)
    asked = case.ask(donors)
    figures = {_free(case.predictor.output.name, space.names): case.predictor.prediction - asked.drops}
    if asked.stays is not None:
        figures[_free("same decision", space.names)] = asked.stays
    if not space.names:
        unchanged = case.neighborhood.cells(donors) == case.neighborhood.candidates.own[:, None]
        names = [case.neighborhood.names[a] for a in case.neighborhood.candidates.attributes.tolist()]
        return frame_in("pandas", _columns(dict(zip(names, unchanged, strict=True)) | figures))
    inputs = case.neighborhood.realize(donors)
    if isinstance(inputs, np.ndarray):
        return frame_in("pandas", _columns(dict(zip(space.names, inputs.T, strict=True)) | figures))
    import narwhals as nw  # noqa: PLC0415  heavy

    frame = nw.from_native(inputs)
    new = (nw.new_series(name, values, backend=frame.implementation) for name, values in figures.items())
    return frame.with_columns(*new).to_native()


def _free(name: str, taken: tuple[str, ...]) -> str:
    """Return a name that no column of the table has."""
    return name if name not in taken else _free(f"{name} (model)", taken)


def _columns(columns: dict[str, np.ndarray]) -> dict[str, list[Any]]:
    return {name: values.tolist() for name, values in columns.items()}
