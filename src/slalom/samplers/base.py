"""What a sampler is: it chooses the queries of a document and knows positions, never tokens.

Every sampler returns at most `n_queries` rows, the full text first. Rows of weight 0 are asked
(the full text tells the predicted class) but not fitted.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, Document, FloatArray, Queries, row_keys

BLOCK = 100  # rows drawn at a time
MAX_ROUNDS = 20  # of drawing again to replace repeated rows


@dataclass(frozen=True, eq=False)
class Samples:
    """Queries and the weight of each in the fit."""

    queries: Queries  # (n, width)
    weights: FloatArray  # (n,)
    due: FloatArray | None = None  # (n,) share of the draws that are of its size; None: unknown


class Sampler(Protocol):
    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples: ...


@runtime_checkable
class TwoStages(Sampler, Protocol):
    """A sampler whose further queries depend on the answers to its first."""

    def further(self, document: Document, first: Samples, scores: FloatArray) -> Samples:
        """The whole design, the first queries included, from their scores (n,) or (n, classes)."""
        ...


def distinct_rows(
    fixed: NDArray[Any], draw: Callable[[int], NDArray[Any]], n_rows: int
) -> NDArray[Any]:
    """The fixed rows, then drawn ones that differ from all before: at most n_rows in all.

    Always drawn in blocks of BLOCK rows, so that a larger design of one seed begins with the rows
    of a smaller one.
    """
    blocks = [fixed[:n_rows]]
    first = {key: at for at, key in enumerate(row_keys(blocks[0]))}  # a row → where it came first
    n_drawn = len(blocks[0])
    for _ in range(MAX_ROUNDS * (1 + n_rows // BLOCK)):
        if len(first) >= n_rows:
            break
        blocks.append(draw(BLOCK))
        for at, key in enumerate(row_keys(blocks[-1]), n_drawn):
            first.setdefault(key, at)
        n_drawn += BLOCK
    return np.concatenate(blocks)[list(first.values())[:n_rows]]


def random_subsets(sizes: NDArray[np.int_], n_units: int, rng: np.random.Generator) -> BoolArray:
    """One random subset of each size: the units with the `size` smallest random keys."""
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
