"""How read-outs of a SLALOM answer to its parameters, and what follows for their variances.

A score of unit i answers to the unit's own value, importance and direct effect, and to what
enters the scores of all units alike, a few directions u_r in the space of all parameters θ:

    ∂score_i = a_i ∂v_i + b_i ∂s_i + d_i ∂d_i + Σ_r c_ir u_r·∂θ

so that its variance is a form of (a, b, d, c) in a few entries of the parameters' covariance and
of its products with u, the same for all scores.
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
    def values(self) -> slice:
        """The anchor's is the last."""
        return slice(0, self.n_features + self.n_anchors)

    @property
    def direct(self) -> slice:
        return slice(self.values.stop, self.values.stop + self.n_direct)

    @property
    def rises(self) -> slice:
        return slice(self.direct.stop, self.direct.stop + self.n_rises)

    @property
    def importances(self) -> slice:
        """The anchor's is the last."""
        return slice(self.rises.stop, self.rises.stop + self.values.stop)

    @property
    def own(self) -> tuple[slice, ...]:
        """Value, importance and, where there are any, direct effect of each feature."""
        starts = (self.values.start, self.importances.start, self.direct.start)
        return tuple(slice(at, at + self.n_features) for at in starts[: 3 if self.n_direct else 2])


@dataclass(frozen=True, eq=False)
class Common:
    """What the scores of all units answer to, whatever the unit."""

    layout: Layout
    directions: FloatArray  # (n_directions, n_parameters) u

    def covariances(self, covariance: FloatArray) -> FloatArray:
        """(m, 3 + n_directions, the same) of each unit's v, s, d and u·θ, from that of θ."""
        along = covariance @ self.directions.T  # (n_parameters, n_directions)
        n = 3 + len(self.directions)
        found = np.zeros((self.layout.n_features, n, n))
        found[:, 3:, 3:] = self.directions @ along
        for i, part in enumerate(self.layout.own):
            found[:, i, 3:] = found[:, 3:, i] = along[part]
            for j, other in enumerate(self.layout.own):
                found[:, i, j] = covariance[part, other].diagonal()
        return found

    def changes(self, change: FloatArray) -> FloatArray:
        """(m, 3 + n_directions, n) of each unit's v, s, d and u·θ, by those of θ: (…, n)."""
        n_directions, n = len(self.directions), change.shape[1]
        found = np.zeros((self.layout.n_features, 3 + n_directions, n))
        found[:, 3:] = self.directions @ change
        for i, part in enumerate(self.layout.own):
            found[:, i] = change[part]
        return found
