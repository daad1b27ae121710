"""Worker processes that stay while work comes; each does one task at a time and may ask meanwhile.

A fit is many small steps of Python, so threads would wait for each other. No model and nothing of
torch ever goes to a worker. What it asks while it works is answered by a function that came with
the task, in a thread of this process.
"""

import atexit
import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import current_process
from multiprocessing.connection import Connection
from multiprocessing.resource_tracker import ensure_running
from queue import Empty, SimpleQueue
from typing import Any

from slalom.errors import SlalomError

IDLE_SECONDS = 30
PER_CORE = 1.25  # workers: those that wait for answers leave their cores to others
ENVIRONMENT = {  # of workers: one thread; matrices that are freed are used again
    **dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"),
    **dict.fromkeys(("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(2**28)),
}

Ask = Callable[[Any], Any]
Work = Callable[[Any, Ask], Any]  # an item, and how to ask the process that gave it


class WorkerDiedError(SlalomError):
    """A worker process was killed, most likely for want of memory."""


@dataclass(eq=False)
class _Task:
    work: Work
    item: Any
    answer: Ask
    future: "Future[Any]" = field(default_factory=Future)


@dataclass(eq=False)
class Pool:
    """At most `most` processes, each begun when there is work for it."""

    most: int | None = None  # None: by how many cores there are
    tasks: "SimpleQueue[_Task]" = field(default_factory=SimpleQueue)
    lock: threading.Lock = field(default_factory=threading.Lock)
    n_left: int = 0  # tasks that are not done yet
    n_threads: int = 0
    starting: threading.Lock = field(default_factory=threading.Lock)
    processes: dict[int, Any] = field(default_factory=dict)  # those that are alive, by their pid
    ended: bool = False

    @property
    def pids(self) -> set[int]:
        return set(self.processes)

    def submit(self, work: Work, item: Any, answer: Ask) -> "Future[Any]":
        task = _Task(work, item, answer)
        with self.lock:
            self.n_left += 1
            if self.n_threads < min(self.most or n_workers(), self.n_left):
                self.n_threads += 1
                atexit.unregister(self.end)
                atexit.register(self.end)
                threading.Thread(target=self._serve, daemon=True, name="slalom-worker").start()
            self.tasks.put(task)
        return task.future

    def end(self) -> None:
        """With the program: nothing is begun any more; a worker that is being started is awaited,
        or it could not be ended."""
        with self.starting:
            self.ended = True
            for process in list(self.processes.values()):
                process.terminate()

    def _serve(self) -> None:
        """One worker's thread: a task after the other, until none has come for a while."""
        worker: _Worker | None = None
        while True:
            try:
                task = self.tasks.get(timeout=IDLE_SECONDS)
            except Empty:
                with self.lock:
                    if self.tasks.empty():
                        self.n_threads -= 1
                        break
                continue
            if task.future.set_running_or_notify_cancel():
                worker = self._done(task, worker)
            with self.lock:
                self.n_left -= 1
        if worker is not None:
            self._drop(worker)

    def _done(self, task: _Task, worker: "_Worker | None") -> "_Worker | None":
        """The worker that did it, or None where it has died."""
        try:
            worker = worker or self._begun()
            outcome = worker.outcome(task)
        except BaseException as problem:
            if worker is not None:
                self._drop(worker)
            task.future.set_exception(problem)
            return None
        if isinstance(outcome, _Failure):
            task.future.set_exception(outcome.problem)
        else:
            task.future.set_result(outcome)
        return worker

    def _begun(self) -> "_Worker":
        with self.starting:
            if self.ended:
                raise WorkerDiedError("the program ends")
            worker = _Worker.begun()
            self.processes[worker.process.pid] = worker.process
        return worker

    def _drop(self, worker: "_Worker") -> None:
        worker.connection.close()
        worker.process.terminate()
        self.processes.pop(worker.process.pid, None)


@dataclass(frozen=True, eq=False)
class _Worker:
    process: Any
    connection: Connection

    @classmethod
    def begun(cls) -> "_Worker":
        from loky.backend import get_context

        context = get_context("loky")  # a script needs no main guard
        _block_interrupts()
        ours, theirs = context.Pipe()
        process = context.Process(target=_work, args=(theirs,), daemon=True, env=ENVIRONMENT)
        process.start()
        theirs.close()
        return cls(process, ours)

    def outcome(self, task: _Task) -> Any:
        """What came of the task; what it asks on the way is answered."""
        from loky.backend.reduction import dumps

        try:
            self.connection.send_bytes(dumps((task.work, task.item)))
            while isinstance(reply := pickle.loads(self.connection.recv_bytes()), _Asked):
                self.connection.send_bytes(pickle.dumps(task.answer(reply.content), protocol=-1))
        except (EOFError, OSError) as problem:
            raise WorkerDiedError(
                "a worker process has died: most likely the machine has too little memory; "
                "OMP_NUM_THREADS=1 does without workers"
            ) from problem
        return reply


@dataclass(frozen=True)
class _Asked:
    """What a worker asks in the middle of a task."""

    content: Any


@dataclass(frozen=True)
class _Failure:
    """What was raised in a worker."""

    problem: Exception


def _block_interrupts() -> None:
    """Processes begun by this thread never hear of Ctrl-C: they end with the one people see."""
    if hasattr(signal, "pthread_sigmask"):
        ensure_running()  # begun later, it would lift the block
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _work(connection: Connection) -> None:
    """The life of a worker."""
    from loky.backend.reduction import dumps

    if hasattr(os, "nice"):
        os.nice(3)  # whoever feeds a device or answers workers goes first

    def ask(content: Any) -> Any:
        connection.send_bytes(pickle.dumps(_Asked(content), protocol=-1))
        return pickle.loads(connection.recv_bytes())

    with suppress(EOFError, OSError):  # the process that it works for has ended
        while True:
            try:
                work, item = pickle.loads(connection.recv_bytes())
                outcome = work(item, ask)
            except (EOFError, OSError):
                raise
            except Exception as problem:
                outcome = _Failure(portable(problem))
            connection.send_bytes(dumps(outcome))


def portable(problem: Exception) -> Exception:
    """The error, or one that says the same where a class of the caller's own cannot be sent."""
    try:
        pickle.loads(pickle.dumps(problem))
    except Exception:
        return SlalomError(str(problem))
    return problem


shared = Pool()  # the one of this process


def submit(work: Work, item: Any, answer: Ask) -> "Future[Any]":
    """One item to whichever worker is free."""
    return shared.submit(work, item, answer)


def is_awake() -> bool:
    """Whether a worker is there already: the next one has nothing to wait for."""
    return bool(shared.pids)


def _forget() -> None:
    """In a forked process: threads do not survive, and these workers are not its own."""
    global shared
    shared = Pool()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def n_workers() -> int:
    return round(PER_CORE * cores())


def cores() -> int:
    """Those this process may use; whoever allows it one thread means one core."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    if allowed == "1" or current_process().daemon:  # which may have no processes of its own
        return 1
    n_cores = _n_cores()
    return min(n_cores, int(allowed)) if allowed.isdecimal() and allowed != "0" else n_cores


@cache
def _n_cores() -> int:
    from loky import cpu_count

    return int(cpu_count())
