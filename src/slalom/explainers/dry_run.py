"""What an explanation will cost, found out without asking the classifier anything.

The method is rehearsed with a stand-in that counts the queries and makes up the answers, so
that the count holds for every method, however it chooses what to ask.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from slalom.classifiers.base import Classifier, Delegating, anew, unpaid
from slalom.document import Document, FloatArray, Queries
from slalom.explainers.base import Explainer, Request
from slalom.explainers.baselines import Baseline, all_zero
from slalom.explainers.execution.steps import Order, run_local
from slalom.explainers.phrases import ByPhrases
from slalom.explainers.surrogate import SurrogateExplainer
from slalom.surrogates.additive import LinearModel
from slalom.surrogates.base import Fit, Observations


@dataclass(frozen=True)
class Cost:
    """What one explanation takes."""

    n_queries: int  # distinct texts the classifier is shown
    n_tokens: int  # through the model; estimated where the classifier does not show its tokens
    n_requests: int | None = None  # still to be paid for, at most; None: nothing is sent anywhere


def dry_run(
    explainer: Explainer, classifier: Classifier, document: Document, *, request: Request
) -> Cost:
    """The cost of an explanation of the document; nothing is asked.

    Of what a method finds inside the model nothing is counted, as only the real one has it. Which
    class is explained makes no difference.
    """
    stand_in = StandIn(classifier)
    order = Order(_without_fit(explainer), replace(request, target=None))
    run_local(stand_in, order, [document])
    return stand_in.cost()


def _without_fit(explainer: Explainer) -> Explainer:
    """A method that asks as much and finds nothing out."""
    if isinstance(explainer, ByPhrases):
        return replace(explainer, method=_without_fit(explainer.method))
    if isinstance(explainer, Baseline):
        return replace(explainer, score=all_zero, looks_inside=False)
    if isinstance(explainer, SurrogateExplainer):
        return replace(explainer, surrogate=AllAlike())
    return explainer


@dataclass(frozen=True)
class AllAlike:
    """A fit that takes no time: no unit matters more than another.

    After a fit a method asks about the units that it finds strong. How many there are does not
    depend on it; here they are the first ones.
    """

    def fit(self, observed: Observations) -> Fit:
        zeros = np.zeros_like(observed.document_counts)
        return Fit(LinearModel(zeros, np.zeros(())), {"score": zeros})


Bill = list[tuple[int, Document, Queries]]  # which repetition (0: the first time), of what


class StandIn(Delegating):
    """Cuts and reads texts as the classifier does, but never asks it anything."""

    def __init__(self, classifier: Classifier, number: int = 0, bill: Bill | None = None) -> None:
        self.classifier = classifier
        self.number = number  # 0: as ever; else asked anew, for the first, second, … time
        self.bill: Bill = [] if bill is None else bill

    def anew(self, number: int) -> "StandIn":
        return StandIn(self.classifier, number, self.bill)

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        """Those of a bag of words, which every method fits in no time."""
        self.bill.extend((self.number, *pair) for pair in asked)
        return [document.count(queries) @ self._weights(document) for document, queries in asked]

    def _weights(self, document: Document) -> FloatArray:
        return np.random.default_rng(0).normal(size=(document.n_features, len(self.labels)))

    def cost(self) -> Cost:
        """Of all that was asked: nothing is asked twice, but for what is asked anew."""
        n_queries, n_tokens, paid = 0, 0, []
        for number, document, queries in self.bill:
            asked = anew(self.classifier, number) if number else self.classifier
            n_queries += len(queries)
            n_tokens += int(document.n_tokens(queries).sum())
            paid.append(unpaid(asked, document, queries))
        bills = [bill for bill in paid if bill is not None]
        if not bills:
            return Cost(n_queries, n_tokens)
        n_requests, n_tokens = (sum(column) for column in zip(*bills, strict=True))
        return Cost(n_queries, n_tokens, n_requests)
