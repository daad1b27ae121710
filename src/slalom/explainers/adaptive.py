"""Adaptive sampling: more queries until every Shapley value has a small enough standard error.

Designs of one seed are nested: a larger one begins with the smaller one's queries, which are
not asked again. So a round costs the queries it adds, and one more fit; its size follows from the
ratio of the present to the desired standard error.
"""

from dataclasses import dataclass, replace

import numpy as np

from slalom.document import Document
from slalom.errors import InputError, Setting
from slalom.explainers.base import Around, Explainer, Plan, Request, noted
from slalom.explanation import Explanation

MAX_QUERIES = 8000  # unless n_queries says otherwise


@dataclass(frozen=True)
class WithMaxError(Around):
    """A method that goes on asking until no Shapley value has a larger standard error."""

    method: Explainer
    max_error: float

    def __post_init__(self) -> None:
        given = self.max_error
        if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
            raise InputError(
                Setting("max_error"), f" must be a number above 0, in log-odds, not {given!r}"
            )
        if not self.method.has_shapley_errors:
            raise InputError(
                Setting("max_error"),
                " needs a method whose Shapley values have standard errors, which "
                f"{self.name!r} does not give: use 'slalom', or give ",
                Setting("n_queries"),
            )

    def budget(self, document: Document) -> int:
        """An upper bound: how many it takes is not known before."""
        return MAX_QUERIES

    def plan(self, document: Document, request: Request) -> Plan:
        """Begins with half of the method's own budget: errors from fewer answers are unreliable."""
        limit = request.n_queries or MAX_QUERIES
        n = min(limit, self.method.budget(document) // 2)
        while True:
            found = yield from self.method.plan(document, replace(request, n_queries=n))
            error = _largest_error(found)
            if error <= self.max_error or n >= min(limit, 1 << min(document.n_units, 30)):
                return noted(found, self._outcome(error))
            growth = (error / self.max_error) ** 2 / 1.2  # errors fall as 1/√n or faster
            n = min(limit, int(np.ceil(np.clip(growth, 1.2, 2.0) * n)))

    def _outcome(self, error: float) -> str:
        bound = f"a standard error of at most {self.max_error:g}"
        if error <= self.max_error:
            return f"every Shapley value has {bound}: the largest is {error:.2g}"
        known = np.isfinite(error)
        found = f"the largest is {error:.2g}" if known else "the errors are not known"
        return f"not every Shapley value has {bound}: {found}"


def _largest_error(explanation: Explanation) -> float:
    """Infinite where the answers so far cannot tell."""
    found = explanation.errors.get("shapley")
    return np.inf if found is None else float(found.max(initial=0.0))
