"""The length curve: how the score drifts with the sheer number of units shown.

g(k) is piecewise linear in k with g(0) = 0 and knots at k = 1, 3, 7, 15, … and the whole text:
evenly spaced in log₂(1 + k), so that it bends where short texts differ, and a straight line,
which is what a common part of all direct effects would be, is among them. It is fitted as a
sum of ramps, one per stretch between knots, so that shrinking a ramp flattens the curve.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from slalom.document import FloatArray
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
        return np.asarray(ramps(sizes, self.sizes) @ self.rises())

    def rises(self) -> FloatArray:
        """Over each stretch between knots."""
        return np.diff(self.heights, axis=0, prepend=np.zeros_like(self.heights[:1]))


def knots_of(n_units: float) -> FloatArray:
    """1, 3, 7, … and the whole text."""
    inner = 2.0 ** np.arange(1, np.ceil(np.log2(1 + max(n_units, 1.0)))) - 1
    return np.append(inner, max(n_units, 1.0))


def ramps(sizes: FloatArray, knots: FloatArray) -> FloatArray:
    """How far each size is across each stretch, from 0 to 1: (n, n_knots)."""
    lower = np.append(0.0, knots[:-1])
    return np.asarray(((sizes[:, None] - lower) / (knots - lower)).clip(0.0, 1.0))
