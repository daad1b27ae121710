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
from dataclasses import dataclass
from typing import Any

from slalom.classifiers.base import Classifier, runs_elsewhere
from slalom.document import Document
from slalom.errors import SlalomError
from slalom.explainers.base import Result
from slalom.explainers.execution.progress import Meter, Part
from slalom.explainers.execution.steps import Order, explained_here
from slalom.explainers.execution.watched import Watched
from slalom.explainers.execution.workers import Desk, desk_of, workers_pay

Found = Document | SlalomError  # an error: the text could not even be cut
QUERIES_PER_CHUNK = 10_000  # of documents that are asked together
QUERIES_PER_STEP = 2_000  # where results are wanted soon, or there are few documents for workers
LEAST_CHUNKS = 10  # of many documents, beside a device
AHEAD = 7  # chunks at work beside the one that is waited for, where the classifier has a device


def explained(
    classifier: Classifier,
    order: Order,
    documents: Iterable[Found],
    *,
    n_queries: int = QUERIES_PER_CHUNK,
    meter: Meter | None = None,
) -> Iterator[Result]:
    """Each document's result in their order; `n_queries` are asked together, about."""
    waiting: deque[_Begun] = deque()
    ahead = AHEAD if runs_elsewhere(classifier) else 1
    with ExitStack() as kept:
        desk: Desk | None = None
        for chunk in chunks(order, documents, n_queries=n_queries):
            readable = [document for document in chunk if isinstance(document, Document)]
            part = _part(meter, order, readable)
            if workers_pay(classifier, order, readable):
                desk = desk or kept.enter_context(desk_of(classifier))
                tasks = desk.begin(order, readable, _told(part))
                waiting.append(_Begun(desk, chunk, part, tasks))
                while len(waiting) > ahead or (waiting and waiting[0].is_done):
                    yield from waiting.popleft().results()
                continue
            while waiting:
                yield from waiting.popleft().results()
            watched = classifier if part is None else Watched(classifier, part)
            yield from _placed(chunk, explained_here(watched, order, readable), part)
        while waiting:
            yield from waiting.popleft().results()


@dataclass(frozen=True, eq=False)
class _Begun:
    """A chunk that workers are at."""

    desk: Desk
    chunk: Sequence[Found]
    part: Part | None
    tasks: "Sequence[Future[Any]]"

    @property
    def is_done(self) -> bool:
        return all(task.done() for task in self.tasks)

    def results(self) -> Iterator[Result]:
        yield from _placed(self.chunk, self.desk.results(self.tasks), self.part)


def _placed(
    chunk: Sequence[Found], results: Sequence[Result], part: Part | None
) -> Iterator[Result]:
    """Errors of texts that could not be split keep their places."""
    if part is not None:
        part.finish()
    left = iter(results)
    for document in chunk:
        yield next(left) if isinstance(document, Document) else document


def _part(meter: Meter | None, order: Order, documents: Sequence[Document]) -> Part | None:
    return None if meter is None else meter.part(planned(order, documents))


def _told(part: Part | None) -> Any:
    return (lambda n_queries: None) if part is None else part.answered


def planned(order: Order, documents: Iterable[Found]) -> int:
    """Queries of all documents, at most."""
    readable = (document for document in documents if isinstance(document, Document))
    return sum(order.request.planned(order.explainer, document) for document in readable)


def chunks(order: Order, documents: Iterable[Found], *, n_queries: int) -> Iterator[list[Found]]:
    """Neighbours whose queries together fill a few large batches."""
    chunk: list[Found] = []
    n_planned = 0
    for document in documents:
        chunk.append(document)
        n_planned += planned(order, [document])
        if n_planned >= n_queries:
            yield chunk
            chunk, n_planned = [], 0
    if chunk:
        yield chunk


def queries_per_chunk(classifier: Classifier, order: Order, documents: Sequence[Found]) -> int:
    """Queries that are asked together; beside a device fewer where there are few documents.

    The last ones would otherwise be fitted by a few workers while the others wait.
    """
    if not runs_elsewhere(classifier):
        return QUERIES_PER_CHUNK
    total = planned(order, documents)
    more_than_one = total // max(1, len(documents)) + 1
    return min(QUERIES_PER_CHUNK, max(QUERIES_PER_STEP, more_than_one, total // LEAST_CHUNKS))
