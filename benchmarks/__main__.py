"""``python -m benchmarks --data DIR`` runs the benchmarks and writes their results and a page.

``python -m benchmarks paper``, ``peers`` and ``quick`` run the commands ``anchorline bench paper`` and so on.
"""

import argparse
import functools
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from anchorline.errors import TableFileError
from benchmarks import (
    attack,
    batch,
    changes,
    contents,
    engine,
    facts,
    few_queries,
    fit,
    laws,
    literals,
    pairs,
    proofs,
    realism,
    relevance,
    seeds,
    speed,
    studio,
    tables,
    tree_support,
    trees,
    truth,
    verdicts,
)
from benchmarks.datasets import PUBLISHED, require_any
from benchmarks.report import read_rows, write_json, write_page
from benchmarks.tasks import CACHE, SYNTHETIC, Benchmark, load_benchmarks

Rows = Iterable[dict[str, Any]]
BY_TABLE = ("realism", "attack", "laws")  # sections that can be measured table by table


def sections(
    benchmarks: Callable[[], Sequence[Benchmark]],
    time_limit: float,
    data: Path,
    cache: Path = CACHE,
    tables_of: Collection[str] = (),
) -> dict[str, Callable[[], Rows]]:
    """Return, by name, a function per section that yields the section's rows as they are measured.

    ``benchmarks`` trains the networks, and is called only by the sections that need them. ``tables_of`` are the
    tables of the sections in `BY_TABLE`; all of them if it is empty.
    """

    def grid(settings: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for setting in settings:
            yield from engine.proofs(benchmarks(), setting, time_limit)

    def real() -> list[Benchmark]:
        return [benchmark for benchmark in benchmarks() if benchmark.name not in SYNTHETIC]

    return {
        "proven": lambda: grid([engine.PAPER]),
        "race_lime": lambda: engine.race_lime(benchmarks()),
        "memory": lambda: [engine.memory()],
        "import_time": lambda: [engine.import_time()],
        "batch": batch.speed,
        "batch_memory": batch.memory,
        "frontier_cost": lambda: relevance.frontier_cost(benchmarks()),
        "relevance": lambda: relevance.compare_relevance(real()),
        "tables": lambda: tables.compare_on_tables(data),
        "tree_support": tree_support.tree_support,
        "tree_speed": trees.tree_speed,
        "tree_quality": lambda: trees.tree_quality(data),
        "tree_noise": lambda: trees.tree_noise(data),
        "literals": lambda: literals.compare_literals(data),
        "literals_few_columns": lambda: literals.compare_on_few_columns(data),
        "changes": lambda: changes.compare_changes(data),
        "changes_alibi": lambda: changes.compare_with_alibi(data),
        "pairs": lambda: pairs.compare_pairs(data, cache),
        "literals_proofs": lambda: literals.time_proofs(data),
        "few_queries": lambda: few_queries.few_queries(data, cache),
        "few_queries_slow_peers": lambda: few_queries.few_queries_slow_peers(data, cache),
        "realism": lambda: realism.realism(data, tables_of),
        "rules": realism.rules,
        "attack": lambda: attack.attack(data, tables_of),
        "laws": lambda: laws.laws(data, tables_of),
        "law_cost": laws.law_cost,
        "proofs": lambda: proofs.proofs(data),
        "proofs_wide": proofs.wide_proofs,
        "truth": lambda: truth.truth(data),
        "facts": lambda: facts.facts(data),
        "fit": lambda: fit.fit(data),
        "seeds": lambda: seeds.seeds(data),
        "text": contents.compare_text,
        "images": contents.compare_images,
        "verdicts_by_model": lambda: verdicts.verdicts_by_model(data),
        "verdicts": lambda: verdicts.verdicts(data),
        "studio": lambda: studio.measure(data),
        "nearby": lambda: grid(engine.NEARBY),
        "beyond": lambda: grid(engine.BEYOND),
        "speed": lambda: speed.speed(data),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the chosen sections, and print and store each row as soon as it is measured."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] in (["paper"], ["peers"], ["quick"]):
        from anchorline.cli.app import run

        return run(["bench", *arguments])
    names = list(sections(list, 0.0, Path()))
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description=main.__doc__,
        epilog="For the paper's experiments, peers and the main ratios: anchorline bench paper | peers | quick.",
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with files named <id>-<name>.csv.gz")
    parser.add_argument("--cache", type=Path, default=CACHE, help="folder of the trained models (%(default)s)")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"), help="(%(default)s)")
    parser.add_argument("--only", nargs="*", choices=names, metavar="SECTION", help=f"some of: {', '.join(names)}")
    parser.add_argument(
        "--tables",
        nargs="*",
        default=(),
        choices=[row.name for row in PUBLISHED],
        metavar="TABLE",
        help=f"measure these tables only, and keep the recorded rows of others; of {', '.join(BY_TABLE)}",
    )
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per task (%(default)s)")
    chosen = parser.parse_args(arguments)
    if chosen.tables and not (chosen.only and {*chosen.only} <= {*BY_TABLE}):
        parser.error(f"--tables needs sections that are measured table by table: --only {' '.join(BY_TABLE)}.")
    try:
        require_any(chosen.data, [row.id for row in PUBLISHED])
    except TableFileError as error:
        parser.error(str(error))

    @functools.cache
    def benchmarks() -> Sequence[Benchmark]:
        return sorted(load_benchmarks(chosen.data, cache=chosen.cache), key=lambda b: b.dimension)

    section_of = sections(benchmarks, chosen.time_limit, chosen.data, chosen.cache, chosen.tables)
    for name in chosen.only or section_of:
        kept = (
            [row for row in read_rows(chosen.out, name) if row["table"] not in chosen.tables]
            if chosen.tables
            else []
        )
        rows = []
        print(f"== {name}", flush=True)
        for row in section_of[name]():
            rows.append(row)
            print("  ", ", ".join(f"{key} {value}" for key, value in row.items()), flush=True)
            write_json(chosen.out, name, _in_order([*kept, *rows]) if kept else rows)
            write_page(chosen.out)
    return 0


def _in_order(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows about tables in the order of the paper."""
    names = [row.name for row in PUBLISHED]
    return sorted(rows, key=lambda row: names.index(row["table"]))


if __name__ == "__main__":
    raise SystemExit(main())
