"""The one way of many documents through a method: in chunks, in order, watched.

`explain`, `explain_many`, `explain_each` and the evaluation all go this way. Neighbouring
documents are asked and fitted together; a document's numbers do not depend on its neighbours.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from threading import Event, Lock

import numpy as np

from slalom.classifiers.base import Classifier, Delegating, runs_elsewhere
from slalom.document import Document, FloatArray, Queries
from slalom.errors import SlalomError
from slalom.explainers.base import Explainer, Request, Result

Progress = Callable[[int, int], None]  # queries done, and in all; raise from it to stop
Chunk = Sequence[Document | SlalomError]  # an error: the text could not even be cut
QUERIES_PER_CHUNK = 10_000  # of documents that are asked together
TOKENS_PER_REPORT = 2**15  # between two calls of a progress function
ON_DEVICES = 4  # times as many: they like larger batches
AHEAD = 7  # chunks at work beside the one that is waited for: asked, fitted, told
SECONDS_PER_TURN = 1e-3  # of a thread; Python's own 5 ms starve a device that is fed by one

_left: ContextVar[Event] = ContextVar("left", default=Event())  # noqa: B039


@dataclass
class Meter:
    """Turns answered queries into progress; chunks at work at the same time add up."""

    progress: Progress
    total: int
    done: int = 0
    lock: Lock = field(default_factory=Lock)

    def part(self, n_planned: int) -> "Part":
        return Part(self, n_planned)

    def add(self, n_queries: int, *, unplanned: int = 0) -> None:
        with self.lock:
            self.done += n_queries
            self.total += unplanned
            self.progress(self.done, self.total)


@dataclass
class Part:
    """A chunk's share of the whole; where it needs more or fewer queries, the plan changes."""

    meter: Meter
    left: int

    def answered(self, n_queries: int) -> None:
        more = max(0, n_queries - self.left)
        self.left -= n_queries - more
        self.meter.add(n_queries, unplanned=more)

    def finish(self) -> None:
        if self.left:
            self.meter.add(0, unplanned=-self.left)
            self.left = 0


class Watched(Delegating):
    """A classifier whose answers are counted as they come."""

    def __init__(self, classifier: Classifier, part: Part) -> None:
        self.classifier = classifier
        self.part = part

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        """In slices of about TOKENS_PER_REPORT, each document's answers put together again."""
        answers: list[list[FloatArray]] = [[] for _ in asked]
        n_tokens = TOKENS_PER_REPORT * (ON_DEVICES if runs_elsewhere(self.classifier) else 1)
        for numbers, questions in _slices(asked, n_tokens):
            for number, logits in zip(numbers, self.classifier.logits(questions), strict=True):
                answers[number].append(logits)
            self.part.answered(sum(len(queries) for _, queries in questions))
        return [
            np.concatenate(parts) if parts else np.zeros((0, len(self.labels))) for parts in answers
        ]


def chunks(
    explainer: Explainer,
    documents: Iterable[Document | SlalomError],
    request: Request,
    *,
    n_queries: int = QUERIES_PER_CHUNK,
) -> Iterator[list[Document | SlalomError]]:
    """Neighbours whose queries together fill a few large batches."""
    chunk: list[Document | SlalomError] = []
    planned = 0
    for document in documents:
        chunk.append(document)
        if isinstance(document, Document):
            planned += request.planned(explainer, document)
        if planned >= n_queries:
            yield chunk
            chunk, planned = [], 0
    if chunk:
        yield chunk


def in_order(
    work: Callable[[Chunk], list[Result]], waiting: Iterable[Chunk], *, classifier: Classifier
) -> Iterator[list[Result]]:
    """What comes of each chunk; where this machine's cores are free while the classifier answers,
    the next ones are asked while one is fitted."""
    if not runs_elsewhere(classifier):
        yield from map(work, waiting)
        return
    begun: deque[Future[list[Result]]] = deque()
    left = Event()
    with ThreadPoolExecutor(AHEAD + 1, initializer=_left.set, initargs=(left,)) as pool, _turns():
        try:
            for chunk in waiting:
                begun.append(pool.submit(work, chunk))
                while len(begun) > AHEAD or (begun and begun[0].done()):
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        finally:
            left.set()
            for future in begun:
                future.cancel()


def nobody_waits() -> bool:
    """Whether whoever wanted what this thread works on has left."""
    return _left.get().is_set()


@dataclass
class ShortTurns:
    """Threads change places often: whoever feeds a device holds the interpreter for moments.

    The setting is the process's: the first to come sets it, the last to leave restores it.
    """

    before: float = 0.0
    n_inside: int = 0
    lock: Lock = field(default_factory=Lock)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        change = sys.setswitchinterval  # `sys` is gone where a program ends in the middle
        with self.lock:
            self.n_inside += 1
            if self.n_inside == 1:
                self.before = sys.getswitchinterval()
                change(min(self.before, SECONDS_PER_TURN))
        try:
            yield
        finally:
            with self.lock:
                self.n_inside -= 1
                if not self.n_inside:
                    change(self.before)


_turns = ShortTurns()


def _slices(
    asked: Sequence[tuple[Document, Queries]], n_tokens: int
) -> Iterator[tuple[list[int], list[tuple[Document, Queries]]]]:
    """Questions in their order, cut where enough tokens have come together."""
    numbers: list[int] = []
    questions: list[tuple[Document, Queries]] = []
    room = n_tokens
    for number, (document, queries) in enumerate(asked):
        ends = np.cumsum(document.n_tokens(queries), dtype=np.int64)
        start = 0
        while start < len(queries):
            used = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, used + room, side="right")))
            numbers.append(number)
            questions.append((document, queries[start:stop]))
            room -= int(ends[stop - 1]) - used
            start = stop
            if room <= 0 or start < len(queries):
                yield numbers, questions
                numbers, questions, room = [], [], n_tokens
    if questions:
        yield numbers, questions
