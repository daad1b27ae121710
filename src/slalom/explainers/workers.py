"""Documents through a method, here or by worker processes whose questions are answered here.

A model on a device answers sooner than one process can think of questions: to draw them, to fit
and to read scores off takes ten times as long. There each worker runs the method whole, for a
few documents at a time, with a classifier that sends its questions back (`Asking`); the thread that
waits for a chunk of documents answers what has come from all its workers together. The same
code runs in both places, so what a document is told does not depend on where it was explained.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import count
from multiprocessing.connection import Client, Connection, Listener
from queue import Empty, SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import Any

from slalom.classifiers.base import Classifier, Delegating, runs_elsewhere
from slalom.document import Document, FloatArray, Queries
from slalom.errors import ClassifierError, SlalomError
from slalom.explainers.base import Explainer, Request, Result
from slalom.surrogates.pool import submit, worthwhile

WORKERS_AT_MOST = 128  # that may call at the same moment
PER_WORKER = 4  # documents at a time: asked together they fill a batch, fitted they take a second
TURNS = 2  # one answers while the next puts its questions together; others gather more of them


@dataclass(frozen=True)
class Task:
    """What is to be done with a few documents."""

    explainer: Explainer
    documents: Sequence[Document]
    request: Request
    keep_errors: bool

    def parts(self, n_documents: int) -> list["Task"]:
        """The same for so many of the documents each."""
        starts = range(0, len(self.documents), n_documents)
        return [
            replace(self, documents=self.documents[start : start + n_documents]) for start in starts
        ]


@dataclass(frozen=True)
class Line:
    """How a worker reaches the thread that answers its questions."""

    address: str
    key: bytes
    number: int


@dataclass(frozen=True)
class Call:
    """What one worker wants to know; it waits until it is told."""

    connection: Connection
    asked: Sequence[tuple[Document, Queries]]

    def tell(self, answers: list[FloatArray] | SlalomError) -> None:
        with suppress(OSError):  # the worker is dead, which its future says
            self.connection.send(answers)


class Asking(Delegating):
    """A classifier in a worker: it knows what would be read, and asks here what is said."""

    def __init__(self, classifier: Classifier, line: Line) -> None:
        self.classifier = classifier
        self.line = line

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        connection = _connected(self.line.address, self.line.key)
        connection.send((self.line.number, list(asked)))
        told: list[FloatArray] | SlalomError = connection.recv()
        if isinstance(told, SlalomError):
            raise told
        return told


def explained(
    classifier: Classifier,
    explainer: Explainer,
    documents: Sequence[Document],
    *,
    request: Request,
    keep_errors: bool = False,
) -> list[Result]:
    """One chunk of documents; an error stands in the place of what could not be explained."""
    chunk = Task(explainer, documents, request, keep_errors)
    if _workers_pay(classifier, chunk):
        return _by_workers(classifier, chunk)
    return _here(classifier, chunk)


def _here(classifier: Classifier, task: Task) -> list[Result]:
    """All together; where one of them fails and the others shall not, each for itself."""
    if not task.documents:
        return []
    request = task.request
    try:
        return list(
            task.explainer.explain(
                classifier,
                task.documents,
                target=request.target,
                n_queries=request.n_queries,
                seed=request.seed,
            )
        )
    except SlalomError as problem:
        if not task.keep_errors:
            raise
        if len(task.documents) == 1:
            return [problem]
    return [result for one in task.parts(1) for result in _here(classifier, one)]


def _workers_pay(classifier: Classifier, task: Task) -> bool:
    """Whether cores are free, the method needs answers only, and there is enough to do."""
    able = (
        len(task.documents) > 1
        and runs_elsewhere(classifier)
        and getattr(task.explainer, "only_asks", False)
        and _has_outline(classifier, task.documents[0])
    )
    return able and worthwhile(
        [(task.request.planned(task.explainer, one), one.n_features) for one in task.documents]
    )


def _has_outline(classifier: Any, document: Document) -> bool:
    """Whether a worker would know what is read; a wrapper may read otherwise than what it wraps."""
    outline = getattr(classifier, "outline", None)
    if outline is None:
        return False
    full = document.full()
    return bool(outline.seen(document, full) == classifier.seen(document, full))


def _by_workers(classifier: Any, task: Task) -> list[Result]:
    outline = replace(classifier.outline, name=classifier.name, labels=tuple(classifier.labels))
    with _desk().line() as (line, coming):
        asking = Asking(outline, line)
        futures = [submit(_explained_there, (asking, part)) for part in task.parts(PER_WORKER)]
        try:
            for future in futures:
                future.add_done_callback(coming.put)
            n_open = len(futures)
            while n_open:
                came = [coming.get()]
                with _desk().turns if isinstance(came[0], Call) else nullcontext():
                    came += _rest(coming)  # what came while others had their turns
                    calls = [one for one in came if isinstance(one, Call)]
                    _answer(classifier.logits, calls, keep_errors=task.keep_errors)
                for future in came:
                    if isinstance(future, Future):
                        future.result()  # what broke is said now
                        n_open -= 1
        finally:
            for future in futures:
                future.cancel()
    return [result for future in futures for result in future.result()]


def _explained_there(given: tuple[Asking, Task]) -> list[Result]:
    classifier, task = given
    return _here(classifier, task)


def _rest(coming: "SimpleQueue[Any]") -> list[Any]:
    """What there is by now."""
    came = []
    with suppress(Empty):
        while True:
            came.append(coming.get_nowait())
    return came


def _answer(
    ask: Callable[[Sequence[tuple[Document, Queries]]], list[FloatArray]],
    calls: Sequence[Call],
    *,
    keep_errors: bool,
) -> None:
    """All in one go; a question that cannot be answered is told so, and no other one."""
    if not calls:
        return
    try:
        said = iter(ask([pair for call in calls for pair in call.asked]))
    except BaseException as problem:
        if not keep_errors or not isinstance(problem, SlalomError):
            for call in calls:
                call.tell(_nobody_waits())
            raise
        if len(calls) == 1:
            calls[0].tell(problem)
            return
        for call in calls:
            _answer(ask, [call], keep_errors=True)
        return
    for call in calls:
        call.tell([next(said) for _ in call.asked])


@dataclass
class Desk:
    """Takes questions from all workers and lays them out for the threads that answer."""

    listener: Listener
    key: bytes
    numbers: Iterator[int] = field(default_factory=count)
    waiting: dict[int, "SimpleQueue[Any]"] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    turns: Semaphore = field(default_factory=lambda: Semaphore(TURNS))

    @contextmanager
    def line(self) -> Iterator[tuple[Line, "SimpleQueue[Any]"]]:
        """For one chunk; who calls after its end is told that nobody waits."""
        number, coming = next(self.numbers), SimpleQueue[Any]()
        self.waiting[number] = coming
        try:
            yield Line(str(self.listener.address), self.key, number), coming
        finally:
            with self.lock:
                del self.waiting[number]
            while not coming.empty():
                left = coming.get()
                if isinstance(left, Call):
                    left.tell(_nobody_waits())

    def welcome(self) -> None:
        """For as long as the process lives, a thread for each worker that calls."""
        while True:
            connection = self.listener.accept()
            Thread(target=self._listen, args=(connection,), daemon=True).start()

    def _listen(self, connection: Connection) -> None:
        while True:
            try:
                number, asked = connection.recv()
            except (EOFError, OSError):  # the worker is gone
                return
            call = Call(connection, asked)
            with self.lock:
                coming = self.waiting.get(number)
                if coming is not None:
                    coming.put(call)
            if coming is None:
                call.tell(_nobody_waits())


def _nobody_waits() -> SlalomError:
    return ClassifierError("the work was given up: nobody waits for these answers")


@cache
def _desk() -> Desk:
    key = os.urandom(16)
    desk = Desk(Listener(backlog=WORKERS_AT_MOST, authkey=key), key)
    Thread(target=desk.welcome, daemon=True, name="slalom-desk").start()
    return desk


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_desk.cache_clear)


@cache
def _connected(address: str, key: bytes) -> Connection:
    """A worker's own connection, kept while it lives."""
    return Client(address, authkey=key)
