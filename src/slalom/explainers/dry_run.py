"""What an explanation will cost, found out without asking the classifier anything.

The method is rehearsed with a stand-in that counts the questions and makes up the answers, so
that the count holds for every method, however it chooses what to ask.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from slalom.classifiers.base import Classifier, Delegating, unpaid
from slalom.classifiers.cached import distinct
from slalom.document import Document, FloatArray, Queries, Text
from slalom.explainers.base import Explainer
from slalom.explainers.white_box import WhiteBox


@dataclass(frozen=True)
class Cost:
    """What one explanation takes."""

    n_queries: int  # distinct texts the classifier is shown
    n_tokens: int  # through the model; estimated where the classifier does not show its tokens
    n_requests: int | None = None  # still to be paid for, at most; None: nothing is sent anywhere


def dry_run(
    explainer: Explainer,
    classifier: Classifier,
    document: Document,
    *,
    n_queries: int | None,
    seed: int,
) -> Cost:
    """The cost of `explainer.explain` with the same arguments; nothing is asked.

    Of a method that looks into the model only the reading of the text is counted.
    """
    stand_in = StandIn(classifier)
    if isinstance(explainer, WhiteBox):  # it looks into the model, which only the real one has
        stand_in.logits([(document, document.full())])
    else:
        explainer.explain(stand_in, [document], target=None, n_queries=n_queries, seed=seed)
    return stand_in.cost()


class StandIn(Delegating):
    """Cuts and reads texts as the classifier does, but never bothers it with a question."""

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self._asked: dict[Hashable, tuple[Document, Queries]] = {}  # one query each

    def __call__(self, texts: Sequence[Text]) -> FloatArray:
        return np.zeros((len(texts), len(self.labels)))

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        """Those of a bag of words, which every method fits in no time."""
        answers = []
        for document, queries in asked:
            seen = self.seen(document, queries)
            for at in distinct(seen)[0].tolist():
                self._asked.setdefault(seen[at], (document, queries[[at]]))
            says = np.random.default_rng(0).normal(size=(document.n_features, len(self.labels)))
            answers.append(document.count(queries) @ says)
        return answers

    def cost(self) -> Cost:
        asked = self._asked.values()
        bills = [unpaid(self.classifier, document, query) for document, query in asked]
        paid = [bill for bill in bills if bill is not None]
        if paid:
            n_requests, n_tokens = (sum(column) for column in zip(*paid, strict=True))
            return Cost(len(asked), n_tokens, n_requests)
        return Cost(len(asked), sum(int(document.n_tokens(one)[0]) for document, one in asked))
