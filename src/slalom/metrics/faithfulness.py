"""Faithfulness: does the classifier behave as the explanation predicts?

    deletion, insertion     probability of the class as the top units are removed, or added;
                            AOPC = mean of 1 − p (Leemann et al.): deletion high, insertion low
    comprehensiveness       p(all) − p(without the top share), mean over shares (ERASER): high
    sufficiency             p(all) − p(the top share alone), likewise: low
    removal_error           predicted against true change without 1 … 10 random units, relative
                            to predicting no change
    subset_error            predicted against true log-odds of random subsets, relative to
                            predicting their mean
    removal_spearman        rank correlation of predicted and true effects of single removals
    datamodel_score         rank correlation of predicted and true log-odds of subsets that show
                            every unit with probability ½ (LDS of ContextCite)
    top_drop                log-odds lost without the k units ranked first
    infidelity              summed scores of 1 … 10 random units against the true change when
                            they are removed (Yeh et al. 2019), times the factor ≥ 0 that fits
                            best, relative to predicting no change; needs no model

Random subsets depend only on the seed and the number of units, so all methods are compared on the
same ones. Deletion and insertion remove or add units by descending score, ties in text order. For
an explanation with a SLALOM and no primary score, they use the best order by its own predictions:
that of the SLALOM itself, or of its Shapley values, removals or gradients.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, FloatArray
from slalom.explanation import Explanation
from slalom.metrics.agreement import spearman
from slalom.metrics.subject import Subject, unit_scores
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.slalom.orders import insertion_order, removal_order
from slalom.surrogates.slalom.process import ProcessModel

ERASER_SHARES = (0.01, 0.05, 0.1, 0.2, 0.5)
N_STEPS = 100
MAX_REMOVED, N_EACH = 10, 20  # random removals: units, and draws of each number of them
N_HALVES = 64  # subsets that show every unit with probability ½
RANKED = ("shapley", "removal", "gradient")  # scores whose order may be the best


@dataclass(frozen=True, eq=False)
class Curve:
    """The probability of the class along a path from the full to the empty text, or back."""

    shares: FloatArray  # (n_steps,) of the units deleted or inserted
    probabilities: FloatArray  # (n_steps,)
    start: float | None = None  # before the first step; None: the text cannot be empty

    @property
    def aopc(self) -> float:
        """The area over the curve: the mean of 1 − p; NaN where there is no step to take."""
        return float(1.0 - self.probabilities.mean()) if len(self.shares) else float("nan")


@dataclass(frozen=True, eq=False)
class RemovalErrors:
    """Squared errors by the number of removed units, and those of predicting no change."""

    n_removed: NDArray[np.int_]  # (k,)
    squared: FloatArray  # (k,) mean squared error of the predicted change
    no_change: FloatArray  # (k,) mean square of the true change

    @property
    def relative(self) -> float:
        return _ratio(float(self.squared.sum()), float(self.no_change.sum()))


def deletion(subject: Subject, *, score: str | None = None, n_steps: int = N_STEPS) -> Curve:
    """Delete the units that most support the class, step by step."""
    order = _order(subject.explanation, score, inserting=False)
    sizes = _sizes(subject.n_removable, n_steps)
    return _curve(subject, ~_first(order, sizes), sizes, from_full=True)


def insertion(subject: Subject, *, score: str | None = None) -> Curve:
    """Begin with nothing and insert the units that most support the class, step by step."""
    order = _order(subject.explanation, score, inserting=True)
    sizes = _sizes(subject.n_units, N_STEPS)
    return _curve(subject, _first(order, sizes), sizes, from_full=False)


def comprehensiveness(subject: Subject) -> float:
    """The probability lost when the top units are removed."""
    if not subject.n_removable:
        return float("nan")
    tops = _tops(subject.n_units, subject.n_removable)
    return _lost(subject, ~_first(_order(subject.explanation, None, inserting=False), tops))


def sufficiency(subject: Subject) -> float:
    """The probability lost when only the top units are kept."""
    tops = _tops(subject.n_units, subject.n_units)
    return _lost(subject, _first(_order(subject.explanation, None, inserting=True), tops))


def removal_error(subject: Subject, *, seed: int = 0) -> RemovalErrors:
    """Remove 1 … MAX_REMOVED random units, N_EACH times each."""
    masks, true = random_removals(subject, MAX_REMOVED, N_EACH, seed)
    predict = subject.explanation.predict
    predicted = predict(masks) - predict(np.ones((1, subject.n_units), bool))
    by_size = (len(masks) // N_EACH, N_EACH, *true.shape[1:])
    within = tuple(range(1, len(by_size)))
    squared = ((predicted - true) ** 2).reshape(by_size).mean(axis=within)
    no_change = (true**2).reshape(by_size).mean(axis=within)
    return RemovalErrors(np.arange(1, len(squared) + 1), squared, no_change)


def infidelity(subject: Subject, *, score: str | None = None, seed: int = 0) -> float:
    """The summed scores of the removed units against the true change, relative to no change.

    Over several seeds of a method the mean measures its quality, the spread its stability.
    """
    masks, true = random_removals(subject, MAX_REMOVED, N_EACH, seed)
    summed = -(~masks).astype(np.float64) @ unit_scores(subject.explanation, score)
    power = float((summed**2).sum())
    factor = max(0.0, float((summed * true).sum()) / power) if power > 0 else 0.0
    squared = float(((factor * summed - true) ** 2).sum())
    return _ratio(squared, float((true**2).sum()))


def subset_error(
    subject: Subject, *, log_uniform: bool = False, n_subsets: int = 200, seed: int = 0
) -> float:
    """Random subsets whose sizes are uniform in 1 … n, or log-uniform."""
    n_units = subject.n_units
    rng = np.random.default_rng((seed, n_units, 3))
    if log_uniform:
        sizes = np.exp(rng.uniform(0.0, np.log(n_units + 1), size=n_subsets)).astype(int)
    else:
        sizes = rng.integers(1, n_units + 1, size=n_subsets)
    masks = _random(np.minimum(sizes, n_units), n_units, seed=seed, stream=2)
    true = subject.scores(masks)
    squared = float(((subject.explanation.predict(masks) - true) ** 2).sum())
    spread = float(((true - true.mean(axis=0)) ** 2).sum())
    return _ratio(squared, spread)


def datamodel_score(subject: Subject, *, seed: int = 0) -> float:
    """LDS: whether subsets rank as predicted, on fresh ones."""
    rng = np.random.default_rng((seed, subject.n_units, 4))
    masks = rng.random((N_HALVES, subject.n_units)) < 0.5
    masks = masks if subject.document.has_empty_query else masks[masks.any(axis=1)]
    true = subject.scores_of_one_class(masks)
    return spearman(subject.explanation.predict(masks), true)


def top_drop(subject: Subject, *, k: int = 3) -> float:
    """Log-odds lost without the k units ranked first."""
    kept = np.ones((2, subject.n_units), dtype=bool)
    order = _descending(subject.explanation, None)
    kept[1, order[: min(k, subject.n_removable)]] = False
    scores = subject.scores_of_one_class(kept)
    return float(scores[0] - scores[1])


def removal_spearman(subject: Subject) -> float:
    """Rank correlation of predicted and true effects of removing each unit from the text."""
    n_units = subject.n_units
    if not subject.n_removable:
        return float("nan")
    masks = np.vstack([np.ones((1, n_units), dtype=bool), ~np.eye(n_units, dtype=bool)])
    true = subject.scores_of_one_class(masks)
    if subject.explanation.model is None:
        effects = unit_scores(subject.explanation)
    else:
        predicted = subject.explanation.predict(masks)
        effects = predicted[0] - predicted[1:]
    return spearman(effects, true[0] - true[1:])


def _order(explanation: Explanation, score: str | None, *, inserting: bool) -> NDArray[np.intp]:
    """The order by a score; without a name, for a SLALOM, the best order by its predictions."""
    model = explanation.model
    if isinstance(model, ProcessModel):
        model = model.fitted
    score = score or explanation.primary_score
    if score is None and isinstance(model, SlalomModel) and explanation.identified.all():
        order = insertion_order(model) if inserting else removal_order(model)
        by_score = [_descending(explanation, name) for name in RANKED if name in explanation.scores]
        return _best_order(explanation, [order, *by_score], inserting=inserting)
    return _descending(explanation, score)


def _descending(explanation: Explanation, score: str | None) -> NDArray[np.intp]:
    return np.argsort(-unit_scores(explanation, score), kind="stable")


def _best_order(
    explanation: Explanation, orders: Sequence[NDArray[np.intp]], *, inserting: bool
) -> NDArray[np.intp]:
    """The order along which the predicted probability falls, or rises, soonest; ties: the first.

    Probabilities near 0 or 1 hardly differ, so a small part of the log-odds is added.
    """
    sizes = np.arange(1, len(explanation.units) + 1)
    means = []
    for order in orders:
        first = _first(order, sizes)
        predicted = explanation.predict(first if inserting else ~first)
        means.append(float((np.tanh(predicted / 2) / 2 + 1e-6 * predicted).mean()))
    return orders[int(np.argmax(means) if inserting else np.argmin(means))]


def _sizes(largest: int, n_steps: int) -> NDArray[np.int_]:
    """Evenly spaced numbers of units up to `largest`, rounded up."""
    n_steps = min(n_steps, largest)
    return np.asarray([-(-step * largest // n_steps) for step in range(1, n_steps + 1)], dtype=int)


def _tops(n_units: int, largest: int) -> NDArray[np.int_]:
    """ERASER_SHARES as numbers of units, at least 1."""
    return np.asarray(np.clip(np.ceil(np.array(ERASER_SHARES) * n_units), 1, largest), dtype=int)


def _first(order: NDArray[np.intp], sizes: NDArray[np.int_]) -> BoolArray:
    """Mark the first `size` units of an order: (n_sizes, n_units)."""
    ranks = np.empty(len(order), dtype=int)
    ranks[order] = np.arange(len(order))
    return np.asarray(ranks < sizes[:, None])


def _curve(
    subject: Subject, masks: BoolArray, sizes: NDArray[np.int_], *, from_full: bool
) -> Curve:
    """Probabilities along a path that starts at the full or at the empty text."""
    has_start = from_full or subject.document.has_empty_query
    first = np.full((int(has_start), subject.n_units), from_full)
    probabilities = subject.probabilities(np.vstack([first, masks]))
    start = float(probabilities[0]) if len(first) else None
    return Curve(sizes / subject.n_units, probabilities[len(first) :], start)


def _lost(subject: Subject, masks: BoolArray) -> float:
    full = np.ones((1, subject.n_units), dtype=bool)
    probabilities = subject.probabilities(np.vstack([full, masks]))
    return float((probabilities[0] - probabilities[1:]).mean())


def random_removals(
    subject: Subject, max_removed: int, n_each: int, seed: int
) -> tuple[BoolArray, FloatArray]:
    """Masks without 1 … `max_removed` random units, `n_each` of each size, and the true change."""
    n_units = subject.n_units
    sizes = np.arange(1, min(max_removed, subject.n_removable) + 1)
    masks = ~_random(np.repeat(sizes, n_each), n_units, seed=seed, stream=1)
    return masks, subject.scores(masks) - subject.scores(np.ones((1, n_units), dtype=bool))


def _random(sizes: NDArray[np.int_], n_units: int, *, seed: int, stream: int) -> BoolArray:
    """A random subset of each size; different metrics use different streams."""
    rng = np.random.default_rng((seed, n_units, stream))
    ranks = rng.random((len(sizes), n_units)).argsort(axis=1).argsort(axis=1)
    return np.asarray(ranks < sizes[:, None])


def _ratio(error: float, reference: float) -> float:
    """A relative error; NaN if the reference is 0, since there is nothing to explain."""
    return error / reference if reference > 1e-18 else float("nan")
