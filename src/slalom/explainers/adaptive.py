"""As many queries as it takes: rounds that end when the least sure Shapley value is sure enough.

Designs of one seed are nested: a larger one begins with the smaller one's queries, which are
not asked again. So a round costs the queries it adds, and one more fit; how far it goes follows
from how far the error is from what was wanted.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from slalom.classifiers.base import Classifier
from slalom.classifiers.cached import CachedClassifier
from slalom.document import Document
from slalom.errors import InputError, Setting
from slalom.explainers.base import Explainer, TargetName
from slalom.explainers.remembering import Remembering
from slalom.explanation import Explanation

FIRST_ROUND = 0.5  # of what the method would ask for by itself; errors of fewer answers deceive
GROWTH = 1.2  # from step to step; a round goes one step or several
LONGEST_ROUND = 4  # steps
MOST = 8000  # queries, unless n_queries says otherwise


@dataclass(frozen=True)
class UntilSure:
    """A method that asks on until no Shapley value has a larger standard error."""

    method: Explainer
    max_error: float

    def __post_init__(self) -> None:
        given = self.max_error
        if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
            raise InputError(
                Setting("max_error"), f" must be a number above 0, in log-odds, not {given!r}"
            )

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
        """The most it may come to."""
        return MOST

    def explain(
        self,
        classifier: Classifier,
        documents: Sequence[Document],
        *,
        target: TargetName,
        n_queries: int | None,
        seed: int,
    ) -> list[Explanation]:
        asked = Remembering(CachedClassifier(classifier))
        most = n_queries or MOST
        rounds = [min(most, int(FIRST_ROUND * self.method.budget(d))) for d in documents]
        found: dict[int, Explanation] = {}
        began = perf_counter()
        while len(found) < len(documents):
            n = min(rounds[at] for at in range(len(documents)) if at not in found)
            now = [at for at in range(len(documents)) if at not in found and rounds[at] == n]
            explained = self.method.explain(
                asked, [documents[at] for at in now], target=target, n_queries=n, seed=seed
            )
            for at, explanation in zip(now, explained, strict=True):
                error = _largest_error(explanation)
                if error <= self.max_error or n >= most:
                    found[at] = self._told(explanation, asked, documents[at], error)
                    continue
                rounds[at] = min(most, int(np.ceil(GROWTH ** self._steps(error) * n)))
        seconds = (perf_counter() - began) / max(1, len(documents))
        return [
            replace(found[at], quality=replace(found[at].quality, seconds=seconds))
            for at in range(len(documents))
        ]

    def _steps(self, error: float) -> int:
        """How far to go: standard errors fall as 1/√n or faster, so one step less than that."""
        steps = 2 * np.log(error / self.max_error) / np.log(GROWTH) - 1
        return int(np.clip(steps, 1, LONGEST_ROUND))

    def _told(
        self, explanation: Explanation, asked: Remembering, document: Document, error: float
    ) -> Explanation:
        n_queries, n_tokens = asked.cost(document)
        reached = "reached" if error <= self.max_error else "not reached"
        note = (
            f"asked on for standard errors of at most {self.max_error:g}, which was {reached}: "
            f"the largest of a Shapley value is {error:.2g}"
        )
        quality = replace(
            explanation.quality,
            n_queries=n_queries,
            n_tokens=n_tokens,
            notes=(*explanation.quality.notes, note),
        )
        return replace(explanation, quality=quality)


def _largest_error(explanation: Explanation) -> float:
    if "shapley" not in explanation.errors:
        raise InputError(
            Setting("max_error"),
            f" needs a method whose Shapley values have errors, which {explanation.method!r} "
            "has not: use 'slalom', or give ",
            Setting("n_queries"),
        )
    return float(explanation.errors["shapley"].max(initial=0.0))
