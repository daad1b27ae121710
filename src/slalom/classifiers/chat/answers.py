"""From what a chat server said to one logit per label.

A label's logit is the log-probability that its answer is begun: summed over the spellings that
do so (" pos", "Pos", "positive" for the answer "positive"). A label that is not among the listed
candidates is *censored*; it gets a bound, the smaller of the lowest listed log-probability and
the log of the mass that is left. Samples are counted and smoothed: (n_label + 1) / (n + n_labels).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slalom.classifiers.chat.replies import Candidates, Samples
from slalom.errors import ClassifierError, InputError

LEAST_MASS = 1e-6  # rounded log-probabilities say nothing about less
LEAST_PREFIX = 3  # bytes: "pos" begins "positive", but "I" does not begin "irrelevant"


@dataclass(frozen=True)
class Answer:
    """One logit per label, and how far it can be trusted."""

    logits: tuple[float, ...]
    censored: tuple[bool, ...]  # True: the logit is a bound
    error: float = 0.0  # of the log-odds, where they were sampled
    unanimous: bool = False  # all samples named one label
    said: str = ""  # what the model is most likely to say, for messages

    @property
    def names_no_label(self) -> bool:
        return all(self.censored)


@dataclass(frozen=True)
class Spellings:
    """What the model says for each label, and which token begins which of them."""

    answers: tuple[str, ...]
    fold: bool  # case does not matter, as no two answers differ in it alone

    def owners(self, token: str) -> list[int]:
        """The labels whose answer begins with this token."""
        begun = self._seen(token)
        if not begun:
            return []
        whole = [at for at, answer in enumerate(self.answers) if self._seen(answer) == begun]
        if whole or len(begun.encode()) < LEAST_PREFIX:
            return whole
        return [
            at for at, answer in enumerate(self.answers) if self._seen(answer).startswith(begun)
        ]

    def _seen(self, text: str) -> str:
        return text.strip().casefold() if self.fold else text.strip()


def spellings_of(labels: Mapping[str, str]) -> Spellings:
    """The answers of the labels, or a sentence about why the model could not tell them apart."""
    if not isinstance(labels, Mapping) or len(labels) < 2:
        raise InputError(
            f"labels={labels!r} is not enough: give two labels or more, each with what the model "
            'says for it, such as {"neg": "0", "pos": "1"}'
        )
    for label, answer in labels.items():
        if not isinstance(label, str) or not isinstance(answer, str) or not answer.strip():
            raise InputError(f"label {label!r} has no answer to look for: {answer!r}")
    answers = tuple(answer.strip() for answer in labels.values())
    fold = len({answer.casefold() for answer in answers}) == len(set(answers))
    spellings = Spellings(answers, fold)
    _check_first_words(labels, spellings)
    return spellings


def _check_first_words(labels: Mapping[str, str], spellings: Spellings) -> None:
    first = [answer.split()[0].casefold() for answer in spellings.answers]
    if not spellings.fold:
        first = [answer.split()[0] for answer in spellings.answers]
    names = list(labels)
    for one, begin in enumerate(first):
        for other, word in enumerate(first):
            if one != other and word.startswith(begin):
                raise _shared(names[one], names[other], spellings.answers[one])


def _shared(one: str, other: str, token: str) -> InputError:
    return InputError(
        f"the labels {one!r} and {other!r} share their first token {token!r}, and only the first "
        "token of an answer is read: choose answers that begin differently, such as 0 and 1"
    )


def answer_from_candidates(candidates: Candidates, spellings: Spellings) -> Answer:
    """Log-probabilities summed by label; a missing label gets a bound and is marked."""
    mass = [0.0] * len(spellings.answers)
    unclear, shared = 0.0, ""
    listed = 0.0
    for token, logprob in candidates.tokens:
        probability = math.exp(min(logprob, 0.0))
        listed += probability
        owners = spellings.owners(token)
        if len(owners) == 1:
            mass[owners[0]] += probability
        elif owners:
            unclear, shared = unclear + probability, token
    if unclear > sum(mass):
        one, other, *_ = spellings.owners(shared)
        raise _shared(spellings.answers[one], spellings.answers[other], shared)
    lowest = min(logprob for _, logprob in candidates.tokens)
    bound = min(lowest, math.log(max(1.0 - listed, LEAST_MASS)))
    return Answer(
        tuple(math.log(p) if p > 0 else bound for p in mass),
        tuple(p <= 0 for p in mass),
        said=candidates.tokens[0][0],
    )


def answer_from_samples(samples: Samples, spellings: Spellings) -> Answer:
    """Smoothed shares of the samples that name a label; others say nothing."""
    counts = [0] * len(spellings.answers)
    for text in samples.texts:
        owners = spellings.owners(text)
        if len(owners) == 1:
            counts[owners[0]] += 1
    total = sum(counts)
    shares = [(count + 1) / (total + len(counts)) for count in counts]
    top = max(counts) + 1
    rest = total + len(counts) - top
    return Answer(
        tuple(math.log(share) for share in shares),
        (total == 0,) * len(counts),  # a count of 0 is an answer; no samples at all are not
        error=math.sqrt(1 / top + 1 / rest),
        unanimous=max(counts) == total,
        said=samples.texts[0] if samples.texts else "",
    )


def check_named(answers: Sequence[Answer], spellings: Spellings, model: str) -> None:
    """A model that mostly says something else was asked the wrong way."""
    lost = [answer for answer in answers if answer.names_no_label]
    if len(lost) * 2 > len(answers):
        said = ", ".join(sorted({repr(answer.said) for answer in lost})[:5])
        raise ClassifierError(
            f"{model} named no label in {len(lost)} of {len(answers)} answers: it said {said} "
            f"where one of {', '.join(map(repr, spellings.answers))} was expected; change the "
            "prompt or the labels' answers"
        )
