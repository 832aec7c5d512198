"""``python -m benchmarks.outside --data DIR`` runs benchmarks that others wrote, and writes results and a page.

Each family gets a virtual environment with exactly the packages of its requirement file, below ``build/outside``,
and runs there as a process of its own. What cannot be installed or run is named on the page, with the error.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from anchorline.errors import TableFileError
from benchmarks.datasets import PUBLISHED, require_any
from benchmarks.outside.page import FAMILIES, Family, write_page
from benchmarks.report import write_json

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "outside"


def prepared(family: Family) -> Path:
    """Return the Python of the family's environment, which is made anew if its requirements have changed."""
    folder, requirements = BUILD / family.environment, family.requirements
    python, stamp = folder / "bin" / "python", folder / "requirements.digest"
    digest = hashlib.blake2b(requirements.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text() != digest:
        print(f"   installing {requirements.name}", flush=True)
        venv.create(folder, clear=True, with_pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        run([*pip, "-r", str(requirements)])
        stamp.write_text(digest)
    return python


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Run a command from the root; raise `RuntimeError` with its last line of errors if it fails."""
    finished = subprocess.run(command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True, check=False)
    if finished.returncode:
        lines = [line for line in finished.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line.lower()] or lines or [f"code {finished.returncode}"]
        print(*lines[-20:], sep="\n", file=sys.stderr, flush=True)
        raise RuntimeError(errors[-1].strip()[:200])


def measure(family: Family, data: Path, out: Path, quick: bool) -> None:
    """Measure a family in its environment; if that fails, store the error in place of rows."""
    environment = dict(os.environ) | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment |= {"PYTHONPATH": str(ROOT / "src"), "PYTHONWARNINGS": "ignore", "MPLBACKEND": "agg"}
    (out / f"{family.file}.json").unlink(missing_ok=True)
    try:
        python = prepared(family)
        if family.from_here:
            environment["ANCHORLINE_OUTSIDE"], python = str(python), Path(sys.executable)
        command = [str(python), "-m", f"benchmarks.outside.{family.name}", str(data), str(out), family.file]
        run([*command, *(["--quick"] if quick else [])], environment)
    except RuntimeError as error:
        print(f"   {family.name}: {error}", flush=True)
        if not (out / f"{family.file}.json").exists():
            write_json(out, family.file, [{"error": str(error)}])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the chosen families, and write the page after each."""
    names = list(FAMILIES)
    parser = argparse.ArgumentParser(prog="python -m benchmarks.outside", description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with files named <id>-<name>.csv.gz")
    parser.add_argument("--out", type=Path, help="(benchmarks/results; with --quick, build/outside/results)")
    parser.add_argument("--only", nargs="*", choices=names, metavar="FAMILY", help=f"some of: {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="few tables and rows, in minutes")
    chosen = parser.parse_args(arguments)
    try:
        require_any(chosen.data, [row.id for row in PUBLISHED])
    except TableFileError as error:
        parser.error(str(error))
    out = chosen.out or (BUILD / "results" if chosen.quick else ROOT / "benchmarks" / "results")
    out.mkdir(parents=True, exist_ok=True)
    for name in chosen.only or names:
        print(f"== {name}", flush=True)
        measure(FAMILIES[name], chosen.data.resolve(), out.resolve(), chosen.quick)
        write_page(out)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
