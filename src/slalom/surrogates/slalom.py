"""The Softmax-Linked Additive Log-Odds Model and everything that is read off it.

With w = exp(s), counts c and the anchor (v_0, w_0) that is always present
(Leemann et al., arXiv 2405.13536; the anchor is ours, w_0 = 0 gives the paper's model):

    F(c) = (w_0 v_0 + Σ_j c_j w_j v_j) / Z(c)      Z(c) = w_0 + Σ_j c_j w_j      α_j = w_j / Z

    value       v_j                        what a unit says on its own
    importance  s_j                        how strongly it outweighs others
    linearised  w_j v_j                    the paper's single score
    gradient    α_j (v_j − F)              derivative of soft removal
    removal     α_j (v_j − F) / (1 − α_j)  exactly F(c) − F(c − e_j)
    shapley     see shapley.py             fair share of F(c) − F(∅)

Values may have one column a class; importances are shared by all classes.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slalom.document import FloatArray, IntArray
from slalom.surrogates.shapley import shapley_values

READ_OUTS = ("value", "importance", "linearised", "gradient", "removal", "shapley")


@dataclass(frozen=True)
class Anchor:
    """What is always present: special tokens, the prompt. Its value is the empty query's score."""

    value: float | tuple[float, ...]  # a tuple has one entry a class
    importance: float


@dataclass(frozen=True, eq=False)
class SlalomModel:
    """One SLALOM: a value (or one a class) and an importance for each feature."""

    values: FloatArray  # (n_features,) or (n_features, n_classes)
    importances: FloatArray  # (n_features,)
    anchor: Anchor | None
    kind: ClassVar[str] = "slalom"

    def weights(self) -> tuple[FloatArray, float]:
        """exp(s) of the features and of the anchor, scaled so that the largest is 1."""
        own = self.importances
        top = own.max(initial=-np.inf) if self.anchor is None else own.max(
            initial=self.anchor.importance
        )
        anchor = 0.0 if self.anchor is None else float(np.exp(self.anchor.importance - top))
        return np.exp(own - top), anchor

    def predict(self, counts: FloatArray) -> FloatArray:
        """F(c); without an anchor nothing present scores 0."""
        weights, anchor_weight = self.weights()
        mass = np.asarray(counts, dtype=np.float64) * weights
        total = mass.sum(axis=1) + anchor_weight
        numerator = mass @ self.values + anchor_weight * self._anchor_value()
        total = np.where(total > 0, total, 1.0)
        return np.asarray(numerator / (total if self.values.ndim == 1 else total[:, None]))

    def spread(self, features: IntArray) -> "SlalomModel":
        return SlalomModel(self.values[features], self.importances[features], self.anchor)

    def read_outs(self, at: FloatArray) -> dict[str, FloatArray]:
        """Every score of every feature (of one occurrence), at a document with these counts."""
        weights, anchor_weight = self.weights()
        share = weights / (at @ weights + anchor_weight)
        if self.values.ndim == 2:
            weights, share = weights[:, None], share[:, None]
        centred = self.values - self.predict(at[None, :])[0]
        rest = 1.0 - share
        alone = rest <= 1e-12  # one unit and no anchor: removing it leaves nothing, F(∅) = 0
        removal = np.where(alone, self.values, share * centred / np.where(alone, 1.0, rest))
        return {
            "value": self.values,
            "importance": self.importances,
            "linearised": self._scale() * weights * self.values,
            "gradient": share * centred,
            "removal": removal,
            "shapley": self.shapley(at),
        }

    def shapley(self, at: FloatArray) -> FloatArray:
        weights, anchor_weight = self.weights()
        return shapley_values(weights, self.values, at, anchor_weight, self._anchor_value())

    def _scale(self) -> float:
        """weights() divides by the largest; the linearised score is told in the true scale."""
        weights, _ = self.weights()
        return float(np.exp(self.importances[0]) / weights[0]) if len(weights) else 1.0

    def _anchor_value(self) -> FloatArray:
        value = 0.0 if self.anchor is None else self.anchor.value
        return np.broadcast_to(np.asarray(value, dtype=np.float64), self.values.shape[1:])

    def to_json(self) -> dict[str, Any]:
        anchor = self.anchor and {"value": self.anchor.value, "importance": self.anchor.importance}
        return {
            "values": self.values.tolist(),
            "importances": self.importances.tolist(),
            "anchor": anchor,
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "SlalomModel":
        anchor = record["anchor"]
        if anchor is not None:
            value = anchor["value"]
            value = tuple(value) if isinstance(value, list) else float(value)
            anchor = Anchor(value, float(anchor["importance"]))
        values, importances = (np.array(record[key], float) for key in ("values", "importances"))
        return cls(values, importances, anchor)
