"""The Softmax-Linked Additive Log-Odds Model (Leemann et al., arXiv 2405.13536).

With w = exp(s), counts c and the anchor (v_0, w_0) that is always present:

    F(c) = (w_0 v_0 + Σ_j c_j w_j v_j) / Z(c) + Σ_j c_j d_j + g(Σ_j c_j)
    Z(c) = w_0 + Σ_j c_j w_j

d is what a feature adds in any company (direct), g the length curve; the paper's model has w_0 = 0,
d = 0 and g = 0. g is piecewise linear with g(0) = 0 and knots at 1, 3, 7, 15, … and the whole text:
evenly spaced in log₂(1 + k), so that it bends where short texts differ. It is fitted as a sum of
ramps, one per stretch between knots, so that shrinking a ramp flattens it.

Values may have one column per class; importances are shared by all classes.
What is read off a model stands in readouts.py.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.schema import check_ascending


@dataclass(frozen=True, eq=False)
class LengthCurve:
    """Heights of g at its knots; it is 0 at 0 and stays level beyond the last."""

    sizes: Annotated[FloatArray, "knots"]  # ascending
    heights: Annotated[FloatArray, "knots labels?"]

    def check(self) -> None:
        check_ascending(np.append(0.0, self.sizes))

    def __call__(self, sizes: FloatArray) -> FloatArray:
        """g at these sizes: (n,) or (n, n_classes)."""
        rises = np.diff(self.heights, axis=0, prepend=np.zeros_like(self.heights[:1]))
        return np.asarray(ramps(sizes, self.sizes) @ rises)


def knots_of(n_units: float) -> FloatArray:
    """1, 3, 7, … and the whole text."""
    inner = 2.0 ** np.arange(1, np.ceil(np.log2(1 + max(n_units, 1.0)))) - 1
    return np.append(inner, max(n_units, 1.0))


def ramps(sizes: FloatArray, knots: FloatArray) -> FloatArray:
    """How far each size is across each stretch, from 0 to 1: (n, n_knots)."""
    lower = np.append(0.0, knots[:-1])
    return np.asarray(((sizes[:, None] - lower) / (knots - lower)).clip(0.0, 1.0))


@dataclass(frozen=True)
class Anchor:
    """What is always present: special tokens, the prompt. Its value is the empty query's score."""

    value: float | tuple[float, ...]  # a tuple has one entry per class
    importance: float  # log weight, beside those of the units


@dataclass(frozen=True, eq=False)
class Prior:
    """What is believed of each feature before asking; NaN: nothing."""

    values: FloatArray  # (n_features,)
    importances: FloatArray  # (n_features,)
    anchor: float = 0.0  # its importance beside theirs

    @property
    def known(self) -> BoolArray:
        """(n_features,) of which anything is believed."""
        return np.isfinite(self.importances)

    @property
    def relative_importances(self) -> FloatArray:
        """(n_features + 1,) less the level of those that are known, the anchor's last."""
        level = self.importances[self.known].mean()
        own = np.where(self.known, self.importances - level, 0.0)
        return np.append(own, self.anchor - level)


@dataclass(frozen=True, eq=False)
class SlalomModel:
    """One SLALOM: a value (or one per class) and an importance for each feature."""

    values: Annotated[FloatArray, "units labels?"]
    importances: Annotated[FloatArray, "units"]
    anchor: Anchor | None
    direct: Annotated[FloatArray | None, "units labels?"] = None  # sum 0; None: no such part
    length: LengthCurve | None = None
    kind: ClassVar[str] = "slalom"

    @classmethod
    def of(cls, values: FloatArray, importances: FloatArray, m: int, *, one: bool) -> "SlalomModel":
        """Of m features and, if there are more rows, an anchor: (k, n_classes) and (k,).

        `one`: there is one class, whose scores have no axis of classes.
        """
        own, anchor = values[:m, 0] if one else values[:m], None
        if len(values) > m:
            value = float(values[m, 0]) if one else tuple(map(float, values[m]))
            anchor = Anchor(value, float(importances[m]))
        return cls(own, importances[:m], anchor)

    def weights(self) -> tuple[FloatArray, float]:
        """exp(s) of the features and of the anchor, scaled so that the largest is 1."""
        anchor = -np.inf if self.anchor is None else self.anchor.importance
        top = self.importances.max(initial=anchor)
        return np.exp(self.importances - top), float(np.exp(anchor - top))

    def anchor_values(self) -> FloatArray:
        """(n_classes,), or () for one column; 0 without an anchor."""
        value = 0.0 if self.anchor is None else self.anchor.value
        return np.broadcast_to(np.asarray(value, dtype=np.float64), self.values.shape[1:])

    def predict(self, counts: FloatArray) -> FloatArray:
        """F(c); without an anchor nothing present scores 0."""
        counts = np.asarray(counts, dtype=np.float64)
        return self._score(lambda each: counts @ each, counts.sum(axis=1))

    @property
    def empty_score(self) -> FloatArray | None:
        """Without an anchor it says nothing of an empty text."""
        return None if self.anchor is None else self.anchor_values()

    def attended(self, counts: FloatArray) -> FloatArray:
        """The first term of F: what attention says."""
        return self._attended(lambda each: counts @ each)

    def _score(self, summed: Callable[[FloatArray], FloatArray], sizes: FloatArray) -> FloatArray:
        """F, where `summed` adds up a number of each feature over what is shown."""
        score = self._attended(summed)
        if self.direct is not None:
            score += summed(self.direct)
        if self.length is not None:
            score += self.length(sizes)
        return score

    def _attended(self, summed: Callable[[FloatArray], FloatArray]) -> FloatArray:
        weights, anchor_weight = self.weights()
        total = summed(weights) + anchor_weight
        weighted = summed((weights * self.values.T).T) + anchor_weight * self.anchor_values()
        total = np.where(total > 0, total, 1.0)
        return np.asarray(weighted / (total if self.values.ndim == 1 else total[..., None]))

    def joined(self, orders: NDArray[np.integer[Any]]) -> FloatArray:
        """F of nothing, of the first unit, of the first two: (n_orders, n_units + 1[, n_classes]).

        Orders are features of units as they join, (n_orders, n_units).
        """

        def summed(of_features: FloatArray) -> FloatArray:
            sums = np.zeros((len(orders), orders.shape[1] + 1, *of_features.shape[1:]))
            np.cumsum(of_features[orders], axis=1, out=sums[:, 1:])
            return sums

        return self._score(summed, np.arange(orders.shape[1] + 1.0))

    def column(self, of_class: int) -> "SlalomModel":
        """The model of one class out of those that share importances."""
        anchor, length = self.anchor, self.length
        if anchor is not None:
            anchor = Anchor(float(np.atleast_1d(anchor.value)[of_class]), anchor.importance)
        return replace(
            self,
            values=self.values[:, of_class],
            anchor=anchor,
            direct=None if self.direct is None else self.direct[:, of_class],
            length=length and LengthCurve(length.sizes, length.heights[:, of_class]),
        )

    def expand(self, features: IntArray) -> "SlalomModel":
        return replace(
            self,
            values=self.values[features],
            importances=self.importances[features],
            direct=None if self.direct is None else self.direct[features],
        )
