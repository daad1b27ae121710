"""What is read off a SLALOM at a document, per occurrence of a feature, and how sure it is.

With w = exp(s), α_j = w_j / Z and F the score of the whole document:

    value       v_j                        what a unit says on its own
    importance  s_j                        how strongly it outweighs others
    linearised  w_j v_j                    the paper's single score
    gradient    α_j (v_j − F)              derivative of soft removal
    removal     α_j (v_j − F) / (1 − α_j)  exactly F(c) − F(c − e_j)
    shapley     see shapley.py             fair share of F(c) − F(∅)

Standard errors follow by the delta method from the covariance of (values, importances).
"""

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.slalom.shapley import Game, shapley_jacobian, shapley_values

READ_OUTS = ("value", "importance", "linearised", "gradient", "removal", "shapley")
ALONE = 1e-12  # a unit with all the attention: removing it leaves nothing


def read_outs(model: SlalomModel, document_counts: FloatArray) -> dict[str, FloatArray]:
    """Every score of every feature, at a document with these counts."""
    columns = [_read_column(model, document_counts, column) for column in _columns(model)]
    scores = {name: np.stack([c[name] for c in columns], axis=-1) for name in columns[0]}
    if model.values.ndim == 1:
        scores = {name: score[:, 0] for name, score in scores.items()}
    return {**scores, "importance": model.importances}


def standard_errors(
    model: SlalomModel, document_counts: FloatArray, covariances: tuple[FloatArray, ...]
) -> dict[str, FloatArray]:
    """The same shapes as read_outs; covariances are of (v, s), anchor last, one a class."""
    errors: dict[str, list[FloatArray]] = {name: [] for name in READ_OUTS}
    for column, covariance in zip(_columns(model), covariances, strict=True):
        for name, jacobian in _jacobians(model, document_counts, column).items():
            variance = ((jacobian @ covariance) * jacobian).sum(axis=1)
            errors[name].append(np.sqrt(np.maximum(variance, 0.0)))
    stacked = {name: np.stack(error, axis=-1) for name, error in errors.items()}
    if model.values.ndim == 1:
        return {name: error[:, 0] for name, error in stacked.items()}
    return {**stacked, "importance": errors["importance"][0]}


def _columns(model: SlalomModel) -> list[tuple[FloatArray, float]]:
    """The values and the anchor's value, class by class."""
    values = model.values.reshape(len(model.values), -1)
    anchors = np.reshape(model.anchor_values(), -1)
    return [(values[:, c], float(anchors[c])) for c in range(values.shape[1])]


def _game(
    model: SlalomModel, document_counts: FloatArray, column: tuple[FloatArray, float]
) -> Game:
    weights, anchor_weight = model.weights()
    return Game(weights, column[0], document_counts, anchor_weight, column[1])


def _attention(game: Game) -> tuple[FloatArray, float]:
    """α of one occurrence of each feature, the anchor's last, and F."""
    shares = np.append(game.weights, game.anchor_weight)
    shares /= game.counts @ game.weights + game.anchor_weight
    values = np.append(game.values, game.anchor_value)
    return shares, float((np.append(game.counts, 1.0) * shares) @ values)


def _read_column(
    model: SlalomModel, document_counts: FloatArray, column: tuple[FloatArray, float]
) -> dict[str, FloatArray]:
    game = _game(model, document_counts, column)
    shares, score = _attention(game)
    share = shares[:-1]
    gradient = share * (game.values - score)
    alone = 1.0 - share <= ALONE
    removal = np.where(alone, game.values, gradient / np.where(alone, 1.0, 1.0 - share))
    return {
        "value": game.values,
        "linearised": np.exp(model.importances) * game.values,
        "gradient": gradient,
        "removal": removal,
        "shapley": shapley_values(game),
    }


def _jacobians(
    model: SlalomModel, document_counts: FloatArray, column: tuple[FloatArray, float]
) -> dict[str, FloatArray]:
    """∂score_i by (v_1…v_m, v_0, s_1…s_m, s_0), without the anchor's columns if there is none."""
    game = _game(model, document_counts, column)
    m = len(game.values)
    shares, score = _attention(game)
    share = shares[:-1]
    occur = np.append(document_counts, 1.0) * shares  # ∂F/∂v
    centred = np.append(game.values, game.anchor_value) - score
    unit = np.eye(m, m + 1)
    attention = share[:, None] * (unit - occur)  # ∂α_i/∂s_k
    gradient = share * centred[:m]
    by_value = attention
    by_importance = attention * centred[:m, None] - np.outer(share, occur * centred)
    rest = np.where(1.0 - share <= ALONE, np.inf, 1.0 - share)[:, None]
    turn = (gradient[:, None] / rest**2) * attention
    none = np.zeros((m, m + 1))
    scale = np.exp(model.importances)[:, None] * unit
    alone = (1.0 - share <= ALONE)[:, None]
    jacobians = {
        "value": np.hstack([unit, none]),
        "importance": np.hstack([none, unit]),
        "linearised": np.hstack([scale, scale * game.values[:, None]]),
        "gradient": np.hstack([by_value, by_importance]),
        "removal": np.hstack([np.where(alone, unit, by_value / rest), by_importance / rest + turn]),
        "shapley": shapley_jacobian(game),
    }
    if model.anchor is not None:
        return jacobians
    kept = np.delete(np.arange(2 * m + 2), [m, 2 * m + 1])
    return {name: jacobian[:, kept] for name, jacobian in jacobians.items()}
