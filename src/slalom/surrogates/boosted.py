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
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np

from slalom.document import FloatArray, IntArray
from slalom.errors import MissingExtraError
from slalom.schema import check_below
from slalom.surrogates.base import Fit, Observations, no_quality_reason
from slalom.surrogates.quality import loo_quality, sampled_rows

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


DIGITS = 6  # of a leaf, relative to the spread of the scores: files stay small
FIELDS = ("split_feature", "threshold", "left_child", "right_child", "leaf_value")  # of a tree
FITTED_EMPTY = "the classifier cannot read an empty text: its score is predicted by the trees"


@dataclass(frozen=True)
class Growth:
    """How trees are grown; the defaults are the best of those tried at 500 queries (docs/log/)."""

    n_trees: int = 250
    rate: float = 0.06
    depth: int = 3
    bagged: float = 0.7  # the share of rows each tree sees
    smallest_leaf: int = 5

    def settings(self, n_rows: int) -> dict[str, Any]:
        """LightGBM's names; with few rows, as in texts of four words, leaves must be small."""
        bagging = {"bagging_fraction": self.bagged, "bagging_freq": 1} if n_rows >= 50 else {}
        return {
            "objective": "regression",
            "boost_from_average": False,
            "learning_rate": self.rate,
            "max_depth": self.depth,
            "num_leaves": 2**self.depth,
            "min_data_in_leaf": int(np.clip(n_rows // 20, 1, self.smallest_leaf)),
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


@dataclass(frozen=True)
class BoostedSurrogate:
    """Trees alone, one forest per class; judged on rows they have not seen."""

    growth: Growth = Growth()
    n_folds: int = 5

    def fit(self, observed: Observations) -> Fit:
        counts, scores, weights = observed.counts, observed.scores, observed.weights
        document_counts = observed.document_counts
        used = weights > 0
        columns, share = scores.reshape(len(scores), -1)[used], weights[used]
        level = share @ columns / share.sum()
        shown, growth, left = counts[used], self.growth, (columns - level).T
        forests = tuple(grow(shown, column, weights=share, growth=growth) for column in left)
        unseen = np.stack(
            [out_of_fold(shown, column, share, growth, self.n_folds) for column in left], axis=1
        )
        quality = loo_quality(
            columns - level - unseen,
            columns,
            weights=share,
            n_parameters=self.n_folds,
            by=sampled_rows(shown),
        )
        notes = () if (counts.sum(axis=1) == 0).any() else (FITTED_EMPTY,)
        if quality.r2 is None:
            notes = (*notes, no_quality_reason(shown, columns, document_counts))
        shape = (len(document_counts), *scores.shape[1:])
        shapley = np.stack([forest.shapley(document_counts) for forest in forests], axis=1)
        features = np.arange(len(document_counts), dtype=np.int32)
        return Fit(
            model=TreesModel(forests, level.reshape(scores.shape[1:]), features, len(features)),
            scores={"score": shapley.reshape(shape)},
            errors={},
            identified=np.ones(len(document_counts), dtype=bool),
            r2=quality.r2,
            rmse=quality.rmse,
            notes=notes,
            r2_error=quality.r2_error,
        )


def out_of_fold(
    counts: FloatArray, scores: FloatArray, weights: FloatArray, growth: Growth, n_folds: int
) -> FloatArray:
    """(n_rows,) what trees say that were grown without the row's fold; rows take turns."""
    predicted, folds = np.zeros(len(scores)), np.arange(len(scores)) % n_folds
    for fold in range(min(n_folds, len(scores))):
        out = folds == fold
        if not out.all() and scores[~out].any():
            trees = _trained(counts[~out], scores[~out], weights[~out], growth)
            predicted[out] = trees.predict(_with_sizes(counts[out]))
    return predicted


def grow(counts: FloatArray, scores: FloatArray, *, weights: FloatArray, growth: Growth) -> Forest:
    """A forest fitted to scores of mean 0 by LightGBM; its text is read faster than its JSON."""
    largest = float(np.abs(scores).max(initial=0.0))
    if largest == 0.0 or len(scores) < 2:
        return no_trees()
    trees = _trained(counts, scores, weights, growth)
    forest = _planted(trees.model_to_string(), growth.depth)
    decimals = DIGITS - int(np.ceil(np.log10(largest)))
    return Forest(forest.splits, forest.at_least, np.round(forest.leaves, decimals))


def _lightgbm() -> Any:
    try:
        import lightgbm
    except ImportError as problem:
        raise MissingExtraError("lightgbm", "trees") from problem
    return lightgbm


def _trained(counts: FloatArray, scores: FloatArray, weights: FloatArray, growth: Growth) -> Any:
    """LightGBM's own object."""
    lightgbm, settings = _lightgbm(), growth.settings(len(scores))
    rows = lightgbm.Dataset(_with_sizes(counts), scores, weight=weights, params=settings)
    return lightgbm.train(settings, rows, growth.n_trees, keep_training_booster=True)


def _with_sizes(counts: FloatArray) -> FloatArray:
    return np.hstack([counts, counts.sum(axis=1, keepdims=True)])


def _planted(text: str, depth: int) -> Forest:
    """LightGBM's trees as complete ones; a leaf above the ground keeps its value on the left."""
    found = [_lines(tree) for tree in text.split("\nTree=")[1:]]
    n_nodes = 2**depth - 1
    splits = np.zeros((len(found), n_nodes), dtype=np.int32)
    at_least = np.full((len(found), n_nodes), NEVER, dtype=np.int32)
    leaves = np.zeros((len(found), n_nodes + 1))
    for tree, lines in enumerate(found):
        features, thresholds = lines["split_feature"], lines["threshold"]
        open_nodes = [(0 if features else -1, 0)]  # LightGBM's node, leaf i as −1 − i, and ours
        while open_nodes:
            theirs, node = open_nodes.pop()
            if theirs >= 0:
                splits[tree, node] = features[theirs]
                at_least[tree, node] = int(np.floor(thresholds[theirs])) + 1
                open_nodes += [
                    (int(lines["left_child"][theirs]), 2 * node + 1),
                    (int(lines["right_child"][theirs]), 2 * node + 2),
                ]
                continue
            while node < n_nodes:
                node = 2 * node + 1
            leaves[tree, node - n_nodes] = lines["leaf_value"][-1 - theirs]
    return Forest(splits, at_least, leaves)


def _lines(tree: str) -> dict[str, list[float]]:
    """The numbers of one tree by name."""
    parts = dict.fromkeys(FIELDS, "") | dict(
        line.split("=", 1) for line in tree.splitlines() if "=" in line
    )
    return {name: [float(number) for number in parts[name].split()] for name in FIELDS}
