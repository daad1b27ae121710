"""A user's tokenizer: checked, asked for its ordinary reading, and written down for others.

It comes back exactly as it was.
"""

from hashlib import blake2b
from pathlib import Path
from typing import Any

from slalom.classifiers.huggingface.calls import preserve_tokenizer
from slalom.classifiers.huggingface.encoding import Encoded
from slalom.classifiers.huggingface.splitter import Splitter
from slalom.document import Text
from slalom.errors import InputError


def checked_tokenizer(tokenizer: Any) -> Any:
    """The tokenizer, if it says which characters its tokens stand for."""
    if not getattr(tokenizer, "is_fast", False):
        raise InputError(
            f"{type(tokenizer).__name__} does not say which characters a token stands for: "
            "a fast tokenizer is needed (AutoTokenizer.from_pretrained gives one)"
        )
    return tokenizer


def encode(tokenizer: Any, text: Text) -> Encoded:
    """The tokenizer's ordinary reading, special tokens included, nothing cut off."""
    sides = (text,) if isinstance(text, str) else text
    with preserve_tokenizer(tokenizer):
        encoding = tokenizer(
            *sides,
            padding=False,
            truncation=False,
            return_offsets_mapping=True,
            verbose=False,  # its warning about long texts would stay on the user's tokenizer
        )
    ids = encoding["input_ids"]
    types = encoding.get("token_type_ids") or [0] * len(ids)
    return Encoded(ids, types, encoding["offset_mapping"], encoding.sequence_ids(0))


def makes_types(tokenizer: Any) -> bool:
    return "token_type_ids" in tokenizer.model_input_names


def written(tokenizer: Any, folder: Path, *, limit: int) -> Splitter:
    """What it reads as it would, for processes on this machine; whoever uses it compares first."""
    path = folder / "tokenizer.json"
    with preserve_tokenizer(tokenizer):
        tokenizer.backend_tokenizer.save(str(path))
    digest = blake2b(path.read_bytes()).hexdigest()
    return Splitter(str(path), digest, makes_types(tokenizer), limit, tokenizer.unk_token_id)
