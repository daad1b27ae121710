"""One OpenAI-compatible server: requests, retries, a shared pause, and what the server refuses.

This part knows HTTP and the `openai` client, nothing of labels or texts. The key goes to the
client and nowhere else: not into messages, files, pickles or `repr`.
"""

import os
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from slalom.classifiers.chat.budget import Budget
from slalom.classifiers.chat.failures import RequestFailure, failure_of
from slalom.classifiers.chat.replies import UnreadableReply, response_of, tokens_used
from slalom.errors import ClassifierError, InputError, MissingExtraError, Setting

OPENAI = "https://api.openai.com/v1"
MAX_CANDIDATES = 20
TEMPLATE_TOKENS = 64  # what a chat template adds to a message, at most
FIRST_PAUSE, MAX_PAUSE = 0.5, 60.0  # seconds
OPTIONAL = ("n", "seed", "temperature")  # what sampling can do without


class Stopped(Exception):  # noqa: N818  # ends a thread whose work nobody waits for any more
    """Another thread has failed, or the user has interrupted."""


@dataclass(frozen=True)
class Key:
    """A secret: hidden from `repr`, and left behind when pickled."""

    value: str | None = field(repr=False)

    def __reduce__(self) -> tuple[type, tuple[None]]:
        return Key, (None,)

    def found(self) -> str | None:
        return self.value or os.environ.get("OPENAI_API_KEY") or None

    def removed_from(self, text: str) -> str:
        key = self.found()
        return text.replace(key, "…") if key else text


@dataclass
class ServerCapabilities:
    """Which parameters the server accepts, learnt from the requests it refuses."""

    candidates: int = MAX_CANDIDATES
    length: str = "max_tokens"
    refused: frozenset[str] = frozenset()
    answered: bool = False

    def learn(self, refusal: str, sent: dict[str, Any]) -> bool:
        """Adapt to a refusal; False where it names nothing that could be asked differently."""
        if "max_completion_tokens" in refusal and "max_tokens" in sent:
            self.length = "max_completion_tokens"
            return True
        if "top_logprobs" in refusal and sent.get("top_logprobs", 0) > 1:
            sent_candidates = int(sent["top_logprobs"])
            offers = [int(n) for n in re.findall(r"\d+", refusal) if 0 < int(n) < sent_candidates]
            self.candidates = min(self.candidates, max(offers, default=sent_candidates // 2))
            return True
        if "logprobs" in sent:  # its temperature is not optional
            return False
        named = {name for name in OPTIONAL if re.search(rf"['\"`]{name}['\"`]", refusal)}
        new = (named & sent.keys()) - self.refused
        self.refused |= new
        return bool(new)


class ChatServer:
    """Where a model is asked; safe to use from several threads."""

    def __init__(
        self, model: str, base_url: str | None, key: Key, *, budget: Budget, timeout: float
    ) -> None:
        if not isinstance(model, str) or not model:
            raise InputError(f"model must be the name of a model, not {model!r}")
        if timeout <= 0:
            raise InputError(f"timeout must be more than 0 seconds, not {timeout!r}")
        self.model = model
        self.url = base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI
        self.address = public_address(self.url)
        self.key = key
        self.budget = budget
        self.timeout = timeout
        self.capabilities = ServerCapabilities()

    @contextmanager
    def session(self, retries: int) -> Iterator["Session"]:
        """Connections for as long as there is something to ask."""
        openai = client_library()
        key = self.key.found()
        if key is None and self.address == OPENAI:
            raise InputError(
                "no key: set OPENAI_API_KEY, or name a server that needs none by ",
                Setting("base_url"),
            )
        with openai.OpenAI(
            api_key=key or "none", base_url=self.url, timeout=self.timeout, max_retries=0
        ) as client:
            yield Session(self, client, retries)


def public_address(url: str) -> str:
    """The address of a server without user, password and query, which may be secret."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:  # an unclosed bracket, or a port that is not a number
        parts, host, port = urlsplit(""), None, None
    if host is None or parts.scheme not in ("http", "https"):
        given = url.rpartition("@")[2].partition("?")[0]
        raise InputError(
            Setting("base_url"), f" {given!r} is not an address: expected one such as {OPENAI!r}"
        )
    host = f"[{host}]" if ":" in host else host  # IPv6
    place = host if port is None else f"{host}:{port}"
    return urlunsplit((parts.scheme, place, parts.path.rstrip("/"), "", ""))


def client_library() -> Any:
    try:
        import openai
    except ImportError as problem:
        raise MissingExtraError("openai", "chat") from problem
    return openai


class Session:
    """Requests over shared connections: failures are retried, and all threads pause together."""

    def __init__(self, server: ChatServer, client: Any, retries: int) -> None:
        self.server = server
        self.stop = Event()
        self._client = client
        self._retries = retries
        self._not_before = 0.0
        self._random = random.Random()  # jitter only: no result depends on it

    def complete(self, prompt: str, wanted: dict[str, Any]) -> dict[str, Any]:
        """One chat completion of one token, retried where that may help."""
        asked = self._client.chat.completions
        return self._answered(asked, prompt, lambda: self._body(prompt, wanted))

    def continued(self, prompt: str, wanted: dict[str, Any]) -> dict[str, Any]:
        """The text of a prompt and what follows it, by the completions of old."""
        body = {"model": self.server.model, "prompt": prompt, **wanted}
        return self._answered(self._client.completions, prompt, lambda: body)

    def _answered(
        self, asked: Any, prompt: str, body_of: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        failures = 0
        while True:
            self._pause()
            body = body_of()
            with self.server.budget.reserve(token_bound(prompt, body)) as reservation:
                outcome = self._send(asked, body)
                if isinstance(outcome, dict):
                    used = tokens_used(outcome)
                    reservation.tokens = reservation.tokens if used is None else used
                elif not outcome.billed:
                    reservation.tokens = 0
            if isinstance(outcome, dict):
                self.server.capabilities.answered = True
                return outcome
            if outcome.refusal and self.server.capabilities.learn(outcome.refusal, body):
                continue
            failures += 1
            self._check(outcome, failures)
            self._wait_for(outcome, failures)

    def _body(self, prompt: str, wanted: dict[str, Any]) -> dict[str, Any]:
        capabilities = self.server.capabilities
        body = {name: value for name, value in wanted.items() if name not in capabilities.refused}
        if "logprobs" in body:
            body["top_logprobs"] = capabilities.candidates
        return {
            "model": self.server.model,
            "messages": [{"role": "user", "content": prompt}],
            capabilities.length: 1,
            **body,
        }

    def _send(self, asked: Any, body: dict[str, Any]) -> dict[str, Any] | RequestFailure:
        openai = client_library()
        try:
            raw = asked.with_raw_response.create(**body)
            return response_of(raw.text if isinstance(raw.text, str) else raw.text())
        except UnreadableReply as problem:
            return RequestFailure(f"cannot be understood: {problem}", retryable=True, billed=True)
        except (openai.OpenAIError, OSError) as problem:
            return failure_of(openai, problem)

    def _check(self, failure: RequestFailure, failures: int) -> None:
        server = self.server
        allowed = self._retries if server.capabilities.answered else min(2, self._retries)
        if failure.retryable and failures <= allowed:
            return
        tries = f" (asked {failures} times)" if failures > 1 else ""
        sentence = server.key.removed_from(failure.sentence)
        kind = ClassifierError if failure.billed else RefusedError
        raise kind(f"{server.model} at {server.address} {sentence}{tries}")

    def _wait_for(self, failure: RequestFailure, failures: int) -> None:
        """Exponential back-off with jitter, and at least as long as the server asks for."""
        pause = min(MAX_PAUSE, FIRST_PAUSE * 2.0 ** (failures - 1))
        pause *= self._random.uniform(0.5, 1.0)
        if failure.pause is not None:
            pause = max(pause, failure.pause)
            self._not_before = max(self._not_before, time.monotonic() + failure.pause)
        if self.stop.wait(pause):
            raise Stopped

    def _pause(self) -> None:
        """Wait while the server has asked any thread to."""
        while (left := self._not_before - time.monotonic()) > 0:
            if self.stop.wait(left):
                raise Stopped
        if self.stop.is_set():
            raise Stopped


class RefusedError(ClassifierError):
    """The server is there, and would not."""


def token_bound(prompt: str, body: dict[str, Any]) -> int:
    """The most tokens that a request can cost: every token is at least one byte."""
    return len(prompt.encode()) + TEMPLATE_TOKENS + int(body.get("n", body.get("max_tokens", 1)))
