"""A fit, corrected by what the answers say beyond it: near the full text, and everywhere.

Near the full text by nearby.py; everywhere, where that pays, by a posterior mean (posterior.py):

    F(S) = P(S) + constant + P(S) B + Σ_{i in S} e_i + Σ_T w_T k(S, T)

with P the fit, T the subsets that were asked, and k the kernel of subset_kernel.py.
"""

from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.schema import Within
from slalom.surrogates.slalom.completed import CompletedModel
from slalom.surrogates.slalom.length import LengthCurve
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.nearby import Nearby
from slalom.surrogates.subset_kernel import shapley_of_kernel, subset_kernel


@dataclass(frozen=True, eq=False)
class Correction:
    """What to add to a fit's predictions of subsets of the units."""

    constant: Annotated[FloatArray, "columns"]
    slopes: Annotated[FloatArray, "columns columns"]  # B
    effects: Annotated[FloatArray, "units columns"]  # e
    rates: Annotated[FloatArray, "units", Within(0)]  # of the kernel
    points: Annotated[BoolArray, "points units"]  # T
    weights: Annotated[FloatArray, "points columns"]  # w

    def __call__(self, present: FloatArray, predicted: FloatArray) -> FloatArray:
        """(m, n_units) of 0 and 1 and what the fit predicts of them → (m, n_columns)."""
        columns = predicted[:, None] if predicted.ndim == 1 else predicted
        near = subset_kernel(present, self.points.astype(np.float64), self.rates)
        added = self.constant + columns @ self.slopes + present @ self.effects
        return np.asarray(added + near @ self.weights)

    def shapley(self, fitted: FloatArray) -> FloatArray:
        """(n_units, n_columns) Shapley values of the correction, given those of the fit."""
        near = shapley_of_kernel(self.points.astype(np.float64), self.rates)
        return np.asarray(self.effects + fitted @ self.slopes + near.T @ self.weights)

    def spread(self, features: IntArray) -> "Correction":
        """The same with one column per unit, given the column of each."""
        effects, rates, points = self.effects[features], self.rates[features], self.points
        return replace(self, effects=effects, rates=rates, points=points[:, features])


@dataclass(frozen=True, eq=False)
class CorrectedModel:
    """A fit over units, and what the answers say beyond it."""

    fitted: SlalomModel | CompletedModel
    correction: Correction | None  # None: it does not pay on answers it has not seen
    nearby: Nearby | None  # of the text nearly whole, on top of it
    kind: ClassVar[str] = "slalom-corrected"

    @property
    def parts(self) -> SlalomModel:
        return self.fitted if isinstance(self.fitted, SlalomModel) else self.fitted.parts

    @property
    def anchor(self) -> Anchor | None:
        return self.fitted.anchor

    @property
    def length(self) -> LengthCurve | None:
        return self.fitted.length

    def predict(self, counts: FloatArray) -> FloatArray:
        fitted = self.fitted.predict(counts)
        total = fitted
        if self.correction is not None:
            total = total + self.correction(counts, fitted).reshape(fitted.shape)
        if self.nearby is not None:
            total = total + self.nearby(counts).reshape(fitted.shape)
        return total

    def spread(self, features: IntArray) -> "CorrectedModel":
        correction = self.correction and self.correction.spread(features)
        nearby = self.nearby and replace(self.nearby, points=self.nearby.points[:, features])
        return CorrectedModel(self.fitted.spread(features), correction, nearby)
