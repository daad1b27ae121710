"""A user's tokenizer: checked, and asked for its ordinary reading; what it puts in the place of
absent units. It comes back exactly as it was.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from slalom.classifiers.huggingface.batching import Frame, Windowed, frame_in
from slalom.classifiers.huggingface.calls import preserve_tokenizer
from slalom.classifiers.huggingface.encoding import Encoded
from slalom.document import Document, Text
from slalom.errors import InputError, Setting


def checked_tokenizer(tokenizer: Any) -> Any:
    """The tokenizer, if it says which characters its tokens stand for."""
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            f"{type(tokenizer).__name__} does not say which characters a token stands for: "
            "a fast tokenizer is needed (AutoTokenizer.from_pretrained gives one)"
        )
    return tokenizer


def encode(tokenizer: Any, text: Text, *, special: bool = True) -> Encoded:
    """The tokenizer's ordinary reading, special tokens included, nothing cut off."""
    sides = (text,) if isinstance(text, str) else text
    with preserve_tokenizer(tokenizer):
        encoding = tokenizer(
            *sides,
            add_special_tokens=special,
            padding=False,
            truncation=False,
            return_offsets_mapping=True,
            verbose=False,  # its warning about long texts would stay on the user's tokenizer
        )
    ids = encoding["input_ids"]
    types = encoding.get("token_type_ids") or [0] * len(ids)
    return Encoded(ids, types, encoding["offset_mapping"], encoding.sequence_ids(0))


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
