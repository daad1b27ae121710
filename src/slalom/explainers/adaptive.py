"""Adaptive sampling: more queries until every Shapley value has a small enough standard error.

Designs of one seed are nested: a larger one begins with the smaller one's queries, which are
not asked again. So a round costs the queries it adds, and one more fit; its size follows from the
ratio of the present to the desired standard error.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from slalom.classifiers.base import Classifier
from slalom.classifiers.cached import CachedClassifier
from slalom.document import Document
from slalom.errors import InputError, Setting
from slalom.explainers.base import Explainer, Request
from slalom.explainers.cost_recorder import CostRecorder
from slalom.explanation import Explanation

FIRST_ROUND = 0.5  # of the method's own budget; standard errors from fewer answers are unreliable
GROWTH = 1.2  # factor of one step; a round is one step or several
MAX_STEPS = 4  # per round
MAX_QUERIES = 8000  # unless n_queries says otherwise


@dataclass(frozen=True)
class UntilSure:
    """A method that goes on asking until no Shapley value has a larger standard error."""

    method: Explainer
    max_error: float

    def __post_init__(self) -> None:
        given = self.max_error
        if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
            raise InputError(
                Setting("max_error"), f" must be a number above 0, in log-odds, not {given!r}"
            )
        if not getattr(self.method, "has_shapley_errors", False):
            raise _without_errors(self.name)

    @property
    def name(self) -> str:
        return self.method.name

    @property
    def summary(self) -> str:
        return self.method.summary

    @property
    def only_asks(self) -> bool:
        return bool(getattr(self.method, "only_asks", False))

    def budget(self, document: Document) -> int:
        """An upper bound: how many it takes is not known before."""
        return MAX_QUERIES

    def explain(
        self, classifier: Classifier, documents: Sequence[Document], request: Request
    ) -> list[Explanation]:
        recorder = CostRecorder(CachedClassifier(classifier))
        limit = request.n_queries or MAX_QUERIES
        sizes = [min(limit, int(FIRST_ROUND * self.method.budget(d))) for d in documents]
        done: dict[int, Explanation] = {}
        start = perf_counter()
        while len(done) < len(documents):
            n = min(sizes[at] for at in range(len(documents)) if at not in done)
            now = [at for at in range(len(documents)) if at not in done and sizes[at] == n]
            explained = self.method.explain(
                recorder, [documents[at] for at in now], replace(request, n_queries=n)
            )
            for at, explanation in zip(now, explained, strict=True):
                error = _largest_error(explanation)
                if error <= self.max_error or n >= min(limit, 1 << min(documents[at].n_units, 30)):
                    done[at] = self._with_cost(explanation, recorder, documents[at], error)
                else:
                    sizes[at] = min(limit, int(np.ceil(GROWTH ** self._n_steps(error) * n)))
        seconds = (perf_counter() - start) / max(1, len(documents))
        return [
            replace(done[at], quality=replace(done[at].quality, seconds=seconds))
            for at in range(len(documents))
        ]

    def _n_steps(self, error: float) -> int:
        """Standard errors fall as 1/√n or faster; one step less, so as not to overshoot."""
        steps = 2 * np.log(error / self.max_error) / np.log(GROWTH) - 1
        return int(np.clip(steps, 1, MAX_STEPS))

    def _with_cost(
        self, explanation: Explanation, recorder: CostRecorder, document: Document, error: float
    ) -> Explanation:
        """The explanation with the cost of all rounds, and a note on the error reached."""
        n_queries, n_tokens = recorder.cost(document)
        reached = "reached" if error <= self.max_error else "not reached"
        found = (
            f"the largest of a Shapley value is {error:.2g}"
            if np.isfinite(error)
            else "those of Shapley values are not known"
        )
        note = (
            f"asked on for standard errors of at most {self.max_error:g}, which was {reached}: "
            f"{found}"
        )
        quality = replace(
            explanation.quality,
            n_queries=n_queries,
            n_tokens=n_tokens,
            notes=(*explanation.quality.notes, note),
        )
        return replace(explanation, quality=quality)


def _largest_error(explanation: Explanation) -> float:
    """Infinite where the answers so far cannot tell."""
    if "shapley" not in explanation.scores:
        raise _without_errors(explanation.method)
    found = explanation.errors.get("shapley")
    return np.inf if found is None else float(found.max(initial=0.0))


def _without_errors(method: str) -> InputError:
    return InputError(
        Setting("max_error"),
        f" needs a method whose Shapley values have standard errors, which {method!r} does not "
        "give: use 'slalom', or give ",
        Setting("n_queries"),
    )
