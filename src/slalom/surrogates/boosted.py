"""Gradient-boosted trees over what is shown, the strongest rival at equal budget, as plain arrays.

    F(c) = F_0 + Σ_leaves b · 1[low_j ≤ c_j ≤ high_j for the features j on the way to the leaf]

A tree asks whether a feature, or the text as a whole (its size), occurs at least so often. Each
tree of depth 3 is fitted to what the trees before it left; nothing of attention is built in, so it
can say anything and must learn everything. The trees come from LightGBM; no library is needed to
predict, and nothing is pickled. R² is out of fold: every row is predicted by trees that have not
seen it. The score of a unit is its exact Shapley value. The players are units and the empty text
is what they join, so for each leaf only how many of its features' units are shown matters. With s
shown of n, t of them among the n' units that the leaf asks about, and W_t the ways to choose these
t so that the leaf is reached (W_jt the same, each way counted as often as feature j occurs in it),
a unit of feature j gets

    φ_j = b / n_j · Σ_t [ W_jt A_t − (n_j W_t − W_jt) B_t ]
    A_t = Σ_s C(n − n', s − t) / (s C(n, s)),    B_t = Σ_s C(n − n', s − t) / ((n − s) C(n, s))

over the sizes s that the leaf admits; the units it does not ask about share the rest alike.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, reduce
from typing import Annotated, Any, ClassVar

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.errors import needing
from slalom.schema import check_below
from slalom.surrogates.base import Fit, Observations
from slalom.surrogates.quality import fit_with_residuals, out_of_fold

NEVER = np.iinfo(np.int32).max  # occurrences that no text has: a node that sends all to the left
DEPTH = 3
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
        columns = _with_sizes(counts)
        blocks = np.array_split(columns, 1 + len(columns) // 4096)  # trees × rows fill the memory
        return np.concatenate([self._predict(block) for block in blocks])

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
        check_below(self.groups, self.n_features, "groups")
        if self.n_features > len(self.groups):
            raise ValueError(f"{self.n_features} features of {len(self.groups)} inputs")
        for forest in self.forests:
            check_below(forest.splits, self.n_features + 1, "splits")

    def predict(self, counts: FloatArray) -> FloatArray:
        totals = np.zeros((len(counts), self.n_features))  # inputs of one feature added up
        np.add.at(totals.T, self.groups, np.asarray(counts, dtype=np.float64).T)
        predicted = np.stack([forest.predict(totals) for forest in self.forests], axis=1)
        return np.asarray(self.intercept + predicted.reshape(len(totals), *self.intercept.shape))

    @property
    def empty_score(self) -> None:
        """Where it was not asked it is extrapolated."""

    def expand(self, features: IntArray) -> "TreesModel":
        return TreesModel(self.forests, self.intercept, self.groups[features], self.n_features)


def _conditions(
    node: int, splits: list[int], at_least: list[int], most: list[int]
) -> tuple[Condition, ...] | None:
    """What leads from the root to a node, by feature; None: no part of this text can."""
    bounds: dict[int, tuple[int, int]] = {}
    while node:
        is_right, node = node % 2 == 0, (node - 1) // 2
        feature, level = splits[node], at_least[node]
        low, high = bounds.get(feature, (0, most[feature]))
        bounds[feature] = (max(low, level), high) if is_right else (low, min(high, level - 1))
        if bounds[feature][0] > bounds[feature][1]:
            return None
    return tuple(
        (feature, low, high)
        for feature, (low, high) in sorted(bounds.items())
        if low > 0 or high < most[feature]
    )


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
    together = reduce(np.convolve, ways, np.ones(1))  # W
    weights = np.zeros((len(conditions) + 1, 3, len(together)))
    weights[-1, 2] = together
    for place, (times, _, _) in enumerate(conditions):
        counted = ways[place] * np.arange(times + 1)
        others = [*ways[:place], counted, *ways[place + 1 :]]
        present = reduce(np.convolve, others, np.ones(1))  # W_j
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


FITTED_EMPTY = "the classifier cannot read an empty text: its score is predicted by the trees"


@dataclass(frozen=True)
class BoostedSurrogate:
    """Trees alone, one forest per class; R² is that of five folds."""

    n_trees: int = 250

    def fit(self, observed: Observations) -> Fit:
        rows, document_counts = observed.fitted(), observed.document_counts
        counts, weights = rows.counts, rows.weights
        level = weights @ rows.scores / weights.sum()
        columns = rows.scores - level
        forests = tuple(self.grow(counts, column, weights) for column in columns.T)

        def predicted(out: BoolArray) -> FloatArray:
            shown, known = _with_sizes(counts[out]), ~out
            trees = [self.train(counts[known], one, weights[known]) for one in columns[known].T]
            return np.stack([each.predict(shown) for each in trees], axis=1)

        shape = (len(document_counts), *observed.scores.shape[1:])
        features = np.arange(len(document_counts), dtype=np.int32)
        shapley = np.stack([forest.shapley(document_counts) for forest in forests], axis=1)
        fit = fit_with_residuals(
            observed,
            TreesModel(forests, level.reshape(shape[1:]), features, len(features)),
            shapley.reshape(shape),
            residuals=columns - out_of_fold(columns, 5, predicted),
            n_parameters=5,
        )
        has_empty = (observed.counts.sum(axis=1) == 0).any()
        return fit if has_empty else replace(fit, notes=(FITTED_EMPTY, *fit.notes))

    def grow(self, counts: FloatArray, scores: FloatArray, weights: FloatArray) -> Forest:
        """A forest fitted to scores of mean 0; leaves have six digits, so that files stay small."""
        largest = float(np.abs(scores).max(initial=0.0))
        if largest == 0.0 or len(scores) < 2:
            return no_trees()
        trees = self.train(counts, scores, weights).dump_model()["tree_info"]
        forest = _forest_of([tree["tree_structure"] for tree in trees])
        decimals = 6 - int(np.ceil(np.log10(largest)))
        return replace(forest, leaves=np.round(forest.leaves, decimals))

    def train(self, counts: FloatArray, scores: FloatArray, weights: FloatArray) -> Any:
        """LightGBM's own object."""
        with needing("lightgbm", "trees"):
            import lightgbm

        parameters = _parameters(len(scores))
        rows = lightgbm.Dataset(_with_sizes(counts), scores, weight=weights, params=parameters)
        return lightgbm.train(parameters, rows, self.n_trees, keep_training_booster=True)


def _parameters(n_rows: int) -> dict[str, Any]:
    """The best of those tried at 500 queries (docs/log/).

    With few rows, as in texts of four words, leaves must be small.
    """
    bagging = {"bagging_fraction": 0.7, "bagging_freq": 1} if n_rows >= 50 else {}
    return {
        "objective": "regression",
        "boost_from_average": False,
        "learning_rate": 0.06,
        "max_depth": DEPTH,
        "num_leaves": 2**DEPTH,
        "min_data_in_leaf": int(np.clip(n_rows // 20, 1, 5)),
        "min_data_in_bin": 1,
        "feature_pre_filter": False,
        "use_missing": False,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
        "seed": 0,
        "verbose": -1,
        **bagging,
    }


def _with_sizes(counts: FloatArray) -> FloatArray:
    return np.hstack([counts, counts.sum(axis=1, keepdims=True)])


def _forest_of(roots: Sequence[dict[str, Any]]) -> Forest:
    """LightGBM's trees as complete ones; a leaf above the ground keeps its value on the left."""
    n_nodes = 2**DEPTH - 1
    splits = np.zeros((len(roots), n_nodes), dtype=np.int32)
    at_least = np.full((len(roots), n_nodes), NEVER, dtype=np.int32)
    leaves = np.zeros((len(roots), n_nodes + 1))
    for tree, root in enumerate(roots):
        nodes = [(root, 0)]
        while nodes:
            node, at = nodes.pop()
            if "leaf_value" in node:
                while at < n_nodes:
                    at = 2 * at + 1
                leaves[tree, at - n_nodes] = node["leaf_value"]
                continue
            splits[tree, at] = node["split_feature"]
            at_least[tree, at] = int(np.floor(node["threshold"])) + 1
            nodes += [(node["left_child"], 2 * at + 1), (node["right_child"], 2 * at + 2)]
    return Forest(splits, at_least, leaves)
