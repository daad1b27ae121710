"""A language model and its tokenizer as what goes on with a prompt: local models.

This part knows tokens, chat templates and the end of an answer, nothing of sources.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from slalom.classifiers.fingerprint import fingerprint
from slalom.classifiers.huggingface.calls import context_length, name_of
from slalom.classifiers.huggingface.causal import check_decoder
from slalom.classifiers.huggingface.continuations import Tell, likelihoods, looks_ahead, written
from slalom.classifiers.huggingface.encoding import Encoded
from slalom.classifiers.huggingface.tokenizing import checked_tokenizer, encode
from slalom.document import FloatArray
from slalom.errors import InputError


class LocalWriter:
    """A causal language model of transformers with its tokenizer."""

    def __init__(self, model: Any, tokenizer: Any, name: str | None = None) -> None:
        check_decoder(model)
        if tokenizer is None:
            raise InputError(
                f"{type(model).__name__} cannot read text without its tokenizer: "
                "give (model, tokenizer), or the folder that holds both"
            )
        self.model, self.tokenizer = model, checked_tokenizer(tokenizer)
        self._name = name
        self.n_computed = 0  # tokens; of shared beginnings each once
        if looks_ahead(model, self._two_tokens()):
            raise InputError(
                f"{type(model).__name__} attends to later words, as an encoder does: "
                "a causal language model is needed (AutoModelForCausalLM)"
            )

    @property
    def name(self) -> str:
        return self._name or name_of(self.model)

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.model, str(getattr(self.tokenizer, "chat_template", None)))

    @property
    def limit(self) -> int:
        return context_length(self.model, self.tokenizer)

    def addressed(self, content: str) -> str:
        """The content as a user's message in the chat template; without one, as it stands."""
        if not self.has_template:
            return content
        message = [{"role": "user", "content": content}]
        try:
            return str(
                self.tokenizer.apply_chat_template(
                    message, tokenize=False, add_generation_prompt=True
                )
            )
        except Exception as problem:
            raise InputError(
                f"the chat template of {self.name} refused the question: {problem}"
            ) from problem

    def write(self, prompt: str, most: int) -> str:
        """The likeliest answer, token by token, at most so many."""
        row = self.ids(prompt)
        room = self.limit - len(row)
        if room < 1:
            raise InputError(_too_long(self.name, len(row) + 1, self.limit))
        said = written(self.model, row, self._ends(), min(most, room))
        return str(self.tokenizer.decode(said, skip_special_tokens=True)).strip()

    def tokens(self, prompt: str, continuation: str) -> tuple[tuple[int, int], ...]:
        """(start, end) of each token of the continuation of this prompt."""
        _, spans = self.continued(prompt, continuation)
        return spans

    def count(self, texts: Sequence[str]) -> list[int]:
        special = not self.has_template
        return [len(encode(self.tokenizer, text, special=special).ids) for text in texts]

    def log_odds(self, prompts: Sequence[str], continuation: str, *, tell: Tell) -> FloatArray:
        """(n_prompts, n_tokens) of each token of the continuation of each prompt."""
        rows = [self.ids(prompt) for prompt in prompts]
        if not all(rows):
            raise InputError(
                f"without any source the prompt is empty, and {self.name} reads at least one "
                "token: write some words beside {sources} and {question}"
            )
        ids, _ = self.continued(prompts[0], continuation)
        longest = max(map(len, rows)) + len(ids)
        if longest > self.limit:
            raise InputError(_too_long(self.name, longest, self.limit))
        found, n_computed = likelihoods(self.model, rows, ids, tell)
        self.n_computed += n_computed
        return found

    @property
    def has_template(self) -> bool:
        return bool(getattr(self.tokenizer, "chat_template", None))

    def _encoded(self, text: str) -> Encoded:
        """Template texts hold their special tokens already."""
        return encode(self.tokenizer, text, special=not self.has_template).open_ended()

    def ids(self, prompt: str) -> list[int]:
        """Tokens of the prompt, without the special ones that would end it."""
        return self._encoded(prompt).ids

    def continued(
        self, prompt: str, continuation: str
    ) -> tuple[list[int], tuple[tuple[int, int], ...]]:
        """Ids and spans of the continuation's tokens, as they follow the prompt."""
        before = self.ids(prompt)
        read, first, at = self._encoded(prompt + continuation), len(before), len(prompt)
        if read.ids[:first] != before or len(read.ids) == first:  # the two would melt into a token
            alone = continuation.lstrip()
            read, first = encode(self.tokenizer, alone, special=False), 0
            at = len(alone) - len(continuation)
        own, offsets = read.ids[first:], read.offsets[first:]
        if self.tokenizer.unk_token_id is not None and self.tokenizer.unk_token_id in own:
            where = offsets[own.index(self.tokenizer.unk_token_id)]
            piece = continuation[max(0, where[0] - at) : where[1] - at]
            raise InputError(
                f"the tokenizer of {self.name} cannot write the answer: it has no token for "
                f"{piece!r}"
            )
        spans = tuple((max(0, a - at), max(0, b - at)) for a, b in offsets)
        return own, spans

    def _ends(self) -> frozenset[int]:
        """Every token that ends an answer, by the model's configuration and the tokenizer's."""
        stated = getattr(getattr(self.model, "generation_config", None), "eos_token_id", None)
        known = stated if isinstance(stated, list | tuple) else [stated]
        return frozenset(end for end in (*known, self.tokenizer.eos_token_id) if end is not None)

    def _two_tokens(self) -> tuple[int, int]:
        n_tokens = len(self.tokenizer)
        first, other = np.linspace(n_tokens // 3, n_tokens - 1, 2).astype(int)
        return int(first), int(other)


def _too_long(name: str, n_tokens: int, limit: int) -> str:
    return (
        f"sources, question and answer have {n_tokens} tokens, and {name} reads {limit}: "
        "leave sources out, or shorten them"
    )
