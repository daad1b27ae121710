"""What strangers may ask of the server, and the answers they get when it is too much."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Bounds on one request and on all of them together."""

    body: int = 1_000_000  # bytes of a request
    file: int = 20_000_000  # bytes of an explanation that is opened
    entries: int = 20_000  # numbers, texts, lists and objects in a request
    file_entries: int = 500_000  # the same in an explanation that is opened
    cells: int = 50_000  # units × classes of an explanation that is opened
    text: int = 20_000  # characters, both sides of a pair together
    units: int = 5_000  # of a text
    queries: int = 5_000  # of one explanation
    texts: int = 100  # of one prediction
    absent: int = 100  # characters of a text in the place of every absent word
    answer_units: int = 500  # sources of an answer; twice as many are fitted for minutes
    sources: int = 200_000  # characters that a language model is shown, the answer included
    running: int = 2  # explanations at the same time
    waiting: int = 8  # explanations in line behind them
    kept: int = 64  # explanations that what-if can be asked about
    soon_waiting: int = 32  # short answers in line
    seconds: float = 600.0  # of one explanation
    soon_seconds: float = 60.0  # of one short answer: what-if, an order, a file opened
    slow: float = 20.0  # seconds that a client gets for its headers, its body, each part it reads
    connections: int = 200  # at the same time
    soon: float = 20.0  # seconds that a long text takes about, unless n_queries are given


class Refusal(Exception):  # noqa: N818  it is an answer, not an accident
    """A request that gets a clear answer instead of a result."""

    def __init__(self, status: int, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.kind, self.sentence = status, kind, sentence


def busy() -> Refusal:
    return Refusal(503, "busy", "busy: too much is at work already; try again in a moment")
