"""A cache around a classifier: no query is asked twice.

Two queries are equal when the classifier reads the same for both (`seen`), within one call, across
documents and across calls. Answers are kept in memory, the `limit` most recently used of them.
"""

from collections.abc import Hashable, Sequence
from threading import RLock
from typing import Any

import numpy as np

from slalom.classifiers.base import Classifier, Delegating, anew
from slalom.document import Document, FloatArray, Queries, distinct
from slalom.errors import InputError


class CachedClassifier(Delegating):
    """Any classifier with a cache of its answers; safe to use from several threads."""

    def __init__(self, classifier: Classifier, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise InputError(f"limit must be at least 1 answer, or None for no limit, not {limit}")
        self.classifier = classifier
        self.limit = limit
        self._answers: dict[Hashable, FloatArray] = {}  # least recently used first
        self._n_asked = 0
        self._lock = RLock()

    @property
    def n_asked(self) -> int:
        """How many queries reached the classifier so far."""
        return self._n_asked

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        seen = [self.classifier.seen(document, queries) for document, queries in asked]
        with self._lock:  # held while asking, so that two threads do not ask the same
            known = {
                entry: self._answers[entry]
                for row in seen
                for entry in row
                if entry in self._answers
            }
            known |= self._ask_unknown(asked, seen, known)
            self._store(known)
        width = len(self.labels)
        return [np.array([known[entry] for entry in row]).reshape(len(row), width) for row in seen]

    def anew(self, number: int) -> Classifier:
        return anew(self.classifier, number)

    def _ask_unknown(
        self,
        asked: Sequence[tuple[Document, Queries]],
        seen: Sequence[Sequence[Hashable]],
        known: dict[Hashable, FloatArray],
    ) -> dict[Hashable, FloatArray]:
        """Ask what is not known yet, all documents in one go."""
        pending: set[Hashable] = set()
        pairs: list[tuple[Document, Queries]] = []
        entries: list[Hashable] = []
        for (document, queries), row in zip(asked, seen, strict=True):
            first, _ = distinct(row)
            new = [at for at in first.tolist() if row[at] not in known and row[at] not in pending]
            if new:
                pairs.append((document, queries[new]))
                entries.extend(row[at] for at in new)
                pending.update(row[at] for at in new)
        if not pairs:
            return {}
        answers = np.concatenate(self.classifier.logits(pairs))
        self._n_asked += len(entries)
        return dict(zip(entries, answers, strict=True))

    def _store(self, known: dict[Hashable, FloatArray]) -> None:
        for entry, answer in known.items():
            self._answers.pop(entry, None)  # and insert it again, as the most recently used
            self._answers[entry] = answer
        while self.limit is not None and len(self._answers) > self.limit:
            del self._answers[next(iter(self._answers))]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = RLock()
