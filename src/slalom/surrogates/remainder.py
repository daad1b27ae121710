"""What the parts of a SLALOM leave over: a response surface, and shallow trees on the rest.

    F(c) = P(c) + h(P(c), k) + T(c)          P the parts, k the size, h response.py, T trees.py

Both are fitted to misses of rows that the parts had not seen: P⁻ᶠ is fitted without fold f,
and says P⁻ᶠ of the rows of f. Both are judged on rows that none of the three had seen: what is
to be judged on f learns from the rows of g by P⁻ᶠᵍ, fitted without both, for with P⁻ᵍ, which has
seen f, it would know too much. P⁻ᶠ + P⁻ᵍ − P stands for it where a surface alone is judged; trees
are judged far too strictly by it, as importances bend the parts (LOG.md).
How far the trees of all rows are followed is the slope of misses on what trees say of rows they
have not seen. What does not pay on unseen rows is left out.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slalom.document import FloatArray, IntArray
from slalom.surrogates.response import Response, fit_response, flat
from slalom.surrogates.trees import Forest, no_trees

LEAST_ROWS = 60  # with fewer there is nothing to judge a remainder by
EXACT = 1e-6  # of the scores' variance: nothing is left to describe
PAYS = 0.995  # what the error of unseen rows must fall to


class Grower(Protocol):
    """Grows trees on rows, the same counts again and again."""

    def said(self, misses: FloatArray, weights: FloatArray) -> FloatArray:
        """(n, k) what quick trees say of all rows, each column's grown where it has weights."""
        ...

    def forest(self, misses: FloatArray, weights: FloatArray) -> Forest:
        """Trees for one column, with care."""
        ...


@dataclass(frozen=True, eq=False)
class Described:
    """Rows drawn at random, and what the parts say of them."""

    counts: FloatArray  # (n, n_features)
    scores: FloatArray  # (n,)
    weights: FloatArray  # (n,)
    said: FloatArray  # (n,) P
    without: FloatArray  # (n_folds, n) P⁻ᶠ of all rows
    folds: IntArray  # (n,) the fold of each row
    without_two: FloatArray | None = None  # (n_folds, n) P⁻ᶠᵍ of a row of g; None: to first order

    @property
    def sizes(self) -> FloatArray:
        return np.asarray(self.counts.sum(axis=1))

    def held_out(self) -> FloatArray:
        """(n,) each row by parts that had not seen it."""
        return np.asarray(self.without[self.folds, np.arange(len(self.folds))])

    def held_out_beside(self, fold: int) -> FloatArray:
        """(n,) the same, by parts that had not seen this fold either; its own rows do not count."""
        if self.without_two is not None:
            return np.asarray(self.without_two[fold])
        return np.asarray(self.held_out() + self.without[fold] - self.said)


@dataclass(frozen=True, eq=False)
class Remainder:
    """What to add to the parts, and what unseen rows are predicted as with it."""

    response: Response
    forest: Forest
    unseen: FloatArray  # (n,) out-of-fold predictions of everything together

    @property
    def is_nothing(self) -> bool:
        return not self.response.heights.any() and not len(self.forest.splits)

    def predict(self, counts: FloatArray, said: FloatArray) -> FloatArray:
        """What is added to what the parts say of these counts."""
        return self.response(said, counts.sum(axis=1)) + self.forest.predict(counts)


def fit_remainder(described: Described, grower: Grower | None) -> Remainder:
    """The remainder of one column of scores; `grower` None: no trees."""
    held_out, weights = described.held_out(), described.weights
    misses = described.scores - held_out
    nothing = Remainder(flat(), no_trees(), held_out)
    if len(misses) < LEAST_ROWS:
        return nothing
    spread = float(
        weights @ (described.scores - np.average(described.scores, weights=weights)) ** 2
    )
    if weights @ misses**2 <= EXACT * spread:
        return nothing
    found, surfaces = nothing, _surfaces(described)
    bent = _judged(described, surfaces)
    if _error(described, bent) <= PAYS * _error(described, held_out):
        response = fit_response(held_out, misses, sizes=described.sizes, weights=weights)
        found = Remainder(response, no_trees(), bent)
    return found if grower is None else _with_trees(described, found, surfaces, grower)


def _surfaces(described: Described) -> list[Response]:
    """For each fold a response that has not seen it, nor have the parts it learns from."""
    found = []
    for fold in range(len(described.without)):
        kept = described.folds != fold
        said, weights = described.held_out_beside(fold)[kept], described.weights[kept]
        misses = described.scores[kept] - said
        found.append(fit_response(said, misses, sizes=described.sizes[kept], weights=weights))
    return found


def _judged(described: Described, surfaces: list[Response]) -> FloatArray:
    """(n,) every row by parts and a response that had not seen it."""
    said, sizes, bent = described.held_out(), described.sizes, np.zeros(len(described.folds))
    for fold, response in enumerate(surfaces):
        out = described.folds == fold
        bent[out] = said[out] + response(said[out], sizes[out])
    return bent


def _with_trees(
    described: Described, found: Remainder, surfaces: list[Response], grower: Grower
) -> Remainder:
    """The same with trees on what it leaves, if they pay."""
    folds, weights, sizes = described.folds, described.weights, described.sizes
    if not found.response.heights.any():
        surfaces = [flat()] * len(surfaces)
    beside = np.stack([described.held_out_beside(f) for f in range(len(surfaces))], axis=1)
    bent = np.stack([h(said, sizes) for h, said in zip(surfaces, beside.T, strict=True)], axis=1)
    unseen_by = folds[:, None] == np.arange(len(surfaces))
    left = np.where(unseen_by, 0.0, described.scores[:, None] - beside - bent)
    said = grower.said(left, np.where(unseen_by, 0.0, weights[:, None]))
    trees = said[np.arange(len(folds)), folds]  # each row by those that had not seen it
    size, cross = (weights @ (trees * x) for x in (trees, described.scores - found.unseen))
    slope = float(np.clip(cross / size, 0.0, 1.0)) if size > 0 else 0.0
    unseen = found.unseen + slope * trees
    if _error(described, unseen) > PAYS * _error(described, found.unseen):
        return found
    held_out = described.held_out()
    misses = described.scores - held_out - found.response(held_out, sizes)
    forest = grower.forest(misses, weights)
    followed = Forest(forest.splits, forest.at_least, slope * forest.leaves)
    return Remainder(found.response, followed, unseen)


def _error(described: Described, said: FloatArray) -> float:
    return float(described.weights @ (described.scores - said) ** 2)
