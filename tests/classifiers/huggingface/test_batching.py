import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frames import frame_of
from slalom.classifiers.huggingface.batching import (
    MAX_ROWS,
    TOLERATED_PADDING,
    Frame,
    TokenRows,
    assemble,
    batches,
    row_bytes,
)
from slalom.document import END
from slalom.errors import InputError


def one_slot() -> Frame:
    units = [([10], [0]), ([20, 21], [0, 0]), ([30], [0])]
    return frame_of(units, [([1], [0]), ([2], [0])], slots=[0, 0, 0])


def two_slots() -> Frame:
    units = [([10], [0]), ([20, 21], [1, 1]), ([30], [1])]
    fixed = [([1], [0]), ([2], [0]), ([3], [1])]
    return frame_of(units, fixed, slots=[0, 1, 1])


def rows_of(frame: Frame, queries: list[list[int]]) -> list[list[int]]:
    rows = assemble(frame, np.array(queries, dtype=np.int32))
    return [part.tolist() for part in np.split(rows.ids, np.cumsum(rows.lengths)[:-1])]


def test_units_stand_between_the_fixed_parts_in_the_order_shown() -> None:
    queries = [[0, 1, 2], [2, 0, END], [END, END, END], [1, 1, END]]
    assert rows_of(one_slot(), queries) == [
        [1, 10, 20, 21, 30, 2],
        [1, 30, 10, 2],
        [1, 2],
        [1, 20, 21, 20, 21, 2],
    ]


def test_units_stay_in_their_slot() -> None:
    queries = [[0, 1, 2], [2, 0, 1], [END, END, END], [1, END, END]]
    assert rows_of(two_slots(), queries) == [
        [1, 10, 2, 20, 21, 30, 3],
        [1, 10, 2, 30, 20, 21, 3],
        [1, 2, 3],
        [1, 2, 20, 21, 3],
    ]
    types = assemble(two_slots(), np.array([[0, 1, 2]], dtype=np.int32)).types
    assert types.tolist() == [0, 0, 0, 1, 1, 1, 1]


def test_what_no_query_may_hold() -> None:
    for wrong in (3, -1):
        with pytest.raises(InputError, match=f"shows unit {wrong} of a document with 3"):
            rows_of(one_slot(), [[wrong]])


def test_bytes_are_equal_where_rows_are() -> None:
    rows = assemble(one_slot(), np.array([[0, 1], [1, 0], [0, 1], [0, END]], dtype=np.int32))
    seen = row_bytes(rows, with_types=False)
    assert seen[0] == seen[2] == np.array([1, 10, 20, 21, 2], dtype=np.int32).tobytes()
    assert len(set(seen)) == 3
    assert [len(both) for both in row_bytes(rows, with_types=True)] == [2 * len(s) for s in seen]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(1, 200), st.booleans())
@settings(max_examples=80, deadline=None)
def test_batches_hold_every_row_once_within_the_budget(
    lengths: list[int], budget: int, padding: bool
) -> None:
    given_lengths = np.array(lengths)
    cut = list(batches(given_lengths, budget=budget, padding=padding))
    assert sorted(np.concatenate(cut).tolist()) == list(range(len(lengths)))
    for chosen in cut:
        longest = given_lengths[chosen].max()
        assert len(chosen) == 1 or longest * len(chosen) <= budget
        assert padding or (given_lengths[chosen] == longest).all()
    longest_first = [given_lengths[chosen].max() for chosen in cut]
    assert longest_first == sorted(longest_first, reverse=True)


def test_little_of_a_large_job_is_padding() -> None:
    lengths = np.random.default_rng(0).integers(2, 200, size=20_000)
    cut = list(batches(lengths, budget=2**14, padding=True))
    room = sum(int(lengths[chosen].max()) * len(chosen) for chosen in cut)
    assert 1 - lengths.sum() / room < TOLERATED_PADDING
    assert len(cut) < 1.2 * lengths.sum() / 2**14  # and hardly more batches for it


def test_a_small_job_is_not_cut_to_pieces() -> None:
    lengths = np.arange(1, 61)
    assert len(list(batches(lengths, budget=2**17, padding=True))) == 1


@pytest.mark.parametrize("padding", [True, False])
def test_many_short_rows_are_not_one_batch(padding: bool) -> None:
    """A device's attention takes fewer rows than its memory would: 2**18 tokens, 3 per row."""
    lengths = np.full(2**17, 3)
    cut = list(batches(lengths, budget=2**18, padding=padding))
    assert [len(chosen) for chosen in cut] == [MAX_ROWS] * 4
    assert sorted(np.concatenate(cut).tolist()) == list(range(2**17))


@pytest.mark.parametrize(("largest", "n_bytes"), [(200, 1), (30_000, 2), (250_000, 4)])
def test_rows_take_no_more_bytes_than_they_need_on_their_way(largest: int, n_bytes: int) -> None:
    ids = np.arange(4000, dtype=np.int32) % largest
    ids[-1] = largest
    for types in (np.zeros_like(ids), ids % 2):
        rows = TokenRows(ids, types, np.full(40, 100))
        sent = pickle.dumps(rows)
        assert len(sent) < 4000 * (n_bytes + bool(types.any())) + 600
        found = pickle.loads(sent)
        for part in ("ids", "types", "lengths"):
            before, after = getattr(rows, part), getattr(found, part)
            assert before.dtype == after.dtype
            np.testing.assert_array_equal(before, after)
    empty = pickle.loads(pickle.dumps(TokenRows(ids[:0], ids[:0], np.zeros(0, dtype=np.int64))))
    assert empty.n_tokens == 0
