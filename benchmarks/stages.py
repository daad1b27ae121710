"""Where a run of `explain_many` spends its time, and what the model alone would take.

Not a benchmark itself: benchmarks/speed.py reads it; `python -m benchmarks.stages` shows where the
time of one explanation goes. Stages are functions of the library with a stopwatch around them; a
stage's time is its own, without that of stages inside it.
"""

import argparse
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import perf_counter, process_time, thread_time
from typing import Any
from unittest.mock import patch

import numpy as np
import torch

import slalom
from benchmarks.inside import (
    Dialogue,
    PendingScores,
    SlalomSurrogate,
    TokenRows,
    batches,
    calls,
    joined,
    methods,
    on_device,
    surrogate,
)

BUDGETS = {"cpu": (2**10, 2**11, 2**12, 2**13), "cuda": (2**15, 2**16, 2**17, 2**18)}
STAGES = (  # where, which function, the stage's name
    (methods, "document_of", "tokenise"),
    (surrogate.SurrogateExplainer, "drawn", "build"),
    (surrogate.SurrogateExplainer, "_rows", "build"),
    (Dialogue, "begin", "build"),
    (Dialogue, "end", "build"),
    (slalom.HuggingFaceClassifier, "logits", "batch"),
    (slalom.HuggingFaceClassifier, "seen", "build"),
    (calls, "in_turn", "forward"),
    (PendingScores, "answers", "forward"),
    (SlalomSurrogate, "fit", "fit"),
    (surrogate.SurrogateExplainer, "found", "finish"),
)


@dataclass
class Stopwatch:
    """Seconds of each stage, by the clock and of the thread's processor, added up over threads."""

    clock: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    processor: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    lock: threading.Lock = field(default_factory=threading.Lock)
    inside: threading.local = field(default_factory=threading.local)

    def around(self, function: Callable[..., Any], stage: str) -> Callable[..., Any]:
        def timed(*args: Any, **named: Any) -> Any:
            above = getattr(self.inside, "spent", None)
            self.inside.spent = [0.0, 0.0]
            clock, processor = perf_counter(), thread_time()
            try:
                return function(*args, **named)
            finally:
                whole = perf_counter() - clock, thread_time() - processor
                nested, self.inside.spent = self.inside.spent, above
                if above is not None:
                    above[0], above[1] = above[0] + whole[0], above[1] + whole[1]
                with self.lock:
                    self.clock[stage] += whole[0] - nested[0]
                    self.processor[stage] += whole[1] - nested[1]

        return timed

    @contextmanager
    def running(self) -> Iterator[None]:
        with ExitStack() as stack:
            for owner, name, stage in STAGES:
                timed = self.around(getattr(owner, name), stage)
                stack.enter_context(patch.object(owner, name, timed))
            yield


@contextmanager
def listening(found: list[TokenRows]) -> Iterator[None]:
    """Keeps every row that is put to a model."""
    plain = calls.on_device

    def heard(rows: TokenRows, device: torch.device) -> Any:
        found.append(rows)
        return plain(rows, device)

    calls.on_device = heard  # type: ignore[assignment]
    try:
        yield
    finally:
        calls.on_device = plain


@contextmanager
def without_shortcuts() -> Iterator[None]:
    """Models are asked by their own forward pass, as any other package asks them."""
    quickest = calls.quickest
    calls.quickest = lambda model, there, plain, *, multiple: (plain, False)
    try:
        yield
    finally:
        calls.quickest = quickest


@dataclass(frozen=True)
class Spent:
    """Seconds by the clock and of this process's processors."""

    clock: float
    processor: float


def bare_seconds(classifier: Any, asked: Sequence[TokenRows]) -> tuple[Spent, int]:
    """The model's forward passes over these rows and nothing else; the best token budget.

    Batches lie on the device before the clock starts. Budgets are tried on a part of the rows.
    """
    rows = joined(asked)
    device = calls.device_of(classifier.model)
    budgets = BUDGETS.get(device.type, BUDGETS["cpu"])
    rng = np.random.default_rng(0)
    some = np.sort(rng.permutation(len(rows.lengths))[: max(500, len(rows.lengths) // 10)])
    tried = {budget: _passes(classifier, rows, some, budget) for budget in budgets}
    best = min(tried, key=lambda budget: tried[budget].clock)
    everything = np.arange(len(rows.lengths))
    return _passes(classifier, rows, everything, best), best


def _passes(classifier: Any, rows: TokenRows, chosen: np.ndarray, budget: int) -> Spent:
    model = calls.in_precision(classifier.model, classifier.precision)
    there = on_device(rows, calls.device_of(model))
    waiting = [chosen[at] for at in batches(rows.lengths[chosen], budget=budget, padding=True)]
    with calls.borrowed(model, None):
        ready = [there.padded(part, pad=0)[:2] for part in waiting]
        for ids, mask in ready[:3]:  # warm up
            model(input_ids=ids, attention_mask=mask)
        _wait(model)
        start, processor = perf_counter(), process_time()
        for ids, mask in ready:
            model(input_ids=ids, attention_mask=mask)
        _wait(model)
        return Spent(perf_counter() - start, process_time() - processor)


def _wait(model: Any) -> None:
    if calls.device_of(model).type == "cuda":
        torch.cuda.synchronize()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", default="A slow start, but a truly wonderful film.")
    stopwatch = Stopwatch()
    with stopwatch.running():
        slalom.explain_many(slalom.load(), [parser.parse_args().text], progress=False)
    for stage, seconds in stopwatch.clock.items():
        print(f"{stage:10} {1e3 * seconds:8.2f} ms")


if __name__ == "__main__":
    main()
