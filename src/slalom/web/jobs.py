"""Work being done: in threads, few at a time, watched, and stopped when nobody waits.

    bench.work(task)   an event per stage: waiting, progress, rough, done or failed

A task that is cancelled stops at its next chunk of queries. A long text is read once, which tells
the seconds per token; what the method would ask is counted without asking it. Where that takes too
long and the caller did not say how many queries to ask, fewer are asked, and the explanation says
so.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from threading import Event
from time import monotonic
from typing import Any, Protocol

from slalom.classifiers.base import unpaid
from slalom.document import Document
from slalom.explainers.dry_run import dry_run
from slalom.explainers.execution.steps import Order, run_local
from slalom.explainers.phrases import ByPhrases
from slalom.explainers.splitting import document_of
from slalom.explainers.surrogate import SurrogateExplainer
from slalom.explanation import Explanation
from slalom.views.record import record
from slalom.web.kept import Kept, Made
from slalom.web.limits import Limits, Refusal, busy
from slalom.web.models import Model, Watched
from slalom.web.requests import ExplanationRequest

LONG = 500  # tokens; how long a longer text will take is found out first
MIN_PER_UNIT = 2  # queries, however long they take


@dataclass(frozen=True, eq=False)
class Plan:
    """What will be asked about a document."""

    document: Document  # with a note where fewer queries are asked than usual
    n_queries: int | None  # None: as many as the method likes
    expected: int
    seconds: float | None = None  # None: not long

    def as_event(self) -> dict[str, int]:
        return {"done": 0, "total": self.expected, "seconds": round(self.seconds or 0)}


def plan_of(wanted: ExplanationRequest, document: Document, limits: Limits) -> Plan:
    asked = wanted.asked.n_queries
    expected = asked or wanted.asked.repeats * wanted.method.budget(document)
    n_queries = limits.queries if expected > limits.queries else asked
    pace = _pace(wanted.model, document)
    if pace is None or not isinstance(wanted.method, SurrogateExplainer):
        return Plan(document, n_queries, expected)
    cost = dry_run(
        wanted.method, wanted.model.classifier, document, request=wanted.request(n_queries)
    )
    plan = Plan(document, n_queries, cost.n_queries, pace * cost.n_tokens)
    return plan if asked else _shortened(plan, limits.soon)


def _pace(model: Model, document: Document) -> float | None:
    """Seconds per token; None: the text is short, or asking costs money."""
    full = document.full()
    n_tokens = int(document.n_tokens(full)[0])
    if n_tokens < LONG or unpaid(model.classifier, document, full) is not None:
        return None
    with model.lock:
        begun = monotonic()
        model.classifier.logits([(document, full)])
        return (monotonic() - begun) / n_tokens


def _shortened(plan: Plan, soon: float) -> Plan:
    """As many queries as take `soon` seconds, if all take longer."""
    document, usual, seconds = plan.document, plan.expected, plan.seconds or 0.0
    fewest = min(usual, MIN_PER_UNIT * document.n_features)
    n_queries = max(fewest, int(usual * soon / max(seconds, soon)))
    if n_queries >= usual:
        return plan
    note = (
        f"{n_queries} queries were allowed instead of {usual}, which would have taken about "
        f"{seconds:.0f} s here: give a number of queries for more"
    )
    noted = replace(document, notes=(*document.notes, note))
    return Plan(noted, n_queries, n_queries, seconds * n_queries / usual)


ROUGH = 60  # queries of the first answer
WORTH_A_ROUGH_ANSWER = 3 * ROUGH  # of the whole budget

Say = Callable[[str, Any], None]


class Stopped(Exception):  # noqa: N818  nobody waits for the result any more
    """The task was cancelled."""


class Work(Protocol):
    """Something that takes a while; `stop` may be called from any thread."""

    def stop(self) -> None: ...

    def make(self, say: Say) -> Any:
        """The whole work, in a thread of its own."""
        ...


@dataclass(eq=False)
class Patience:
    """Somebody waits for it, and not for ever."""

    seconds: float
    stopped: Event = field(default_factory=Event)
    began: float | None = None

    def begin(self) -> None:
        self.began = monotonic()

    def check(self) -> None:
        """Ends the work if nobody waits any more, or if it takes too long."""
        if self.stopped.is_set():
            raise Stopped
        if self.began is not None and monotonic() > self.began + self.seconds:
            raise Refusal(
                503, "too-slow", f"this took more than {self.seconds:.0f} s: ask for less"
            )


@dataclass(eq=False)
class Job:
    """A piece of work that looks at `patience` now and then."""

    work: Callable[[Patience], Any]
    patience: Patience

    def stop(self) -> None:
        self.patience.stopped.set()

    def make(self, say: Say) -> Any:
        self.patience.begin()
        self.patience.check()
        return self.work(self.patience)


@dataclass(eq=False)
class Task:
    """One explanation to be made."""

    wanted: ExplanationRequest
    limits: Limits
    rough_first: bool
    patience: Patience
    n_asked: int = 0

    def stop(self) -> None:
        self.patience.stopped.set()

    def make(self, say: Say) -> Made:
        wanted = self.wanted
        self.patience.begin()
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
            say("progress", plan.as_event())

        def tell(n_queries_done: int) -> None:
            self.patience.check()
            self.n_asked += n_queries_done
            if n_queries_done:
                say("progress", {"done": self.n_asked, "total": max(expected, self.n_asked)})

        watched = Watched(wanted.model, tell)
        if self._starts_rough(expected):
            say("rough", self._made(self._explained(watched, document, ROUGH), document))
            self.n_asked = 0
        return self._made(self._explained(watched, document, plan.n_queries), document)

    def _made(self, explanation: Explanation, document: Document) -> Made:
        """With the document of its units: phrases are found on the way."""
        if document.spans != explanation.spans:
            too_long = self.wanted.asked.too_long
            document = self.wanted.model.classifier.split(
                explanation.text, explanation.spans, too_long=too_long
            )
        return Made(Kept(explanation, (self.wanted.model, document)), record)

    def _starts_rough(self, n_queries: int) -> bool:
        method, once = self.wanted.method, self.wanted.asked.repeats == 1
        if isinstance(method, ByPhrases) or method.looks_inside or not (self.rough_first and once):
            return False
        return n_queries >= WORTH_A_ROUGH_ANSWER

    def _explained(
        self, watched: Watched, document: Document, n_queries: int | None
    ) -> Explanation:
        wanted = self.wanted
        order = Order(wanted.method, wanted.request(n_queries))
        if wanted.method.looks_inside:
            watched.tell(0)
            with wanted.model.lock:  # it must be alone with the model
                (found,) = run_local(wanted.model.classifier, order, [document])
        else:
            (found,) = run_local(watched, order, [document])
        assert isinstance(found, Explanation)  # errors are raised
        return found


def _made(task: Work, say: Say) -> Any:
    try:
        return task.make(say)
    except StopIteration as problem:  # would never arrive: asyncio's futures refuse it
        raise RuntimeError("an iteration ended inside of the work") from problem


class Bench:
    """Room for a few tasks at a time; a line of limited length in front of it."""

    def __init__(self, running: int, waiting: int) -> None:
        self.most_waiting = waiting
        self.n_running = self.n_waiting = 0
        self._room = asyncio.Semaphore(running)
        self._threads = ThreadPoolExecutor(running, thread_name_prefix="working")
        self._tasks: set[Work] = set()

    def check_room(self) -> None:
        """Refuse at once what would only be refused in line."""
        if self._room.locked() and self.n_waiting >= self.most_waiting:
            raise busy()

    async def work(self, task: Work) -> AsyncIterator[tuple[str, Any]]:
        """What happens to a task, as it happens; leaving early stops it."""
        loop, events = asyncio.get_running_loop(), asyncio.Queue[tuple[str, Any]]()

        def say(kind: str, content: Any) -> None:
            loop.call_soon_threadsafe(events.put_nowait, (kind, content))

        if self._room.locked():
            yield "waiting", {"ahead": self.n_waiting}
        await self._seat()
        future = loop.run_in_executor(self._threads, _made, task, say)
        self._tasks.add(task)
        future.add_done_callback(lambda done: self._leave(task, done))
        future.add_done_callback(lambda done: events.put_nowait(("end", None)))
        try:
            while (event := await events.get())[0] != "end":
                yield event
            yield "done", future.result()
        finally:
            task.stop()

    async def _seat(self) -> None:
        self.check_room()
        self.n_waiting += 1
        try:
            await self._room.acquire()
        finally:
            self.n_waiting -= 1
        self.n_running += 1

    def _leave(self, task: Work, done: "asyncio.Future[Any]") -> None:
        """The place is free when the thread is, not when the client goes."""
        self.n_running -= 1
        self._tasks.discard(task)
        self._room.release()
        if not done.cancelled():
            done.exception()  # looked at here, since nobody else may be left to do it

    def close(self) -> None:
        """Stop everything; nothing new is begun."""
        for task in self._tasks:
            task.stop()
        self._threads.shutdown(wait=False, cancel_futures=True)
