"""A forest of shallow trees over counts, and the exact Shapley values of what it says.

    F(c) = F_0 + Σ_leaves b · 1[low_j ≤ c_j ≤ high_j for the features j on the way to the leaf]

A tree asks whether a feature, or the text as a whole (its size), occurs at least so often.
The players are units and the empty text is what they join, so for each leaf only how many of
its features' units are shown matters. With s shown of n, t of them among the n' units that
the leaf asks about, and W_t the ways to choose these t so that the leaf is reached (W_jt the
same, each way counted as often as feature j occurs in it), a unit of feature j gets

    φ_j = b / n_j · Σ_t [ W_jt A_t − (n_j W_t − W_jt) B_t ]
    A_t = Σ_s C(n − n', s − t) / (s C(n, s)),    B_t = Σ_s C(n − n', s − t) / ((n − s) C(n, s))

over the sizes s that the leaf admits; the units it does not ask about share the rest alike.
Stored as plain arrays: no library is needed to predict, and nothing is pickled.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated, ClassVar

import numpy as np

from slalom.document import FloatArray, IntArray
from slalom.schema import check_below

NEVER = 2**31 - 1  # occurrences that no text has: a node that sends everything left
ROWS_AT_ONCE = 4096
Condition = tuple[int, int, int]  # a feature (or the size), at least so often, at most so often


@dataclass(frozen=True, eq=False)
class Forest:
    """Complete trees of one depth, node by node: children of node p are 2p + 1 and 2p + 2."""

    splits: Annotated[IntArray, "trees nodes"]  # the feature compared; n_features is the size
    at_least: Annotated[IntArray, "trees nodes"]  # occurrences that lead to the right
    leaves: Annotated[FloatArray, "trees leaves"]  # (n_trees, n_nodes + 1) what is added there

    def check(self) -> None:
        n_leaves = self.leaves.shape[1]
        if len(self.leaves) and (n_leaves & (n_leaves - 1) or self.splits.shape[1] + 1 != n_leaves):
            raise ValueError(f"no tree has {n_leaves} leaves and {self.splits.shape[1]} nodes")

    def predict(self, counts: FloatArray) -> FloatArray:
        """(k, n_features) → (k,)."""
        columns = np.hstack([counts, counts.sum(axis=1, keepdims=True)])
        parts = range(0, len(columns), ROWS_AT_ONCE)
        predicted = [self._predict(columns[start : start + ROWS_AT_ONCE]) for start in parts]
        return np.concatenate(predicted) if predicted else np.zeros(0)

    def _predict(self, columns: FloatArray) -> FloatArray:
        trees, n_nodes = np.arange(len(self.splits)), self.splits.shape[1]
        node = np.zeros((len(columns), len(trees)), dtype=np.intp)
        rows = np.arange(len(columns))[:, None]
        while n_nodes:
            seen = columns[rows, self.splits[trees, node]]
            node = 2 * node + 1 + (seen >= self.at_least[trees, node])
            n_nodes //= 2
        return np.asarray(self.leaves[trees, node - self.splits.shape[1]].sum(axis=1))

    def conjunctions(self, document_counts: FloatArray) -> dict[tuple[Condition, ...], float]:
        """What each set of conditions adds; those that always or never hold are left out."""
        most = [*np.rint(document_counts).astype(int).tolist(), int(document_counts.sum())]
        found: dict[tuple[Condition, ...], float] = defaultdict(float)
        records = (self.splits.tolist(), self.at_least.tolist(), self.leaves.tolist())
        for splits, at_least, leaves in zip(*records, strict=True):
            for leaf, added in enumerate(leaves):
                if added:
                    conditions = _conditions(leaf + len(splits), splits, at_least, most)
                    if conditions is not None:
                        found[conditions] += added
        return dict(found)

    def shapley(self, document_counts: FloatArray) -> FloatArray:
        """(n_features,) the exact Shapley value of one unit of each feature."""
        n_features, n_units = len(document_counts), int(document_counts.sum())
        times = np.rint(document_counts).astype(int).tolist()
        found, everyone = np.zeros(n_features), 0.0
        for conditions, added in self.conjunctions(document_counts).items():
            sizes = (0, n_units)
            if conditions and conditions[-1][0] == n_features:
                sizes = conditions[-1][1:]
                conditions = conditions[:-1]
            ordered = sorted((times[j], low, high, j) for j, low, high in conditions)
            *own, others = _shares(n_units, sizes, tuple(one[:3] for one in ordered))
            everyone += added * others
            for (*_, j), share in zip(ordered, own, strict=True):
                found[j] += added * (share - others)
        return found + everyone


def no_trees() -> Forest:
    """Adds nothing to anything."""
    none = np.zeros((0, 7), dtype=np.int32)
    return Forest(none, none, np.zeros((0, 8)))


@dataclass(frozen=True, eq=False)
class TreesModel:
    """A forest (or one per class) and which inputs are added up before it is asked."""

    forests: tuple[Forest, ...]
    intercept: Annotated[FloatArray, "labels?"]
    groups: Annotated[IntArray, "units"]  # the feature of each input
    n_features: int
    kind: ClassVar[str] = "trees"

    def check(self) -> None:
        check_forests(self.forests, self.groups, self.n_features)

    def predict(self, counts: FloatArray) -> FloatArray:
        totals = grouped(counts, self.groups, self.n_features)
        predicted = np.stack([forest.predict(totals) for forest in self.forests], axis=1)
        return np.asarray(self.intercept + predicted.reshape(len(totals), *self.intercept.shape))

    @property
    def empty_score(self) -> None:
        """Where it was not asked it is extrapolated."""

    def expand(self, features: IntArray) -> "TreesModel":
        return TreesModel(self.forests, self.intercept, self.groups[features], self.n_features)


def check_forests(forests: tuple[Forest, ...], groups: IntArray, n_features: int) -> None:
    """For `check`: forests ask about features that are there."""
    check_below(groups, n_features, "groups")
    if n_features > len(groups):
        raise ValueError(f"{n_features} features of {len(groups)} inputs")
    for forest in forests:
        check_below(forest.splits, n_features + 1, "splits")


def grouped(counts: FloatArray, groups: IntArray, n_features: int) -> FloatArray:
    """Inputs of one feature added up: (k, n_inputs) → (k, n_features)."""
    counts = np.asarray(counts, dtype=np.float64)
    totals = np.zeros((len(counts), n_features))
    np.add.at(totals.T, groups, counts.T)
    return totals


def _conditions(
    node: int, splits: list[int], at_least: list[int], most: list[int]
) -> tuple[Condition, ...] | None:
    """What leads from the root to a node, by feature; None: no part of this text can."""
    bounds: dict[int, tuple[int, int]] = {}
    for parent, is_right in _way_up(node):
        feature, level = splits[parent], at_least[parent]
        low, high = bounds.get(feature, (0, most[feature]))
        bounds[feature] = (max(low, level), high) if is_right else (low, min(high, level - 1))
        if bounds[feature][0] > bounds[feature][1]:
            return None
    return tuple(
        (feature, low, high)
        for feature, (low, high) in sorted(bounds.items())
        if low > 0 or high < most[feature]
    )


def _way_up(node: int) -> Iterator[tuple[int, bool]]:
    while node:
        parent = (node - 1) // 2
        yield parent, node == 2 * parent + 2
        node = parent


def _shares(n_units: int, sizes: tuple[int, int], conditions: tuple[Condition, ...]) -> list[float]:
    """Shapley values of "the leaf is reached": one unit of each feature in it, one of the rest."""
    weights = _weights(conditions)
    sums, (smallest, largest) = _summed(n_units, weights.shape[1] // 3 - 1), sizes
    levels = sums[:, largest + 1] - sums[:, smallest]
    shares: list[float] = (weights @ levels.ravel()).tolist()
    if sizes == (0, n_units):  # no size is asked for: the rest play no part
        shares[-1] = 0.0
    return shares


@lru_cache(maxsize=20_000)
def _weights(conditions: tuple[Condition, ...]) -> FloatArray:
    """(n_conditions + 1, 3 (n' + 1)) what the shares are of A, B and what falls to the rest."""
    ways = [_ways(*condition) for condition in conditions]
    together = _product(ways)  # W
    weights = np.zeros((len(conditions) + 1, 3, len(together)))
    weights[-1, 2] = together
    for place, (times, _, _) in enumerate(conditions):
        counted = ways[place] * np.arange(times + 1)
        present = _product([*ways[:place], counted, *ways[place + 1 :]])  # W_j
        weights[place, 0], weights[place, 1] = present / times, present / times - together
    return weights.reshape(len(weights), -1)


@lru_cache(maxsize=1000)
def _summed(n_units: int, inner: int) -> FloatArray:
    """(3, n_units + 2, inner + 1) A_t, B_t and what falls to a unit not asked about.

    Summed over all sizes below the second index: a range of sizes is a difference.
    """
    outer, shown = n_units - inner, np.arange(n_units + 1)  # s
    rest = shown[None, :] - np.arange(inner + 1)[:, None]  # s − t
    possible = (rest >= 0) & (rest <= outer)
    rest = np.clip(rest, 0, outer)
    ways = np.exp(_log_choose(outer)[rest] - _log_choose(n_units)[shown]) * possible
    joining = np.divide(ways, shown, out=np.zeros_like(ways), where=shown > 0)
    gone = n_units - shown
    leaving = np.divide(ways, gone, out=np.zeros_like(ways), where=gone > 0)
    others = (rest * joining - (outer - rest) * leaving) / max(outer, 1)
    sums = np.zeros((3, n_units + 2, inner + 1))
    np.cumsum(np.swapaxes([joining, leaving, others], 1, 2), axis=1, out=sums[:, 1:])
    return sums


@cache
def _log_choose(n: int) -> FloatArray:
    """log C(n, k) for k = 0 … n."""
    logs = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    return np.asarray(logs[-1] - logs - logs[::-1])


@lru_cache(maxsize=4096)
def _ways(times: int, low: int, high: int) -> FloatArray:
    """C(times, x) where low ≤ x ≤ high: in how many ways a feature occurs as often as asked."""
    numbers = np.arange(times + 1)
    return np.where((numbers >= low) & (numbers <= high), np.exp(_log_choose(times)), 0.0)


def _product(polynomials: list[FloatArray]) -> FloatArray:
    found = np.ones(1)
    for polynomial in polynomials:
        found = np.convolve(found, polynomial)
    return found
