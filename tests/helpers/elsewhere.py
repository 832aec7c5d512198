"""The same work in a new process, with other numbers of threads and other hashes."""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import importlib.util, json, sys
spec = importlib.util.spec_from_file_location("elsewhere", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
print(json.dumps(module.all_json()))
"""
other_processes = pytest.mark.parametrize(("threads", "hash_seed"), [(1, "0"), (2, "4711")])


def all_json_of(file, threads, hash_seed):
    """Return what ``all_json()`` of a test file returns in a new process."""
    other = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(threads))
    other |= {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, file],
        env=os.environ | other,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
