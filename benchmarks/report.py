"""Write benchmark figures: JSON for machines, one Markdown page for people."""

import json
import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anchorline._version import __version__

TITLES = {
    "proven": "Proofs on the paper's tasks",
    "nearby": "Proofs one step from the paper's setting",
    "beyond": "Proofs beyond the paper's setting",
    "race_lime": "Overhead against LIME",
    "peers": "Against LIME and KernelSHAP at equal queries",
    "relevance": "Direct relevance",
    "tables": "Raw tables",
    "studio": "The studio under load",
    "frontier_cost": "The frontier's cost",
    "memory": "Memory",
    "import_time": "Import time",
    "batch": "Many rows",
    "batch_memory": "Memory of many rows",
}
NOTES = {
    "proven": "k = 5, m = 5000, sigma = 1, 10 instances each; seconds are whole explanations, model included. "
    "Adult, Musk and Seoul have other dimensions than published: the files are other versions of these tables.",
    "nearby": "k = 8, or another sigma, or another m. Gaps are relative to the objective, the largest left.",
    "beyond": "k = 8, sigma in {0, 2, 3}, m in {1000, 20000}, 60 s each task.",
    "race_lime": "Same model, same number of queries, one BLAS thread for both, k = 5 (LIME: 4 features and its "
    "intercept). Overhead is total time less the time inside the model; ratios are LIME's over ours. "
    "Certified: half of the queries go to the certificate.",
    "peers": "Made by `anchorline bench peers`. Same model, exactly as many queries each, sigma = 1, "
    "k = 5 (LIME and KernelSHAP: 4 literals and an intercept; 20 background rows), one thread, processor seconds. "
    "Overhead is time less that inside the model; relevance errors by 50,000 draws, by the definition. Ratios are "
    "theirs over ours: of median times, of mean relevance errors.",
    "relevance": "k = 5, sigma = 1, 10 instances each; mean relevance error by 50,000 conditional draws, by the "
    "definition. Exact, k literals (no intercept), IHT and LIME: 5000 samples; direct: 20,000 and 10,000 to "
    "choose. The paired 95% interval of direct less exact is Student's over the instances.",
    "tables": "Gradient-boosting pipelines on raw frames, k = 5, 10 rows each; medians. Ours: 5,000 samples and "
    "5,000 to certify; LIME at its defaults, 4 features, as many queries. Both measured by our assessment on the "
    "same "
    "20,000 fresh neighbors (errors and gaps on the scale [-1, +1]; LIME's indicators turned into our basis). "
    "Overhead is time outside the model, in seconds; the ratio is LIME's over ours.",
    "studio": "Server and clients in two processes on loopback, one machine; adult (14 attributes, gradient "
    "boosting), k = 5. Computed: 5,000 samples and 5,000 to certify each, two workers. Every answer is compared "
    "byte by byte with the library's own in the clients' process (wrong); refused: 429; memory: the server's "
    "resident set after the first 2,000 of 10,000 requests, and after all. Sliders: from the event to "
    "the picture in Chromium, "
    "demo model.",
    "frontier_cost": "All of k = 1..8 with certificates, against k = 8 alone with its own, whole time.",
    "memory": "Peak resident memory of one explanation.",
    "import_time": "Fresh processes, medians.",
    "batch": "Gradient boosting (scikit-learn's histogram regressor, 100 trees) on a pandas frame, default "
    "settings: 5,000 samples and 5,000 to certify; one thread in every process. Rates are from the first row to "
    "the last of worker processes, medians of three turns; two apart: two batches of one process each at the same "
    "time, which is what the machine gives; seconds a row are processor time, medians of 20 rows.",
    "batch_memory": "A whole batch, checkpoints and file included, 2 worker processes; d = 4, a quick model, 32 "
    "samples a row.",
}


def write_json(directory: Path, name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write one section's rows, with what they were measured on, atomically."""
    directory.mkdir(parents=True, exist_ok=True)
    made_on = {
        "anchorline": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }
    text = json.dumps({"section": name, "made_on": made_on, "rows": list(rows)}, indent=1) + "\n"
    aside = directory / f"{name}.json.tmp"
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, directory / f"{name}.json")


def write_page(directory: Path) -> Path:
    """Gather every section found into ``README.md`` beside the figures."""
    parts = ["# Benchmark results\n\nMade by `make bench`; every figure is in the JSON beside this page.\n"]
    for name, title in TITLES.items():
        file = directory / f"{name}.json"
        if file.exists():
            rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
            parts.append(f"## {title}\n\n{NOTES[name]}{_share_proven(rows)}\n\n{markdown_table(rows)}\n")
    page = directory / "README.md"
    page.write_text("\n".join(parts), encoding="utf-8")
    return page


def _share_proven(rows: Sequence[dict[str, Any]]) -> str:
    if not rows or "tasks" not in rows[0]:
        return ""
    return f" Proven: {sum(row['proven'] for row in rows):,} of {sum(row['tasks'] for row in rows):,} tasks."


def markdown_table(rows: Sequence[dict[str, Any]]) -> str:
    """A Markdown table of rows that share their keys."""
    if not rows:
        return "(nothing measured)"
    columns = list(rows[0])
    lines = [
        "| " + " | ".join(column.replace("_", " ") for column in columns) + " |",
        "|---" * len(columns) + "|",
    ]
    lines += ["| " + " | ".join(_cell(row[column]) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
