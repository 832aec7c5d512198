"""``anchorline bench paper``: runs the experiments, then writes tables, figures and the page."""

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
    """Repeat the paper's experiments; a run that was stopped continues.

    Returns True if a report was written and no unit failed. Failures are printed; the next run tries them again.
    """
    require(READING | PEERS | SOLVERS)
    scale, cache = QUICK if quick else FULL, cache or CACHE
    if page is None:  # with --out, the page goes to the same folder
        page = out / "paper.md" if out else cache / "paper-quick" / "paper.md" if quick else Path("docs/paper.md")
    out = out or (cache / "paper-quick" if quick else Path("benchmarks/paper"))
    units = list(Plan.from_data(data, scale, PROTOCOLS[protocol or ("paper" if quick else "both")]))
    store, failed = Store(cache / "paper"), {}
    if not report_only:
        if data is None:
            fetch_dataset(units[0].dataset_id)  # without a network, fail once and not in every unit
        failed = run(units, store, data, cache, workers=workers)
    for unit, reason in failed.items():
        print(f"not measured: {unit.title}: {reason}", file=sys.stderr)
    return report(units, store, out, page, scale) and not failed


def report(units: Sequence[Unit], store: Store, out: Path, page: Path, scale: Scale) -> bool:
    """Write results, tables, figures and the page from the finished units; return False if there are none."""
    results = Results.from_rows(store.rows(units))
    if not results.protocols:
        print("Nothing is measured yet, so tables, figures and the page are not written.", file=sys.stderr)
        return False
    results.write(out)
    tables = all_tables(results)
    for table in tables:
        table.write(out / "tables")
    figures = draw_all(results, out / "figures")
    write_index(out, results, scale)
    write_page(page, out, results, tables, figures, scale, store.coverage(units))
    print(f"Wrote {len(results.frame):,} rows to {out} and the page to {page}.", file=sys.stderr)
    return True
