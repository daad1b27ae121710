"""The models of a server: a list made at the start, each queried by one caller at a time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock

import numpy as np

from slalom.classifiers.base import Classifier, Delegating, anew
from slalom.document import Document, FloatArray, Queries
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

    def with_classifier(self, name: str) -> Model | None:
        """The model whose classifier has this name."""
        return next((model for model in self.every if model.classifier.name == name), None)


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
