"""Where units stand among what is always shown, as numbers of parts.

A document is laid out as

    fixed 0 · slot 0 · fixed 1 · slot 1 · … · fixed k

where every unit lives in one slot and the fixed parts (special tokens, separators, text that
is never removed) are always shown. One text has one slot, a pair two; text that the caller
froze splits a slot in two. Whether a part is token ids or characters is not known here.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from slalom.document import END, IntArray, Queries
from slalom.errors import InputError


def check_units(units: NDArray[Any], n_units: int) -> None:
    """An error where a query shows a unit that the document does not have."""
    unknown = (units < 0) | (units >= n_units)
    if unknown.any():
        raise InputError(f"a query shows unit {units[unknown][0]} of a document with {n_units}")


def with_fixed_parts(slots: IntArray, n_fixed: int, queries: Queries) -> NDArray[np.int64]:
    """Queries with the fixed parts put between the slots: (n_queries, width + n_fixed).

    Units keep their numbers; then come the fixed parts, then nothing at all.
    """
    n_units = len(slots)
    check_units(queries[queries != END], n_units)
    nothing = n_units + n_fixed
    shown = queries.astype(np.int64)
    shown[queries == END] = nothing
    fixed = np.tile(np.arange(n_units, nothing), (len(queries), 1))
    if n_fixed == 2:  # one slot: nothing to sort
        return np.concatenate([fixed[:, :1], shown, fixed[:, 1:]], axis=1)
    places = 2 * np.concatenate([slots, np.full(n_fixed + 1, n_fixed)])[shown] + 1
    order = np.argsort(np.concatenate([places, 2 * (fixed - n_units)], axis=1), kind="stable")
    return np.take_along_axis(np.concatenate([shown, fixed], axis=1), order, axis=1)
