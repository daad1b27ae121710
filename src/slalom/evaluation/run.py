"""Explain and measure: every document with every method at every budget.

An explanation asks the classifier itself, so that its cost is its own; metrics share one
memory, since most of their questions are the same for every method.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from slalom.classifiers.asked_once import AskedOnce
from slalom.classifiers.base import Classifier, Units, checked_text
from slalom.document import Text
from slalom.errors import SlalomError
from slalom.evaluation.rows import Row
from slalom.explainers.base import Explainer, TargetName
from slalom.explanation import Explanation
from slalom.metrics.table import Metric


@dataclass(frozen=True)
class Plan:
    """What is to be compared."""

    methods: tuple[Explainer, ...]
    budgets: tuple[int | None, ...]
    metrics: tuple[Metric, ...]
    target: TargetName = None
    units: Units = None
    too_long: str = "error"
    seed: int = 0


def evaluate(
    classifier: Classifier,
    texts: Iterable[tuple[int, Text]],
    plan: Plan,
    *,
    done: Collection[tuple[int, str, int | None]] = (),
    jobs: int = 1,
    keep: Callable[[Row, Explanation], None] | None = None,
) -> Iterator[Row]:
    """Rows as they are finished, document by document; those in `done` are not made again."""

    def of(numbered: tuple[int, Text]) -> list[Row]:
        return _document(classifier, numbered, plan, done, keep)

    if jobs == 1:
        for numbered in texts:
            yield from of(numbered)
        return
    with ThreadPoolExecutor(jobs) as pool:
        for rows in pool.map(of, texts):
            yield from rows


def _document(
    classifier: Classifier,
    numbered: tuple[int, Text],
    plan: Plan,
    done: Collection[tuple[int, str, int | None]],
    keep: Callable[[Row, Explanation], None] | None,
) -> list[Row]:
    number, text = numbered
    remembered = AskedOnce(classifier)
    rows = []
    for method in plan.methods:
        for budget in plan.budgets:
            if (number, method.name, budget) in done:
                continue
            try:
                explanation = _explained(classifier, text, method, budget, plan)
            except SlalomError as problem:
                rows.append(Row(number, method.name, budget, problem=str(problem)))
                continue
            row = _measured(remembered, explanation, plan.metrics, (number, method.name, budget))
            if keep is not None:
                keep(row, explanation)
            rows.append(row)
    return rows


def _explained(
    classifier: Classifier, text: Text, method: Explainer, budget: int | None, plan: Plan
) -> Explanation:
    """Without the warning about poor fits: the table shows every R² itself."""
    document = classifier.split(checked_text(text), plan.units, too_long=plan.too_long)
    return method.explain(
        classifier, [document], target=plan.target, n_queries=budget, seed=plan.seed
    )[0]


def _measured(
    classifier: Classifier,
    explanation: Explanation,
    metrics: Sequence[Metric],
    key: tuple[int, str, int | None],
) -> Row:
    values: dict[str, float | None] = {}
    for metric in metrics:
        try:
            value = metric.measure(classifier, explanation)
        except SlalomError:  # scores without a model predict nothing: the cell stays empty
            value = float("nan")
        values[metric.name] = value if np.isfinite(value) else None
    quality = explanation.quality
    return Row(
        *key,
        values=values,
        n_units=len(explanation.units),
        n_queries=quality.n_queries,
        n_tokens=quality.n_tokens,
        seconds=quality.seconds,
        r2=quality.r2,
    )
