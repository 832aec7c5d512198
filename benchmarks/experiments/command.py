"""What ``anchorline bench paper`` does: run the experiments, then write tables, figures and the page."""

import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.datasets import fetch_dataset
from benchmarks.experiments.figures import draw_all
from benchmarks.experiments.page import write_index, write_page
from benchmarks.experiments.protocol import FULL, QUICK, Plan, Scale, Unit
from benchmarks.experiments.results import Results
from benchmarks.experiments.runner import Store, run
from benchmarks.experiments.tables import all_tables
from benchmarks.needs import PEERS, READING, SOLVERS, require
from benchmarks.tasks import CACHE, Protocol

PROTOCOLS: dict[str, tuple[Protocol, ...]] = {"paper": ("paper",), "code": ("code",), "both": ("paper", "code")}


def repeat_paper(
    data: Path | None,
    *,
    protocol: str | None = None,
    quick: bool = False,
    out: Path | None = None,
    page: Path | None = None,
    cache: Path | None = None,
    workers: int = 2,
    report_only: bool = False,
) -> bool:
    """Repeat the paper's experiments; a run that was stopped goes on where it was.

    Returns whether there is a report and nothing failed. What failed is told, and tried again next time.
    """
    require(READING | PEERS | SOLVERS)
    scale, cache = QUICK if quick else FULL, cache or CACHE
    if page is None:  # what is asked for somewhere else stays there
        page = out / "paper.md" if out else cache / "paper-quick" / "paper.md" if quick else Path("docs/paper.md")
    out = out or (cache / "paper-quick" if quick else Path("benchmarks/paper"))
    units = list(Plan.of(data, scale, PROTOCOLS[protocol or ("paper" if quick else "both")]))
    store, failed = Store(cache / "paper"), {}
    if not report_only:
        if data is None:
            fetch_dataset(units[0].dataset_id)  # without a network, say so once and not for every unit
        failed = run(units, store, data, cache, workers=workers)
    for unit, why in failed.items():
        print(f"not measured: {unit.title}: {why}", file=sys.stderr)
    return report(units, store, out, page, scale) and not failed


def report(units: Sequence[Unit], store: Store, out: Path, page: Path, scale: Scale) -> bool:
    """Write results, tables, figures and the page from whatever units are finished; False if none is."""
    results = Results.of(store.rows(units))
    if not results.protocols:
        print("Nothing is measured yet: no tables, no figures, no page.", file=sys.stderr)
        return False
    results.write(out)
    tables = all_tables(results)
    for table in tables:
        table.write(out / "tables")
    figures = draw_all(results, out / "figures")
    write_index(out, results, scale)
    write_page(page, out, results, tables, figures, scale, store.coverage(units))
    print(f"{len(results.frame):,} rows in {out}, the page in {page}", file=sys.stderr)
    return True
