"""Deliberate faults: does the suite notice when a single line is wrong?

    python -m benchmarks.mutants                     the named faults of benchmarks/faults.toml
    python -m benchmarks.mutants --random 150        and so many made by rule, drawn by --seed
    python -m benchmarks.mutants --only NAME …       some of the named ones

Each fault goes into a copy of the package; tests run against the copy and stop at the first
failure: of a named fault those it names, of one made by rule (mutations.py) those that run its
line (covering.py), those of its own part and the quickest first: a quarter of a minute of them,
and for a survivor a minute in all. A fault is killed when a test fails that passes without it,
which is tried first (--sound leaves that out). Survivors are listed, with the reason where
faults.toml or survivors.toml gives one (an equivalent change, say); the status is 1 where fewer
than 90 % of the others are killed. Rows go to --out as they come. What stands there is not tried
again, also where the code has moved since: faults are drawn by what their lines say, not by where
they stand. A survivor is tried again with --again. --watched keeps which tests run which lines;
it holds for one commit.
"""

import argparse
import contextlib
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from itertools import accumulate, chain, zip_longest
from pathlib import Path

from benchmarks.covering import Line, Watch
from benchmarks.mutations import Change, changes_of
from benchmarks.preloaded import load_libraries

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "slalom"
PARTS = ("surrogates", "samplers", "metrics", "explainers", "views")
BESIDE = "contracts classes reference_packages errors explanation tables".split()
WATCHED = (*(f"tests/{part}" for part in PARTS), *(f"tests/test_{name}.py" for name in BESIDE))
ENOUGH = 0.9  # share of faults that must be killed
SECONDS = 400  # of a processor, for the tests of one fault: one that hangs them is noticed too
ENOUGH_TESTS = (15.0, 60.0)  # seconds, as measured while lines were watched: at first, in all
Tests = tuple[str, ...]  # files, folders or single tests, run together
Key = tuple[str, str, str]  # file, line before, line after: what a fault is, wherever it stands
Covered = dict[str, dict[str, float]]  # "file:line" → the tests that run it and their seconds


@dataclass(frozen=True)
class Fault:
    """One line gone wrong: where, what it was, what it is."""

    name: str
    file: str  # inside src/slalom
    before: str
    after: str
    tests: tuple[Tests, ...]
    reason: str | None = None  # why it may survive
    line: int | None = None  # None: `before` stands once in the file

    @property
    def key(self) -> Key:
        return self.file, self.before.strip(), self.after.strip()

    def apply(self, package: Path) -> None:
        path = package / self.file
        source = path.read_text(encoding="utf-8")
        if self.line is not None:
            lines = source.splitlines(keepends=True)
            lines[self.line - 1] = self.after + "\n"
            source = "".join(lines)
        elif source.count(self.before) == 1:
            source = source.replace(self.before, self.after)
        else:
            found = source.count(self.before)
            raise SystemExit(f"{self.name}: {self.before!r} stands {found} times in {self.file}")
        path.write_text(source, encoding="utf-8")


def main() -> None:
    given = _options().parse_args()
    faults = [f for f in named_faults() if not given.only or f.name in given.only]
    faults = random_faults(given.random, given.seed) + ([] if given.only_random else faults)
    killers = _kept(given.out, again=given.again)
    os.environ["OMP_NUM_THREADS"] = "1"
    load_libraries()
    todo = with_tests([f for f in faults if f.key not in killers], given.watched)
    if not given.sound:
        _check_unharmed(todo)
    with ThreadPoolExecutor(given.jobs) as pool:
        running = {pool.submit(killed_by, fault): fault for fault in todo}
        for done in as_completed(running):
            fault, killer = running[done], done.result()
            word = "killed " if killer else "SURVIVES"
            print(f"{word}  {fault.name}  {killer or ''}", flush=True)
            killers[fault.key] = killer
            if given.out:
                _keep(given.out, fault, killer)
    sys.exit(_report(faults, [fault for fault in faults if not killers[fault.key]]) < ENOUGH)


def _report(faults: list[Fault], alive: list[Fault]) -> float:
    """Survivors and why; the share that was killed, of those that a test could notice."""
    for fault in alive:
        print(f"\n{fault.name} in {fault.file}: {fault.reason or 'no test notices'}")
        print(f"- {fault.before.strip()}\n+ {fault.after.strip()}")
    shares = []
    for kind, some in (
        ("named", [f for f in faults if f.line is None]),
        ("made by rule", [f for f in faults if f.line is not None]),
    ):
        dead = sum(fault not in alive for fault in some)
        excused = sum(fault in alive and fault.reason is not None for fault in some)
        shares += [dead / (len(some) - excused)] if len(some) > excused else []
        print(f"\n{kind}: {dead} of {len(some)} faults killed, {excused} survive with a reason")
    print(f"killed of those without a reason to survive: {min(shares, default=1.0):.0%} at least")
    return min(shares, default=1.0)


def _options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--only", nargs="*", default=[], help="names of faults.toml")
    options.add_argument("--random", type=int, default=0, metavar="N")
    options.add_argument("--only-random", action="store_true", help="none of faults.toml")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--sound", action="store_true", help="the tests are known to pass")
    options.add_argument("--out", type=Path, help="a row per line; those there are not done again")
    options.add_argument("--watched", type=Path, help="which tests run which lines: found once")
    options.add_argument("--again", action="store_true", help="but for survivors without a reason")
    return options


def _kept(path: Path | None, *, again: bool) -> dict[Key, str | None]:
    """What was found before; the last row about a fault holds."""
    if path is None or not path.exists():
        return {}
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    killers = {(row["file"], row["before"], row["after"]): row["killed_by"] for row in rows}
    reasons = _survivors()
    return {t: killer for t, killer in killers.items() if killer or t in reasons or not again}


def _keep(path: Path, fault: Fault, killer: str | None) -> None:
    row = dict(zip(("file", "before", "after"), fault.key, strict=True), killed_by=killer)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def named_faults() -> list[Fault]:
    """Those of faults.toml: a table per fault with file, before, after and perhaps a reason."""
    listed = tomllib.loads((ROOT / "benchmarks" / "faults.toml").read_text(encoding="utf-8"))
    return [
        Fault(
            name,
            entry["file"],
            entry["before"],
            entry["after"],
            tuple((tests,) for tests in entry.get("tests", tests_of(entry["file"]))),
            entry.get("reason"),
        )
        for name, entry in listed.items()
    ]


def tests_of(file: str) -> Tests:
    """The tests of a file's part, those of the same path first."""
    path = Path(file)
    own = ROOT / "tests" / path.parent / f"test_{path.name}"
    folder = ROOT / "tests" / path.parts[0]
    places = [own, folder, ROOT / "tests" / "test_contracts.py"]
    return tuple(str(place.relative_to(ROOT)) for place in places if place.exists())


def random_faults(n: int, seed: int) -> list[Fault]:
    """As many of each part, in turn, on lines drawn at random, at most one fault on each.

    Drawn by a hash of what a line says: a change elsewhere draws no other faults.
    """
    reasons, drawn = _survivors(), []
    for number, part in enumerate(PARTS):
        share = n * (number + 1) // len(PARTS) - n * number // len(PARTS)
        drawn.append([replace(f, reason=reasons.get(f.key)) for f in _drawn(part, seed)[:share]])
    return [fault for fault in chain(*zip_longest(*drawn)) if fault is not None]


def _drawn(part: str, seed: int) -> list[Fault]:
    """A fault for each line of a part, in random order."""

    def chance(*said: str) -> str:
        return hashlib.sha256("\0".join((str(seed), *said)).encode()).hexdigest()

    by_line: dict[Line, list[Change]] = {}
    for path in sorted((PACKAGE / part).rglob("*.py")):
        file = path.relative_to(PACKAGE).as_posix()
        for change in changes_of(path.read_text(encoding="utf-8")):
            by_line.setdefault((file, change.line), []).append(change)
    faults = []
    for (file, line), changes in by_line.items():
        change = min(changes, key=lambda change: chance(file, change.before, change.after))
        name = f"{file}:{line} {change.kind}"
        faults.append(Fault(name, file, change.before, change.after, (), None, line))
    apart = {fault.key: fault for fault in faults}  # of lines that say the same, the last
    return sorted(apart.values(), key=lambda fault: chance("which line", *fault.key))


def _survivors() -> dict[Key, str]:
    listed = tomllib.loads((ROOT / "benchmarks" / "survivors.toml").read_text(encoding="utf-8"))
    return {(e["file"], e["before"], e["after"]): e["reason"] for e in listed.get("survivor", [])}


def with_tests(faults: list[Fault], kept: Path | None = None) -> list[Fault]:
    """The same, those made by rule with the tests that run their lines."""
    lines = frozenset((f.file, f.line) for f in faults if f.line is not None)
    if lines and kept and kept.exists():
        found: Covered = json.loads(kept.read_text(encoding="utf-8"))
    else:
        found = _watched(lines) if lines else {}
    if kept:
        kept.write_text(json.dumps(found), encoding="utf-8")
    return [
        fault if fault.line is None else replace(fault, tests=_chosen(fault, found))
        for fault in faults
    ]


def _chosen(fault: Fault, found: Covered) -> tuple[Tests, ...]:
    ran = found.get(f"{fault.file}:{fault.line}") or _of_file(fault.file, found)
    if not ran:
        return tuple((tests,) for tests in tests_of(fault.file))
    own, part = f"test_{Path(fault.file).name}", f"tests/{Path(fault.file).parts[0]}/"
    near = sorted(ran, key=lambda test: (f"/{own}::" not in test, part not in test, ran[test]))
    until = dict(zip(near, accumulate(ran[test] for test in near), strict=True))
    at_first, in_all = ENOUGH_TESTS
    first = [test for test in near if until[test] <= at_first] or near[:1]
    more = [test for test in near if until[test] <= in_all and test not in first]
    return (tuple(first), tuple(more)) if more else (tuple(first),)


def _of_file(file: str, found: Covered) -> dict[str, float]:
    """Tests of a line that runs when its module is imported: those of the file's other lines."""
    lines = [ran for line, ran in found.items() if line.startswith(f"{file}:")]
    return {test: seconds for ran in lines for test, seconds in ran.items()}


def _watched(lines: frozenset[Line]) -> Covered:
    """All tests of the parts, once, without a fault."""
    with _copied() as folder:
        output = Path(folder) / "found"
        watch = Watch(Path(folder) / "slalom", lines)
        child = multiprocessing.get_context("fork").Process(
            target=_run_watched, args=(watch, folder, output)
        )
        child.start()
        child.join()
        if child.exitcode:
            raise SystemExit(f"without any fault the tests end with status {child.exitcode}")
        return json.loads(output.read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def _run_watched(watch: Watch, folder: str, output: Path) -> None:
    status = _pytest(WATCHED, folder, Path(folder) / "output", watch)
    found = {
        f"{file}:{line}": {test: watch.seconds[test] for test in tests}
        for (file, line), tests in watch.found.items()
    }
    output.write_text(json.dumps(found), encoding="utf-8")
    os._exit(status)


def killed_by(fault: Fault) -> str | None:
    """The test that notices, or None."""
    with _copied() as folder:
        fault.apply(Path(folder) / "slalom")
        for tests in fault.tests:
            killer = _first_failure(tests, folder)
            if killer is not None:
                return killer
    return None


def _check_unharmed(faults: list[Fault]) -> None:
    """Tests that fail without any fault would kill them all; those watched have passed."""
    named = [fault for fault in faults if fault.line is None]
    with _copied() as folder:
        for tests in dict.fromkeys(tests for fault in named for tests in fault.tests):
            failure = _first_failure(tests, folder)
            if failure is not None:
                raise SystemExit(f"without any fault: {failure}")


@contextlib.contextmanager
def _copied() -> Iterator[str]:
    """A folder with a copy of the package."""
    with tempfile.TemporaryDirectory() as folder:
        ignored = shutil.ignore_patterns("*.pyc")
        shutil.copytree(PACKAGE, Path(folder) / "slalom", ignore=ignored)
        yield folder


def _first_failure(tests: Tests, folder: str) -> str | None:
    """In a process of its own that has the heavy libraries already: loading them takes longest."""
    output = Path(folder) / "output"
    child = multiprocessing.get_context("fork").Process(target=_run, args=(tests, folder, output))
    child.start()
    child.join()
    if child.exitcode == -signal.SIGXCPU:
        return f"{tests[0]} takes more than {SECONDS} s"
    if child.exitcode == 0:
        return None
    rows = output.read_text(encoding="utf-8", errors="replace").splitlines()
    failed = [row for row in rows if row.startswith(("FAILED", "ERROR"))]
    return failed[0][:160] if failed else f"{tests[0]}: status {child.exitcode}"


def _run(tests: Tests, folder: str, output: Path) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    os._exit(_pytest(tests, folder, output))


def _pytest(tests: Tests, folder: str, output: Path, *plugins: object) -> int:
    """The tests against the package in the folder; the status is pytest's."""
    import pytest

    assert "slalom" not in sys.modules
    sys.path.insert(0, folder)
    os.environ["PYTHONPATH"] = folder  # for processes that tests start
    os.chdir(ROOT)
    with output.open("wb") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
        line = ["-q", "-x", "--no-header", "--assert=plain", "-p", "no:cacheprovider", *tests]
        status = int(pytest.main(line, plugins=list(plugins)))
        sys.stdout.flush()
    return status


if __name__ == "__main__":
    main()
