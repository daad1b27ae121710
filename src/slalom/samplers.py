"""Which questions to ask: samplers know positions, never tokens.

    SubsetSizes          random subsets of every size, order kept: one word to the whole text
    Deletions            the text less a few units: what happens near the document
    ShortSequences       a few units drawn with replacement: the cheapest questions
    SingletonsAndPairs   what the anchor-free closed form needs
    SingletonsAndDoubles what the anchored closed form needs
    LimeMasks            LIME's random removals and weights
    Coalitions           KernelSHAP's subsets and complements
    AllSubsets           what exact Shapley values need
    Permutations         units joining one by one in random orders
    SingleRemovals       the text less each of its units

Every sampler returns at most `n_queries` rows, all different, the full text first. Rows of
weight 0 are asked (the full text tells the predicted class) but not fitted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from slalom.document import END, BoolArray, Document, FloatArray, Queries, queries_from_masks, stack
from slalom.errors import BudgetError

ROUNDS = 20  # how often a sampler draws again to replace repeats before it gives up
PAIRED_FROM = 4  # rows a unit


@dataclass(frozen=True, eq=False)
class Samples:
    """Queries and the weight of each in the fit."""

    queries: Queries  # (n, width)
    weights: FloatArray  # (n,)
    complete: bool = False  # True: every subset there is; no query is left to generalise to


class Sampler(Protocol):
    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples: ...


@dataclass(frozen=True)
class SubsetSizes:
    """Random subsets whose sizes are uniform, log-uniform or a mixture of both.

    The full text is always there, and the empty query where it can be asked. Where the
    budget covers all subsets, they are all asked and nothing is left to chance.
    """

    log_uniform: float = 0.5  # share of the queries whose size is log-uniform

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        fixed = [np.ones(n_units, dtype=bool)]
        if document.can_be_empty and n_queries > 1:
            fixed.append(np.zeros(n_units, dtype=bool))
        first = np.array(fixed)

        def draw(n: int) -> BoolArray:
            logs = np.exp(rng.uniform(0.0, np.log(n_units + 1), size=n))
            even = rng.integers(1, n_units + 1, size=n)
            sizes = np.where(rng.random(n) < self.log_uniform, logs, even).astype(int)
            return _subsets(np.minimum(sizes, n_units), n_units, rng)

        if n_units < 31 and 2**n_units - (not document.can_be_empty) <= n_queries:
            masks = _all_subsets(n_units)
            masks = masks if document.can_be_empty else masks[:-1]
            return Samples(queries_from_masks(masks), np.ones(len(masks)), complete=True)
        masks = _distinct(first, draw, n_queries)
        return Samples(queries_from_masks(masks), np.ones(len(masks)))


@dataclass(frozen=True)
class Deletions:
    """The text less up to `max_deleted` units, gaps closed, order kept."""

    max_deleted: int = 10

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        fewest_kept = 0 if document.can_be_empty else 1
        most = min(self.max_deleted, n_units - fewest_kept)

        def draw(n: int) -> BoolArray:
            return _subsets(n_units - rng.integers(0, most + 1, size=n), n_units, rng)

        masks = _distinct(np.ones((1, n_units), dtype=bool), draw, n_queries)
        ones = np.ones(len(masks))
        return Samples(queries_from_masks(masks), ones, complete=_are_all(masks, document))


@dataclass(frozen=True)
class ShortSequences:
    """Sequences of given lengths over the distinct units, drawn with replacement.

    With `singletons` every distinct unit is also asked alone and doubled, and the empty
    query once: without them the anchor cannot be told from the units.
    """

    lengths: tuple[int, ...] = (2, 3)
    singletons: bool = False

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        firsts = np.unique(document.features, return_index=True)[1].astype(np.int32)
        parts = []
        if self.singletons:
            empty = [[END]] if document.can_be_empty else []
            alone = [[unit] for unit in firsts]
            parts = [*empty, *alone, *([unit, unit] for unit in firsts)][: n_queries - 1]
        fixed = _rows(parts, max(self.lengths))

        def draw(n: int) -> Queries:
            drawn = rng.choice(firsts, size=(n, max(self.lengths)))
            lengths = rng.choice(self.lengths, size=n)
            drawn[np.arange(drawn.shape[1]) >= lengths[:, None]] = END
            return drawn

        if n_queries < 2:
            raise BudgetError("short sequences beside the full text take at least 2 queries")
        shorts = _distinct(fixed, draw, n_queries - 1)
        return _after_full(document, shorts)


@dataclass(frozen=True)
class SingletonsAndPairs:
    """Every distinct unit alone, and paired with two references: 3m − 3 queries.

    One reference would do (2m − 1 queries) but for the units that say what it says: those
    need the other, and which they are is not known before asking.
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
        if not document.can_be_empty:
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


def _after_full(document: Document, shorts: Queries) -> Samples:
    """Put the full text first, at weight 0: it tells the predicted class and is not fitted."""
    queries = stack([document.full(), shorts])
    return Samples(queries, np.append(0.0, np.ones(len(shorts))))


def _rows(parts: list[list[int]], width: int) -> Queries:
    rows = np.full((len(parts), width), END, dtype=np.int32)
    for row, part in zip(rows, parts, strict=True):
        row[: len(part)] = part
    return rows


def _distinct(
    fixed: NDArray[Any], draw: Callable[[int], NDArray[Any]], n_rows: int
) -> NDArray[Any]:
    """The fixed rows, then drawn ones that differ from all before: up to n_rows in all."""
    kept = {row.tobytes(): row for row in fixed[:n_rows]}
    for _ in range(ROUNDS):
        if len(kept) >= n_rows:
            break
        for row in draw(n_rows - len(kept)):
            kept.setdefault(row.tobytes(), row)
    return np.array(list(kept.values()))


def _subsets(sizes: NDArray[np.int_], n_units: int, rng: np.random.Generator) -> BoolArray:
    """One random subset of each size: the `size` smallest of random keys."""
    ranks = rng.random((len(sizes), n_units)).argsort(axis=1).argsort(axis=1)
    return np.asarray(ranks < sizes[:, None])


def _all_subsets(n_units: int) -> BoolArray:
    """All 2ⁿ subsets, the largest first and the empty one last."""
    subsets = [c for size in range(n_units, -1, -1) for c in combinations(range(n_units), size)]
    masks = np.zeros((len(subsets), n_units), dtype=bool)
    for mask, subset in zip(masks, subsets, strict=True):
        mask[list(subset)] = True
    return masks


@dataclass(frozen=True)
class LimeMasks:
    """LIME's questions: a uniform number of units removed, near texts weighing more.

    With k of n units kept the cosine distance is d = 1 − √(k/n) and the weight exp(−d²/2b²);
    what is drawn several times is asked once and weighs as often.
    """

    bandwidth: float = 0.25

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        fewest = 0 if document.can_be_empty else 1

        def draw(n: int) -> BoolArray:
            return _subsets(rng.integers(fewest, max(n_units, fewest + 1), size=n), n_units, rng)

        drawn = np.vstack([np.ones((1, n_units), dtype=bool), draw(n_queries - 1)])
        masks, times = np.unique(drawn, axis=0, return_counts=True)
        masks, times = masks[::-1], times[::-1]  # the full text first
        distances = 1.0 - np.sqrt(masks.mean(axis=1))
        weights = times * np.exp(-(distances**2) / (2 * self.bandwidth**2))
        return Samples(queries_from_masks(masks), weights, complete=_are_all(masks, document))


@dataclass(frozen=True)
class Coalitions:
    """KernelSHAP's questions: a subset and its complement, sizes drawn ∝ 1/(k (n − k)).

    Sizes that the budget covers wholly are asked wholly, the outermost first; the rest are
    drawn, their weights the number of times they came up. The full and the empty text have
    weight 0: they are constraints. A complement brings no equation of its own for an additive
    model: where fewer than PAIRED_FROM rows a unit are left to draw, subsets come alone.
    """

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        ends = [np.ones(n_units, dtype=bool)]
        if document.can_be_empty:
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
        return Samples(queries_from_masks(rows), fitted, complete=_are_all(rows, document))

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
            for mask in _subsets(drawn, n_units, rng):
                rows = (mask, ~mask) if paired else (mask,)
                if len(found) + len(rows) > n_rows and mask.tobytes() not in found:
                    return list(found.values()), np.array(list(times.values()), dtype=float)
                for row in rows:
                    found.setdefault(row.tobytes(), row)
                    times[row.tobytes()] = times.get(row.tobytes(), 0) + 1
        return list(found.values()), np.array(list(times.values()), dtype=float)


@dataclass(frozen=True)
class AllSubsets:
    """Every subset with its Shapley weight: 2ⁿ queries, so for a handful of units."""

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        if n_units > 20 or 2**n_units - (not document.can_be_empty) > n_queries:
            raise BudgetError(
                f"exact Shapley values of {n_units} units need 2^{n_units} queries and "
                f"{n_queries} are allowed: use 'kernel-shap', larger units (units=\"sentence\") "
                "or, up to 20 units, more queries"
            )
        masks = _all_subsets(n_units)
        masks = masks if document.can_be_empty else masks[:-1]
        sizes = masks.sum(axis=1)
        ways = np.array([comb(n_units, size) * size * (n_units - size) for size in sizes])
        weights = np.where(ways > 0, 1.0 / np.maximum(ways, 1), 0.0)
        return Samples(queries_from_masks(masks), weights, complete=True)


@dataclass(frozen=True)
class Permutations:
    """Units join one by one in a random order, then in its reverse; shown in document order.

    Rows are the full text, the empty one where it can be asked, then chains of sizes
    1 … n − 1. Chains may meet in the same subset, which is asked once.
    """

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        ends = [np.ones(n_units, dtype=bool)]
        if document.can_be_empty:
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


@dataclass(frozen=True)
class SingleRemovals:
    """The full text, and the text less each of its units: n + 1 queries."""

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_units = document.n_units
        removable = n_units > 1 or document.can_be_empty
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


def _are_all(masks: BoolArray, document: Document) -> bool:
    """Whether these subsets, all different, are all there are to ask."""
    n_subsets = 1 << document.n_units
    return len(masks) == n_subsets - (not document.can_be_empty)
