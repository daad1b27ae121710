"""A run of experiments that is interrupted or killed leaves no worker process behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "bench_parts.py"


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_no_worker_behind(tmp_path, how):
    run = subprocess.Popen(
        [sys.executable, str(SCRIPT), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        start_new_session=True,
        preexec_fn=interruptible,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert within(180, lambda: len(list(tmp_path.glob("begun-*"))) == 2)
        run.send_signal(how)
        run.wait(timeout=60)
        assert within(60, lambda: not living(run.pid))
    finally:
        for pid in living(run.pid):
            os.kill(pid, signal.SIGKILL)


def interruptible():
    """A shell starts what it runs in the background deaf to SIGINT, and children inherit that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def within(seconds, condition):
    ends = time.time() + seconds
    while time.time() < ends and not condition():
        time.sleep(0.2)
    return condition()


def living(session):
    """Processes of a session that are no zombies."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                state, _, _, of = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            except OSError:  # it has just ended
                continue
            if int(of) == session and state != "Z":
                found.append(int(folder.name))
    return found
