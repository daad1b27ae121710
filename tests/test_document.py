"""Queries as integer matrices: counting, closing gaps, codes that cannot index."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from slalom.document import END, Document, features_of, queries_from_masks, stack


def document(words, *, overhead=2):
    n = len(words)
    return Document(
        text=" ".join(words),
        units=tuple(words),
        spans=tuple((0, 1) for _ in words),
        keys=tuple(words),
        features=features_of(words),
        sizes=np.ones(n, dtype=np.int32),
        overhead=overhead,
        has_empty_query=True,
        frame=None,
    )


def test_equal_keys_are_one_feature_in_order_of_first_occurrence():
    assert features_of(["b", "a", "b", "c", "a"]).tolist() == [0, 1, 0, 2, 1]


def test_counts_are_of_features_and_untied_of_positions():
    made = document(["to", "be", "or", "not", "to", "be"])
    queries = np.array([[0, 1, 4, 5], [3, END, END, END], [0, 0, END, END]], dtype=np.int32)
    assert made.count(queries).tolist() == [[2, 2, 0, 0], [0, 0, 0, 1], [2, 0, 0, 0]]
    assert made.untied().count(queries)[0].tolist() == [1, 1, 0, 0, 1, 1]
    assert made.n_tokens(queries).tolist() == [6, 3, 4]


def test_the_end_lies_outside_every_document():
    with pytest.raises(IndexError):
        np.arange(100)[END]


@given(arrays(bool, st.tuples(st.integers(1, 20), st.integers(1, 15))))
def test_a_mask_becomes_its_positions_in_order(masks):
    queries = queries_from_masks(masks)
    for query, mask in zip(queries, masks, strict=True):
        assert query[query != END].tolist() == np.flatnonzero(mask).tolist()
        ended = np.flatnonzero(query == END)
        assert ended.tolist() == list(range(int(mask.sum()), len(query)))
    made = document([str(unit) for unit in range(masks.shape[1])])
    assert (made.count(queries) == masks).all()


def test_stacking_pads_with_end():
    short, long = np.array([[0]], dtype=np.int32), np.array([[1, 2, 3]], dtype=np.int32)
    assert stack([short, long]).tolist() == [[0, END, END], [1, 2, 3]]
