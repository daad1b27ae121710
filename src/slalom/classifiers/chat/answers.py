"""From the reply of a chat server to one logit per label.

A label's logit is the log-probability that its answer is begun, summed over the tokens that begin
it (" pos", "Pos", "positive" for the answer "positive"). A label without such a token among the
listed candidates is *censored*: its logit is an upper bound, the smaller of the lowest listed
log-probability and the log of the remaining mass. Samples are counted with Laplace smoothing,
(n_label + 1) / (n + n_labels).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from slalom.classifiers.chat.replies import Candidates, Samples
from slalom.errors import ClassifierError, InputError, Setting

MIN_MASS = 1e-6  # listed probabilities are rounded: a smaller remainder is not known
MIN_PREFIX = 3  # bytes: "pos" begins "positive", but "I" does not begin "irrelevant"


@dataclass(frozen=True)
class Answer:
    """One logit per label, and how far it can be trusted."""

    logits: tuple[float, ...]
    censored: tuple[bool, ...]  # True: the logit is a bound
    error: float = 0.0  # of the log-odds, where they were sampled
    unanimous: bool = False  # all samples named one label
    likeliest: str = ""  # what the model is most likely to say, for messages

    @property
    def names_no_label(self) -> bool:
        return all(self.censored)


@dataclass(frozen=True)
class Spellings:
    """What the model says for each label, and which token begins which of them."""

    answers: tuple[str, ...]
    ignore_case: bool  # no two answers differ in case alone

    def owners(self, token: str) -> list[int]:
        """The labels whose answer begins with this token."""
        prefix = self._normalised(token)
        if not prefix:
            return []
        answers = [self._normalised(answer) for answer in self.answers]
        equal = [at for at, answer in enumerate(answers) if answer == prefix]
        if equal or len(prefix.encode()) < MIN_PREFIX:
            return equal
        return [at for at, answer in enumerate(answers) if answer.startswith(prefix)]

    def _normalised(self, text: str) -> str:
        return text.strip().casefold() if self.ignore_case else text.strip()


def spellings_of(labels: Mapping[str, str]) -> Spellings:
    """The answers of the labels, or a sentence about why the model could not tell them apart."""
    if not isinstance(labels, Mapping) or len(labels) < 2:
        raise InputError(
            Setting("labels"),
            f" {labels!r} is not enough: give two labels or more, each with what the model says "
            'for it, such as "0" for neg and "1" for pos',
        )
    for label, answer in labels.items():
        if not isinstance(label, str) or not isinstance(answer, str) or not answer.strip():
            raise InputError(f"label {label!r} has no answer to look for: {answer!r}")
    answers = tuple(answer.strip() for answer in labels.values())
    ignore_case = len({answer.casefold() for answer in answers}) == len(set(answers))
    spellings = Spellings(answers, ignore_case)
    _check_first_words(labels, spellings)
    return spellings


def _check_first_words(labels: Mapping[str, str], spellings: Spellings) -> None:
    first = [answer.split()[0].casefold() for answer in spellings.answers]
    if not spellings.ignore_case:
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
    ambiguous, shared = 0.0, ""
    listed = 0.0
    for token, logprob in candidates.tokens:
        probability = math.exp(min(logprob, 0.0))
        listed += probability
        owners = spellings.owners(token)
        if len(owners) == 1:
            mass[owners[0]] += probability
        elif owners:
            ambiguous, shared = ambiguous + probability, token
    if ambiguous > sum(mass):
        one, other, *_ = spellings.owners(shared)
        raise _shared(spellings.answers[one], spellings.answers[other], shared)
    lowest = min(logprob for _, logprob in candidates.tokens)
    bound = min(lowest, math.log(max(1.0 - listed, MIN_MASS)))
    return Answer(
        tuple(math.log(p) if p > 0 else bound for p in mass),
        tuple(p <= 0 for p in mass),
        likeliest=candidates.tokens[0][0],
    )


def answer_from_samples(samples: Samples, spellings: Spellings) -> Answer:
    """Smoothed shares of the samples that name a label; the other samples are not counted."""
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
        likeliest=samples.texts[0] if samples.texts else "",
    )


def check_named(answers: Sequence[Answer], spellings: Spellings, model: str) -> None:
    """A model that mostly says something else was asked the wrong way."""
    lost = [answer for answer in answers if answer.names_no_label]
    if len(lost) * 2 > len(answers):
        likeliest = ", ".join(sorted({repr(answer.likeliest) for answer in lost})[:5])
        raise ClassifierError(
            f"{model} named no label in {len(lost)} of {len(answers)} answers: it said {likeliest} "
            f"where one of {', '.join(map(repr, spellings.answers))} was expected; change the "
            "prompt or the labels' answers"
        )
