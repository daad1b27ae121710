"""Two strategies of asking a chat model: log-probabilities, or samples where it has none.

A strategy knows what to send and how to read the reply. Replies are stored as they came, so that
other labels cost nothing and more samples only what is new.
"""

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Protocol

import numpy as np

from slalom.classifiers.chat.answers import (
    LabelAnswer,
    Spellings,
    answer_from_candidates,
    answer_from_samples,
    candidates_of,
    texts_of,
)
from slalom.classifiers.chat.server import Session
from slalom.errors import ClassifierError, Setting


class AnswerStrategy(Protocol):
    """How one prompt becomes one answer; `stored` is the reply so far, as JSON."""

    @property
    def key(self) -> str: ...  # keeps the replies of different strategies apart

    def n_requests(self, stored: str | None) -> int:
        """How many requests are still needed, at most."""
        ...

    def ask(self, session: Session, prompt: str, stored: str | None) -> Iterator[str]:
        """Send what is missing; yields the whole reply after each request."""
        ...

    def answer(self, stored: str, spellings: Spellings) -> LabelAnswer: ...

    def remarks(self, answers: Sequence[LabelAnswer]) -> tuple[str, ...]: ...


@dataclass(frozen=True)
class ByLogprobs:
    """One request per prompt: the likeliest first tokens with their log-probabilities."""

    key: str = "candidates"

    def n_requests(self, stored: str | None) -> int:
        return int(stored is None)

    def ask(self, session: Session, prompt: str, stored: str | None) -> Iterator[str]:
        response = session.complete(prompt, {"temperature": 0, "logprobs": True})
        candidates = candidates_of(response)
        if candidates is None:
            raise ClassifierError(
                f"{session.server.model} at {session.server.address} gave no log-probabilities: ",
                "give ",
                Setting("n_samples", 32),
                ", say, to count samples instead, with as many requests per query",
            )
        yield json.dumps({self.key: candidates}, ensure_ascii=False)

    def answer(self, stored: str, spellings: Spellings) -> LabelAnswer:
        return answer_from_candidates(json.loads(stored)[self.key], spellings)

    def remarks(self, answers: Sequence[LabelAnswer]) -> tuple[str, ...]:
        censored = sum(any(answer.censored) for answer in answers)
        lost = sum(answer.names_no_label for answer in answers)
        found = []
        if censored:
            found.append(
                f"in {censored} of {len(answers)} answers a label was not among the tokens listed: "
                "its log-odds are a bound (censored)"
            )
        if lost:
            found.append(f"{lost} of {len(answers)} answers named no label at all")
        return tuple(found)


@dataclass(frozen=True)
class BySampling:
    """`n_samples` samples per prompt at temperature 1, counted."""

    n_samples: int
    key: str = "samples"
    again: int = field(default=0, repr=False)  # how often the same was asked before

    def n_requests(self, stored: str | None) -> int:
        return max(0, self.n_samples - len(self._samples(stored)))

    def ask(self, session: Session, prompt: str, stored: str | None) -> Iterator[str]:
        texts = self._samples(stored)
        while len(texts) < self.n_samples:
            missing = self.n_samples - len(texts)
            wanted = {"temperature": 1, "seed": _seed(prompt, len(texts), self.again)}
            response = session.complete(prompt, wanted | ({"n": missing} if missing > 1 else {}))
            texts += texts_of(response)[:missing]
            yield json.dumps({self.key: texts}, ensure_ascii=False)

    def answer(self, stored: str, spellings: Spellings) -> LabelAnswer:
        return answer_from_samples(self._samples(stored)[: self.n_samples], spellings)

    def remarks(self, answers: Sequence[LabelAnswer]) -> tuple[str, ...]:
        if not answers:
            return ()
        typical = math.sqrt(float(np.mean([answer.error**2 for answer in answers])))
        found = [
            f"each answer is {self.n_samples} samples: its log-odds have a standard error near "
            f"{typical:.2f}, which R² and the errors of the scores include"
        ]
        lost = sum(answer.names_no_label for answer in answers)
        if lost:
            found.append(f"{lost} of {len(answers)} answers named no label at all")
        if self.n_samples > 1 and all(answer.unanimous for answer in answers):
            found.append(
                "the samples of an answer were all the same, for every answer: the server may "
                "not sample at all, and the log-odds say no more than which label wins"
            )
        return tuple(found)

    def _samples(self, stored: str | None) -> list[str]:
        return [] if stored is None else list(json.loads(stored)[self.key])


def _seed(prompt: str, n_before: int, again: int) -> int:
    """The same in every run, but different for every request of a prompt."""
    what = f"{n_before} {prompt}" + (f" again {again}" if again else "")
    return int.from_bytes(sha256(what.encode()).digest()[:4], "big") >> 1
