"""The newest explanations of a server, so that a page can ask what happens without a word."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_urlsafe
from threading import Lock
from typing import Any

from slalom.document import Document
from slalom.explanation import Explanation
from slalom.web.limits import Refusal
from slalom.web.models import Model


@dataclass(frozen=True)
class Kept:
    explanation: Explanation
    source: tuple[Model, Document] | None  # None: a file whose model is not here


@dataclass(frozen=True)
class Made:
    """An explanation that was made here, and how a page is told to draw it."""

    kept: Kept
    draw: Callable[[Explanation], Any]


class Shelf:
    """The newest `limit` explanations by a name that cannot be guessed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._lock = Lock()

    def keep(self, kept: Kept) -> str:
        name = token_urlsafe(12)
        with self._lock:
            self._kept[name] = kept
            while len(self._kept) > self._limit:
                self._kept.popitem(last=False)
        return name

    def __getitem__(self, name: object) -> Kept:
        with self._lock:
            if not isinstance(name, str) or name not in self._kept:
                raise Refusal(404, "forgotten", "this explanation is not kept here: explain again")
            self._kept.move_to_end(name)
            return self._kept[name]

    def __len__(self) -> int:
        return len(self._kept)
