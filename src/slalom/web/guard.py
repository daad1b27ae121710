"""At the door: who may ask, how much, and what a browser may do with the answer.

A page of somebody else's must not reach this server through the visitor's browser: a foreign
Origin or Host is refused (the latter against names that are made to point here), what changes
anything must be JSON, and with a token set every request must bring it.
"""

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from hmac import compare_digest
from http.cookies import SimpleCookie
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs, urlsplit

Scope = MutableMapping[str, Any]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Callable[[], Awaitable[Any]], Send], Awaitable[None]]

COOKIE = "slalom-token"
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
    """Lets requests through to the app, or answers them itself."""

    app: App
    host: str  # as given; what the server listens on
    token: str | None = None

    async def __call__(self, scope: Scope, receive: Any, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {
            name.decode("latin-1").lower(): v.decode("latin-1") for name, v in scope["headers"]
        }
        guarded = _with_headers(send)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await _answer(guarded, *refusal)
        elif self._brings_token_in_address(scope):
            await _welcome(guarded, str(self.token))
        else:
            await self.app(scope, receive, guarded)

    def _refusal(self, scope: Scope, headers: dict[str, str]) -> tuple[int, str, str] | None:
        host = headers.get("host", "")
        if not self._is_ours(host):
            return 403, "foreign-host", "this server does not answer to that name"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != host:
            return 403, "foreign-origin", "this server does not answer to pages of other sites"
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return 405, "wrong-method", "ask with GET or POST"
        is_json = headers.get("content-type", "").split(";")[0].strip() == "application/json"
        if scope["method"] == "POST" and not is_json:
            return 415, "not-json", "send JSON: content-type application/json"
        if self.token is not None and not self._has_token(scope, headers):
            return 401, "token", "a token is needed: open the address that the server printed"
        return None

    def _is_ours(self, host: str) -> bool:
        name = urlsplit(f"//{host}").hostname or ""
        if name in LOOPBACK or name == self.host.lower():
            return True
        return self.host in ("0.0.0.0", "::") and _is_address(name)

    def _has_token(self, scope: Scope, headers: dict[str, str]) -> bool:
        cookies = SimpleCookie()
        cookies.load(headers.get("cookie", ""))
        given = [headers.get("authorization", "").removeprefix("Bearer ")]
        given += [cookies[COOKIE].value] if COOKIE in cookies else []
        given += self._in_address(scope)
        return any(compare_digest(one.encode(), str(self.token).encode()) for one in given)

    def _brings_token_in_address(self, scope: Scope) -> bool:
        return self.token is not None and scope["path"] == "/" and bool(self._in_address(scope))

    def _in_address(self, scope: Scope) -> list[str]:
        if scope["path"] != "/":  # the page's own address, and no other, may carry it
            return []
        return parse_qs(scope["query_string"].decode("latin-1")).get("token", [])


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _with_headers(send: Send) -> Send:
    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            own = {name.lower() for name, _ in message.get("headers", [])}
            extra = [(n.encode(), v.encode()) for n, v in HEADERS.items() if n.encode() not in own]
            message["headers"] = [*message.get("headers", []), *extra]
        await send(message)

    return sent


async def _answer(send: Send, status: int, kind: str, sentence: str) -> None:
    import json

    body = json.dumps({"error": sentence, "kind": kind}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def _welcome(send: Send, token: str) -> None:
    """The token moves from the address, which is seen and kept, into a cookie."""
    cookie = f"{COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/"
    headers = [(b"location", b"/"), (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 303, "headers": headers})
    await send({"type": "http.response.body", "body": b""})
