"""The tests on every Python that is supported, with the oldest and with the newest versions.

    python -m benchmarks.matrix            everything, on 3.11, 3.12, 3.13, the oldest, the newest
    python -m benchmarks.matrix --quick    what needs no model of Hugging Face, in a few minutes

Pythons are those of pyenv, or of the PATH. Each run has an environment of its own below
.venvs/matrix, made once for a pyproject.toml and constraints.txt. Versions are those of
constraints.txt; the oldest are the lower bounds of pyproject.toml (by uv), on the oldest Python;
the newest are what somebody gets who installs today, on the newest Python.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
HOME = ROOT / ".venvs" / "matrix"
VERSIONS = ("3.11", "3.12", "3.13")
VERSIONS_OF = {"oldest": ["--resolution", "lowest-direct"], "newest": []}
UV = "uv==0.13.8"
QUICK_EXTRAS = "corpus,frames,plot,trees,web,words"
QUICK_TOOLS = ("pytest", "hypothesis", "scikit-learn")
QUICK_TESTS = (
    "tests/test_explanation.py", "tests/test_broken_files.py", "tests/test_fuzz.py",
    "tests/test_tables.py", "tests/test_document.py", "tests/test_errors.py",
    "tests/test_temporary.py", "tests/test_records.py", "tests/samplers",
    "tests/surrogates/test_linear.py", "tests/surrogates/test_quality.py",
    "tests/classifiers/text/test_units.py", "tests/metrics/test_counterfactual.py", "tests/views",
    "tests/web/test_guard.py",
)  # fmt: skip


@dataclass(frozen=True)
class Run:
    """One Python with one choice of versions."""

    version: str
    which: str = ""  # "oldest" or "newest"; else the constraints'
    quick: bool = False

    @property
    def name(self) -> str:
        return "-".join(filter(None, (self.version, self.which, "quick" * self.quick)))

    @property
    def python(self) -> Path:
        return HOME / self.name / "bin" / "python"

    def make(self) -> None:
        """The environment, unless it is there for the same files."""
        files = [ROOT / "pyproject.toml", ROOT / "constraints.txt", Path(__file__)]
        stamp = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
        done = HOME / self.name / "made-for"
        if done.exists() and done.read_text(encoding="utf-8") == stamp:
            return
        shutil.rmtree(HOME / self.name, ignore_errors=True)
        subprocess.run([interpreter(self.version), "-m", "venv", HOME / self.name], check=True)
        wanted = [f"{ROOT}[{QUICK_EXTRAS}]", *_tools()] if self.quick else [f"{ROOT}[all]"]
        groups = [] if self.quick else ["--group", "dev"]
        how = VERSIONS_OF.get(self.which, ["-c", ROOT / "constraints.txt"])
        call([self.python, "-m", "pip", "install", "-qq", UV])
        line = [self.python, "-m", "uv", "pip", "install", "-q", "--python", self.python]
        call([*line, *how, *wanted, *groups])
        done.write_text(stamp, encoding="utf-8")

    def test(self, tests: list[str], jobs: int) -> int:
        chosen = tests or (QUICK_TESTS if self.quick else ("tests",))
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
        line = [self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *chosen]
        if not self.quick and jobs > 1:
            line += ["-n", str(jobs), "--dist", "loadfile"]
        if self.which:  # what other versions warn of is no fault
            line += ["-o", "filterwarnings=default"]
        return subprocess.run(line, cwd=ROOT, env=environment, check=False).returncode


def _tools() -> list[str]:
    """What the quick tests need of the groups for development, with the bounds that stand there."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    every = {one for group in groups.values() for one in group if isinstance(one, str)}
    return sorted(one for one in every if one.partition(">")[0] in QUICK_TOOLS)


def interpreter(version: str) -> str:
    """The newest of this version that pyenv has, else the one of the PATH."""
    own = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found = sorted(own.glob(f"{version}.*/bin/python"), key=lambda path: len(str(path)))
    program = str(found[-1]) if found else shutil.which(f"python{version}")
    if program is None:
        sys.exit(f"there is no Python {version}: install it with  pyenv install {version}")
    return program


def call(line: list[object]) -> None:
    if subprocess.run([str(part) for part in line], cwd=ROOT, check=False).returncode:
        sys.exit(f"failed: {' '.join(map(str, line))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("tests", nargs="*", help="files or folders; default: all of them")
    parser.add_argument("--jobs", type=int, default=4, help="processes; default: 4")
    parser.add_argument("--only", help="3.11, 3.12, 3.13, oldest or newest; default: all")
    given = parser.parse_args()
    runs = [Run(version, quick=given.quick) for version in VERSIONS]
    runs.append(Run(VERSIONS[0], "oldest", given.quick))
    runs.append(Run(VERSIONS[-1], "newest", given.quick))
    wanted = [run for run in runs if given.only in (None, run.which or run.version)]
    failed = []
    for run in wanted:
        run.make()
        print(f"{run.name}:", flush=True)
        if run.test(given.tests, given.jobs):
            failed.append(run.name)
    print(
        f"{len(wanted) - len(failed)} of {len(wanted)} passed"
        + "".join(f", not {n}" for n in failed)
    )
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
