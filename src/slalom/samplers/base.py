"""What a sampler is: it knows positions, never tokens, and says which questions to ask.

Every sampler returns at most `n_queries` rows, all different, the full text first. Rows of
weight 0 are asked (the full text tells the predicted class) but not fitted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, Document, FloatArray, Queries

BLOCK = 100  # rows drawn at a time
ROUNDS = 20  # how often a sampler draws again to replace repeats before it gives up


@dataclass(frozen=True, eq=False)
class Samples:
    """Queries and the weight of each in the fit."""

    queries: Queries  # (n, width)
    weights: FloatArray  # (n,)
    complete: bool = False  # True: every subset there is; no query is left to generalise to
    n_alike: FloatArray | None = None  # (n,) rows of its size that such a design asks for


class Sampler(Protocol):
    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples: ...


def distinct_rows(
    fixed: NDArray[Any], draw: Callable[[int], NDArray[Any]], n_rows: int
) -> NDArray[Any]:
    """The fixed rows, then drawn ones that differ from all before: up to n_rows in all.

    Drawn in blocks of one size, so that a larger design begins with the smaller one's rows.
    """
    blocks = [fixed[:n_rows]]
    kept = {key: at for at, key in enumerate(row_keys(blocks[0]))}
    n_drawn = len(blocks[0])
    for _ in range(ROUNDS * (1 + n_rows // BLOCK)):
        if len(kept) >= n_rows:
            break
        blocks.append(draw(BLOCK))
        for at, key in enumerate(row_keys(blocks[-1]), n_drawn):
            kept.setdefault(key, at)
        n_drawn += BLOCK
    return np.concatenate(blocks)[list(kept.values())[:n_rows]]


def row_keys(rows: NDArray[Any]) -> list[bytes]:
    """Each row as bytes: equal rows, equal bytes."""
    whole = np.ascontiguousarray(rows)
    if not whole.size:
        return [b""] * len(whole)
    entry = np.dtype((np.void, whole.shape[1] * whole.itemsize))
    keys: list[Any] = whole.view(entry).ravel().tolist()
    return keys


def random_subsets(sizes: NDArray[np.int_], n_units: int, rng: np.random.Generator) -> BoolArray:
    """One random subset of each size: the `size` smallest of random keys."""
    keys = rng.random((len(sizes), n_units))
    limits = np.column_stack([np.sort(keys, axis=1), np.ones(len(sizes))])  # keys are below 1
    return np.asarray(keys < limits[np.arange(len(sizes)), sizes][:, None])


def all_subsets(n_units: int) -> BoolArray:
    """All 2ⁿ subsets, the largest first and the empty one last."""
    subsets = [c for size in range(n_units, -1, -1) for c in combinations(range(n_units), size)]
    masks = np.zeros((len(subsets), n_units), dtype=bool)
    for mask, subset in zip(masks, subsets, strict=True):
        mask[list(subset)] = True
    return masks


def are_all_subsets(masks: BoolArray, document: Document) -> bool:
    """Whether these subsets, all different, are all there are to ask."""
    n_subsets = 1 << document.n_units
    return len(masks) == n_subsets - (not document.has_empty_query)
