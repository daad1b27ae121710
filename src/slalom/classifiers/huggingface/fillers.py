"""Documents of tokens with something to put in the place of every unit: mask tokens or a text."""

from dataclasses import replace
from typing import Any

import numpy as np

from slalom.classifiers.huggingface.batching import Frame
from slalom.classifiers.huggingface.windows import Windowed, frame_in
from slalom.document import Document
from slalom.errors import InputError, Setting


def with_fillers(document: Document, tokenizer: Any, filler: str | None) -> Document:
    """Units 0 … n − 1 as they are, then their fillers; a mask for each token of the unit."""
    frame, n_units = frame_in(document), document.n_units
    n_tokens = frame.lengths[:n_units]
    if filler is None:
        if tokenizer.mask_token_id is None:
            raise InputError(
                "the tokenizer has no mask token: give the text that stands for absent words, "
                "such as ",
                Setting("absent", "…"),
            )
        sizes = n_tokens
        ids = np.full(int(sizes.sum()), tokenizer.mask_token_id)
    else:
        one = tokenizer(" " + filler.strip(), add_special_tokens=False)["input_ids"]
        if not one:
            raise InputError(f"the tokenizer makes no tokens of {filler!r}: give another text")
        sizes = np.full(n_units, len(one))
        ids = np.tile(one, n_units)
    types = np.repeat(frame.types[frame.starts[:n_units]], sizes)
    end = int(n_tokens.sum())
    doubled = Frame.of(
        np.concatenate([frame.ids[:end], ids, frame.ids[end:]]),
        np.concatenate([frame.types[:end], types, frame.types[end:]]),
        np.concatenate([n_tokens, sizes, frame.lengths[n_units:-1]]),
        np.tile(frame.slots, 2),
    )
    outer = document.frame
    return replace(
        document,
        units=document.units * 2,
        spans=document.spans * 2,
        keys=document.keys * 2,
        features=np.arange(2 * n_units, dtype=np.int32),
        sizes=np.maximum(n_tokens, sizes).astype(np.int32),
        frame=replace(outer, frame=doubled) if isinstance(outer, Windowed) else doubled,
    )
