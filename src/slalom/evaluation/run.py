"""Explain and measure: every document with every method at every budget.

An explanation queries the classifier directly, so that its cost does not depend on the other
methods; metrics share one cache, since most of their queries are the same for every method.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice, product
from queue import SimpleQueue
from threading import Event

import numpy as np

from slalom.classifiers.base import Classifier, Units
from slalom.classifiers.cached import CachedClassifier
from slalom.document import Document
from slalom.errors import NoModelError, SlalomError
from slalom.evaluation.items import AnswerItem, Item
from slalom.evaluation.rows import GRID, Key, Row
from slalom.explainers.base import Explainer, Request, Result, TargetName
from slalom.explainers.execution.driver import explained
from slalom.explainers.execution.steps import Order
from slalom.explainers.splitting import document_of
from slalom.explanation import Explanation
from slalom.language.citations import per_token
from slalom.language.scoring import AnswerScorer, Writer
from slalom.language.sources import sources_of
from slalom.metrics.agreement import auprc, auroc, rationale_marks, token_f1
from slalom.metrics.faithfulness import Curve
from slalom.metrics.subject import Subject, subject_of, unit_scores
from slalom.metrics.table import CURVES, Metric

DOCUMENTS_PER_CHUNK = 16  # explained together; an interrupted run loses at most so many


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
    """Rows as they are finished; those in `done` are skipped.

    One job batches DOCUMENTS_PER_CHUNK documents together; with several jobs, each document is
    the task of a thread, and rows come in any order.
    """
    if jobs == 1:
        for chunk in batched(items, DOCUMENTS_PER_CHUNK):
            yield from _rows(classifier, chunk, plan, done)
        return
    finished: SimpleQueue[Row | Future[None]] = SimpleQueue()
    stopped = Event()

    def work(item: Item) -> None:
        for row in _rows(classifier, [item], plan, done):
            finished.put(row)
            if stopped.is_set():
                return

    pool = ThreadPoolExecutor(jobs)
    try:
        left = [pool.submit(work, item) for item in items]
        for future in left:
            future.add_done_callback(finished.put)
        n_left = len(left)
        while n_left:
            if isinstance(result := finished.get(), Row):
                yield result
            else:
                result.result()  # raises the error of its thread, if any
                n_left -= 1
    finally:
        stopped.set()
        pool.shutdown(cancel_futures=True)  # an interrupt waits only for the rows being made


def evaluate_answers(
    writer: Writer, items: Iterable[AnswerItem], plan: Plan, *, done: Collection[Key] = ()
) -> Iterator[Row]:
    """The same for answers of a language model, one question after the other."""
    for item in items:
        keys = [(item.number, m.name, b) for m in plan.methods for b in plan.budgets]
        if set(keys) <= set(done):
            continue
        try:
            sources = sources_of(item.sources, item.by)
            scorer = AnswerScorer(writer, sources, item.question, item.answer)
        except SlalomError as problem:
            yield from (Row(*key, problem=str(problem)) for key in keys if key not in done)
            continue
        judge, text = CachedClassifier(scorer), Item(item.number, scorer.text)
        for method, budget in product(plan.methods, plan.budgets):
            own = replace(plan, methods=(per_token(method, len(scorer.spans)),), budgets=(budget,))
            yield from _rows(scorer.unrecorded(cached=False), [text], own, done, judge=judge)


def batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Lists of up to `size` consecutive items."""
    remaining = iter(items)
    while chunk := list(islice(remaining, size)):
        yield chunk


def _rows(
    classifier: Classifier,
    items: Sequence[Item],
    plan: Plan,
    done: Collection[Key],
    *,
    judge: CachedClassifier | None = None,
) -> Iterator[Row]:
    """Every method at every budget on a chunk of texts, each of which is split once."""
    texts = [_Text(item, _split(classifier, item, plan)) for item in items]
    cached = CachedClassifier(classifier) if judge is None else judge
    for method in plan.methods:
        for budget in plan.budgets:
            wanted = [text for text in texts if (text.item.number, method.name, budget) not in done]
            results = _explained(classifier, wanted, plan, method=method, budget=budget)
            for text, result in zip(wanted, results, strict=True):
                key = (text.item.number, method.name, budget)
                yield _row(cached, text, result, plan=plan, key=key)


@dataclass(frozen=True, eq=False)
class _Text:
    """One text of the file, and the classifier's split of it or the error."""

    item: Item
    document: Document | SlalomError


def _split(classifier: Classifier, item: Item, plan: Plan) -> Document | SlalomError:
    try:
        return document_of(classifier, item.text, plan.units, too_long=plan.too_long)
    except SlalomError as problem:
        return problem


def _explained(
    classifier: Classifier,
    texts: Sequence[_Text],
    plan: Plan,
    *,
    method: Explainer,
    budget: int | None,
) -> Iterator[Result]:
    """Without the warning about poor fits: the table shows every R² itself."""
    order = Order(method, Request(plan.target, budget, plan.seed), keep_errors=True)
    return explained(classifier, order, [text.document for text in texts])


def _row(classifier: Classifier, text: _Text, result: Result, *, plan: Plan, key: Key) -> Row:
    if isinstance(result, SlalomError) or not isinstance(text.document, Document):
        return Row(*key, problem=str(result))
    try:
        subject = subject_of(classifier, result, text.document)
        return _measured(subject, text.item, plan=plan, key=key)
    except SlalomError as problem:
        return Row(*key, problem=str(problem))


def _measured(subject: Subject, item: Item, *, plan: Plan, key: Key) -> Row:
    explanation, quality = subject.explanation, subject.explanation.quality
    curves = _curves(subject, plan)
    values: dict[str, float | None] = {}
    weights: dict[str, float] = {}
    for metric in plan.metrics:
        value, weight = _value(subject, metric, curves, seed=plan.seed)
        values[metric.name] = value if np.isfinite(value) else None
        if weight != 1.0:
            weights[metric.name] = weight
    if item.rationales is not None:
        values |= _agreement(explanation, item)
    return Row(
        *key,
        values=values,
        weights=weights,
        curves={
            name: _on_grid(curves[name])
            for name in plan.curves
            if name in curves and len(curves[name].shares)
        },
        correct=None if item.label is None else bool(np.argmax(explanation.logits) == item.label),
        n_units=len(explanation.units),
        n_queries=quality.n_queries,
        n_tokens=quality.n_tokens,
        seconds=quality.seconds,
        r2=quality.r2,
    )


def _curves(subject: Subject, plan: Plan) -> dict[str, Curve]:
    if subject.explanation.target_index is None:  # a curve follows one class
        return {}
    wanted = {*plan.curves, *(metric.name for metric in plan.metrics)} & CURVES.keys()
    return {name: CURVES[name](subject) for name in CURVES if name in wanted}


def _value(
    subject: Subject, metric: Metric, curves: Mapping[str, Curve], *, seed: int
) -> tuple[float, float]:
    """A number and its weight; the area of a curve that was computed anyway."""
    if metric.name in curves:
        return curves[metric.name].aopc, 1.0
    try:
        return metric.weighed(subject, seed)
    except NoModelError:  # the cell stays empty
        return float("nan"), 1.0


def _agreement(explanation: Explanation, item: Item) -> dict[str, float | None]:
    """How well the absolute scores agree with the spans that people marked."""
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
