"""Language models for tests: one whose every log-probability is known, and tiny real ones."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from slalom.language.scoring import AnswerScorer
from slalom.language.sources import sources_of

FACTS = ("Anna has a cat.", "The sky is grey.", "Ben lives in Rome.", "It rained.", "Ben is old.")
ANSWER = "Ben lives in Rome. He is old."
Odds = Callable[[str], Sequence[float]]  # what is shown → log-odds of each word of the answer


@dataclass
class KnownWriter:
    """Says ANSWER; how likely each of its words is depends on what is shown, by `odds`."""

    odds: Odds
    asked: list[str] = field(default_factory=list)
    name: str = "known"
    fingerprint: str = "known"
    has_template: bool = True

    def addressed(self, content: str) -> str:
        return content

    def write(self, prompt: str, most: int) -> str:
        return ANSWER

    def tokens(self, prompt: str, continuation: str) -> tuple[tuple[int, int], ...]:
        return tuple(match.span() for match in re.finditer(r"\S+", continuation))

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(text.split()) for text in texts]

    def log_odds(self, prompts, continuation, *, tell):
        self.asked += prompts
        for _ in prompts:
            tell(1)
        return np.array([self.odds(prompt) for prompt in prompts], dtype=float)


def words(first: float, second: float) -> list[float]:
    """Log-odds of the seven words: "Rome." gets the first number, "old." the second."""
    return [8.0, 8.0, 8.0, first, 8.0, 8.0, second]


def additive(shown: str) -> list[float]:
    """Rome needs the third fact, old the fifth; the second distracts."""
    rome = -6.0 + 4.0 * (FACTS[2] in shown) - 1.0 * (FACTS[1] in shown)
    return words(rome, -5.0 + 3.0 * (FACTS[4] in shown))


def scorer(odds: Odds = additive, facts: Sequence[str] = FACTS, **options) -> AnswerScorer:
    return AnswerScorer(KnownWriter(odds), sources_of(list(facts)), "Where?", **options)
