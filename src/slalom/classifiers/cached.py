"""A cache around a classifier: no query is made twice.

Two queries are equal when the classifier reads the same for both (`seen`), within one call, across
documents and across calls. Answers are kept in memory.
"""

from collections.abc import Hashable, Sequence
from threading import RLock
from typing import Any

import numpy as np

from slalom.classifiers.base import Classifier, Delegating, anew
from slalom.document import Document, FloatArray, Queries, distinct


class CachedClassifier(Delegating):
    """Any classifier with a cache of its answers; safe to use from several threads."""

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self.answers: dict[Hashable, FloatArray] = {}
        self._lock = RLock()

    @property
    def n_asked(self) -> int:
        """How many queries reached the classifier so far."""
        return len(self.answers)

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        seen = [self.classifier.seen(document, queries) for document, queries in asked]
        with self._lock:  # held during queries, so that no two threads make the same
            self._ask_unknown(asked, seen)
        known, width = self.answers, len(self.labels)
        return [np.array([known[entry] for entry in row]).reshape(len(row), width) for row in seen]

    def anew(self, number: int) -> Classifier:
        return anew(self.classifier, number)

    def _ask_unknown(
        self,
        asked: Sequence[tuple[Document, Queries]],
        seen: Sequence[Sequence[Hashable]],
    ) -> None:
        """Query what is not known yet, all documents in one call."""
        pending: dict[Hashable, None] = {}  # in the order of their queries
        pairs: list[tuple[Document, Queries]] = []
        for (document, queries), row in zip(asked, seen, strict=True):
            first, _ = distinct(row)
            places = {row[at]: at for at in first.tolist() if row[at] not in self.answers}
            new = {entry: at for entry, at in places.items() if entry not in pending}
            if new:
                pairs.append((document, queries[list(new.values())]))
                pending |= dict.fromkeys(new)
        if pairs:
            answers = np.concatenate(self.classifier.logits(pairs))
            self.answers.update(zip(pending, answers, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = RLock()
