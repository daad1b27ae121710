"""What a text has cost so far, where a method goes more than one round over it."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from slalom.classifiers.base import Classifier, Delegating
from slalom.document import Document, FloatArray, Queries


@dataclass
class Remembering(Delegating):
    """A classifier that knows what each document has cost so far."""

    classifier: Classifier
    costs: dict[int, dict[Hashable, int]] = field(default_factory=dict)  # by the document's frame

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        for document, queries in asked:
            seen = self.classifier.seen(document, queries)
            tokens = document.n_tokens(queries).tolist()
            self.costs.setdefault(id(document.frame), {}).update(zip(seen, tokens, strict=True))
        return self.classifier.logits(asked)

    def cost(self, *documents: Document) -> tuple[int, int]:
        """Distinct queries, and their tokens; of one text, however it was cut."""
        tokens: dict[Hashable, int] = {}
        for document in documents:
            tokens |= self.costs[id(document.frame)]
        return len(tokens), sum(tokens.values())
