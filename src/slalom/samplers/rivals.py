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
from slalom.samplers.base import Samples, distinct_rows, random_subsets

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
        return Samples(queries_from_masks(masks), weights)


@dataclass(frozen=True)
class Coalitions:
    """KernelSHAP's regression on the design of Leverage SHAP (Musco and Witter, ICLR 2025).

    The leverage score of a subset of s of n units is 1/C(n, s): every size gets as many rows, or
    all of its subsets where those are fewer, drawn without replacement. The rows of a size share
    its mass in the regression, 1/(s (n − s)). Each subset comes with its complement; to an
    additive model that adds no equation, so where fewer than PAIRED_FROM rows per unit are left,
    subsets are drawn without complements. The full and the empty text have weight 0: they are
    constraints.
    """

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units, ends = document.n_units, _ends(document)
        if n_queries < len(ends):
            raise BudgetError(
                f"KernelSHAP needs the full and the empty text and was given {n_queries} query: "
                "allow a few hundred"
            )
        masks, weights = _coalitions(n_units, n_queries - len(ends), rng)
        all_weights = np.append(np.zeros(len(ends)), weights)
        return Samples(queries_from_masks(np.concatenate([ends, masks])), all_weights)


def _ends(document: Document) -> BoolArray:
    """The full text and, where it can be asked, the empty one."""
    ends = np.ones((1 + document.has_empty_query, document.n_units), dtype=bool)
    ends[1:] = False
    return ends


def _coalitions(
    n_units: int, n_rows: int, rng: np.random.Generator
) -> tuple[BoolArray, FloatArray]:
    """At most n_rows subsets of the sizes 1 … n − 1, and the weight of each."""
    paired = n_rows >= min(PAIRED_FROM * n_units, 2**n_units - 2)
    sizes = list(range(1, n_units // 2 + 1 if paired else n_units))
    halved = [paired and 2 * size == n_units for size in sizes]  # complements of the same size
    share = np.where(halved, 0.5, 1.0)
    most = share * [float(min(comb(n_units, size), 1 << 60)) for size in sizes]
    expected = _shared(n_rows // 2 if paired else n_rows, share, most)
    drawn = [
        _of_size(np.zeros((n_drawn, n_units), dtype=bool), size, half, rng)
        for size, half, n_drawn in zip(sizes, halved, _rounded(expected, rng), strict=True)
    ]
    mass = share / [size * (n_units - size) for size in sizes]
    weights = np.repeat(mass / np.maximum(expected, 1e-12), [len(rows) for rows in drawn])
    masks = np.concatenate([np.zeros((0, n_units), dtype=bool), *drawn])
    if not paired:
        return masks, weights
    return np.concatenate([masks, ~masks]), np.concatenate([weights, weights])


def _shared(total: int, share: FloatArray, most: FloatArray) -> FloatArray:
    """min(mostᵢ, c shareᵢ) with the c that makes their sum the total, or all there are."""
    full = np.zeros(len(most), dtype=bool)
    while not full.all():
        level = (total - most[full].sum()) / share[~full].sum()
        over = ~full & (level * share >= most)
        if not over.any():
            return np.where(full, most, level * share)
        full |= over
    return most


def _rounded(expected: FloatArray, rng: np.random.Generator) -> list[int]:
    """Whole numbers with these expectations and the same sum: systematic sampling of the rests."""
    marks = np.floor(np.cumsum(expected) + 1e-9 + rng.random() * (1 - 1e-8))
    return [int(number) for number in np.diff(marks, prepend=0.0)]


def _of_size(rows: BoolArray, size: int, half: bool, rng: np.random.Generator) -> BoolArray:
    """So many different subsets of a size; `half`: none beside its complement."""
    n_rows, n_units = rows.shape
    if 3 * n_rows > comb(n_units, size) >> half:
        every = np.array(list(combinations(range(n_units), size)))
        every = every[every[:, 0] == 0] if half else every
        picked = rng.choice(len(every), size=n_rows, replace=False, shuffle=False)
        rows[np.arange(n_rows)[:, None], every[np.sort(picked)]] = True
        return rows

    def draw(n_drawn: int) -> BoolArray:
        drawn = random_subsets(np.full(n_drawn, size), n_units, rng)
        return drawn ^ (half & ~drawn[:, :1])

    return distinct_rows(rows[:0], draw, n_rows)


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
        return Samples(queries_from_masks(masks), weights)


@dataclass(frozen=True)
class Permutations:
    """Units are added one by one in a random order, then in its reverse.

    Rows are the full text, the empty one where it can be asked, then chains of nested subsets of
    the sizes 1 … n − 1. Two chains may contain the same subset, which is asked once.
    """

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units, ends, inner = document.n_units, _ends(document), document.n_units - 1
        if n_queries < len(ends) + inner:
            raise BudgetError(
                f"permutation sampling needs {len(ends) + inner} queries for {n_units} units "
                f"and was given {n_queries}: allow that many, or use 'kernel-shap'"
            )
        parts = [ends]
        n_chains = (n_queries - len(ends)) // inner if inner else 0
        while len(parts) <= n_chains:
            order = rng.permutation(n_units).argsort()
            chain = order < np.arange(1, n_units)[:, None]
            parts += [chain, ~chain[::-1]]
        masks = np.concatenate(parts[: n_chains + 1])
        return Samples(queries_from_masks(masks), np.ones(len(masks)))
