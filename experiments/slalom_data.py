"""Models trained on data that follow a SLALOM: figure 4cd, tables 7 and 8, figure 9.

A SLALOM is fitted to what a trained model says, and compared with the one its data came from:
mean squared errors of log-odds on fresh sequences and of parameters (values and importances
together, importances centred). Models are told the true log-odds; the paper draws labels, whose
noise alone leaves an error above its numbers (see `bound`), so some models are trained that way
too: with our optimiser and the paper's, on a truth drawn as its published code draws it.
"""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from training.config import TrainingConfig
from training.synthetic import (
    END,
    KINDS,
    MAX_LENGTH,
    Ids,
    Slalom,
    as_texts,
    trained_transformer,
    word_counts,
    word_tokenizer,
)

import slalom
from experiments.bench import Bench, Part, Record
from experiments.linear_data import SHOWN, fitted_slalom
from experiments.table import rounded

Floats = NDArray[np.float64]
CONTEXTS = (2, 5, 10, 15, 20, 25, 30)
DEEP = 6  # layers from which a third of the rate is enough
LOUD, QUIET = "slalom_truth.json", "slalom_truth_quiet.json"  # training.synthetic.slalom_truth
TRUTHS = {"louder": LOUD, "as published": QUIET}


def truth(n_words: int, file: str = LOUD) -> Slalom:
    stored = json.loads((Path(__file__).parent / file).read_text(encoding="utf-8"))
    words, *columns = (stored[name] for name in ("words", "values", "importances"))
    return Slalom(tuple(words), *map(np.array, columns)).first(n_words)


def truth_parts(bench: Bench) -> dict[str, Part]:
    return {f"slalom/truth-{name}": Part(partial(told, file=f)) for name, f in TRUTHS.items()}


def told(_: Bench, *, file: str) -> Record:
    """A truth as it stands in its file, importances centred."""
    found = truth(10**6, file)
    importances = found.importances - found.importances.mean()
    return {"values": rounded(found.values), "importances": rounded(importances)}


def parts(bench: Bench) -> dict[str, Part]:
    """Every architecture and depth, deep ones once; smaller vocabularies, for figure 9, last."""
    scale, found = bench.scale, {}
    models = [
        (kind, depth, max(scale.vocabularies)) for depth in scale.slalom_depths for kind in KINDS
    ]
    models += [("distilbert", 1, n_words) for n_words in scale.vocabularies[:-1]]
    for number in range(scale.n_seeds):
        for kind, depth, n_words in models:
            if depth < DEEP or number == 0:
                work = partial(recovered, kind=kind, depth=depth, number=number, n_words=n_words)
                name = f"slalom/{kind}-{depth}-{n_words}/{number}"
                late = 0 if n_words == max(scale.vocabularies) else 100
                found[name] = Part(work, late + 10 * number + depth)
    return found


def drawn_parts(bench: Bench) -> dict[str, Part]:
    """One model per architecture with the paper's labels."""
    settings = {"depth": 1, "number": 0, "n_words": max(bench.scale.vocabularies), "drawn": True}
    return {
        f"slalom-drawn/{kind}-1/0": Part(partial(recovered, kind=kind, **settings), 0.0)
        for kind in KINDS
    }


def narrow_parts(bench: Bench) -> dict[str, Part]:
    """Figure 9 with a model that a CPU can train, told the truth of a few words."""
    config = bench.scale.narrow
    if config is None:
        return {}
    return {
        f"slalom-narrow/distilbert-1-{n_words}/0": Part(partial(narrow, n_words=n_words), 150.0)
        for n_words in bench.scale.vocabularies[:2]
    }


def narrow(bench: Bench, *, n_words: int) -> Record:
    source, config = truth(n_words), bench.scale.narrow
    assert config is not None
    model = trained_transformer(source, "distilbert", 1, config, seed=bench.seed)
    record = _recovered(bench, source, model, "distilbert", bench.seed, closed_form=True)
    return {**record, "depth": 1, "width": config.width}


def labelled_parts(bench: Bench) -> dict[str, Part]:
    """Small models on the quiet truth, labels drawn, with either optimiser."""
    return {
        f"slalom-labelled/{kind}-1-{optimiser}/0": Part(
            partial(labelled, kind=kind, rmsprop=optimiser == "rmsprop"), 200.0 + number
        )
        for kind in ("distilbert", "gpt2", "bert")
        for number, optimiser in enumerate(("rmsprop", "adamw"))
    }


def labelled(bench: Bench, *, kind: str, rmsprop: bool) -> Record:
    n_words, config = max(bench.scale.vocabularies), replace(bench.scale.labelled, rmsprop=rmsprop)
    source = truth(n_words, QUIET)
    model = trained_transformer(source, kind, 1, config, seed=bench.seed)
    record = _recovered(bench, source, model, kind, bench.seed, closed_form=True)
    return {
        **record,
        "depth": 1,
        "optimiser": "RMSprop" if rmsprop else "AdamW",
        "width": config.width,
        "bound": 4 * (2 * n_words - 1) / config.n_samples,
    }


def recovered(
    bench: Bench, *, kind: str, depth: int, number: int, n_words: int, drawn: bool = False
) -> Record:
    """Train a model on a SLALOM, fit a SLALOM to it in two ways, compare with the truth."""
    source, seed = truth(n_words), bench.seed + number
    config = bench.scale.drawn if drawn else _steady(bench.scale.slalom, depth)
    model = trained_transformer(source, kind, depth, config, seed=seed)
    record = _recovered(bench, source, model, kind, seed, closed_form=not drawn)
    return {
        **record,
        "depth": depth,
        "number": number,
        "drawn": drawn,
        "bound": 4 * (2 * n_words - 1) / config.n_samples,
    }


def _recovered(
    bench: Bench, source: Slalom, model: Any, kind: str, seed: int, *, closed_form: bool = False
) -> Record:
    n_words = len(source.words)
    tokenizer = word_tokenizer(source.words, with_cls=kind != "gpt2")
    classifier = slalom.HuggingFaceClassifier(model, tokenizer)
    rng = np.random.default_rng(20_000 + seed)
    asked = np.concatenate(
        [
            _alone(n_words),
            _pairs(source, bench.scale.n_new // 2, rng),
            source.draw(bench.scale.n_new, rng),
        ]
    )
    scores = _answers(classifier, source, asked)
    found = fitted_slalom(word_counts(asked, n_words), scores)
    fresh = source.draw(2000, rng)
    answered = _answers(classifier, source, fresh)
    record = {
        "kind": kind,
        "seed": seed,
        "n_words": n_words,
        "model": _missed(answered, source.log_odds(fresh)),
        "fit": _compared(found, source, fresh, bench),
        "scatter": _scatter(found, source, fresh) | {"model's log-odds": rounded(answered[:SHOWN])},
    }
    if closed_form:
        record["analytic"] = _compared(_closed_form(classifier, source), source, fresh, bench)
    return record


def _steady(config: TrainingConfig, depth: int) -> TrainingConfig:
    rate = config.learning_rate / (3 if depth >= DEEP else 1)
    return replace(config, learning_rate=rate)


def _answers(classifier: Any, source: Slalom, sequences: Ids) -> Floats:
    logits = classifier(as_texts(source, sequences))
    return np.asarray(logits[:, 1] - logits[:, 0])


def _alone(n_words: int) -> Ids:
    rows = np.full((n_words, MAX_LENGTH), END)
    rows[:, 0] = np.arange(n_words)
    return rows


def _pairs(source: Slalom, n_pairs: int, rng: np.random.Generator) -> Ids:
    rows = np.full((n_pairs, MAX_LENGTH), END)
    rows[:, :2] = rng.integers(len(source.words), size=(n_pairs, 2))
    return rows


def _closed_form(classifier: Any, source: Slalom) -> Any:
    """SLALOM-analytic: of a text that holds every word, 2 |V| − 1 queries of one or two words."""

    def answers(texts: list[str]) -> Floats:  # of the text itself the model reads the beginning
        return np.asarray(classifier([" ".join(text.split()[:MAX_LENGTH]) for text in texts]))

    short = slalom.FunctionClassifier(answers, labels=["0", "1"], gives="logits")
    return slalom.explain(short, " ".join(source.words), "slalom-analytic", target=1).model


def _compared(found: Any, source: Slalom, fresh: Ids, bench: Bench) -> Record:
    counts = word_counts(fresh, len(source.words))
    centred = found.importances - found.importances.mean()
    true = source.importances - source.importances.mean()
    rng = np.random.default_rng(30_000 + bench.seed)
    by_context = []
    for context in CONTEXTS:
        rows = np.full((500, MAX_LENGTH), END)
        rows[:, :context] = rng.integers(len(source.words), size=(500, context))
        said = found.predict(word_counts(rows, len(source.words)))
        by_context.append(_missed(said, source.log_odds(rows)))
    return {
        "log_odds": _missed(found.predict(counts), source.log_odds(fresh)),
        "values": _missed(found.values, source.values),
        "importances": _missed(centred, true),
        "published": squared_mean([*found.values, *centred], [*source.values, *true]),
        "by_context": by_context,
    }


def _scatter(found: Any, source: Slalom, fresh: Ids) -> dict[str, list[float]]:
    said = found.predict(word_counts(fresh[:SHOWN], len(source.words)))
    columns = {
        "true log-odds": source.log_odds(fresh[:SHOWN]),
        "log-odds": said,
        "true values": source.values,
        "values": found.values,
        "true importances": source.importances - source.importances.mean(),
        "importances": found.importances - found.importances.mean(),
    }
    return {name: rounded(column) for name, column in columns.items()}


def squared_mean(said: Sequence[float], true: Sequence[float]) -> float:
    """What the published notebook computes, squared: errors of different sign cancel."""
    return float(np.mean(np.array(said) - np.array(true)) ** 2)


def _missed(said: Floats, true: Floats) -> float:
    return float(np.mean((said - true) ** 2))
