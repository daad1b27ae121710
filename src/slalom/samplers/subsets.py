"""Queries that show a part of the text: random subsets of every size, or all but a few units.

SubsetSizes     random subsets of every size, from one word to the full text, in text order
Deletions       the text without a few random units: the neighbourhood of the document
SingleRemovals  the text without each of its units
AllSubsets      all 2ⁿ subsets, which exact Shapley values need
"""

from dataclasses import dataclass
from functools import cache
from math import comb

import numpy as np

from slalom.document import BoolArray, Document, FloatArray, queries_from_masks
from slalom.errors import BudgetError, Setting
from slalom.samplers.base import (
    Samples,
    all_subsets,
    distinct_rows,
    random_subsets,
)

MAX_COUNTED = 10**12  # with more subsets of one size none is drawn twice: the number is irrelevant


@dataclass(frozen=True)
class SubsetSizes:
    """Random subsets whose sizes are uniform, log-uniform or a mixture of both.

    The full text is always included, the empty query where it can be asked, and every distinct
    unit alone, which is cheap. Where the budget covers all subsets, they are all asked and nothing
    is drawn. In a short text the few very small and very large subsets would be drawn repeatedly;
    asked once, a subset that is expected λ times gets the weight λ / (1 − exp −λ).
    """

    log_uniform: float = 0.5  # fraction of the drawn sizes that is log-uniform, else uniform
    singles: float = 0.5  # maximal fraction of the queries reserved for units alone

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        fixed = [np.ones(n_units, dtype=bool)]
        if document.has_empty_query and n_queries > 1:
            fixed.append(np.zeros(n_units, dtype=bool))
        if n_units < 31 and 2**n_units - (not document.has_empty_query) <= n_queries:
            masks = all_subsets(n_units)
            masks = masks if document.has_empty_query else masks[:-1]
            expected, n_subsets = self._expected_draws(masks, n_queries)
            weights = expected / n_subsets
            return Samples(queries_from_masks(masks), weights, due=expected / n_queries)
        alone = self._alone(document, n_queries, rng)

        def draw(n: int) -> BoolArray:
            log_uniform = np.exp(rng.uniform(0.0, np.log(n_units + 1), size=n))
            uniform = rng.integers(1, n_units + 1, size=n)
            sizes = np.where(rng.random(n) < self.log_uniform, log_uniform, uniform).astype(int)
            return random_subsets(np.minimum(sizes, n_units), n_units, rng)

        masks = distinct_rows(np.array([*fixed, *alone]), draw, n_queries)
        expected, n_subsets = self._expected_draws(masks, n_queries)
        n_distinct = -np.expm1(-expected / n_subsets) * n_subsets  # draws to be expected
        weights = expected / n_distinct
        return Samples(queries_from_masks(masks), weights, due=expected / n_queries)

    def _alone(
        self, document: Document, n_queries: int, rng: np.random.Generator
    ) -> list[BoolArray]:
        """Masks of distinct units by themselves, a random choice where there is no room for all."""
        firsts = np.unique(document.features, return_index=True)[1]
        room = int(self.singles * n_queries)
        kept = firsts if len(firsts) <= room else rng.permutation(firsts)[:room]
        return list(np.eye(document.n_units, dtype=bool)[kept])

    def _expected_draws(self, masks: BoolArray, n_draws: int) -> tuple[FloatArray, FloatArray]:
        """For each row: the expected number of draws of its size, and of subsets of that size.

        The empty subset, which is never drawn, is treated like the full one.
        """
        n_units = masks.shape[1]
        sizes = np.arange(1, n_units + 1)
        log_uniform = np.log((sizes + 1) / sizes) / np.log(n_units + 1)
        probabilities = self.log_uniform * log_uniform + (1 - self.log_uniform) / n_units
        shown = masks.sum(axis=1)
        at = np.where(shown == 0, n_units, shown) - 1
        return n_draws * probabilities[at], _subsets_by_size(n_units)[at]


@cache
def _subsets_by_size(n_units: int) -> FloatArray:
    """How many subsets have the sizes 1 … n, at most MAX_COUNTED each."""
    numbers = [min(comb(n_units, size), MAX_COUNTED) for size in range(1, n_units + 1)]
    return np.array(numbers, dtype=np.float64)


@dataclass(frozen=True)
class Deletions:
    """The text without up to `max_deleted` random units, in text order."""

    max_deleted: int = 10

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        min_kept = 0 if document.has_empty_query else 1
        max_deleted = min(self.max_deleted, n_units - min_kept)

        def draw(n: int) -> BoolArray:
            return random_subsets(n_units - rng.integers(0, max_deleted + 1, size=n), n_units, rng)

        masks = distinct_rows(np.ones((1, n_units), dtype=bool), draw, n_queries)
        ones = np.ones(len(masks))
        return Samples(queries_from_masks(masks), ones)


@dataclass(frozen=True)
class SingleRemovals:
    """The full text, and the text without each of its units: n + 1 queries."""

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        removable = n_units > 1 or document.has_empty_query
        needed = 1 + n_units * removable
        if n_queries < needed:
            raise BudgetError(
                f"leaving out each of {n_units} units needs {needed} queries and {n_queries} are "
                "allowed: allow that many, or use larger units"
            )
        rows = [np.ones((1, n_units), dtype=bool)]
        if removable:
            rows.append(~np.eye(n_units, dtype=bool))
        masks = np.concatenate(rows)
        return Samples(queries_from_masks(masks), np.ones(len(masks)))


@dataclass(frozen=True)
class AllSubsets:
    """Every subset with its Shapley kernel weight: 2ⁿ queries, so for a handful of units."""

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        if n_units > 20 or 2**n_units - (not document.has_empty_query) > n_queries:
            raise BudgetError(
                f"exact Shapley values of {n_units} units need 2^{n_units} queries and "
                f"{n_queries} are allowed: use 'kernel-shap', larger units (",
                Setting("units", "sentence"),
                ") or, up to 20 units, more queries",
            )
        masks = all_subsets(n_units)
        masks = masks if document.has_empty_query else masks[:-1]
        sizes = masks.sum(axis=1)
        inverse = np.array([comb(n_units, size) * size * (n_units - size) for size in sizes])
        weights = np.where(inverse > 0, 1.0 / np.maximum(inverse, 1), 0.0)  # 0: constraints
        return Samples(queries_from_masks(masks), weights)
