"""Shards on a Ray cluster: a pool of model actors, fed by Ray Data.

Only the numbers of shards are sent. Every actor loads the model, reads its part of the input and
writes its file, so input and output must be folders that all machines see. Ray restarts an actor
that dies, and the actor continues the shard after its finished pieces.

Ray is started on this machine, without dashboard and usage reports, unless RAY_ADDRESS names a
cluster or the caller has connected to one.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from socket import create_connection, gethostname
from threading import Event, Thread
from time import perf_counter
from typing import Any

from slalom.corpus.plan import Indexed, Shard, index_file
from slalom.corpus.run import Columns, Identity, Make, ShardWork
from slalom.corpus.words import WordSums, added, sums_in
from slalom.corpus.work import Advance
from slalom.errors import FileError, InputError, Setting, SlalomError, needing
from slalom.temporary import temporary_folder

BLOCKS_PER_WORKER = 64  # of shards, handed out one at a time
TERMS_PER_SUM = 16  # tables of words that one task adds up
SECONDS_BETWEEN_LOOKS = 1.0
SECONDS_TO_ANSWER = 10.0  # of a cluster's address
LONGEST_PLACE = 40  # characters: Ray puts sockets into it, whose names may have 107
QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_BACKEND_LOG_LEVEL": "fatal"}


@dataclass(frozen=True)
class RayEngine:
    """A fixed number of actors, each with its own model."""

    n_workers: int
    n_gpus: float = 0.0  # of each worker
    was_there: bool = field(default_factory=lambda: _is_connected())  # a connection, before this
    kept: ExitStack = field(default_factory=ExitStack)  # temporary folders, until closed

    def identity(self, make: Make) -> Identity:
        ray = _connected(self.kept)
        ask = ray.remote(_there).options(**self._share(ray))
        with _errors_unwrapped():
            found: Identity = ray.get(ask.remote(Path.cwd(), _identity, make))
        return found

    def each(self, columns: Columns, paths: Sequence[Path]) -> list[Indexed]:
        if len(paths) < 2:
            return [index_file(path, *columns) for path in paths]
        ray = _connected(self.kept)
        do, here = ray.remote(_there).options(num_cpus=0.5), Path.cwd()
        with _errors_unwrapped():
            return list(ray.get([do.remote(here, index_file, path, *columns) for path in paths]))

    def run(self, work: ShardWork, shards: Sequence[Shard], advance: Advance) -> None:
        ray = _connected(self.kept)
        with _watched(work, shards, advance), _errors_unwrapped():
            data = ray.data.from_items(
                [{"at": at} for at in range(len(shards))],
                override_num_blocks=min(len(shards), BLOCKS_PER_WORKER * self.n_workers),
            )
            share = self._share(ray)
            done = data.map_batches(
                ShardActor,
                fn_constructor_args=(Path.cwd(), work, shards),
                batch_size=1,
                compute=ray.data.ActorPoolStrategy(size=self.n_workers),
                num_cpus=share["num_cpus"],
                num_gpus=share["num_gpus"],
            )
            for _ in done.iter_batches(batch_size=None):
                pass  # the files say what is done

    def word_sums(self, paths: Sequence[Path]) -> WordSums:
        """Tasks add up a few tables each, then a few of the results, and so on."""
        if len(paths) <= TERMS_PER_SUM:
            return sums_in(paths)
        ray = _connected(self.kept)
        do, here = ray.remote(_there).options(num_cpus=0.5), Path.cwd()
        with _errors_unwrapped():
            sums = [do.remote(here, sums_in, some) for some in _in_groups(paths)]
            while len(sums) > 1:
                sums = [do.remote(here, added, *some) for some in _in_groups(sums)]
            found: WordSums = ray.get(sums[0])
        return found

    def close(self) -> None:
        """Stop what was started here; an earlier connection stays."""
        if not self.was_there:
            import ray

            ray.shutdown()
        self.kept.close()

    def _share(self, ray: Any) -> dict[str, float]:
        """At most half of the cores: Ray Data waits for ever if actors take them all."""
        found = ray.cluster_resources()
        n_gpus = self.n_workers * self.n_gpus
        if n_gpus > found.get("GPU", 0.0):
            raise InputError(
                f"{self.n_workers} workers need {n_gpus:g} GPUs, the cluster has "
                f"{found.get('GPU', 0.0):g}: give fewer ",
                Setting("workers"),
                " or another ",
                Setting("device"),
            )
        cpus = min(1.0, 0.5 * found.get("CPU", 1.0) / self.n_workers)
        return {"num_cpus": cpus, "num_gpus": self.n_gpus}


class ShardActor:
    """One model in one process, called by Ray Data."""

    def __init__(self, here: Path, work: ShardWork, shards: Sequence[Shard]) -> None:
        _change_to(here)
        self.work, self.shards = work, shards
        self.worker = work.worker()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        for shard in (self.shards[at] for at in batch["at"]):
            if not self.work.folder.shard(shard.name).exists():  # a block may be handed out again
                self.worker.finish(shard, lambda _: None)
        return batch


def _change_to(here: Path) -> None:
    """Change to the caller's folder, so that relative names mean the same as for the caller."""
    try:
        os.chdir(here)
    except OSError as problem:
        raise FileError(
            f"a worker on {gethostname()} cannot see the folder {here}: put input, output and "
            "model where all machines see them"
        ) from problem


def _there(here: Path, work: Callable[..., Any], *given: Any) -> Any:
    """A task of a worker, which has changed to the caller's folder."""
    _change_to(here)
    return work(*given)


def _identity(make: Make) -> Identity:
    return Identity.of(make())


def _in_groups(terms: Sequence[Any]) -> list[Sequence[Any]]:
    return [terms[at : at + TERMS_PER_SUM] for at in range(0, len(terms), TERMS_PER_SUM)]


def _is_connected() -> bool:
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


def _connected(kept: ExitStack) -> Any:
    """Ray, connected to a cluster, or started on this machine only."""
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    with needing("ray", "ray"):
        import ray
        import ray.data
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    if ray.is_initialized():
        return ray
    with _silent_stderr():
        if address := os.environ.get("RAY_ADDRESS"):
            try:
                _check_address(address)
                ray.init(log_to_driver=False, logging_level=logging.ERROR)
            except OSError as problem:
                raise InputError(
                    f"no Ray cluster answers at RAY_ADDRESS={address}: start one there, or unset "
                    "RAY_ADDRESS to work on this machine alone"
                ) from problem
        else:
            ray.init(
                address="local",
                _temp_dir=_place(kept),
                include_dashboard=False,
                log_to_driver=False,
                logging_level=logging.ERROR,
            )
    return ray


def _place(kept: ExitStack) -> str | None:
    """A temporary folder for Ray's logs and sockets; None: its own, since the name is too long."""
    folder = str(kept.enter_context(temporary_folder()))
    return folder if len(folder) <= LONGEST_PLACE else None


def _check_address(address: str) -> None:
    """Raise an OSError if nobody listens; Ray itself would silently wait for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdecimal():  # not `auto`
        create_connection((host.strip("[]"), int(port)), timeout=SECONDS_TO_ANSWER).close()


@contextmanager
def _silent_stderr() -> Iterator[None]:
    """Hide what Ray's core writes to standard error at the start; problems are raised anyway."""
    kept = os.dup(2)
    silent = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(silent, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(silent)


@contextmanager
def _watched(work: ShardWork, shards: Sequence[Shard], advance: Advance) -> Iterator[None]:
    """Report rows as they appear in the folder, from a thread that watches it."""
    stop = Event()
    rows = {shard.name: shard.n_rows for shard in shards}
    seen = _rows_done(work, rows)

    def look() -> None:
        nonlocal seen
        pause = SECONDS_BETWEEN_LOOKS
        while not stop.wait(pause):
            begin = perf_counter()
            with suppress(OSError):  # a file may be moved meanwhile
                done = _rows_done(work, rows)
                advance(done - seen)
                seen = done
            pause = max(SECONDS_BETWEEN_LOOKS, 20 * (perf_counter() - begin))

    watcher = Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        stop.set()
        watcher.join()
    advance(_rows_done(work, rows) - seen)


def _rows_done(work: ShardWork, rows: dict[str, int]) -> int:
    finished = work.folder.finished()
    whole = sum(n_rows for name, n_rows in rows.items() if name in finished)
    return whole + work.folder.rows_at_work()


@contextmanager
def _errors_unwrapped() -> Iterator[None]:
    """Raise a worker's SlalomError here, without Ray's wrapping."""
    try:
        yield
    except Exception as problem:
        for found in _causes(problem):
            if isinstance(found, SlalomError):
                raise found from problem
        raise


def _causes(problem: BaseException) -> Iterator[BaseException]:
    """The errors inside an error of Ray, the innermost first."""
    seen: list[BaseException] = []
    found: Any = problem
    while isinstance(found, BaseException) and found not in seen:
        seen.append(found)
        cause = getattr(found, "cause", None) or found.__cause__
        found = cause
    return reversed(seen)
