"""One OpenAI-compatible server: requests, retries, a shared pause, hard limits, what it refuses.

This part knows HTTP and the `openai` client, nothing of labels or texts. The key goes to the
client and nowhere else: not into messages, files, pickles or `repr`.

The cost of a request is not known before it is answered, so an upper bound is reserved first and
replaced by the actual cost afterwards. A thread that finds too little left waits until the others
have released what they did not need before it gives up.
"""

import os
import random
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from threading import Condition, Event
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from slalom.classifiers.chat.answers import UnreadableReply, response_of, tokens_used
from slalom.errors import BudgetError, ClassifierError, InputError, Setting, needing


@dataclass
class Reservation:
    """An upper bound on the cost of one request; the holder sets `tokens` to the actual cost."""

    tokens: int


class Budget:
    """Counts every request sent, repeated ones included, and every token billed."""

    def __init__(self, max_requests: int | None, max_tokens: int | None) -> None:
        for name, given in (("max_requests", max_requests), ("max_tokens_total", max_tokens)):
            if given is not None and (not isinstance(given, int) or given < 1):
                raise InputError(f"{name} must be a whole number of at least 1, not {given!r}")
        self.max_requests = max_requests
        self.max_tokens = max_tokens
        self.n_requests = 0
        self.n_tokens = 0
        self._reserved = 0
        self._in_flight = 0
        self._changed = Condition()

    @contextmanager
    def reserve(self, most: int) -> Iterator[Reservation]:
        """One request that costs at most this many tokens, or a BudgetError before it is sent."""
        reservation = Reservation(most)
        with self._changed:
            while not self._fits(most):
                if not self._in_flight or self._requests_left() < 1:
                    raise BudgetError(self._spent())
                self._changed.wait()
            self.n_requests += 1
            self._reserved += most
            self._in_flight += 1
        try:
            yield reservation
        finally:
            with self._changed:
                self._reserved -= most
                self._in_flight -= 1
                self.n_tokens += reservation.tokens
                self._changed.notify_all()

    def _requests_left(self) -> float:
        return float("inf") if self.max_requests is None else self.max_requests - self.n_requests

    def _fits(self, most: int) -> bool:
        if self._requests_left() < 1:
            return False
        return self.max_tokens is None or self.n_tokens + self._reserved + most <= self.max_tokens

    def _spent(self) -> str:
        used = f"{self.n_requests} requests and {self.n_tokens} tokens were used"
        if self._requests_left() < 1:
            return f"the budget of {self.max_requests} requests is used up ({used})"
        return f"the budget of {self.max_tokens} tokens does not allow another request ({used})"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_changed"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _changed=Condition(), _reserved=0, _in_flight=0)


MAX_RETRY_AFTER = 600.0  # seconds; a server that asks for a longer pause is not waited for


@dataclass(frozen=True)
class RequestFailure:
    """Why a request failed, and whether another one may do better."""

    sentence: str
    retryable: bool
    pause: float | None = None  # what the server asks for, in seconds
    refusal: str | None = None  # a request it did not understand
    billed: bool = False  # it may have been answered for all we know


def failure_of(openai: Any, problem: Exception) -> RequestFailure:
    """What the client's error means for the person who asked."""
    if isinstance(problem, openai.APITimeoutError):
        return RequestFailure(
            "did not answer in time: raise timeout=…", retryable=True, billed=True
        )
    if isinstance(problem, openai.APIStatusError):
        return _refused(problem)
    if isinstance(problem, (openai.APIConnectionError, OSError)):
        cause = problem.__cause__ or problem
        return RequestFailure(
            f"cannot be reached ({str(cause) or type(cause).__name__}): is the server running "
            "and its address right?",
            retryable=True,
            billed=True,
        )
    return RequestFailure(f"cannot be asked: {problem}", retryable=False)


def _refused(problem: Any) -> RequestFailure:
    status, message = problem.status_code, _message_of(problem)
    if status in (401, 403):
        return RequestFailure(
            f"refused the key ({status}: {message}): set OPENAI_API_KEY to another",
            retryable=False,
        )
    if status == 404:
        return RequestFailure(
            f"is unknown there (404: {message}): check the model's name and that the address ends "
            "as the server expects, often in /v1",
            retryable=False,
        )
    pause = _retry_after(problem.response.headers)
    if status == 429 and "insufficient_quota" in message:
        return RequestFailure(f"has no quota left (429: {message})", retryable=False)
    if status in (408, 409, 425, 429) or status >= 500:
        patient = pause is None or pause <= MAX_RETRY_AFTER
        asks = "" if patient else f", asks for a pause of {pause:.0f} seconds"
        return RequestFailure(
            f"keeps failing ({status}: {message}{asks})", retryable=patient, pause=pause
        )
    return RequestFailure(
        f"refused the request ({status}: {message})", retryable=False, refusal=message
    )


def _message_of(problem: Any) -> str:
    """The server's own words, on one line and not too many of them."""
    body = problem.body
    inner = body.get("error", body) if isinstance(body, dict) else body
    message = inner.get("message", inner) if isinstance(inner, dict) else inner
    code = f" [{problem.code}]" if getattr(problem, "code", None) else ""
    param = f" ('{problem.param}')" if getattr(problem, "param", None) else ""
    text = message if isinstance(message, str) else problem.response.text
    return " ".join(str(text).split())[:300] + code + param


def _retry_after(headers: Any) -> float | None:
    """Seconds or a date, as HTTP has it."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (TypeError, ValueError):
        return None


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
    with needing("openai", "chat"):
        import openai
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
