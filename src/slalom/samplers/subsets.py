"""Questions about parts of a text: random subsets of every size, or all but a few units.

SubsetSizes     random subsets of every size, order kept: one word to the whole text
Deletions       the text less a few units: what happens near the document
SingleRemovals  the text less each of its units
AllSubsets      every subset there is: what exact Shapley values need
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
    are_all_subsets,
    distinct_rows,
    random_subsets,
)

MANY = 10**12  # subsets of one size: none of them is drawn twice


@dataclass(frozen=True)
class SubsetSizes:
    """Random subsets whose sizes are uniform, log-uniform or a mixture of both.

    The full text is always there, the empty query where it can be asked, and every distinct
    unit alone, which costs next to nothing. Where the budget covers all subsets, they are all
    asked and nothing is left to chance. Of a short text small and large subsets would be drawn
    again and again; asked once, one that would be drawn λ times weighs λ / (1 − exp −λ).
    """

    log_uniform: float = 0.5  # share of the queries whose size is log-uniform
    singles: float = 0.5  # of the queries, at most, show one unit alone; 0: none on purpose

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        fixed = [np.ones(n_units, dtype=bool)]
        if document.has_empty_query and n_queries > 1:
            fixed.append(np.zeros(n_units, dtype=bool))
        if n_units < 31 and 2**n_units - (not document.has_empty_query) <= n_queries:
            masks = all_subsets(n_units)
            masks = masks if document.has_empty_query else masks[:-1]
            draws, ways = self._draws(masks, n_queries)
            return Samples(queries_from_masks(masks), draws / ways, complete=True, n_alike=ways)
        fixed += self._alone(document, n_queries, rng)

        def draw(n: int) -> BoolArray:
            logs = np.exp(rng.uniform(0.0, np.log(n_units + 1), size=n))
            even = rng.integers(1, n_units + 1, size=n)
            sizes = np.where(rng.random(n) < self.log_uniform, logs, even).astype(int)
            return random_subsets(np.minimum(sizes, n_units), n_units, rng)

        masks = distinct_rows(np.array(fixed), draw, n_queries)
        draws, ways = self._draws(masks, n_queries)
        n_alike = -np.expm1(-draws / ways) * ways  # draws, less those that come up again
        weights = draws / n_alike
        n_alike[masks.sum(axis=1) == 1] = max(1, len(fixed) - 2)
        return Samples(queries_from_masks(masks), weights, n_alike=n_alike)

    def _alone(
        self, document: Document, n_queries: int, rng: np.random.Generator
    ) -> list[BoolArray]:
        """Distinct units by themselves, in a random order where there is no room for all."""
        firsts = np.unique(document.features, return_index=True)[1]
        room = int(self.singles * n_queries)
        kept = firsts if len(firsts) <= room else rng.permutation(firsts)[:room]
        return list(np.eye(document.n_units, dtype=bool)[kept])

    def _draws(self, masks: BoolArray, n_draws: int) -> tuple[FloatArray, FloatArray]:
        """How many rows of each one's size would be drawn, and how many subsets have that size.

        The empty one, which is never drawn, counts like the full one.
        """
        n_units = masks.shape[1]
        sizes = np.arange(1, n_units + 1)
        logs = np.log((sizes + 1) / sizes) / np.log(n_units + 1)
        chances = self.log_uniform * logs + (1 - self.log_uniform) / n_units
        ways = _ways(n_units)
        shown = masks.sum(axis=1)
        at = np.where(shown == 0, n_units, shown) - 1
        return n_draws * chances[at], ways[at]


@cache
def _ways(n_units: int) -> FloatArray:
    """How many subsets there are of the sizes 1 … n, as far as it matters."""
    return np.array([float(min(comb(n_units, size), MANY)) for size in range(1, n_units + 1)])


@dataclass(frozen=True)
class Deletions:
    """The text less up to `max_deleted` units, gaps closed, order kept."""

    max_deleted: int = 10

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        fewest_kept = 0 if document.has_empty_query else 1
        most = min(self.max_deleted, n_units - fewest_kept)

        def draw(n: int) -> BoolArray:
            return random_subsets(n_units - rng.integers(0, most + 1, size=n), n_units, rng)

        masks = distinct_rows(np.ones((1, n_units), dtype=bool), draw, n_queries)
        ones = np.ones(len(masks))
        return Samples(queries_from_masks(masks), ones, complete=are_all_subsets(masks, document))


@dataclass(frozen=True)
class SingleRemovals:
    """The full text, and the text less each of its units: n + 1 queries."""

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
    """Every subset with its Shapley weight: 2ⁿ queries, so for a handful of units."""

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
        ways = np.array([comb(n_units, size) * size * (n_units - size) for size in sizes])
        weights = np.where(ways > 0, 1.0 / np.maximum(ways, 1), 0.0)
        return Samples(queries_from_masks(masks), weights, complete=True)
