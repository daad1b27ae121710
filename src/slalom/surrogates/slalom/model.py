"""The Softmax-Linked Additive Log-Odds Model (Leemann et al., arXiv 2405.13536).

With w = exp(s), counts c and the anchor (v_0, w_0) that is always present (w_0 = 0 gives
the paper's model):

    F(c) = (w_0 v_0 + Σ_j c_j w_j v_j) / Z(c)      Z(c) = w_0 + Σ_j c_j w_j

Values may have one column a class; importances are shared by all classes.
What is read off a model stands in readouts.py.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from slalom.document import FloatArray, IntArray


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
        anchor = -np.inf if self.anchor is None else self.anchor.importance
        top = self.importances.max(initial=anchor)
        return np.exp(self.importances - top), float(np.exp(anchor - top))

    def anchor_values(self) -> FloatArray:
        """(n_classes,), or () for one column; 0 without an anchor."""
        value = 0.0 if self.anchor is None else self.anchor.value
        return np.broadcast_to(np.asarray(value, dtype=np.float64), self.values.shape[1:])

    def predict(self, counts: FloatArray) -> FloatArray:
        """F(c); without an anchor nothing present scores 0."""
        weights, anchor_weight = self.weights()
        mass = np.asarray(counts, dtype=np.float64) * weights
        total = mass.sum(axis=1) + anchor_weight
        said = mass @ self.values + anchor_weight * self.anchor_values()
        total = np.where(total > 0, total, 1.0)
        return np.asarray(said / (total if self.values.ndim == 1 else total[:, None]))

    def spread(self, features: IntArray) -> "SlalomModel":
        return SlalomModel(self.values[features], self.importances[features], self.anchor)

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
            value = tuple(value) if isinstance(value, list | tuple) else float(value)
            anchor = Anchor(value, float(anchor["importance"]))
        values, importances = (np.array(record[key], float) for key in ("values", "importances"))
        return cls(values, importances, anchor)
