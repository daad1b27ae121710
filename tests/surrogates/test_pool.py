"""Many fits on all cores: the same numbers, in order, from scripts of any form."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from slalom.surrogates import pool
from slalom.surrogates.base import Observations
from slalom.surrogates.linear import LinearSurrogate
from slalom.surrogates.pool import fit_all


def observations(n_documents: int) -> list[Observations]:
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 2, (n_documents, 40, 5)).astype(float)
    return [Observations(one, one @ rng.normal(size=5), np.ones(40), np.ones(5)) for one in counts]


def test_workers_say_what_this_process_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone = fit_all(LinearSurrogate(), observations(20))
    monkeypatch.setattr(pool, "_cores", lambda: 2)
    monkeypatch.setattr(pool, "WORTHWHILE", 0)
    together = fit_all(LinearSurrogate(), observations(20))
    for one, other in zip(alone, together, strict=True):
        np.testing.assert_array_equal(one.scores["score"], other.scores["score"])
        assert one.r2 == other.r2


def test_threads_share_one_set_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_cores", lambda: 2)
    with ThreadPoolExecutor(4) as threads:
        pids = {pid for n in threads.map(_worker_pids, range(8)) for pid in n}
    assert len(pids) <= 2
    assert os.getpid() not in pids


def _worker_pids(_: int) -> list[int]:
    return pool.in_workers(_pid_of, range(6))


def _pid_of(_: int) -> int:
    return os.getpid()


def test_one_thread_allowed_is_one_core_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert pool._cores() == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert pool._cores() >= 1


def test_few_small_fits_are_not_worth_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_cores", lambda: 2)
    assert not pool.workers_pay(observations(20))
    large = Observations(np.ones((5000, 100)), np.ones(5000), np.ones(5000), np.ones(100))
    assert pool.workers_pay([large, large])
    assert not pool.workers_pay([large])


def test_a_script_without_a_main_guard_works(tmp_path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import warnings\n"
        "warnings.simplefilter('ignore')\n"
        "import numpy as np, slalom\n"
        "from slalom.surrogates import pool\n"
        "pool._cores, pool.WORTHWHILE = lambda: 2, 0\n"
        "def f(texts):\n"
        "    good = np.array([1 / (1 + np.exp(-t.count('good'))) for t in texts])\n"
        "    return np.stack([1 - good, good], axis=1)\n"
        "texts = [f'a good film about {n} bad good things' for n in range(20)]\n"
        "print(len(slalom.explain_many(f, texts, n_queries=40, progress=False)))\n",
        encoding="utf-8",
    )
    line = [sys.executable, str(script)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "20\n"


WAIT = "from time import sleep\nfrom slalom.surrogates import pool\npool._cores = lambda: 2\n"
ENDINGS = {
    "work that nobody waits for": "[pool.submit(sleep, 60) for _ in range(4)]\nsleep(1)",
    "work that was cancelled": (
        "begun = [pool.submit(sleep, 60) for _ in range(9)]\n"
        "sleep(1)\n"
        "for future in begun: future.cancel()"
    ),
    "a worker that was killed": (
        "import os, signal\n"
        "pool.in_workers(sleep, [0.01] * 4)\n"
        "(pid, *_) = pool._keeper().submit(pool._workers).result()._processes\n"
        "os.kill(pid, signal.SIGKILL)"
    ),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_a_program_ends_quickly_and_quietly(ending: str) -> None:
    line = [sys.executable, "-c", WAIT + ending]
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("seconds", [0.1, 2.0], ids=["while workers start", "while they work"])
def test_workers_do_not_hear_of_an_interrupt_and_end_with_the_program(seconds: float) -> None:
    begin = (
        "import signal\n"  # a shell's background jobs ignore interrupts from the start
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print(1, flush=True)\n"
        "try: pool.in_workers(sleep, [60] * 4)\n"
        "except KeyboardInterrupt: pass"
    )
    line = [sys.executable, "-c", "import loky\n" + WAIT + begin]
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        time.sleep(seconds)
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does
        _, said = program.communicate(timeout=30)
    assert (program.returncode, said) == (0, "")
