"""How read-outs of a SLALOM answer to its parameters, and what follows for their variances.

A score of unit i answers to the unit's own value, importance and direct effect, and to what
enters the scores of all units alike, a few directions u_r in the space of all parameters θ:

    ∂score_i = a_i ∂v_i + b_i ∂s_i + d_i ∂d_i + Σ_r c_ir u_r·∂θ

so that its variance takes a few entries of the parameters' covariance and its products with u.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray


@dataclass(frozen=True)
class Layout:
    """Where the parts of θ = (v_1…v_m, v_0, d, rises of g, s_1…s_m, s_0) are; some may be empty."""

    n_features: int
    n_anchors: int
    n_direct: int
    n_rises: int

    @property
    def value(self) -> slice:
        return slice(0, self.n_features)

    @property
    def direct(self) -> slice:
        first = self.n_features + self.n_anchors
        return slice(first, first + self.n_direct)

    @property
    def rises(self) -> slice:
        return slice(self.direct.stop, self.direct.stop + self.n_rises)

    @property
    def importance(self) -> slice:
        return slice(self.rises.stop, self.rises.stop + self.n_features)

    def direction(
        self, value: FloatArray, importance: FloatArray, rises: FloatArray | float = 0.0
    ) -> FloatArray:
        """(n_parameters,) from the parts, (m + 1,) each, the anchor's last."""
        n_kept = self.n_features + self.n_anchors
        found = np.zeros(self.rises.stop + n_kept)
        found[:n_kept], found[self.rises.stop :] = value[:n_kept], importance[:n_kept]
        found[self.rises] = rises
        return found


@dataclass(frozen=True, eq=False)
class Derivative:
    """Of one score of every unit."""

    value: FloatArray  # (m,) a
    importance: FloatArray  # (m,) b
    direct: float  # d
    shares: FloatArray  # (m, n_directions) c
    directions: FloatArray  # (n_directions, n_parameters) u

    def own(self, layout: Layout) -> list[tuple[slice, FloatArray | float]]:
        """Each part of a unit's own parameters with what the score owes to it."""
        parts: list[tuple[slice, FloatArray | float]] = [
            (layout.value, self.value),
            (layout.importance, self.importance),
        ]
        return [*parts, (layout.direct, self.direct)] if layout.n_direct else parts

    def variances(self, covariance: FloatArray, layout: Layout) -> FloatArray:
        """(m,) of the scores, given the covariance of all parameters."""
        along = covariance @ self.directions.T  # (n_parameters, n_directions)
        found = ((self.shares @ (self.directions @ along)) * self.shares).sum(axis=1)
        for part, by in self.own(layout):
            found += 2 * by * (along[part] * self.shares).sum(axis=1)
            for other, by_other in self.own(layout):
                found += by * by_other * covariance[part, other].diagonal()
        return np.asarray(found)

    def applied(self, change: FloatArray, layout: Layout) -> FloatArray:
        """(m, n) how the scores change with all parameters, given changes (n_parameters, n)."""
        found = self.shares @ (self.directions @ change)
        for part, by in self.own(layout):
            found += np.reshape(by, (-1, 1)) * change[part]
        return np.asarray(found)
