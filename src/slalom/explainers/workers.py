"""Documents through a method, in this process or in workers whose queries are answered here.

A GPU answers faster than one process can sample and fit: worker processes each run the whole
method on a few documents at a time, and send their queries to the process that holds the model
(`RemoteClassifier`, answering.py). The same code runs in both places, so an explanation does not
depend on where it was made.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from queue import Empty
from typing import Any

from slalom.classifiers.base import Classifier, Delegating, runs_elsewhere
from slalom.document import Document, FloatArray, Queries
from slalom.explainers.answering import (
    CallArrived,
    Channel,
    ChunkQueue,
    QueriesAnswered,
    answer_server,
    given_up,
    takes_rows,
)
from slalom.explainers.base import AskingMethod, Explainer, Request, Result
from slalom.explainers.execution.driver import explained_here
from slalom.explainers.phrases import ByPhrases
from slalom.explainers.pipe import Watched, nobody_waits
from slalom.surrogates.pool import submit, worthwhile

SECONDS_BETWEEN_LOOKS = 0.5  # whether anybody still waits
PER_WORKER = 4  # documents at a time: asked together they fill a batch, fitted they take a second
TASKS_PER_CHUNK = 5  # at least: small chunks are shared, too


@dataclass(frozen=True)
class Task:
    """What is to be done with a few documents."""

    explainer: Explainer
    documents: Sequence[Document]
    request: Request
    keep_errors: bool

    def shared(self) -> list["Task"]:
        """The same for a few of the documents each."""
        return self.parts(min(PER_WORKER, -(-len(self.documents) // TASKS_PER_CHUNK)))

    def parts(self, n_documents: int) -> list["Task"]:
        """The same for so many of the documents each."""
        starts = range(0, len(self.documents), n_documents)
        return [
            replace(self, documents=self.documents[start : start + n_documents]) for start in starts
        ]


class RemoteClassifier(Delegating):
    """A classifier in a worker: it knows what the model reads, and asks the server for logits."""

    def __init__(
        self, classifier: Classifier, channel: Channel, *, sends_rows: bool = False
    ) -> None:
        self.classifier = classifier
        self.channel = channel
        self.sends_rows = sends_rows

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        if not self.sends_rows:
            return self.channel.ask(asked)
        n_queries = sum(len(queries) for _, queries in asked)
        outline: Any = self.classifier
        return list(outline.answered(asked, lambda rows: self.channel.ask_rows(rows, n_queries)))


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
    if workers_pay(classifier, chunk):
        return _by_workers(classifier, chunk)
    return _here(classifier, chunk)


def _here(classifier: Classifier, task: Task) -> list[Result]:
    return explained_here(
        classifier,
        task.explainer,
        task.documents,
        request=task.request,
        keep_errors=task.keep_errors,
    )


def workers_pay(classifier: Classifier, task: Task) -> bool:
    """Whether cores are free, the method needs answers only, and there is enough to do."""
    able = (
        len(task.documents) > 1
        and runs_elsewhere(classifier)
        and isinstance(task.explainer, AskingMethod)
        and not isinstance(task.explainer, ByPhrases)
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
    plain, progress = _unwatched(classifier)
    watched = isinstance(classifier, Watched)
    queue, server = ChunkQueue(plain, task.keep_errors, watched), answer_server()
    with server.channel(queue) as channel:
        remote = RemoteClassifier(
            outline,
            channel,
            sends_rows=takes_rows(plain),
        )
        futures = [submit(_explained_there, (remote, part)) for part in task.shared()]
        try:
            for future in futures:
                future.add_done_callback(queue.events.put)
            n_open = len(futures)
            while n_open:
                event = _next_event(queue)
                if isinstance(event, CallArrived):
                    server.answer(queue)
                elif isinstance(event, QueriesAnswered):
                    progress(event.n_queries)
                else:
                    event.result()  # raises what failed
                    n_open -= 1
        finally:
            for future in futures:
                future.cancel()
    return [result for future in futures for result in future.result()]


def _next_event(queue: ChunkQueue) -> CallArrived | QueriesAnswered | Future[Any]:
    """What a chunk's thread is to do; an error once nobody waits for the chunk."""
    while not nobody_waits():
        with suppress(Empty):
            return queue.events.get(timeout=SECONDS_BETWEEN_LOOKS)
    raise given_up()


def _unwatched(classifier: Any) -> tuple[Classifier, Callable[[int], object]]:
    """The classifier that all chunks share, and where to report a chunk's own progress."""
    if isinstance(classifier, Watched):
        return classifier.classifier, classifier.part.answered
    return classifier, lambda n_queries: None


def _explained_there(given: tuple[RemoteClassifier, Task]) -> list[Result]:
    classifier, task = given
    return _here(classifier, task)
