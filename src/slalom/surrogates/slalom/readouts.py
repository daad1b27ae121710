"""What is read off a SLALOM at a document, per occurrence of a feature, and how sure it is.

With w = exp(s), α_j = w_j / Z, A what attention says of the whole document (all of F in the
paper's model), n the number of its units:

    value       v_j                        what attention takes from a unit
    importance  s_j                        how strongly it outweighs others
    share       α_j                        of the attention in the whole document
    alone       F({j}) − F(∅)              what is said to the unit by itself
    linearised  w_j v_j                    the paper's single score
    gradient    α_j (v_j − A)              derivative of soft removal
    removal     α_j (v_j − A) / (1 − α_j) + d_j + g(n) − g(n − 1)      exactly F(c) − F(c − e_j)
    shapley     see shapley.py, + d_j + g(n) / n                       fair share of F(c) − F(∅)

Without an anchor `alone` is F({j}) = v_j. Standard errors follow by the delta method from the
covariance of all parameters; so do those of the length curve g.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.certainty import Certainty
from slalom.surrogates.slalom.length import ramps
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.slalom.shapley import Game, shapley_jacobian, shapley_values

ALL = 1e-12  # a unit with all the attention: removing it leaves nothing
SHARED = ("importance", "share")  # what all classes have in common
UNHEARD = ("value", "linearised")  # no answer tells what values have in common from the curve


def read_outs(model: SlalomModel, document_counts: FloatArray) -> dict[str, FloatArray]:
    """Every score of every feature, at a document with these counts."""
    columns = [_Reading.of(c, document_counts).scores() for c in _columns(model)]
    scores = {name: np.stack([c[name] for c in columns], axis=-1) for name in columns[0]}
    return {name: _shaped(name, score, model) for name, score in scores.items()}


def standard_errors(
    model: SlalomModel, document_counts: FloatArray, sure: Certainty
) -> dict[str, FloatArray]:
    """The same shapes as read_outs."""
    errors: dict[str, list[FloatArray]] = {}
    sureness = zip(_columns(model), sure.covariances, sure.common_shift, strict=True)
    for column, covariance, pull in sureness:
        for name, jacobian in _Reading.of(column, document_counts).jacobians().items():
            variance = _variances(jacobian, covariance)
            if name in UNHEARD:
                variance = variance + ((jacobian @ pull) ** 2).sum(axis=1)
            errors.setdefault(name, []).append(np.sqrt(np.maximum(variance, 0.0)))
    return {name: _shaped(name, np.stack(e, axis=-1), model) for name, e in errors.items()}


def length_errors(model: SlalomModel, sizes: FloatArray, sure: Certainty) -> FloatArray | None:
    """Of the length curve at these sizes, in its shape; None where the model has no such curve.

    What all values have in common may as well be the curve's.
    """
    if model.length is None:
        return None
    first = len(model.importances) + (model.anchor is not None)
    first += 0 if model.direct is None else len(model.importances)
    across = ramps(sizes, model.length.sizes)
    rises = slice(first, first + across.shape[1])
    variances = [
        ((across @ covariance[rises, rises]) * across).sum(axis=1)
        + ((across @ pull[rises]) ** 2).sum(axis=1)
        for covariance, pull in zip(sure.covariances, sure.common_shift, strict=True)
    ]
    errors = np.sqrt(np.maximum(np.stack(variances, axis=-1), 0.0))
    return np.asarray(errors[:, 0] if model.values.ndim == 1 else errors)


def _variances(jacobian: FloatArray, covariance: FloatArray) -> FloatArray:
    """The diagonal of J Σ Jᵀ, without what J leaves out: a value depends on itself alone."""
    rows = Rows.of(jacobian)
    if rows.cells is not None:
        first, second, _ = rows.cells.pairs
        column = rows.cells.column
        terms = rows.data[first] * rows.data[second] * covariance[column[first], column[second]]
        return np.asarray(np.bincount(rows.cells.row[first], terms, len(jacobian)), np.float64)
    used = np.flatnonzero(jacobian.any(axis=0))
    jacobian = jacobian[:, used]
    return np.asarray(((jacobian @ covariance[np.ix_(used, used)]) * jacobian).sum(axis=1))


def _columns(model: SlalomModel) -> list[SlalomModel]:
    if model.values.ndim == 1:
        return [model]
    return [model.column(c) for c in range(model.values.shape[1])]


def _shaped(name: str, score: FloatArray, model: SlalomModel) -> FloatArray:
    return score[:, 0] if name in SHARED or model.values.ndim == 1 else score


@dataclass(frozen=True, eq=False)
class _Reading:
    """One class of a model at a document: what every read-out needs."""

    model: SlalomModel
    game: Game
    share: FloatArray  # (m,) α of one occurrence of each feature
    occur: FloatArray  # (m + 1,) α of all occurrences, the anchor's last: ∂A/∂v
    attended: float  # A

    @classmethod
    def of(cls, model: SlalomModel, document_counts: FloatArray) -> "_Reading":
        weights, anchor_weight = model.weights()
        anchor_value = float(model.anchor_values())
        game = Game(weights, model.values, document_counts, anchor_weight, anchor_value)
        shares = np.append(weights, anchor_weight) / (document_counts @ weights + anchor_weight)
        occur = np.append(document_counts, 1.0) * shares
        attended = float(occur @ np.append(model.values, anchor_value))
        return cls(model, game, shares[:-1], occur, attended)

    def scores(self) -> dict[str, FloatArray]:
        values, everything = self.game.values, self.has_all
        gradient = self.share * (values - self.attended)
        removal = np.where(everything, values, gradient / np.where(everything, 1, 1 - self.share))
        direct = 0.0 if self.model.direct is None else self.model.direct
        alone = self.share_alone * (values - self.game.anchor_value)
        if self.model.anchor is None:
            alone = values
        return {
            "value": values,
            "importance": self.model.importances,
            "share": self.share,
            "alone": alone + direct + self._curve(self.at_one),
            "linearised": np.exp(self.model.importances) * values,
            "gradient": gradient,
            "removal": removal + direct + self._curve(self.at_last),
            "shapley": shapley_values(self.game) + direct + self._curve(self.on_average),
        }

    def jacobians(self) -> dict[str, FloatArray]:
        """∂score_i by (v_1…v_m, v_0, d, rises of g, s_1…s_m, s_0); no column for what is not."""
        game, share, m = self.game, self.share, len(self.share)
        centred = np.append(game.values, game.anchor_value) - self.attended
        unit, none = np.eye(m, m + 1), np.zeros((m, m + 1))
        attention = share[:, None] * (unit - self.occur)  # ∂α_i/∂s_k
        by_importance = attention * centred[:m, None] - np.outer(share, self.occur * centred)
        gone = self.has_all[:, None]
        rest = np.where(gone, np.inf, 1.0 - share[:, None])
        turn = (share * centred[:m])[:, None] / rest**2 * attention
        scale = np.exp(self.model.importances)[:, None] * unit
        shapley = shapley_jacobian(game)
        alone = self._alone_jacobian()
        by_removal = np.where(gone, unit, attention / rest)
        return {
            "value": self._row(unit, none),
            "importance": self._row(none, unit),
            "share": self._row(none, attention),
            "alone": self._row(*alone, self.at_one),
            "linearised": self._row(scale, scale * game.values[:, None]),
            "gradient": self._row(attention, by_importance),
            "removal": self._row(by_removal, by_importance / rest + turn, self.at_last),
            "shapley": self._beside_equal_shares(
                self._row(shapley[:, : m + 1], shapley[:, m + 1 :], self.on_average)
            ),
        }

    def _beside_equal_shares(self, jacobian: FloatArray) -> FloatArray:
        """Without what all units have in common: with an anchor the sum is asked, not fitted."""
        if self.model.anchor is None:
            return jacobian
        counts = self.game.counts
        return np.asarray(jacobian - counts @ jacobian / counts.sum())

    @property
    def has_all(self) -> FloatArray:
        return np.asarray(1.0 - self.share <= ALL)

    @property
    def share_alone(self) -> FloatArray:
        """(m,) the share of each unit when nothing else is shown."""
        return np.asarray(self.game.weights / (self.game.weights + self.game.anchor_weight))

    def _alone_jacobian(self) -> tuple[FloatArray, FloatArray]:
        m, alone = len(self.share), self.share_alone
        by_value = np.zeros((m, m + 1))
        by_value[:, :m], by_value[:, m] = np.diag(alone), -alone
        turn = alone * (1 - alone) * (self.game.values - self.game.anchor_value)
        by_importance = np.zeros((m, m + 1))
        by_importance[:, :m], by_importance[:, m] = np.diag(turn), -turn
        return by_value, by_importance

    def _row(
        self, by_value: FloatArray, by_importance: FloatArray, curve: FloatArray | None = None
    ) -> FloatArray:
        """The derivatives of a read-out side by side; `curve` says what of g it contains."""
        m, model = len(self.share), self.model
        kept = m + (model.anchor is not None)
        blocks = [by_value[:, :kept]]
        if model.direct is not None:
            blocks.append(np.eye(m) if curve is not None else np.zeros((m, m)))
        if model.length is not None:
            n_knots = len(model.length.sizes)
            blocks.append(np.tile(np.zeros(n_knots) if curve is None else curve, (m, 1)))
        return np.hstack([*blocks, by_importance[:, :kept]])

    def _curve(self, parts: FloatArray) -> float:
        """So much of each rise of the length curve, added up."""
        length = self.model.length
        return 0.0 if length is None else float(parts @ length.rises())

    @property
    def at_one(self) -> FloatArray:
        return self._ramps(1.0)

    @property
    def at_last(self) -> FloatArray:
        n = float(self.game.counts.sum())
        return self._ramps(n) - self._ramps(n - 1)

    @property
    def on_average(self) -> FloatArray:
        n = float(self.game.counts.sum())
        return self._ramps(n) / max(n, 1.0)

    def _ramps(self, size: float) -> FloatArray:
        length = self.model.length
        return np.zeros(0) if length is None else ramps(np.array([size]), length.sizes)[0]
