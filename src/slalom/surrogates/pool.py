"""Work on all cores, in processes that stay while documents come: fits, or whole methods.

A fit is many small steps of Python, so threads would wait for each other. No model and nothing of
torch ever goes there: numbers to fit, or documents whose questions are answered here
(explainers/workers.py). The same code runs in them, so a document's numbers do not depend on
where it was fitted.
"""

import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache
from time import perf_counter
from typing import Any, TypeVar
from weakref import WeakSet

from slalom.surrogates.base import Fit, Observations, Surrogate
from slalom.surrogates.threads import one_thread

WORTHWHILE = 8e7  # rows × features² of all documents; starting workers takes as long
IDLE_SECONDS = 30
PER_CORE = 1.25  # workers, where there are MANY cores: those that wait for answers leave theirs
MANY = 4
BEHIND = 3  # niceness: whoever feeds a device or answers them goes first
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
LASTING = dict.fromkeys(  # bytes: matrices that are freed are used again, not mapped afresh
    ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(2**28)
)

_last_awake = [-float(IDLE_SECONDS)]  # when a worker was last sent something, or done
_started: WeakSet[Any] = WeakSet()

Item = TypeVar("Item")
Outcome = TypeVar("Outcome")


def fit_all(surrogate: Surrogate, observed: Sequence[Observations]) -> list[Fit]:
    """The fits in order, by workers where they pay."""
    if workers_pay(observed):
        return in_workers(_fitted, [(surrogate, one) for one in observed])
    with one_thread():
        return [surrogate.fit(one) for one in observed]


def workers_pay(observed: Sequence[Observations]) -> bool:
    """Whether there is enough to fit, and there are cores for it."""
    return _pay([seen.counts.shape for seen in observed])


def worthwhile(shapes: Sequence[tuple[int, ...]]) -> bool:
    """Whether workers pay for fits of these rows and features; those that are awake always do."""
    pays = _pay(shapes, awake=perf_counter() - _last_awake[0] < IDLE_SECONDS)
    if pays:
        _seen_awake()  # the next one need not ask
    return pays


def submit(work: Callable[[Item], Outcome], item: Item) -> "Future[Outcome]":
    """One item to whichever worker is free."""
    _seen_awake()
    (future,) = _submitted(work, [item])
    future.add_done_callback(_seen_awake)
    return future


def _seen_awake(_: object = None) -> None:
    _last_awake[0] = perf_counter()


def wake_workers(shapes: Sequence[tuple[int, ...]]) -> None:
    """Start workers where fits of these rows and features will pay: they are ready when asked."""
    if _pay(shapes):
        _submitted(_ready, [None])


def in_workers(work: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
    """What comes of each item, in order; what goes there and comes back is copied."""
    futures = _submitted(work, items)
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()


def _pay(shapes: Sequence[tuple[int, ...]], *, awake: bool = False) -> bool:
    if len(shapes) < 2 or _cores() < 2:
        return False
    return awake or bool(sum(n_rows * n_features**2 for n_rows, n_features in shapes) >= WORTHWHILE)


def _submitted(work: Callable[[Item], Outcome], items: Sequence[Item]) -> "list[Future[Outcome]]":
    """To the same workers whichever thread asks: loky would give every thread its own."""
    begun = _keeper().submit(_submit_all, work, items)
    try:
        return begun.result()
    except KeyboardInterrupt:
        wait([begun])  # workers that are being started could not be ended with the program
        raise


def _submit_all(work: Callable[[Item], Outcome], items: Sequence[Item]) -> "list[Future[Outcome]]":
    workers = _workers()
    _block_interrupts()
    futures = [workers.submit(work, item) for item in items]
    _end_first()
    return futures


@cache
def _keeper() -> ThreadPoolExecutor:
    """The one thread to which the workers belong."""
    return ThreadPoolExecutor(1, thread_name_prefix="slalom-workers")


def _workers() -> Any:
    from loky import get_reusable_executor

    workers = get_reusable_executor(
        max_workers=_n_workers(),
        timeout=IDLE_SECONDS,
        env=ONE_THREAD | LASTING,
        initializer=_step_back,
    )
    _started.add(workers)
    return workers


def _block_interrupts() -> None:
    """Processes begun by this thread never hear of Ctrl-C: they end with the one people see."""
    if hasattr(signal, "pthread_sigmask"):
        from multiprocessing.resource_tracker import ensure_running

        ensure_running()  # begun later, it would lift the block
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


@cache
def _end_first() -> None:
    """A program that ends does not wait for work that nobody waits for.

    Left to itself, loky would: its hook comes after this one, since it was there before.
    """
    threading._register_atexit(_kill_workers)  # type: ignore[attr-defined]


def _kill_workers() -> None:
    """Not by loky's `shutdown`, which stumbles over futures that were cancelled."""
    for workers in list(_started):
        for process in list(workers._processes.values()):
            process.terminate()


def _forget_workers() -> None:
    """In a forked process: threads do not survive, and these workers are not its own."""
    _keeper.cache_clear()
    _started.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)


def _n_workers() -> int:
    n_cores = _cores()
    return round(PER_CORE * n_cores) if n_cores >= MANY else n_cores


def _step_back() -> None:
    if hasattr(os, "nice"):
        os.nice(BEHIND)


def _ready(_: None) -> None:
    """What a fit needs is loaded."""
    with one_thread():
        pass


def _fitted(task: tuple[Surrogate, Observations]) -> Fit:
    surrogate, observed = task
    with one_thread():
        return surrogate.fit(observed)


def _cores() -> int:
    """Those this process may use; whoever allows it one thread means one core."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    if allowed == "1":
        return 1
    from loky import cpu_count

    n_cores = int(cpu_count())
    return min(n_cores, int(allowed)) if allowed.isdecimal() and allowed != "0" else n_cores
