import numpy as np
import torch

from frames import frame_of
from slalom.classifiers.huggingface.batching import assemble, joined
from slalom.classifiers.huggingface.devices import AHEAD, Pace, on_device


def test_padding_is_on_the_right_and_masked() -> None:
    units = [([10], [0]), ([20, 21], [1, 1])]
    pair = frame_of(units, [([1], [0]), ([2], [0]), ([3], [1])], slots=[0, 1])
    rows = joined([assemble(pair, np.array([[0], [1]], dtype=np.int32))] * 2)
    ids, mask, types = on_device(rows, torch.device("cpu")).padded(np.array([3, 0]), pad=99)
    assert ids.tolist() == [[1, 2, 20, 21, 3], [1, 10, 2, 3, 99]]
    assert mask.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 1, 0]]
    assert types.tolist() == [[0, 0, 1, 1, 1], [0, 0, 0, 1, 0]]


def test_types_that_are_all_0_are_not_copied() -> None:
    text = frame_of([([10], [0])], [([1], [0]), ([2], [0])], slots=[0])
    there = on_device(assemble(text, np.array([[0], [0]], dtype=np.int32)), torch.device("cpu"))
    assert there.types is None
    assert there.padded(np.array([1]), pad=0)[2].tolist() == [[0, 0, 0]]


def test_widths_are_multiples_where_that_costs_little() -> None:
    def width(n_tokens: int) -> int:
        text = frame_of([([10] * n_tokens, [0] * n_tokens)], [([], []), ([], [])], slots=[0])
        there = on_device(assemble(text, np.array([[0]], dtype=np.int32)), torch.device("cpu"))
        ids, mask, _ = there.padded(np.array([0]), pad=9, multiple=8)
        assert mask.sum() == n_tokens
        assert (ids[mask == 0] == 9).all()
        return ids.shape[1]

    assert [width(n) for n in (9, 61, 64, 126, 130)] == [9, 64, 64, 128, 136]


def test_a_gpu_has_few_batches_before_it(monkeypatch):
    """There is no GPU here: events that only say when they are waited for."""
    waited = []

    class Event:
        def __init__(self, blocking):
            assert blocking  # a thread that spins would take a core from the fits

        def record(self, stream):
            self.number = len(pace.begun)

        def synchronize(self):
            waited.append(self.number)

    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: None)
    pace = Pace(torch.device("cuda"))
    for _ in range(AHEAD):
        pace.wait()
    assert waited == []
    pace.wait()
    pace.wait()
    assert len(waited) == 2
    assert len(pace.begun) == AHEAD
    Pace(torch.device("cpu")).wait()
    assert len(waited) == 2
