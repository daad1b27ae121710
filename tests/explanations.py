"""Explanations made by hand, for the tests of what shows them."""

import re
from dataclasses import replace

import numpy as np

from slalom.document import features_of
from slalom.explanation import Explanation, Quality
from slalom.pairs import Effects, Interactions, Pair
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.readouts import read_outs

REVIEW = "A slow start, but a great film: great songs, a great end. Not awful at all."
VALUES = {"great": 4.0, "awful": -5.0, "slow": -2.0, "not": -1.0}
LOUD = {"great": 2.0, "awful": 2.5, "slow": 1.0, "not": 0.5}
NASTY = (
    "good <script>alert('x')</script> \"bad\" & </p> \x00 \x1b[31m \u202egnik\u202c "
    "👩\u200d🔬 [bold]x[/bold] \x9b2J"
)


def made(text: str = REVIEW, *, n_classes: int = 2, all_classes: bool = False) -> Explanation:
    """An anchored SLALOM over the words of a text; equal words are tied."""
    spans = tuple(match.span() for match in re.finditer(r"\w+|[^\w\s]", text))
    units = tuple(text[start:end] for start, end in spans)
    keys = [unit.lower() for unit in units]
    features, names = features_of(keys), list(dict.fromkeys(keys))
    at = np.bincount(features, minlength=len(names)).astype(float)
    model = _model(names, n_classes if all_classes else None)
    scores = {name: score[features] for name, score in read_outs(model, at).items()}
    score = model.predict(at[None])[0]
    target = 1 if not all_classes else None
    labels = (
        ("negative", "positive") if n_classes == 2 else [f"class {n}" for n in range(n_classes)]
    )
    return Explanation(
        text=text,
        units=units,
        spans=spans,
        features=features,
        scores=scores,
        errors={name: 0.05 + 0.05 * np.abs(score) for name, score in scores.items()},
        identified=np.ones(len(units), dtype=bool),
        anchor=model.anchor,
        quality=Quality(0.93, 0.31, 300, 5000, 1.5, "high", ("a note",)),
        logits=score if all_classes else np.array([0.0, score]),
        labels=tuple(labels),
        target="all" if target is None else labels[target],
        target_index=target,
        method="slalom",
        seed=0,
        classifier="a model made by hand",
        model=model.expand(features),
    )


def with_one_score(explanation: Explanation) -> Explanation:
    """As a method would give it that scores units but models nothing."""
    return replace(
        explanation,
        scores={"score": explanation.scores["removal"]},
        errors={},
        anchor=None,
        model=None,
        method="attention",
        quality=replace(explanation.quality, r2=None, rmse=None, trust="low"),
    )


def with_facts(explanation: Explanation) -> Explanation:
    """The same with all that version 2 tells: alone, share, what was measured, a length curve."""
    n_units = len(explanation.units)
    shapley, half = explanation.scores["shapley"], np.arange(n_units) < n_units / 2
    weights = np.exp(explanation.scores["importance"])
    every = np.ones(n_units, dtype=bool)
    curve = 0.5 * np.log1p(np.arange(n_units + 1)) / np.log1p(n_units)
    scores = {"alone": 1.2 * shapley, "share": 0.8 * weights / weights.sum()}
    errors = {"alone": 0 * shapley, "share": 0.01 + 0 * weights}
    errors["removal"] = np.where(half, 0.0, explanation.errors["removal"].T).T
    return replace(
        explanation,
        scores={**explanation.scores, **scores},
        errors={**explanation.errors, **errors},
        measured={"alone": every, "removal": half},
        length_curve=curve,
        length_errors=0.2 * curve,
        base_measured=True,
    )


def with_pairs(explanation: Explanation, *places: tuple[int, int]) -> Explanation:
    """The same with pairs; those after the second say less together than apart."""
    pairs = tuple(
        Pair(
            (i, j),
            (explanation.units[i], explanation.units[j]),
            1.9 - n,
            -0.8 + n,
            Effects(2.0, 0.1),
        )
        for n, (i, j) in enumerate(places)
    )
    return replace(explanation, pairs=Interactions(pairs, 60, True, explanation.spans))


def with_unidentified(explanation: Explanation, unit: int) -> Explanation:
    """The same, but nothing is known of one unit and its equals."""
    known = explanation.features != explanation.features[unit]
    scores = {name: np.where(known, score, 0.0) for name, score in explanation.scores.items()}
    return replace(explanation, identified=known, scores=scores)


def _model(names: list[str], n_classes: int | None) -> SlalomModel:
    values = np.array([VALUES.get(name, 0.1 * (n % 5)) for n, name in enumerate(names)])
    importances = np.array([LOUD.get(name, -0.2 * (n % 4)) for n, name in enumerate(names)])
    importances -= importances.mean()
    if n_classes is None:
        return SlalomModel(values, importances, Anchor(0.4, 1.0))
    columns = np.stack([values * np.cos(c) for c in range(n_classes)], axis=1)
    columns -= columns.mean(axis=1, keepdims=True)
    anchor = np.linspace(-0.5, 0.5, n_classes)
    return SlalomModel(columns, importances, Anchor(tuple(anchor.tolist()), 1.0))
