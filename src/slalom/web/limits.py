"""Limits on requests, and refusals of those that exceed them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on one request and on all of them together."""

    body: int = 1_000_000  # bytes of a request
    file: int = 20_000_000  # bytes of an explanation file
    entries: int = 20_000  # numbers, texts, lists and objects in a request
    file_entries: int = 500_000  # the same in an explanation file
    cells: int = 50_000  # units × classes of an explanation file
    text: int = 20_000  # characters, both sides of a pair together
    units: int = 5_000  # of a text
    queries: int = 5_000  # of one explanation
    texts: int = 100  # of one prediction
    absent: int = 100  # characters of a text that replaces absent words
    answer_units: int = 500  # sources of an answer; twice as many take minutes to fit
    sources: int = 200_000  # characters of sources, question and answer
    running: int = 2  # explanations at the same time
    waiting: int = 8  # explanations waiting behind them
    kept: int = 64  # explanations kept for what-if
    soon_waiting: int = 32  # short jobs waiting
    seconds: float = 600.0  # of one explanation
    soon_seconds: float = 60.0  # of one short job: what-if, an order, opening a file
    slow: float = 20.0  # seconds a client has for its headers, its body, each part it reads
    connections: int = 200  # at the same time
    soon: float = 20.0  # seconds a long text may take, about, unless n_queries is given


class Refusal(Exception):  # noqa: N818  it is an answer, not an error
    """The answer to a request that gets no result."""

    def __init__(self, status: int, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.kind, self.sentence = status, kind, sentence


def wrong(sentence: str) -> Refusal:
    return Refusal(400, "wrong", sentence)


def busy() -> Refusal:
    return Refusal(503, "busy", "busy: too many requests are at work; try again in a moment")
