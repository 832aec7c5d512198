"""A model to serve, and what is shown of it: names, columns that no change may touch, and the model before."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from anchorline.errors import AnchorlineError, ParameterError, listed
from anchorline.explainer import Explainer
from anchorline.render.characters import printable
from anchorline.render.statements import Naming
from anchorline.settings import ReasonSettings
from anchorline.spaces.table import Table

_NAME = re.compile(r"(?=.{1,40}$)[a-z0-9]+(-[a-z0-9]+)*")


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


def check_name(name: str) -> str:
    """Return a name that can be a part of an address, or raise `ParameterError`."""
    if not _NAME.fullmatch(name):
        raise ParameterError(
            f"The name of a model is {name!r:.80}, but it is part of an address: at most 40 lower-case letters, "
            'digits and single dashes. Type, for example, name = "car-loans" and title = "Car loans".'
        )
    return name


@contextmanager
def about_model(name: str) -> Iterator[None]:
    """Say in an error which of several models it is about."""
    try:
        yield
    except AnchorlineError as error:
        each: BaseException | None = error
        while name and isinstance(each, AnchorlineError):  # the command prints the first cause
            each.args, each = (f"Model {name!r}: {each}",), each.__cause__
        raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """One model to serve, and everything about it.

    Parameters
    ----------
    explainer
        A model and a `Table` or `Contents`. The studio queries a locked copy; the given explainer does not change.
    name
        What readers call the model.
    cases
        Rows to explain instead of the training rows: a frame with their columns, or a list of dictionaries.
    truth
        What the model predicts, as it turned out: the name of this column, and one value per case.
    reasons
        Codes, side and prohibited columns of the reasons that are stated for adverse decisions; None states none.
    fingerprint
        What identifies the model in reports, such as the digest of its file.
    display
        Names for readers, units, and columns that nobody can change.
    previous
        The model before, with which this one is compared.
    """

    explainer: Explainer
    name: str = "model"
    cases: Any = None
    truth: tuple[str, Sequence[Any]] | None = None
    reasons: ReasonSettings | None = None
    fingerprint: str | None = None
    display: Display = field(default_factory=Display)
    previous: Previous | None = None
