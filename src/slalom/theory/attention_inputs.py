"""The word ids that the attention model reads when only some units are shown.

Absence is replacement: a unit that is not shown is replaced by the unknown word h, as in the LIME
of Lopardo et al. Further occurrences of a unit fill the first free positions. A query is therefore
a multiset: its units keep the positions they have in the text, whatever their order.
"""

from dataclasses import dataclass

import numpy as np

from slalom.document import Document, IntArray, Queries
from slalom.errors import InputError
from slalom.theory.attention_model import AttentionModel, WordIds


@dataclass(frozen=True, eq=False)
class EncodedText:
    """The ids of a text's words, and the unit that each belongs to."""

    ids: WordIds  # (T,)
    units: IntArray  # (T,), −1 for words outside every unit, which are always shown


def encoded_text(document: Document) -> EncodedText:
    """What `AttentionClassifier.split` stored in the document."""
    if not isinstance(document.frame, EncodedText):
        raise InputError("this document was split by another classifier: split it with this one")
    return document.frame


def input_ids(model: AttentionModel, document: Document, queries: Queries) -> WordIds:
    """The word ids of each query: (n_queries, n_positions)."""
    encoded = encoded_text(document)
    n_times = document.untied().count(queries).astype(np.int64)  # (n_queries, n_units)
    always = np.ones((len(queries), 1), dtype=np.int64)
    shown = np.hstack([n_times, always])[:, encoded.units] > 0  # unit −1 is the last column
    ids = np.full((len(queries), model.n_positions), model.unknown, dtype=np.int64)
    ids[:, : len(encoded.ids)] = np.where(shown, encoded.ids, model.unknown)
    for row in np.nonzero((n_times > 1).any(axis=1))[0]:
        repeats = np.repeat(np.arange(document.n_units), np.maximum(n_times[row] - 1, 0))
        words = np.concatenate([encoded.ids[encoded.units == unit] for unit in repeats])
        free = np.ones(model.n_positions, dtype=bool)
        free[: len(encoded.ids)] = ~shown[row]
        positions = np.nonzero(free)[0]
        if len(positions) < len(words):
            raise InputError(
                f"a query repeats {len(words)} words and {len(positions)} positions are free: "
                "build the model with more positions"
            )
        ids[row, positions[: len(words)]] = words
    return ids
