"""Explain and measure: every document with every method at every budget.

An explanation asks the classifier itself, so that its cost is its own; metrics share one
memory, since most of their questions are the same for every method.
"""

from collections.abc import Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Event

import numpy as np

from slalom.classifiers.base import Classifier, Units
from slalom.classifiers.cached import CachedClassifier
from slalom.errors import NoModelError, SlalomError
from slalom.evaluation.items import Item
from slalom.evaluation.rows import GRID, Key, Row
from slalom.explainers.base import Explainer, TargetName
from slalom.explanation import Explanation
from slalom.metrics.agreement import auprc, auroc, rationale_marks, token_f1
from slalom.metrics.faithfulness import Curve
from slalom.metrics.subject import unit_scores
from slalom.metrics.table import CURVES, Metric


@dataclass(frozen=True)
class Plan:
    """What is to be compared."""

    methods: tuple[Explainer, ...]
    budgets: tuple[int | None, ...]
    metrics: tuple[Metric, ...]
    curves: tuple[str, ...] = field(default=())  # of CURVES, kept for the report
    target: TargetName = None
    units: Units = None
    too_long: str = "error"
    seed: int = 0


def evaluate(
    classifier: Classifier,
    items: Iterable[Item],
    plan: Plan,
    *,
    done: Collection[Key] = (),
    jobs: int = 1,
) -> Iterator[Row]:
    """Rows as they are finished; those in `done` are not made again.

    With several jobs documents overtake one another.
    """
    if jobs == 1:
        for item in items:
            yield from _rows(classifier, item, plan, done)
        return
    made: SimpleQueue[Row | Future[None]] = SimpleQueue()
    stopped = Event()

    def work(item: Item) -> None:
        for row in _rows(classifier, item, plan, done):
            made.put(row)
            if stopped.is_set():
                return

    pool = ThreadPoolExecutor(jobs)
    try:
        left = [pool.submit(work, item) for item in items]
        for future in left:
            future.add_done_callback(made.put)
        n_left = len(left)
        while n_left:
            if isinstance(row := made.get(), Row):
                yield row
            else:
                row.result()  # raises what ended it
                n_left -= 1
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)  # an interrupt waits for the rows at work, no more


def _rows(classifier: Classifier, item: Item, plan: Plan, done: Collection[Key]) -> Iterator[Row]:
    remembered = CachedClassifier(classifier)
    for method in plan.methods:
        for budget in plan.budgets:
            key = (item.number, method.name, budget)
            if key in done:
                continue
            try:
                explanation = _explained(classifier, item, plan, method=method, budget=budget)
                row = _measured(remembered, item, explanation, plan=plan, key=key)
            except SlalomError as problem:
                row = Row(*key, problem=str(problem))
            yield row


def _explained(
    classifier: Classifier, item: Item, plan: Plan, *, method: Explainer, budget: int | None
) -> Explanation:
    """Without the warning about poor fits: the table shows every R² itself."""
    document = classifier.split(item.text, plan.units, too_long=plan.too_long)
    return method.explain(
        classifier, [document], target=plan.target, n_queries=budget, seed=plan.seed
    )[0]


def _measured(
    classifier: Classifier, item: Item, explanation: Explanation, *, plan: Plan, key: Key
) -> Row:
    values: dict[str, float | None] = {}
    weights: dict[str, float] = {}
    for metric in plan.metrics:
        try:
            value, weight = metric.weighed(classifier, explanation, plan.seed)
        except NoModelError:  # the cell stays empty
            value, weight = float("nan"), 1.0
        values[metric.name] = value if np.isfinite(value) else None
        if weight != 1.0:
            weights[metric.name] = weight
    if item.rationales is not None:
        values |= _agreement(explanation, item)
    quality = explanation.quality
    return Row(
        *key,
        values=values,
        weights=weights,
        curves=_curves(classifier, explanation, plan),
        correct=None if item.label is None else bool(np.argmax(explanation.logits) == item.label),
        n_units=len(explanation.units),
        n_queries=quality.n_queries,
        n_tokens=quality.n_tokens,
        seconds=quality.seconds,
        r2=quality.r2,
    )


def _curves(
    classifier: Classifier, explanation: Explanation, plan: Plan
) -> dict[str, tuple[float, ...]]:
    if explanation.target_index is None:  # a curve follows one class
        return {}
    curves = {name: CURVES[name](classifier, explanation) for name in plan.curves}
    return {name: _on_grid(curve) for name, curve in curves.items() if len(curve.shares)}


def _agreement(explanation: Explanation, item: Item) -> dict[str, float | None]:
    """How well strong scores, whatever their sign, meet what people marked."""
    marks = rationale_marks(explanation, item.rationales or ())
    strength = np.abs(unit_scores(explanation))
    found = {
        "AU-ROC": auroc(strength, marks),
        "AUPRC": auprc(strength, marks),
        "token F1": token_f1(strength, marks),
    }
    if "importance" in explanation.scores:
        found["AU-ROC importance"] = auroc(explanation.scores["importance"], marks)
    return {name: value if np.isfinite(value) else None for name, value in found.items()}


def _on_grid(curve: Curve) -> tuple[float, ...]:
    """The same shares for every document, so that curves can be averaged."""
    shares, probabilities = curve.shares, curve.probabilities
    if curve.start is not None:
        shares, probabilities = np.append(0.0, shares), np.append(curve.start, probabilities)
    return tuple(np.interp(GRID, shares, probabilities).tolist())
