"""What is read off a SLALOM at a document, per occurrence of a feature, and how sure it is.

With w = exp(s), α_j = w_j / Z, A what attention says of the whole document (all of F in the
paper's model), n the number of its units:

    value       v_j                        what attention takes from a unit
    importance  s_j                        how strongly it outweighs others
    share       α_j                        of the attention in the whole document
    alone       F({j}) − F(∅)              what the unit adds by itself
    linearised  w_j v_j                    the paper's single score
    gradient    α_j (v_j − A)              derivative by s_j, attention's part alone
    removal     α_j (v_j − A) / (1 − α_j) + d_j + g(n) − g(n − 1)      exactly F(c) − F(c − e_j)
    shapley     see shapley.py, + d_j + g(n) / n                       fair share of F(c) − F(∅)

Without an anchor `alone` is F({j}) = v_j. Standard errors of a plain SLALOM (no d, no g) follow by
the delta method from how far single rows move its parameters (uncertainty.py).
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.slalom.shapley import Game, shapley_jacobian, shapley_values
from slalom.surrogates.slalom.uncertainty import Influence

SHARED = ("importance", "share")  # what all classes have in common


def read_outs(model: SlalomModel, document_counts: FloatArray) -> dict[str, FloatArray]:
    """Every score of every feature, at a document with these counts.

    Importances are known up to a common shift; of the other scores only `linearised` depends on it.
    """
    columns = [_Reading.of(c, document_counts).scores() for c in _columns(model)]
    scores = {name: np.stack([c[name] for c in columns], axis=-1) for name in columns[0]}
    return {name: _shaped(name, score, model) for name, score in scores.items()}


def standard_errors(
    model: SlalomModel, document_counts: FloatArray, influence: Influence
) -> dict[str, FloatArray]:
    """Of a plain SLALOM, the same shapes as read_outs; with an anchor none of Shapley values."""
    columns = [
        _Reading.of(column, document_counts).moved(values, influence.importances)
        for column, values in zip(_columns(model), influence.values, strict=True)
    ]
    errors = {
        name: np.stack([np.sqrt((c[name] ** 2).sum(axis=1)) for c in columns], axis=-1)
        for name in columns[0]
    }
    return {name: _shaped(name, error, model) for name, error in errors.items()}


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
        alone = values
        if self.model.anchor is not None:
            share_alone = self.game.weights / (self.game.weights + self.game.anchor_weight)
            alone = share_alone * (values - self.game.anchor_value)
        direct = 0.0 if self.model.direct is None else self.model.direct
        n, length = float(self.game.counts.sum()), self.model.length
        at_one, before_last, at_last = (
            np.zeros(3) if length is None else length(np.array([1.0, n - 1.0, n]))
        )
        return {
            "value": values,
            "importance": self.model.importances,
            "share": self.share,
            "alone": alone + direct + at_one,
            "linearised": np.exp(self.model.importances) * values,
            "gradient": gradient,
            "removal": removal + direct + (at_last - before_last),
            "shapley": shapley_values(self.game) + direct + at_last / max(n, 1.0),
        }

    def moved(self, values: FloatArray, importances: FloatArray) -> dict[str, FloatArray]:
        """(m, r) of each score, as (k, r) of all values and importances move."""
        m, share = len(self.share), self.share[:, None]
        away = np.append(self.game.values, self.game.anchor_value)[:, None] - self.attended
        attended = self.occur[: len(values)] @ (values + away[: len(values)] * importances)
        total = self.occur[: len(values)] @ importances
        own, louder, away = values[:m], importances[:m], away[:m]
        turned = share * (louder - total)
        gradient = share * (own - attended) + away * turned
        scale = np.exp(self.model.importances)[:, None]
        found = {
            "value": own,
            "importance": louder,
            "share": turned,
            "linearised": scale * (own + self.game.values[:, None] * louder),
            "gradient": gradient,
        }
        if self.model.anchor is not None:
            return found
        everything = self.has_all[:, None]
        rest = np.where(everything, 1.0, 1.0 - share)
        removal = gradient / rest + share * away * turned / rest**2
        by_value, by_importance = shapley_jacobian(self.game)
        return {
            **found,
            "alone": own,
            "removal": np.where(everything, own, removal),
            "shapley": by_value @ own + by_importance @ louder,
        }

    @property
    def has_all(self) -> FloatArray:
        """(m,) units with all the attention: removing one leaves nothing."""
        return np.asarray(1.0 - self.share <= 1e-12)
