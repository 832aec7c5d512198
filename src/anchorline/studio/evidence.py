"""The part of a report for the file: which case, model and data, when, and which other sums fit as well."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from typing import Any

from anchorline._version import __version__
from anchorline.render.characters import printable
from anchorline.render.summands import round_preserving_sum
from anchorline.result.explanation import Explanation


@dataclass(frozen=True, slots=True)
class About:
    """What a report is about: name and fingerprint of the model, the case and its values, and the true outcome."""

    model: str
    fingerprint: str | None
    row: Any
    values: Mapping[str, Any]
    truth: str | None


def filed(page: str, explanation: Explanation, listed: Explanation, about: About) -> str:
    """Return the report with a last section for the file; ``listed`` is the explanation with its alternatives."""
    row = about.row
    facts = {
        "Case": f"number {row} of the table" if isinstance(row, int) else "not in the table",
        **({} if about.truth is None else {"True outcome": about.truth}),
        "Model": about.model,
        "Fingerprint of the model": about.fingerprint or "not known, because no single file holds the whole model",
        "Checksum of the model's answers": repr(explanation.certificate.answers_checksum),
        "Fingerprint of the data": str(explanation.parameters["space"]),
        "Made on": f"{datetime.now(UTC):%Y-%m-%d} (UTC), with anchorline {__version__}",
    }
    values = "" if not about.values else f"<h3>All values of this case</h3>{_list(about.values)}"
    section = f"<section><h2>For the file</h2>{_list(facts)}{values}{_other_sums(listed)}</section>"
    body, footer, rest = page.rpartition("<footer")
    return f"{body}{section}{footer}{rest}"


def _list(entries: Mapping[str, Any]) -> str:
    """Return names and values as a list; a missing value is called so."""
    cells = "".join(
        f"<dt>{escape(printable(str(name)))}</dt>"
        f"<dd>{escape(printable('missing' if value is None else str(value)))}</dd>"
        for name, value in entries.items()
    )
    return f"<dl>{cells}</dl>"


def _other_sums(explanation: Explanation) -> str:
    if not explanation.alternatives:
        return ""
    items = []
    for other in explanation.alternatives:
        pairs = sorted(zip(other.support, other.values, strict=True), key=lambda pair: -abs(pair[1]))
        values = [value for _, value in pairs]
        parts = [*values, other.intercept] if other.intercept != 0 else values
        numbers, _ = round_preserving_sum(parts, explanation.prediction)
        texts = [
            f"{number} [{explanation.literals[j].text}]" for (j, _), number in zip(pairs, numbers, strict=False)
        ]
        items.append(f"<li>{escape(printable(', '.join(texts)))}</li>")
    cut = " More sums may be as good." if explanation.alternatives_complete is False else ""
    title = "Other sums that the evidence cannot distinguish from this one"
    return f"<h3>{title}</h3><ol>{''.join(items)}</ol><p>{cut}</p>"
