"""How much of the variation of the scores each part of a model describes.

With y the scores and p one part's contribution to every row, a part's share is cov(p, y) / var y;
the shares add up to that of the whole model, and are scaled to what it describes of rows it
has not seen, R². Parts that work against each other have shares of different signs.
"""

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.model import SlalomModel

ATTENTION, LENGTH, DIRECT, TOGETHER = "attention", "length", "direct", "together"
UNEXPLAINED = "unexplained"


def described(
    model: SlalomModel,
    counts: FloatArray,
    scores: FloatArray,
    *,
    weights: FloatArray,
    r2: float | None,
    added: FloatArray | None = None,
) -> dict[str, float]:
    """Share by name, the sum is 1; {} where R² is not known. `added` is the remainder's."""
    if r2 is None:
        return {}
    parts = {ATTENTION: model.attended(counts)}
    if model.length is not None:
        parts[LENGTH] = model.length(counts.sum(axis=1))
    if model.direct is not None:
        parts[DIRECT] = counts @ model.direct
    if added is not None:
        parts[TOGETHER] = added
    shares = {name: _covariance(part, scores, weights) for name, part in parts.items()}
    total = sum(shares.values())
    scale = r2 / total if total > 0 else 0.0
    return {**{name: share * scale for name, share in shares.items()}, UNEXPLAINED: 1.0 - r2}


def _covariance(one: FloatArray, other: FloatArray, weights: FloatArray) -> float:
    """Weighted, summed over classes."""
    columns = [x.reshape(len(x), -1) for x in (one, other)]
    centred = [x - np.average(x, axis=0, weights=weights) for x in columns]
    return float(weights @ (centred[0] * centred[1]).sum(axis=1))
