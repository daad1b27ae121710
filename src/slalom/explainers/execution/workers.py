"""The same generators in worker processes, which yield over a pipe.

A worker runs them in step for a few documents at a time: it draws queries and fits; only what the
classifier is to answer comes here. Beside a device two calls are answered at a time, so that one
batch is made while another is computed; on a CPU the thread that waits for the results answers, one
after the other.
"""

import atexit
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from operator import methodcaller
from queue import SimpleQueue
from threading import Lock, Semaphore
from typing import Any

from slalom.classifiers.base import Classifier, Delegating, anew, knows_labels, runs_elsewhere
from slalom.document import Document, FloatArray, Queries, Text
from slalom.errors import ClassifierError, SlalomError
from slalom.explainers.base import Result
from slalom.explainers.execution.pool import Ask, cores, is_awake, portable, submit
from slalom.explainers.execution.steps import Order, Pair, run_local

WORTHWHILE = 8e7  # rows × features² of all documents; starting workers takes as long
PER_WORKER = 4  # documents at a time: asked together they fill a batch, fitted they take a second
TASKS_PER_CHUNK = 5  # at least: small chunks are shared, too
THREADS_AT_DEVICE = 2  # that answer: one batch is computed while the next is put together


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


@dataclass(frozen=True, eq=False)
class Asked:
    """What a worker asks: a call of one of the classifier's methods."""

    call: Callable[[Classifier], Any]
    n_queries: int = 0  # that it answers
    number: int = 0  # 0: as ever; else of the classifier anew, for the first, second, … time


class OverPipe(Delegating):
    """A classifier in a worker: what it reads is known here, what it says is asked for."""

    def __init__(self, outline: Any, ask: Ask, *, has_remarks: bool, number: int = 0) -> None:
        self.classifier = outline
        self.ask = ask
        self.has_remarks = has_remarks
        self.number = number

    def anew(self, number: int) -> "OverPipe":
        return OverPipe(self.classifier, self.ask, has_remarks=self.has_remarks, number=number)

    def logits(self, asked: Sequence[Pair]) -> list[FloatArray]:
        n_queries = sum(len(queries) for _, queries in asked)
        said: list[FloatArray] = self._ask(
            Asked(methodcaller("logits", asked), n_queries, self.number)
        )
        return said

    def split(self, text: Text, units: Any = None, *, too_long: str = "error") -> Document:
        found: Document = self._ask(Asked(methodcaller("split", text, units, too_long=too_long)))
        return found

    def remarks(self, document: Document, queries: Queries, logits: FloatArray) -> tuple[str, ...]:
        if not self.has_remarks:
            return ()
        return tuple(self._ask(Asked(methodcaller("remarks", document, queries, logits))))

    def _ask(self, content: Asked) -> Any:
        reply = self.ask(content)
        if isinstance(reply, SlalomError):
            raise reply
        return reply


def _run_in_worker(given: tuple[Any, bool, Order, Sequence[Document]], ask: Ask) -> list[Result]:
    outline, has_remarks, order, documents = given
    return run_local(OverPipe(outline, ask, has_remarks=has_remarks), order, documents)


Tell = Callable[[int], object]  # how many queries were answered


@dataclass(frozen=True, eq=False)
class Call:
    """What one worker has asked, and waits for."""

    answer: Callable[[], Any]
    reply: "Future[Any]" = field(default_factory=Future)


@dataclass(eq=False)
class CallQueue:
    """Where workers' calls come in, and are answered."""

    classifier: Classifier
    device: Semaphore | None  # lets workers' own threads answer; None: who waits for results does
    events: "SimpleQueue[Call | None]" = field(default_factory=SimpleQueue)  # None: a task is done
    futures: "list[Future[Any]]" = field(default_factory=list)
    lock: Lock = field(default_factory=Lock)
    problem: BaseException | None = None  # of the classifier, or of a progress function
    closed: bool = False

    def begin(
        self, order: Order, documents: Sequence[Document], tell: Tell | None
    ) -> "list[Future[Any]]":
        """Tasks for workers, a few of the documents each."""
        able: Any = self.classifier
        outline = replace(able.outline, name=able.name, labels=tuple(able.labels))
        known = outline, hasattr(able, "remarks"), order
        n_each = min(PER_WORKER, -(-len(documents) // TASKS_PER_CHUNK))
        begun = [
            submit(
                _run_in_worker, (*known, documents[at : at + n_each]), partial(self._reply, tell)
            )
            for at in range(0, len(documents), n_each)
        ]
        self.futures = [future for future in self.futures if not future.done()] + begun
        for future in begun:
            future.add_done_callback(lambda _: self.events.put(None))
        return begun

    def results(self, begun: "Sequence[Future[Any]]") -> list[Result]:
        """Of all documents of these tasks, once they are there."""
        while not all(future.done() for future in begun) and self.problem is None:
            call = self.events.get()
            if call is not None:
                call.reply.set_result(call.answer())
        if self.problem is not None:
            raise self.problem
        return [result for future in begun for result in future.result()]

    def close(self) -> None:
        """Calls that still come get an error: nobody waits for their answers."""
        with self.lock:
            if self.closed:
                return
            self.closed = True
        while not self.events.empty():
            call = self.events.get()
            if call is not None:
                call.reply.set_result(given_up())
        for future in self.futures:
            future.cancel()
        if self.device is not None:
            for _ in range(THREADS_AT_DEVICE):  # until those that answer are done
                self.device.acquire()
            self.device.release(THREADS_AT_DEVICE)

    def _reply(self, tell: Tell | None, content: Asked) -> Any:
        """In the thread of the worker that asks."""
        if self.device is not None:
            with self.device:
                return self._answer(tell, content)
        call = Call(partial(self._answer, tell, content))
        with self.lock:
            if self.closed:
                return given_up()
            self.events.put(call)
        return call.reply.result()

    def _answer(self, tell: Tell | None, content: Asked) -> Any:
        """What the classifier says, or an error for the worker to raise."""
        if self.closed or self.problem is not None:
            return given_up()
        number, classifier = content.number, self.classifier
        try:
            try:
                said = content.call(anew(classifier, number) if number else classifier)
            except SlalomError as problem:
                return portable(problem)
            if tell is not None and content.n_queries:
                tell(content.n_queries)
        except BaseException as problem:
            self.problem = problem
            self.events.put(None)
            return given_up()
        return said


def given_up() -> SlalomError:
    return ClassifierError("the work was given up: nobody waits for these answers")


@contextmanager
def call_queue(classifier: Classifier) -> Iterator[CallQueue]:
    """A queue that is closed in the end, whatever happens: also where a program ends before."""
    device = Semaphore(THREADS_AT_DEVICE) if runs_elsewhere(classifier) else None
    queue = CallQueue(classifier, device)
    atexit.register(queue.close)
    forget = atexit.unregister  # the module may be gone where a program ends in the middle
    try:
        yield queue
    finally:
        queue.close()
        forget(queue.close)
