"""How the command ends, whichever sub-command it was."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest


def test_a_full_disk_behind_standard_output_is_one_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from slalom.cli.main import main; main()", "methods"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    told = "slalom: cannot write to standard output: No space left on device\n"
    assert (done.returncode, done.stderr) == (2, told)


def test_the_package_is_the_command() -> None:
    line = [sys.executable, "-m", "slalom", "explain", "--units", "none"]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("slalom: Invalid value for '--units'")


@pytest.mark.parametrize(("encoding", "margin"), [("ascii", "+-"), ("cp1252", "±")])
def test_a_minus_is_written_whatever_the_encoding(encoding: str, margin: str) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONIOENCODING": encoding}
    line = [sys.executable, "-m", "slalom", "explain", "An awful naïve 好 film", "--target", "1"]
    line += ["--method", "linear", "--queries", "12"]
    done = subprocess.run(line, capture_output=True, env=environment, check=True)
    (awful,) = (row for row in done.stdout.decode(encoding).splitlines() if row.startswith("awful"))
    assert " -" in awful
    assert f" {margin}" in awful


def test_an_interrupt_while_the_command_is_imported_leaves_no_traceback(tmp_path: Path) -> None:
    waits = "import time; print('importing', flush=True); time.sleep(10)\n"
    (tmp_path / "click.py").write_text(waits, encoding="utf-8")
    script = f"import signal, sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    script += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # also below nohup
    script += "from slalom.__main__ import main; main()"
    line = [sys.executable, "-c", script, "methods"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "importing\n"
        run.send_signal(signal.SIGINT)
        assert (run.communicate(timeout=60), run.returncode) == (("", ""), -signal.SIGINT)


def test_a_program_that_is_asked_to_end_does_so_as_after_an_interrupt() -> None:
    script = (
        "import os, signal, time\n"
        "from slalom.cli.main import commands, main\n"
        "@commands.command()\n"
        "def wait():\n"
        "    try: os.kill(os.getpid(), signal.SIGTERM); time.sleep(10)\n"
        "    except KeyboardInterrupt: print('kept'); raise\n"
        "main(['wait'])\n"
    )
    line = [sys.executable, "-c", script]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr.strip()) == (143, "kept\n", "")
