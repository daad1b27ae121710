"""kill -9 of workers and drivers: the same command finishes the rest, each row once."""

import os
import random
import signal
import time
from collections import Counter

import pytest
from benchmarks.kills import ROWS_PER_FILE, Case, workers_of

from chat_servers import ChatDouble, chat, hang_up, polite
from slalom.corpus.explain import explain_dataset
from slalom.errors import ClassifierError

PATIENCE = 240  # seconds, on a machine with other work to do


@pytest.fixture
def case(tmp_path):
    return Case(tmp_path / "rows.csv", tmp_path / "out", n_rows=60).write()


def wait_until(happened, process):
    deadline = time.monotonic() + PATIENCE
    while not (found := happened()):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline, "nothing happens"
        time.sleep(0.05)
    return found


def kill(process):
    process.kill()
    process.communicate()


def check_finished(case, *, n_killed):
    """Run to the end: every row once, none asked again but those at work when it was killed."""
    process = case.start()
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, errors
    assert case.faults() == []
    assert case.n_asked_again() <= n_killed * ROWS_PER_FILE


def test_a_killed_run_is_finished_by_the_same_command(case):
    rng, n_kills = random.Random(0), 3
    for number in range(n_kills):
        process = case.start()
        before = case.n_done()
        if number < 2:  # in the midst of it; the last at any moment, the start included
            wait_until(lambda begun=before: case.n_done() > begun, process)
        time.sleep(rng.uniform(0, 0.3))
        kill(process)
    check_finished(case, n_killed=n_kills)


def test_a_chat_server_that_is_lost_in_the_midst_of_it_and_found_again(case, tmp_path):
    """What is finished is kept; what was answered is in the cache, and not asked again."""

    def goes(request):
        (hang_up if request.number >= 150 else polite)(request)

    def run():
        asked = chat(double, cache=tmp_path / "cache", retries=0)
        return explain_dataset(
            asked, str(case.data), case.out, "leave-one-out", id_column="key", rows_per_file=10
        )

    with ChatDouble(goes) as double:
        with pytest.raises(ClassifierError, match="cannot be reached"):
            run()
        assert 0 < case.n_done() < case.n_rows
        double.manner = polite
        assert run().n_failed == 0
    assert case.faults() == []
    assert max(Counter(double.answered).values()) == 2  # once more to see whether it repeats itself


def test_a_killed_worker_and_a_killed_driver_on_a_real_cluster(tmp_path):
    case = Case(tmp_path / "rows.csv", tmp_path / "out", 60, "ray", workers=2, seconds=0.02).write()
    process = case.start()
    wait_until(lambda: case.n_done() >= 4, process)
    os.kill(wait_until(lambda: workers_of(process.pid), process)[0], signal.SIGKILL)
    before = case.n_done()
    wait_until(lambda: case.n_done() > before, process)
    kill(process)
    assert case.n_done() < case.n_rows, "it was done before it was killed: nothing was tried"
    check_finished(case, n_killed=3)  # the driver takes two workers with it
