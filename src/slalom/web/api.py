"""The API: JSON in, JSON out; the page is its first user.

POST /api/explain   an explanation, or with `Accept: text/event-stream` its making as events
POST /api/predict   what the classifier says
POST /api/whatif    the answer without some units, beside what explanations predicted
POST /api/order     the best order of removal, with its curve
POST /api/pairs     words that act together
POST /api/open      an explanation file, to be shown
GET  /api/methods · /api/models · /api/health · /api/openapi.json
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from slalom.classifiers.base import is_independent
from slalom.errors import FileError, SlalomError
from slalom.explainers.table import METHODS
from slalom.explanation import FILES
from slalom.pairs import Interactions
from slalom.views.record import record as record_of
from slalom.web import requests, what_if
from slalom.web.jobs import Bench, FindPairs, Made, Patience, Stopped, Task, Work
from slalom.web.kept import Kept, Shelf
from slalom.web.limits import Limits, Refusal
from slalom.web.models import Models, Watched
from slalom.web.openapi import description

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

Endpoint = Callable[["Request"], Awaitable["Response"]]
log = logging.getLogger("slalom.web")
N_PAIRS, MAX_PAIRS = 8, 30
POLL = 0.2  # seconds between two looks at whether the client is still there


class Api:
    """The endpoints, and what they share."""

    def __init__(self, models: Models, limits: Limits) -> None:
        self.models, self.limits = models, limits
        self.bench, self.shelf = Bench(limits), Shelf(limits.kept)
        self._quick = ThreadPoolExecutor(2, thread_name_prefix="answering")

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
        return {path: (method, _answered(answer)) for path, (method, answer) in given.items()}

    def close(self) -> None:
        self.bench.close()
        self._quick.shutdown(wait=False, cancel_futures=True)

    async def explain(self, request: "Request") -> "Response":
        record = requests.parsed(await _body(request, self.limits.body))
        wanted = requests.explanation_request(record, self.models, self.limits)
        self.bench.check_room()
        streamed = "text/event-stream" in request.headers.get("accept", "")
        task = Task(wanted, self.limits, streamed, Patience(self.limits.seconds))
        if streamed:
            from starlette.responses import StreamingResponse

            return StreamingResponse(self._events(task), media_type="text/event-stream")
        made: Made = await self._result(task, request)
        return _json(made.explanation.to_json())

    async def _result(self, task: Work, request: "Request") -> Any:
        """What comes of it, unless the client goes away first."""

        async def result() -> Any:
            async for kind, content in self.bench.work(task):
                if kind == "done":
                    made = content
            return made

        work = asyncio.ensure_future(result())
        while not work.done():
            await asyncio.wait([work], timeout=POLL)
            if not work.done() and await request.is_disconnected():
                task.stop()
        return work.result()

    async def _events(self, task: Task) -> AsyncIterator[str]:
        try:
            async for kind, content in self.bench.work(task):
                yield _event(kind, self._shown(content) if isinstance(content, Made) else content)
        except Exception as problem:
            status, kind, sentence = _refusal_of(problem)
            yield _event("failed", {"status": status, "kind": kind, "error": sentence})

    def _shown(self, made: Made) -> dict[str, Any]:
        kept = Kept(made.explanation, (made.wanted.model, made.document))
        return {
            "id": self.shelf.keep(kept),
            "record": record_of(made.explanation),
            "explanation": made.explanation.to_json(),
        }

    async def predict(self, request: "Request") -> "Response":
        record = requests.parsed(await _body(request, self.limits.body))
        requests.check_fields(record, ("text", "texts", "model"))
        model = self.models.named(record.get("model"))
        texts = record.get("texts", [record.get("text")])
        if not isinstance(texts, list) or not 1 <= len(texts) <= self.limits.texts:
            raise Refusal(400, "wrong", f"texts must be a list of 1 to {self.limits.texts} texts")
        checked = [requests.text_of(text, self.limits) for text in texts]
        watched = Watched(model)

        def logits() -> list[Any]:
            documents = [watched.split(text, too_long="windows") for text in checked]
            return [watched.logits([(d, d.full())])[0][0] for d in documents]

        answers = await self._soon(logits)
        independent = is_independent(model.classifier)
        return _json(
            {
                "model": model.name,
                "labels": list(model.classifier.labels),
                "logits": [answer.tolist() for answer in answers],
                "probabilities": [what_if.shares(a, independent=independent) for a in answers],
            }
        )

    async def what_if(self, request: "Request") -> "Response":
        record = requests.parsed(await _body(request, self.limits.body))
        requests.check_fields(record, ("explanations", "removed"))
        names = record.get("explanations")
        if not isinstance(names, list) or not 1 <= len(names) <= 4:
            raise Refusal(400, "wrong", "explanations must be a list of 1 to 4 names")
        kept = [self.shelf[name] for name in names]
        explanations = [one.explanation for one in kept]
        if any(e.spans != explanations[0].spans for e in explanations):
            raise Refusal(400, "wrong", "these explanations are not about the same units")
        n_units = len(explanations[0].units)
        removed = requests.positions(record.get("removed"), "removed", n_units)
        found = await self._soon(lambda: what_if.without(explanations, removed, kept[0].source))
        return _json(found)

    async def order(self, request: "Request") -> "Response":
        record = requests.parsed(await _body(request, self.limits.body))
        requests.check_fields(record, ("explanation", "class"))
        kept = self.shelf[record.get("explanation")]
        shown = requests.positions([record.get("class", 0)], "class", len(kept.explanation.labels))
        return _json(
            await self._soon(lambda: what_if.removal_path(kept.explanation, shown[0], kept.source))
        )

    async def pairs(self, request: "Request") -> "Response":
        record = requests.parsed(await _body(request, self.limits.body))
        requests.check_fields(record, ("explanation", "k"))
        kept = self.shelf[record.get("explanation")]
        k = requests.whole(record.get("k", N_PAIRS), "k", 1, MAX_PAIRS) or N_PAIRS
        self.bench.check_room()
        task = FindPairs(kept, k, Patience(self.limits.seconds))
        found: Interactions = await self._result(task, request)
        return _json(found.to_json())

    async def open(self, request: "Request") -> "Response":
        record = requests.parsed(await _body(request, self.limits.file))

        def opened() -> dict[str, Any]:
            explanation = FILES.parsed(record, "this")
            try:
                shown = {"record": record_of(explanation), "explanation": explanation.to_json()}
            except (IndexError, KeyError, TypeError, ValueError) as problem:
                raise FileError("this is an explanation file, but damaged") from problem
            source = what_if.document_of(explanation, self.models)
            return {"id": self.shelf.keep(Kept(explanation, source)), **shown}

        return _json(await self._soon(opened))

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
        return _json({**content, "running": self.bench.n_running, "waiting": self.bench.n_waiting})

    async def openapi(self, request: "Request") -> "Response":
        return _json(description(self.limits))

    async def _soon(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self._quick, work)


async def _body(request: "Request", limit: int) -> bytes:
    """The request's body, as far as it is not too large."""
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > limit:
            raise Refusal(413, "too-large", f"the request is larger than {limit} bytes")
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
    if isinstance(problem, Refusal):
        return problem.status, problem.kind, problem.sentence
    if isinstance(problem, Stopped):
        return 499, "cancelled", "cancelled"
    if isinstance(problem, FileError):
        return 400, "wrong", str(problem)
    if isinstance(problem, SlalomError):
        return 422, "impossible", str(problem)
    log.error("an answer failed", exc_info=problem)
    return 500, "failed", "something went wrong inside the server; its log says what"


def _event(kind: str, content: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps(content, ensure_ascii=True, allow_nan=False)}\n\n"


def _json(content: Any, status: int = 200) -> "Response":
    from starlette.responses import Response

    headers = {"retry-after": "2"} if status == 503 else None
    body = json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return Response(body, status, headers, "application/json")
