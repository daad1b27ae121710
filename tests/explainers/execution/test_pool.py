"""Worker processes: they answer and ask, die and end, and take up work from scripts of any form."""

import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from slalom.errors import SlalomError
from slalom.explainers.execution import pool
from slalom.explainers.execution.pool import Pool, WorkerDiedError


@pytest.fixture(scope="module")
def two() -> Pool:
    return Pool(2)


def nothing(content: Any) -> Any:
    raise AssertionError("nobody asks")


def _pid_of(number: int, ask: Any) -> int:
    time.sleep(0.02)
    return os.getpid()


def _asks(number: int, ask: Any) -> Any:
    return [ask(number), ask(number + 1)]


def _fails(kind: Any, ask: Any) -> None:
    raise kind


def _dies(_: int, ask: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class OddError(SlalomError):
    def __init__(self, what: str, number: int) -> None:
        super().__init__(f"{what} {number}")


def test_threads_share_one_set_of_workers(two: Pool) -> None:
    with ThreadPoolExecutor(4) as threads:
        futures = list(threads.map(lambda n: two.submit(_pid_of, n, nothing), range(24)))
    pids = {future.result() for future in futures}
    assert len(pids) == 2
    assert os.getpid() not in pids


def test_what_a_worker_asks_is_answered_by_who_gave_the_task(two: Pool) -> None:
    futures = [two.submit(_asks, n, lambda n: 10 * n) for n in range(3)]
    assert [future.result() for future in futures] == [[0, 10], [10, 20], [20, 30]]


def test_errors_come_back_as_they_are_or_as_what_they_say(two: Pool) -> None:
    with pytest.raises(ValueError, match="odd"):
        two.submit(_fails, ValueError("odd"), nothing).result()
    assert str(pool.portable(OddError("number", 7))) == "number 7"
    failed = two.submit(_asks, 0, lambda n: 1 / n)  # the one who answers fails
    with pytest.raises(ZeroDivisionError):
        failed.result()
    assert two.submit(_asks, 1, lambda n: n).result() == [1, 2]


def test_a_dead_worker_is_an_error_and_the_next_task_gets_another(two: Pool) -> None:
    with pytest.raises(WorkerDiedError, match="too little memory"):
        two.submit(_dies, 0, nothing).result()
    assert two.submit(_pid_of, 0, nothing).result() in two.pids


def test_workers_end_when_nothing_is_to_be_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "IDLE_SECONDS", 0.1)
    short = Pool(1)
    first = short.submit(_pid_of, 0, nothing).result()
    deadline = time.monotonic() + 20
    while short.pids and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not short.pids
    assert short.submit(_pid_of, 0, nothing).result() != first


def test_one_thread_allowed_is_one_core_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert pool.cores() == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert pool.cores() >= 1


def test_a_script_without_a_main_guard_works(tmp_path: Any) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import warnings\n"
        "warnings.simplefilter('ignore')\n"
        "import numpy as np, slalom\n"
        "from slalom.explainers.execution import pool, workers\n"
        "pool.cores = workers.cores = lambda: 2\n"
        "workers.WORTHWHILE = 0\n"
        "def f(texts):\n"
        "    good = np.array([1 / (1 + np.exp(-t.count('good'))) for t in texts])\n"
        "    return np.stack([1 - good, good], axis=1)\n"
        "f = slalom.FunctionClassifier(f, labels=['no', 'yes'])\n"
        "texts = [f'a good film about {n} bad good things' for n in range(20)]\n"
        "print(len(slalom.explain_many(f, texts, n_queries=40, progress=False)))\n"
        "print(len(pool.shared.pids) > 0)\n",
        encoding="utf-8",
    )
    line = [sys.executable, str(script)]
    done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "20\nTrue\n"


START = """
from time import sleep
from slalom.explainers.execution import pool
workers = pool.Pool(2)
def nap(seconds, ask):
    sleep(seconds)
"""
ENDINGS = {
    "work that nobody waits for": (
        "[workers.submit(nap, 60, print) for _ in range(4)]\nwhile len(workers.pids) < 2: sleep(.1)"
    ),
    "work that was cancelled": (
        "begun = [workers.submit(nap, 60, print) for _ in range(9)]\n"
        "sleep(1)\n"
        "for future in begun: future.cancel()"
    ),
    "a worker that was killed": (
        "import os, signal\n"
        "workers.submit(nap, 0, print).result()\n"
        "os.kill(next(iter(workers.pids)), signal.SIGKILL)"
    ),
}


@pytest.mark.parametrize("ending", ENDINGS.values(), ids=ENDINGS)
def test_a_program_ends_quickly_and_quietly(ending: str) -> None:
    line = [sys.executable, "-c", START + ending]
    done = subprocess.run(line, capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("seconds", [0.1, 2.0], ids=["while workers start", "while they work"])
def test_workers_do_not_hear_of_an_interrupt_and_end_with_the_program(seconds: float) -> None:
    begin = (
        "import signal\n"  # a shell's background jobs ignore interrupts from the start
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print(1, flush=True)\n"
        "try: [one.result() for one in [workers.submit(nap, 60, print) for _ in range(4)]]\n"
        "except KeyboardInterrupt: pass"
    )
    line = [sys.executable, "-c", START + begin]
    with subprocess.Popen(
        line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as program:
        assert program.stdout is not None
        program.stdout.readline()
        time.sleep(seconds)
        os.killpg(program.pid, signal.SIGINT)  # as a terminal does
        _, said = program.communicate(timeout=30)
    assert (program.returncode, said) == (0, "")
