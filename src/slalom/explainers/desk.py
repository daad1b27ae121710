"""Where questions of worker processes are answered: from all of them together.

Every chunk of documents has a line, on which its workers call, and a thread that waits for it.
A thread that has its turn answers what has come by then, of its own workers and of all others
that ask the same classifier: a device likes a few large batches better than many small ones.
Each thread is told how many of its questions were answered, and what broke.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from multiprocessing.connection import Client, Connection, Listener
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import Any

from slalom.classifiers.base import Classifier
from slalom.document import Document, FloatArray, Queries
from slalom.errors import ClassifierError, SlalomError

WORKERS_AT_MOST = 512  # that may call at the same moment
TURNS = 2  # one answers while the next puts its questions together; others gather more of them
Question = Sequence[tuple[Document, Queries]]

_opening = Lock()


@dataclass(frozen=True)
class Line:
    """How a worker reaches the thread that waits for it."""

    address: str
    key: bytes
    number: int

    def ask(self, asked: Question) -> list[FloatArray]:
        """What is said there; an error that was told is raised here."""
        connection = _connected(self.address, self.key)
        connection.send((self.number, list(asked)))
        told: list[FloatArray] | SlalomError = connection.recv()
        if isinstance(told, SlalomError):
            raise told
        return told


@dataclass(frozen=True)
class Call:
    """What one worker wants to know; it waits until it is told."""

    connection: Connection
    asked: Question
    waiter: "Waiter"

    def tell(self, answers: list[FloatArray] | SlalomError) -> None:
        if not isinstance(answers, SlalomError):
            self.waiter.coming.put(Answered(sum(len(queries) for _, queries in self.asked)))
        with suppress(OSError):  # the worker is dead, which its future says
            self.connection.send(answers)


@dataclass(frozen=True)
class Answered:
    """So many questions of a chunk were."""

    n_queries: int


@dataclass(frozen=True)
class Came:
    """A call is there, or was: another thread may have answered it."""


@dataclass(eq=False)
class Waiter:
    """A chunk whose workers call: what has come, and who can answer."""

    classifier: Classifier
    keep_errors: bool  # a question that cannot be answered is told so, and no other one
    coming: "SimpleQueue[Came | Answered | Future[Any]]" = field(default_factory=SimpleQueue)
    calls: list[Call] = field(default_factory=list)
    alone: bool = False  # something broke: it finds out by itself whose fault it is


@dataclass
class Desk:
    """Takes questions from all workers and lays them out for the threads that answer."""

    listener: Listener
    key: bytes
    numbers: Iterator[int] = field(default_factory=count)
    waiting: dict[int, Waiter] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    turns: Semaphore = field(default_factory=lambda: Semaphore(TURNS))

    @contextmanager
    def line(self, waiter: Waiter) -> Iterator[Line]:
        """For one chunk; who calls after its end is told that nobody waits."""
        number = next(self.numbers)
        with self.lock:
            self.waiting[number] = waiter
        try:
            yield Line(str(self.listener.address), self.key, number)
        finally:
            with self.lock:
                del self.waiting[number]
            for left in waiter.calls:
                left.tell(_nobody_waits())

    def answer(self, waiter: Waiter) -> None:
        """What has come when the turn comes, in one go."""
        with self.turns:
            calls = self._taken(waiter)
            if waiter.alone or not calls:
                _answer(waiter, calls)
                return
            try:
                said = _said(waiter.classifier, calls)
            except BaseException as problem:
                self._give_back(calls)
                if isinstance(problem, Exception):
                    return  # each chunk asks for itself what is wrong
                raise
        for call, answers in zip(calls, said, strict=True):
            call.tell(answers)

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
            with self.lock:
                waiter = self.waiting.get(number)
                if waiter is not None:
                    waiter.calls.append(Call(connection, asked, waiter))
            if waiter is None:
                connection.send(_nobody_waits())
            else:
                waiter.coming.put(Came())

    def _taken(self, waiter: Waiter) -> list[Call]:
        """Its own calls, and those of others who ask the same classifier."""
        with self.lock:
            asking = [
                one
                for one in self.waiting.values()
                if one is waiter
                or (not (waiter.alone or one.alone) and one.classifier is waiter.classifier)
            ]
            calls = [call for one in asking for call in one.calls]
            for one in asking:
                one.calls.clear()
        return calls

    def _give_back(self, calls: Sequence[Call]) -> None:
        with self.lock:
            for call in calls:
                call.waiter.alone = True
                call.waiter.calls.append(call)
        for call in calls:
            call.waiter.coming.put(Came())


def _said(classifier: Classifier, calls: Sequence[Call]) -> list[list[FloatArray]]:
    said = iter(classifier.logits([pair for call in calls for pair in call.asked]))
    return [[next(said) for _ in call.asked] for call in calls]


def _answer(waiter: Waiter, calls: Sequence[Call]) -> None:
    """Those of one chunk; a question that cannot be answered is told so, and no other one."""
    for number, call in enumerate(calls):
        try:
            (said,) = _said(waiter.classifier, [call])
        except BaseException as problem:
            if waiter.keep_errors and isinstance(problem, SlalomError):
                call.tell(problem)
                continue
            for left in calls[number:]:  # each call is told once, or the next one gets it too
                left.tell(_nobody_waits())
            raise
        call.tell(said)


def _nobody_waits() -> SlalomError:
    return ClassifierError("the work was given up: nobody waits for these answers")


def desk() -> Desk:
    """The one of this process, whichever thread asks first."""
    with _opening:
        return _opened()


@cache
def _opened() -> Desk:
    key = os.urandom(16)
    opened = Desk(Listener(backlog=WORKERS_AT_MOST, authkey=key), key)
    Thread(target=opened.welcome, daemon=True, name="slalom-desk").start()
    return opened


def _reopen() -> None:
    _opened.cache_clear()
    _opening.release()


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(
        before=_opening.acquire,
        after_in_parent=_opening.release,
        after_in_child=_reopen,
    )


@cache
def _connected(address: str, key: bytes) -> Connection:
    """A worker's own connection, kept while it lives."""
    return Client(address, authkey=key)
