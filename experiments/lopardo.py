"""The single-layer attention model of Lopardo et al. (ICML 2024), measured.

    lime-limit        LIME runs against three formulas for their limit
    seven-explainers  what seven methods say of one sentence, and how far they agree on reviews
    attention-maps    where the heads look
    histogram         the counting task from its two starts

The model is random or trained on IMDB reviews here; the paper trains its own.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from training.data import Reviews, imdb

import slalom
from experiments.bench import Bench, Part, Record
from experiments.classifiers import data_of, is_made_up
from slalom.errors import InputError
from slalom.theory.attention_classifier import AttentionClassifier, words_of
from slalom.theory.attention_model import AttentionModel, random_attention_model
from slalom.theory.lime_limit import corrected_limit, exact_limit, lime_run, printed_limit

SENTENCES = (
    "the acting is great but the story is not bad it is awful",
    "attention based explanations are popular but questionable",  # the slides'
)
EXPLAINERS = {  # as the paper calls them → as METHODS does
    "G-avg": "gradient-mean",
    "G-L1": "gradient-l1",
    "G-L2": "gradient-l2",
    "G×I": "gradient-input",
    "LIME": "lime",
    "α-avg": "attention-mean",
    "α-max": "attention-max",
    "SLALOM, removal": "slalom",
}
N_WORDS = 99  # T = d of the slides' figure
LENGTHS = ((99, 99), (99, 512), (20, 512))  # T = d and T_max
N_RUNS = 5
LOUDNESS = (0.5, 1.0, 2.0)
FORMS = {"exact": exact_limit, "corrected": corrected_limit, "printed": printed_limit}


@dataclass(frozen=True)
class Sizes:
    n_models: int  # random ones, for ±
    n_samples: int  # of one LIME run
    n_reviews: int  # to train on
    n_words: int  # of the vocabulary
    n_explained: int  # reviews, for the agreement of explainers
    n_seeds: int  # of the histogram task
    n_steps: int


SIZES = {
    "tiny": Sizes(1, 500, 200, 300, 2, 1, 60),
    "small": Sizes(3, 3000, 4000, 4000, 20, 2, 1000),
    "paper": Sizes(5, 5000, 20_000, 20_000, 100, 5, 1000),
}
WIDTH, N_HEADS, N_POSITIONS = 32, 6, 128


def sizes_of(bench: Bench) -> Sizes:
    return SIZES[bench.scale.name]


def lime_parts(bench: Bench) -> dict[str, Part]:
    """Random models of three loudnesses, texts that fill the model and texts that do not."""
    found: dict[str, Part] = {
        f"lopardo/lime-{lengths[0]}-{lengths[1]}-{loudness:g}/{number}": Part(
            partial(random_limits, lengths=lengths, loudness=loudness, number=number)
        )
        for number in range(sizes_of(bench).n_models)
        for lengths in LENGTHS
        for loudness in LOUDNESS
    }
    return found | trained_parts(bench)


def random_limits(
    bench: Bench, *, lengths: tuple[int, int], loudness: float, number: int
) -> Record:
    n_words, n_positions = lengths
    words = [f"word{place}" for place in range(n_words)]
    rng = np.random.default_rng(bench.seed + number)
    model = random_attention_model(
        words, rng, n_positions=n_positions, width=WIDTH, n_heads=N_HEADS, key_scale=loudness
    )
    return {
        "weights": "random",
        "n_places": n_positions,
        "loudness": loudness,
        **limits(model, words, rng, n_samples=sizes_of(bench).n_samples),
    }


def limits(
    model: AttentionModel, words: list[str], rng: np.random.Generator, *, n_samples: int
) -> Record:
    """LIME's coefficients, run by run, and what the formulas say they tend to."""
    ids = model.ids(words)
    runs = [lime_run(model, ids, n_samples=n_samples, rng=rng).tolist() for _ in range(N_RUNS)]
    forms = {name: form(model, ids).tolist() for name, form in FORMS.items()}
    return {"n_words": len(words), "runs": runs, **forms}


def trained_parts(bench: Bench) -> dict[str, Part]:
    return {"lopardo/trained": Part(measured)}


def measured(bench: Bench) -> Record:
    """Train the model on reviews and look at it from all sides."""
    sizes, rng = sizes_of(bench), np.random.default_rng(bench.seed)
    reviews, unseen = split_reviews(bench, sizes.n_reviews, rng)
    model = trained(reviews, sizes.n_words, seed=bench.seed)
    classifier = AttentionClassifier(model)
    log_odds = model(np.stack([model.ids(read(text)) for text in unseen.texts]))
    distinct = list(dict.fromkeys(word for text in unseen.texts for word in read(text)))
    known = [word for word in distinct if word in set(model.words)][:N_WORDS]
    return {
        "weights": f"trained on {'made-up reviews' if is_made_up(bench) else 'IMDB'}",
        "n_places": N_POSITIONS,
        "loudness": None,
        "n_reviews": len(reviews),
        "accuracy": float(((log_odds > 0) == np.array(unseen.labels)).mean()),
        "sentences": [sentence(classifier, text) for text in SENTENCES],
        "agreement": agreement(classifier, unseen.texts[: sizes.n_explained]),
        **limits(model, known, rng, n_samples=sizes.n_samples),
    }


def split_reviews(
    bench: Bench, n_reviews: int, rng: np.random.Generator
) -> tuple[Reviews, Reviews]:
    """Some to train on, and up to a thousand others."""
    source = data_of(bench) if is_made_up(bench) else bench.data  # or an installed package's
    try:
        found = imdb("train", source)
    except FileNotFoundError as problem:
        raise InputError(str(problem)) from problem
    n_reviews = min(n_reviews, 3 * len(found) // 4)
    reviews, rest = found.split(n_reviews, rng)
    return reviews, rest.sample(1000, rng)


def trained(reviews: Reviews, n_words: int, *, seed: int) -> AttentionModel:
    """From small word vectors, so that rare words stay quiet."""
    from slalom.theory.attention_torch import fit

    texts = [read(text) for text in reviews.texts]
    counted = Counter(word for text in texts for word in text).most_common(n_words)
    rng = np.random.default_rng(seed)
    start = random_attention_model(
        [word for word, _ in counted], rng, n_positions=N_POSITIONS, width=WIDTH, n_heads=N_HEADS
    )
    start = replace(start, W_e=0.1 * start.W_e)
    ids = np.stack([start.ids(text) for text in texts])
    return fit(start, ids, np.array(reviews.labels, dtype=float), n_epochs=2, seed=seed)


def read(text: str) -> list[str]:
    """What the model reads of a text: its first words, in small letters."""
    return words_of(text.lower())[:N_POSITIONS]


def sentence(classifier: AttentionClassifier, text: str) -> Record:
    """What every explainer says of one sentence, and the attention of every head."""
    document = classifier.split(text)
    words = document.units
    ids = classifier.model.ids(words)
    return {
        "words": list(words),
        "known": (ids[: len(words)] != classifier.model.unknown).tolist(),
        "log_odds": float(classifier.model(ids)),
        "scores": {name: scores(classifier, text, name).tolist() for name in EXPLAINERS},
        "attention": classifier.model.attention(ids)[:, : len(words)].tolist(),
    }


def scores(classifier: AttentionClassifier, text: str, name: str) -> np.ndarray:
    found = slalom.explain(classifier, text, EXPLAINERS[name], target="positive")
    return found.scores["score" if "score" in found.scores else "removal"]


def agreement(classifier: AttentionClassifier, texts: tuple[str, ...]) -> list[list[float]]:
    """Mean rank correlation of sizes between explainers, words of a review apart."""
    from scipy.stats import spearmanr

    tables = []
    for text in texts:
        shown = " ".join(read(text)[:40])
        sizes = [np.abs(scores(classifier, shown, name)) for name in EXPLAINERS]
        tables.append(spearmanr(np.array(sizes), axis=1).statistic)
    return np.nanmean(tables, axis=0).tolist()


def histogram_parts(bench: Bench) -> dict[str, Part]:
    return {
        f"lopardo/histogram-{name}/{number}": Part(partial(counted, name=name, number=number))
        for number in range(sizes_of(bench).n_seeds)
        for name in ("semantic", "positional")
    }


def counted(bench: Bench, *, name: str, number: int) -> Record:
    """The counting task from one start."""
    from slalom.theory.histogram import POSITIONAL, SEMANTIC, train

    start = {"semantic": SEMANTIC, "positional": POSITIONAL}[name]
    found = train(start, n_steps=sizes_of(bench).n_steps, seed=bench.seed + number)
    return {
        "start": name,
        "error": found.error,
        "accuracy": found.accuracy,
        "slope": found.slope,
        "dependence": found.dependence,
        "preference": found.preference,
        "attention": found.attention(TEXT).round(4).tolist(),
    }


TEXT = "DATAIAIAIA"  # the slides' example
