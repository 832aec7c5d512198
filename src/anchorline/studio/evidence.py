"""The part of a report for the file: which case, model and data, when, and which other sums fit as well."""

from datetime import UTC, datetime
from html import escape
from typing import Any

from anchorline._version import __version__
from anchorline.render.characters import printable
from anchorline.render.summands import round_preserving_sum
from anchorline.result.explanation import Explanation


def filed(page: str, explanation: Explanation, listed: Explanation, model: str, row: Any) -> str:
    """Return the report with a last section for the file; ``listed`` is the explanation with its alternatives."""
    facts = {
        "Case": f"number {row} of the table" if isinstance(row, int) else "not in the table",
        "Model": model,
        "Checksum of the model's answers": repr(explanation.certificate.answers_checksum),
        "Fingerprint of the data": str(explanation.parameters["space"]),
        "Made on": f"{datetime.now(UTC):%Y-%m-%d} (UTC), with anchorline {__version__}",
    }
    cells = "".join(f"<dt>{escape(name)}</dt><dd>{escape(printable(text))}</dd>" for name, text in facts.items())
    section = f"<section><h2>For the file</h2><dl>{cells}</dl>{_other_sums(listed)}</section>"
    body, footer, rest = page.rpartition("<footer")
    return f"{body}{section}{footer}{rest}"


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
