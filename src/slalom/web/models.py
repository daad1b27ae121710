"""What a server holds: its models, each queried by one caller at a time, and the newest
explanations, kept so that a page can ask what-if questions."""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from secrets import token_urlsafe
from threading import Lock

import numpy as np

from slalom.classifiers.base import Classifier, Delegating, anew
from slalom.document import Document, FloatArray, Queries
from slalom.explanation import Explanation
from slalom.web.limits import Refusal

CHUNK = 64  # queries between two checks of whether anybody still waits for the answers


@dataclass(frozen=True)
class Model:
    """A classifier with the name that requests use for it."""

    name: str
    classifier: Classifier
    lock: Lock = field(default_factory=Lock, compare=False)


@dataclass(frozen=True)
class Models:
    """The models that may be queried, and no others; the first is the default."""

    every: tuple[Model, ...]

    def named(self, name: object) -> Model:
        if name is None and self.every:
            return self.every[0]
        for model in self.every:
            if model.name == name:
                return model
        known = ", ".join(model.name for model in self.every) or "none"
        raise Refusal(404, "unknown-model", f"unknown model {name!r}: this server has {known}")


class ChunkedClassifier(Delegating):
    """A classifier that is queried in small chunks; `answered` is called with their size.

    It may raise, which ends the work at once. Between two chunks others may query the model.
    """

    def __init__(self, model: Model, answered: Callable[[int], None]) -> None:
        self.model, self.classifier = model, model.classifier
        self.lock, self.answered = model.lock, answered

    def anew(self, number: int) -> "ChunkedClassifier":
        return ChunkedClassifier(
            replace(self.model, classifier=anew(self.classifier, number)), self.answered
        )

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        answers = []
        for document, queries in asked:
            parts = [np.zeros((0, len(self.labels)))]
            for start in range(0, len(queries), CHUNK):
                part = queries[start : start + CHUNK]
                self.answered(0)
                with self.lock:
                    parts += self.classifier.logits([(document, part)])
                self.answered(len(part))
            answers.append(np.concatenate(parts))
        return answers


@dataclass(frozen=True)
class StoredExplanation:
    """An explanation with its model, and the document that the model made of the text."""

    explanation: Explanation
    source: tuple[Model, Document] | None  # None: a file whose model is not here


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
