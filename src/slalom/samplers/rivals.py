"""What other methods ask: LIME, KernelSHAP, Shapley values by permutations.

LimeMasks     LIME's random removals and weights
Coalitions    KernelSHAP's subsets and complements
Permutations  units joining one by one in random orders
"""

from dataclasses import dataclass
from itertools import combinations
from math import comb

import numpy as np

from slalom.document import BoolArray, Document, FloatArray, queries_from_masks
from slalom.errors import BudgetError
from slalom.samplers.base import ROUNDS, Samples, are_all_subsets, random_subsets

PAIRED_FROM = 4  # rows per unit


@dataclass(frozen=True)
class LimeMasks:
    """LIME's questions: a uniform number of units removed, near texts weighing more.

    With k of n units kept the cosine distance is d = 1 − √(k/n) and the weight exp(−d²/2b²);
    what is drawn several times is asked once and weighs as often.
    """

    bandwidth: float = 0.25

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        fewest = 0 if document.has_empty_query else 1

        def draw(n: int) -> BoolArray:
            return random_subsets(
                rng.integers(fewest, max(n_units, fewest + 1), size=n), n_units, rng
            )

        drawn = np.vstack([np.ones((1, n_units), dtype=bool), draw(n_queries - 1)])
        masks, times = np.unique(drawn, axis=0, return_counts=True)
        masks, times = masks[::-1], times[::-1]  # the full text first
        distances = 1.0 - np.sqrt(masks.mean(axis=1))
        weights = times * np.exp(-(distances**2) / (2 * self.bandwidth**2))
        return Samples(
            queries_from_masks(masks), weights, complete=are_all_subsets(masks, document)
        )


@dataclass(frozen=True)
class Coalitions:
    """KernelSHAP's questions: a subset and its complement, sizes drawn ∝ 1/(k (n − k)).

    Sizes that the budget covers wholly are asked wholly, the outermost first; the rest are
    drawn, their weights the number of times they came up. The full and the empty text have
    weight 0: they are constraints. A complement brings no equation of its own for an additive
    model: where fewer than PAIRED_FROM rows per unit are left to draw, subsets come alone.
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
        masks, weights, smallest = self._whole_sizes(n_units, n_queries - len(ends))
        left = n_queries - len(ends) - len(masks)
        if left > 1 and 2 * smallest <= n_units:
            drawn, times = self._drawn(n_units, smallest, left, rng)
            sizes = np.arange(smallest, n_units - smallest + 1)
            mass = (1.0 / (sizes * (n_units - sizes))).sum()
            masks, weights = [*masks, *drawn], [*weights, *(mass * times / times.sum())]
        rows = np.array([*ends, *masks])
        fitted = np.append(np.zeros(len(ends)), weights)
        return Samples(queries_from_masks(rows), fitted, complete=are_all_subsets(rows, document))

    def _whole_sizes(self, n_units: int, budget: int) -> tuple[list[BoolArray], list[float], int]:
        """Every subset of the outer sizes that the budget would repeat anyway."""
        masks: list[BoolArray] = []
        weights: list[float] = []
        for size in range(1, n_units // 2 + 1):
            sizes = {size, n_units - size}
            inner = np.arange(size, n_units - size + 1)
            chance = len(sizes) / (size * (n_units - size))
            expected = (budget - len(masks)) * chance / (1.0 / (inner * (n_units - inner))).sum()
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
        """Subsets until n_rows differ, and how often each came up."""
        paired = n_rows >= PAIRED_FROM * n_units
        sizes = np.arange(smallest, n_units - smallest + 1)
        chances = 1.0 / (sizes * (n_units - sizes))
        found: dict[bytes, BoolArray] = {}
        times: dict[bytes, int] = {}
        for _ in range(ROUNDS):
            drawn = rng.choice(sizes, size=n_rows, p=chances / chances.sum())
            for mask in random_subsets(drawn, n_units, rng):
                rows = (mask, ~mask) if paired else (mask,)
                if len(found) + len(rows) > n_rows and mask.tobytes() not in found:
                    return list(found.values()), np.array(list(times.values()), dtype=float)
                for row in rows:
                    found.setdefault(row.tobytes(), row)
                    times[row.tobytes()] = times.get(row.tobytes(), 0) + 1
        return list(found.values()), np.array(list(times.values()), dtype=float)


@dataclass(frozen=True)
class Permutations:
    """Units join one by one in a random order, then in its reverse; shown in document order.

    Rows are the full text, the empty one where it can be asked, then chains of sizes
    1 … n − 1. Chains may meet in the same subset, which is asked once.
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
