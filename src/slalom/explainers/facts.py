"""What can be asked is not estimated: single units, single removals, the empty text.

After a fit the classifier is asked what it says to every unit alone, and to the text less each of
the units that matter most: a second round of queries.
"""

from dataclasses import dataclass, replace

import numpy as np

from slalom.document import BoolArray, Document, FloatArray, Queries, queries_from_masks
from slalom.explainers.base import Ask, Asking
from slalom.explainers.stages import Fitted, FollowUp
from slalom.surrogates.base import Fit


@dataclass(frozen=True)
class Facts:
    """How much is asked beside the fit."""

    max_removals: int = 100  # units, the strongest first
    share: float = 0.25  # of a given number of queries, at most
    rows_per_unit: int = 3  # random ones that come before removals beyond `min_removals`
    min_removals: int = 25

    def reserved(self, document: Document, n_queries: int | None) -> int:
        """How many of `n_queries` are kept back for what is asked after the fit."""
        n_subsets = 2 ** min(document.n_units, 30) - (not document.has_empty_query)
        if n_queries is None or n_queries >= n_subsets:
            return 0
        n_different = len(np.unique(document.features))  # each is asked alone
        spare = n_queries - n_different - self.rows_per_unit * n_different
        most = min(self.max_removals, max(self.min_removals, spare))
        return min(document.n_units, most, int(self.share * n_queries))

    def masks(self, document: Document, fit: Fit, room: int | None) -> BoolArray:
        """Nothing, the text less each of the strongest units, and every unit alone."""
        n_units = document.n_units
        wanted = min(n_units, self.max_removals, n_units if room is None else max(room, 0))
        strongest = np.argsort(-strength_of(fit)[document.features], kind="stable")[:wanted]
        single = np.eye(n_units, dtype=bool)
        nothing = np.zeros((1, n_units), dtype=bool)
        masks = np.vstack([nothing, ~single[np.sort(strongest)], single])
        return masks if document.has_empty_query else masks[masks.any(axis=1)]


def ask_facts(
    plan: Facts | None, one: Fitted, *, n_queries: int | None, again: Queries
) -> Asking[Fitted]:
    """The second round; never more than `n_queries` with the first.

    In it some of the first are asked anew: a later call finds noise as well as drift.
    """
    document, first = one.case.document, one.case.answers
    masks = np.zeros((0, document.n_units), dtype=bool)
    if plan is not None:
        room = None if n_queries is None else n_queries - first.n_queries - len(again)
        masks = plan.masks(document, one.fit, room)
    answers = yield Ask(document, queries_from_masks(masks), n_queries, again)
    # the full text stays the first of the rows that tell the target
    kept = replace(answers, logits=first.logits, first=first.first, inverse=first.inverse)
    follow_up = FollowUp(masks[answers.rows], one.case.scores_of(answers.logits))
    return replace(one, case=replace(one.case, answers=kept), follow_up=follow_up)


def strength_of(fit: Fit) -> FloatArray:
    """How much each feature matters, by the strongest of its classes."""
    names = [name for name in ("shapley", "removal", "score") if name in fit.scores]
    sizes = [np.abs(fit.scores[name]).reshape(len(fit.scores[name]), -1) for name in names]
    return np.asarray(np.max([size.max(axis=1) for size in sizes], axis=0))
