"""A classifier whose answers are counted as they come, for whoever waits."""

from collections.abc import Iterator, Sequence

import numpy as np

from slalom.classifiers.base import Classifier, Delegating, anew, runs_elsewhere
from slalom.document import Document, FloatArray, Queries
from slalom.explainers.execution.progress import Part

TOKENS_PER_REPORT = 2**15  # between two calls of a progress function
ON_DEVICES = 4  # times as many: they like larger batches


class Watched(Delegating):
    """A classifier whose answers are counted as they come."""

    def __init__(self, classifier: Classifier, part: Part) -> None:
        self.classifier = classifier
        self.part = part

    def anew(self, number: int) -> "Watched":
        return Watched(anew(self.classifier, number), self.part)

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        """In slices of about TOKENS_PER_REPORT, each document's answers put together again."""
        answers: list[list[FloatArray]] = [[] for _ in asked]
        n_tokens = TOKENS_PER_REPORT * (ON_DEVICES if runs_elsewhere(self.classifier) else 1)
        for numbers, questions in _slices(asked, n_tokens):
            for number, logits in zip(numbers, self.classifier.logits(questions), strict=True):
                answers[number].append(logits)
            self.part.answered(sum(len(queries) for _, queries in questions))
        return [
            np.concatenate(parts) if parts else np.zeros((0, len(self.labels))) for parts in answers
        ]


def _slices(
    asked: Sequence[tuple[Document, Queries]], n_tokens: int
) -> Iterator[tuple[list[int], list[tuple[Document, Queries]]]]:
    """Questions in their order, cut where enough tokens have come together."""
    numbers: list[int] = []
    questions: list[tuple[Document, Queries]] = []
    room = n_tokens
    for number, (document, queries) in enumerate(asked):
        ends = np.cumsum(document.n_tokens(queries), dtype=np.int64)
        start = 0
        while start < len(queries):
            used = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, used + room, side="right")))
            numbers.append(number)
            questions.append((document, queries[start:stop]))
            room -= int(ends[stop - 1]) - used
            start = stop
            if room <= 0 or start < len(queries):
                yield numbers, questions
                numbers, questions, room = [], [], n_tokens
    if questions:
        yield numbers, questions
