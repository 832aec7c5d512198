"""Memory stays flat: 10^6 samples at d = 180 take no more memory than a few thousand, and less than 500 MB."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SCRIPT = """
import json, resource, sys
import anchorline as al

def model(z):
    return 0.5 * z[:, 0] * z[:, 5] + 0.3 * z[:, 17]

def peak_mb():
    try:  # unlike ru_maxrss, not inherited from the process that started this one
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)

x = [1, -1] * 90
peaks = []
for n_samples in (10_000, 1_000_000):
    e = al.explain(model, x, k=5, n_samples=n_samples, **json.loads(sys.argv[1]))
    peaks.append(peak_mb())
print(json.dumps([peaks, e.certificate.n_samples, len(e.contributions), e.certificate.status.name]))
"""


def run(**options):
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, json.dumps(options)],
        env=os.environ | threads,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.skipif(sys.platform == "win32", reason="no resource module")
def test_a_million_samples_under_500_mb():
    (few, many), n_samples, d, status = run()
    assert (n_samples, d, status) == (1_000_000, 180, "OPTIMAL")
    assert many < 500
    assert few > 10  # the measurement works


@pytest.mark.skipif(not pathlib.Path("/proc/self/status").exists(), reason="needs a high-water mark per process")
def test_the_search_takes_no_more_room_for_more_samples():
    (few, many), *_ = run(n_certify=0)
    assert many - few < 20
