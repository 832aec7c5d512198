"""``python -m benchmarks --data DIR`` runs the benchmarks and writes their results and a page.

``python -m benchmarks paper``, ``peers`` and ``quick`` run the commands ``anchorline bench paper`` and so on.
"""

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from anchorline.errors import TableFileError
from benchmarks import (
    changes,
    compare,
    facts,
    fit,
    proofs,
    reasons,
    rules_hold,
    scale,
    seeds,
    speed,
    studio,
    tree_support,
    truth,
)
from benchmarks.datasets import PUBLISHED, require_any
from benchmarks.report import write_json, write_page

Rows = Iterable[dict[str, Any]]


def sections(data: Path) -> dict[str, Callable[[], Rows]]:
    """Return, by name, a function per section that yields the section's rows as they are measured."""
    return {
        "truth": lambda: truth.truth(data),
        "facts": lambda: facts.facts(data),
        "rules_hold": lambda: rules_hold.rules_hold(data),
        "reasons": lambda: reasons.reasons(data),
        "fit": lambda: fit.fit(data),
        "proofs": lambda: proofs.proofs(data),
        "proofs_wide": proofs.wide_proofs,
        "speed": lambda: speed.speed(data),
        "seeds": lambda: seeds.seeds(data),
        "changes": lambda: changes.compare_changes(data),
        "compare": lambda: compare.compare_section(data),
        "tree_support": tree_support.tree_support,
        "studio": lambda: studio.measure(data),
        "growth": scale.growth,
        "engines": scale.engines,
        "import_time": lambda: [speed.import_time()],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the chosen sections, and print and store each row as soon as it is measured."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] in (["paper"], ["peers"], ["quick"]):
        from anchorline.cli.app import run

        return run(["bench", *arguments])
    names = list(sections(Path()))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=main.__doc__,
        epilog="For the paper's experiments, peers and the main ratios: anchorline bench paper | peers | quick.",
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with files named <id>-<name>.csv.gz")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="(%(default)s)")
    parser.add_argument("--only", nargs="*", choices=names, metavar="SECTION", help=f"some of: {', '.join(names)}")
    chosen = parser.parse_args(arguments)
    try:
        require_any(chosen.data, [row.id for row in PUBLISHED])
    except TableFileError as error:
        parser.error(str(error))

    section_of = sections(chosen.data)
    for name in chosen.only or section_of:
        rows = []
        print(f"== {name}", flush=True)
        for row in section_of[name]():
            rows.append(row)
            print("  ", ", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
            write_json(chosen.out, name, rows)
            write_page(chosen.out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
