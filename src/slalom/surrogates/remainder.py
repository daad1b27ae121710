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
    said: FloatArray  # (n,) P
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


def fit_remainder(described: FoldedRows, grower: Grower | None) -> Remainder:
    """The remainder of one column of scores; `grower` None: no trees."""
    held_out, weights = described.held_out(), described.weights
    residuals = described.scores - held_out
    nothing = Remainder(flat(), no_trees(), held_out)
    if len(residuals) < MIN_ROWS:
        return nothing
    spread = float(
        weights @ (described.scores - np.average(described.scores, weights=weights)) ** 2
    )
    if weights @ residuals**2 <= EXACT * spread:
        return nothing
    found, surfaces = nothing, _surfaces(described)
    bent = _judged(described, surfaces)
    if _error(described, bent) <= MIN_GAIN * _error(described, held_out):
        response = fit_response(held_out, residuals, sizes=described.sizes, weights=weights)
        found = Remainder(response, no_trees(), bent)
    return found if grower is None else _with_trees(described, found, surfaces, grower)


def _surfaces(described: FoldedRows) -> list[Response]:
    """For each fold a response that has not seen it, nor have the parts it learns from."""
    found = []
    for fold in range(len(described.without)):
        kept = described.folds != fold
        said, weights = described.held_out_beside(fold)[kept], described.weights[kept]
        residuals = described.scores[kept] - said
        found.append(fit_response(said, residuals, sizes=described.sizes[kept], weights=weights))
    return found


def _judged(described: FoldedRows, surfaces: list[Response]) -> FloatArray:
    """(n,) every row by parts and a response that had not seen it."""
    said, sizes, bent = described.held_out(), described.sizes, np.zeros(len(described.folds))
    for fold, response in enumerate(surfaces):
        out = described.folds == fold
        bent[out] = said[out] + response(said[out], sizes[out])
    return bent


def _with_trees(
    described: FoldedRows, found: Remainder, surfaces: list[Response], grower: Grower
) -> Remainder:
    """The same with trees on what it leaves, if they pay."""
    if not found.response.heights.any():
        surfaces = [flat()] * len(surfaces)
    n_rounds, trees = _best_rounds(described, found, surfaces, grower)
    unseen = found.unseen + trees
    if _error(described, unseen) > MIN_GAIN * _error(described, found.unseen):
        return found
    left = described.scores - described.said - found.response(described.said, described.sizes)
    forest = grower.forest(left, described.weights, max(n_rounds, MIN_ROUNDS))
    return Remainder(found.response, forest, unseen)


def _best_rounds(
    described: FoldedRows, found: Remainder, surfaces: list[Response], grower: Grower
) -> tuple[int, FloatArray]:
    """How many rounds of trees pay, and what they say of rows that they have not seen: (n,)."""
    without, folds, sizes = described.without.T, described.folds, described.sizes
    bent = np.stack([h(said, sizes) for h, said in zip(surfaces, without.T, strict=True)], axis=1)
    unseen_by = folds[:, None] == np.arange(len(surfaces))
    left = np.where(unseen_by, 0.0, described.scores[:, None] - without - bent)
    seen = np.where(unseen_by, 0.0, described.weights[:, None])
    best, trees, least = 0, np.zeros(len(folds)), np.inf
    for n_rounds, said in enumerate(grower.rounds(left, seen)):
        own = said[np.arange(len(folds)), folds]  # each row by those that had not seen it
        error = _error(described, found.unseen + own)
        if error < least:
            best, trees, least = n_rounds, own, error
        elif n_rounds >= PATIENCE + MORE * best:
            break
    return best, trees


def _error(described: FoldedRows, said: FloatArray) -> float:
    return float(described.weights @ (described.scores - said) ** 2)
