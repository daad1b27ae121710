"""Jobs: run in threads, a few at a time, and stopped when nobody waits for them.

    queue.run(job)   an event per stage: waiting, progress, rough, done or failed

A cancelled job stops at its next chunk of queries. A long text is first read once to measure the
seconds per token, and the method's queries are counted without making them. If they would take too
long and the caller gave no number of queries, fewer are made, and the explanation says so.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Event
from time import monotonic
from typing import Any

from slalom.classifiers.base import unpaid
from slalom.document import Document
from slalom.explainers.dry_run import dry_run
from slalom.explainers.execution.steps import Order, run_local
from slalom.explainers.phrases import ByPhrases
from slalom.explainers.splitting import document_of
from slalom.explainers.surrogate import SurrogateExplainer
from slalom.explanation import Explanation
from slalom.web.limits import Limits, Refusal, busy
from slalom.web.models import ChunkedClassifier, Model, StoredExplanation
from slalom.web.requests import ExplanationRequest

LONG = 500  # tokens; the time for longer texts is estimated first
MIN_PER_UNIT = 2  # queries, however long they take


@dataclass(frozen=True, eq=False)
class QueryPlan:
    """How many queries there will be for a document, and how long they take."""

    document: Document  # with a note if there are fewer queries than usual
    n_queries: int | None  # None: the method chooses
    expected: int
    seconds: float | None = None  # None: the text is short


def plan_of(wanted: ExplanationRequest, document: Document, limits: Limits) -> QueryPlan:
    asked = wanted.asked.n_queries
    expected = asked or wanted.asked.repeats * wanted.method.budget(document)
    n_queries = limits.queries if expected > limits.queries else asked
    pace = _pace(wanted.model, document)
    if pace is None or not isinstance(wanted.method, SurrogateExplainer):
        return QueryPlan(document, n_queries, expected)
    cost = dry_run(
        wanted.method, wanted.model.classifier, document, request=wanted.request(n_queries)
    )
    plan = QueryPlan(document, n_queries, cost.n_queries, pace * cost.n_tokens)
    return plan if asked else _shortened(plan, limits.soon)


def _pace(model: Model, document: Document) -> float | None:
    """Seconds per token; None: the text is short, or queries cost money."""
    full = document.full()
    n_tokens = int(document.n_tokens(full)[0])
    if n_tokens < LONG or unpaid(model.classifier, document, full) is not None:
        return None
    with model.lock:
        begun = monotonic()
        model.classifier.logits([(document, full)])
        return (monotonic() - begun) / n_tokens


def _shortened(plan: QueryPlan, soon: float) -> QueryPlan:
    """The plan, cut to as many queries as take `soon` seconds."""
    document, usual, seconds = plan.document, plan.expected, plan.seconds or 0.0
    fewest = min(usual, MIN_PER_UNIT * document.n_features)
    n_queries = max(fewest, int(usual * soon / max(seconds, soon)))
    if n_queries >= usual:
        return plan
    note = (
        f"{n_queries} queries were allowed instead of {usual}, which would have taken about "
        f"{seconds:.0f} s here: set the number of queries to allow more"
    )
    noted = replace(document, notes=(*document.notes, note))
    return QueryPlan(noted, n_queries, n_queries, seconds * n_queries / usual)


ROUGH = 60  # queries of the rough explanation that is shown first
WORTH_A_ROUGH_ANSWER = 3 * ROUGH  # of the whole budget

Check = Callable[[], None]  # called now and then; raises if nobody waits, or for too long
Emit = Callable[[str, Any], None]  # an event: its kind and content


class Cancelled(Exception):  # noqa: N818  nobody waits for the result any more
    """The job was cancelled."""


Work = Callable[[Check, Emit], Any]


@dataclass(frozen=True, eq=False)
class Job:
    """Work that may take so many seconds; `cancel` may be called from any thread."""

    work: Work
    seconds: float
    cancelled: Event = field(default_factory=Event)

    def cancel(self) -> None:
        self.cancelled.set()

    def run(self, emit: Emit) -> Any:
        """Do the work; called in a thread of its own."""
        end = monotonic() + self.seconds

        def check() -> None:
            if self.cancelled.is_set():
                raise Cancelled
            if monotonic() > end:
                sentence = f"this took more than {self.seconds:.0f} s: ask for less"
                raise Refusal(503, "too-slow", sentence)

        check()
        try:
            return self.work(check, emit)
        except StopIteration as problem:  # would never arrive: asyncio's futures refuse it
            raise RuntimeError("an iteration ended inside of the work") from problem


@dataclass(frozen=True)
class ExplanationWork:
    """One explanation; if it takes many queries, a rough one comes first."""

    wanted: ExplanationRequest
    limits: Limits
    rough_first: bool

    def __call__(self, check: Check, emit: Emit) -> StoredExplanation:
        wanted = self.wanted
        classifier, too_long = wanted.model.classifier, wanted.asked.too_long
        document = document_of(classifier, wanted.text, wanted.units, too_long=too_long)
        if document.n_units > self.limits.units:
            raise Refusal(
                413,
                "too-long",
                f"the text has {document.n_units} units: at most {self.limits.units} are "
                "explained here; take sentences as units, or fewer words",
            )
        plan = plan_of(wanted, document, self.limits)
        document, expected = plan.document, plan.expected
        if plan.seconds is not None:
            emit("progress", {"done": 0, "total": expected, "seconds": round(plan.seconds)})

        def explained(n_queries: int | None) -> StoredExplanation:
            n_done = 0

            def answered(n: int) -> None:
                nonlocal n_done
                check()
                n_done += n
                if n:
                    emit("progress", {"done": n_done, "total": max(expected, n_done)})

            watched = ChunkedClassifier(wanted.model, answered)
            return self._finished(self._explained(watched, document, n_queries), document)

        if self._starts_rough(expected):
            emit("rough", explained(ROUGH))
        return explained(plan.n_queries)

    def _finished(self, explanation: Explanation, document: Document) -> StoredExplanation:
        """The explanation with the document of its own units: phrases are found on the way."""
        if document.spans != explanation.spans:
            too_long = self.wanted.asked.too_long
            document = self.wanted.model.classifier.split(
                explanation.text, explanation.spans, too_long=too_long
            )
        return StoredExplanation(explanation, (self.wanted.model, document))

    def _starts_rough(self, n_queries: int) -> bool:
        method, once = self.wanted.method, self.wanted.asked.repeats == 1
        if isinstance(method, ByPhrases) or method.looks_inside or not (self.rough_first and once):
            return False
        return n_queries >= WORTH_A_ROUGH_ANSWER

    def _explained(
        self, watched: ChunkedClassifier, document: Document, n_queries: int | None
    ) -> Explanation:
        wanted = self.wanted
        order = Order(wanted.method, wanted.request(n_queries))
        if wanted.method.looks_inside:
            watched.answered(0)
            with wanted.model.lock:  # nobody else may use the model meanwhile
                (found,) = run_local(wanted.model.classifier, order, [document])
        else:
            (found,) = run_local(watched, order, [document])
        assert isinstance(found, Explanation)  # errors are raised
        return found


class JobQueue:
    """Runs a few jobs at a time; a limited number may wait."""

    def __init__(self, running: int, waiting: int) -> None:
        self.most_waiting = waiting
        self.n_running = self.n_waiting = 0
        self._room = asyncio.Semaphore(running)
        self._threads = ThreadPoolExecutor(running, thread_name_prefix="working")
        self._jobs: set[Job] = set()

    def check_room(self) -> None:
        """Refuse now what would be refused later because too many are waiting."""
        if self._room.locked() and self.n_waiting >= self.most_waiting:
            raise busy()

    async def run(self, job: Job) -> AsyncIterator[tuple[str, Any]]:
        """The events of a job as they happen; leaving early cancels it."""
        loop, events = asyncio.get_running_loop(), asyncio.Queue[tuple[str, Any]]()

        def emit(kind: str, content: Any) -> None:
            loop.call_soon_threadsafe(events.put_nowait, (kind, content))

        if self._room.locked():
            yield "waiting", {"ahead": self.n_waiting}
        await self._seat()
        future = loop.run_in_executor(self._threads, job.run, emit)
        self._jobs.add(job)
        future.add_done_callback(lambda done: self._leave(job, done))
        future.add_done_callback(lambda done: events.put_nowait(("end", None)))
        try:
            while (event := await events.get())[0] != "end":
                yield event
            yield "done", future.result()
        finally:
            job.cancel()

    async def _seat(self) -> None:
        self.check_room()
        self.n_waiting += 1
        try:
            await self._room.acquire()
        finally:
            self.n_waiting -= 1
        self.n_running += 1

    def _leave(self, job: Job, done: "asyncio.Future[Any]") -> None:
        """Free the place when the thread has ended, not when the client has gone."""
        self.n_running -= 1
        self._jobs.discard(job)
        self._room.release()
        if not done.cancelled():
            done.exception()  # retrieved here, since nobody else may be left to do so

    def close(self) -> None:
        """Cancel all jobs and start no new ones."""
        for job in self._jobs:
            job.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
