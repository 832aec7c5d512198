"""The space of table rows: numbers, categories, dates and missing values, in pandas, Polars, Arrow or NumPy."""

import copy
import hashlib
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from anchorline.errors import InstanceError, names_similar_keywords
from anchorline.spaces import options
from anchorline.spaces.arrays import ArrayNatives
from anchorline.spaces.attributes import Attribute, Offer, RandomWords, Range, Statement, changes_of
from anchorline.spaces.base import Change, Finding, Literal, Source
from anchorline.spaces.columns import Column, digest_columns
from anchorline.spaces.donor_index import DonorIndex, leading_rows
from anchorline.spaces.donors import MAX_ROWS, Donors
from anchorline.spaces.encoding import encode_attributes, with_uniformity
from anchorline.spaces.findings import check_table
from anchorline.spaces.natives import Blocks, Cells, Natives, checked_draws, places_of
from anchorline.spaces.rows import plain
from anchorline.spaces.similar import SimilarRows
from anchorline.spaces.training import read_training_table
from anchorline.spaces.validity import Validity

_MAX_EXAMPLES = 10_000  # training rows for which a model is queried to learn the range of its outputs
_EXAMPLES_PER_BATCH = 4096


class Table:
    """Rows of a table; a flip takes the attribute's value from a training row that breaks the literal.

    Every attribute has a literal that is true of the row: an interval of numbers or dates, a category, or "is
    missing". Numbers and dates may also have bounds. Neighbors are assembled from the row's own values and values
    of training rows, so that every neighbor has possible values, types and categories.

    Parameters
    ----------
    frame
        The training table, without the target: a pandas, Polars or Arrow frame, a 2-D array, or a SciPy sparse
        matrix of at most 50 million cells.
    names
        Column names of an array. Without names, the columns are called x0, x1, ...
    n_bins
        Number of quantile bins of numbers and dates (4). A value that many rows share gets a bin of its own.
    cuts
        Cut points per column: ``{"age": [30, 40, 50]}`` gives ``30 <= age < 40``. Write dates as ``"2018-03-04"``.
    groups
        Columns that form one attribute, such as one-hot indicators or an address. They flip together, and their
        values are copied from one training row. ``{"place": ["latitude", "longitude"]}``, or a list of lists.
        "auto" groups the indicators of which at most one is 1 in every row.
    fixed
        Columns that never change.
    within
        "keep": an unflipped attribute keeps its value. "redraw": it takes the value of a training row for which
        the literal is true, so that a statement about the whole interval is tested.
    literals
        What may be stated about a number or date. "bounds": its interval, ``30 <= age < 40``, or one of the bounds
        of its interval, ``age >= 30`` and ``age < 40``, each of which only changes to one side break.
        "intervals": only its interval. "thresholds": also all other edges as bounds.
    neighbors
        "independent": every flipped attribute takes its value from a training row of its own. "realistic": all
        flipped attributes of a neighbor take their values together from one training row that is like the
        explained row in the other attributes. "similar": the values of such a row also decide which literals are
        flipped, so that flips are not independent; see docs/tables.md.
    donors
        The number of most similar training rows from which the one that donates its values is drawn (10); the
        most similar one is drawn 10 times as often as the tenth. Not with independent neighbors.
    draw
        "breaking": a flipped attribute takes a value that breaks its literal. "marginal": any training value.
    valid
        Your own rule: a function of a frame that returns a boolean per row. Neighbors that break it are redrawn.
    rare
        Categories with a share of the training rows below this (0.01) share one literal.
    categorical
        Columns of numbers to read as categories. A mapping also gives the name of each value:
        ``{"sex": {0: "female", 1: "male"}}``.

    Examples
    --------
    >>> table = Table(np.array([[25, 0], [38, 1], [47, 0], [52, 1], [61, 0]]), names=["age", "member"])
    >>> [literal.text for literal in table.at({"age": 40, "member": 1}).literals]
    ['40 <= age < 50', 'age >= 40', 'age < 50', 'member = 1']
    >>> table.at({"age": 40, "member": 1}).literals[1].held
    'age keeps its value 40 or takes a higher one'
    """

    @names_similar_keywords("Table")
    def __init__(
        self,
        frame: Any,
        *,
        names: Sequence[str] | None = None,
        n_bins: int = 4,
        cuts: Mapping[str, Sequence[Any]] | None = None,
        groups: Mapping[str, Sequence[str]] | Sequence[Sequence[str]] | str = (),
        fixed: Iterable[str] = (),
        within: str = "keep",
        literals: str = "bounds",
        neighbors: str = "independent",
        donors: int = 10,
        draw: str = "breaking",
        valid: Callable[[Any], Any] | None = None,
        rare: float = 0.01,
        categorical: Mapping[str, Mapping[Any, str]] | Iterable[str] = (),
    ) -> None:
        options.check_options(n_bins, cuts, within, literals, rare)
        options.check_neighbors(neighbors, donors, within, draw)
        self.schema = read_training_table(frame, names)
        self.names, self.within, self.literals = self.schema.names, within, literals
        self.fixed = tuple(options.checked_columns(fixed, self.names, "fixed"))
        self.groups = options.checked_groups(groups or {}, self.schema, self.fixed)
        labels, edges = (
            options.checked_labels(categorical, self.schema),
            options.checked_cuts(cuts or {}, self.schema, self.fixed),
        )
        cut_lists = {name: points.tolist() for name, points in edges.items()}
        self._settings = [int(n_bins), cut_lists, self.groups, self.fixed, within, float(rare), labels]
        self._settings += options.settings_of_law(literals, neighbors, donors, draw, valid)
        self.neighbors, self.valid, self.drawing = neighbors, valid, options.Drawing(draw, int(donors))
        attributes, self._leaders = list[Attribute](), list[np.ndarray]()
        members = options.columns_of_attributes(self.names, self.groups, self.fixed)
        encoding = {"n_bins": int(n_bins), "cuts": edges, "rare": rare, "labels": labels}
        is_sampled = neighbors != "independent" and self.schema.n_rows > MAX_ROWS

        def orders() -> Iterator[tuple[int, np.ndarray]]:  # all together take as much memory as the table
            for attribute, order in encode_attributes(self.schema, members, **encoding):
                attributes.append(attribute)
                self._leaders += [leading_rows(attribute, order)] if is_sampled else []
                yield from ((j, order) for j in attribute.positions)

        self.pool = self.schema.natives.reordered(orders())  # every column is sorted by its attribute's codes
        self._set_attributes(attributes)
        self.left_out: dict[str, str] = {}  # columns that are not the model's, with the reasons: see `holding`

    def _set_attributes(self, attributes: Sequence[Attribute]) -> None:
        self._attributes = with_uniformity(attributes, self.schema.columns, self.pool)
        positions = [attribute.positions for attribute in attributes]
        self._members = np.array(list(itertools.zip_longest(*positions, fillvalue=-1)), dtype=np.intp)

    @property
    def attributes(self) -> tuple[Attribute, ...]:
        """The subjects of the literals: every column or group that may change, with the statements about it."""
        return self._attributes

    @cached_property
    def fingerprint(self) -> str:
        """The SHA-256 of names, kinds, values and options, whatever library holds the rows, in any order."""
        digest = hashlib.sha256(json.dumps([self.names, self._settings], default=str).encode())
        digest_columns(digest, self.schema.columns)
        return "table:" + digest.hexdigest()

    def holding(self, reasons: Mapping[str, str]) -> "Table":
        """Return the same table with columns held fixed for reasons of the model; groups are held as a whole."""
        held = copy.copy(self)
        changing = [a for a in self._attributes if any(self.names[j] not in reasons for j in a.positions)]
        others = {*self.fixed, *(self.names[j] for a in changing for j in a.positions)}
        held.left_out = {name: why for name, why in reasons.items() if name not in others}
        held._set_attributes(changing)
        held.__dict__.pop("_donor_index", None)  # of the attributes that changed before
        return held

    @cached_property
    def _donor_index(self) -> DonorIndex | None:
        """The rows that may donate values to neighbors, built at the first row."""
        if self.neighbors == "independent":
            return None
        fixed, follow = [self.names.index(name) for name in self.fixed], self.neighbors == "similar"
        return DonorIndex.build(self.schema, self._attributes, fixed, self._leaders, flips_follow=follow)

    def at(self, instance: Any) -> "TableNeighborhood":
        """Return the neighborhood of a row: a dict, Series, frame of one row, list, or training row number."""
        return self.around(*self.schema.read(instance))

    def around(self, row: tuple[Any, ...], columns: tuple[Column, ...]) -> "TableNeighborhood":
        """Return the neighborhood of a row that the schema has read."""
        held = dict.fromkeys(self.fixed, "held fixed as asked") | self.left_out
        unseen = {name: why for name, why in self.schema.unseen(columns).items() if name not in held}
        donors, validity = self._donor_index, None if self.valid is None else Validity(self.valid)
        training = self.pool if donors is None else self.schema.natives, self._attributes, self._members
        how = self.within, self.literals, self.drawing._replace(donors=donors, validity=validity)
        return TableNeighborhood(*training, self.schema.n_rows, row, columns, held, unseen, *how)

    def check(self, target: Any = None) -> tuple[Finding, ...]:
        """Return what in this table would make explanations misleading; see docs/tables.md.

        ``target`` holds what the model predicts, one value per row, in the order in which the rows were given.

        Examples
        --------
        >>> table = Table(np.column_stack([np.arange(99) % 2, (np.arange(99) + 1) % 2]), names=["male", "female"])
        >>> [(finding.code, finding.columns) for finding in table.check()]
        [('indicators', ('male', 'female'))]
        """
        are_realistic = self.neighbors != "independent"
        return check_table(self.schema, self._attributes, are_realistic=are_realistic, target=target)

    def unclear(self, instance: Any) -> list[str]:
        """Return the columns whose JSON value stands for several values, such as None and NaN, or 1 and "1"."""
        return self.schema.unclear(instance)

    def examples(self, n_rows: int = _MAX_EXAMPLES) -> Iterator[Any]:
        """Yield batches of training rows as model inputs; at most 10,000 rows, whichever order they came in."""
        n = self.schema.n_rows
        rows = np.unique(np.linspace(0, n - 1, min(n, n_rows)).astype(np.intp))
        for start in range(0, len(rows), _EXAMPLES_PER_BATCH):
            yield self.schema.natives.rows(rows[start : start + _EXAMPLES_PER_BATCH])


@dataclass(frozen=True, eq=False)
class TableNeighborhood:
    """A row of a table, and the rows that break some of its literals.

    ``pool`` holds every column of the ``n_training`` training rows, sorted by the codes of its attribute, or, if
    there are donors, in the order of the table. ``members[i]`` holds the i-th column of every
    attribute, or -1: (largest group, attributes). ``offered`` names the literals that numbers and dates offer.
    """

    pool: Natives
    attributes: tuple[Attribute, ...]
    members: np.ndarray
    n_training: int
    row: tuple[Any, ...]
    columns: tuple[Column, ...]
    held: Mapping[str, str]
    unseen: Mapping[str, str]
    within: str
    offered: str
    drawing: options.Drawing

    @property
    def independent_values(self) -> bool:
        """Whether the values of attributes that change are drawn independently of each other."""
        return self.drawing.donors is None and self.drawing.validity is None

    @property
    def flips_follow(self) -> bool:
        """Whether values decide which literals break: see `decide`."""
        return self.drawing.donors is not None and self.drawing.donors.flips_follow

    @property
    def redrawn(self) -> float | None:
        """The share of the neighbors so far that were drawn again, because they broke the table's rule."""
        return None if self.drawing.validity is None else self.drawing.validity.redrawn

    @cached_property
    def _codes(self) -> list[tuple[int, ...]]:
        """The row's codes, one tuple per attribute."""
        return [attribute.codes(columns) for attribute, columns in zip(self.attributes, self._parts, strict=True)]

    @cached_property
    def _parts(self) -> list[list[Column]]:
        """The row's columns, by attribute."""
        return [[self.columns[j] for j in attribute.positions] for attribute in self.attributes]

    @cached_property
    def _blocks(self) -> np.ndarray:
        """Start and stop, in the pool, of the training rows that keep an attribute's literal: (2, attributes)."""
        blocks = [a.block(codes) for a, codes in zip(self.attributes, self._codes, strict=True)]
        return np.array(blocks, dtype=np.intp).reshape(-1, 2).T

    @cached_property
    def _breakable(self) -> np.ndarray:
        """The attributes whose literal some training row breaks: (d,) of their numbers."""
        start, stop = self._blocks
        kept = np.flatnonzero(stop - start < self.n_training)
        if not len(kept):
            raise InstanceError(
                "No training row differs from this row in any literal, so the row has no neighbors. Pass a "
                "larger training table, more bins (n_bins), cuts, or fewer fixed columns."
            )
        return kept

    @cached_property
    def _offers(self) -> list[Offer]:
        """The literals of every breakable attribute, and the ways in which it changes."""
        draw, numbers = self.drawing.draw, self._breakable.tolist()
        return [self.attributes[i].drawn(self._codes[i], self.offered, draw) for i in numbers]

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """Where each breakable attribute takes its values from."""
        kept = (self._blocks[:, self._breakable] * (self.within == "redraw")).tolist()
        each = zip(self._breakable.tolist(), *kept, self._offers, strict=True)
        return tuple(Source(i, (a, b - a), tuple(way[:2] for way in offer.ways)) for i, a, b, offer in each)

    @cached_property
    def changes(self) -> tuple[tuple[Change, ...], ...] | None:
        """The ways in which attributes change; None if every attribute has one literal and one way."""
        one_way = self.offered == "intervals" and self.drawing.draw == "breaking"
        return None if one_way else changes_of(self._offers)

    @cached_property
    def fixed(self) -> dict[str, str]:
        """The attributes that never change in this neighborhood, with the reasons."""
        unbroken = sorted(set(range(len(self.attributes))) - {*self._breakable.tolist()})
        return dict(self.held) | {
            self.attributes[i].name: f"no training row breaks {self._statement(i).text!r}" for i in unbroken
        }

    @cached_property
    def literals(self) -> tuple[Literal, ...]:
        """The literals of every breakable attribute, in the order of the columns."""
        keeps, literals = self.within == "keep" and self.drawing.draw == "breaking", list[Literal]()
        empty = (self._blocks[0] == self._blocks[1]).tolist()  # no training row with the same codes
        for i, offer in zip(self._breakable.tolist(), self._offers, strict=True):
            own = self.attributes[i].literals(self._parts[i], self._codes[i], offer, keeps or empty[i])
            literals += [replace(literal, held=own[0].held) for literal in own] if self.flips_follow else own
        return tuple(literals)

    def is_true_of(self, literal: int, other: "TableNeighborhood") -> bool:
        """Return whether one of this row's literals is true of another row of the same table."""
        i, bound = self._subjects[literal]
        return other._texts[i] == self._texts[i] if bound is None else bound.holds(other._codes[i][0])

    @cached_property
    def _subjects(self) -> list[tuple[int, Range | None]]:
        """Per literal, its attribute, and the codes of which it is true; None for the attribute's statement."""
        offers = zip(self._breakable.tolist(), self._offers, strict=True)
        return [(i, bound) for i, offer in offers for bound in (None, *offer.bounds)]

    @cached_property
    def _texts(self) -> list[str]:
        """The statement of every attribute."""
        return [self._statement(i).text for i in range(len(self.attributes))]

    @cached_property
    def key(self) -> bytes:
        """The row's values, as JSON."""
        return b"table:" + json.dumps(self.instance).encode()

    @property
    def original(self) -> Any:
        """The row as a table of one row in the training table's type; a copy, which the model may change."""
        original, validity = self.pool.neighbors(self.row, 1, ()), self.drawing.validity
        return original if validity is None else validity.checked_original(original)

    @cached_property
    def deterministic(self) -> bool:
        """Whether every literal can be broken in one way only, so that all neighbors can be enumerated."""
        attributes = [(self.attributes[i], self._codes[i]) for i in self._breakable]
        stays = self.drawing.draw == "breaking" or all(
            attribute.keeps_one_way(own) for attribute, own in attributes
        )
        one_way = all(a.breaks_one_way(own) for a, own in attributes)
        return self.within == "keep" and stays and one_way and not self.flips_follow

    @cached_property
    def instance(self) -> list[Any]:
        """The row as plain values, in the order of the columns."""
        return [plain(column, native) for column, native in zip(self.columns, self.row, strict=True)]

    def realize(self, flips: np.ndarray, rng: np.random.Generator | None) -> Any:
        """Return the neighbors; an attribute that changes takes its value from a training row of that way.

        ``flips`` are draws: 0 where an attribute keeps its value, and i where it changes in way i, which are flips
        if every attribute changes in one way.
        """
        draws = checked_draws(flips, len(self._breakable), needs_rng=rng is None and not self.deterministic)
        if self.drawing.validity is None:
            return self.pool.neighbors(self.row, len(flips), self._sources.cells(draws, RandomWords(rng)))
        return self._chosen(draws, rng)[0]

    def decide(self, draws: np.ndarray, rng: np.random.Generator | None) -> tuple[Any, np.ndarray]:
        """Return neighbors whose drawn attributes take values of a donor, and the ways (n, d) of these changes."""
        inputs, sources = self._chosen(checked_draws(draws, len(self._breakable), needs_rng=rng is None), rng)
        assert isinstance(self._sources, SimilarRows)  # if `flips_follow`
        return inputs, self._sources.ways(sources).T

    def _chosen(self, draws: np.ndarray, rng: np.random.Generator | None) -> tuple[Any, np.ndarray]:
        """Return neighbors with these draws (d, n), and the rows from which their values come."""
        validity, names = self.drawing.validity or Validity(None), [a.name for a in self.attributes]
        changing = [names[i] for i in self._breakable.tolist()]
        return validity.drawn(draws, RandomWords(rng), self._sources.choose, self._neighbors, changing)

    def _neighbors(self, sources: np.ndarray) -> Any:
        """Return the neighbors whose values come from these rows of the pool, (attributes, n)."""
        return self.pool.neighbors(self.row, sources.shape[1], Cells.from_sources(self._sources.columns, sources))

    @cached_property
    def _sources(self) -> Blocks | Donors | SimilarRows:
        """Where the values of the breakable attributes come from."""
        members, breakable = self.members[:, self._breakable], self._breakable
        if self.drawing.donors is not None:
            ways = [offer.ways for offer in self._offers]
            return self.drawing.donors.at(self.columns, breakable, ways, members, self.drawing.n_donors)
        keeping = self._blocks[:, breakable]
        if self.within == "keep":
            keeping = np.zeros_like(keeping)
        flat = isinstance(self.pool, ArrayNatives)
        return Blocks(members, places_of(self._offers), keeping, self.n_training, flat)

    def _statement(self, i: int) -> Statement:
        return self.attributes[i].statement(self._parts[i], self._codes[i])
