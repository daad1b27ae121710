"""Why gradients look poor, on classifiers that can be looked into.

The paper's published code takes norms of gradients, which have no sign, and gives all words the
sign of the label; and gradient × input differs by where the input is read. A layer norm does not
heed the scale of what it is given, so with x = word + position (+ type) before one

    ∇ₓF · x = 0        and hence        ∇F · word = −∇F · (position + type):

gradient × word embedding is what position and type get, with the sign turned. Behind the norm the
product is the word's own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import slalom
from experiments.bench import Bench, Part, Record
from experiments.classifiers import classifier_of, needs, trained_on
from experiments.reviews import documents
from experiments.table import Number, Table, mean_of, rounded
from slalom.metrics.agreement import spearman
from slalom.metrics.faithfulness import deletion, insertion
from slalom.metrics.subject import subject_of

Records = Mapping[str, Record]
FloatArray = NDArray[np.float64]
N_STEPS = 30  # of the published integrated gradients
NORM, PATH_NORM = "gradient norm × sign", "IG norm × sign"  # the published code's
STEP = 1e-6  # of the finite difference
METHODS = {
    "IG": "integrated-gradients",
    "gradient × word": "gradient-input",
    "gradient norm": "gradient-l2",
    "LRP": "attention-lrp",
    "random": "random",
    "leave-one-out": "leave-one-out",
}


def parts(bench: Bench) -> dict[str, Part]:
    return {
        f"gradients/{model}": Part(partial(measured, model=model), after=needs(model))
        for model in bench.scale.removal_models
    }


def measured(bench: Bench, *, model: str) -> Record:
    """Deletion, insertion and agreement with leave-one-out of every reading, and two checks."""
    classifier, texts = classifier_of(bench, model), documents(bench)
    texts = texts[: bench.scale.n_gradient_reviews]
    return {
        "model": model,
        "trained": trained_on(bench, model),
        "documents": [readings(classifier, text) for text in texts],
        "checks": [checks(classifier, text) for text in texts[:3]],
    }


def readings(classifier: Any, text: str) -> dict[str, list[float]]:
    """(deletion, insertion, rank correlation with leave-one-out) by reading."""
    explained = partial(slalom.explain, classifier, text, too_long="truncate")
    found = {name: explained(method) for name, method in METHODS.items()}
    whole = found["leave-one-out"]
    scores = {name: e.scores["score"] for name, e in found.items()}
    subject = subject_of(classifier, whole)
    scores |= normed(classifier, subject.document, whole.target_index)
    scores |= by_layer(classifier, subject.document, whole.target_index)
    return {
        name: [
            *curves(classifier, replace(whole, scores={"score": np.asarray(score, float)})),
            *rounded(spearman(score, whole.scores["score"])),
        ]
        for name, score in scores.items()
    }


def curves(classifier: Any, explanation: Any) -> list[float]:
    subject = subject_of(classifier, explanation)
    return rounded([curve(subject, score="score").aopc for curve in (deletion, insertion)])


def normed(classifier: Any, document: Any, target: int) -> dict[str, FloatArray]:
    """As published: norms of gradients of the larger logit, times the sign of the class."""
    import torch

    inside = classifier.internals()
    embeddings = inside.embeddings(document)
    steps = torch.linspace(0, 1, N_STEPS, dtype=embeddings.dtype, device=embeddings.device)
    path = steps[:, None, None] * embeddings
    at_end = _slopes(inside, document, embeddings[None])[0]
    along = (_slopes(inside, document, path) * path).sum(dim=0)
    per_unit = _summed(inside, document)
    sign = 1 if target == 1 else -1
    return {
        name: sign * per_unit(vectors.norm(dim=-1))
        for name, vectors in ((NORM, at_end), (PATH_NORM, along))
    }


def _slopes(inside: Any, document: Any, embeddings: Any) -> Any:
    """Of the largest logit with respect to the embeddings: (n, T, width)."""
    import torch

    leaf = embeddings.detach().clone().requires_grad_()
    with torch.enable_grad():
        largest = inside.logits_from_embeddings(document, leaf).max(dim=1).values
        return torch.autograd.grad(largest.sum(), leaf)[0]


def by_layer(classifier: Any, document: Any, target: int) -> dict[str, FloatArray]:
    """Gradient × hidden state behind the first norm (layer 0) and behind each layer but the last.

    In the last one only what the head reads has a gradient.
    """
    import torch

    inside = classifier.internals()
    model, ids = inside.model, inside.ids(document)[None]
    with torch.enable_grad():
        output = model(ids.to(inside.embeddings(document).device), output_hidden_states=True)
        log_odds = output.logits[0, target] - output.logits[0, 1 - target]
        states = output.hidden_states[:-1]
        slopes = torch.autograd.grad(log_odds, states)
    per_unit = _summed(inside, document)
    return {
        f"gradient × state {layer}": per_unit((state * slope)[0].sum(dim=-1))
        for layer, (state, slope) in enumerate(zip(states, slopes, strict=True))
    }


def _summed(inside: Any, document: Any) -> Callable[[Any], FloatArray]:
    """From one number per token to one per unit."""
    unit_of_token = inside.unit_of_token(document)
    shown = unit_of_token >= 0

    def summed(numbers: Any) -> FloatArray:
        weights = numbers.detach().double().cpu().numpy()[shown]
        return np.bincount(unit_of_token[shown], weights, minlength=document.n_units)

    return summed


def checks(classifier: Any, text: str) -> Record:
    """Autograd against a central difference, in double precision, and what the norm does."""
    import copy

    import torch

    double = slalom.HuggingFaceClassifier(
        copy.deepcopy(classifier.model).double(), classifier.tokenizer
    )
    document, inside = double.split(text, too_long="truncate"), double.internals()
    embeddings = inside.embeddings(document)

    def largest(given: Any) -> float:
        with torch.no_grad():
            return float(inside.logits_from_embeddings(document, given[None])[0, 1])

    leaf = embeddings.clone().requires_grad_()
    with torch.enable_grad():
        score = inside.logits_from_embeddings(document, leaf[None])[0, 1]
        slope = torch.autograd.grad(score, leaf)[0]
    generator = torch.Generator().manual_seed(0)
    way = torch.randn(embeddings.shape, generator=generator, dtype=embeddings.dtype)
    way = way.to(embeddings.device)
    rise = (largest(embeddings + STEP * way) - largest(embeddings - STEP * way)) / (2 * STEP)
    slope_along = float((slope * way).sum())
    return {
        "off": abs(rise - slope_along) / abs(slope_along),
        "left": _left(double.model, slope, embeddings),
    }


def _left(model: Any, slope: Any, words: Any) -> float | None:
    """|∇ · (word + position + type)| as a share of |∇ · word|; None: no such norm."""
    tables = getattr(getattr(model, model.base_model_prefix, None), "embeddings", None)
    if not hasattr(tables, "LayerNorm"):
        return None
    whole = words + tables.position_embeddings.weight[: len(words)]
    if hasattr(tables, "token_type_embeddings"):
        whole = whole + tables.token_type_embeddings.weight[0]
    along = [float((slope * part.detach()).sum(dim=-1).abs().sum()) for part in (whole, words)]
    return along[0] / along[1]


def gradients(records: Records) -> Table:
    rows = []
    for record in records.values():
        for name in record["documents"][0]:
            columns = list(zip(*(d[name] for d in record["documents"]), strict=True))
            rows.append((record["model"], name, *map(mean_of, columns)))
    return Table(
        title="Why gradients look poor: norms, signs, and what stands before a layer norm",
        columns=("model", "reading", "deletion", "insertion", "rank correlation, leave-one-out"),
        rows=tuple(rows),
        notes=(
            "Norms × sign are what the published code ranks by: norms over the width, summed "
            "over the tokens of a word, times +1 for the positive and −1 for the negative class. "
            "For one class that ranks the loudest words first, for the other last.",
            *_told(list(records.values())),
        ),
        differs=(
            f"Our models, {_n_reviews(records)} reviews; the sign is that of the predicted class, "
            "the paper's the label's.",
        ),
    )


def _n_reviews(records: Records) -> str:
    counts = sorted({len(record["documents"]) for record in records.values()})
    return " or ".join(map(str, counts))


def _told(records: Sequence[Record]) -> list[str]:
    checked = [check for record in records for check in record["checks"]]
    left = [check["left"] for check in checked if check["left"] is not None]
    told = [
        "Gradients by autograd and by central differences in double precision differ by at most "
        f"{Number(max(check['off'] for check in checked)).value:.0e} of their size."
    ]
    if left:
        told.append(
            "Before a layer norm gradient × (word + position + type) is 0 but for rounding (here "
            f"at most {max(left):.0e} of gradient × word), so gradient × word embedding is what "
            "position and type get, with the sign turned. That is no bug and no weakness of the "
            "model, but nothing makes such a product rank words well: on the bundled classifier it "
            "is worse than random. Behind the norm (state 0) it is not."
        )
    return told
