"""Short sequences of units, repeats allowed: the cheapest queries, and those of closed forms.

ShortSequences        a few units drawn with replacement
SingletonsAndPairs    what the anchor-free closed form needs
SingletonsAndDoubles  what the anchored closed form needs
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import END, Document, FloatArray, Queries, stack
from slalom.errors import BudgetError
from slalom.samplers.base import Samples, distinct_rows


@dataclass(frozen=True)
class ShortSequences:
    """Sequences of given lengths over the distinct units, drawn with replacement.

    With `singletons` every distinct unit is also asked alone and doubled, and the empty query
    once: without them the anchor is not identified.
    """

    lengths: tuple[int, ...] = (2, 3)
    singletons: bool = False

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        units, width = _different(document), max(self.lengths)
        nothing = np.full((int(document.has_empty_query), width), END, dtype=np.int32)
        fixed = [nothing, units, np.hstack([units, units])] if self.singletons else [nothing[:0]]

        def draw(n: int) -> Queries:
            drawn = rng.choice(units[:, 0], size=(n, width))
            lengths = rng.choice(self.lengths, size=n)
            drawn[np.arange(drawn.shape[1]) >= lengths[:, None]] = END
            return drawn

        if n_queries < 2:
            raise BudgetError("short sequences beside the full text take at least 2 queries")
        return _after_full(document, distinct_rows(stack(fixed), draw, n_queries - 1))


@dataclass(frozen=True)
class SingletonsAndPairs:
    """Every distinct unit alone, then all but one in a pair: 2m − 1 queries (prop. 5.2).

    The proof takes a second reference for units that say what the first says. Here two units
    whose values lie far apart are the references, and every other unit is paired with that one
    of the two from which its own value is further: none is ever equal to it, unless all are.
    """

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        units = _different(document)
        return _closed_form(document, units, units[1:], n_queries, later=True)

    def further(self, document: Document, first: Samples, scores: FloatArray) -> Samples:
        units = _different(document)
        values = scores.reshape(len(scores), -1)[-len(units) :]
        reference = _furthest(values, 0)
        other = _furthest(values, reference)
        apart = [((values - values[at]) ** 2).sum(axis=1) for at in (reference, other)]
        partner = np.where(apart[0] >= apart[1], reference, other)
        partner[other] = reference
        order = np.r_[other, np.delete(np.arange(len(units)), [reference, other])]
        order = order[: len(units) - 1]  # a single unit has no other
        pairs = np.hstack([units[order], units[partner[order]]])
        return _after_full(document, stack([units, pairs]))


@dataclass(frozen=True)
class SingletonsAndDoubles:
    """The empty query, every distinct unit alone and doubled: 2m + 1 queries."""

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        if not document.has_empty_query:
            raise BudgetError(
                "the anchored closed form queries the empty text, which this classifier cannot "
                "answer: use 'slalom-fast', which fits the anchor without it"
            )
        units = _different(document)
        alone = np.vstack([np.full((1, 1), END), units])
        return _closed_form(document, alone, np.hstack([units, units]), n_queries)


def _different(document: Document) -> Queries:
    """The first unit of each feature, as queries of one unit."""
    return np.unique(document.features, return_index=True)[1].astype(np.int32)[:, None]


def _furthest(values: FloatArray, unit: int) -> int:
    return int(((values - values[unit]) ** 2).sum(axis=1).argmax())


def _closed_form(
    document: Document,
    alone: Queries,
    together: Queries,
    n_queries: int,
    *,
    later: bool = False,
) -> Samples:
    """Those together are left for later, or asked at once."""
    needed = len(alone) + len(together) + 1
    if n_queries < needed:
        raise BudgetError(
            f"the closed form needs {needed} queries for {document.n_features} distinct units "
            f"and was given {n_queries}: allow that many, or use 'slalom-fast'"
        )
    return _after_full(document, stack([alone] if later else [alone, together]))


def _after_full(document: Document, sequences: Queries) -> Samples:
    """Put the full text first, at weight 0: it tells the predicted class and is not fitted."""
    queries = stack([document.full(), sequences])
    return Samples(queries, np.append(0.0, np.ones(len(sequences))))
