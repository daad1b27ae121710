"""What an explanation will cost, found out without asking the classifier anything.

The method is rehearsed with a stand-in that counts the queries and makes up the answers, so
that the count holds for every method, however it chooses what to ask.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from slalom.classifiers.base import Classifier, Delegating, anew, unpaid
from slalom.document import Document, FloatArray, Queries, Text, distinct
from slalom.explainers.base import Asking, Explainer, Look, Plan, Request
from slalom.explainers.execution.steps import Order, in_step, run_local
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
    stand_in, request = StandIn(classifier), replace(request, target=None)
    if explainer.looks_inside:
        in_step(stand_in, [_before_it_looks(explainer.plan(document, request))])
        stand_in.logits([(document, document.full())])
    else:
        if isinstance(explainer, SurrogateExplainer):
            explainer = replace(explainer, surrogate=AllAlike())
        run_local(stand_in, Order(explainer, request), [document])
    return stand_in.cost()


def _before_it_looks(plan: Plan) -> Asking[None]:
    """What it asks until it looks inside."""
    answer = None
    while not isinstance(wanted := plan.send(answer), Look):
        answer = yield wanted
    plan.close()


@dataclass(frozen=True)
class AllAlike:
    """A fit that takes no time: no unit matters more than another.

    After a fit a method asks about the units that it finds strong. How many there are does not
    depend on it; here they are the first ones.
    """

    def fit(self, observed: Observations) -> Fit:
        nothing = np.zeros_like(observed.document_counts)
        known = np.ones(len(nothing), dtype=bool)
        return Fit(LinearModel(nothing, np.zeros(())), {"score": nothing}, {}, known, None, None)


class StandIn(Delegating):
    """Cuts and reads texts as the classifier does, but never asks it anything."""

    def __init__(self, classifier: Classifier) -> None:
        self.classifier = classifier
        self._seen: set[Hashable] = set()
        self._asked: list[tuple[Document, Queries]] = []  # each distinct query once
        self._again: list[tuple[int, Document, Queries]] = []  # asked anew, and how often before

    def __call__(self, texts: Sequence[Text]) -> FloatArray:
        return np.zeros((len(texts), len(self.labels)))

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        """Those of a bag of words, which every method fits in no time."""
        answers = []
        for document, queries in asked:
            seen = self.seen(document, queries)
            new = [at for at in distinct(seen)[0].tolist() if seen[at] not in self._seen]
            self._seen.update(seen[at] for at in new)
            self._asked.append((document, queries[new]))
            weights = np.random.default_rng(0).normal(size=(document.n_features, len(self.labels)))
            answers.append(document.count(queries) @ weights)
        return answers

    def anew(self, number: int) -> "Again":
        return Again(self, number)

    def again(self, number: int, asked: Sequence[tuple[Document, Queries]]) -> None:
        self._again += [(number, document, queries) for document, queries in asked]

    def cost(self) -> Cost:
        anew_too = [(anew(self.classifier, n), d, q) for n, d, q in self._again]
        asked = [*((self.classifier, d, q) for d, q in self._asked), *anew_too]
        n_queries = len(self._seen) + sum(len(queries) for _, _, queries in anew_too)
        bills = [unpaid(*one) for one in asked]
        paid = [bill for bill in bills if bill is not None]
        if paid:
            n_requests, n_tokens = (sum(column) for column in zip(*paid, strict=True))
            return Cost(n_queries, n_tokens, n_requests)
        tokens = [int(document.n_tokens(queries).sum()) for _, document, queries in asked]
        return Cost(n_queries, sum(tokens))


class Again(Delegating):
    """A stand-in that is asked anew: every query counts."""

    def __init__(self, stand_in: StandIn, number: int) -> None:
        self.classifier: Classifier = stand_in
        self.stand_in, self.number = stand_in, number

    def logits(self, asked: Sequence[tuple[Document, Queries]]) -> list[FloatArray]:
        self.stand_in.again(self.number, asked)
        return self.stand_in.logits(asked)
