"""From the reply of a chat server to one logit per label.

A reply is read from its JSON without trusting any one server's capabilities:

    candidates   the most likely first tokens with their log-probabilities
    samples      first tokens drawn one after the other

Tokens come as text, as raw byte-pair pieces ("Ġgood", "▁good"), as bytes or as byte names
("<0x30>"); lists come unsorted; the token beside a list may or may not be in it.

A label's logit is the log-probability that its answer is begun, summed over the tokens that begin
it (" pos", "Pos", "positive" for the answer "positive"). A label without such a token among the
listed candidates is *censored*: its logit is an upper bound, the smaller of the lowest listed
log-probability and the log of the remaining mass. Samples are counted with Laplace smoothing,
(n_label + 1) / (n + n_labels).
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from slalom.errors import ClassifierError, InputError, Setting

IMPOSSIBLE = -100.0  # servers write −9999 or −inf for tokens that cannot come
BYTE_NAME = re.compile(r"<0x([0-9A-Fa-f]{2})>")


Candidates = tuple[tuple[str, float], ...]  # first tokens, as text, with log-probabilities


class UnreadableReply(Exception):  # noqa: N818  # caught by who asked, who may ask again
    """The server answered, but not with a chat completion."""


def response_of(body: str) -> dict[str, Any]:
    """The JSON of a completion, with at least one choice in it."""
    try:
        response = json.loads(body)
    except ValueError as problem:
        raise UnreadableReply(f"it did not send JSON: {body[:60]!r}") from problem
    choices = response.get("choices") if isinstance(response, dict) else None
    if not isinstance(choices, list) or not all(isinstance(c, dict) for c in choices):
        raise UnreadableReply(f"it sent no choices: {body[:60]!r}")
    if not choices:
        raise UnreadableReply("it sent an empty list of choices")
    return dict(response)


def candidates_of(response: Mapping[str, Any]) -> Candidates | None:
    """The candidates for the first token; None where the server gives no log-probabilities."""
    try:
        content = (response["choices"][0].get("logprobs") or {}).get("content") or []
        if not content:
            return None
        listed = content[0].get("top_logprobs") or []
        pairs = [(_text(entry), float(entry["logprob"])) for entry in listed]
        beside = content[0]
        if "token" in beside and "logprob" in beside:
            own = (_text(beside), float(beside["logprob"]))
            pairs += [own] * (own[0] not in {token for token, _ in pairs})
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise UnreadableReply(f"it sent log-probabilities in an unknown form ({problem!r})") from (
            problem
        )
    possible = [(token, p) for token, p in pairs if math.isfinite(p) and p > IMPOSSIBLE]
    return tuple(sorted(possible, key=lambda pair: -pair[1])) or None


def texts_of(response: Mapping[str, Any]) -> tuple[str, ...]:
    """What each choice says."""
    try:
        contents = [choice["message"].get("content") for choice in response["choices"]]
    except (KeyError, TypeError, AttributeError) as problem:
        raise UnreadableReply(f"it sent a choice without a message ({problem!r})") from problem
    return tuple(text if isinstance(text, str) else "" for text in contents)


def tokens_used(response: Mapping[str, Any]) -> int | None:
    """What the server says it will bill, if it says so."""
    usage = response.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    return total if isinstance(total, int) and total >= 0 else None


def _text(entry: Mapping[str, Any]) -> str:
    """A token as the text it stands for."""
    spelled = entry.get("bytes")
    if isinstance(spelled, list) and spelled:
        return bytes(spelled).decode("utf-8", "replace")
    token = str(entry["token"])
    named = BYTE_NAME.fullmatch(token)
    if named:
        return bytes([int(named[1], 16)]).decode("utf-8", "replace")
    return _from_pieces(token)


def _from_pieces(token: str) -> str:
    """Byte-pair pieces spell each byte as one printable character; other tokens stay."""
    if all(character in _BYTES for character in token):
        try:
            return bytes(_BYTES[character] for character in token).decode()
        except UnicodeDecodeError:
            pass  # a plain é looks like half a piece
    return token.replace("▁", " ")


def _byte_pair_alphabet() -> dict[str, int]:
    """GPT-2's table: printable bytes stand for themselves, the others follow from U+0100 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    shown = {chr(byte): byte for byte in printable}
    return shown | {chr(256 + place): byte for place, byte in enumerate(others)}


_BYTES = _byte_pair_alphabet()


MIN_MASS = 1e-6  # listed probabilities are rounded: a smaller remainder is not known
MIN_PREFIX = 3  # bytes: "pos" begins "positive", but "I" does not begin "irrelevant"


@dataclass(frozen=True)
class LabelAnswer:
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


def answer_from_candidates(candidates: Candidates, spellings: Spellings) -> LabelAnswer:
    """Log-probabilities summed by label; a missing label gets a bound and is marked."""
    mass = [0.0] * len(spellings.answers)
    ambiguous, shared = 0.0, ""
    listed = 0.0
    for token, logprob in candidates:
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
    lowest = min(logprob for _, logprob in candidates)
    bound = min(lowest, math.log(max(1.0 - listed, MIN_MASS)))
    return LabelAnswer(
        tuple(math.log(p) if p > 0 else bound for p in mass),
        tuple(p <= 0 for p in mass),
        likeliest=candidates[0][0],
    )


def answer_from_samples(samples: Sequence[str], spellings: Spellings) -> LabelAnswer:
    """Smoothed shares of the samples that name a label; the other samples are not counted."""
    counts = [0] * len(spellings.answers)
    for text in samples:
        owners = spellings.owners(text)
        if len(owners) == 1:
            counts[owners[0]] += 1
    total = sum(counts)
    shares = [(count + 1) / (total + len(counts)) for count in counts]
    top = max(counts) + 1
    rest = total + len(counts) - top
    return LabelAnswer(
        tuple(math.log(share) for share in shares),
        (total == 0,) * len(counts),  # a count of 0 is an answer; no samples at all are not
        error=math.sqrt(1 / top + 1 / rest),
        unanimous=max(counts) == total,
        likeliest=samples[0] if samples else "",
    )


def check_named(answers: Sequence[LabelAnswer], spellings: Spellings, model: str) -> None:
    """A model that mostly says something else was asked the wrong way."""
    lost = [answer for answer in answers if answer.names_no_label]
    if len(lost) * 2 > len(answers):
        likeliest = ", ".join(sorted({repr(answer.likeliest) for answer in lost})[:5])
        raise ClassifierError(
            f"{model} named no label in {len(lost)} of {len(answers)} answers: it said {likeliest} "
            f"where one of {', '.join(map(repr, spellings.answers))} was expected; change the "
            "prompt or the labels' answers"
        )
