"""Runs experiments in parts: sizes, folders, device, and the parts that are already done.

An experiment consists of named parts, each of which gives a JSON record; several experiments may
share a part, and a part may depend on others (the model it explains). Finished parts are appended
to one file, a line each, so that an interrupted run resumes where it stopped, and several processes
can work at once. A part that fails is reported and left out; the others go on. What is kept for
good is compressed (`pack`); lines of the plain file beside it are newer.
"""

import json
import lzma
import multiprocessing
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from experiments.origin import Origin, origin
from experiments.scale import SMALL, Scale
from slalom.errors import SlalomError, SlalomWarning, UnknownNameError
from slalom.files import write_whole

Record = dict[str, Any]
FILE, PACKED = "parts.jsonl", "parts.jsonl.xz"


@dataclass(frozen=True)
class Part:
    """One piece of work; parts with a lower `rank` start first."""

    work: Callable[["Bench"], Record]  # picklable: a function of a module, or a partial of one
    rank: float = 0.0
    after: tuple[str, ...] = ()  # parts that must be finished before it, if they are run at all


@dataclass(frozen=True)
class Bench:
    scale: Scale = SMALL
    data: Path | None = None
    out: Path = Path("results")
    device: str | None = None
    seed: int = 0
    jobs: int = 1
    deadline: float = field(default=float("inf"))  # time.time() at which running parts are stopped
    models: Path | None = None  # where trained models are kept; None: beside the results

    @property
    def cache(self) -> Path:
        """Trained models of this scale and seed."""
        return (self.models or self.out / "models") / f"{self.scale.name}-{self.seed}"

    def key(self, part: str) -> str:
        return f"{self.scale.name}/{self.seed}/{part}"

    def found(self, parts: Iterable[str]) -> dict[str, Record]:
        """The records of those parts that are stored."""
        done = self.kept()
        return {name: done[self.key(name)] for name in parts if self.key(name) in done}

    def run(self, parts: Mapping[str, Part]) -> dict[str, Record]:
        """Run and store the parts that are missing; the records of all but those that failed."""
        done = self.kept()
        ranked = sorted(parts.items(), key=lambda item: item[1].rank)
        left = {name: part for name, part in ranked if self.key(name) not in done}
        if left and time.time() > self.deadline:
            print(f"no time was left for {len(left)} of {len(parts)} parts", flush=True)
            left = {}
        for n_done, (name, made) in enumerate(_made(self, left), start=1):
            where = f"{n_done} of {len(left)} parts: {name}"
            if isinstance(made, str):
                print(f"{where} failed: {made}", flush=True)
            else:
                self.keep(name, made)
                print(f"{where}, {made['seconds']:.1f} s", flush=True)
        return self.found(parts)

    def kept(self) -> dict[str, Record]:
        return {key: line["record"] for key, line in self._lines().items()}

    def origins(self, parts: Iterable[str]) -> list[Origin]:
        """The distinct origins of the stored ones of these parts."""
        lines = self._lines()
        found = [lines[key]["origin"] for name in parts if (key := self.key(name)) in lines]
        distinct = {json.dumps(origin, sort_keys=True): origin for origin in found}
        return [Origin(**origin) for origin in distinct.values()]

    def keep(self, part: str, record: Record) -> None:
        self.out.mkdir(parents=True, exist_ok=True)
        told = asdict(origin(self.device))
        line = json.dumps({"part": self.key(part), "origin": told, "record": record})
        with (self.out / FILE).open("a", encoding="utf-8") as file:
            file.write(line + "\n")

    def pack(self) -> int:
        """All stored parts, the last line of each, into the compressed file; how many."""
        lines = self._lines()
        text = "".join(json.dumps(line) + "\n" for line in lines.values())
        write_whole(self.out / PACKED, lzma.compress(text.encode(), preset=9))
        (self.out / FILE).unlink(missing_ok=True)
        return len(lines)

    def _lines(self) -> dict[str, Record]:
        found = {}
        for line in _text(self.out).splitlines():
            try:
                stored = json.loads(line)
            except ValueError:  # the last line of a run that was killed
                continue
            found[stored["part"]] = stored
        return found


def _text(folder: Path) -> str:
    """The compressed lines, if any, then the plain ones."""
    packed, plain = folder / PACKED, folder / FILE
    old = lzma.decompress(packed.read_bytes()).decode() if packed.exists() else ""
    return old + (plain.read_text(encoding="utf-8") if plain.exists() else "")


SECONDS_BETWEEN_STOPS = 3.0  # of work that is to end


class _TimeUp(BaseException):
    """Not an Exception: code that catches the errors of single texts must not catch it."""


def named(name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise UnknownNameError("experiment", name, known)
    return known[name]


Made = Iterator[tuple[str, Record | str]]  # a part's name; its record, or what went wrong


def _made(bench: Bench, parts: Mapping[str, Part]) -> Made:
    """Results as they come; a part that depends on a failed one fails too."""
    run = _in_this_process if bench.jobs == 1 or len(parts) < 2 else _in_workers
    failed: set[str] = set()
    for name, made in run(bench, parts, failed):
        if isinstance(made, str):
            failed.add(name)
        yield name, made


def _in_this_process(bench: Bench, parts: Mapping[str, Part], failed: set[str]) -> Made:
    for name, part in parts.items():
        lacking = failed.intersection(part.after)
        yield name, _lacks(lacking) if lacking else _timed(part, bench)


def _in_workers(bench: Bench, parts: Mapping[str, Part], failed: set[str]) -> Made:
    spawn = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    alone = replace(bench, jobs=1)
    waiting, running = dict(parts), {}
    arguments = (bench.jobs, os.getpid())
    pool = ProcessPoolExecutor(bench.jobs, spawn, _start_worker, arguments)
    with pool, _terminated_when_interrupted():
        while waiting or running:
            unfinished = {*waiting, *running.values()}
            for name, part in list(waiting.items()):
                if lacking := failed.intersection(part.after):
                    yield name, _lacks(lacking)
                elif not unfinished.intersection(part.after):
                    running[pool.submit(_timed, part, alone)] = name
                else:
                    continue
                del waiting[name]
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name = running.pop(future)
                try:
                    made = future.result()
                except Exception as problem:  # a worker that died takes its part with it
                    made = repr(problem)
                yield name, made


def _lacks(names: set[str]) -> str:
    return f"it needs {', '.join(sorted(names))}, which failed"


def _timed(part: Part, bench: Bench) -> Record | str:
    if time.time() > bench.deadline:
        return "no time was left to begin it"
    start = time.perf_counter()
    try:
        with _stopped_at(bench.deadline), warnings.catch_warnings():
            warnings.simplefilter("ignore", SlalomWarning)  # a table says how poor a fit is
            record = part.work(bench)
    except _TimeUp:
        return "time was up"
    except (SlalomError, FileNotFoundError) as problem:  # what the user can change
        return str(problem)
    except Exception as problem:
        if bench.deadline == float("inf"):
            raise
        return repr(problem)
    return {**record, "seconds": round(time.perf_counter() - start, 2)}


@contextmanager
def _stopped_at(deadline: float) -> Iterator[None]:
    """Raises _TimeUp inside when the deadline passes, and again: a `__del__` would swallow it."""
    if deadline == float("inf"):
        yield
        return

    def stop(*_: object) -> None:
        raise _TimeUp

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, max(0.1, deadline - time.time()), SECONDS_BETWEEN_STOPS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def _terminated_when_interrupted() -> Iterator[None]:
    """On an error or Ctrl-C the workers are terminated: their results would be lost anyway."""
    try:
        yield
    except BaseException:
        for child in multiprocessing.active_children():
            child.terminate()
        raise


def _start_worker(jobs: int, parent: int) -> None:
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    _share_cores(jobs)


def _exit_with_parent(parent: int) -> None:
    """A parent that was killed cannot terminate its workers."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _share_cores(jobs: int) -> None:
    """Processes that each use all cores slow each other down; called before torch is loaded."""
    own = max(1, (os.cpu_count() or 1) // jobs)
    os.environ.setdefault("OMP_NUM_THREADS", str(own))  # torch and the fits read it when they begin
