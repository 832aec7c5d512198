"""What a server shows besides its model: names, columns that no change may touch, and the model before."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from anchorline.errors import ParameterError, listed
from anchorline.render.characters import printable
from anchorline.render.statements import Naming
from anchorline.spaces.table import Table


@dataclass(frozen=True, slots=True)
class Previous:
    """The model before, with which the server's model is compared.

    Parameters
    ----------
    name, model
        The model, and what it is called.
    table
        The training table of both models.
    choices
        Keywords of `Explainer` for both models, such as the output.
    """

    name: str
    model: Any
    table: Table
    choices: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """Names for readers, and what stays as it is.

    Parameters
    ----------
    names, units
        What readers call a column, and the unit of its numbers, by the names of the table.
    labels
        What readers call a class, by the labels of the model.
    immutable
        Columns that nobody can change, so that no change is about them.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    units: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    immutable: Sequence[str] = ()

    @property
    def naming(self) -> Naming:
        """The names in all texts."""
        return Naming(self.names, self.units, self.labels)

    def check(self, columns: Sequence[str], classes: Iterable[Any] | None) -> None:
        """Raise `ParameterError` for a column or class that does not exist, and for a name that is used twice."""
        labels = [str(label) for label in classes or ()]
        for what, given, known, kind in (
            ("names", self.names, columns, "column"),
            ("units", self.units, columns, "column"),
            ("immutable", self.immutable, columns, "column"),
            ("labels", self.labels, labels, "class"),
        ):
            unknown = [name for name in given if name not in known]
            if unknown:
                there = listed(known) if known else "none that have a name"
                raise ParameterError(f"{what} has {unknown[0]!r}, which is not a {kind}. There are {there}.")
        for what, shown in (
            ("names", [self.column(name) for name in columns]),
            ("labels", [self.label(label) for label in labels]),
        ):
            twice = [name for name in shown if shown.count(name) > 1]
            if twice:
                raise ParameterError(f"{what} has {twice[0]!r} twice; readers could not tell them apart.")

    def column(self, name: str) -> str:
        """Return what readers call a column."""
        return printable(self.names.get(name, name))

    def label(self, label: Any) -> str:
        """Return what readers call a class."""
        return printable(self.labels.get(str(label), str(label)))

    def own_label(self, text: str) -> str:
        """Return the model's label of a class that readers call so; the text itself if it is not such a name."""
        return next((label for label, name in self.labels.items() if name == text), text)
