"""The one way of many documents through a method: in chunks, in order, watched.

`explain`, `explain_many`, `explain_each`, `explain_dataset` and the evaluation all go this way.
Neighbouring documents are asked together, in this process or by workers whose queries are answered
here; a document's numbers do not depend on its neighbours, nor on where it was explained. Beside a
device chunks are begun ahead: it answers some while others are fitted.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from typing import Any

import numpy as np

from slalom.classifiers.base import Classifier, Delegating, anew, runs_elsewhere
from slalom.document import Document, FloatArray
from slalom.explainers.base import Result, SplitText
from slalom.explainers.execution.progress import ChunkMeter, Meter
from slalom.explainers.execution.steps import Order, Pair, run_local
from slalom.explainers.execution.workers import CallQueue, call_queue, workers_pay

QUERIES_PER_CHUNK = 10_000  # of documents that are asked together
QUERIES_PER_STEP = QUERIES_PER_CHUNK // 5  # where results are wanted soon, or documents are few
AHEAD = 7  # chunks at work beside the one that is waited for, where the classifier has a device
TOKENS_PER_REPORT = 2**15  # between two calls of a progress function

Tasks = Sequence["Future[Any]"]


def explained(
    classifier: Classifier,
    order: Order,
    documents: Iterable[SplitText],
    *,
    n_queries: int = QUERIES_PER_CHUNK,
    meter: Meter | None = None,
) -> Iterator[Result]:
    """Each document's result in their order; `n_queries` are asked together, about."""
    waiting: deque[tuple[Tasks, Iterator[Result]]] = deque()  # chunks that workers are at
    ahead = AHEAD if runs_elsewhere(classifier) else 1
    with ExitStack() as kept:
        queue: CallQueue | None = None
        for chunk in chunks(order, documents, n_queries=n_queries):
            readable = [document for document in chunk if isinstance(document, Document)]
            counter = None if meter is None else meter.chunk(planned(order, readable))
            if len(readable) > 1 and workers_pay(classifier, order, readable):
                queue = queue or kept.enter_context(call_queue(classifier))
                tell = None if counter is None else counter.answered
                tasks = queue.begin(order, readable, tell)
                waiting.append((tasks, _by_workers(queue, tasks, chunk, counter)))
                while len(waiting) > ahead or (waiting and _are_done(waiting[0][0])):
                    yield from waiting.popleft()[1]
                continue
            while waiting:
                yield from waiting.popleft()[1]
            watched = classifier if counter is None else CountedClassifier(classifier, counter)
            yield from _placed(chunk, run_local(watched, order, readable), counter)
        while waiting:
            yield from waiting.popleft()[1]


def _are_done(tasks: Tasks) -> bool:
    return all(task.done() for task in tasks)


def _by_workers(
    queue: CallQueue, tasks: Tasks, chunk: Sequence[SplitText], counter: ChunkMeter | None
) -> Iterator[Result]:
    yield from _placed(chunk, queue.results(tasks), counter)


def _placed(
    chunk: Sequence[SplitText], results: Sequence[Result], counter: ChunkMeter | None
) -> Iterator[Result]:
    """Errors of texts that could not be split keep their places."""
    if counter is not None:
        counter.finish()
    left = iter(results)
    for document in chunk:
        yield next(left) if isinstance(document, Document) else document


def planned(order: Order, documents: Iterable[SplitText]) -> int:
    """Queries of all documents, at most."""
    readable = (document for document in documents if isinstance(document, Document))
    return sum(order.request.planned(order.explainer, document) for document in readable)


def chunks(
    order: Order, documents: Iterable[SplitText], *, n_queries: int
) -> Iterator[list[SplitText]]:
    """Neighbours whose queries together fill a few large batches."""
    chunk: list[SplitText] = []
    n_planned = 0
    for document in documents:
        chunk.append(document)
        n_planned += planned(order, [document])
        if n_planned >= n_queries:
            yield chunk
            chunk, n_planned = [], 0
    if chunk:
        yield chunk


def queries_per_chunk(classifier: Classifier, order: Order, documents: Sequence[SplitText]) -> int:
    """Queries that are asked together; beside a device fewer where there are few documents.

    The last ones would otherwise be fitted by a few workers while the others wait.
    """
    if not runs_elsewhere(classifier):
        return QUERIES_PER_CHUNK
    total = planned(order, documents)
    more_than_one = total // max(1, len(documents)) + 1
    return min(QUERIES_PER_CHUNK, max(QUERIES_PER_STEP, more_than_one, total // 10))


class CountedClassifier(Delegating):
    """A classifier whose answers are counted as they come, for whoever waits."""

    def __init__(self, classifier: Classifier, counter: ChunkMeter) -> None:
        self.classifier = classifier
        self.counter = counter

    def anew(self, number: int) -> "CountedClassifier":
        return CountedClassifier(anew(self.classifier, number), self.counter)

    def logits(self, asked: Sequence[Pair]) -> list[FloatArray]:
        """In slices of about TOKENS_PER_REPORT, each document's answers put together again.

        Devices like larger batches.
        """
        answers: list[list[FloatArray]] = [[np.zeros((0, len(self.labels)))] for _ in asked]
        n_tokens = TOKENS_PER_REPORT * (4 if runs_elsewhere(self.classifier) else 1)
        for numbers, pairs in _slices(asked, n_tokens):
            for number, logits in zip(numbers, self.classifier.logits(pairs), strict=True):
                answers[number].append(logits)
            self.counter.answered(sum(len(queries) for _, queries in pairs))
        return [np.concatenate(slices) for slices in answers]


def _slices(asked: Sequence[Pair], n_tokens: int) -> Iterable[tuple[list[int], list[Pair]]]:
    """Pairs in their order with their numbers, cut where so many tokens have come together."""
    slices: dict[int, tuple[list[int], list[Pair]]] = {}
    before = 0
    for number, (document, queries) in enumerate(asked):
        ends = before + np.cumsum(document.n_tokens(queries), dtype=np.int64)
        which = (ends - 1) // n_tokens
        for at in np.unique(which).tolist():
            numbers, pairs = slices.setdefault(at, ([], []))
            numbers.append(number)
            pairs.append((document, queries[which == at]))
        before = int(ends.max(initial=before))
    return slices.values()
