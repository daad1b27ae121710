"""Gradient-boosted trees over what is shown: the strongest rival at equal budget.

Each tree of depth 3 is fitted to what the trees before it left, on counts and size; nothing
of attention is built in, so it can say anything and must learn everything. The trees come from
LightGBM; the score of a unit is its exact Shapley value (trees.py). R² is out of fold: every
row is predicted by trees that have not seen it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from slalom.document import FloatArray, IntArray
from slalom.errors import MissingExtraError
from slalom.surrogates.base import Fit, Observations, no_quality_reason
from slalom.surrogates.quality import loo_quality, sampled_rows
from slalom.surrogates.trees import NEVER, Forest, TreesModel, no_trees

DIGITS = 6  # of a leaf, relative to the spread of the scores: files stay small
FIELDS = ("split_feature", "threshold", "left_child", "right_child", "leaf_value")  # of a tree
FITTED_EMPTY = "the classifier cannot read an empty text: its score is the trees' guess"


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
        rows = Grown(counts[used], share, self.growth)
        forests = tuple(rows.grown(column) for column in (columns - level).T)
        unseen = np.stack(
            [rows.out_of_fold(column, self.n_folds) for column in (columns - level).T], axis=1
        )
        quality = loo_quality(
            columns - level - unseen,
            columns,
            weights=share,
            n_parameters=self.n_folds,
            by=sampled_rows(counts[used]),
        )
        notes = () if (counts.sum(axis=1) == 0).any() else (FITTED_EMPTY,)
        if quality.r2 is None:
            notes = (*notes, no_quality_reason(counts[used], columns, document_counts))
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


@dataclass(frozen=True, eq=False)
class Grown:
    """Counts that trees are grown on, again and again with other scores or without a fold."""

    counts: FloatArray  # (n_rows, n_features)
    weights: FloatArray  # (n_rows,)
    growth: Growth

    def grown(self, scores: FloatArray) -> Forest:
        """Trees for scores of mean 0."""
        return grow(self.counts, scores, weights=self.weights, growth=self.growth)

    def out_of_fold(self, scores: FloatArray, n_folds: int) -> FloatArray:
        """(n_rows,) what trees say that were grown without the row's fold."""
        predicted, folds = np.zeros(len(scores)), folds_of(len(scores), n_folds)
        for fold in range(min(n_folds, len(scores))):
            out = folds == fold
            if out.all() or not scores[~out].any():
                continue
            trees = _trained(self.counts[~out], scores[~out], self.weights[~out], self.growth)
            predicted[out] = trees.predict(_with_sizes(self.counts[out]))
        return predicted


@dataclass(frozen=True, eq=False)
class Ground:
    """Counts as LightGBM keeps them: putting them in order takes as long as growing on them."""

    counts: FloatArray  # (n_rows, n_features)
    rows: Any  # LightGBM's own object

    @classmethod
    def of(cls, counts: FloatArray) -> "Ground":
        lightgbm = _lightgbm()
        columns, settings = _with_sizes(counts), _by_columns(len(counts), 1, Growth())
        rows = lightgbm.Dataset(columns, np.zeros(len(counts)), params=settings)
        return cls(counts, rows.construct())

    def rounds(
        self, scores: FloatArray, *, weights: FloatArray, growth: Growth
    ) -> Iterator[FloatArray]:
        """(n_rows, k) what trees say of all rows after no round, one, two, …

        A column's trees are grown where it has weights.
        """
        current: list[FloatArray] = []
        for _ in self._grown(scores, weights, growth, current):
            yield current.pop()

    def forest(self, scores: FloatArray, *, weights: FloatArray, growth: Growth) -> Forest:
        """Trees for one column of scores of mean 0."""
        if not scores.any():
            return no_trees()
        *_, trees = self._grown(scores[:, None], weights[:, None], growth, [])
        return _forest(trees, scores, growth)

    def _grown(
        self, scores: FloatArray, weights: FloatArray, growth: Growth, current: list[FloatArray]
    ) -> Iterator[Any]:
        """Least squares for all columns at once, round by round; predictions go to `current`."""
        hessian = weights / weights.mean()  # rows count as one on average; without weight: unseen

        def slopes(predicted: FloatArray, rows: Any) -> tuple[FloatArray, FloatArray]:
            current[:] = [predicted.reshape(scores.shape).copy()]
            slope = hessian * (current[0] - scores)
            return (slope, hessian) if scores.shape[1] > 1 else (slope.ravel(), hessian.ravel())

        settings = _by_columns(len(scores), scores.shape[1], growth)
        trees = _lightgbm().Booster(settings, self.rows)
        for _ in range(growth.n_trees):
            trees.update(fobj=slopes)
            yield trees


def _by_columns(n_rows: int, n_columns: int, growth: Growth) -> dict[str, Any]:
    """A leaf's rows are counted by their weights: those without are not there."""
    leaf = {"min_data_in_leaf": 1, "min_sum_hessian_in_leaf": float(growth.smallest_leaf)}
    return {**growth.settings(n_rows), "objective": "none", "num_class": n_columns, **leaf}


def folds_of(n_rows: int, n_folds: int) -> IntArray:
    """The fold of each row; queries were drawn at random, so rows may take turns."""
    return np.arange(n_rows, dtype=np.int32) % n_folds


def grow(counts: FloatArray, scores: FloatArray, *, weights: FloatArray, growth: Growth) -> Forest:
    """A forest fitted to scores of mean 0 by LightGBM."""
    largest = float(np.abs(scores).max(initial=0.0))
    if largest == 0.0 or len(scores) < 2:
        return no_trees()
    return _forest(_trained(counts, scores, weights, growth), scores, growth)


def _forest(trees: Any, scores: FloatArray, growth: Growth) -> Forest:
    """What LightGBM grew, as plain arrays; its text is read four times as fast as its JSON."""
    forest = _planted(trees.model_to_string(), growth.depth)
    decimals = DIGITS - int(np.ceil(np.log10(np.abs(scores).max())))
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
