"""Frames of a few tokens, written down part by part."""

from collections.abc import Sequence

import numpy as np

from slalom.classifiers.huggingface.batching import Frame

Part = tuple[Sequence[int], Sequence[int]]  # ids and types


def frame_of(units: Sequence[Part], fixed: Sequence[Part], *, slots: Sequence[int]) -> Frame:
    parts = [*units, *fixed]
    ids = np.array([token for ids, _ in parts for token in ids])
    types = np.array([kind for _, types in parts for kind in types])
    return Frame.of(ids, types, np.array([len(ids) for ids, _ in parts]), slots)
