"""Every benchmark starts with the command its docstring names."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = sorted(
    path.stem
    for path in (Path(__file__).parents[1] / "benchmarks").glob("*.py")
    if "__main__" in path.read_text(encoding="utf-8")  # the others are parts of these
)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_it_starts_and_says_how_to_use_it(name: str) -> None:
    root = Path(__file__).parents[1]
    source = (root / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
    assert f"python -m benchmarks.{name}" in source
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}", "--help"],
        cwd=root, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout.lower()
