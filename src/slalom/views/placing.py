"""Where things are drawn so that none covers another: boxes and swarms of points."""

from collections.abc import Sequence

import numpy as np

from slalom.document import FloatArray

Box = tuple[float, float, float, float]  # left, low, right, high
WIDTH = 0.02  # of a point in a swarm, of the whole reach
STEP, FARTHEST = 0.09, 0.4  # between points above each other, and from the middle, in rows


def apart(box: Box, others: Sequence[Box]) -> bool:
    """Whether a box covers none of the others."""
    return not any(
        box[0] < other[2] and other[0] < box[2] and box[1] < other[3] and other[1] < box[3]
        for other in others
    )


def spread(places: FloatArray) -> FloatArray:
    """(n,) offsets up and down that keep points of nearly equal place from each other."""
    offsets = np.zeros(len(places))
    bins = np.round(np.asarray(places) / WIDTH).astype(int)
    for here in np.unique(bins):
        members = np.flatnonzero(bins == here)
        steps = np.array([(n + 1) // 2 * (1 if n % 2 else -1) for n in range(len(members))])
        reach = STEP * np.abs(steps).max()
        offsets[members] = STEP * steps * min(1.0, FARTHEST / max(reach, 1e-9))
    return offsets
