"""SLALOM with its remainder: the parts that can be read, and what they leave over.

Values, importances and shares are those of the parts. Prediction, removal, alone and Shapley
values are those of everything together: Shapley values of the parts and of the trees are
exact, those of the response surface come from many orders of joining on the model itself.
Where the remainder does not pay on rows it has not seen, the fit is that of the parts. A row is
judged by parts, and a remainder if there is one, that have not seen its fold: with many rows that
is a little too strict, where leave-one-out from one factorisation (left_out.py) is too hopeful.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from slalom.document import FloatArray, IntArray
from slalom.surrogates.base import Fit, Observations
from slalom.surrogates.boosted import Ground, Growth
from slalom.surrogates.permuted_shapley import Orders, Paths, permuted_shapley
from slalom.surrogates.quality import loo_quality
from slalom.surrogates.remainder import FoldedRows, Remainder, fit_remainder
from slalom.surrogates.response import Response
from slalom.surrogates.slalom.described import described, rescaled
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.folds import folds_of, without_folds
from slalom.surrogates.slalom.length import LengthCurve
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.trees import Forest, check_forests, grouped

PARTS = SlalomSurrogate()
JUDGED = Growth(n_trees=30, rate=0.2)  # rounds at most, to find out how many pay
SMALLER = 2  # trees that are followed are so many times smaller, and more
MANY_ROWS = 8  # per feature: where four words are often seen together, trees ask for four
FOR_MANY = Growth(n_trees=100, rate=0.2, depth=4)


@dataclass(frozen=True, eq=False)
class CompletedModel:
    """A SLALOM, and per class a response surface and a forest on top of it."""

    parts: SlalomModel
    responses: tuple[Response, ...]
    forests: tuple[Forest, ...]
    groups: Annotated[IntArray, "units"]  # the feature of each input, for the forests
    n_features: int
    centred: bool = False  # scores of all classes sum to 0, and so does what is added
    kind: ClassVar[str] = "slalom-completed"

    def check(self) -> None:
        check_forests(self.forests, self.groups, self.n_features)

    @property
    def anchor(self) -> Anchor | None:
        return self.parts.anchor

    @property
    def length(self) -> LengthCurve | None:
        return self.parts.length

    def predict(self, counts: FloatArray) -> FloatArray:
        predicted = self.parts.predict(counts)
        return np.asarray(predicted + self.added(counts, predicted))

    def added(self, counts: FloatArray, predicted: FloatArray) -> FloatArray:
        """What the remainder adds to what the parts say of these counts."""
        totals = grouped(counts, self.groups, self.n_features)
        sizes = totals.sum(axis=1)
        columns = predicted[:, None] if predicted.ndim == 1 else predicted
        added = [
            response(column, sizes) + forest.predict(totals)
            for response, forest, column in zip(
                self.responses, self.forests, columns.T, strict=True
            )
        ]
        return self.balanced(np.stack(added, axis=1)).reshape(predicted.shape)

    def balanced(self, columns: FloatArray) -> FloatArray:
        """(k, n_classes) what sums to 0, where the classes' scores do."""
        return columns - columns.mean(axis=1, keepdims=True) if self.centred else columns

    def spread(self, features: IntArray) -> "CompletedModel":
        return replace(self, parts=self.parts.spread(features), groups=self.groups[features])


@dataclass(frozen=True)
class CompletedSurrogate:
    """Fits the parts, then what they leave over; trees only where they are wanted."""

    parts: SlalomSurrogate = PARTS
    trees: bool = False
    has_shapley_errors: ClassVar[bool] = True

    def fit(self, observed: Observations) -> Fit:
        counts, scores = observed.counts, observed.scores
        solved = self.parts.solve(observed)
        fit = self.parts.finished(solved, observed)
        problem, folds = solved.problem, folds_of(solved.problem)
        drawn = folds >= 0
        if fit.r2 is None or problem.complete:
            return fit
        without = without_folds(problem, solved.solution, folds) @ solved.back.T
        rows = np.flatnonzero(solved.used)[drawn].astype(np.int32)
        truth, predicted = (
            part.reshape(len(counts), -1)[rows] for part in (scores, fit.model.predict(counts))
        )
        grower = Grown.on(counts[rows]) if self.trees else None
        shown = [
            FoldedRows(
                counts[rows],
                truth[:, column],
                problem.weights[drawn],
                predicted[:, column],
                without[:, drawn, column],
                folds[drawn],
            )
            for column in range(truth.shape[1])
        ]
        found = [fit_remainder(one, grower) for one in shown]
        by_parts, weights = np.stack([one.held_out() for one in shown], axis=1), shown[0].weights
        if all(remainder.is_nothing for remainder in found):
            return _judged(fit, by_parts, scores, rows=rows, weights=weights)
        model = _model(fit, found, centred=len(solved.back) > solved.back.shape[1])
        added = np.stack([left.unseen for left in found], axis=1) - by_parts
        everything = model.predict(counts)
        held_out = replace(fit, model=model, held_out=everything)
        judged = _judged(
            held_out, by_parts + model.balanced(added), scores, rows=rows, weights=weights
        )
        return replace(
            judged,
            scores={**fit.scores, **_read_outs(fit, model, observed.document_counts)},
            parts=described(
                model.parts,
                counts[rows],
                truth,
                weights=weights,
                r2=judged.r2,
                added=(everything - fit.model.predict(counts))[rows],
            ),
        )


def _judged(
    fit: Fit, unseen: FloatArray, scores: FloatArray, *, rows: IntArray, weights: FloatArray
) -> Fit:
    """The fit, judged by what was said of these rows, unseen: (n_rows, n_classes)."""
    assert fit.judged is not None
    assert fit.held_out is not None
    truth = scores.reshape(len(scores), -1)[rows]
    found = loo_quality(truth - unseen, truth, weights=weights, n_parameters=0, by=fit.judged[rows])
    held_out = fit.held_out.reshape(len(scores), -1).copy()
    held_out[rows] = unseen
    return replace(
        fit,
        r2=found.r2,
        r2_error=found.r2_error,
        rmse=found.rmse,
        held_out=held_out.reshape(scores.shape),
        parts=rescaled(fit.parts, found.r2),
    )


@dataclass(frozen=True)
class Grown:
    """LightGBM's trees on the rows of one text."""

    ground: Ground
    judged: Growth

    @classmethod
    def on(cls, counts: FloatArray) -> "Grown":
        n_rows, n_features = counts.shape
        return cls(Ground.of(counts), FOR_MANY if n_rows >= MANY_ROWS * n_features else JUDGED)

    def rounds(self, residuals: FloatArray, weights: FloatArray) -> Iterator[FloatArray]:
        return self.ground.rounds(residuals, weights=weights, growth=self.judged)

    def forest(self, residuals: FloatArray, weights: FloatArray, n_rounds: int) -> Forest:
        rate = self.judged.rate / SMALLER
        growth = replace(self.judged, n_trees=SMALLER * n_rounds, rate=rate)
        return self.ground.forest(residuals, weights=weights, growth=growth)


def _model(fit: Fit, found: list[Remainder], *, centred: bool) -> CompletedModel:
    assert isinstance(fit.model, SlalomModel)
    n_features = len(fit.identified)
    return CompletedModel(
        fit.model,
        tuple(remainder.response for remainder in found),
        tuple(remainder.forest for remainder in found),
        np.arange(n_features, dtype=np.int32),
        n_features,
        centred,
    )


def _read_outs(
    fit: Fit, model: CompletedModel, document_counts: FloatArray
) -> dict[str, FloatArray]:
    """Removal, alone and Shapley values of everything together."""
    n_features = len(document_counts)
    one = np.eye(n_features)
    shown = np.vstack([document_counts, np.zeros(n_features), document_counts - one, one])
    predicted = model.predict(shown)
    whole, empty = predicted[:2]
    without, only = predicted[2 : 2 + n_features], predicted[2 + n_features :]
    exact = fit.scores["shapley"].reshape(n_features, -1)
    shapley = [_shapley(model, document_counts, exact[:, c], c) for c in range(exact.shape[1])]
    return {
        "removal": whole - without,
        "alone": only - empty,
        "shapley": model.balanced(np.stack(shapley, axis=1)).reshape(fit.scores["shapley"].shape),
    }


def _shapley(
    model: CompletedModel, document_counts: FloatArray, exact: FloatArray, column: int
) -> FloatArray:
    """The parts', exact; the trees', exact; the response surface's, by orders of joining."""

    parts = model.parts if model.parts.values.ndim == 1 else model.parts.column(column)

    def play(orders: Orders) -> Paths:
        paths = parts.joined(orders)
        sizes = np.broadcast_to(np.arange(float(paths.shape[1])), paths.shape)
        return model.responses[column](paths.ravel(), sizes.ravel()).reshape(paths.shape), paths

    response = permuted_shapley(play, document_counts, exact=exact)
    return np.asarray(exact + response + model.forests[column].shapley(document_counts))
