"""The process that holds the model answers the queries of all workers, in large batches.

Every chunk of documents has a channel, on which its workers call, and a thread that waits for it.
A thread whose turn it is answers calls that have arrived by then, those of its own workers and
those of others that ask the same classifier: a GPU prefers a few large batches to many small ones.
It takes no more than fill some batches: the workers that are answered first fit while the next ones
are answered. Each thread learns how many of its chunk's queries were answered, and what failed.
"""

import os
import pickle
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from multiprocessing.connection import Client, Connection, Listener
from multiprocessing.util import Finalize
from queue import SimpleQueue
from threading import Lock, Semaphore, Thread
from typing import Any

import numpy as np

from slalom.classifiers.base import Classifier, defined_together
from slalom.document import END, Document, FloatArray, Queries
from slalom.errors import ClassifierError, SlalomError
from slalom.temporary import temporary_folder

WORKERS_AT_MOST = 512  # that may call at the same moment
BATCHES_AT_ONCE = 2  # one is answered while the next is put together; further calls gather
UNITS_PER_TURN = 2**19  # of all queries, shown or not: a few batches
UNITS_PER_TOKEN = 2  # of a row: about as many as a query shows it does not show
Pair = tuple[Document, Queries]

_opening = Lock()


@dataclass(frozen=True, eq=False)
class RowsAsked:
    """What a worker put together for its queries; only a classifier knows what rows are."""

    rows: Any  # with `n_tokens`
    n_queries: int


@dataclass(frozen=True)
class Channel:
    """How a worker reaches the thread that waits for it."""

    address: str
    key: bytes
    number: int

    def ask(self, queries: Sequence[Pair]) -> list[FloatArray]:
        """The logits from there; an error that was sent back is raised here."""
        pieces = [(document, _without_padding(rows)) for document, rows in queries]
        answers = self._answers([(one, rows) for one, parts in pieces for rows in parts])
        logits = iter(answers)
        return [np.concatenate([next(logits) for _ in parts]) for _, parts in pieces]

    def ask_rows(self, rows: Any, n_queries: int) -> FloatArray:
        """Likewise for rows that were put together here, where the classifier takes them."""
        (logits,) = self._answers([RowsAsked(rows, n_queries)])
        return logits

    def _answers(self, questions: Sequence[Pair | RowsAsked]) -> list[FloatArray]:
        answers: list[FloatArray] | SlalomError = self._reply_to(questions)
        if isinstance(answers, SlalomError):
            raise answers
        return answers

    def _reply_to(self, call: Any) -> Any:
        connection = _connected(self.address, self.key)
        try:
            connection.send((self.number, call))
            return connection.recv()
        except (EOFError, OSError) as problem:
            _connected.cache_clear()
            raise ClassifierError("the process that holds the model hung up") from problem


@dataclass(frozen=True)
class Call:
    """The queries of one worker, which waits for the reply."""

    connection: Connection
    questions: Sequence[Pair | RowsAsked]
    chunk: "ChunkQueue"

    @property
    def n_units(self) -> int:
        """Of all its queries, shown or not; of rows an estimate."""
        return sum(
            UNITS_PER_TOKEN * one.rows.n_tokens if isinstance(one, RowsAsked) else one[1].size
            for one in self.questions
        )

    @property
    def n_queries(self) -> int:
        return sum(
            one.n_queries if isinstance(one, RowsAsked) else len(one[1]) for one in self.questions
        )

    def reply(self, answers: list[FloatArray] | SlalomError) -> None:
        if isinstance(answers, SlalomError):
            answers = _portable(answers)
        elif self.chunk.watched:
            self.chunk.events.put(QueriesAnswered(self.n_queries))
        with suppress(OSError):  # the worker is dead, which its future says
            self.connection.send(answers)


@dataclass(frozen=True)
class QueriesAnswered:
    """So many queries of a chunk were answered."""

    n_queries: int


@dataclass(frozen=True)
class CallArrived:
    """A call is there, or was: another thread may have answered it."""


@dataclass(eq=False)
class ChunkQueue:
    """A chunk of documents: its open calls, and what its thread is to know."""

    classifier: Classifier
    keep_errors: bool  # a call that cannot be answered gets the error, and no other one does
    watched: bool = True  # its thread wants to know how many queries were answered
    events: "SimpleQueue[CallArrived | QueriesAnswered | Future[Any]]" = field(
        default_factory=SimpleQueue
    )
    calls: list[Call] = field(default_factory=list)
    alone: bool = False  # a batch failed: its calls are answered one by one, to see which of them


@dataclass
class AnswerServer:
    """Takes calls from all workers, and answers them in the threads that wait."""

    listener: Listener
    key: bytes
    numbers: Iterator[int] = field(default_factory=count)
    chunks: dict[int, ChunkQueue] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)
    turns: Semaphore = field(default_factory=lambda: Semaphore(BATCHES_AT_ONCE))

    @contextmanager
    def channel(self, chunk: ChunkQueue) -> Iterator[Channel]:
        """For one chunk; calls after its end get an error."""
        number = next(self.numbers)
        with self.lock:
            self.chunks[number] = chunk
        try:
            yield Channel(str(self.listener.address), self.key, number)
        finally:
            with self.lock:
                del self.chunks[number]
            for left in chunk.calls:
                left.reply(given_up())

    def answer(self, chunk: ChunkQueue) -> None:
        """What a turn has room for of the calls that have arrived when it comes, together."""
        with self.turns:
            calls = self._take_calls(chunk)
            if chunk.alone or not calls:
                _answer_alone(chunk, calls)
                return
            try:
                logits = _logits_of(chunk.classifier, calls)
            except BaseException as problem:
                self._put_back(calls)
                if isinstance(problem, Exception):
                    return  # each chunk finds out for itself which call failed
                raise
        for call, answers in zip(calls, logits, strict=True):
            call.reply(answers)

    def accept_workers(self) -> None:
        """For as long as the process lives, a thread for each worker that calls."""
        while True:
            connection = self.listener.accept()
            Thread(target=self._listen, args=(connection,), daemon=True).start()

    def _listen(self, connection: Connection) -> None:
        with connection, suppress(EOFError, OSError):  # the worker is gone, which its future says
            while True:
                self._receive(connection, *connection.recv())

    def _receive(self, connection: Connection, number: int, call: Any) -> None:
        with self.lock:
            chunk = self.chunks.get(number)
            if chunk is not None:
                chunk.calls.append(Call(connection, call, chunk))
        if chunk is None:
            connection.send(given_up())
        else:
            chunk.events.put(CallArrived())

    def _take_calls(self, chunk: ChunkQueue) -> list[Call]:
        """Its own calls, then those of others who ask the same classifier, while there is room.

        At least one of its own, if there is any: as many as it was told of are answered.
        """
        calls: list[Call] = []
        room = UNITS_PER_TURN
        with self.lock:
            others = [
                one
                for one in self.chunks.values()
                if not (chunk.alone or one.alone) and one.classifier is chunk.classifier
            ]
            for one in (chunk, *others):
                while one.calls and room > 0:
                    calls.append(one.calls.pop(0))
                    room -= calls[-1].n_units
        return calls

    def _put_back(self, calls: Sequence[Call]) -> None:
        """For each chunk to see for itself; nobody would see to calls of one that has ended."""
        with self.lock:
            still_open = [call for call in calls if call.chunk in self.chunks.values()]
            ended = [call for call in calls if call.chunk not in self.chunks.values()]
            for call in still_open:
                call.chunk.alone = True
                call.chunk.calls.append(call)
        for call in still_open:
            call.chunk.events.put(CallArrived())
        for call in ended:
            call.reply(given_up())


def _without_padding(queries: Queries) -> list[Queries]:
    """The same rows in their order: the full text comes first and may be far wider than others."""
    shown = (queries[1:] != END).any(axis=0)
    width = int(shown.nonzero()[0].max(initial=0)) + 1
    if len(queries) < 2 or width == queries.shape[1]:
        return [queries]
    return [queries[:1], queries[1:, :width]]


def _logits_of(classifier: Classifier, calls: Sequence[Call]) -> list[list[FloatArray]]:
    """Those who ask one classifier all send rows, or none does."""
    questions: list[Any] = [question for call in calls for question in call.questions]
    rows = [question.rows for question in questions if isinstance(question, RowsAsked)]
    asked: Any = classifier
    answered = asked.row_logits(rows) if rows else classifier.logits(questions)
    logits = iter(answered)
    return [[next(logits) for _ in call.questions] for call in calls]


def takes_rows(classifier: Classifier) -> bool:
    """Whether workers may send it rows that they put together."""
    return defined_together(classifier, "logits", "row_logits")


def _answer_alone(chunk: ChunkQueue, calls: Sequence[Call]) -> None:
    """Call by call; one that cannot be answered gets the error, and no other one does."""
    for number, call in enumerate(calls):
        try:
            (logits,) = _logits_of(chunk.classifier, [call])
        except BaseException as problem:
            if chunk.keep_errors and isinstance(problem, SlalomError):
                call.reply(problem)
                continue
            for left in calls[number:]:  # one reply each, or the next call would get it too
                left.reply(given_up())
            raise
        call.reply(logits)


def _portable(problem: SlalomError) -> SlalomError:
    """The error, or one that says the same where a class of the caller's own cannot be sent."""
    try:
        pickle.loads(pickle.dumps(problem))
    except Exception:
        return ClassifierError(str(problem))
    return problem


def given_up() -> SlalomError:
    return ClassifierError("the work was given up: nobody waits for these answers")


def answer_server() -> AnswerServer:
    """The one of this process, whichever thread asks first."""
    with _opening:
        return _opened()


@cache
def _opened() -> AnswerServer:
    key = os.urandom(16)
    opened = AnswerServer(Listener(_address(), backlog=WORKERS_AT_MOST, authkey=key), key)
    Thread(target=opened.accept_workers, daemon=True, name="slalom-answers").start()
    return opened


def _address() -> str | None:
    """A name for a socket; left to themselves, those of killed programs would stay for ever."""
    if os.name != "posix":
        return None
    kept = ExitStack()
    folder = kept.enter_context(temporary_folder())
    Finalize(None, kept.close, exitpriority=-1)  # after the socket's own, which has 0
    return str(folder / "answers")


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
