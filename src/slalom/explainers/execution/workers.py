"""The same generators in worker processes, which yield over a pipe.

A worker runs them in step for a few documents at a time: it draws queries, puts them into rows
where the classifier lets it, and fits; only what the classifier is to answer comes here. Whatever
workers have asked by the time the classifier is free is answered together. Beside a device two
threads answer, so that one batch is made while another is computed; on a CPU the thread that waits
for the results does.
"""

import atexit
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import methodcaller
from queue import SimpleQueue
from threading import Lock
from typing import Any

import numpy as np

from slalom.classifiers.base import (
    Classifier,
    Delegating,
    anew,
    defined_together,
    knows_labels,
    runs_elsewhere,
)
from slalom.document import Document, FloatArray, Queries, Text
from slalom.errors import ClassifierError, SlalomError
from slalom.explainers.base import Result
from slalom.explainers.execution.pool import Ask, cores, is_awake, portable, submit
from slalom.explainers.execution.steps import Order, Pair, n_tokens, run_local

WORTHWHILE = 8e7  # rows × features² of all documents; starting workers takes as long
PER_WORKER = 4  # documents at a time: asked together they fill a batch, fitted they take a second
TASKS_PER_CHUNK = 5  # at least: small chunks are shared, too
THREADS_AT_DEVICE = 2  # one batch is computed while the next is put together
TOKENS_PER_TURN = 2**18  # a few batches


def workers_pay(classifier: Classifier, order: Order, documents: Sequence[Document]) -> bool:
    """Whether there are cores, enough to do, and workers would know what the classifier reads."""
    if not documents or cores() < 2 or order.explainer.looks_inside:
        return False
    if not (knows_labels(classifier) and _has_outline(classifier, documents[0])):
        return False
    request, explainer = order.request, order.explainer
    cells = [request.planned(explainer, one) * one.n_features**2 for one in documents]
    return is_awake() or sum(cells) >= WORTHWHILE


def _has_outline(classifier: Any, document: Document) -> bool:
    """A wrapper may read otherwise than what it wraps."""
    outline = getattr(classifier, "outline", None)
    if outline is None:
        return False
    full = document.full()
    return bool(outline.seen(document, full) == classifier.seen(document, full))


def takes_rows(classifier: Classifier) -> bool:
    """Whether workers may send it rows that they put together."""
    return defined_together(classifier, "logits", "row_logits")


@dataclass(frozen=True)
class Outlined:
    """What a worker gets to know of a classifier."""

    outline: Any  # what it reads
    takes_rows: bool
    has_remarks: bool

    @classmethod
    def of(cls, classifier: Any) -> "Outlined":
        name, labels = classifier.name, tuple(classifier.labels)
        outline = replace(classifier.outline, name=name, labels=labels)
        return cls(outline, takes_rows(classifier), hasattr(classifier, "remarks"))


Items = Sequence[Any]
Way = Callable[[Classifier, Items], Items]  # from what is asked to an answer to each of it


def rows_answered(classifier: Any, rows: Items) -> Items:
    """What workers put together for their queries; only a classifier knows what rows are."""
    answers: list[FloatArray] = classifier.row_logits(rows)
    return answers


def queries_answered(classifier: Classifier, pairs: Items) -> Items:
    """Queries as they are, for a classifier that wants them so."""
    return classifier.logits(pairs)


def calls_answered(classifier: Classifier, calls: Items) -> Items:
    """Calls of its other methods, which take no time of the model."""
    return [call(classifier) for call in calls]


@dataclass(frozen=True, eq=False)
class Asked:
    """What a worker asks; who asks in the same way at the same time is answered in one call."""

    way: Way
    items: Items
    n_queries: int = 0
    n_tokens: int = 0
    number: int = 0  # 0: as ever; else asked anew, for the first, second, … time


class OverPipe(Delegating):
    """A classifier in a worker: what it reads is known here, what it says is asked for."""

    def __init__(self, known: Outlined, ask: Ask, number: int = 0) -> None:
        self.classifier = known.outline
        self.known = known
        self.ask = ask
        self.number = number

    def anew(self, number: int) -> "OverPipe":
        return OverPipe(self.known, self.ask, number)

    def logits(self, asked: Sequence[Pair]) -> list[FloatArray]:
        n_queries = sum(len(queries) for _, queries in asked)

        def ask_rows(rows: Any) -> FloatArray:
            (logits,) = self._ask(
                Asked(rows_answered, [rows], n_queries, int(rows.n_tokens), self.number)
            )
            return np.asarray(logits)

        if self.known.takes_rows:
            return list(self.known.outline.answered(asked, ask_rows))
        total = sum(map(n_tokens, asked))
        return list(self._ask(Asked(queries_answered, asked, n_queries, total, self.number)))

    def split(self, text: Text, units: Any = None, *, too_long: str = "error") -> Document:
        found: Document = self._call(methodcaller("split", text, units, too_long=too_long))
        return found

    def remarks(self, document: Document, queries: Queries, logits: FloatArray) -> tuple[str, ...]:
        if not self.known.has_remarks:
            return ()
        return tuple(self._call(methodcaller("remarks", document, queries, logits)))

    def _call(self, call: Callable[[Classifier], Any]) -> Any:
        (found,) = self._ask(Asked(calls_answered, [call]))
        return found

    def _ask(self, content: Asked) -> Items:
        reply = self.ask(content)
        if isinstance(reply, SlalomError):
            raise reply
        answers: Items = reply
        return answers


def _run_in_worker(given: tuple[Outlined, Order, Sequence[Document]], ask: Ask) -> list[Result]:
    known, order, documents = given
    return run_local(OverPipe(known, ask), order, documents)


@dataclass(frozen=True, eq=False)
class Call:
    """What one worker has asked, and waits for."""

    content: Asked
    tell: Callable[[int], object]  # how many queries were answered
    reply: "Future[Any]" = field(default_factory=Future)


@dataclass(eq=False)
class CallQueue:
    """Where workers' calls come in, and are answered together."""

    classifier: Classifier
    threads: ThreadPoolExecutor | None  # that answer; None: whoever waits for results does
    calls: list[Call] = field(default_factory=list)
    events: "SimpleQueue[object]" = field(default_factory=SimpleQueue)  # a call or a task is done
    futures: "list[Future[Any]]" = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    problem: BaseException | None = None  # of the classifier, or of a progress function
    closed: bool = False

    def begin(
        self, order: Order, documents: Sequence[Document], tell: Callable[[int], object]
    ) -> "list[Future[Any]]":
        """Tasks for workers, a few of the documents each."""
        known = Outlined.of(self.classifier)
        n_each = min(PER_WORKER, -(-len(documents) // TASKS_PER_CHUNK))
        starts = range(0, len(documents), n_each)
        begun = [
            submit(
                _run_in_worker,
                (known, order, documents[at : at + n_each]),
                partial(self._reply, tell),
            )
            for at in starts
        ]
        self.futures = [future for future in self.futures if not future.done()] + begun
        for future in begun:
            future.add_done_callback(self.events.put)
        return begun

    def results(self, begun: "Sequence[Future[Any]]") -> list[Result]:
        """Of all documents of these tasks, once they are there."""
        while not all(future.done() for future in begun) and self.problem is None:
            self.events.get()
            if self.threads is None:
                self._take_turn()
        if self.problem is not None:
            raise self.problem
        return [result for future in begun for result in future.result()]

    def close(self) -> None:
        """Calls that still come get an error: nobody waits for their answers."""
        with self.lock:
            if self.closed:
                return
            self.closed = True
            left, self.calls = self.calls, []
        for call in left:
            call.reply.set_result(given_up())
        for future in self.futures:
            future.cancel()
        if self.threads is not None:
            self.threads.shutdown(cancel_futures=True)

    def _reply(self, tell: Callable[[int], object], content: Asked) -> Any:
        """In the thread of the worker that asks."""
        call = Call(content, tell)
        with self.lock:
            if self.closed:
                return given_up()
            self.calls.append(call)
            if self.threads is not None:
                self.threads.submit(self._take_turn)
        self.events.put(call)
        return call.reply.result()

    def _take_turn(self) -> None:
        """Answer what a turn has room for of the calls that have arrived when it comes."""
        calls = self._arrived()
        try:
            self._answer(calls)
        except BaseException as problem:
            self.problem = problem
            for call in calls:
                if not call.reply.done():
                    call.reply.set_result(given_up())
            self.events.put(problem)

    def _arrived(self) -> list[Call]:
        taken, room = [], TOKENS_PER_TURN
        with self.lock:
            while self.calls and room > 0:
                taken.append(self.calls.pop(0))
                room -= taken[-1].content.n_tokens
        return taken

    def _answer(self, calls: Sequence[Call]) -> None:
        """All together; where that fails each for itself, to see which of them it was."""
        try:
            answers = _answers(self.classifier, [call.content for call in calls])
        except SlalomError as problem:
            if len(calls) == 1:
                calls[0].reply.set_result(portable(problem))
            else:
                for call in calls:
                    self._answer([call])
            return
        for call, answer in zip(calls, answers, strict=True):
            if call.content.n_queries:
                call.tell(call.content.n_queries)
            call.reply.set_result(answer)


def _answers(classifier: Classifier, asked: Sequence[Asked]) -> list[Items]:
    """One call of the classifier for all that is asked in the same way."""
    found: list[list[Any]] = [[] for _ in asked]
    for way, number in dict.fromkeys((one.way, one.number) for one in asked):
        alike = [at for at, one in enumerate(asked) if (one.way, one.number) == (way, number)]
        items = [(at, item) for at in alike for item in asked[at].items]
        able = anew(classifier, number) if number else classifier
        for (at, _), answer in zip(items, way(able, [item for _, item in items]), strict=True):
            found[at].append(answer)
    return list(found)


def given_up() -> SlalomError:
    return ClassifierError("the work was given up: nobody waits for these answers")


@contextmanager
def call_queue(classifier: Classifier) -> Iterator[CallQueue]:
    """A queue that is closed in the end, whatever happens: also where a program ends before."""
    threads = ThreadPoolExecutor(THREADS_AT_DEVICE) if runs_elsewhere(classifier) else None
    queue = CallQueue(classifier, threads)
    atexit.register(queue.close)
    forget = atexit.unregister  # the module may be gone where a program ends in the middle
    try:
        yield queue
    finally:
        queue.close()
        forget(queue.close)
