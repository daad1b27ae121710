"""One thread for small matrices.

A fit is thousands of products of a few hundred rows. Spread over all cores each waits for
its threads longer than it computes: on 16 cores a 500-query fit took 4.2 s instead of 0.2 s.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_inside: list[Any] = []  # the limit, once for every thread that wants it


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra inside runs on one thread; the caller's setting comes back after.

    The setting is the process's: of several threads the first to come sets it, the last to
    leave restores it.
    """
    with _lock:
        if not _inside:
            _take_control()
            _inside.append(_libraries().limit(limits=1, user_api="blas"))
        else:
            _inside.append(_inside[0])
    try:
        yield
    finally:
        with _lock:
            limit = _inside.pop()
            if not _inside:
                _take_control()
                limit.restore_original_limits()


def _take_control() -> None:
    """threadpoolctl from 3.8 on heeds the first thread to set a limit, and ignores all others."""
    from threadpoolctl import OpenBLASController

    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


@cache
def _libraries() -> Any:
    """The loaded linear algebra libraries; finding them takes longer than a fit."""
    import scipy.linalg  # noqa: F401  # brings its own library, which must be found too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
