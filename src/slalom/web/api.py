"""The API: JSON in, JSON out; the page is its first user.

POST /api/explain   an explanation, with `Accept: text/event-stream` its progress as events
POST /api/predict   what the classifier says
POST /api/whatif    the answer without some units, beside what explanations predicted
POST /api/order     the best order of removal, with its curve
POST /api/pairs     words that act together
POST /api/open      an explanation file, to be shown
POST /api/attribute the sources behind a language model's answer (as events, if wanted)
POST /api/said      how likely the answer is without some of them
GET  /api/methods · /api/models · /api/health · /api/openapi.json
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from slalom.classifiers.base import is_independent
from slalom.errors import FileError, SlalomError
from slalom.explainers.table import METHODS
from slalom.explanation import FILES
from slalom.views.answer_page import answer_record
from slalom.views.record import record as record_of
from slalom.web import requests, what_if
from slalom.web.answers import (
    AnswerWithoutBody,
    AttributeBody,
    Language,
    answer_without,
    attributed_answer,
)
from slalom.web.jobs import Cancelled, Check, Emit, ExplanationWork, Job, JobQueue, Work
from slalom.web.limits import Limits, Refusal, busy, wrong
from slalom.web.models import ChunkedClassifier, ExplanationStore, Models, StoredExplanation
from slalom.web.openapi import description

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Endpoint = Callable[["Request"], Awaitable["Response"]]
log = logging.getLogger("slalom.web")
POLL = 0.2  # seconds between two looks at whether the client is still there


class Api:
    """The endpoints and the state they share."""

    def __init__(self, models: Models, limits: Limits, language: Language | None = None) -> None:
        self.models, self.limits, self.language = models, limits, language
        self.queue = JobQueue(limits.running, limits.waiting)
        self.short = JobQueue(limits.running, limits.soon_waiting)  # short jobs
        self.store = ExplanationStore(limits.kept)
        self._aside = ThreadPoolExecutor(2, thread_name_prefix="reading")  # JSON, in and out
        self._opening = asyncio.Semaphore(limits.running)  # large bodies at the same time

    def endpoints(self) -> dict[str, tuple[str, Endpoint]]:
        """Path → HTTP method and endpoint."""
        given = {
            "/api/explain": ("POST", self.explain),
            "/api/predict": ("POST", self.predict),
            "/api/whatif": ("POST", self.what_if),
            "/api/order": ("POST", self.order),
            "/api/pairs": ("POST", self.pairs),
            "/api/open": ("POST", self.open),
            "/api/methods": ("GET", self.methods),
            "/api/models": ("GET", self.list_models),
            "/api/health": ("GET", self.health),
            "/api/openapi.json": ("GET", self.openapi),
        }
        if self.language is not None:
            given |= {
                "/api/attribute": ("POST", self.attribute),
                "/api/said": ("POST", self.said),
            }
        return {path: (method, _answered(answer)) for path, (method, answer) in given.items()}

    def close(self) -> None:
        self.queue.close()
        self.short.close()
        self._aside.shutdown(wait=False, cancel_futures=True)

    async def explain(self, request: "Request") -> "Response":
        record = await self._asked(request)
        wanted = requests.explanation_request(record, self.models, self.limits)
        work = ExplanationWork(wanted, self.limits, rough_first=_is_streamed(request))
        return await self._explained(work, request)

    async def _explained(self, work: Work, request: "Request") -> "Response":
        """Progress as events, or the finished explanation."""
        job = Job(work, self.limits.seconds)
        self.queue.check_room()
        if _is_streamed(request):
            from starlette.responses import StreamingResponse

            return StreamingResponse(self._events(job), media_type="text/event-stream")
        made: StoredExplanation = await self._result(job, request, self.queue)
        return await self._answer(made.explanation.to_json)

    async def _asked(self, request: "Request") -> dict[str, Any]:
        """The JSON of a request, parsed in a thread so that others need not wait."""
        body = await _body(request, self.limits.body, self.limits.slow)
        record: dict[str, Any] = await self._beside(
            lambda: requests.parsed(body, self.limits.entries)
        )
        return record

    async def _beside(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._aside, work)

    async def _answer(self, content: Callable[[], Any]) -> "Response":
        return _response(await self._beside(lambda: _encoded(content())))

    async def _result(self, job: Job, request: "Request", queue: JobQueue) -> Any:
        """The result of a job, which is cancelled if the client goes away."""

        async def result() -> Any:
            async for kind, content in queue.run(job):
                if kind == "done":
                    made = content
            return made

        work = asyncio.ensure_future(result())
        while not work.done():
            await asyncio.wait([work], timeout=POLL)
            if not work.done() and await request.is_disconnected():
                job.cancel()
        return work.result()

    async def _soon(self, request: "Request", work: Callable[[Check], Any]) -> "Response":
        """The answer of a short job, which has a deadline and can be cancelled like any other."""
        job = Job(lambda check, _: _encoded(work(check)), self.limits.soon_seconds)
        return _response(await self._result(job, request, self.short))

    async def _events(self, job: Job) -> AsyncIterator[str]:
        try:
            async for kind, content in self.queue.run(job):
                if isinstance(content, StoredExplanation):
                    content = await self._beside(partial(self._shown, content))
                yield _event(kind, content)
        except Exception as problem:
            status, kind, sentence = _refusal_of(problem)
            yield _event("failed", {"status": status, "kind": kind, "error": sentence})

    def _shown(self, made: StoredExplanation) -> dict[str, Any]:
        explanation = made.explanation
        draw = record_of if explanation.said is None else answer_record
        return {
            "id": self.store.keep(made),
            "record": draw(explanation),
            "explanation": explanation.to_json(),
        }

    async def attribute(self, request: "Request") -> "Response":
        assert self.language is not None  # without it the endpoint does not exist
        wanted = requests.read(AttributeBody, await self._asked(request))
        if not wanted.sources:
            raise wrong("there are no sources: give one text, or several documents")
        work = partial(attributed_answer, wanted, self.language, self.limits)
        return await self._explained(work, request)

    async def said(self, request: "Request") -> "Response":
        asked = requests.read(AnswerWithoutBody, await self._asked(request))
        kept = self.store[asked.explanation]
        removed = requests.positions(asked.removed, "removed", len(kept.explanation.units))
        return await self._soon(request, lambda check: answer_without(kept, removed, check))

    async def predict(self, request: "Request") -> "Response":
        asked = requests.read(requests.PredictBody, await self._asked(request))
        model = self.models.named(asked.model)
        texts = (asked.text,) if asked.texts is None else asked.texts
        if not 1 <= len(texts) <= self.limits.texts or (asked.text and asked.texts):
            raise wrong(f"give a text, or 1 to {self.limits.texts} texts")
        checked = [requests.text_of(text or "", self.limits) for text in texts]

        def answers(check: Check) -> Any:
            watched = ChunkedClassifier(model, lambda n_queries: check())
            documents = (watched.split(text, too_long="windows") for text in checked)
            logits = [watched.logits([(d, d.full())])[0][0] for d in documents]
            independent = is_independent(model.classifier)
            return {
                "model": model.name,
                "labels": list(model.classifier.labels),
                "logits": [answer.tolist() for answer in logits],
                "probabilities": [what_if.shares(a, independent=independent) for a in logits],
            }

        return await self._soon(request, answers)

    async def what_if(self, request: "Request") -> "Response":
        asked = requests.read(requests.WhatIfBody, await self._asked(request))
        if not 1 <= len(asked.explanations) <= 4:
            raise wrong("explanations must be a list of 1 to 4 names")
        kept = [self.store[name] for name in asked.explanations]
        explanations = [one.explanation for one in kept]
        if any(e.spans != explanations[0].spans for e in explanations):
            raise wrong("these explanations are not about the same units")
        removed = requests.positions(asked.removed, "removed", len(explanations[0].units))
        return await self._soon(
            request,
            lambda check: what_if.without(explanations, removed, kept[0].source, check),
        )

    async def order(self, request: "Request") -> "Response":
        record = await self._asked(request)
        named = {"of_class" if name == "class" else name: given for name, given in record.items()}
        asked = requests.read(requests.OrderBody, named)
        kept = self.store[asked.explanation]
        (shown,) = requests.positions((asked.of_class,), "class", len(kept.explanation.labels))
        return await self._soon(
            request,
            lambda check: what_if.removal_path(kept.explanation, shown, kept.source, check),
        )

    async def pairs(self, request: "Request") -> "Response":
        asked = requests.read(requests.PairsBody, await self._asked(request))
        kept = self.store[asked.explanation]
        if kept.source is None:
            raise wrong("this server does not have the model of this file")
        model, explanation = kept.source[0], kept.explanation

        def found(check: Check, _: Emit) -> Any:
            watched = ChunkedClassifier(model, lambda n_queries: check())
            return explanation.interactions(asked.k, watched).to_json()

        job = Job(found, self.limits.seconds)
        content = await self._result(job, request, self.queue)
        return await self._answer(lambda: content)

    async def open(self, request: "Request") -> "Response":
        if self._opening.locked():
            raise busy()
        async with self._opening:
            body = await _body(request, self.limits.file, self.limits.slow)
            return await self._soon(request, lambda check: self._opened(body, check))

    def _opened(self, body: bytes, check: Check) -> dict[str, Any]:
        """Open a file, within the same limits as for texts that are explained here."""
        explanation = FILES.parsed(requests.parsed(body, self.limits.file_entries), "this")
        check()
        requests.text_of(explanation.text, self.limits)
        n_units, n_classes = len(explanation.units), len(explanation.labels)
        if n_units > self.limits.units or n_units * n_classes > self.limits.cells:
            raise Refusal(
                413,
                "too-long",
                f"the file has {n_units} units and {n_classes} classes: "
                f"at most {self.limits.units} units are shown here",
            )
        shown = {"record": record_of(explanation), "explanation": explanation.to_json()}
        check()
        source = what_if.document_of(explanation, self.models)
        return {"id": self.store.keep(StoredExplanation(explanation, source)), **shown}

    async def methods(self, request: "Request") -> "Response":
        content = [{"name": name, "summary": method.summary} for name, method in METHODS.items()]
        return _json({"methods": content})

    async def list_models(self, request: "Request") -> "Response":
        content = [
            {"name": m.name, "classifier": m.classifier.name, "labels": list(m.classifier.labels)}
            for m in self.models.every
        ]
        return _json({"models": content})

    async def health(self, request: "Request") -> "Response":
        content = {"status": "ok", "version": version("slalom-xai"), "kept": len(self.store)}
        queues = (self.queue, self.short)
        content["running"] = sum(queue.n_running for queue in queues)
        content["waiting"] = sum(queue.n_waiting for queue in queues)
        return _json(content)

    async def openapi(self, request: "Request") -> "Response":
        return _json(description(self.limits))


async def _body(request: "Request", limit: int, seconds: float) -> bytes:
    """The request's body, unless it is too large or too slow."""
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > limit:
                    raise Refusal(413, "too-large", f"the request is larger than {limit} bytes")
    except TimeoutError as problem:
        raise Refusal(408, "slow", f"the request took more than {seconds:.0f} s") from problem
    return bytes(body)


def _answered(answer: Endpoint) -> Endpoint:
    """The same endpoint; errors become a sentence, never a stack trace."""

    async def endpoint(request: "Request") -> "Response":
        try:
            return await answer(request)
        except Exception as problem:
            status, kind, sentence = _refusal_of(problem)
            return _json({"error": sentence, "kind": kind}, status)

    return endpoint


def _refusal_of(problem: Exception) -> tuple[int, str, str]:
    from starlette.requests import ClientDisconnect

    if isinstance(problem, Refusal):
        return problem.status, problem.kind, problem.sentence
    if isinstance(problem, Cancelled | ClientDisconnect):
        return 499, "cancelled", "cancelled"
    if isinstance(problem, FileError):
        return 400, "wrong", str(problem)
    if isinstance(problem, SlalomError):
        return 422, "impossible", str(problem)
    log.error("an answer failed", exc_info=problem)
    return 500, "failed", "something went wrong inside the server; its log says what"


def _is_streamed(request: "Request") -> bool:
    return "text/event-stream" in request.headers.get("accept", "")


def _event(kind: str, content: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps(content, ensure_ascii=True, allow_nan=False)}\n\n"


def _json(content: Any, status: int = 200) -> "Response":
    return _response(_encoded(content), status)


def _encoded(content: Any) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")


def _response(body: bytes, status: int = 200) -> "Response":
    from starlette.responses import Response

    headers = {"retry-after": "2"} if status == 503 else None
    return Response(body, status, headers, "application/json")
