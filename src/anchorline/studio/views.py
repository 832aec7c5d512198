"""Explanations as JSON for the page, and as CSV; nothing here queries the model.

Every sentence is one of `anchorline.render.statements`; the page only lays them out.
"""

import base64
import csv
import io
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from anchorline.changes.result import Changes
from anchorline.errors import listed
from anchorline.render.characters import printable, printable_lines
from anchorline.render.drawings import area_path, edge_path
from anchorline.render.geometry import Band, bands_of, picture_of, steps_in, text_runs
from anchorline.render.statements import (
    CAPTIONS,
    Result,
    RuleWords,
    Words,
    band_caption,
    column_text,
    details_of,
    digits_of,
    legend,
    shade_caption,
    statements_of,
)
from anchorline.result.explanation import Explanation, Verdict
from anchorline.result.explanations import summarize
from anchorline.result.reasons import Reasons
from anchorline.result.rule import Rule
from anchorline.search.table import ADVICE
from anchorline.spaces.base import Finding
from anchorline.studio.catalog import browser_value

_MAX_ATTRIBUTES, _MAX_TEXTS = 15, 3
_VERDICTS = {verdict.value: verdict.value.replace("_", " ") for verdict in Verdict}
_RULE_EVIDENCE = (("holds",), ("rows", "scope"))  # what stands in one paragraph
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet computes a text that begins like this

_OTHER_DATA = " If you did not expect that"
_NOTICES = {  # for readers without Python: what the operator can type
    "unknown-columns": "The model was not fitted on {all}, so they are never facts. Start the server with {add}.",
    "target": "{all} may be what the model predicts, and then is not a reason. Start the server with {add}.",
    "indicators": "At most one of {all} is 1 in every row. Start the server with --group auto to join them.",
    "id": "{all} seems to identify rows, and then is not a reason. Start the server with {fix}.",
    "lost-type": "{all} holds numbers or dates as texts, each a category of its own. Convert the file of --data.",
    "lost-missing": "{all} seems to mark missing values by another value. Empty such cells in the file of --data.",
}

_COLUMNS = ("case", "output", "decision", "prediction", "base", "verdict", "holds_low", "all", "r2", "facts")
TABLE_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
Explained = Sequence[tuple[int, Explanation]]


def explanation_view(explanation: Explanation) -> dict[str, Any]:
    """Return everything that the page shows about one explanation, and the explanation's sealed JSON."""
    output, words = explanation.output, Words(explanation)
    decision, verdict, *rest = statements_of(explanation)
    said = {"holds", "fit", "advice", "note"}
    same = next((each.text for each in rest if each.kind == "same"), "")
    headline, small = _headline(explanation, words, decision.text)
    return {
        "decision": decision.text,
        "headline": headline,
        "small": small,
        "verdict": {"code": explanation.verdict.value, "text": verdict.text},
        "same": same,
        "sum": _sum(explanation),
        "evidence": [each.text for each in rest if each.kind in said],
        "rows": next((each.text for each in rest if each.kind == "rows"), ""),
        "meters": _meters(explanation, words),
        "caption": CAPTIONS["sum"],
        "legend": legend(explanation),
        "details": [{"kind": each.kind, "text": each.text} for each in details_of(explanation)],
        "output": words.output,
        "unit": words.unit.strip(),
        "fact": words.fact,
        "facts": words.facts,
        "is_probability": output.is_probability,
        "class": output.name if output.kind == "class" and output.classes is not None else None,
        "is_number": output.kind == "number",
        "content": _content(explanation),
        "json": explanation.to_json(),
    }


def _headline(explanation: Explanation, words: Words, decision: str) -> tuple[str, str]:
    """Return the decision or the number with its unit, and what else the sentence about it says."""
    if words.is_number:
        return f"{digits_of(explanation).total}{words.unit}", f"Model's {words.output}"
    lead, headline = "Model's decision", str(words.decision)
    return headline, (lead + decision.removeprefix(f"{lead}: {headline}")).removesuffix(".")


def notices_of(findings: Sequence[Finding]) -> list[str]:
    """Return what was found in model and table, with the switch of the server that helps."""
    texts = []
    for finding in findings:
        if finding.code in ADVICE or finding.code == "column-order":  # the server itself restores the order
            continue
        add, fix = (" ".join(f"{name} {column}" for column in finding.columns) for name in ("--target", "--fixed"))
        other, found, _ = finding.text.partition(_OTHER_DATA)
        text = f"{other} Start the server with the --data that the model was fitted on." if found else other
        form = _NOTICES.get(finding.code)
        texts.append(printable(form.format(all=listed(finding.columns), add=add, fix=fix) if form else text))
    return texts


def _sum(explanation: Explanation) -> dict[str, Any]:
    """Return the lines of the sum; each ``amount`` is the printed text, and printed numbers still add up."""
    lines = [each for each in statements_of(explanation) if each.amount]
    start = next((each.text for each in lines if each.kind == "start"), "")
    texts = [each.text for each in lines if each.kind == "fact"]
    digits, effects = digits_of(explanation), explanation.effects.tolist()
    parts = zip(explanation.facts, texts, explanation.contributions.tolist(), effects, strict=True)
    facts = [
        {"attribute": fact.attribute, "column": fact.column, "text": text, "value": value, "effect": effect}
        for fact, text, value, effect in parts
    ]
    return {
        "start": {"text": start, "value": explanation.base, "amount": digits.base},
        "facts": [fact | {"amount": amount} for fact, amount in zip(facts, digits.contributions, strict=True)],
        "total": {"value": explanation.prediction, "amount": digits.total},
    }


def _meters(explanation: Result, words: Words) -> list[dict[str, Any]]:
    """Return the share of copies that keep the decision, with the facts and with or without them."""
    holds, all_ = explanation.holds, explanation.all
    if holds is None or all_ is None or not explanation.facts:
        return []
    return [
        {"text": f"with {words.these}"} | asdict(holds),
        {"text": f"with or without {words.them}"} | asdict(all_),
    ]


def _content(explanation: Explanation) -> dict[str, Any] | None:
    """Return a text in runs, or a small copy of an image with its regions; None for other instances."""
    runs, picture = text_runs(explanation), picture_of(explanation)
    if runs:
        return {
            "kind": "text",
            "caption": CAPTIONS["text"],
            "runs": [{"text": printable_lines(run.text), "fact": run.fact} for run in runs],
        }
    if picture is None:
        return None
    height, width, _ = picture.rgb.shape
    regions = [
        {
            "name": region.name,
            "fact": region.fact,
            "middle": [region.middle[1], region.middle[0]],
            "area": area_path(region.mask),
            "edges": edge_path(region.mask),
        }
        for region in picture.regions
    ]
    pixels = base64.b64encode(picture.rgb.tobytes()).decode()
    size = {"width": width, "height": height}
    return {"kind": "image", "caption": CAPTIONS["image"], "rgb": pixels, "regions": regions} | size


def rule_view(rule: Rule) -> dict[str, Any]:
    """Return everything that the page shows about one rule, and the rule's sealed JSON.

    Places and widths of ``bands`` are shares of their width.
    """
    head, *rest = statements_of(rule)
    bands = bands_of(rule)
    evidence = (" ".join(each.text for each in rest if each.kind in kinds) for kinds in _RULE_EVIDENCE)
    return {
        "verdict": {"code": rule.verdict.value, "text": head.text},
        "best": next((each.text for each in rest if each.kind == "best"), ""),
        "facts": [each.text for each in rest if each.kind == "fact"],
        "bands": [_band(band) for band in bands],
        "shades": [{"shade": shade, "text": text} for shade, text in steps_in(bands)] if bands else [],
        "caption": f"{band_caption(rule)} {shade_caption(rule)}" if bands else "",
        "evidence": [text for text in evidence if text],
        "meters": _meters(rule, RuleWords(rule)),
        "details": [{"kind": each.kind, "text": each.text} for each in details_of(rule)],
        "holds": rule.settings["holds"],
        "json": rule.to_json(),
    }


def _band(band: Band) -> dict[str, Any]:
    parts = [asdict(part) | {"shade": part.shade} for part in band.parts]
    return asdict(band) | {"parts": parts, "n_rows": band.n_rows, "summary": band.summary}


def changes_view(changes: Changes) -> dict[str, Any]:
    """Return the changes for the page: ``edits`` are for /v1/what-if, and ``names`` can be held fixed."""
    first, *others = str(changes).split("\n")
    options = [
        {
            "edits": {name: browser_value(value) for name, value in option.values.items()},
            "names": [move.attribute for move in option.moves],
        }
        for option in changes
    ]
    lines = [line.strip() for line in others if line.startswith("  ")] if len(options) > 1 else [first]
    notes = [line for line in others if not line.startswith("  ")]
    options = [option | {"text": line} for option, line in zip(options, lines, strict=False)]
    headline = "" if len(options) == 1 else first
    return {"headline": headline, "options": options, "notes": notes, "details": changes.details().split("\n")}


def reasons_view(reasons: Reasons) -> dict[str, Any]:
    """Return the reasons for the page, the codes and texts of the letter, and the sealed JSON."""
    _, lead, *rest = statements_of(reasons)
    stated = [each for each in rest if each.kind == "reason"]
    return {
        "lead": lead.text,
        "reasons": [
            {"text": each.text, "amount": each.amount, "share": each.figures["value"] / stated[0].figures["value"]}
            for each in stated
        ],
        "notes": [each.text for each in rest if each.kind == "note"],
        "details": [{"kind": each.kind, "text": each.text} for each in details_of(reasons)],
        "letter": [
            {"code": printable(reason.code), "text": printable_lines(reason.text or reason.attribute)}
            for reason in reasons
        ],
        "json": reasons.to_json(),
    }


def summary_view(explained: Explained) -> dict[str, Any]:
    """Return what decides in the cases that are explained so far, and which ones the facts do not explain."""
    summary = summarize(explained, ())
    outputs = {Words(e).output for _, e in explained}
    attributes = [
        {
            "name": column_text(each.name),
            "n_rows": each.n_rows,
            "adds": each.adds,
            "typical_size": each.typical_size,
            "texts": [{"text": text, "count": n} for text, n in each.facts[:_MAX_TEXTS]],
            "cases": [row for row, e in explained if any(fact.attribute == each.name for fact in e.facts)],
        }
        for each in summary.attributes[:_MAX_ATTRIBUTES]
    ]
    return {
        "output": outputs.pop() if len(outputs) == 1 else None,
        "verdicts": [
            {
                "code": code,
                "text": _VERDICTS[code],
                "count": count,
                "cases": [row for row, e in explained if e.verdict.value == code],
            }
            for code, count in summary.verdicts.items()
        ],
        "attributes": attributes,
        "n_more": max(0, len(summary.attributes) - _MAX_ATTRIBUTES),
        "least_explained": [
            {"position": row, "code": code, "text": _VERDICTS[code], "low": low}
            for row, code, low in summary.least_explained
        ],
    }


def table_of(explained: Explained, form: str = "csv") -> bytes:
    """Return one row per explained case as CSV or Parquet.

    In CSV, texts that a spreadsheet would compute begin with a quote.
    """
    rows = [_row_of(position, e) for position, e in explained]
    if form == "parquet":
        import pyarrow as pa  # noqa: PLC0415  heavy
        import pyarrow.parquet as pq  # noqa: PLC0415

        types = (pa.int64(), pa.string(), pa.string(), pa.float64(), pa.float64(), pa.string())
        schema = pa.schema(zip(_COLUMNS, (*types, *[pa.float64()] * 3, pa.string()), strict=True))
        content = [dict(zip(_COLUMNS, row, strict=True)) for row in rows]
        file = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(content, schema), file)
        return file.getvalue()
    lines = io.StringIO()
    writer = csv.writer(lines)
    writer.writerow(_COLUMNS)
    writer.writerows([_cell(value) for value in row] for row in rows)
    return lines.getvalue().encode()


def _row_of(position: int, e: Explanation) -> list[Any]:
    texts = [each.text for each in statements_of(e) if each.kind == "fact"]
    amounts = digits_of(e).contributions
    facts = "; ".join(f"{text}: {number}" for text, number in zip(texts, amounts, strict=True))
    decision = "" if e.output.decision is None else str(e.output.decision)
    figures = [e.holds and e.holds.low, e.all and e.all.value, e.fit and e.fit.r2]
    return [position, Words(e).output, decision, e.prediction, e.base, e.verdict.value, *figures, facts]


def _cell(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
