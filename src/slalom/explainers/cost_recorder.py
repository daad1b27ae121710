"""What each document has cost, for methods that ask about a text in more than one round."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from slalom.classifiers.base import Classifier, Delegating
from slalom.document import Document, FloatArray, Queries


@dataclass
class CostRecorder(Delegating):
    """A classifier that records the tokens of every distinct query of every document.

    Documents are told apart by their frame, which tied and untied versions share. A recorded
    document is kept: the id of one that was freed could be given to another.
    """

    classifier: Classifier
    _recorded: dict[int, tuple[Document, dict[Hashable, int]]] = field(default_factory=dict)

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        for document, queries in asked:
            seen = self.classifier.seen(document, queries)
            tokens = document.n_tokens(queries).tolist()
            _, costs = self._recorded.setdefault(id(document.frame), (document, {}))
            costs.update(zip(seen, tokens, strict=True))
        return self.classifier.logits(asked)

    def cost(self, *documents: Document) -> tuple[int, int]:
        """Distinct queries and their tokens, over several splits of one text."""
        tokens: dict[Hashable, int] = {}
        for document in documents:
            tokens |= self._recorded[id(document.frame)][1]
        return len(tokens), sum(tokens.values())
