"""One thread for fits, the caller's setting after them."""

import os
import subprocess
import sys

SCRIPT = """
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import scipy.linalg
from threadpoolctl import threadpool_info, threadpool_limits

from slalom.surrogates.linalg import one_thread

def n_threads():
    return {lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"}

threadpool_limits(limits=2, user_api="blas")  # also where there is one core
with one_thread():
    pass  # finds the libraries
before, meet = n_threads(), Barrier(3)
assert before == {2}, before

def fit(n_rounds):
    for _ in range(n_rounds):
        with one_thread():
            meet.wait(timeout=30)
            assert n_threads() == {1}, n_threads()

with ThreadPoolExecutor(3) as pool:
    for done in [pool.submit(fit, 20) for _ in range(3)]:
        done.result()
assert n_threads() == before, n_threads()
"""


def test_threads_that_come_and_go_leave_the_setting_as_it_was():
    """In a process that begins with two threads: the suite's own has one, which proves nothing."""
    two = {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        env={**os.environ, **two}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
