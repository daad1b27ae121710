"""The server: the page with its files and the API, a free port, a clean shutdown.

Only the files named here are ever read; no request names a path on the disk.
"""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib.resources import files
from time import monotonic
from typing import TYPE_CHECKING, Any

from slalom.errors import InputError, needing
from slalom.views import html
from slalom.web.answers import Language
from slalom.web.api import Api
from slalom.web.guard import LOOPBACK, Guard
from slalom.web.limits import Limits
from slalom.web.models import Models

if TYPE_CHECKING:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

PORT = 8421
PATIENCE = 3  # seconds that open connections get when the server stops
MOMENT = 0.5  # seconds between two looks for slow clients
SCRIPTS = ("state", "talk", "what_if", "form", "panel", "difference", "app", "sources")
KINDS = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}


@dataclass(frozen=True)
class Address:
    """Where a server listens."""

    host: str = "127.0.0.1"
    port: int = PORT
    token: str | None = None

    @property
    def url(self) -> str:
        host = "127.0.0.1" if self.host == "0.0.0.0" else self.host
        shown = f"[{host}]" if ":" in host else host
        return f"http://{shown}:{self.port}/" + (f"?token={self.token}" if self.token else "")


def app(
    models: Models,
    *,
    address: Address = Address(),  # noqa: B008
    limits: Limits = Limits(),  # noqa: B008
    language: Language | None = None,
    started: Callable[[], None] = lambda: None,
) -> Guard:
    """The whole server as an ASGI application; with a language model, its page is shown.

    `started` is called when it begins to answer.
    """
    if address.host not in LOOPBACK and address.token is None:
        raise InputError(f"a server on {address.host} needs a token: others can reach it")
    with needing("starlette", "web"):
        from starlette.applications import Starlette
        from starlette.responses import Response
        from starlette.routing import Route
    api = Api(models, limits, language)

    @asynccontextmanager
    async def lifetime(_: "Starlette") -> AsyncIterator[None]:
        started()
        yield
        api.close()

    routes = [
        Route(path, answer, methods=[method]) for path, (method, answer) in api.endpoints().items()
    ]
    for path, (content, kind) in _files(language is not None).items():
        routes.append(Route(path, Response(content, media_type=kind), methods=["GET"]))
    refused = {404: _refused, 405: _refused}
    inner = Starlette(routes=routes, lifespan=lifetime, exception_handlers=refused)
    return Guard(inner, address.host, address.token, address.port, limits.slow)


def _files(of_answers: bool) -> dict[str, tuple[str, str]]:
    """Path → content and its type: the page, and the renderer, which files use as well."""
    own = files("slalom.web") / "page"
    scripts = [f"{name}.js" for name in SCRIPTS]
    found = {
        f"/{name}": ((own / name).read_text("utf-8"), KINDS[name.rpartition(".")[2]])
        for name in ("index.html", "answer.html", "app.css", "icon.svg", *scripts)
    }
    pages = {name: found.pop(f"/{name}.html") for name in ("index", "answer")}
    found["/"] = pages["answer" if of_answers else "index"]
    found["/explanation.css"] = html.style(), KINDS["css"]
    found["/explanation.js"] = html.script(), KINDS["js"]
    return found


def _refused(request: "Request", problem: Exception) -> "Response":
    """Errors of routing, as JSON like every other refusal."""
    from starlette.responses import JSONResponse

    status = int(getattr(problem, "status_code", 404))
    path = request.url.path
    wrong = {404: ("unknown", "is not"), 405: ("wrong-method", "takes no such method")}
    kind, predicate = wrong[status]
    sentence = f"{path} {predicate} here: /api/openapi.json lists what is"
    return JSONResponse({"error": sentence, "kind": kind}, status)


def listening(address: Address) -> tuple[socket.socket, Address]:
    """A socket at the address, or at some free port if that one is taken."""
    if not address.host:  # it would mean all networks of this machine
        raise InputError("the host is empty: give the name or address to listen on")
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    for port in (address.port, 0):
        found = socket.socket(family, socket.SOCK_STREAM)
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            found.bind((address.host, port))
            found.listen(128)  # clients wait while the server starts
            return found, Address(address.host, found.getsockname()[1], address.token)
        except OSError as problem:
            found.close()
            if problem.errno != errno.EADDRINUSE or port == 0:
                raise InputError(
                    f"cannot listen on {address.host}, port {port}: {problem.strerror or problem}"
                ) from problem
    raise AssertionError("one of the two ports was taken or refused")


def server(application: Any, limits: Limits = Limits()) -> "uvicorn.Server":  # noqa: B008
    """The application in uvicorn, which does not identify itself and drops slow clients."""
    with needing("uvicorn", "web"):
        import uvicorn

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await application(scope, receive, send)
            return
        connections = made.server_state.connections
        dropping = asyncio.create_task(
            drop_slow(connections, limits.slow, ends=lambda: made.should_exit)
        )
        try:
            await application(scope, receive, send)
        finally:
            dropping.cancel()

    made = uvicorn.Server(
        uvicorn.Config(
            watched,
            log_level="error",
            access_log=False,
            server_header=False,
            lifespan="on",
            http="h11",
            ws="none",
            limit_concurrency=limits.connections,
            timeout_graceful_shutdown=PATIENCE,
            timeout_keep_alive=10,
        )
    )
    return made


async def drop_slow(connections: Any, seconds: float, ends: Callable[[], bool]) -> None:
    """End connections that take longer than this to bring a whole request or to close.

    Uvicorn has a limit between two requests, but none on the headers of one. When the server stops,
    clients that are still sending are not waited for.
    """
    since: dict[Any, float] = {}
    while True:
        await asyncio.sleep(min(seconds / 8, MOMENT))
        for one in [*connections] if ends() else ():
            if one.cycle is not None and one.cycle.more_body:
                one.transport.abort()
        now, idle = monotonic(), [one for one in connections if _is_idle(one)]
        since = {one: since.get(one, now) for one in idle}
        for one, began in since.items():
            if now - began > seconds:
                one.transport.abort()


def _is_idle(connection: Any) -> bool:
    cycle = connection.cycle
    return cycle is None or cycle.response_complete or connection.transport.is_closing()


def run(application: Any, taken: socket.socket) -> None:
    """Serve until Ctrl-C."""
    try:
        server(application).run(sockets=[taken])
    except KeyboardInterrupt:  # uvicorn hands it on once everything is closed
        pass
    finally:
        taken.close()
