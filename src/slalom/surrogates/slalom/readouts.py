"""What is read off a SLALOM at a document, per occurrence of a feature, and how sure it is.

With w = exp(s), α_j = w_j / Z, A what attention says of the whole document (all of F in the
paper's model), n the number of its units:

    value       v_j                        what attention takes from a unit
    importance  s_j                        how strongly it outweighs others
    share       α_j                        of the attention in the whole document
    alone       F({j}) − F(∅)              what is said to the unit by itself
    linearised  w_j v_j                    the paper's single score
    gradient    α_j (v_j − A)              derivative by s_j, attention's part alone
    removal     α_j (v_j − A) / (1 − α_j) + d_j + g(n) − g(n − 1)      exactly F(c) − F(c − e_j)
    shapley     see shapley.py, + d_j + g(n) / n                       fair share of F(c) − F(∅)

Without an anchor `alone` is F({j}) = v_j. Standard errors follow by the delta method from the
covariance of all parameters; so do those of the length curve g.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.certainty import Certainty
from slalom.surrogates.slalom.derivatives import Common, Layout
from slalom.surrogates.slalom.length import ramps
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.slalom.shapley import Game, shapley_jacobian, shapley_values

ALL = 1e-12  # a unit with all the attention: removing it leaves nothing
OWN_VALUE, OWN_IMPORTANCE, OWN_DIRECT = range(3)  # what a score answers to, as in Common
ATTENDED, LOG_TOTAL, ANCHOR_VALUE, ANCHOR_IMPORTANCE, AT_ONE, AT_LAST = range(3, 9)
SHARED = ("importance", "share")  # what all classes have in common
UNHEARD = ("value", "linearised")  # no answer tells what values have in common from the curve


def read_outs(
    model: SlalomModel, document_counts: FloatArray, *, normalise: float = 0.0
) -> dict[str, FloatArray]:
    """Every score of every feature, at a document with these counts.

    Importances are told to a common shift only: they are read so that those of all features add
    up to `normalise` (the paper's γ). Of the other scores `linearised` alone depends on it.
    """
    if normalise:
        model = model.normalised(normalise)
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
        reading = _Reading.of(column, document_counts)
        common, slopes = reading.common(), reading.slopes()
        inside, pulled = common.covariances(covariance), common.changes(pull)
        together = np.stack(list(slopes.values()), axis=1)  # (m, n_scores, n_answered)
        found = ((together @ inside) * together).sum(axis=2)
        variances = dict(zip(slopes, found.T, strict=True))
        for name in UNHEARD:
            moved = slopes[name][:, None] @ pulled  # (m, 1, n_columns)
            variances[name] = variances[name] + (moved**2).sum(axis=(1, 2))
        variances["shapley"] = reading.shapley_variances(covariance)
        for name, variance in variances.items():
            errors.setdefault(name, []).append(np.sqrt(np.maximum(variance, 0.0)))
    return {name: _shaped(name, np.stack(e, axis=-1), model) for name, e in errors.items()}


def length_errors(model: SlalomModel, sizes: FloatArray, sure: Certainty) -> FloatArray | None:
    """Of the length curve at these sizes, in its shape; None where the model has no such curve.

    What all values have in common may as well be the curve's.
    """
    if model.length is None:
        return None
    across, rises = ramps(sizes, model.length.sizes), _layout(model).rises
    variances = [
        ((across @ covariance[rises, rises]) * across).sum(axis=1)
        + ((across @ pull[rises]) ** 2).sum(axis=1)
        for covariance, pull in zip(sure.covariances, sure.common_shift, strict=True)
    ]
    errors = np.sqrt(np.maximum(np.stack(variances, axis=-1), 0.0))
    return np.asarray(errors[:, 0] if model.values.ndim == 1 else errors)


def _layout(model: SlalomModel) -> Layout:
    """Of the model's parameters, without those that it does not have."""
    m = len(model.importances)
    n_rises = 0 if model.length is None else len(model.length.sizes)
    return Layout(m, int(model.anchor is not None), 0 if model.direct is None else m, n_rises)


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

    @property
    def layout(self) -> Layout:
        return _layout(self.model)

    def common(self) -> Common:
        """A, log Z, the anchor's value and importance, two parts of the length curve."""
        layout = self.layout
        values, importances, rises = layout.values, layout.importances, layout.rises
        centred = np.append(self.game.values, self.game.anchor_value) - self.attended
        attended, total, value, importance, one, last = found = np.zeros((6, importances.stop))
        attended[values] = total[importances] = self.occur[: values.stop]
        attended[importances] = (self.occur * centred)[: values.stop]
        value[layout.n_features : values.stop] = importance[importances][layout.n_features :] = 1.0
        one[rises], last[rises] = self.at_one, self.at_last
        return Common(layout, found)

    def slopes(self) -> dict[str, FloatArray]:
        """Of every score but Shapley values, which answer to all parameters: (m, n_answered)."""
        game, share, gone = self.game, self.share, self.has_all
        pull = share * (game.values - self.attended)
        rest = np.where(gone, np.inf, 1.0 - share)
        alone, scale = self.share_alone, np.exp(self.model.importances)
        turn = alone * (1 - alone) * (game.values - game.anchor_value)
        found: dict[str, dict[int, FloatArray | float]] = {
            "value": {OWN_VALUE: 1.0},
            "importance": {OWN_IMPORTANCE: 1.0},
            "share": {OWN_IMPORTANCE: share, LOG_TOTAL: -share},
            "alone": {
                OWN_VALUE: alone,
                OWN_IMPORTANCE: turn,
                OWN_DIRECT: 1.0,
                ANCHOR_VALUE: -alone,
                ANCHOR_IMPORTANCE: -turn,
                AT_ONE: 1.0,
            },
            "linearised": {OWN_VALUE: scale, OWN_IMPORTANCE: scale * game.values},
            "gradient": {
                OWN_VALUE: share,
                OWN_IMPORTANCE: pull,
                ATTENDED: -share,
                LOG_TOTAL: -pull,
            },
            "removal": {
                OWN_VALUE: np.where(gone, 1.0, share / rest),
                OWN_IMPORTANCE: pull / rest**2,
                OWN_DIRECT: 1.0,
                ATTENDED: -share / rest,
                LOG_TOTAL: -pull / rest**2,
                AT_LAST: 1.0,
            },
        }
        slopes = {name: np.zeros((len(share), AT_LAST + 1)) for name in found}
        for name, parts in found.items():
            for part, by in parts.items():
                slopes[name][:, part] = by
        return slopes

    def shapley_variances(self, covariance: FloatArray) -> FloatArray:
        """(m,); with an anchor without what all units have in common: their sum is asked.

        The length curve is common to all, and direct effects come less their average.
        """
        layout, average = self.layout, self.game.counts / self.game.counts.sum()
        values, importances, direct = layout.values, layout.importances, layout.direct
        by_value, by_importance = (
            part[:, : values.stop] for part in np.split(shapley_jacobian(self.game), 2, axis=1)
        )
        if self.model.anchor is not None:
            by_value, by_importance = (part - average @ part for part in (by_value, by_importance))
        across = by_importance @ covariance[importances, importances]
        across += 2 * (by_value @ covariance[values, importances])
        found = (across * by_importance).sum(axis=1)
        found += ((by_value @ covariance[values, values]) * by_value).sum(axis=1)
        if layout.n_direct:
            with_direct = covariance[direct] - average @ covariance[direct]
            found += 2 * (with_direct[:, values] * by_value).sum(axis=1)
            found += 2 * (with_direct[:, importances] * by_importance).sum(axis=1)
            found += with_direct[:, direct].diagonal() - with_direct[:, direct] @ average
        return np.asarray(found)

    @property
    def has_all(self) -> FloatArray:
        return np.asarray(1.0 - self.share <= ALL)

    @property
    def share_alone(self) -> FloatArray:
        """(m,) the share of each unit when nothing else is shown."""
        return np.asarray(self.game.weights / (self.game.weights + self.game.anchor_weight))

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
