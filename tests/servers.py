"""The live page's server, run for a test, and classifiers that are slow, broken or quick."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np

import slalom
from slalom.web.answers import Language
from slalom.web.limits import Limits
from slalom.web.models import Model, Models
from slalom.web.server import Address, app, listening, server

WORDS = {"great": 3.0, "wonderful": 2.0, "awful": -4.0, "slow": -1.0, "bad": -2.0}


def log_odds(text: str) -> float:
    return 0.2 + sum(WORDS.get(word.strip(".,:;!?").lower(), 0.0) for word in text.split())


def scores(texts: list[str]) -> np.ndarray:
    return np.array([[0.0, log_odds(text)] for text in texts])


def topics(texts: list[str]) -> np.ndarray:
    return np.array(
        [[len(t) % 3, t.count("film"), t.count("song"), t.count("game")] for t in texts], float
    )


class Slow:
    """Takes a while for every text, and counts them."""

    def __init__(self) -> None:
        self.n_asked = 0

    def __call__(self, texts: list[str]) -> np.ndarray:
        self.n_asked += len(texts)
        time.sleep(0.01 * len(texts))
        return scores(texts)


def broken(texts: list[str]) -> np.ndarray:
    raise RuntimeError("secret-path-in-a-trace")


def models(slow: Slow | None = None) -> Models:
    labels = ["negative", "positive"]

    def made(name: str, function: Any, names: list[str] = labels) -> Model:
        return Model(name, slalom.FunctionClassifier(function, labels=names, gives="logits"))

    return Models(
        (
            made("words", scores),
            made("slow", slow or Slow()),
            made("broken", broken),
            made("topics", topics, ["none", "film", "song", "game"]),
        )
    )


class Served:
    """A running server and a client for it."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.url = f"http://127.0.0.1:{address.port}"

    def ask(
        self, path: str, body: object = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any, dict[str, str]]:
        """Status, JSON and headers."""
        data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        given = {"Content-Type": "application/json", **(headers or {})}
        try:
            with urlopen(Request(self.url + path, data, given), timeout=60) as answer:
                return answer.status, _json(answer.read()), dict(answer.headers)
        except HTTPError as problem:
            return problem.code, _json(problem.read()), dict(problem.headers)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode()


@contextmanager
def served(
    given: Models | None = None,
    *,
    limits: Limits = Limits(),  # noqa: B008
    host: str = "127.0.0.1",
    token: str | None = None,
    language: Language | None = None,
) -> Iterator[Served]:
    """A server on a free port, gone when the test is done."""
    taken, address = listening(Address(host, 0, token))
    own = given or (models() if language is None else Models(()))
    application = app(own, address=address, limits=limits, language=language)
    running = server(application, limits)
    thread = threading.Thread(target=running.run, kwargs={"sockets": [taken]})
    thread.start()
    try:
        while not running.started:
            time.sleep(0.01)
        yield Served(address)
    finally:
        running.should_exit = True
        thread.join(20)
        taken.close()
        assert not thread.is_alive()
