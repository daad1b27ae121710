"""What stands in the places of the attention model when only some units are shown.

Absence is replacement: a unit that is not shown leaves the unknown word h in its place, as in the
LIME of Lopardo et al. A unit shown a second time stands in the first free places. Queries are
therefore sets with repetitions; their order is the text's.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import Document, IntArray, Queries
from slalom.errors import InputError
from slalom.theory.attention_model import AttentionModel, WordIds


@dataclass(frozen=True, eq=False)
class Places:
    """The words of a text by number, and the unit each belongs to."""

    ids: WordIds  # (T,)
    units: IntArray  # (T,), −1 where always shown


def places_of(document: Document) -> Places:
    """What the split left in the document."""
    if not isinstance(document.frame, Places):
        raise InputError("this document was split by another classifier: split it with this one")
    return document.frame


def shown_ids(model: AttentionModel, document: Document, queries: Queries) -> WordIds:
    """What the model reads for each query: (n_queries, n_places)."""
    places = places_of(document)
    n_times = document.untied().count(queries).astype(np.int64)  # (n_queries, n_units)
    always = np.ones((len(queries), 1), dtype=np.int64)
    shown = np.hstack([n_times, always])[:, places.units] > 0  # unit −1 is the last column
    ids = np.full((len(queries), model.n_places), model.unknown, dtype=np.int64)
    ids[:, : len(places.ids)] = np.where(shown, places.ids, model.unknown)
    for row in np.nonzero((n_times > 1).any(axis=1))[0]:
        again = np.repeat(np.arange(document.n_units), np.maximum(n_times[row] - 1, 0))
        words = np.concatenate([places.ids[places.units == unit] for unit in again])
        free = np.ones(model.n_places, dtype=bool)
        free[: len(places.ids)] = ~shown[row]
        where = np.nonzero(free)[0]
        if len(where) < len(words):
            raise InputError(
                f"a query repeats {len(words)} words and {len(where)} places are free: "
                "build the model with more places"
            )
        ids[row, where[: len(words)]] = words
    return ids
