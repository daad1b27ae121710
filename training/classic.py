"""Classifiers that are no transformers: knows bags of words and one recurrent net.

Each is a callable `texts → (n, 2) probabilities`, which is what a function classifier asks for.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

from training.data import Reviews
from training.loop import adam, descend

SMOOTHING = 40.0  # the paper's
Words = Callable[[str], list[str]]


def plain_words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+(?:'[a-z]+)*", text.lower())


@dataclass(frozen=True)
class WordWeights:
    """Log-odds = bias + Σ weight of each word as often as it occurs."""

    words: tuple[str, ...]
    weights: NDArray[np.float64]  # (n_words,)
    bias: float
    split: Words = plain_words

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        scores = count_words(texts, self.words, self.split) @ self.weights + self.bias
        positive = 1 / (1 + np.exp(-scores))
        return np.stack([1 - positive, positive], axis=1)  # (n, 2)


def count_words(texts: Sequence[str], words: Sequence[str], split: Words) -> csr_matrix:
    return CountVectorizer(vocabulary=words, analyzer=split).transform(texts)


def frequent_words(texts: Sequence[str], split: Words, n_words: int | None) -> tuple[str, ...]:
    vectoriser = CountVectorizer(analyzer=split, max_features=n_words).fit(texts)
    return tuple(vectoriser.get_feature_names_out())


def naive_bayes(
    reviews: Reviews,
    split: Words = plain_words,
    n_words: int | None = None,
    *,
    smoothing: float = SMOOTHING,
) -> WordWeights:
    """w(τ) = log (occurrences in class 1 + α) / (occurrences in class 0 + α), paper eq. (76).

    The totals of the classes, which are nearly equal here, are left out as in the paper.
    """
    words = frequent_words(reviews.texts, split, n_words)
    counts, labels = count_words(reviews.texts, words, split), np.array(reviews.labels)
    in_class = [np.asarray(counts[labels == label].sum(axis=0))[0] for label in (0, 1)]
    weights = np.log(in_class[1] + smoothing) - np.log(in_class[0] + smoothing)
    return WordWeights(words, weights, float(np.log(labels.mean() / (1 - labels.mean()))), split)


def logistic_regression(
    reviews: Reviews, split: Words = plain_words, n_words: int = 20_000
) -> WordWeights:
    words = frequent_words(reviews.texts, split, n_words)
    counts = count_words(reviews.texts, words, split)
    model = LogisticRegression(C=0.02, max_iter=300).fit(counts, reviews.labels)
    return WordWeights(words, model.coef_[0], float(model.intercept_[0]), split)


def write_weights(model: WordWeights, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "words.txt").write_text("\n".join(model.words), encoding="utf-8")
    np.savez(folder / "weights.npz", weights=model.weights, bias=model.bias)


def read_weights(folder: Path, split: Words = plain_words) -> WordWeights:
    words = tuple((folder / "words.txt").read_text(encoding="utf-8").split("\n"))
    stored = np.load(folder / "weights.npz")
    return WordWeights(words, stored["weights"], float(stored["bias"]), split)


@dataclass(frozen=True)
class TfidfNet:
    """Three fully connected layers on TF-IDF."""

    words: tuple[str, ...]
    rarity: NDArray[np.float64]  # (n_words,) inverse document frequencies
    layers: nn.Sequential

    def features(self, texts: Sequence[str]) -> Tensor:
        counts = count_words(texts, self.words, plain_words).multiply(self.rarity).toarray()
        norms = np.linalg.norm(counts, axis=1, keepdims=True)
        return torch.tensor(counts / np.maximum(norms, 1e-12), dtype=torch.float32)

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        with torch.no_grad():
            return torch.softmax(self.layers(self.features(texts)).double(), dim=1).numpy()


def three_layers(n_words: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Linear(n_words, 256),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(256, 64),
        nn.ReLU(),
        nn.Dropout(0.5),
        nn.Linear(64, 2),
    )


def tfidf_net(reviews: Reviews, *, n_words: int = 5000, n_epochs: int = 4, seed: int) -> TfidfNet:
    words = frequent_words(reviews.texts, plain_words, n_words)
    rarity = TfidfTransformer().fit(count_words(reviews.texts, words, plain_words)).idf_
    torch.manual_seed(seed)
    model = TfidfNet(words, rarity, three_layers(len(words)).train())
    rng, labels = np.random.default_rng(seed), torch.tensor(reviews.labels)
    optimiser = adam(model.layers, 1e-3)
    for _ in range(n_epochs):
        for rows in np.array_split(rng.permutation(len(reviews)), max(1, len(reviews) // 100)):
            logits = model.layers(model.features([reviews.texts[row] for row in rows]))
            descend(model.layers, optimiser, nn.functional.cross_entropy(logits, labels[rows]))
    model.layers.eval()
    return model


def write_tfidf(model: TfidfNet, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "words.txt").write_text("\n".join(model.words), encoding="utf-8")
    rarity = torch.tensor(model.rarity)
    save_file(model.layers.state_dict() | {"rarity": rarity}, folder / "model.safetensors")


def read_tfidf(folder: Path) -> TfidfNet:
    words = tuple((folder / "words.txt").read_text(encoding="utf-8").split("\n"))
    stored = load_file(folder / "model.safetensors")
    rarity = stored.pop("rarity").numpy()
    layers = three_layers(len(words))
    layers.load_state_dict(stored)
    return TfidfNet(words, rarity, layers.eval())
