"""What the parts of a SLALOM leave over: a response surface, and shallow trees on the rest.

    F(c) = P(c) + h(P(c), k) + T(c)          P the parts, k the size, h response.py, T trees.py

Both are fitted to misses of rows that the parts had not seen: P⁻ᶠ is fitted without fold f,
and says P⁻ᶠ of the rows of f. Both are judged on rows that none of the three had seen. Fitted
without f and g at once the parts would say P⁻ᶠᵍ ≈ P⁻ᶠ + P⁻ᵍ − P, which is what a remainder that
is to be judged on f learns from: with P⁻ᵍ alone, which has seen f, it would know too much.
The trees of all folds together, each with its share, are the forest; how far they are followed
is the slope of misses on what trees say of rows they have not seen. What does not pay on
unseen rows is left out.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray, IntArray
from slalom.surrogates.response import Response, fit_response, flat
from slalom.surrogates.trees import Forest, no_trees

LEAST_ROWS = 60  # with fewer there is nothing to judge a remainder by
EXACT = 1e-6  # of the scores' variance: nothing is left to describe
PAYS = 0.995  # what the error of unseen rows must fall to
Grower = Callable[[FloatArray, FloatArray, FloatArray], Forest]  # of counts, misses, weights


@dataclass(frozen=True, eq=False)
class Described:
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
        """(n,) the same, by parts that had not seen this fold either."""
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


def fit_remainder(described: Described, grow: Grower | None) -> Remainder:
    """The remainder of one column of scores; `grow` None: no trees."""
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
    folds = _Folds.of(described, grow)
    error = [float(weights @ (described.scores - said) ** 2) for said in folds.unseen()]
    if error[1] > PAYS * error[0]:
        return nothing
    response = fit_response(held_out, misses, sizes=described.sizes, weights=weights)
    if grow is None or error[2] > PAYS * error[1]:
        return Remainder(response, no_trees(), folds.bent)
    return Remainder(response, folds.forest(described.counts), folds.unseen()[2])


@dataclass(frozen=True, eq=False)
class _Folds:
    """Every row predicted by what was fitted without it."""

    parts: FloatArray  # (n,) by the parts alone
    bent: FloatArray  # (n,) by parts and response
    grown: FloatArray  # (n,) what the trees add
    forests: tuple[Forest, ...]
    slope: float  # how far the trees can be trusted, 0 … 1

    @classmethod
    def of(cls, described: Described, grow: Grower | None) -> "_Folds":
        parts, sizes = described.held_out(), described.sizes
        bent, grown, forests = np.zeros(len(parts)), np.zeros(len(parts)), list[Forest]()
        for fold in range(len(described.without)):
            out = described.folds == fold
            learnt, weights = described.held_out_beside(fold)[~out], described.weights[~out]
            misses = described.scores[~out] - learnt
            response = fit_response(learnt, misses, sizes=sizes[~out], weights=weights)
            bent[out] = parts[out] + response(parts[out], sizes[out])
            if grow is not None:
                left = misses - response(learnt, sizes[~out])
                forests.append(grow(described.counts[~out], left, weights))
                grown[out] = forests[-1].predict(described.counts[out])
        size = float(described.weights @ grown**2)
        cross = float(described.weights @ (grown * (described.scores - bent)))
        slope = float(np.clip(cross / size, 0.0, 1.0)) if size > 0 else 0.0
        return cls(parts, bent, grown, tuple(forests), slope)

    def unseen(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """By the parts, with the response, with everything."""
        return self.parts, self.bent, self.bent + self.slope * self.grown

    def forest(self, counts: FloatArray) -> Forest:
        """The trees of all folds, each with its share.

        What they say together is as right and less noisy, and can be followed further.
        """
        said = np.stack([forest.predict(counts) for forest in self.forests])
        calmer = float((said**2).mean()) / max(float((said.mean(axis=0) ** 2).mean()), 1e-300)
        share = min(1.0, self.slope * calmer) / len(self.forests)
        return Forest(
            np.concatenate([forest.splits for forest in self.forests]),
            np.concatenate([forest.at_least for forest in self.forests]),
            np.concatenate([forest.leaves * share for forest in self.forests]),
        )
