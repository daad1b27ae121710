"""The newest explanations of a server, kept so that a page can ask what-if questions."""

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
class StoredExplanation:
    """An explanation with its model, and the document that the model made of the text."""

    explanation: Explanation
    source: tuple[Model, Document] | None  # None: a file whose model is not here


@dataclass(frozen=True)
class Finished:
    """An explanation made here, and the function that turns it into the page's record."""

    stored: StoredExplanation
    draw: Callable[[Explanation], Any]


class ExplanationStore:
    """The newest `limit` explanations, by names that cannot be guessed."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._stored: OrderedDict[str, StoredExplanation] = OrderedDict()
        self._lock = Lock()

    def keep(self, stored: StoredExplanation) -> str:
        name = token_urlsafe(12)
        with self._lock:
            self._stored[name] = stored
            while len(self._stored) > self._limit:
                self._stored.popitem(last=False)
        return name

    def __getitem__(self, name: object) -> StoredExplanation:
        with self._lock:
            if not isinstance(name, str) or name not in self._stored:
                raise Refusal(
                    404, "forgotten", "the server no longer has this explanation: explain again"
                )
            self._stored.move_to_end(name)
            return self._stored[name]

    def __len__(self) -> int:
        return len(self._stored)
