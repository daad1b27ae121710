"""The page's server under load: many clients that ask, leave, dawdle and send nonsense.

    python -m benchmarks.load --minutes 5 --clients 16
    python -m benchmarks.load --minutes 1 --schemathesis PATH   then requests made from its OpenAPI

The server is a process of its own with a small classifier; all traffic goes to 127.0.0.1. Shown
are, by kind of request, how long answers took and which they were (0: the client left, −1: the
server ended the connection); then the server's memory after each quarter of the run. It fails on
an answer of 500, on a server that is busy when all have left, and on memory that does not come
back.
"""

import argparse
import json
import random
import re
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import numpy as np

import slalom
from benchmarks.fuzz import SAYS, WORDS

MOST_GROWTH = 60.0  # megabytes that may stay: what is kept for what-if, and the allocator's
PARTS = 4  # of the run; what a server takes once, in the first of them, is no leak
REST = 8.0  # seconds of silence before memory is measured


def bag_of_words(texts: list[str]) -> np.ndarray:
    time.sleep(2e-5 * len(texts))
    return np.array([[0.0, sum(SAYS.get(word, 0.01) for word in t.split())] for t in texts])


def child() -> None:
    """The server, until it is told to stop."""
    from benchmarks.inside import Address, Models, app, listening, run
    from benchmarks.inside import PageModel as Model

    classifier = slalom.FunctionClassifier(bag_of_words, ["bad", "good"], gives="logits")
    taken, address = listening(Address("127.0.0.1", 0, "token-of-the-load-run"))
    held = Models((Model("words", classifier),))
    run(app(held, address=address, started=lambda: print(address.url, flush=True)), taken)


@dataclass
class Tally:
    """Times and answers by kind of request; one for all clients."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    answers: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, kind: str, status: int, seconds: float) -> None:
        with self.lock:
            self.seconds[kind].append(seconds)
            self.answers[kind][status] += 1


class Client:
    """One of many, with a mind of its own."""

    def __init__(self, port: int, token: str, seed: int) -> None:
        self.port, self.token, self.rng = port, token, random.Random(seed)
        self.names: list[tuple[str, int]] = []  # explanations that what-if can be asked about
        self.kept: list[bytes] = []  # files

    def text(self) -> str:
        return " ".join(self.rng.choices(WORDS, k=self.rng.choice((3, 8, 20, 60))))

    def ask(
        self, path: str, body: bytes | None, *, accept: str = "*/*", token: str | None = None
    ) -> tuple[int, bytes]:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=120)
        headers = {"Authorization": f"Bearer {token or self.token}", "Accept": accept}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request("GET" if body is None else "POST", path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def page(self) -> int:
        return self.ask(self.rng.choice(("/", "/app.js", "/explanation.js")), None)[0]

    def health(self) -> int:
        return self.ask("/api/health", None)[0]

    def stranger(self) -> int:
        return self.ask("/api/models", None, token="wrong")[0]

    def explain(self) -> int:
        asked = {"text": self.text(), "n_queries": self.rng.choice((30, 100, 300))}
        asked["method"] = self.rng.choice(("slalom", "slalom-fast", "linear", "lime", "nothing"))
        status, content = self.ask("/api/explain", json.dumps(asked).encode())
        if status == 200:
            self.kept = [*self.kept[-3:], content]
        return status

    def stream(self) -> int:
        body = json.dumps({"text": self.text(), "n_queries": 200}).encode()
        status, content = self.ask("/api/explain", body, accept="text/event-stream")
        last = content.decode().strip().rpartition("event: ")[2]
        if last.startswith("done"):
            made = json.loads(last.partition("data: ")[2])
            self.names = [*self.names[-3:], (made["id"], len(made["explanation"]["units"]))]
        elif '"status": ' in last:
            return int(re.findall(r'"status": (\d+)', last)[0])
        return status

    def leave(self) -> int:
        """Asks for an explanation and is gone before it comes."""
        body = json.dumps({"text": self.text() * 3, "n_queries": 3000}).encode()
        self.send(self.head("/api/explain", len(body)) + body, self.rng.uniform(0, 0.3))
        return 0

    def dawdle(self) -> int:
        """A header, or a body, that does not go on."""
        data = self.head("/api/predict", 500)
        self.send(data[: self.rng.randrange(len(data))], self.rng.uniform(0, 2.0))
        return 0

    def predict(self) -> int:
        texts = [self.text() for _ in range(self.rng.choice((1, 5, 50)))]
        return self.ask("/api/predict", json.dumps({"texts": texts}).encode())[0]

    def what_if(self) -> int:
        name, n_units = self.rng.choice(self.names or [("nobody", 1)])
        removed = self.rng.sample(range(n_units), min(n_units, 2))
        body = json.dumps({"explanations": [name], "removed": removed}).encode()
        return self.ask("/api/whatif", body)[0]

    def order(self) -> int:
        name, _ = self.rng.choice(self.names or [("nobody", 1)])
        return self.ask("/api/order", json.dumps({"explanation": name}).encode())[0]

    def pairs(self) -> int:
        name, _ = self.rng.choice(self.names or [("nobody", 1)])
        return self.ask("/api/pairs", json.dumps({"explanation": name, "k": 5}).encode())[0]

    def open(self) -> int:
        return self.ask("/api/open", self.rng.choice(self.kept or [b"{}"]))[0]

    def nonsense(self) -> int:
        body = self.rng.choice(self.kept or [b'{"text": "x"}'])
        at = self.rng.randrange(len(body))
        path = self.rng.choice(("/api/open", "/api/explain", "/api/whatif", "/api/nothing"))
        return self.ask(path, body[:at] + self.rng.randbytes(3) + body[at + 3 :])[0]

    def much(self) -> int:
        body = b'{"scores": [' + b"[]," * self.rng.choice((10**5, 3 * 10**6)) + b"1]}"
        return self.ask("/api/open", body)[0]

    def head(self, path: str, length: int) -> bytes:
        return (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            f"Authorization: Bearer {self.token}\r\nContent-Length: {length}\r\n\r\n"
        ).encode()

    def send(self, data: bytes, stay: float) -> None:
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as connection:
            connection.sendall(data)
            time.sleep(stay)

    def acts(self) -> dict[str, tuple[Callable[[], int], float]]:
        """What it does, and how often."""
        return {
            "page": (self.page, 3), "health": (self.health, 1), "stranger": (self.stranger, 1),
            "explain": (self.explain, 4), "stream": (self.stream, 4), "leave": (self.leave, 2),
            "dawdle": (self.dawdle, 1), "predict": (self.predict, 3), "what-if": (self.what_if, 4),
            "order": (self.order, 2), "pairs": (self.pairs, 1), "open": (self.open, 2),
            "nonsense": (self.nonsense, 3), "much": (self.much, 0.3),
        }  # fmt: skip

    def live(self, tally: Tally, until: float) -> None:
        acts = self.acts()
        names, odds = [*acts], [often for _, often in acts.values()]
        while time.monotonic() < until:
            kind = self.rng.choices(names, odds)[0]
            began = time.monotonic()
            try:
                status = acts[kind][0]()
            except (OSError, HTTPException):  # the server ended the connection, as it may
                status = -1
            tally.add(kind, status, time.monotonic() - began)
            time.sleep(self.rng.uniform(0, 0.2))


def resident(process: int) -> float:
    """Megabytes."""
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def table(tally: Tally) -> list[str]:
    lines = ["| request | answers | p50, ms | p95, ms | of them |", "|---|---|---|---|---|"]
    for kind, seconds in sorted(tally.seconds.items()):
        middle, most = np.quantile(seconds, (0.5, 0.95)) * 1000
        statuses = ", ".join(f"{status}: {n}" for status, n in sorted(tally.answers[kind].items()))
        lines.append(f"| {kind} | {len(seconds)} | {middle:.0f} | {most:.0f} | {statuses} |")
    return lines


def run(minutes: float, clients: int, schemathesis: str | None = None) -> list[str]:
    """The whole run; what is wrong with it."""
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.load", "--child"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        port, token = re.findall(r":(\d+)/\?token=(.+)", process.stdout.readline())[0]
        tally, every = Tally(), [Client(int(port), token, seed) for seed in range(clients)]
        memory = []
        for _ in range(PARTS):
            _together(every, tally, 60 * minutes / PARTS)
            memory.append(resident(process.pid))
        faults = _tried(schemathesis, port, token) if schemathesis else []
        left = json.loads(every[0].ask("/api/health", None)[1])
        grown = resident(process.pid) - memory[0]
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
    n_failed = sum(answers[500] for answers in tally.answers.values())
    n_all = sum(map(len, tally.seconds.values()))
    print("\n".join(table(tally)))
    print(f"\n{n_all} requests of {clients} clients in {minutes:g} minutes, {n_failed} × 500;")
    told = ", ".join(f"{size:.0f}" for size in memory)
    print(f"memory after each quarter: {told} MB; {left['running']} still running")
    faults += [f"{n_failed} answers of 500"] if n_failed else []
    faults += [f"{left} after everyone left"] if left["running"] + left["waiting"] else []
    faults += [f"{grown:.0f} MB stayed"] if grown > MOST_GROWTH else []
    return faults


def _together(clients: list[Client], tally: Tally, seconds: float) -> None:
    """All of them at once, then silence."""
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=one.live, args=(tally, until)) for one in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    time.sleep(REST)


def _tried(program: str, port: str, token: str) -> list[str]:
    """Requests made from the description that the server gives of itself."""
    with tempfile.TemporaryDirectory() as folder:  # where it leaves what it remembers
        done = subprocess.run(
            [
                Path(program).absolute(), "run", f"http://127.0.0.1:{port}/api/openapi.json",
                "--header", f"Authorization: Bearer {token}", "--max-examples", "50", "--checks",
                "not_a_server_error,response_schema_conformance,content_type_conformance",
            ], cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
    print(done.stdout[-3000:])
    return [] if done.returncode == 0 else ["schemathesis found something"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--schemathesis", help="the program, in an environment of its own")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    given: Any = parser.parse_args()
    if given.child:
        child()
    elif faults := run(given.minutes, given.clients, given.schemathesis):
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    main()
