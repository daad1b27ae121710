"""Work on all cores, in processes that stay while documents come: fits, or whole methods.

A fit is many small steps of Python, so threads would wait for each other. No model and nothing of
torch ever goes there: numbers to fit, or documents whose questions are answered here
(explainers/workers.py). The same code runs in them, so a document's numbers do not depend on
where it was fitted.
"""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from time import perf_counter
from typing import Any, TypeVar

from slalom.surrogates.base import Fit, Observations, Surrogate
from slalom.surrogates.threads import one_thread

WORTHWHILE = 8e7  # rows × features² of all documents; starting workers takes as long
IDLE_SECONDS = 30
PER_CORE = 1.5  # workers, where there are MANY cores: those that wait for answers leave theirs
MANY = 4
BEHIND = 3  # niceness: whoever feeds a device or answers them goes first
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
LASTING = dict.fromkeys(  # bytes: matrices that are freed are used again, not mapped afresh
    ("MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"), str(2**28)
)

_last_awake = [-float(IDLE_SECONDS)]  # when a worker was last sent something, or done

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
    future: Future[Outcome] = _pool().submit(work, item)
    future.add_done_callback(_seen_awake)
    return future


def _seen_awake(_: object = None) -> None:
    _last_awake[0] = perf_counter()


def wake_workers(shapes: Sequence[tuple[int, ...]]) -> None:
    """Start workers where fits of these rows and features will pay: they are ready when asked."""
    if _pay(shapes):
        _pool().submit(_ready)


def in_workers(work: Callable[[Item], Outcome], items: Sequence[Item]) -> list[Outcome]:
    """What comes of each item, in order; what goes there and comes back is copied."""
    return list(_pool().map(work, items))


def _pay(shapes: Sequence[tuple[int, ...]], *, awake: bool = False) -> bool:
    if len(shapes) < 2 or _cores() < 2:
        return False
    return awake or bool(sum(n_rows * n_features**2 for n_rows, n_features in shapes) >= WORTHWHILE)


def _pool() -> Any:
    """The same workers whichever thread asks: loky would give every thread workers of its own."""
    return _keeper().submit(_workers).result()


@cache
def _keeper() -> ThreadPoolExecutor:
    """The one thread to which the workers belong."""
    return ThreadPoolExecutor(1, thread_name_prefix="slalom-workers")


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_keeper.cache_clear)


def _workers() -> Any:
    from loky import get_reusable_executor

    return get_reusable_executor(
        max_workers=_n_workers(),
        timeout=IDLE_SECONDS,
        env=ONE_THREAD | LASTING,
        initializer=_step_back,
    )


def _n_workers() -> int:
    n_cores = _cores()
    return round(PER_CORE * n_cores) if n_cores >= MANY else n_cores


def _step_back() -> None:
    if hasattr(os, "nice"):
        os.nice(BEHIND)


def _ready() -> None:
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
