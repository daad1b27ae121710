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
        firsts = np.unique(document.features, return_index=True)[1].astype(np.int32)
        sequences = []
        if self.singletons:
            empty = [[END]] if document.has_empty_query else []
            alone = [[unit] for unit in firsts]
            sequences = [*empty, *alone, *([unit, unit] for unit in firsts)][: n_queries - 1]
        fixed = _rows(sequences, max(self.lengths))

        def draw(n: int) -> Queries:
            drawn = rng.choice(firsts, size=(n, max(self.lengths)))
            lengths = rng.choice(self.lengths, size=n)
            drawn[np.arange(drawn.shape[1]) >= lengths[:, None]] = END
            return drawn

        if n_queries < 2:
            raise BudgetError("short sequences beside the full text take at least 2 queries")
        return _after_full(document, distinct_rows(fixed, draw, n_queries - 1))


@dataclass(frozen=True)
class SingletonsAndPairs:
    """Every distinct unit alone, and paired with two references: 3m − 3 queries.

    One reference would do (2m − 1 queries) but for units with the same value as the reference:
    they need the other one, and which they are is not known beforehand.
    """

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        firsts = np.unique(document.features, return_index=True)[1]
        pairs = [[unit, firsts[0]] for unit in firsts[1:]]
        pairs += [[unit, firsts[1]] for unit in firsts[2:]]
        return _closed_form(document, [[unit] for unit in firsts], pairs, n_queries)


@dataclass(frozen=True)
class SingletonsAndDoubles:
    """The empty query, every distinct unit alone and doubled: 2m + 1 queries."""

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        if not document.has_empty_query:
            raise BudgetError(
                "the anchored closed form asks the empty query, which this classifier cannot "
                "answer: use 'slalom-fast', which fits the anchor without it"
            )
        firsts = np.unique(document.features, return_index=True)[1]
        doubles = [[unit, unit] for unit in firsts]
        alone = [[int(END)], *([unit] for unit in firsts)]
        return _closed_form(document, alone, doubles, n_queries)


def _closed_form(
    document: Document, alone: list[list[int]], together: list[list[int]], n_queries: int
) -> Samples:
    needed = len(alone) + len(together) + 1
    if n_queries < needed:
        raise BudgetError(
            f"the closed form needs {needed} queries for {document.n_features} distinct units "
            f"and was given {n_queries}: allow that many, or use 'slalom-fast'"
        )
    return _after_full(document, _rows([*alone, *together], 2))


def _after_full(document: Document, sequences: Queries) -> Samples:
    """Put the full text first, at weight 0: it tells the predicted class and is not fitted."""
    queries = stack([document.full(), sequences])
    return Samples(queries, np.append(0.0, np.ones(len(sequences))))


def _rows(sequences: list[list[int]], width: int) -> Queries:
    """Sequences of different lengths as one matrix, padded with END."""
    rows = np.full((len(sequences), width), END, dtype=np.int32)
    for row, sequence in zip(rows, sequences, strict=True):
        row[: len(sequence)] = sequence
    return rows
