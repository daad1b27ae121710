"""Access control: who may send requests, and what a browser may do with the answers.

Other sites must not reach this server through a visitor's browser: a foreign Origin or Host is
refused (the latter against DNS rebinding), POST requests must be JSON, and if a token is set, every
request must bring it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from functools import cache
from hmac import compare_digest
from ipaddress import ip_address
from socket import gethostname
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Callable[[], Awaitable[Any]], Send], Awaitable[None]]

COOKIE = "slalom-token"  # and the port: servers on one machine share their cookies
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
LOOPBACK = ("127.0.0.1", "localhost", "::1")


@dataclass(frozen=True)
class Guard:
    """Passes requests on to the app, or refuses them."""

    app: App
    host: str  # as given; what the server listens on
    token: str | None = None
    port: int = 0
    slow: float = 20.0  # seconds in which a client must take each part of an answer

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        from starlette.responses import JSONResponse, RedirectResponse

        headers = _joined(scope["headers"])
        guarded = _with_headers(send, self.slow)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            status, kind, sentence = refusal
            answer: App = JSONResponse({"error": sentence, "kind": kind}, status)
        elif self._brings_token_in_address(scope):
            # the token moves from the address, which is visible and remembered, into a cookie
            kept = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
            answer = RedirectResponse("/", 303, {"set-cookie": kept})
        else:
            answer = self.app
        await answer(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return 403, "foreign-host", "this server does not answer to that name"
        origin = headers.get("origin")
        if origin is not None and _after_scheme(origin) != host.lower():
            return 403, "foreign-origin", "this server does not answer to pages of other sites"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "wrong-method", "use GET or POST"
        kind = headers.get("content-type", "").split(";")[0].strip().lower()
        is_json = kind == "application/json"
        if scope["method"] == "POST" and not is_json:
            return 415, "not-json", "send JSON: content-type application/json"
        if self.token is not None and not self._has_token(scope, headers):
            return 401, "token", "a token is needed: open the address that the server printed"
        return None

    def _is_ours(self, host: str) -> bool:
        name = _name_of(host)
        if name in LOOPBACK or (name and name == self.host.lower()):
            return True
        everywhere = self.host in ("0.0.0.0", "::")
        return everywhere and (_is_address(name) or name in own_names())

    def _has_token(self, scope: Scope, headers: dict[str, str]) -> bool:
        cookies = (part.strip().partition("=") for part in headers.get("cookie", "").split(";"))
        given = [value for name, _, value in cookies if name == self.cookie]
        given.append(headers.get("authorization", "").removeprefix("Bearer "))
        given += self._in_address(scope)
        return any(compare_digest(one.encode(), str(self.token).encode()) for one in given)

    @property
    def cookie(self) -> str:
        return f"{COOKIE}-{self.port}"

    def _brings_token_in_address(self, scope: Scope) -> bool:
        return self.token is not None and scope["path"] == "/" and bool(self._in_address(scope))

    def _in_address(self, scope: Scope) -> list[str]:
        if scope["path"] != "/":  # the page's own address, and no other, may carry it
            return []
        return parse_qs(scope["query_string"].decode("latin-1")).get("token", [])


def _joined(headers: Iterable[tuple[bytes, bytes]]) -> dict[str, str]:
    """Headers by name; a repeated one, such as a second cookie, is appended."""
    found: dict[str, str] = {}
    for name, value in headers:
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        found[key] = f"{found[key]}; {text}" if key in found else text
    return found


def _name_of(host: str) -> str:
    """The host without its port; "" if it is not a host."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:  # "[" and other halves of addresses
        return ""


def _after_scheme(origin: str) -> str:
    scheme, _, host = origin.lower().partition("://")
    return host if scheme in ("http", "https") else ""


@cache
def own_names() -> tuple[str, ...]:
    """The names of this machine on the network."""
    name = gethostname().lower()
    short = name.partition(".")[0]
    return tuple(one for one in (name, short, f"{short}.local") if one)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _with_headers(send: Send, slow: float) -> Send:
    from starlette.datastructures import MutableHeaders

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        async with asyncio.timeout(slow):
            await send(message)

    return sent
