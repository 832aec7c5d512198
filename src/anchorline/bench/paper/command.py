"""``python -m anchorline.bench paper``: run the experiments, then write tables, figures and the page."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from anchorline.bench.paper.figures import draw_all
from anchorline.bench.paper.page import write_index, write_page
from anchorline.bench.paper.protocol import FULL, QUICK, Plan, Scale, Unit
from anchorline.bench.paper.results import Results
from anchorline.bench.paper.runner import Store, run
from anchorline.bench.paper.tables import all_tables
from anchorline.bench.tasks import CACHE, Protocol
from anchorline.errors import AnchorlineError

PROTOCOLS: dict[str, tuple[Protocol, ...]] = {"paper": ("paper",), "code": ("code",), "both": ("paper", "code")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Repeat the paper's experiments; a run that was stopped goes on where it was.

    Returns 0 if every unit was measured, 1 if some failed (they are told, and tried again next time), 2
    where nothing can be measured.
    """
    chosen = _parser().parse_args(arguments)
    scale = QUICK if chosen.quick else FULL
    out = chosen.out or (chosen.cache / "paper-quick" if chosen.quick else Path("benchmarks/paper"))
    page = chosen.page or (out / "paper.md" if chosen.quick else Path("docs/paper.md"))
    try:
        protocols = PROTOCOLS[chosen.protocol or ("paper" if chosen.quick else "both")]
        units = list(Plan.of(chosen.data, scale, protocols))
    except AnchorlineError as error:
        print(f"anchorline: {error}", file=sys.stderr)
        return 2
    store = Store(chosen.cache / "paper")
    failed = {} if chosen.report_only else run(units, store, chosen.data, chosen.cache, workers=chosen.workers)
    report(units, store, out, page, scale)
    for unit, why in failed.items():
        print(f"not measured: {unit.title}: {why}", file=sys.stderr)
    return 1 if failed else 0


def report(units: Sequence[Unit], store: Store, out: Path, page: Path, scale: Scale) -> Results:
    """Write results, tables, figures and the page from whatever units are finished."""
    results = Results.of(store.rows(units))
    if not results.protocols:
        print("Nothing is measured yet: no tables, no figures, no page.", file=sys.stderr)
        return results
    results.write(out)
    tables = all_tables(results)
    for table in tables:
        table.write(out / "tables")
    figures = draw_all(results, out / "figures")
    write_index(out, results, scale)
    write_page(page, out, results, tables, figures, scale, store.coverage(units))
    print(f"{len(results.frame):,} rows in {out}, the page in {page}", file=sys.stderr)
    return results


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m anchorline.bench paper", description=main.__doc__)
    parser.add_argument(
        "--data", type=Path, help="directory of <id>-<name>.csv.gz files; fetched from OpenML if left out"
    )
    parser.add_argument("--protocol", choices=PROTOCOLS, help="both, or with --quick the paper's")
    parser.add_argument("--quick", action="store_true", help="the whole shape in minutes: fewer sets and draws")
    parser.add_argument("--out", type=Path, help="benchmarks/paper, or with --quick a folder in the cache")
    parser.add_argument("--page", type=Path, help="docs/paper.md, or with --quick a file in --out")
    parser.add_argument("--cache", type=Path, default=CACHE, help="models and finished units (%(default)s)")
    parser.add_argument("--workers", type=int, default=2, help="processes (%(default)s)")
    parser.add_argument("--report-only", action="store_true", help="measure nothing, write what is there")
    return parser
