"""The answer of a language model, as explanations of it store it: its tokens, and how likely each
was after every subset of the sources that was asked.

    log p(tokens t in P) = −Σ_{t in P} log(1 + exp(−z_t))        z_t: the log-odds of token t
    score of P           = log p − log(1 − p)

So any part P of the answer is scored without asking again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.errors import InputError
from slalom.schema import Within

DECIMALS = 5  # of a token's log-odds: files are small, and read back as they were
LEAST = 1e-300  # of 1 − p, for an answer that is certain


@dataclass(frozen=True, eq=False)
class Answer:
    """What was said, and all that was asked about it."""

    text: str
    names: Annotated[tuple[str, ...], "units"]  # of the sources: titles, or ""
    spans: Annotated[tuple[tuple[int, int], ...], "tokens"]  # (start, end) of each in the text
    present: Annotated[BoolArray, "answers units"]  # which sources were shown
    log_odds: Annotated[FloatArray, "answers tokens"]  # of each token, given those before it
    allowed: Annotated[int | None, Within(1)] = None  # queries; None: as many as were asked

    @property
    def n_tokens(self) -> int:
        return len(self.spans)

    def span_of(self, part: str | Sequence[int]) -> tuple[int, int]:
        """Where a part stands; InputError for one that the answer does not have."""
        if isinstance(part, str):
            start = self.text.find(part) if part.strip() else -1
            if start < 0:
                raise InputError(
                    f"the answer has no part {part!r}: give words of it, or a span (start, end); "
                    f"it says {self.text!r}"
                )
            return start, start + len(part)
        span = tuple(part) if isinstance(part, Iterable) else ()
        whole = all(isinstance(at, int | np.integer) and not isinstance(at, bool) for at in span)
        if len(span) != 2 or not whole or not 0 <= span[0] < span[1] <= len(self.text):
            raise InputError(
                f"the part {part!r} is no span of the answer: "
                f"0 ≤ start < end ≤ {len(self.text)} is needed, or words of it"
            )
        return int(span[0]), int(span[1])

    def tokens_of(self, span: tuple[int, int]) -> BoolArray:
        """(n_tokens,) which tokens share a character with the span."""
        within = [start < span[1] and end > span[0] for start, end in self.spans]
        if not any(within):
            raise InputError(f"the part {self.text[slice(*span)]!r} holds no token of the answer")
        return np.array(within)

    def check(self) -> None:
        """Spans lie in the text; what was asked includes all sources at once."""
        for start, end in self.spans:
            if not 0 <= start <= end <= len(self.text):
                raise ValueError(f"the span {(start, end)} is outside of the answer")
        if not self.spans or not self.present.all(axis=1).any():
            raise ValueError("expected at least one token, and the answer after all sources")


def scores_of(log_odds: FloatArray) -> FloatArray:
    """Log-odds of tokens, one after the other, as that of all of them: (k, n_tokens) → (k,)."""
    log_p = -np.logaddexp(0.0, -log_odds).sum(axis=1)
    return np.asarray(log_p - np.log(np.maximum(-np.expm1(log_p), LEAST)))
