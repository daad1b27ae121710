"""How the command ends, whichever sub-command it was."""

import subprocess
import sys
from pathlib import Path


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
