"""One thread for small matrices.

A fit is thousands of products of a few hundred rows. Spread over all cores each waits for
its threads longer than it computes: on 16 cores a 500-query fit took 4.2 s instead of 0.2 s.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any


@contextmanager
def one_thread() -> Iterator[None]:
    """Linear algebra inside runs on one thread; the caller's setting comes back after."""
    with _libraries().limit(limits=1, user_api="blas"):
        yield


@cache
def _libraries() -> Any:
    """The loaded linear algebra libraries; finding them takes longer than a fit."""
    import scipy.linalg  # noqa: F401  # brings its own library, which must be found too
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
