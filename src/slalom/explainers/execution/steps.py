"""Many generators of queries in step: all are asked, all are told, until each has its result.

What they ask is asked together, in one call of the classifier per step.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

from slalom.classifiers.base import Classifier
from slalom.document import Document
from slalom.errors import SlalomError
from slalom.explainers.base import (
    Asking,
    AskingMethod,
    Explainer,
    InsideMethod,
    Request,
    Result,
    Split,
)
from slalom.explainers.execution.answers import Conversation, Pending, answers_to
from slalom.explanation import Explanation
from slalom.surrogates.threads import one_thread


@dataclass(eq=False)
class Job:
    """One generator, and where it stands: it waits for an answer, or it is done."""

    plan: Asking[Any]
    conversation: Conversation
    pending: Pending | None = None
    result: Any = None
    seconds: float = field(default=0.0)  # of its own computing

    def advance(self, answer: Any = None) -> None:
        """Up to its next question, or its end."""
        start = perf_counter()
        try:
            wanted = self.plan.send(answer)
            while isinstance(wanted, Split):
                spans, too_long = wanted.spans, wanted.too_long
                classifier, text = self.conversation.classifier, wanted.document.text
                wanted = self.plan.send(classifier.split(text, spans, too_long=too_long))
            self.pending = self.conversation.begin(wanted)
        except StopIteration as done:
            self.pending, self.result = None, done.value
        finally:
            self.seconds += perf_counter() - start
        if isinstance(self.result, Explanation):
            self.result = self._with_cost(self.result)

    def fail(self, problem: SlalomError) -> None:
        self.pending, self.result = None, problem

    def _with_cost(self, explanation: Explanation) -> Explanation:
        """What all its rounds cost together."""
        asked = self.conversation
        quality = replace(
            explanation.quality,
            n_queries=asked.n_queries,
            n_repeats=asked.n_repeats,
            n_tokens=asked.n_tokens,
            seconds=asked.seconds + self.seconds,
        )
        return replace(explanation, quality=quality)


def in_step(
    classifier: Classifier,
    plans: Sequence[Asking[Any]],
    *,
    keep_errors: bool = False,
    n_each: int = 1,
) -> list[Any]:
    """What each of them returns; with `keep_errors` its SlalomError where it fails."""
    jobs = [Job(plan, Conversation(classifier, n_each)) for plan in plans]
    _advance([(job, None) for job in jobs], keep_errors)
    while waiting := [job for job in jobs if job.pending is not None]:
        _advance(_answered(classifier, waiting, keep_errors), keep_errors)
    return [job.result for job in jobs]


def _advance(told: Sequence[tuple[Job, Any]], keep_errors: bool) -> None:
    with one_thread():
        for job, answer in told:
            try:
                job.advance(answer)
            except SlalomError as problem:
                if not keep_errors:
                    raise
                job.fail(problem)


def _answered(
    classifier: Classifier, jobs: Sequence[Job], keep_errors: bool
) -> list[tuple[Job, Any]]:
    """All together; where that fails and errors are kept, each for itself."""
    asked = [(job.conversation, job.pending) for job in jobs if job.pending is not None]
    try:
        return list(zip(jobs, answers_to(classifier, asked), strict=True))
    except SlalomError as problem:
        if not keep_errors:
            raise
        if len(jobs) == 1:
            jobs[0].fail(problem)
            return []
    return [told for job in jobs for told in _answered(classifier, [job], keep_errors)]


@dataclass(frozen=True)
class Order:
    """What is to be done with every document."""

    explainer: Explainer
    request: Request
    keep_errors: bool = False  # a document's SlalomError stands in the place of its explanation


def explained_here(
    classifier: Classifier, order: Order, documents: Sequence[Document]
) -> list[Result]:
    """Documents by one method, together, in this process."""
    explainer, request = order.explainer, order.request
    if isinstance(explainer, AskingMethod):
        n_each, n_queries = request.repeats, request.n_queries
        distinct = replace(request, n_queries=None if n_queries is None else n_queries // n_each)
        plans = [explainer.plan(document, distinct) for document in documents]
        return in_step(classifier, plans, keep_errors=order.keep_errors, n_each=n_each)
    assert isinstance(explainer, InsideMethod)
    try:
        return list(explainer.explain(classifier, documents, request)) if documents else []
    except SlalomError as problem:
        if not order.keep_errors:
            raise
        if len(documents) == 1:
            return [problem]
    return [result for one in documents for result in explained_here(classifier, order, [one])]
