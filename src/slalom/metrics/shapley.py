"""The error of scores against the classifier's Shapley values, relative to their size.

The reference is measured: from all subsets of up to EXACT_UP_TO units, else by adding the units one
by one in random orders and their reverses. Two halves of the orders give two independent estimates
t and t', so that Σ (s − t)(s − t') and Σ t t' are unbiased for the values with exact t: the noise
of the reference does not count as an error of the scores.
"""

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.errors import InputError
from slalom.metrics.subject import ONE_CLASS, Subject, unit_scores
from slalom.samplers.base import all_subsets
from slalom.surrogates.shapley_estimates import shapley_of_all

EXACT_UP_TO = 8  # units
N_ORDERS = 40


def shapley_error(
    subject: Subject, *, n_orders: int = N_ORDERS, seed: int = 0
) -> tuple[float, float]:
    """The relative squared error, and its denominator, which weights the document in a mean."""
    has_shapley = "shapley" in subject.explanation.scores
    scores = unit_scores(subject.explanation, "shapley" if has_shapley else None)
    one, other = true_shapley(subject, n_orders=n_orders, seed=seed)
    power = float(one @ other)
    squared = float((scores - one) @ (scores - other))
    value = squared / power if power > 0 else float("nan")
    return value, max(power, 0.0)


def true_shapley(
    subject: Subject, *, n_orders: int = N_ORDERS, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Two independent estimates of the classifier's Shapley values; the same where exact."""
    if subject.explanation.target_index is None:
        raise InputError(ONE_CLASS)
    n_units = subject.n_units
    if n_units <= EXACT_UP_TO:
        masks = all_subsets(n_units)
        exact = shapley_of_all(masks, _scores(subject, masks))
        return exact, exact
    rng = np.random.default_rng((seed, n_units, 4))
    halves = [_by_orders(subject, max(1, n_orders // 4), rng) for _ in range(2)]
    return halves[0], halves[1]


def _by_orders(subject: Subject, n_pairs: int, rng: np.random.Generator) -> FloatArray:
    """Mean marginal contributions over random orders and their reverses (antithetic pairs)."""
    n_units = subject.n_units
    total = np.zeros(n_units)
    for _ in range(n_pairs):
        order = rng.permutation(n_units)
        for joining in (order, order[::-1]):
            rank = np.empty(n_units, dtype=int)
            rank[joining] = np.arange(n_units)
            chain = rank < np.arange(n_units + 1)[:, None]  # (n_units + 1, n_units)
            total[joining] += np.diff(_scores(subject, chain))
    return total / (2 * n_pairs)


def _scores(subject: Subject, masks: BoolArray) -> FloatArray:
    """Scores of subsets; for an empty text that cannot be queried, the explanation's base score."""
    if subject.document.has_empty_query:
        return subject.scores(masks)
    shown = masks.any(axis=1)
    scores = np.full(len(masks), float(np.asarray(subject.explanation.base or 0.0)))
    scores[shown] = subject.scores(masks[shown])
    return scores
