"""Metrics of explanations of reviews: the records of tables 2a, 2c, 9, 10, 12, removal, fidelity.

One part per classifier, method and budget explains the same reviews and evaluates every score of
the explanations: deletion and insertion (mean of 1 − p), rank correlation with Naive Bayes, and,
where the method has a model, its errors on subsets and removals in log-odds of the predicted
class. Gradients are of the predicted class's log-odds.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any

import numpy as np

import slalom
from experiments.bench import Bench, Part, Record
from experiments.classifiers import SLOW, classifier_of, counted, data_of, needs, trained_on
from slalom.metrics.agreement import (
    auprc,
    auroc,
    naive_bayes_spearman,
    rationale_marks,
    token_f1,
)
from slalom.metrics.faithfulness import deletion, insertion, removal_error, subset_error
from slalom.metrics.subject import Subject, subject_of, unit_scores
from training import data

_methods: Any = slalom.METHODS
LINEAR_LOCAL = replace(  # least squares on the deletions of slalom-local
    _methods["linear"], name="linear-local", sampler=_methods["slalom-local"].sampler
)
GRADIENTS = ("integrated-gradients", "gradient-input")
SCORES = ("alone", "value", "importance", "linearised", "removal", "shapley", "score")
Ask = tuple[str, str, int | None]  # classifier, method, budget


def review_parts(asks: Sequence[Ask]) -> dict[str, Part]:
    return _parts("reviews", measured, asks)


def many_review_parts(asks: Sequence[Ask]) -> dict[str, Part]:
    """Of fewer reviews, with many queries each."""
    return _parts("many", partial(measured, many=True), asks)


def described_parts(asks: Sequence[Ask]) -> dict[str, Part]:
    return _parts("described", described, asks)


def people_parts(asks: Sequence[Ask]) -> dict[str, Part]:
    return _parts("people", compared_with_people, asks)


def _parts(prefix: str, work: Callable[..., Record], asks: Sequence[Ask]) -> dict[str, Part]:
    """One part per ask, in this order, each after the training of its classifier."""
    return {
        f"{prefix}/{model}/{method}/{budget or 'own'}": Part(
            partial(work, model=model, method=method, budget=budget), rank, needs(model)
        )
        for rank, (model, method, budget) in enumerate(asks)
    }


@cache
def documents(bench: Bench) -> list[str]:
    """The same reviews for every classifier."""
    return fitting(bench, "test")[: bench.scale.n_documents]


@cache
def fitting(bench: Bench, split: str) -> list[str]:
    """Reviews within bounds of length, in random order."""
    low, high = bench.scale.words
    found = [t for t in data.imdb(split, data_of(bench)).texts if low <= len(t.split()) <= high]
    return [found[at] for at in np.random.default_rng(bench.seed).permutation(len(found))]


def measured(
    bench: Bench, *, model: str, method: str, budget: int | None, many: bool = False
) -> Record:
    n_documents = bench.scale.n_many if many else bench.scale.n_documents
    found = explained(bench, (model, method, budget), n_documents)
    return {
        "model": model,
        "trained": trained_on(bench, model),
        "method": method,
        "budget": budget,
        "documents": [_numbers(bench, model, explanation) for explanation in found],
    }


def described(bench: Bench, *, model: str, method: str, budget: int | None) -> Record:
    """The errors of a method's model, and deletion and insertion in its best order."""
    classifier, numbers = classifier_of(bench, model), []
    for explanation in explained(bench, (model, method, budget), bench.scale.n_described):
        subject = subject_of(classifier, explanation)
        curves = {"deletion": deletion(subject), "insertion": insertion(subject)}
        best = {name: {"best": _short(curve.aopc)} for name, curve in curves.items()}
        numbers.append(best | _errors(subject, bench.seed))
    return {"model": model, "method": method, "budget": budget, "documents": numbers}


def explained(bench: Bench, ask: Ask, n_documents: int) -> list[Any]:
    """Explanations of the first reviews, half as many of slow models; failures are left out."""
    model, method, budget = ask
    n_texts = max(2, n_documents // 2) if model.startswith(SLOW) else n_documents
    explanations = slalom.explain_many(
        classifier_of(bench, model),
        documents(bench)[:n_texts],
        LINEAR_LOCAL if method == LINEAR_LOCAL.name else method,
        n_queries=budget,
        seed=bench.seed,
        too_long="truncate",
        progress=False,
        on_error="keep",
    )
    found = [e for e in explanations if not isinstance(e, Exception)]
    if not found:
        raise explanations[0]
    return found


def sign_flipped_parts(bench: Bench) -> dict[str, Part]:
    return {
        f"turned/{model}/{method}": Part(
            partial(sign_flipped, model=model, method=method), after=needs(model)
        )
        for model in bench.scale.models
        for method in GRADIENTS
    }


def sign_flipped(bench: Bench, *, model: str, method: str) -> Record:
    """Gradients times the sign of the class, as in the published code: wrong for one class."""
    classifier, found = classifier_of(bench, model), []
    for text in documents(bench):
        explanation = slalom.explain(classifier, text, method, too_long="truncate")
        scores = explanation.scores["score"] * (1 if explanation.target_index == 1 else -1)
        subject = subject_of(classifier, replace(explanation, scores={"score": scores}))
        curves = {"deletion": deletion(subject, score="score")}
        curves["insertion"] = insertion(subject, score="score")
        found.append({name: {"score": _short(curve.aopc)} for name, curve in curves.items()})
    return {"model": model, "method": method, "documents": found}


def _numbers(bench: Bench, model: str, explanation: Any) -> Record:
    subject = subject_of(classifier_of(bench, model), explanation)
    weights = counted(bench, model)
    if explanation.target_index == 0:
        weights = {key: -weight for key, weight in weights.items()}
    numbers: Record = {
        "deletion": {"best": _short(deletion(subject).aopc)},
        "insertion": {"best": _short(insertion(subject).aopc)},
        "bayes": {},
    }
    for score in SCORES:
        if score in explanation.scores:
            numbers["deletion"][score] = _short(deletion(subject, score=score).aopc)
            numbers["insertion"][score] = _short(insertion(subject, score=score).aopc)
            numbers["bayes"][score] = _short(naive_bayes_spearman(subject, weights, score=score))
    if explanation.model is not None:
        numbers |= _errors(subject, bench.seed)
    return numbers


def _errors(subject: Subject, seed: int) -> Record:
    removals = removal_error(subject, seed=seed)
    return {
        "UNI": _short(subset_error(subject, seed=seed)),
        "WIDE": _short(subset_error(subject, log_uniform=True, seed=seed)),
        "removal": [_short(error) for error in removals.squared],
        "no_change": [_short(error) for error in removals.no_change],
    }


def compared_with_people(bench: Bench, *, model: str, method: str, budget: int | None) -> Record:
    """Agreement of every score with the words that all annotators marked."""
    from experiments.people import marked_reviews

    classifier = classifier_of(bench, model)
    reviews = marked_reviews(data_of(bench))[: bench.scale.n_documents]
    explanations = slalom.explain_many(
        classifier,
        [review.text for review in reviews],
        method,
        n_queries=budget,
        seed=bench.seed,
        too_long="truncate",
        progress=False,
        on_error="keep",
    )
    if all(isinstance(explanation, Exception) for explanation in explanations):
        raise explanations[0]
    found, right = [], []
    for review, explanation in zip(reviews, explanations, strict=True):
        if isinstance(explanation, Exception):
            continue
        marks = rationale_marks(explanation, review.spans)
        numbers: Record = {}
        for score in SCORES:
            if score in explanation.scores:
                strength = unit_scores(explanation, score)
                strength = strength if score == "importance" else np.abs(strength)
                numbers[score] = [_short(f(strength, marks)) for f in (auroc, auprc, token_f1)]
        found.append(numbers)
        right.append(bool(np.argmax(explanation.logits) == review.label))
    return {
        "model": model,
        "method": method,
        "budget": budget,
        "documents": found,
        "right": sum(right) / max(1, len(right)),
    }


def _short(value: float) -> float | None:
    return float(f"{value:.5g}") if np.isfinite(value) else None
