"""An endless stream of fresh pieces of reviews: knows token ids and lengths, nothing of models.

An explainer shows a classifier single words and random parts of a text with the gaps closed, so
the stream holds such inputs beside whole reviews: windows, sentences, subsets, a few words, joins.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import IterableDataset, get_worker_info

from training.vocabulary import CLS, CONTEXT, PAD, SEP

Ids = NDArray[np.int64]
ROOM = CONTEXT - 2  # without [CLS] and [SEP]
UNLABELLED = -1


@dataclass(frozen=True)
class Corpus:
    ids: Ids  # all reviews one after the other, without special tokens
    starts: Ids  # (n_reviews + 1,)
    sentences: Ids  # where sentences start, the end of the last one included
    labels: Ids  # (n_reviews,)

    def review(self, row: int) -> Ids:
        return self.ids[self.starts[row] : self.starts[row + 1]]


def corpus(documents: Sequence[Sequence[int]], labels: Sequence[int], stops: set[int]) -> Corpus:
    """`stops`: the ids that end a sentence."""
    ids = np.concatenate([np.asarray(ids, dtype=np.int64) for ids in documents])
    starts = np.cumsum([0, *map(len, documents)])
    after_stop = np.flatnonzero(np.isin(ids, list(stops))) + 1
    return Corpus(ids, starts, np.union1d(after_stop, starts), np.asarray(labels))


Sample = tuple[Ids, int]  # ids, and the label of the review they are from or UNLABELLED
Kind = Callable[[Corpus, Generator], Sample]


def whole(corpus: Corpus, rng: Generator) -> Sample:
    row = int(rng.integers(len(corpus.labels)))
    return corpus.review(row)[:ROOM], int(corpus.labels[row])


def window(corpus: Corpus, rng: Generator) -> Sample:
    """From the start of a sentence on, of log-uniform length."""
    row = int(rng.integers(len(corpus.labels)))
    start, end = corpus.starts[row], corpus.starts[row + 1]
    low, high = np.searchsorted(corpus.sentences, [start, end])
    first = corpus.sentences[rng.integers(low, max(high, low + 1))]
    length = log_uniform(rng, 3, ROOM)
    return corpus.ids[first : min(first + length, end)], int(corpus.labels[row])


def sentence(corpus: Corpus, rng: Generator) -> Sample:
    place = int(rng.integers(len(corpus.sentences) - 1))
    start, end = corpus.sentences[place], corpus.sentences[place + 1]
    row = int(np.searchsorted(corpus.starts, start, side="right")) - 1
    return corpus.ids[start:end][:ROOM], int(corpus.labels[row])


def subset(corpus: Corpus, rng: Generator) -> Sample:
    """Some tokens of a review or window, in their order, the gaps closed."""
    ids, label = (whole if rng.random() < 0.5 else window)(corpus, rng)
    if len(ids) == 0:
        return ids, label
    if rng.random() < 0.5:
        n_kept = log_uniform(rng, 1, len(ids))
    else:
        n_kept = int(rng.integers(1, len(ids) + 1))
    return ids[np.sort(rng.permutation(len(ids))[:n_kept])], label


def few(corpus: Corpus, rng: Generator) -> Sample:
    """One to four neighbouring tokens from anywhere."""
    length = int(rng.integers(1, 5))
    start = int(rng.integers(len(corpus.ids) - length))
    return corpus.ids[start : start + length], UNLABELLED  # they may belong to two reviews


def joined(corpus: Corpus, rng: Generator) -> Sample:
    """Windows of two or three reviews one after the other: what a mixed opinion looks like."""
    parts = [window(corpus, rng)[0] for _ in range(int(rng.integers(2, 4)))]
    return np.concatenate(parts)[:ROOM], UNLABELLED


def log_uniform(rng: Generator, low: int, high: int) -> int:
    return min(int(np.exp(rng.uniform(np.log(low), np.log(high + 1)))), high)


@dataclass(frozen=True)
class Unlabelled:
    """A part need not say what the whole says: its label is left to the teacher."""

    kind: Kind

    def __call__(self, corpus: Corpus, rng: Generator) -> Sample:
        return self.kind(corpus, rng)[0], UNLABELLED


Mixture = tuple[tuple[float, Kind], ...]
FOR_TEACHER: Mixture = ((0.5, whole), (0.25, window), (0.1, sentence), (0.15, subset))
FOR_STUDENT: Mixture = (
    (0.28, whole),
    (0.2, Unlabelled(window)),
    (0.1, Unlabelled(sentence)),
    (0.24, Unlabelled(subset)),
    (0.08, few),
    (0.1, joined),
)


@dataclass(frozen=True)
class Batch:
    """Arrays, not tensors, so that a worker hands them over without shared memory."""

    ids: Ids  # (n, width) padded
    labels: Ids  # (n,)

    def on(self, device: torch.device) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(self.ids).to(device), torch.from_numpy(self.labels).to(device)


class SpanStream(IterableDataset):  # type: ignore[type-arg]
    """Batches without end, each of samples of similar length from a pool of `n_samples`."""

    def __init__(
        self, corpus: Corpus, mixture: Mixture, *, n_samples: int, n_tokens: int, seed: int
    ) -> None:
        self.corpus, self.mixture = corpus, mixture
        self.n_samples, self.n_tokens, self.seed = n_samples, n_tokens, seed

    def __iter__(self) -> Iterator[Batch]:
        worker = get_worker_info()
        rng = np.random.default_rng([self.seed, worker.id if worker else 0])
        weights, kinds = zip(*self.mixture, strict=True)
        while True:
            drawn = rng.choice(len(kinds), size=self.n_samples, p=np.divide(weights, sum(weights)))
            pool = batches([kinds[kind](self.corpus, rng) for kind in drawn], self.n_tokens)
            yield from (pool[turn] for turn in rng.permutation(len(pool)))


def batches(samples: list[Sample], n_tokens: int) -> list[Batch]:
    """Sorted by length and cut so that no padded batch holds more than `n_tokens`."""
    samples = sorted(samples, key=lambda sample: len(sample[0]))
    made: list[Batch] = []
    end = len(samples)
    while end > 0:
        width = len(samples[end - 1][0]) + 2
        start = max(0, end - max(1, n_tokens // width))
        made.append(padded(samples[start:end], width))
        end = start
    return made


def padded(samples: Sequence[Sample], width: int) -> Batch:
    ids = np.full((len(samples), width), PAD, dtype=np.int64)
    ids[:, 0] = CLS
    for row, (tokens, _) in zip(ids, samples, strict=True):
        row[1 : len(tokens) + 1] = tokens
        row[len(tokens) + 1] = SEP
    return Batch(ids, np.array([label for _, label in samples]))
