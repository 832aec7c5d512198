"""Whether any value of an attribute changes any decision in a table."""

import numpy as np

from anchorline.errors import ParameterError
from anchorline.model.outputs import Target
from anchorline.model.predictor import Predictor, Questions, Scores, batches
from anchorline.model.trees.reading import allowed_error
from anchorline.result.reasons import Use
from anchorline.search.leaves import codes_of
from anchorline.search.trees import JoinedTrees, ModelTrees
from anchorline.settings import checked_count
from anchorline.spaces.base import Space
from anchorline.spaces.table import Table


def find_use(
    space: Space, target: Target, threshold: float | None, trees: ModelTrees, attribute: str, queries: int
) -> Use:
    """Ask about the rows of a table with each value of an attribute, and count the decisions that change."""
    if not isinstance(space, Table):
        raise ParameterError("check_use is about a column of a table. Pass a Table.")
    if not isinstance(attribute, str):
        raise ParameterError(
            f"attribute is {attribute!r}, but it must be the name of a column or a group. Type check_use(model, "
            f"table, {space.names[0]!r})."
        )
    checked_count("queries", queries, 1, "queries=1_000_000")
    table, questions, positions = space.drawing_from("all"), Questions(target), space.positions(attribute)
    natives, rows = table.schema.natives, table.example_rows
    scores = [questions.ask(natives.rows(rows[a:b]), b - a) for a, b in batches(len(rows))]
    predictor = Predictor(questions, threshold).open_with(scores[0].part(slice(0, 1)))
    decided = [_decisions(predictor, each) for each in scores]
    values, by_trees = table.different_rows(positions), False
    joined = trees.joined(trees.deciding(target))
    told_apart = None if joined is None else _told_apart(joined, attribute, values)
    if joined is not None and told_apart is not None:
        inputs = natives.rows(rows[: len(decided[0])])
        if allowed_error(joined.reading, target, inputs, scores[0]) is not None:
            values, by_trees = told_apart, True
    n_values, most = len(values), max(1, queries // len(rows))
    if n_values > most:
        values = values[np.linspace(0, n_values - 1, most).astype(np.intp)]
    changed = np.zeros(len(rows), dtype=bool)
    for value in values.tolist() if n_values > 1 else []:
        order = np.full(len(rows), value)
        for (a, b), own in zip(batches(len(rows)), decided, strict=True):
            columns = [
                natives.pick(j, order[a:b] if j in positions else rows[a:b]) for j in range(len(table.names))
            ]
            inputs = natives.of_columns(columns).rows(np.arange(b - a))
            changed[a:b] |= _decisions(predictor, questions.ask(inputs, b - a)) != own
    counts = int(changed.sum()), len(rows), len(values), n_values, questions.n_answers
    return Use(attribute, *counts, by_trees, tuple(table.names[j] for j in positions))


def _decisions(predictor: Predictor, scores: Scores) -> np.ndarray:
    """Return what is decided on each row, (n,): a side of the threshold, a class, a label, or a number."""
    if predictor.output.threshold is not None:
        return np.asarray(predictor.read(scores).outputs >= predictor.output.threshold)
    return scores.values if scores.named is None else scores.named


def _told_apart(joined: JoinedTrees, attribute: str, values: np.ndarray) -> np.ndarray | None:
    """Return one of these rows per set of values of an attribute that pass the same tests; None if unknown."""
    attributes, ensemble = joined.table.attributes, joined.reading.ensemble
    number = next((i for i, each in enumerate(attributes) if attribute in (each.name, *each.names)), None)
    if number is None:
        return None
    features, codes = (
        joined.features(joined.table.schema.natives.rows(values)),
        [np.zeros(len(values), dtype=np.intp)],
    )
    for j in np.flatnonzero(joined.owners == number).tolist():
        codes.append(codes_of(ensemble, np.flatnonzero(ensemble.feature == j), features[:, j]))
    return values[np.sort(np.unique(np.column_stack(codes), axis=0, return_index=True)[1])]
