"""The designs of other methods: LIME, KernelSHAP, Shapley values by permutations.

LimeMasks     LIME's random removals and weights
Coalitions    KernelSHAP's subsets and complements
Permutations  prefixes of random orders of the units
Halves        ContextCite's subsets: every unit shown with probability one half
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from slalom.document import BoolArray, Document, FloatArray, queries_from_masks
from slalom.errors import BudgetError
from slalom.samplers.base import MAX_ROUNDS, Samples, are_all_subsets, distinct_rows, random_subsets

PAIRED_FROM = 4  # rows per unit: with fewer, complements would use up the budget


@dataclass(frozen=True)
class LimeMasks:
    """LIME's design: a uniform number of units removed, texts near the original weighing more.

    With k of n units kept the cosine distance is d = 1 − √(k/n) and the weight exp(−d²/2b²);
    a subset that is drawn several times is asked once, with the sum of the weights.
    """

    bandwidth: float = 0.25

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        min_kept = 0 if document.has_empty_query else 1
        n_kept = rng.integers(min_kept, max(n_units, min_kept + 1), size=n_queries - 1)
        full = np.ones((1, n_units), dtype=bool)
        drawn = np.vstack([full, random_subsets(n_kept, n_units, rng)])
        masks, n_draws = np.unique(drawn, axis=0, return_counts=True)
        masks, n_draws = masks[::-1], n_draws[::-1]  # the full text first
        distances = 1.0 - np.sqrt(masks.mean(axis=1))
        weights = n_draws * np.exp(-(distances**2) / (2 * self.bandwidth**2))
        return Samples(
            queries_from_masks(masks), weights, complete=are_all_subsets(masks, document)
        )


@dataclass(frozen=True)
class Coalitions:
    """KernelSHAP's design: a subset and its complement, sizes drawn ∝ 1/(k (n − k)).

    Sizes whose subsets the budget covers are enumerated, the smallest and largest first; the other
    subsets are drawn and weighted by how often they were drawn. The full and the empty text have
    weight 0: they are constraints. To an additive model a complement adds no equation: where fewer
    than PAIRED_FROM rows per unit are left to draw, subsets are drawn without complements.
    """

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        ends = [np.ones(n_units, dtype=bool)]
        if document.has_empty_query:
            ends.append(np.zeros(n_units, dtype=bool))
        if n_queries < len(ends):
            raise BudgetError(
                f"KernelSHAP asks the full and the empty text and was given {n_queries} query: "
                "allow a few hundred"
            )
        masks, weights, smallest = self._enumerated(n_units, n_queries - len(ends))
        left = n_queries - len(ends) - len(masks)
        if left > 1 and 2 * smallest <= n_units:
            drawn, n_draws = self._drawn(n_units, smallest, left, rng)
            sizes = np.arange(smallest, n_units - smallest + 1)
            mass = (1.0 / (sizes * (n_units - sizes))).sum()
            masks, weights = [*masks, *drawn], [*weights, *(mass * n_draws / n_draws.sum())]
        rows = np.array([*ends, *masks])
        all_weights = np.append(np.zeros(len(ends)), weights)
        complete = are_all_subsets(rows, document)
        return Samples(queries_from_masks(rows), all_weights, complete=complete)

    def _enumerated(self, n_units: int, budget: int) -> tuple[list[BoolArray], list[float], int]:
        """All subsets of the sizes that are expected often enough, and the first size that is not.

        A size and its complement are enumerated when as many draws of them are expected as there
        are such subsets.
        """
        masks: list[BoolArray] = []
        weights: list[float] = []
        for size in range(1, n_units // 2 + 1):
            sizes = {size, n_units - size}
            inner = np.arange(size, n_units - size + 1)
            mass = len(sizes) / (size * (n_units - size))
            expected = (budget - len(masks)) * mass / (1.0 / (inner * (n_units - inner))).sum()
            n_subsets = comb(n_units, size)
            if expected < n_subsets * len(sizes) * (1 - 1e-9):
                return masks, weights, size
            for kept in sizes:
                for subset in combinations(range(n_units), kept):
                    mask = np.zeros(n_units, dtype=bool)
                    mask[list(subset)] = True
                    masks.append(mask)
                    weights.append(1.0 / (size * (n_units - size) * n_subsets))
        return masks, weights, n_units

    def _drawn(
        self, n_units: int, smallest: int, n_rows: int, rng: np.random.Generator
    ) -> tuple[list[BoolArray], FloatArray]:
        """Up to n_rows distinct subsets, and how often each was drawn."""
        paired = n_rows >= PAIRED_FROM * n_units
        sizes = np.arange(smallest, n_units - smallest + 1)
        probabilities = 1.0 / (sizes * (n_units - sizes))
        distinct: dict[bytes, BoolArray] = {}
        n_draws: dict[bytes, int] = {}
        for _ in range(MAX_ROUNDS):
            drawn = rng.choice(sizes, size=n_rows, p=probabilities / probabilities.sum())
            for mask in random_subsets(drawn, n_units, rng):
                rows = (mask, ~mask) if paired else (mask,)
                if len(distinct) + len(rows) > n_rows and mask.tobytes() not in distinct:
                    return list(distinct.values()), np.array(list(n_draws.values()), dtype=float)
                for row in rows:
                    distinct.setdefault(row.tobytes(), row)
                    n_draws[row.tobytes()] = n_draws.get(row.tobytes(), 0) + 1
        return list(distinct.values()), np.array(list(n_draws.values()), dtype=float)


@dataclass(frozen=True)
class Halves:
    """Every unit is shown with probability ½. The full text comes first and is not fitted."""

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        full = np.ones((1, n_units), dtype=bool)

        def draw(n: int) -> BoolArray:
            drawn = rng.random((n, n_units)) < 0.5
            return drawn if document.has_empty_query else drawn[drawn.any(axis=1)]

        masks = distinct_rows(full, draw, n_queries)
        weights = np.append(0.0, np.ones(len(masks) - 1)) if len(masks) > 1 else np.ones(1)
        return Samples(
            queries_from_masks(masks), weights, complete=are_all_subsets(masks, document)
        )


@dataclass(frozen=True)
class Permutations:
    """Units are added one by one in a random order, then in its reverse.

    Rows are the full text, the empty one where it can be asked, then chains of nested subsets of
    the sizes 1 … n − 1. Two chains may contain the same subset, which is asked once.
    """

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        ends = [np.ones(n_units, dtype=bool)]
        if document.has_empty_query:
            ends.append(np.zeros(n_units, dtype=bool))
        inner = n_units - 1
        if n_queries < len(ends) + inner:
            raise BudgetError(
                f"permutation sampling needs {len(ends) + inner} queries for {n_units} units "
                f"and was given {n_queries}: allow that many, or use 'kernel-shap'"
            )
        parts = [np.array(ends)]
        n_chains = (n_queries - len(ends)) // inner if inner else 0
        while len(parts) <= n_chains:
            order = rng.permutation(n_units).argsort()
            chain = order < np.arange(1, n_units)[:, None]
            parts += [chain, ~chain[::-1]]
        masks = np.concatenate(parts[: n_chains + 1])
        return Samples(queries_from_masks(masks), np.ones(len(masks)))
