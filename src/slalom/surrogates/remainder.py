"""What the parts of a SLALOM leave over: a response surface, and shallow trees on the rest.

    F(c) = P(c) + h(P(c), k) + T(c)          P the parts, k the size, h response.py, T trees.py

The surface is fitted to residuals of rows that the parts had not seen: P⁻ᶠ is fitted without fold
f, and says P⁻ᶠ of the rows of f. It is judged by surfaces that learn from the rows of g by
P⁻ᶠ + P⁻ᵍ − P, which stands for parts fitted without both: with P⁻ᵍ, which has seen f, they would
know too much. Trees go on from where parts and surface ended, on what these leave of the very
rows they were fitted to: with residuals of unseen rows, which are larger, they would learn what is
not there. They are judged fold by fold, on what P⁻ᶠ and its surface leave of all other folds, and
grown for as many rounds as pay there, but no fewer than MIN_ROUNDS: all rows teach more than
three folds of them. What does not pay on unseen rows is left out.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from slalom.document import FloatArray, IntArray
from slalom.surrogates.response import Response, fit_response, flat
from slalom.surrogates.trees import Forest, no_trees

MIN_ROWS = 60  # with fewer there is nothing to judge a remainder by
EXACT = 1e-6  # of the scores' variance: nothing is left to describe
MIN_GAIN = 0.995  # what the error of unseen rows must fall to
MIN_ROUNDS = 20  # where trees pay at all
PATIENCE, MORE = 8, 1.5  # rounds are given up after so many, and so many times the best number


class Grower(Protocol):
    """Grows trees on rows, the same counts again and again."""

    def rounds(self, residuals: FloatArray, weights: FloatArray) -> Iterator[FloatArray]:
        """(n, k) what trees say of all rows after no round, one, two, …

        Each column's are grown where it has weights.
        """
        ...

    def forest(self, residuals: FloatArray, weights: FloatArray, n_rounds: int) -> Forest:
        """Trees for one column, as many as so many rounds of the others come to."""
        ...


@dataclass(frozen=True, eq=False)
class FoldedRows:
    """Rows drawn at random, and what the parts say of them."""

    counts: FloatArray  # (n, n_features)
    scores: FloatArray  # (n,)
    weights: FloatArray  # (n,)
    predicted: FloatArray  # (n,) P
    without: FloatArray  # (n_folds, n) P⁻ᶠ of all rows
    folds: IntArray  # (n,) the fold of each row

    @property
    def sizes(self) -> FloatArray:
        return np.asarray(self.counts.sum(axis=1))

    def held_out(self) -> FloatArray:
        """(n,) each row by parts that had not seen it."""
        return np.asarray(self.without[self.folds, np.arange(len(self.folds))])

    def held_out_beside(self, fold: int) -> FloatArray:
        """(n,) the same, as by parts that had not seen this fold either."""
        return np.asarray(self.held_out() + self.without[fold] - self.predicted)


@dataclass(frozen=True, eq=False)
class Remainder:
    """What to add to the parts, and what unseen rows are predicted as with it."""

    response: Response
    forest: Forest
    unseen: FloatArray  # (n,) out-of-fold predictions of everything together

    @property
    def is_nothing(self) -> bool:
        return not self.response.heights.any() and not len(self.forest.splits)

    def predict(self, counts: FloatArray, predicted: FloatArray) -> FloatArray:
        """What is added to what the parts predict of these counts."""
        return self.response(predicted, counts.sum(axis=1)) + self.forest.predict(counts)


def fit_remainder(rows: FoldedRows, grower: Grower | None) -> Remainder:
    """The remainder of one column of scores; `grower` None: no trees."""
    held_out, weights = rows.held_out(), rows.weights
    residuals = rows.scores - held_out
    nothing = Remainder(flat(), no_trees(), held_out)
    if len(residuals) < MIN_ROWS:
        return nothing
    spread = float(weights @ (rows.scores - np.average(rows.scores, weights=weights)) ** 2)
    if weights @ residuals**2 <= EXACT * spread:
        return nothing
    found, surfaces = nothing, _surfaces(rows)
    bent = _judged(rows, surfaces)
    if _error(rows, bent) <= MIN_GAIN * _error(rows, held_out):
        response = fit_response(held_out, residuals, sizes=rows.sizes, weights=weights)
        found = Remainder(response, no_trees(), bent)
    return found if grower is None else _with_trees(rows, found, surfaces, grower)


def _surfaces(rows: FoldedRows) -> list[Response]:
    """For each fold a response that has not seen it, nor have the parts it learns from."""
    found = []
    for fold in range(len(rows.without)):
        kept = rows.folds != fold
        predicted, weights = rows.held_out_beside(fold)[kept], rows.weights[kept]
        residuals = rows.scores[kept] - predicted
        found.append(fit_response(predicted, residuals, sizes=rows.sizes[kept], weights=weights))
    return found


def _judged(rows: FoldedRows, surfaces: list[Response]) -> FloatArray:
    """(n,) every row by parts and a response that had not seen it."""
    predicted, sizes, bent = rows.held_out(), rows.sizes, np.zeros(len(rows.folds))
    for fold, response in enumerate(surfaces):
        out = rows.folds == fold
        bent[out] = predicted[out] + response(predicted[out], sizes[out])
    return bent


def _with_trees(
    rows: FoldedRows, found: Remainder, surfaces: list[Response], grower: Grower
) -> Remainder:
    """The same with trees on what it leaves, if they pay."""
    if not found.response.heights.any():
        surfaces = [flat()] * len(surfaces)
    n_rounds, trees = _best_rounds(rows, found, surfaces, grower)
    unseen = found.unseen + trees
    if _error(rows, unseen) > MIN_GAIN * _error(rows, found.unseen):
        return found
    left = rows.scores - rows.predicted - found.response(rows.predicted, rows.sizes)
    forest = grower.forest(left, rows.weights, max(n_rounds, MIN_ROUNDS))
    return Remainder(found.response, forest, unseen)


def _best_rounds(
    rows: FoldedRows, found: Remainder, surfaces: list[Response], grower: Grower
) -> tuple[int, FloatArray]:
    """How many rounds of trees pay, and what they say of rows that they have not seen: (n,)."""
    without, folds, sizes = rows.without.T, rows.folds, rows.sizes
    bent = np.stack(
        [h(predicted, sizes) for h, predicted in zip(surfaces, without.T, strict=True)], axis=1
    )
    unseen_by = folds[:, None] == np.arange(len(surfaces))
    left = np.where(unseen_by, 0.0, rows.scores[:, None] - without - bent)
    seen = np.where(unseen_by, 0.0, rows.weights[:, None])
    best, trees, least = 0, np.zeros(len(folds)), np.inf
    for n_rounds, predicted in enumerate(grower.rounds(left, seen)):
        own = predicted[np.arange(len(folds)), folds]  # each row by those that had not seen it
        error = _error(rows, found.unseen + own)
        if error < least:
            best, trees, least = n_rounds, own, error
        elif n_rounds >= PATIENCE + MORE * best:
            break
    return best, trees


def _error(rows: FoldedRows, predicted: FloatArray) -> float:
    return float(rows.weights @ (rows.scores - predicted) ** 2)
