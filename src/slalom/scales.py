"""Scores as changes of the predicted probability instead of log-odds.

With p the link (logistic for one class, softmax for all), L the log-odds of the full text and b
that of the empty one:

    removal      p(L) − p(L − removal)                  what is measured stays so
    alone        p(b + alone) − p(b)
    shapley      J̄ shapley,  J̄ = ∫₀¹ p′(b + t (L − b)) dt, b = L − Σ shapley
    gradient     p′(L) gradient

so that Shapley values (and the one score of additive methods) keep their proportions and add up
to the change of the probability from the empty to the full text. Errors go through the same
derivatives. Importance and share have no unit and stay; value and linearised, which no text
reaches, are left out.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from slalom.document import FloatArray
from slalom.errors import InputError, UnknownNameError
from slalom.explanation import Explanation

LOG_ODDS, PROBABILITY = "log-odds", "probability"
SCALES = (LOG_ODDS, PROBABILITY)
WITHOUT_UNIT = ("importance", "share")
BY_REMOVAL = ("leave-one-out",)  # methods whose one score is what a removal changes
N_STEPS = 512  # of the path that a Shapley value is averaged over
Link = Callable[[FloatArray], FloatArray]  # (…, n_classes) log-odds → probabilities


def on_scale(explanation: Explanation, scale: str) -> Explanation:
    """The explanation with scores and errors on this scale, for what shows them."""
    if scale not in SCALES:
        raise UnknownNameError("scale", scale, SCALES)
    return explanation if scale == LOG_ODDS else _in_probability(explanation)


def has_probabilities(explanation: Explanation) -> bool:
    """Whether its scores can be expressed as changes of a probability."""
    is_number = explanation.independent and len(explanation.labels) == 1
    reaches = {"removal", "alone", "shapley"} & explanation.scores.keys()
    return not is_number and bool(reaches or explanation.model is not None)


def _in_probability(explanation: Explanation) -> Explanation:
    if not has_probabilities(explanation):
        raise InputError(
            f"the scores of {explanation.method!r} for {explanation.classifier} cannot be told as "
            "probabilities: they are no log-odds"
        )
    link = logistic if explanation.target_index is not None or explanation.independent else softmax
    full = np.atleast_1d(explanation.target_scores(explanation.logits[None])[0])
    scores: dict[str, FloatArray] = {}
    errors: dict[str, FloatArray] = {}
    for name, given in explanation.scores.items():
        if name in WITHOUT_UNIT:
            scores[name] = given
            if name in explanation.errors:
                errors[name] = explanation.errors[name]
            continue
        score = given.reshape(len(given), -1)
        change = _change(explanation, name, score, full, link)
        if change is None:
            continue
        changed, slope = change
        scores[name] = changed.reshape(given.shape)
        if name in explanation.errors:
            error = explanation.errors[name].reshape(score.shape)
            spread = np.sqrt(np.einsum("ucd,ud->uc", slope**2, error**2))
            errors[name] = spread.reshape(given.shape)
    return replace(explanation, scores=scores, errors=errors)


def _change(
    explanation: Explanation, name: str, score: FloatArray, full: FloatArray, link: Link
) -> tuple[FloatArray, FloatArray] | None:
    """(n_units, n_classes) changes, and (n_units, n_classes, n_classes) their derivatives."""
    if name == "score" and explanation.model is None:
        return None
    if name == "removal" or (name == "score" and explanation.method in BY_REMOVAL):
        return link(full) - link(full - score), _slope(link, full - score)
    if name == "alone":
        base = np.zeros_like(full) if explanation.base is None else np.atleast_1d(explanation.base)
        return link(base + score) - link(base), _slope(link, base + score)
    if name in ("shapley", "score"):
        base = full - score.sum(axis=0)
        path = base + (np.arange(N_STEPS)[:, None] + 0.5) / N_STEPS * (full - base)
        mean = _slope(link, path).mean(axis=0)
        if len(full) == 1 and abs(full[0] - base[0]) > 1e-9:  # what the average goes to, exactly
            mean = ((link(full) - link(base)) / (full - base))[:, None]
        return score @ mean.T, np.broadcast_to(mean, (len(score), *mean.shape))
    if name == "gradient":
        slope = _slope(link, full)
        return score @ slope.T, np.broadcast_to(slope, (len(score), *slope.shape))
    return None


def logistic(scores: FloatArray) -> FloatArray:
    """Log-odds as probabilities."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(scores, -700.0, 700.0))))


def softmax(scores: FloatArray) -> FloatArray:
    """(…, n_classes) logits as probabilities that sum to one."""
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def probabilities(logits: FloatArray, *, independent: bool) -> FloatArray | None:
    """(n_classes,) of every class; None for a single output, which may not be a probability."""
    if len(logits) < 2:
        return None
    return logistic(logits) if independent else softmax(logits)


def _slope(link: Link, scores: FloatArray) -> FloatArray:
    """(…, n_classes, n_classes) the derivative of the link."""
    p = link(scores)
    own = p[..., None] * np.eye(p.shape[-1])
    if link is softmax:
        return np.asarray(own - p[..., :, None] * p[..., None, :])
    return np.asarray(own * (1.0 - p[..., None, :]))
