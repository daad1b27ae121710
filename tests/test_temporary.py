"""What is made for the moment goes, and so does what killed programs left behind."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from slalom import temporary
from slalom.files import write_whole
from slalom.temporary import temporary_file, temporary_folder


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    temporary._clear_files.cache_clear()
    temporary._clear_folders.cache_clear()


def killed(script: str, place: Path) -> None:
    """A program that dies in the middle, an hour ago."""
    line = [sys.executable, "-c", script + "\nos.kill(os.getpid(), signal.SIGKILL)"]
    environment = {**os.environ, "TMPDIR": str(place)}
    subprocess.run(line, env=environment, timeout=60, check=False)
    for path in place.iterdir():
        os.utime(path, (1, 1))


OPEN_FOLDER = (
    "import os, signal\nfrom slalom.temporary import *\nkept = temporary_folder()\nkept.__enter__()"
)
OPEN_FILE = (
    "import os, signal\nfrom pathlib import Path\nfrom slalom.temporary import *\n"
    "kept = temporary_file(Path(os.environ['TMPDIR']))\nkept.__enter__()"
)


def test_folders_go_and_so_do_those_of_killed_programs(tmp_path: Path) -> None:
    killed(OPEN_FOLDER, tmp_path)
    (left,) = tmp_path.iterdir()
    with temporary_folder() as folder:
        assert not left.exists()
        assert folder.is_dir()
    assert not list(tmp_path.iterdir())


def test_files_go_and_so_do_those_of_killed_programs(tmp_path: Path) -> None:
    killed(OPEN_FILE, tmp_path)
    (left,) = tmp_path.iterdir()
    write_whole(tmp_path / "x.json", "{}")
    assert not left.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["x.json"]


def test_what_is_in_use_or_of_somebody_else_stays(tmp_path: Path) -> None:
    (tmp_path / "slalom-notes").mkdir()
    (tmp_path / "slalom.part").touch()
    with temporary_folder() as folder, temporary_file(tmp_path) as (_, file):
        for path in (folder, file, tmp_path / "slalom-notes", tmp_path / "slalom.part"):
            os.utime(path, (1, 1))
        temporary._clear_files.cache_clear()
        temporary._clear_folders.cache_clear()
        with temporary_folder(), temporary_file(tmp_path):
            assert folder.is_dir()
            assert file.is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"slalom-notes", "slalom.part"}


def test_a_forked_process_leaves_its_parents_folder(tmp_path: Path) -> None:
    script = (
        "import os, sys\nfrom slalom.temporary import *\n"
        "with temporary_folder() as folder:\n"
        "    child = os.fork()\n"
        "    if not child: sys.exit()\n"
        "    os.waitpid(child, 0)\n"
        "    print(folder.is_dir())"
    )
    line, environment = [sys.executable, "-c", script], {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        line, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
    assert not list(tmp_path.iterdir())
