"""Chat servers for tests: one of our own with bad manners, and real ones started on loopback.

`ChatDouble` speaks the OpenAI protocol. It answers from a table of word scores, so that every
log-odds is known, and counts what it was asked. A *manner* may answer a request in its own way.
"""

import json
import math
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any

import numpy as np

import slalom

WORDS = {"wonderful": 2.0, "great": 1.5, "slow": -1.0, "terrible": -2.5, "bad": -1.5}
PROMPT = "Say 0 or 1: <{text}>"
LABELS = {"neg": "0", "pos": "1"}
TEXT = "A slow start, but a wonderful film with great music and one terrible joke."
OTHERS = ("I", "The", "\n", "Sure", "2")


def log_odds(text: str) -> float:
    """What the double thinks of a text: 0.25 and the scores of its words."""
    return 0.25 + sum(WORDS.get(word.strip(".,!"), 0.0) for word in text.split())


def text_of(body: Mapping[str, Any]) -> str:
    """The text inside PROMPT."""
    return body["messages"][-1]["content"].split("<", 1)[1].rsplit(">", 1)[0]


def candidates(text: str, *, mass: float = 0.9) -> list[dict[str, Any]]:
    """The labels share `mass` by their log-odds, the rest goes to other words; unsorted."""
    positive = 1 / (1 + math.exp(-log_odds(text)))
    shares = {"1": mass * positive, "0": mass * (1 - positive)}
    shares |= {token: (1 - mass) / len(OTHERS) for token in OTHERS}
    return [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]


def completion(
    content: str, listed: list[dict[str, Any]] | None, n_tokens: int = 30
) -> dict[str, Any]:
    choice: dict[str, Any] = {"index": 0, "message": {"role": "assistant", "content": content}}
    if listed is not None:
        choice["logprobs"] = {"content": [{**listed[-1], "top_logprobs": listed}]}
    return {"choices": [choice], "usage": {"total_tokens": n_tokens}}


def honest(body: Mapping[str, Any]) -> dict[str, Any]:
    """A polite answer to a request."""
    listed = candidates(text_of(body))
    return completion("1", listed if body.get("logprobs") else None)


@dataclass
class Request:
    """One request as it came in, and the means to answer it."""

    number: int
    body: dict[str, Any]
    headers: Mapping[str, str]
    handler: BaseHTTPRequestHandler
    answered: bool = False

    def answer(self, content: Any, status: int = 200, **headers: str) -> None:
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.handler.send_response(status)
        for name, value in ({"Content-Length": str(len(raw))} | headers).items():
            self.handler.send_header(name.replace("_", "-"), value)
        self.handler.send_header("Content-Type", "application/json")
        self.answered = status == 200
        self.handler.end_headers()
        self.handler.wfile.write(raw)


def lowered(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def hang_up(request: Request) -> None:
    """Close the connection in the middle of everything."""
    request.handler.close_connection = True
    request.handler.connection.shutdown(socket.SHUT_RDWR)


Manner = Callable[[Request], None]


def polite(request: Request) -> None:
    request.answer(honest(request.body))


@dataclass
class ChatDouble:
    """Start it, ask it, stop it, start it again: it remembers everything it was asked."""

    manner: Manner = polite
    port: int = 0
    requests: list[Request] = field(default_factory=list)
    _server: ThreadingHTTPServer | None = None
    _lock: Any = field(default_factory=Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def answered(self) -> list[str]:
        """The texts that got an answer, in order."""
        return [text_of(request.body) for request in self.requests if request.answered]

    def start(self) -> "ChatDouble":
        double = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["Content-Length"])
                body = json.loads(self.rfile.read(length))
                with double._lock:
                    request = Request(len(double.requests), body, lowered(self.headers), self)
                    double.requests.append(request)
                try:
                    double.manner(request)
                except OSError:  # the client has gone
                    self.close_connection = True

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            block_on_close = False
            request_queue_size = 64

        self._server = Server(("127.0.0.1", self.port), Handler)
        self.port = self._server.server_address[1]
        Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def stop(self) -> None:
        if self._server is not None:
            server, self._server = self._server, None
            server.shutdown()
            server.server_close()

    def __enter__(self) -> "ChatDouble":
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()


def chat(double: ChatDouble, **options: Any) -> slalom.ChatClassifier:
    """A classifier that asks the double, with these options of its own."""
    given = {"labels": LABELS, "base_url": double.url, "prompt": PROMPT, **options}
    return slalom.ChatClassifier("double", **given)


def explained(classifier: slalom.ChatClassifier, n_queries: int = 40) -> slalom.Explanation:
    return slalom.explain(classifier, TEXT, target="pos", n_queries=n_queries)


def odds(logits: np.ndarray) -> np.ndarray:
    return logits[:, 1] - logits[:, 0]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def real_servers(folder: Path, *commands: Callable[[int], list[str]]) -> Iterator[list[str]]:
    """Servers that we did not write, each in its own process; gives their base_urls."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    with ExitStack() as stack:
        started = []
        for command in commands:
            port = free_port()
            log = stack.enter_context((folder / f"{port}.log").open("w+b"))
            process = subprocess.Popen(command(port), stdout=log, stderr=log, env=environment)
            stack.callback(process.wait, 10)
            stack.callback(process.terminate)
            started.append((port, process))
        for port, process in started:  # they start side by side
            _wait_until_up(port, process, folder / f"{port}.log")
        yield [f"http://127.0.0.1:{port}/v1" for port, _ in started]


def mlx_command(model: Path, port: int) -> list[str]:
    where = ["--host", "127.0.0.1", "--port", str(port)]
    return [sys.executable, "-m", "mlx_lm", "server", "--model", str(model), *where]


def transformers_command(model: Path, port: int) -> list[str]:
    program = str(Path(sys.executable).parent / "transformers")
    where = ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    return [program, "serve", str(model), *where]


def _wait_until_up(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError(f"no server on port {port} after a minute: {log.read_text()}")
