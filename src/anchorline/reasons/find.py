"""From an adverse decision to its main reasons: the reference, the choice, the codes, and the record."""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from anchorline.errors import FavorableError, ParameterError, ProhibitedError, ReasonsError, UnmappedError
from anchorline.model.outputs import plain_label
from anchorline.model.predictor import Predictor
from anchorline.reasons.shortfalls import Measured, measure, read_off, sides_of
from anchorline.result.codes import Codes
from anchorline.result.reasons import PRINCIPAL, Reasons, Recourse, Reference, Shortfall, StatedReason
from anchorline.search.assemble import VERSIONS
from anchorline.search.case import Case
from anchorline.search.table import TableAnswers
from anchorline.settings import ReasonSettings
from anchorline.spaces.base import Space
from anchorline.spaces.rows import plain
from anchorline.spaces.table import Table, TableNeighborhood

_NEAR_SHARE, _NEAR_ROWS = 0.1, 100  # of the rows beyond the threshold, and at least as many, are near it
_MOST, _PER_ATTRIBUTE = 12_000, 160  # copies of queries="auto", beside those of recourse
_ROUNDING, _FINE = 1e-9, 0.01  # of the largest shortfall
_MOST_VALUES = 400  # of one attribute that are asked about; more are spread evenly over the reference


def require(
    space: Space,
    threshold: float | None,
    classes: Sequence[Any] | None,
    settings: ReasonSettings,
    ignored: Collection[str],
) -> Table:
    """Return the table, or raise `ParameterError` if no reasons can follow from it; ``ignored`` are not read."""
    if not isinstance(space, Table) or space.neighbors != "independent" or space.valid is not None:
        raise ParameterError(
            "Reasons are about the attributes of a Table that are replaced one by one. Pass a Table without "
            "neighbors='realistic' and without valid=."
        )
    if threshold is None:
        raise ParameterError(f"Reasons need {_lacks_threshold(classes, settings.adverse)}")
    hidden = [name for name in space.fixed if name not in ignored]
    if hidden:
        raise ParameterError(
            f"fixed holds {', '.join(map(repr, hidden))}, which the model reads, and which then could never be a "
            "reason. Pass a Table without fixed=."
        )
    known = [attribute.name for attribute in space.attributes]
    possible = {*known, *space.names}
    strange = [name for name in settings.prohibited if name not in possible]
    if strange:
        raise ParameterError(
            f"prohibited holds {', '.join(map(repr, strange))}, but the columns are {', '.join(space.names)}. "
            "Correct the names."
        )
    members, codes = {member for group in space.groups.values() for member in group}, Codes(settings.codes)
    codes.check([name for name in dict.fromkeys([*space.groups, *known, *space.names]) if name not in members])
    for attribute in space.attributes:
        codes.check_one(attribute.names)
    return space


def _lacks_threshold(classes: Sequence[Any] | None, adverse: str) -> str:
    output = f"output={plain_label(classes[-1])!r}, " if classes else ""
    hint = _other_classes(classes, adverse) if classes else " The model must return scores, not labels."
    what = f"Type Explainer(model, table, {output}threshold=0.5).{hint}"
    return f"a threshold, from which the decision follows. {what}"


def _other_classes(classes: Sequence[Any] | None, adverse: str) -> str:
    """Return what to type if a suggested output, the last class, is not the one that the threshold is for."""
    if not classes or len(classes) < 2:
        return ""
    *others, last = (repr(plain_label(label)) for label in classes)
    which = "favorable" if adverse == "below" else "adverse"
    return f" If {last} is not the {which} class, name that instead: {' or '.join(others)}."


def near(
    table: Table, answers: TableAnswers, predictor: Predictor, threshold: float | None, adverse: str
) -> Table:
    """Return the table that draws from the rows whose score is at the threshold, or slightly on its good side.

    These are the tenth of the rows on this side that is nearest to the threshold, at least 100 of them (all, if
    there are fewer), and all further rows with the same score as the last of them.
    """
    if threshold is None:
        raise ParameterError(f"reference='near' needs {_lacks_threshold(predictor.target.classes, adverse)}")
    outputs = answers.outputs(predictor.open(table.at(0).original))
    distances = (
        outputs - threshold if adverse == "below" else np.where(outputs < threshold, threshold - outputs, -1)
    )
    passing = np.sort(distances[distances >= 0])
    if not len(passing):
        raise ParameterError(
            f"reference='near' is empty: none of {len(outputs):,} rows of the table is "
            f"{'at or above' if adverse == 'below' else 'below'} the threshold {threshold:g}. Type another "
            "threshold, or reference='all'."
        )
    n = min(len(passing), max(_NEAR_ROWS, int(np.ceil(_NEAR_SHARE * len(passing)))))
    chosen = np.flatnonzero((distances >= 0) & (distances <= passing[n - 1]))
    scores = outputs[chosen]
    return table.drawing_near(table.example_rows[chosen], (float(scores.min()), float(scores.max())))


def find_reasons(
    case: Case, settings: ReasonSettings, gains: Callable[[], np.ndarray | None], model: str | None
) -> Reasons:
    """Find the reasons of a case; ``gains`` are those of all donors, if trees have them; ``model`` is a digest."""
    neighborhood, predictor = case.neighborhood, case.predictor
    assert isinstance(neighborhood, TableNeighborhood)
    if not predictor.is_open:
        predictor.open(neighborhood.original)
    _check_decision(predictor, settings)
    known, table = gains(), neighborhood.table
    sign = 1.0 if settings.adverse == "below" else -1.0
    if known is not None:
        measured = read_off(neighborhood, known, sign)
    else:
        kept = _MOST_VALUES * settings.n if settings.recourse else 0
        most = case.n_left - min(kept, case.n_left // 2)
        enough = max(_MOST, _PER_ATTRIBUTE * len(table.attributes))
        is_auto = settings.common.is_auto
        most, fine = (min(most, enough), _FINE) if is_auto else (most, _ROUNDING)
        measured = measure(case, sign, lambda found: _open(found, settings.n, fine), most, is_patient=not is_auto)
    order, chosen, ties = choose(measured, settings.n)
    directions = ["low" if tilt > 0 else "high" if tilt < 0 else None for tilt in measured.tilts.tolist()]
    figures = zip(measured.values.tolist(), measured.halves.tolist(), measured.n.tolist(), directions, strict=True)
    every = [
        Shortfall(attribute.name, value, value - half, value + half, n, direction)
        for attribute, (value, half, n, direction) in zip(table.attributes, figures, strict=True)
    ]
    shortfalls = tuple(every[a] for a in order)
    _check_prohibited(
        table, shortfalls, [{neighborhood.names[a] for a in some} for some in (chosen, ties)], settings
    )
    if not chosen:
        raise ReasonsError(
            "No attribute is adverse compared with this reference: with its values, copies do not score better. "
            "Type reference='near', or pass other rows."
        )
    stated = []
    for a, (code, text) in zip(
        chosen, _coded(neighborhood, chosen, directions, Codes(settings.codes)), strict=True
    ):
        attribute, recourse = table.attributes[a], _recourse(case, a) if settings.recourse else None
        values = tuple(neighborhood.views.value(j) for j in attribute.positions)
        stated.append(StatedReason(attribute.name, attribute.names, values, code, text, recourse))
    return Reasons(
        instance=neighborhood.instance,
        prediction=predictor.prediction,
        output=predictor.output,
        reasons=tuple(stated),
        shortfalls=shortfalls,
        near_ties=tuple(neighborhood.names[a] for a in order if a in ties),
        reference=Reference(table.reference, table.n_pool, *(table.near_scores or (None, None))),
        source="drawn" if known is None else "leaves",
        model=model,
        codes_sha256=Codes(settings.codes).sha256,
        n_queries=predictor.questions.n_answers,
        settings=settings.to_dict(),
        space=table.describe(neighborhood),
        versions=VERSIONS,
    )


def _check_decision(predictor: Predictor, settings: ReasonSettings) -> None:
    output, score = predictor.output, predictor.prediction
    if predictor.questions.n_columns is not None and predictor.target.column is None:
        raise ParameterError(
            "The model has several scores, and nothing says which one the threshold is for. Type Explainer(model, "
            f"table, output={(output.classes or (0,))[-1]!r}, threshold={output.threshold:g})."
            f"{_other_classes(output.classes, settings.adverse)}"
        )
    assert output.threshold is not None
    if (score >= output.threshold) == (settings.adverse == "below"):
        other = "above" if settings.adverse == "below" else "below"
        name, decision = output.name, "favorable"
        if output.is_probability:
            others = [str(label) for label in output.classes or () if str(label) != name]
            turned = others[0] if len(others) == 1 else f"not {name}"
            decision = f"{name if settings.adverse == 'below' else turned}, which is favorable"
            name = f"P({name})"
        raise FavorableError(
            f"The model's decision on this row is {decision}, so nothing is adverse: {name} is {score:.4g}, "
            f"{output.decision}. If scores {other} the threshold are adverse, type adverse={other!r}."
        )


def choose(measured: Measured, n: int) -> tuple[list[int], list[int], list[int]]:
    """Return the attributes by their shortfalls, the chosen ones, and those that are close to the cut.

    At most n are chosen, the largest first, each at least a twentieth of the largest. Equal ones keep the order of
    the table. Close are those whose limits overlap across the cut.
    """
    values, slack = measured.values, _ROUNDING * measured.scale
    lows, highs = values - measured.halves, values + measured.halves
    order = sorted(range(len(values)), key=lambda a: (-round(float(values[a]) / measured.scale, 9), a))
    if not order or lows[order[0]] <= slack:
        return order, [], []
    line = PRINCIPAL * np.array([lows[order[0]], values[order[0]], highs[order[0]]])
    chosen = [a for a in order[:n] if values[a] >= line[1] - slack]
    left = [a for a in order if a not in chosen and highs[a] >= line[0] - slack]
    if len(chosen) == n:
        left = [b for b in left if highs[b] >= lows[chosen].min() - slack]
    close = [a for a in chosen[1:] if lows[a] < line[2] - slack]
    if left and len(chosen) == n:
        close += [a for a in chosen if a not in close and lows[a] <= highs[left].max() + slack]
    return order, chosen, [*close, *left]


def _open(measured: Measured, n: int, fine: float) -> list[int]:
    """Return what must be asked about again: what is close to the cut, and not yet known this finely.

    ``fine`` is relative to the largest. That itself is needed four times less finely, because 5% of it are the
    line of what is a principal reason.
    """
    order, chosen, ties = choose(measured, n)
    if not chosen:
        return [a for a in order if measured.values[a] + measured.halves[a] > _ROUNDING * measured.scale]
    needed = dict.fromkeys(ties, fine) | ({order[0]: 4 * fine} if ties and order[0] not in ties else {})
    return [a for a, limit in needed.items() if measured.halves[a] > limit * measured.scale]


def _check_prohibited(
    table: Table, shortfalls: Sequence[Shortfall], found: Sequence[set[str]], settings: ReasonSettings
) -> None:
    """Raise `ProhibitedError` if a prohibited attribute is ``found`` among the chosen ones, or near the cut."""
    chosen, ties = found
    columns = {attribute.name: attribute.names for attribute in table.attributes}
    used = [
        each
        for each in shortfalls
        if each.attribute in chosen | ties and {each.attribute, *columns[each.attribute]} & {*settings.prohibited}
    ]
    if used:
        names = [_named(each.attribute, columns[each.attribute]) for each in used]
        figures = [f"shortfall {each.value:.3g}, limits {each.low:.3g} to {each.high:.3g}" for each in used]
        texts = [f"{name} ({figure})" for name, figure in zip(names, figures, strict=True)]
        is_sure = any(each.attribute in chosen - ties for each in used)
        would = "would be" if is_sure else "would be, or could be,"
        raise ProhibitedError(
            f"No reasons are issued, because a prohibited attribute {would} one of them: {', '.join(texts)}. "
            f"Correct the model; check_use(model, table, {used[0].attribute!r}) says which decisions depend on it."
        )


def _coded(
    neighborhood: TableNeighborhood, chosen: Sequence[int], directions: Sequence[str | None], codes: Codes
) -> list[tuple[str, str]]:
    """Return code and text of the chosen attributes; raise `UnmappedError`, which lists all that have none."""
    if not codes.entries:
        return [("", "")] * len(chosen)
    attributes, found, lacking = neighborhood.table.attributes, list[tuple[str, str]](), list[str]()
    examples, shares = list[tuple[str, str]](), False
    for a in chosen:
        own = attributes[a]
        values = {name: neighborhood.views.value(j) for name, j in zip(own.names, own.positions, strict=True)}
        is_missing = all(value is None for value in values.values())
        if own.name not in values:  # a group has one code
            value = neighborhood.views.value(own.views[0]) if len(own.views) == 1 else ""
            values = {own.name: None if is_missing else value}
        pair = codes.find_any(values, directions[a])
        if pair is None:
            value = values[own.name]
            when = "missing" if is_missing else directions[a] or (f"= {value}" if value != "" else "a group")
            lacking.append(f"{_named(own.name, own.names)} ({when})")
            has_codes = when != "a group" and {*values} & {*codes.attributes}
            examples.append((own.name, when if has_codes else ""))
            shares = shares or len(values) > 1
        else:
            found.append(pair)
    if lacking:
        others = [each.name for each in attributes if not {each.name, *each.names} & {*codes.attributes}]
        further = (
            " Columns that say the same thing are one reason, for which a code of one will do." if shares else ""
        )
        further += f" Attributes without any code: {', '.join(map(repr, others))}." if others else ""
        name, when = examples[0]
        example: object = ("R01", "Text of the letter")
        raise UnmappedError(
            f"These reasons have no code: {', '.join(lacking)}.{further} Add them, such as "
            f"codes={{{name!r}: { ({when: example} if when else example)!r}}}."
        )
    return found


def _named(attribute: str, columns: Sequence[str]) -> str:
    """Return an attribute with the columns that say the same thing, or a group with its columns."""
    others = ", ".join(repr(name) for name in columns if name != attribute)
    return f"{attribute!r} {'with' if attribute in columns else 'of'} {others}" if others else repr(attribute)


def _recourse(case: Case, attribute: int) -> Recourse:
    """Return what each value of the reference for one attribute alone would do, weighted by its share."""
    neighborhood = case.neighborhood
    assert isinstance(neighborhood, TableNeighborhood)
    table = neighborhood.table
    numbers, firsts = table.distinct[attribute]
    weights, tried = np.bincount(numbers) / len(numbers), firsts
    most = min(_MOST_VALUES, case.n_left)
    is_complete = len(firsts) <= most
    if not is_complete:
        tried = np.unique((np.arange(most) + 0.5) * (table.n_pool / most)).astype(np.intp)
        weights = np.full(len(tried), 1 / len(tried))
    donors = np.full((len(neighborhood.names), len(tried)), -1, dtype=np.intp)
    donors[attribute] = tried
    stays = case.ask(donors).stays
    assert stays is not None  # there is a threshold
    share = float(weights[~stays].sum()) if not stays.all() else 0.0
    nearest = None if stays.all() else _nearest(neighborhood, attribute, tried[~stays], weights[~stays])
    return Recourse(min(share, 1.0), len(tried), is_complete, nearest)


def _nearest(
    neighborhood: TableNeighborhood, attribute: int, donors: np.ndarray, weights: np.ndarray
) -> tuple[Any, ...]:
    """Return the values of a donor: of numbers and dates the nearest to the own one, else the most frequent."""
    table, own = neighborhood.table, neighborhood.table.attributes[attribute]
    if (sides := sides_of(neighborhood, attribute)) is not None:
        at, _, n_present = sides
        chosen = donors[np.argmin(np.where(donors < n_present, np.abs(donors - at), table.n_pool))]
    else:
        chosen = donors[np.argmax(weights)]
    natives = [table.donated.pick(j, np.array([chosen])) for j in own.positions]
    cells = [table.schema.fields[j].reading(native) for j, native in zip(own.positions, natives, strict=True)]
    return tuple(plain(cell, native) for cell, native in zip(cells, natives, strict=True))
