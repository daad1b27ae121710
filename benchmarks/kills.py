"""Does a corpus survive kill -9 at any moment? Workers and drivers are killed until enough were.

    python -m benchmarks.kills --kills 100
    python -m benchmarks.kills --kills 20 --engine ray --workers 2
    python -m benchmarks.kills --kills 20 --full-disk

With --full-disk runs are not killed, but may write files of a random size at most (the system's
own limit stands in for a disk): they must end with one sentence and leave nothing half-written.
Every run explains rows whose texts all differ with a classifier that writes down what it is
asked. After each run that came to its end every row must be there once; rows that were asked
more than once are counted: those at work when a process was killed, and no others.
"""

import argparse
import os
import random
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyarrow import parquet

import slalom
from benchmarks.inside import RunFolder

ROOT = Path(__file__).parents[1]
ROWS_PER_FILE = 10
AMONG_ROWS = 0.8  # of the kills come while rows are written; the others at any moment
WORDS = "a fine film with one dull end and no song".split()


class Diary:
    """A bag of words that takes its time and writes down every text it is asked."""

    def __init__(self, path: str, seconds: float) -> None:
        self.path, self.seconds = path, seconds

    def __call__(self, texts: list[str]) -> np.ndarray:
        with Path(self.path).open("a", encoding="utf-8") as file:
            file.write("".join(f"{text}\n" for text in texts))
        time.sleep(self.seconds * len(texts))
        return np.array([[0.0, text.count("fine") - text.count("dull")] for text in texts])


@dataclass(frozen=True)
class Case:
    """One corpus, and who works on it."""

    data: Path
    out: Path
    n_rows: int
    engine: str = "local"
    workers: int = 1
    seconds: float = 0.002  # a text

    @property
    def diary(self) -> Path:
        return self.out.with_suffix(".diary")

    def write(self) -> "Case":
        rng = random.Random(0)
        lines = [f"{' '.join(rng.choices(WORDS, k=5))} w{row},r{row}" for row in range(self.n_rows)]
        self.data.write_text("\n".join(["text,key", *lines]) + "\n", encoding="utf-8")
        return self

    def start(self, room: int = 0) -> "subprocess.Popen[str]":
        """The run in a process of its own; `room` is for the largest file it may write; 0: any."""
        parts = (self.data, self.out, self.engine, self.workers, self.seconds, room)
        path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
        return subprocess.Popen(
            [sys.executable, "-m", "benchmarks.kills", "--child", *map(str, parts)],
            env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def n_done(self) -> int:
        folder = RunFolder(self.out)
        return ROWS_PER_FILE * len(folder.finished()) + folder.rows_at_work()

    def faults(self) -> list[str]:
        """What is wrong with a run that came to its end."""
        found = []
        paths = sorted(self.out.glob("*.parquet"))
        ids = [name for path in paths for name in parquet.read_table(path)["id"].to_pylist()]
        if ids != [f"r{row}" for row in range(self.n_rows)]:
            found.append(f"{len(ids)} rows, {len(set(ids))} different, of {self.n_rows}")
        left = [*(self.out / ".slalom/pieces").iterdir(), *(self.out / ".slalom").glob("*.part")]
        return found + [f"{path} was left behind" for path in left]

    def n_asked_again(self) -> int:
        """Rows whose full text was asked more often than by one explanation.

        That is twice: once more to see whether the classifier repeats itself.
        """
        asked = Counter(self.diary.read_text(encoding="utf-8").splitlines())
        texts = self.data.read_text(encoding="utf-8").splitlines()[1:]
        return sum(asked[line.rpartition(",")[0]] > 2 for line in texts)


def child(data: str, out: str, engine: str, workers: str, seconds: str, room: str) -> None:
    if int(room):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(room), resource.RLIM_INFINITY))
    written = "/dev/null" if int(room) else str(Path(out).with_suffix(".diary"))
    diary = Diary(written, float(seconds))  # which would be full, too
    asked = slalom.FunctionClassifier(diary, ["bad", "good"], gives="logits", name="diary")
    try:
        slalom.corpus.explain_dataset(
            asked, data, out, method="leave-one-out", id_column="key", engine=engine,
            workers=int(workers), rows_per_file=ROWS_PER_FILE,
        )  # fmt: skip
    except slalom.SlalomError as problem:
        sys.exit(f"error: {problem}")


def workers_of(driver: int) -> list[int]:
    """Processes of model actors below a driver, which Ray names after their class."""
    parents: dict[int, int] = {}
    commands: dict[int, bytes] = {}
    for path in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(path.name)] = int((path / "stat").read_text().rpartition(")")[2].split()[1])
            commands[int(path.name)] = (path / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended meanwhile
    found = []
    for number, command in commands.items():
        above = number
        while above in parents and above != driver:
            above = parents[above]
        if above == driver and b"ShardActor" in command:
            found.append(number)
    return found


def kill_at_random(case: Case, rng: random.Random, most_seconds: float) -> int:
    """Run to the end or to a random moment; how many were killed."""
    process = case.start()
    n_killed, before = 0, case.n_done()
    while True:
        if rng.random() < AMONG_ROWS:
            while process.poll() is None and case.n_done() == before:
                time.sleep(0.01)
        try:
            process.wait(rng.uniform(0, most_seconds))
        except subprocess.TimeoutExpired:
            workers = workers_of(process.pid)
            victim = rng.choice([process.pid, *workers, *workers])
            os.kill(victim, signal.SIGKILL)
            n_killed, before = n_killed + 1, case.n_done()
            if victim != process.pid:
                continue
        _, errors = process.communicate()
        if process.returncode not in (0, -signal.SIGKILL):
            raise SystemExit(f"a run ended by itself:\n{errors}")
        return n_killed


def fill_disk_at_random(case: Case, rng: random.Random) -> list[str]:
    """One run with little room: what is wrong with how it ended."""
    process = case.start(room=rng.choice((1, 500, 4000, rng.randint(1, 20_000))))
    _, errors = process.communicate()
    if process.returncode == 0:
        return []
    found = [] if errors.startswith("error: cannot write") else [errors]
    left = [*case.out.rglob("*.part")] if case.out.exists() else []
    return found + [f"{path} was left behind" for path in left]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--engine", choices=["local", "ray"], default="local")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--rows", type=int, default=100)
    parser.add_argument("--most-seconds", type=float, default=1.0, help="before a kill")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--full-disk", action="store_true")
    parser.add_argument("--child", nargs=6, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(*options.child)
        return
    rng, n_killed, n_runs, again, faults = random.Random(options.seed), 0, 0, 0, []
    begin = time.monotonic()
    while n_killed < options.kills:
        with tempfile.TemporaryDirectory() as name:
            data, out = Path(name) / "rows.csv", Path(name) / "out"
            workers = options.workers if options.engine == "ray" else 1
            case = Case(data, out, options.rows, options.engine, workers, 0.005).write()
            while not (out / "run.json").exists() or case.n_done() < case.n_rows:
                if options.full_disk and n_killed < options.kills:
                    faults += fill_disk_at_random(case, rng)
                    n_killed += 1
                elif options.full_disk:
                    case.start().communicate()
                else:
                    n_killed += kill_at_random(case, rng, options.most_seconds)
            case.start().communicate()  # also where the last kill came after the last row
            n_runs, again = n_runs + 1, again + case.n_asked_again()
            faults += case.faults()
            print(f"{n_killed} kills, {n_runs} runs, {len(faults)} faults", flush=True)
    print(
        f"{options.engine}: {n_killed} kills in {n_runs} runs of {options.rows} rows, "
        f"{time.monotonic() - begin:.0f} s: {len(faults)} faults, "
        f"{again / n_killed:.2f} rows asked again per kill"
    )
    if faults:
        raise SystemExit("\n".join(faults))


if __name__ == "__main__":
    main()
