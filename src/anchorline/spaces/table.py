"""The space of table rows: numbers, categories, dates and missing values, in pandas, Polars, Arrow or NumPy."""

import copy
import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from anchorline.errors import InstanceError, ParameterError, listed, names_similar_keywords
from anchorline.facts import Candidates, Fact, true_of
from anchorline.laws import Random
from anchorline.spaces.base import Finding, Neighborhood, Space
from anchorline.spaces.columns import (
    BOOLEAN,
    CATEGORY,
    DATE,
    EXACT,
    NUMBER,
    Column,
    digest_columns,
    identities_of,
    identity_for_model,
    kind_of,
    level_of,
    microseconds,
    names_in,
    to_python,
)
from anchorline.spaces.findings import check_table
from anchorline.spaces.groups import attributes_of, find_indicators
from anchorline.spaces.natives import Natives
from anchorline.spaces.pools import Pool
from anchorline.spaces.realistic import MAX_DONORS, Likeness, similar_rows
from anchorline.spaces.rows import Schema, plain, read_reference
from anchorline.spaces.views import RowViews, Views

NEIGHBORS = ("independent", "realistic")
_MOST_EXAMPLES = 10_000
_EXAMPLES_PER_BATCH = 4096
_VALUES_PER_CALL = 4_000_000  # values that the model is given at once
_BLOCK = 2**16  # values that are drawn at once, few enough for the processor's cache
_FEW = 500  # neighbors, of which it may be chance that those that keep a rule are the row itself
_ROUNDS = 50  # in which neighbors that break a user's rule are drawn again
_LAW = "The law of neighbors no longer depends on how facts are stated."
_GONE = {
    "n_bins": "Numbers are cut at quantiles, heavy values and around the row. Add cuts by cuts={'age': [40]}.",
    "within": f"{_LAW} Leave it out.",
    "draw": f"{_LAW} Leave it out.",
    "literals": "Bounds, intervals, categories and missing values may all be facts. Leave it out.",
    "rare": "Every category may be a fact. Leave it out.",
    "donors": "Realistic neighbors take values from one of the 10 most similar rows. Leave it out.",
}


class Table(Space):
    """Rows of a table; a neighbor of a row takes some of its values from random rows of the table.

    A neighbor keeps each attribute's value with probability 1 - q, and otherwise takes the value of a random row;
    attributes are independent. An attribute is a column, or several columns whose values come from one row: those
    of a group, and columns that say the same thing, such as numbers with equal ranks.

    Parameters
    ----------
    frame
        The training table, without the target: a pandas, Polars or Arrow frame, a 2-D array, or a SciPy sparse
        matrix of at most 50 million cells.
    names
        Column names of an array. Without names, the columns are called x0, x1, ...
    cuts
        Cut points to add per column: ``{"age": [30, 40, 50]}``. Write dates as ``"2018-03-04"``.
    groups
        Columns that form one attribute, such as one-hot indicators or an address:
        ``{"place": ["latitude", "longitude"]}``, or a list of lists. "auto" groups the indicators of which at most
        one is 1 in every row.
    fixed
        Columns that never change.
    categorical
        Columns of numbers to read as categories. A mapping also gives the name of each value:
        ``{"sex": {0: "female", 1: "male"}}``.
    reference
        The rows from which values are drawn: a frame with the columns of ``frame``, "all" of its rows (the
        default), or "near", those that score at the explainer's threshold or slightly above; see docs/reasons.md.
    neighbors
        "independent", or "realistic": all new values of a neighbor come from one row that is like the explained
        row in the values that it keeps.
    valid
        Your own rule: a function of a frame that returns a boolean per row. Neighbors that break it are redrawn.

    Attributes
    ----------
    schema : the training table, its rows in canonical order.
    attributes : the attributes, each with its columns.
    views : how the values of attributes are divided; ``views.sorted`` has the sorted pool columns.
    n_pool : the number of rows from which values are drawn.
    reference : what these rows are: "all", "rows" (a frame that was given), or "near".
    near_scores : of "near", their lowest and highest score; None until an explainer has looked for them.

    Examples
    --------
    >>> table = Table(np.array([[25, 0], [38, 1], [47, 0], [52, 1], [61, 0]]), names=["age", "member"])
    >>> row = table.at({"age": 40, "member": 1})
    >>> fact = row.fact(0)
    >>> fact.attribute, fact.kind, fact.high, fact.value
    ('age', 'below', 44, 40)
    """

    schema: Schema

    @names_similar_keywords("Table", _GONE)
    def __init__(
        self,
        frame: Any,
        *,
        names: Sequence[str] | None = None,
        cuts: Mapping[str, Sequence[Any]] | None = None,
        groups: Mapping[str, Sequence[str]] | Sequence[Sequence[str]] | str = (),
        fixed: Iterable[str] = (),
        categorical: Mapping[str, Mapping[Any, str]] | Iterable[str] = (),
        reference: Any = None,
        neighbors: Literal["independent", "realistic"] = "independent",
        valid: Callable[[Any], Any] | None = None,
    ) -> None:
        check_law(neighbors, valid)
        held = [] if isinstance(fixed, str) or not isinstance(fixed, Iterable) else [*map(str, fixed)]
        self.schema = schema = Schema.of(frame, names, held)
        self.names, self.neighbors, self.valid = schema.names, neighbors, valid
        self.fixed = tuple(checked_columns(held or fixed, self.names, "fixed"))
        self.groups = checked_groups(groups or {}, schema, self.fixed)
        labels = checked_labels(categorical, schema)
        edges = checked_cuts(cuts, schema, self.fixed, labels)
        place = {name: j for j, name in enumerate(self.names)}
        self.labels = {place[name]: levels for name, levels in labels.items()}
        self.cuts = {place[name]: points for name, points in edges.items()}
        rule = None if valid is None else str(getattr(valid, "__name__", type(valid).__name__))
        given = {name: points.tolist() for name, points in edges.items()}
        self._settings = [given, self.groups, self.fixed, labels, neighbors, rule]
        self._free = [j for j, name in enumerate(self.names) if name not in self.fixed]
        self._frame = Pool.of(schema.natives, schema.columns, self._free)
        self._ignored: frozenset[str] = frozenset()
        self._draw_from(*self._read_reference("all" if reference is None else reference))

    def __repr__(self) -> str:
        n_rows, held = self.schema.n_rows, f", {len(self.held)} fixed" if self.held else ""
        return f"Table({n_rows:,} rows, {len(self.names)} columns{held})"

    def _repr_html_(self) -> str:
        from anchorline.render.report import table_view  # noqa: PLC0415  a room above shows it

        return table_view(self)

    def _read_reference(self, reference: Any) -> tuple[str, Pool]:
        if not isinstance(reference, str):
            return "rows", Pool.of(*read_reference(self.schema, reference), self._free)
        if reference not in ("all", "near"):
            raise ParameterError(
                f"reference is {reference!r}, but it must be a frame, 'all' or 'near'. Type reference='near'."
            )
        return reference, self._frame

    def _draw_from(
        self, kind: str, pool: Pool, scores: tuple[float, float] | None = None, ignored: Collection[str] = ()
    ) -> "Table":
        """Draw values from a pool, except of columns that the model ignores; return the table itself."""
        self.reference, self.near_scores, self._pool, self._ignored = kind, scores, pool, frozenset(ignored)
        if self.neighbors == "realistic" and pool.n_rows > MAX_DONORS:  # canonical order makes them a sample
            some = [column.taken(np.arange(MAX_DONORS)) for column in pool.columns]
            self._pool = Pool.of(pool.natives, some, self._free)
        self.n_pool = self._pool.n_rows
        columns = enumerate(self.schema.columns)
        ordered = {j for j, column in columns if column.kind in (NUMBER, DATE) and j not in self.labels}
        held = {*self.fixed, *ignored}
        self.attributes = attributes_of(self.names, self.groups, held, self._frame.sorted, ordered)
        changing = {name for attribute in self.attributes for name in attribute.names}
        self.held = tuple(name for name in self.names if name in self.fixed or name in self._ignored - changing)
        types = self.schema.types
        self.views = Views(self.attributes, self._frame, self._pool, types, self.cuts, self.labels)
        self.owners = np.full(len(self.names), -1, dtype=np.intp)
        for i, attribute in enumerate(self.attributes):
            self.owners[list(attribute.positions)] = i
        return self

    def _copy(self) -> "Table":
        """Return a copy that knows nothing which depends on the pool."""
        other = copy.copy(self)
        for name in [name for name in vars(self) if isinstance(getattr(Table, name, None), cached_property)]:
            del other.__dict__[name]
        return other

    def drawing_from(self, reference: Any) -> "Table":
        """Return the same table, the values of which are drawn from other rows: a frame, or "all"."""
        return self._copy()._draw_from(*self._read_reference(reference), ignored=self._ignored)

    def drawing_near(self, rows: np.ndarray, scores: tuple[float, float]) -> "Table":
        """Return the same table, the values of which are drawn from some of its rows, between these two scores."""
        pool = self._read_reference(self.schema.natives.rows(rows))[1]
        return self._copy()._draw_from("near", pool, scores, self._ignored)

    def holding(self, columns: Collection[str]) -> "Table":
        """Return the same table with more columns that never change; see `Space.holding`."""
        ignored = {*self._ignored, *columns}
        return self._copy()._draw_from(self.reference, self._pool, self.near_scores, ignored)

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of names, kinds, values and options, whatever library holds the rows, in any order."""
        digest = hashlib.sha256(
            json.dumps([self.names, [*self._settings, self.reference != "all"]], default=str).encode()
        )
        digest_columns(digest, self.schema.columns)
        if self._pool is not self._frame:
            digest_columns(digest, self._pool.columns)
        return "table:" + digest.hexdigest()

    @cached_property
    def donated(self) -> Natives:
        """The rows that donate: row i of an attribute's columns is its donor i.

        Independent values are sorted by the first view of their attribute, so that the rows for which a fact is
        true are adjacent. Rows that donate all values together are in the order of the pool.
        """
        if self.neighbors == "realistic":
            return self._pool.natives
        firsts = [(self._pool.sorted[each.views[0]].order, each.positions) for each in self.attributes]
        return self._pool.natives.reordered((j, order) for order, positions in firsts for j in positions)

    @cached_property
    def places(self) -> tuple[np.ndarray | None, ...]:
        """Per view, the place of every donor in the sorted pool column, and -1 for -1; None if it is the donor."""
        places: list[np.ndarray | None] = []
        for i, j in zip(self.views.attributes.tolist(), self.views.columns.tolist(), strict=True):
            first = self.attributes[i].views[0]
            if self.neighbors == "realistic":
                places.append(np.append(self._pool.sorted[j].places, -1))
            else:
                own = self._pool.sorted[first].order
                places.append(None if first == j else np.append(self._pool.sorted[j].places[own], -1))
        return tuple(places)

    def donors_at(self, view: int, places: np.ndarray) -> np.ndarray:
        """Return the donors at some places of a view's sorted pool column."""
        if self.places[view] is None:
            return places
        rows = np.asarray(self.views.sorted[view].order[places])
        if self.neighbors == "realistic":
            return rows
        first = self.attributes[int(self.views.attributes[view])].views[0]
        return np.asarray(self._pool.sorted[first].places[rows])

    @cached_property
    def distinct(self) -> tuple[tuple[np.ndarray, np.ndarray], ...]:
        """Per attribute, the number (n_pool,) of each donor's value as a model sees it, and a donor per value."""
        each = []
        for attribute in self.attributes:
            numbers = _identities(self.donated, attribute.positions, self.n_pool)
            each.append((numbers, np.unique(numbers, return_index=True)[1]))
        return tuple(each)

    def positions(self, name: str) -> tuple[int, ...]:
        """Return the columns of an attribute, a group or a column, even if it never changes."""
        attribute = next((each for each in self.attributes if name in (each.name, *each.names)), None)
        if attribute is not None:
            return attribute.positions
        members = self.groups.get(name, (name,))
        if not {*members} <= {*self.names}:
            raise ParameterError(f"{name!r} is not a column or a group; the columns are {listed(self.names)}.")
        return tuple(self.names.index(member) for member in members)

    def different_rows(self, positions: Sequence[int]) -> np.ndarray:
        """Return one row per combination of values in some columns that a model may tell apart."""
        numbers = _identities(self.schema.natives, positions, self.schema.n_rows)
        return np.unique(numbers, return_index=True)[1]

    @cached_property
    def likeness(self) -> Likeness:
        """How alike the rows that donate are, for realistic neighbors; columns that never change count, too."""
        units = [attribute.positions for attribute in self.attributes]
        fixed = [(j,) for j, name in enumerate(self.names) if name in self.fixed]
        return Likeness(self._pool.columns, (*units, *fixed), {*self.labels})

    def at(self, instance: Any) -> "TableNeighborhood":
        """Return the neighborhood of a row: a dict, Series, frame of one row, list, or training row number."""
        return TableNeighborhood(self, *self.schema.read(instance, self._ignored))

    @property
    def parsed(self) -> set[str]:
        """The columns whose cells in a CSV file are numbers or booleans if they look like one."""
        schema = self.schema
        return {
            name
            for name, column, dtype in zip(schema.names, schema.columns, schema.types, strict=True)
            if column.kind in (NUMBER, BOOLEAN)
            or any(not isinstance(value, str) for value in (dtype.categories or {}).values())
        }

    def rows(self, part: Any) -> "TableRows | None":
        """Read a part of a frame (narwhals) or of a 2-D array at once; None if it has other columns."""
        read = self.schema.read_part(part)
        return None if read is None else TableRows(self, *read)

    def describe(self, neighborhood: Neighborhood) -> dict[str, Any]:
        """Return what an explanation records about the table."""
        own: dict[str, Any] = {
            "neighbors": self.neighbors,
            "n_rows": self.schema.n_rows,
            "reference": self.reference != "all",
        }
        together = [list(attribute.names) for attribute in self.attributes if len(attribute.names) > 1]
        own |= {"held": list(self.held), "together": together, "valid": self.valid is not None}
        return super().describe(neighborhood) | own

    @cached_property
    def example_rows(self) -> np.ndarray:
        """The rows of `examples`, at most 10,000."""
        n = self.schema.n_rows
        return np.unique(np.linspace(0, n - 1, min(n, _MOST_EXAMPLES)).astype(np.intp))

    def examples(self) -> Iterator[tuple[Any, int]]:
        """Yield batches of training rows as model inputs, whichever order they came in; see `Space.examples`."""
        rows = self.example_rows
        for start in range(0, len(rows), _EXAMPLES_PER_BATCH):
            part = rows[start : start + _EXAMPLES_PER_BATCH]
            yield self.schema.natives.rows(part), len(part)

    def examples_with(self, facts: Sequence[Fact]) -> np.ndarray:
        """Return, for each row of `examples`, whether the facts are true of it: booleans (n,)."""
        rows = self.example_rows
        true = np.ones(len(rows), dtype=bool)
        for fact in facts:
            true &= self.is_true(fact, self.schema.columns, rows)
        return true

    def is_true(self, fact: Fact, columns: Sequence[Column], rows: np.ndarray | None = None) -> np.ndarray:
        """Return whether a fact is true of each row, (n,); ``columns`` are in the order of the table's names."""
        if fact.column not in self.names:
            raise ParameterError(f"A fact is about {fact.column!r}, which the table lacks: {listed(self.names)}.")
        j, own = self.names.index(fact.column), fact.value
        column = columns[j] if rows is None else columns[j].taken(rows)
        if fact.kind == "equals":
            own = next((level for level, label in self.labels.get(j, {}).items() if label == own), own)
            own = str(own) if column.kind == CATEGORY else _number(own, column.kind)
        return true_of(fact, column.values, column.missing, own, lambda value: _number(value, column.kind))

    def check(self, target: Any = None) -> tuple[Finding, ...]:
        """Return what in this table would make explanations misleading; see docs/tables.md.

        ``target`` holds what the model predicts, one value per row, in the order in which the rows were given.
        """
        are_realistic = self.neighbors == "realistic"
        return check_table(self.schema, self.attributes, are_realistic=are_realistic, target=target)


class TableNeighborhood(Neighborhood):
    """A row of a table and its neighbors; ``row`` has its values in the table's types, ``columns`` as read.

    ``unseen`` are columns in which no training row is like the row, with what is new.
    """

    has_missing = True

    def __init__(self, table: Table, row: tuple[Any, ...], columns: tuple[Column, ...]) -> None:
        self.table, self.row, self.columns = table, row, columns
        self.names = tuple(attribute.name for attribute in table.attributes)
        self.is_product = table.neighbors == "independent" and table.valid is None

    @property
    def held(self) -> tuple[str, ...]:
        """Columns that never change, because they are fixed or because the model ignores them."""
        return self.table.held

    @property
    def can_change(self) -> bool:
        """Whether any attribute has another value in the pool; false if all are held, or constant."""
        if any(len(own.values) > 1 for own in self.table.views.sorted):
            return True
        firsts = [firsts for _, firsts in self.table.distinct]
        return any(len(own) > 1 or self._own_value(i, own) is None for i, own in enumerate(firsts))

    @cached_property
    def unseen(self) -> dict[str, str]:
        """The columns in which no training row is like the row, with what is new; without those that are held."""
        cells = zip(self.table.schema.fields, self.columns, strict=True)
        unseen = {field.name: field.unseen(cell) for field, cell in cells}
        return {name: why for name, why in unseen.items() if why and name not in self.held}

    @cached_property
    def key(self) -> bytes:
        """The row's values, as JSON."""
        return b"table:" + json.dumps(self.instance).encode()

    @cached_property
    def instance(self) -> list[Any]:
        """The row as plain values, in the order of the columns."""
        return [plain(column, native) for column, native in zip(self.columns, self.row, strict=True)]

    @property
    def original(self) -> Any:
        """The row as a table of one row in the training table's type; a copy, which the model may change."""
        return self.table.schema.natives.of_columns(self.row).rows(np.zeros(1, dtype=np.intp))

    @cached_property
    def views(self) -> RowViews:
        """How values are divided around the row; ``views.edges`` are the cut points of each view."""
        return self.table.views.at(self.columns)

    @property
    def candidates(self) -> Candidates:
        """The facts that may be stated about the row."""
        return self.views.candidates

    def fact(self, candidate: int) -> Fact:
        """Return a candidate as a statement."""
        return self.views.fact(candidate)

    def draw(self, n: int, random: Random, replace_probability: float, facts: Sequence[int] = ()) -> np.ndarray:
        """Return the donors (attributes, n) of n neighbors; see `Neighborhood.draw`."""
        if self.table.valid is None or not n:
            return self._draw(n, random, replace_probability, facts)
        if not self.is_valid(self.original, 1)[0]:
            raise InstanceError(
                "The row breaks the rule `valid`, so neighbors that satisfy it would not resemble the row. "
                "Correct the row or the rule."
            )
        kept: list[np.ndarray] = []
        n_kept = n_drawn = 0
        allows_other = len(facts) > 0  # than the row itself; with some facts, the row alone may be left
        for _ in range(_ROUNDS):
            donors = self._draw(n, random, replace_probability, facts)
            step = self.rows_per_call
            parts = [donors[:, first : first + step] for first in range(0, n, step)]
            keeps = np.concatenate([self.is_valid(self.realize(part), part.shape[1]) for part in parts])
            kept.append(donors[:, keeps])
            n_kept, n_drawn = n_kept + int(keeps.sum()), n_drawn + n
            if not allows_other:
                differs = self._differs(donors)
                allows_other = bool((differs & keeps).any()) or not differs.any()
            if n_kept >= n and (allows_other or n_drawn < _FEW):
                return np.concatenate(kept, axis=1)[:, :n]
        found = f"Only {n_kept} of {n_drawn} neighbors satisfy the rule `valid`."
        if n_kept >= n:
            found = (
                f"Only the row itself satisfies the rule `valid`: none of {n_drawn} altered copies differs and "
                "satisfies it."
            )
        raise ParameterError(
            f"{found} If some columns are valid only together, group them, e.g. groups=[['class', 'fare']], or "
            "type Table(..., neighbors='realistic')."
        )

    def _differs(self, donors: np.ndarray) -> np.ndarray:
        """Return which neighbors with these donors differ from the row as a model sees it, (n,)."""
        differs = np.zeros(donors.shape[1], dtype=bool)
        for i, (numbers, firsts) in enumerate(self.table.distinct):
            own = self._own_value(i, firsts)
            differs |= (donors[i] >= 0) & (numbers[donors[i]] != (-1 if own is None else own))
        return differs

    def is_valid(self, inputs: Any, n: int) -> np.ndarray:
        """Return for which rows the user's rule holds, (n,); the rule receives a copy, which it may change."""
        if self.table.valid is None:
            return np.ones(n, dtype=bool)
        try:
            answers = np.asarray(self.table.valid(inputs))
        except Exception as error:
            raise ParameterError(
                f"valid raised {type(error).__name__}: {error}. It must return one boolean per row of a table "
                f"with the columns {listed(self.table.names)}. Call it on the training table by hand."
            ) from error
        if answers.shape != (n,) or answers.dtype != bool:
            raise ParameterError(
                f"valid returned {answers.dtype} of shape {answers.shape} for {n} rows; it must return one "
                "boolean per row. Type, say, valid=lambda rows: rows['fare'] > 0."
            )
        return answers

    def _draw(self, n: int, random: Random, replace_probability: float, facts: Sequence[int]) -> np.ndarray:
        """Return donors without regard to a user's rule; one uniform number says whether and which."""
        if self.table.neighbors == "realistic":
            return self._similar(n, random, replace_probability, facts)
        stated = {int(self.candidates.groups[fact]): fact for fact in facts}
        donors, n_pool = np.empty((len(self.names), n), dtype=np.int32), self.table.n_pool
        step = max(1, _BLOCK // max(1, n))
        for first in range(0, len(donors), step):
            block = donors[first : first + step]
            uniforms = random.uniforms(*block.shape)
            block[:] = np.minimum(uniforms * (n_pool / replace_probability), n_pool)
            block -= (block == n_pool) * np.int32(n_pool + 1)  # -1; a processor could not predict a branch
            for own in stated.keys() & range(first, first + len(block)):
                view, (start, stop) = int(self.candidates.views[stated[own]]), self.views.span(stated[own])
                places = start + (uniforms[own - first] * (stop - start)).astype(np.intp)
                donors[own] = self.table.donors_at(view, places) if stop > start else -1
        return donors

    def _similar(self, n: int, random: Random, replace_probability: float, facts: Sequence[int]) -> np.ndarray:
        """Return donors of which every neighbor has one, for which the facts are true."""
        replaced, uniforms = random.uniforms(len(self.names), n) < replace_probability, random.uniforms(n)
        allowed = np.ones(self.table.n_pool, dtype=bool)
        for fact in facts:
            view, (start, stop) = int(self.candidates.views[fact]), self.views.span(fact)
            true = np.zeros(self.table.n_pool, dtype=bool)
            true[self.table.donors_at(view, np.arange(start, stop))] = True
            allowed &= true
        stated = self.candidates.groups[list(facts)] if len(facts) else np.zeros(0, dtype=np.intp)
        replaced[stated] = allowed.any()  # without such a row, they keep their values
        among = np.flatnonzero(allowed) if allowed.any() else np.arange(len(allowed))
        return np.where(replaced, similar_rows(self._costs, among, replaced, uniforms), -1)

    @cached_property
    def _costs(self) -> np.ndarray:
        """How unlike the row the donors are, per attribute and fixed column."""
        return self.table.likeness.costs(self.columns)

    def realize(self, donors: np.ndarray) -> Any:
        """Return the neighbors with these donors (attributes, n) as a table of n rows."""
        owners = self.table.owners
        sources = donors[owners] if len(donors) else np.empty((len(owners), donors.shape[1]), dtype=np.intp)
        sources[owners < 0] = -1
        return self.table.donated.neighbors(self.row, sources)

    def cells(self, donors: np.ndarray, views: Sequence[int] | None = None) -> np.ndarray:
        """Return the cell (views, n) of every neighbor in some views of `candidates`, or in all."""
        chosen = range(len(self.table.places)) if views is None else views
        cells = np.empty((len(chosen), donors.shape[1]), dtype=np.int32)
        for row, view in zip(cells, chosen, strict=True):
            row[:] = self.views.cells(view, self._places(donors, view))
        return cells

    def _places(self, donors: np.ndarray, view: int) -> np.ndarray:
        """Return the places (n,) of these donors in a view; -1 where a neighbor keeps its own value."""
        own, lookup = donors[self.table.views.attributes[view]], self.table.places[view]
        return np.asarray(own if lookup is None else lookup[own])

    def flips(self, donors: np.ndarray, facts: Sequence[int]) -> np.ndarray:
        """Return which of these facts the neighbors with these donors break: booleans (facts, n)."""
        flips = np.empty((len(facts), donors.shape[1]), dtype=bool)
        for row, fact in zip(flips, facts, strict=True):
            places, (start, stop) = self._places(donors, int(self.candidates.views[fact])), self.views.span(fact)
            row[:] = (places >= 0) & ((places < start) | (places >= stop))
        return flips

    def edge_labels(self, view: int, cells: Sequence[int]) -> tuple[Any, ...]:
        """Return the bounds that are written where cells of a view begin; of categories, the row's own."""
        return self.views.edge_labels(view, cells)

    def row_cells(self) -> np.ndarray:
        """Return the cell (views, n) of every row of the table's `examples`."""
        rows, columns = self.table.example_rows, self.table.schema.columns
        return self.views.row_cells([columns[j].taken(rows) for j in self.table.views.columns.tolist()])

    @property
    def is_own_value(self) -> np.ndarray:
        """Whether the own cell of each attribute holds no other value than the row's own, (attributes,)."""
        views = self.table.views
        is_own = self.views.missing | ~views.ordered
        is_own[views.cut_views] |= self.views.cuts.heavy
        alone = np.array([len(attribute.positions) == 1 for attribute in self.table.attributes], dtype=bool)
        own = np.zeros(len(alone), dtype=bool)
        own[views.attributes] = is_own  # of an attribute of one column, which has one view
        return np.asarray(own & alone)

    def listed(
        self, replace_probability: float, most: int, facts: Sequence[int] = ()
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """Return all neighbors and their probabilities if there are few; see `Neighborhood.listed`."""
        if not self.is_product:
            return None
        least = np.ones(len(self.names), dtype=np.intp)  # values that each attribute has at least
        np.maximum.at(least, self.table.views.attributes, [len(own.values) for own in self.table.views.sorted])
        if math.prod(least.tolist()) > most:
            return None
        stated = {int(self.candidates.groups[fact]): fact for fact in facts}
        each = [self._values(i, replace_probability, stated.get(i)) for i in range(len(least))]
        n = math.prod(len(donors) for donors, _ in each)
        if n > most:
            return None
        numbers = np.unravel_index(np.arange(n), [len(donors) for donors, _ in each]) if each else ()
        pairs = list(zip(each, numbers, strict=True))
        donors = np.array([donors[at] for (donors, _), at in pairs], dtype=np.intp).reshape(len(each), n)
        weights = np.ones(n)
        for (_, chances), at in pairs:
            weights *= chances[at]
        return donors, weights

    def _values(self, i: int, replace_probability: float, fact: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Return the distinct values of an attribute, each by one donor or -1, and their probabilities."""
        numbers, firsts = self.table.distinct[i]
        counts, keeps = np.bincount(numbers, minlength=len(firsts)) / len(numbers), 1 - replace_probability
        if fact is not None:
            start, stop = self.views.span(fact)
            if stop == start:
                return np.array([-1]), np.ones(1)
            true = self.table.donors_at(int(self.candidates.views[fact]), np.arange(start, stop))
            counts, keeps = np.bincount(numbers[true], minlength=len(firsts)) / len(true), 0.0
        own = self._own_value(i, firsts)
        chances = counts * (1 - keeps)
        if own is None:
            firsts, chances = np.append(firsts, -1), np.append(chances, keeps)
        else:
            firsts = firsts.copy()
            firsts[own] = -1
            chances[own] += keeps
        kept = chances > 0
        return firsts[kept], chances[kept]

    def _own_value(self, i: int, firsts: np.ndarray) -> int | None:
        """Return which of the distinct values of an attribute the model cannot tell from the row's own."""
        same = np.ones(len(firsts), dtype=bool)
        for j in self.table.attributes[i].positions:
            own = identity_for_model(to_python(self.row[j][0]))
            values = identities_of(self.table.donated.pick(j, firsts))
            same &= np.array([value == own for value in values], dtype=bool)
        return int(np.flatnonzero(same)[0]) if same.any() else None

    @property
    def rows_per_call(self) -> int:
        """The most neighbors that the model is given at once, to bound memory."""
        return min(4096, max(64, _VALUES_PER_CALL // len(self.table.names)))


class TableRows:
    """Rows of a table in its own types (``natives``), and as they were read (``columns``)."""

    def __init__(self, table: Table, natives: Natives, columns: tuple[Column, ...]) -> None:
        self.table, self.natives, self.columns = table, natives, columns

    def __len__(self) -> int:
        return len(self.columns[0].values)

    @property
    def inputs(self) -> Any:
        """All rows as model inputs; a copy, which the model may change."""
        return self.natives.rows(np.arange(len(self)))

    def at(self, i: int) -> TableNeighborhood:
        """Return the neighborhood of row i."""
        return TableNeighborhood(self.table, self.natives.row(i), tuple(column.at(i) for column in self.columns))


def _identities(natives: Natives, positions: Sequence[int], n_rows: int) -> np.ndarray:
    """Return a number (n,) per row that differs for values of some columns that a model may distinguish."""
    numbers = np.zeros(n_rows, dtype=np.intp)
    for j in positions:
        native = natives.pick(j, np.arange(n_rows))
        if isinstance(native, np.ndarray) and not native.dtype.hasobject:
            codes = np.unique(native.view(f"V{native.dtype.itemsize}"), return_inverse=True)[1]
        else:
            known: dict[tuple[type, str], int] = {}
            codes = np.array([known.setdefault(each, len(known)) for each in identities_of(native)], dtype=np.intp)
        numbers = np.unique(numbers * (int(codes.max()) + 1) + codes, return_inverse=True)[1]
    return numbers


def _number(value: Any, kind: str) -> float:
    """Return a number, boolean or date of a fact as a float."""
    if kind == DATE:
        try:
            return microseconds(value)
        except ValueError as error:
            raise ParameterError(f"{error}. Type, say, '2018-03-04'.") from None
    return float({"True": True, "False": False}.get(value, value))  # texts of the levels of booleans


# ---- what people pass where a space is needed


def as_space(given: Any) -> Space:
    """Return a space unchanged, and a training table as ``Table(frame)``."""
    return given if isinstance(given, Space) else Table(given)


def check_order(model: Any, space: Any) -> None:
    """Raise `ParameterError` if the space or the training table was passed first and the model second."""
    is_table = isinstance(model, Space) or (hasattr(model, "shape") and not _is_model(model))
    if is_table and _is_model(space) and not isinstance(space, Space):
        raise ParameterError(
            f"The first argument is of type {type(model).__name__}, and the second of type "
            f"{type(space).__name__}; the model must come first, and the space or training table second. Type "
            "Explainer(model, table)."
        )


def _is_model(given: Any) -> bool:
    return callable(given) or callable(getattr(given, "predict", None))


# ---- the options of a table: each error names the option and what to type


def check_law(neighbors: str, valid: Callable[[Any], Any] | None) -> None:
    """Raise `ParameterError` if the law of neighbors is unknown, or if the rule ``valid`` is not a function."""
    if neighbors not in NEIGHBORS:
        raise ParameterError(
            f"neighbors is {neighbors!r}; it must be 'independent' or 'realistic'. Type neighbors='realistic' for "
            "neighbors whose new values come together from one similar row."
        )
    if valid is not None and not callable(valid):
        raise ParameterError(
            f"valid is {valid!r:.60}; it must be a function of a frame of neighbors that returns one boolean per "
            "row. Type, say, valid=lambda rows: rows['fare'] > 0."
        )


def checked_columns(given: Iterable[str] | None, names: Sequence[str], option: str) -> list[str]:
    """Return the given names as a list, empty for None; raise `ParameterError` if one is not a column."""
    given = () if given is None else given
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterError(f"{option} is {given!r}; it must be a list of columns. Type {option}=[{given!r}].")
    chosen = names_in(names, given)
    columns = {*names}
    unknown = [name for name in chosen if name not in columns]
    if unknown:
        raise ParameterError(
            f"{option} has {listed(unknown)}, which the table lacks. Choose from its columns: {listed(names)}."
        )
    return chosen


def checked_groups(
    groups: Mapping[str, Sequence[str]] | Sequence[Sequence[str]] | str, schema: Schema, fixed: Sequence[str]
) -> dict[str, list[str]]:
    """Return a mapping of group names to columns; no column may be in two groups, or fixed and in a group.

    "auto" groups the indicators of which at most one is 1 in every row.
    """
    names = schema.names
    if groups == "auto":
        free = [(name, c) for name, c in zip(names, schema.columns, strict=True) if name not in fixed]
        return find_indicators([name for name, _ in free], [column for _, column in free])
    if isinstance(groups, str) or not isinstance(groups, Iterable):
        raise ParameterError(
            f"groups is {groups!r}; it must be a mapping or a list of lists. Type, say, "
            "groups={'place': ['latitude', 'longitude']}, or groups='auto'."
        )
    if not isinstance(groups, Mapping):
        wrong = [group for group in groups if isinstance(group, str) or not isinstance(group, Iterable)]
        if wrong:
            raise ParameterError(
                f"groups has {wrong[0]!r}; every group must be a list of columns. Type groups=[['a', 'b']]."
            )
        groups = {", ".join(map(str, group)): group for group in groups}
    checked = {str(name): checked_columns(members, names, f"groups[{name!r}]") for name, members in groups.items()}
    used: set[str] = set(fixed)
    for name, members in checked.items():
        twice = [member for member in members if member in used]
        if twice or len(set(members)) < len(members) or not members:
            raise ParameterError(
                f"Group {name!r} is {members}; it must have at least one column, and every column must be in one "
                "group only and not in fixed."
            )
        used |= set(members)
        if name in names and name not in members:
            raise ParameterError(f"Group {name!r} has the same name as a column outside it. Rename the group.")
    return checked


def checked_cuts(
    cuts: Mapping[str, Sequence[Any]] | None, schema: Schema, fixed: Sequence[str], categorical: Iterable[str]
) -> dict[str, np.ndarray]:
    """Return the sorted cut points by column; only numbers and dates about which facts are stated have cuts."""
    if not isinstance(cuts, Mapping | None):
        raise ParameterError(f"cuts is {cuts!r}; it must be a mapping. Type cuts={{'age': [30, 40, 50]}}.")
    cuts = cuts or {}
    names = checked_columns(cuts, schema.names, "cuts")
    kinds = {name: column.kind for name, column in zip(schema.names, schema.columns, strict=True)}
    uncut = [name for name in names if kinds[name] not in (NUMBER, DATE) or name in categorical]
    if uncut:
        raise ParameterError(
            f"cuts has {listed(uncut)}, read as categories; only numbers and dates are cut. Remove the columns "
            "from cuts."
        )
    points = {name: _cut_points(cuts[name], kinds[name], name) for name in names}
    both = [name for name in names if name in fixed]
    if both:
        raise ParameterError(
            f"cuts has {listed(both)}, also listed in fixed. Remove the columns from cuts or from fixed."
        )
    return points


def _cut_points(cuts: Sequence[Any], kind: str, name: str) -> np.ndarray:
    """Return cut points as numbers; dates count microseconds."""
    wanted, example = ("dates", "'2018-03-04'") if kind == DATE else ("finite numbers", "30, 40")
    problem, points = "", np.zeros(0)
    try:
        listed_cuts = [] if isinstance(cuts, str) else list(cuts)
        points = np.array([microseconds(cut) if kind == DATE else float(cut) for cut in listed_cuts])
    except (TypeError, ValueError, OverflowError) as error:
        problem = f" ({error})"
    if not len(points) or not np.isfinite(points).all():
        raise ParameterError(
            f"cuts[{name!r}] is {cuts!r}; it must list {wanted}{problem}. Type cuts={{{name!r}: [{example}]}}."
        )
    return np.unique(points)


def checked_labels(
    categorical: Mapping[str, Mapping[Any, str]] | Iterable[str], schema: Schema
) -> dict[str, dict[str, str]]:
    """Return, per column to read as categories, the names to display for the texts of its levels."""
    labels: dict[str, dict[str, str]] = {}
    for name in checked_columns(categorical, schema.names, "categorical"):
        position = schema.names.index(name)
        column, column_type = schema.columns[position], schema.types[position]
        if column.kind == DATE:
            raise ParameterError(
                f"categorical includes {name!r}, which holds dates; it may name only columns of numbers or "
                f"categories. Remove {name!r} from categorical."
            )
        given = categorical[name] if isinstance(categorical, Mapping) else {}
        if not isinstance(given, Mapping):
            raise ParameterError(
                f"categorical[{name!r}] is {given!r}; it must be a mapping. Type, say, {{0: 'female', 1: 'male'}}."
            )
        labels[name] = {}
        for key, text in given.items():  # 1, 1.0 and "1" name the same level
            kind = kind_of(key)
            if kind not in (NUMBER, BOOLEAN, CATEGORY):
                raise ParameterError(
                    f"categorical names {key!r}; it must name a value of the column: a number, text or boolean."
                )
            level = level_of(key, kind if CATEGORY in (kind, column.kind) else column.kind)
            labels[name][level] = str(text)
        _check_names(name, labels[name], column, column_type.categories or ())
    return labels


def _check_names(name: str, labels: Mapping[str, str], column: Column, categories: Iterable[str]) -> None:
    """Raise `ParameterError` if two levels would share a text, or if none of the labels belongs to a level.

    Some labels may belong to levels that occur only in later rows.
    """
    present = set(column.values[~column.missing].tolist())
    if column.kind == NUMBER and any(EXACT <= abs(value) < math.inf for value in present):
        raise ParameterError(
            f"categorical has {name!r}, which holds whole numbers beyond 2^53: as floats, several would be one "
            "category. Convert the column to texts."
        )
    levels = {*categories, *(level_of(value, column.kind) for value in present)}
    if labels and levels.isdisjoint(labels):
        raise ParameterError(
            f"categorical[{name!r}] names {listed(labels)}, but none of these is a level of the column. Choose "
            f"from its levels: {listed(sorted(levels))}."
        )
    texts = Counter(labels.get(level, level) for level in levels | labels.keys())
    twice = [text for text, count in texts.items() if count > 1]
    if twice:
        raise ParameterError(
            f"categorical[{name!r}] calls two levels {twice[0]!r}; every level must have a name of its own."
        )
