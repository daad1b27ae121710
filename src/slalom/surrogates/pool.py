"""Fits on all cores: one per document, in worker processes that stay while documents come.

A fit is many small steps of Python, so threads would wait for each other. Workers know numbers
only: no classifier, no text and no model of torch ever goes there. The same code runs in them,
so a document's numbers do not depend on where it was fitted.
"""

import os
from collections.abc import Sequence

from slalom.surrogates.base import Fit, Observations, Surrogate, fit_many
from slalom.surrogates.threads import one_thread

WORTHWHILE = 16  # documents; starting workers takes as long as some ten fits
IDLE_SECONDS = 30


def fit_all(surrogate: Surrogate, observed: Sequence[Observations]) -> list[Fit]:
    """The fits in order, by workers where there are enough documents and cores."""
    if len(observed) < WORTHWHILE or hasattr(surrogate, "fit_many") or _cores() < 2:
        return _fitted(surrogate, observed)
    from loky import get_reusable_executor

    pool = get_reusable_executor(max_workers=_cores(), timeout=IDLE_SECONDS)
    parts = [observed[at : at + 1] for at in range(len(observed))]
    return [fit for fits in pool.map(_fitted, [surrogate] * len(parts), parts) for fit in fits]


def _fitted(surrogate: Surrogate, observed: Sequence[Observations]) -> list[Fit]:
    with one_thread():
        return fit_many(surrogate, observed)


def _cores() -> int:
    """Those this process may use; whoever allows it one thread means one core."""
    allowed = os.environ.get("OMP_NUM_THREADS", "")
    if allowed == "1":
        return 1
    from loky import cpu_count

    n_cores = int(cpu_count())
    return min(n_cores, int(allowed)) if allowed.isdecimal() and allowed != "0" else n_cores
