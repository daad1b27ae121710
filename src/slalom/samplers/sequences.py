"""Short sequences of units, repeats allowed: the cheapest queries, and those of closed forms.

ShortSequences        a few units drawn with replacement
SingletonsAndPairs    what the anchor-free closed form needs
SingletonsAndDoubles  what the anchored closed form needs
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import END, Document, Queries, stack
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
    """Every distinct unit alone, and paired with two references: 3m − 3 queries.

    One reference would do (2m − 1 queries) but for units with the same value as the reference:
    they need the other one, and which they are is not known beforehand.
    """

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        units = _different(document)
        references = units[[0] * (len(units) - 1) + [1] * (len(units) - 2)]
        pairs = np.hstack([np.vstack([units[1:], units[2:]]), references])
        return _closed_form(document, units, pairs, n_queries)


@dataclass(frozen=True)
class SingletonsAndDoubles:
    """The empty query, every distinct unit alone and doubled: 2m + 1 queries."""

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        if not document.has_empty_query:
            raise BudgetError(
                "the anchored closed form asks the empty query, which this classifier cannot "
                "answer: use 'slalom-fast', which fits the anchor without it"
            )
        units = _different(document)
        alone = np.vstack([np.full((1, 1), END), units])
        return _closed_form(document, alone, np.hstack([units, units]), n_queries)


def _different(document: Document) -> Queries:
    """The first unit of each feature, as queries of one unit."""
    return np.unique(document.features, return_index=True)[1].astype(np.int32)[:, None]


def _closed_form(document: Document, alone: Queries, together: Queries, n_queries: int) -> Samples:
    needed = len(alone) + len(together) + 1
    if n_queries < needed:
        raise BudgetError(
            f"the closed form needs {needed} queries for {document.n_features} distinct units "
            f"and was given {n_queries}: allow that many, or use 'slalom-fast'"
        )
    return _after_full(document, stack([alone, together]))


def _after_full(document: Document, sequences: Queries) -> Samples:
    """Put the full text first, at weight 0: it tells the predicted class and is not fitted."""
    queries = stack([document.full(), sequences])
    return Samples(queries, np.append(0.0, np.ones(len(sequences))))
