"""What a failed request means: for the person who asked, and for whether to ask again.

This part knows the errors of the `openai` client and HTTP's status codes.
"""

import time
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any

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
