"""Deliberate faults: does the suite notice when a single line is wrong?

    python -m benchmarks.mutants                     the named faults of benchmarks/faults.toml
    python -m benchmarks.mutants --random 100        and so many made by rule, drawn by --seed
    python -m benchmarks.mutants --only NAME …       some of the named ones

Each fault goes into a copy of the package; the tests of its part run against the copy and stop
at the first failure. A fault is killed when a test fails that passes without it, which is tried
first (--sound leaves that out). Survivors are listed, with the reason
where faults.toml gives one (an equivalent change, say); the status is 1 below 90 % killed.
"""

import argparse
import ast
import contextlib
import importlib
import json
import multiprocessing
import os
import random
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("surrogates", "samplers", "metrics", "explainers", "views")
ENOUGH = 0.9  # share of faults that must be killed
SECONDS = 240  # for the tests of one fault; a fault that hangs them is noticed too
HEAVY = ("scipy.stats", "scipy.linalg", "sklearn.metrics", "torch", "transformers")
SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.And: ast.Or,
    ast.Or: ast.And,
}


@dataclass(frozen=True)
class Fault:
    """One line gone wrong: where, what it was, what it is."""

    name: str
    file: str  # inside src/slalom
    before: str
    after: str
    tests: tuple[str, ...]
    reason: str | None = None  # why it may survive

    def apply(self, package: Path) -> None:
        path = package / self.file
        source = path.read_text(encoding="utf-8")
        if source.count(self.before) != 1:
            found = source.count(self.before)
            raise SystemExit(f"{self.name}: {self.before!r} stands {found} times in {self.file}")
        path.write_text(source.replace(self.before, self.after), encoding="utf-8")


def main() -> None:
    given = _options().parse_args()
    faults = [f for f in named_faults() if not given.only or f.name in given.only]
    faults += list(random_faults(given.random, given.seed))
    os.environ["OMP_NUM_THREADS"] = "1"
    _load_heavy_libraries()
    if not given.sound:
        _check_unharmed(faults)
    with ThreadPoolExecutor(given.jobs) as pool:
        killers = []
        for fault, killer in zip(faults, pool.map(killed_by, faults), strict=True):
            print(
                f"{'killed ' if killer else 'SURVIVES'}  {fault.name}  {killer or ''}", flush=True
            )
            killers.append(killer)
    alive = [f for f, killer in zip(faults, killers, strict=True) if not killer]
    unexplained = [f for f in alive if f.reason is None]
    share = 1 - len(unexplained) / max(1, len(faults))
    for fault in alive:
        print(f"\n{fault.name} in {fault.file}: {fault.reason or 'no test notices'}")
        print(f"- {fault.before.strip()}\n+ {fault.after.strip()}")
    print(f"\n{len(faults) - len(alive)} of {len(faults)} faults killed, {share:.0%} accounted for")
    if given.out:
        rows = [{"fault": f.name, "killed_by": k} for f, k in zip(faults, killers, strict=True)]
        Path(given.out).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    sys.exit(share < ENOUGH)


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", nargs="*", default=[], help="names of faults.toml")
    options.add_argument("--random", type=int, default=0, metavar="N")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--sound", action="store_true", help="the tests are known to pass")
    options.add_argument("--out", help="write the rows as JSON")
    return options


def named_faults() -> list[Fault]:
    """Those of faults.toml: a table per fault with file, before, after and perhaps a reason."""
    listed = tomllib.loads((ROOT / "benchmarks" / "faults.toml").read_text(encoding="utf-8"))
    return [
        Fault(
            name,
            entry["file"],
            entry["before"],
            entry["after"],
            tuple(entry.get("tests", tests_of(entry["file"]))),
            entry.get("reason"),
        )
        for name, entry in listed.items()
    ]


def tests_of(file: str) -> tuple[str, ...]:
    """The tests of a file's part, those of the same path first."""
    path = Path(file)
    own = ROOT / "tests" / path.parent / f"test_{path.name}"
    folder = ROOT / "tests" / path.parts[0]
    places = [own, folder, ROOT / "tests" / "test_contracts.py"]
    return tuple(str(place.relative_to(ROOT)) for place in places if place.exists())


def killed_by(fault: Fault) -> str | None:
    """The test that notices, or None."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "slalom"
        shutil.copytree(ROOT / "src" / "slalom", package, ignore=shutil.ignore_patterns("*.pyc"))
        fault.apply(package)
        for tests in fault.tests:
            killer = _first_failure(tests, folder)
            if killer is not None:
                return killer
    return None


def _check_unharmed(faults: list[Fault]) -> None:
    """Tests that fail without any fault would kill them all."""
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder) / "slalom"
        shutil.copytree(ROOT / "src" / "slalom", package, ignore=shutil.ignore_patterns("*.pyc"))
        for tests in dict.fromkeys(tests for fault in faults for tests in fault.tests):
            failure = _first_failure(tests, folder)
            if failure is not None:
                raise SystemExit(f"without any fault: {failure}")


def _first_failure(tests: str, folder: str) -> str | None:
    """In a process of its own that has the heavy libraries already: loading them takes longest."""
    told = Path(folder) / "told"
    child = multiprocessing.get_context("fork").Process(target=_run, args=(tests, folder, told))
    child.start()
    child.join(SECONDS)
    if child.is_alive():
        child.kill()
        child.join()
        return f"{tests} takes more than {SECONDS} s"
    if child.exitcode == 0:
        return None
    rows = told.read_text(encoding="utf-8", errors="replace").splitlines()
    failed = [row for row in rows if row.startswith(("FAILED", "ERROR"))]
    return failed[0][:160] if failed else f"{tests}: status {child.exitcode}"


def _run(tests: str, folder: str, told: Path) -> None:
    """The tests against the package in the folder; the status is pytest's."""
    import pytest

    assert "slalom" not in sys.modules
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = folder  # for processes that tests start
    os.chdir(ROOT)
    with told.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
        line = ["-q", "-x", "--no-header", "--assert=plain", "-p", "no:cacheprovider", tests]
        status = int(pytest.main(line))
        sys.stdout.flush()
        os._exit(status)


def _load_heavy_libraries() -> None:
    for name in HEAVY:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


def random_faults(n: int, seed: int) -> Iterator[Fault]:
    """Operators swapped and numbers doubled on lines drawn at random from the parts."""
    if not n:
        return
    candidates = [fault for part in PARTS for fault in _faults_in(part)]
    yield from random.Random(seed).sample(candidates, min(n, len(candidates)))


def _faults_in(part: str) -> Iterator[Fault]:
    for path in sorted((ROOT / "src" / "slalom" / part).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        file = path.relative_to(ROOT / "src" / "slalom").as_posix()
        lines = source.splitlines()
        for line, before, after in _changes(ast.parse(source), lines):
            if lines.count(lines[line - 1]) == 1 and lines[line - 1].count(before) == 1:
                whole = lines[line - 1]
                wrong = whole.replace(before, after)
                yield Fault(f"{file}:{line}", file, whole, wrong, tests_of(file))


def _changes(tree: ast.Module, lines: list[str]) -> Iterator[tuple[int, str, str]]:
    """(line, text, other text) of every operator and number of one-line expressions."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.expr) or node.lineno != node.end_lineno:
            continue
        code = lines[node.lineno - 1].encode()  # offsets count bytes
        before = code[node.col_offset : node.end_col_offset].decode()
        if isinstance(node, ast.BinOp) and type(node.op) in SWAPS:
            other: ast.expr = ast.BinOp(node.left, SWAPS[type(node.op)](), node.right)
        elif isinstance(node, ast.Compare) and type(node.ops[0]) in SWAPS:
            swapped = [SWAPS[type(node.ops[0])](), *node.ops[1:]]
            other = ast.Compare(node.left, swapped, node.comparators)
        elif isinstance(node, ast.BoolOp):
            other = ast.BoolOp(SWAPS[type(node.op)](), node.values)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float) and node.value:
            other = ast.Constant(2 * node.value)
        else:
            continue
        yield node.lineno, before, ast.unparse(ast.fix_missing_locations(other))


if __name__ == "__main__":
    main()
