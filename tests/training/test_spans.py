"""Pieces of reviews, and batches of them."""

import numpy as np
import pytest
from training.spans import FOR_STUDENT, UNLABELLED, SpanStream, batches, corpus

from training import spans

STOP = 9
REVIEWS = [[11, 12, STOP, 13, 14, 15, STOP], [21, 22], [31, 32, 33, STOP]]
LABELS = [1, 0, 1]


@pytest.fixture
def reviews():
    return corpus(REVIEWS, LABELS, {STOP})


def test_sentences_start_after_stops_and_with_reviews(reviews):
    assert reviews.sentences.tolist() == [0, 3, 7, 9, 13]
    assert reviews.review(1).tolist() == [21, 22]


@pytest.mark.parametrize("kind", [spans.whole, spans.window, spans.sentence])
def test_neighbours_stay_neighbours_and_bring_their_label(reviews, kind):
    rng = np.random.default_rng(0)
    flat = [token for review in REVIEWS for token in review]
    for _ in range(200):
        ids, label = kind(reviews, rng)
        start = flat.index(ids[0])
        assert ids.tolist() == flat[start : start + len(ids)]
        assert label == {1: 1, 2: 0, 3: 1}[ids[0] // 10]


def test_subsets_keep_their_order(reviews):
    rng = np.random.default_rng(0)
    for _ in range(200):
        ids, _ = spans.subset(reviews, rng)
        assert len(ids) >= 1
        assert [token for token in ids if token != STOP] == sorted(set(ids) - {STOP})


def test_only_whole_reviews_are_labelled_for_students(reviews):
    rng = np.random.default_rng(0)
    for _, kind in FOR_STUDENT:
        labels = {kind(reviews, rng)[1] for _ in range(20)}
        assert (labels == {UNLABELLED}) == (kind is not spans.whole)


def test_batches_hold_every_sample_once_within_the_budget(reviews):
    rng = np.random.default_rng(0)
    samples = [spans.window(reviews, rng) for _ in range(50)]
    made = batches(samples, n_tokens=40)
    assert all(batch.ids.size <= 40 for batch in made)
    shown = [[token for token in row if token > 3] for batch in made for row in batch.ids.tolist()]
    assert sorted(shown) == sorted(ids.tolist() for ids, _ in samples)


def test_a_stream_repeats_itself_from_its_seed(reviews):
    def first(seed):
        stream = SpanStream(reviews, FOR_STUDENT, n_samples=8, n_tokens=64, seed=seed)
        return next(iter(stream)).ids

    assert np.array_equal(first(3), first(3))
    assert not np.array_equal(first(3), first(4))
