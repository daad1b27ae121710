"""Rows of many documents at once, a process for each: fits do not wait for one another."""

import functools
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from slalom.classifiers.base import Classifier
from slalom.classifiers.load import load
from slalom.evaluation.items import Item
from slalom.evaluation.rows import Row
from slalom.evaluation.run import Plan, evaluate


@dataclass(frozen=True)
class Model:
    """What a process needs to load the classifier itself."""

    name: str | None
    device: str | None

    def load(self) -> Classifier:
        return _loaded(self.name, self.device)


@functools.cache
def _loaded(name: str | None, device: str | None) -> Classifier:
    return load(name, device=device)


def rows_of_each(
    model: Model, items: Sequence[Item], plan: Callable[[], Plan], *, jobs: int
) -> Iterator[list[Row]]:
    """The rows of every document, in order; `plan` is called where the work is done."""
    work = functools.partial(_rows, model, plan)
    if jobs == 1:
        yield from map(work, items)
        return
    fresh = multiprocessing.get_context("spawn")  # CUDA does not survive a fork
    with ProcessPoolExecutor(min(jobs, len(items)), fresh, _share_cores, (jobs,)) as pool:
        yield from pool.map(work, items)


def _share_cores(jobs: int) -> None:
    """Before torch is loaded: processes that each use all cores wait for one another."""
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // jobs)))


def _rows(model: Model, plan: Callable[[], Plan], item: Item) -> list[Row]:
    return list(evaluate(model.load(), [item], plan()))
