"""What happens without some words: the classifier's new answer beside the predicted ones."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from slalom.document import BoolArray, Document, FloatArray, masks_without, queries_from_masks
from slalom.errors import SlalomError
from slalom.explanation import Explanation
from slalom.metrics.subject import greedy_order
from slalom.scales import probabilities
from slalom.web.jobs import Check
from slalom.web.limits import wrong
from slalom.web.models import ChunkedClassifier, Model, Models

Source = tuple[Model, Document]
N_STEPS = 60  # words in an order of removal
N_CANDIDATES = 400  # units that each step chooses from


def document_of(explanation: Explanation, models: Models) -> Source | None:
    """The model of an opened explanation, if it is here and cuts the text in the same way."""
    named = (one for one in models.every if one.classifier.name == explanation.classifier)
    if (model := next(named, None)) is None:
        return None
    try:
        document = model.classifier.split(explanation.text, explanation.spans, too_long="windows")
    except SlalomError:
        return None
    return (model, document) if document.n_units == len(explanation.units) else None


def answers(
    explanation: Explanation, source: Source, present: BoolArray, check: Check
) -> tuple[FloatArray, FloatArray]:
    """The classifier's logits for k subsets, and the scores of the target."""
    model, document = source
    if not document.has_empty_query and not present.any(axis=1).all():
        raise wrong("this model cannot read an empty text: leave a word in")
    watched = ChunkedClassifier(model, lambda n_queries: check())
    logits = watched.logits([(document, queries_from_masks(present))])[0]
    return logits, explanation.target_scores(logits)


def without(
    explanations: Sequence[Explanation],
    removed: Sequence[int],
    source: Source | None,
    check: Check,
) -> dict[str, Any]:
    """One subset: the classifier's answer, if it is here, and each explanation's prediction."""
    first = explanations[0]
    present = masks_without([removed], len(first.units))
    answer = chances = None
    if source is not None:
        logits, scores = answers(first, source, present, check)
        answer = np.ravel(scores).tolist()
        chances = shares(logits[0], independent=first.independent)
    return {
        "said": answer,
        "probabilities": chances,
        "predicted": [
            {"method": e.method, "scores": None if e.model is None else _predicted(e, present)}
            for e in explanations
        ],
    }


def shares(logits: FloatArray, *, independent: bool) -> list[float] | None:
    """Probabilities of all classes; None for a single output."""
    found = probabilities(logits, independent=independent)
    return None if found is None else found.tolist()


def _predicted(explanation: Explanation, present: BoolArray) -> list[float]:
    return np.ravel(explanation.predict(present)).tolist()


def removal_order(explanation: Explanation, shown: int, check: Check) -> list[int]:
    """Units in the order in which their removal lowers the predicted score most, greedily."""
    if explanation.model is None:
        raise wrong(
            f"{explanation.method} predicts no subsets: choose slalom or another method that does",
        )
    n_units = len(explanation.units)
    by = next(iter(explanation.scores.values()))
    ranks = np.abs(by.reshape(n_units, -1)).max(axis=1)
    candidates = np.argsort(-ranks, kind="stable")[:N_CANDIDATES]

    def predicted(present: BoolArray) -> FloatArray:
        check()
        scores = explanation.predict(present)
        return scores if scores.ndim == 1 else scores[:, shown]

    return greedy_order(predicted, candidates, n_units, N_STEPS)


def removal_path(
    explanation: Explanation, shown: int, source: Source | None, check: Check
) -> dict[str, Any]:
    """The order, with the predicted and the classifier's score after every step."""
    order = removal_order(explanation, shown, check)
    if source is not None and not source[1].has_empty_query:
        order = order[: len(explanation.units) - 1]
    present = np.ones((len(order) + 1, len(explanation.units)), dtype=bool)
    for step, unit in enumerate(order):
        present[step + 1 :, unit] = False
    columns = [explanation.predict(present)]
    if source is not None:
        columns.append(answers(explanation, source, present, check)[1])
    paths = [(c if c.ndim == 1 else c[:, shown]).tolist() for c in columns]
    return {"order": order, "predicted": paths[0], "said": paths[1] if source is not None else None}
