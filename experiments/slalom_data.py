"""Models trained on data that follow a SLALOM: figure 4cd, tables 7 and 8, figure 9.

A SLALOM is fitted to what a trained model says, and compared with the one its data came from:
mean squared errors of log-odds on fresh sequences and of parameters (values and importances
together, importances centred). Models are told the true log-odds; the paper draws labels, whose
noise alone leaves an error above its numbers (see `bound`), so some models are trained that way
too.
"""

import json
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

Floats = NDArray[np.float64]
CONTEXTS = (2, 5, 10, 15, 20, 25, 30)
DEEP = 6  # layers from which a third of the rate is enough
TRUTH = Path(__file__).parent / "slalom_truth.json"  # training.synthetic.slalom_truth, seed 0


def truth(n_words: int) -> Slalom:
    stored = json.loads(TRUTH.read_text(encoding="utf-8"))
    words, *columns = (stored[name] for name in ("words", "values", "importances"))
    return Slalom(tuple(words), *map(np.array, columns)).first(n_words)


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


def recovered(
    bench: Bench, *, kind: str, depth: int, number: int, n_words: int, drawn: bool = False
) -> Record:
    """Train a model on a SLALOM, fit a SLALOM to it in two ways, compare with the truth."""
    source, seed = truth(n_words), bench.seed + number
    config = bench.scale.drawn if drawn else _steady(bench.scale.slalom, depth)
    model = trained_transformer(source, kind, depth, config, seed=seed)
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
    record = {
        "kind": kind,
        "depth": depth,
        "number": number,
        "seed": seed,
        "n_words": n_words,
        "drawn": drawn,
        "bound": 4 * (2 * n_words - 1) / config.n_samples,
        "model": _missed(_answers(classifier, source, fresh), source.log_odds(fresh)),
        "fit": _compared(found, source, fresh, bench),
        "scatter": _scatter(found, source, fresh),
    }
    if not drawn:
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
    """SLALOM-analytic: of a text that holds every word, 2 |V| − 1 questions of one or two words."""

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
    return {name: [float(f"{v:.5g}") for v in column] for name, column in columns.items()}


def _missed(said: Floats, true: Floats) -> float:
    return float(np.mean((said - true) ** 2))
