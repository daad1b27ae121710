"""The API: JSON in, JSON out; the page is its first user.

POST /api/explain   an explanation, or with `Accept: text/event-stream` its making as events
POST /api/predict   what the classifier says
POST /api/whatif    the answer without some units, beside what explanations predicted
POST /api/order     the best order of removal, with its curve
POST /api/pairs     words that act together
POST /api/open      an explanation file, to be shown
POST /api/attribute which sources made the language model say that (as events, if wanted)
POST /api/said      what it says without some of them
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
from slalom.views.record import record as record_of
from slalom.web import requests, what_if
from slalom.web.answers import AttributeBody, Attributing, Language, SaidBody, said_without
from slalom.web.jobs import Bench, Job, Patience, Stopped, Task, Work
from slalom.web.kept import Kept, Made, Shelf
from slalom.web.limits import Limits, Refusal, busy
from slalom.web.models import Models, Watched
from slalom.web.openapi import description

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Endpoint = Callable[["Request"], Awaitable["Response"]]
log = logging.getLogger("slalom.web")
POLL = 0.2  # seconds between two looks at whether the client is still there


class Api:
    """The endpoints, and what they share."""

    def __init__(self, models: Models, limits: Limits, language: Language | None = None) -> None:
        self.models, self.limits, self.language = models, limits, language
        self.bench = Bench(limits.running, limits.waiting)
        self.short = Bench(limits.running, limits.soon_waiting)  # answers that come soon
        self.shelf = Shelf(limits.kept)
        self._aside = ThreadPoolExecutor(2, thread_name_prefix="reading")  # JSON, in and out
        self._opening = asyncio.Semaphore(limits.running)  # large bodies at the same time

    def endpoints(self) -> dict[str, tuple[str, Endpoint]]:
        """Path → method and what answers it."""
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
        self.bench.close()
        self.short.close()
        self._aside.shutdown(wait=False, cancel_futures=True)

    async def explain(self, request: "Request") -> "Response":
        record = await self._asked(request)
        wanted = requests.explanation_request(record, self.models, self.limits)
        rough_first = _is_streamed(request)
        task = Task(wanted, self.limits, rough_first, Patience(self.limits.seconds))
        return await self._explained(task, request)

    async def _explained(self, task: Work, request: "Request") -> "Response":
        """Its making as events, or the whole of it."""
        self.bench.check_room()
        if _is_streamed(request):
            from starlette.responses import StreamingResponse

            return StreamingResponse(self._events(task), media_type="text/event-stream")
        made: Made = await self._result(task, request, self.bench)
        return await self._said(made.kept.explanation.to_json)

    async def _asked(self, request: "Request") -> dict[str, Any]:
        """The JSON of a request; reading it keeps nobody else waiting."""
        body = await _body(request, self.limits.body, self.limits.slow)
        record: dict[str, Any] = await self._beside(
            lambda: requests.parsed(body, self.limits.entries)
        )
        return record

    async def _beside(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._aside, work)

    async def _said(self, content: Callable[[], Any]) -> "Response":
        return _response(await self._beside(lambda: _encoded(content())))

    async def _result(self, task: Work, request: "Request", bench: Bench) -> Any:
        """What comes of it, unless the client goes away first."""

        async def result() -> Any:
            async for kind, content in bench.work(task):
                if kind == "done":
                    made = content
            return made

        work = asyncio.ensure_future(result())
        while not work.done():
            await asyncio.wait([work], timeout=POLL)
            if not work.done() and await request.is_disconnected():
                task.stop()
        return work.result()

    async def _soon(self, request: "Request", work: Callable[[Patience], Any]) -> "Response":
        """A short answer; it stops when nobody waits, or after a while, like everything else."""
        job = Job(lambda patience: _encoded(work(patience)), Patience(self.limits.soon_seconds))
        return _response(await self._result(job, request, self.short))

    async def _events(self, task: Work) -> AsyncIterator[str]:
        try:
            async for kind, content in self.bench.work(task):
                if isinstance(content, Made):
                    content = await self._beside(partial(self._shown, content))
                yield _event(kind, content)
        except Exception as problem:
            status, kind, sentence = _refusal_of(problem)
            yield _event("failed", {"status": status, "kind": kind, "error": sentence})

    def _shown(self, made: Made) -> dict[str, Any]:
        explanation = made.kept.explanation
        return {
            "id": self.shelf.keep(made.kept),
            "record": made.draw(explanation),
            "explanation": explanation.to_json(),
        }

    async def attribute(self, request: "Request") -> "Response":
        assert self.language is not None  # or there is no such address
        wanted = requests.read(AttributeBody, await self._asked(request))
        if not wanted.sources:
            raise Refusal(400, "wrong", "there are no sources: give one text, or several documents")
        task = Attributing(wanted, self.language, self.limits, Patience(self.limits.seconds))
        return await self._explained(task, request)

    async def said(self, request: "Request") -> "Response":
        asked = requests.read(SaidBody, await self._asked(request))
        kept = self.shelf[asked.explanation]
        removed = requests.positions(asked.removed, "removed", len(kept.explanation.units))
        return await self._soon(
            request, lambda patience: said_without(kept, removed, patience.check)
        )

    async def predict(self, request: "Request") -> "Response":
        asked = requests.read(requests.PredictBody, await self._asked(request))
        model = self.models.named(asked.model)
        texts = (asked.text,) if asked.texts is None else asked.texts
        if not 1 <= len(texts) <= self.limits.texts or (asked.text and asked.texts):
            raise Refusal(400, "wrong", f"give a text, or 1 to {self.limits.texts} texts")
        checked = [requests.text_of(text or "", self.limits) for text in texts]

        def answers(patience: Patience) -> Any:
            watched = Watched(model, lambda n_queries: patience.check())
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
            raise Refusal(400, "wrong", "explanations must be a list of 1 to 4 names")
        kept = [self.shelf[name] for name in asked.explanations]
        explanations = [one.explanation for one in kept]
        if any(e.spans != explanations[0].spans for e in explanations):
            raise Refusal(400, "wrong", "these explanations are not about the same units")
        removed = requests.positions(asked.removed, "removed", len(explanations[0].units))
        return await self._soon(
            request,
            lambda patience: what_if.without(explanations, removed, kept[0].source, patience.check),
        )

    async def order(self, request: "Request") -> "Response":
        record = await self._asked(request)
        named = {"of_class" if name == "class" else name: given for name, given in record.items()}
        asked = requests.read(requests.OrderBody, named)
        kept = self.shelf[asked.explanation]
        (shown,) = requests.positions((asked.of_class,), "class", len(kept.explanation.labels))
        return await self._soon(
            request,
            lambda patience: what_if.removal_path(
                kept.explanation, shown, kept.source, patience.check
            ),
        )

    async def pairs(self, request: "Request") -> "Response":
        asked = requests.read(requests.PairsBody, await self._asked(request))
        kept = self.shelf[asked.explanation]
        if kept.source is None:
            raise Refusal(400, "wrong", "the model of this file is not here: it cannot be queried")
        model, explanation = kept.source[0], kept.explanation

        def found(patience: Patience) -> Any:
            watched = Watched(model, lambda n_queries: patience.check())
            return explanation.interactions(asked.k, watched).to_json()

        job = Job(found, Patience(self.limits.seconds))
        content = await self._result(job, request, self.bench)
        return await self._said(lambda: content)

    async def open(self, request: "Request") -> "Response":
        if self._opening.locked():
            raise busy()
        async with self._opening:
            body = await _body(request, self.limits.file, self.limits.slow)
            return await self._soon(request, lambda patience: self._opened(body, patience))

    def _opened(self, body: bytes, patience: Patience) -> dict[str, Any]:
        """A file is held to the same limits as a text that is explained here."""
        explanation = FILES.parsed(requests.parsed(body, self.limits.file_entries), "this")
        patience.check()
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
        patience.check()
        source = what_if.document_of(explanation, self.models)
        return {"id": self.shelf.keep(Kept(explanation, source)), **shown}

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
        content = {"status": "ok", "version": version("slalom-xai"), "kept": len(self.shelf)}
        benches = (self.bench, self.short)
        content["running"] = sum(bench.n_running for bench in benches)
        content["waiting"] = sum(bench.n_waiting for bench in benches)
        return _json(content)

    async def openapi(self, request: "Request") -> "Response":
        return _json(description(self.limits))


async def _body(request: "Request", limit: int, seconds: float) -> bytes:
    """The request's body, as far as it is not too large and comes in time."""
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
    """The same endpoint; what goes wrong becomes a sentence, never a stack trace."""

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
    if isinstance(problem, Stopped | ClientDisconnect):
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
