"""What a chat server said, read from its JSON without trusting any one server's capabilities.

    Candidates   the most likely first tokens with their log-probabilities
    Samples      first tokens drawn one after the other

Tokens come as text, as raw byte-pair pieces ("Ġgood", "▁good"), as bytes or as byte names
("<0x30>"); lists come unsorted; the token beside a list may or may not be in it.
"""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

IMPOSSIBLE = -100.0  # servers write −9999 or −inf for tokens that cannot come
BYTE_NAME = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True)
class Candidates:
    """Possible first tokens, as text, each with its log-probability."""

    tokens: tuple[tuple[str, float], ...]

    def to_json(self) -> str:
        return json.dumps({"candidates": self.tokens}, ensure_ascii=False)


@dataclass(frozen=True)
class Samples:
    """First tokens as drawn."""

    texts: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json.dumps({"samples": self.texts}, ensure_ascii=False)


class UnreadableReply(Exception):  # noqa: N818  # caught by who asked, who may ask again
    """The server answered, but not with a chat completion."""


def candidates_from_json(text: str) -> Candidates:
    return Candidates(tuple((token, logprob) for token, logprob in json.loads(text)["candidates"]))


def samples_from_json(text: str) -> Samples:
    return Samples(tuple(json.loads(text)["samples"]))


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
    return Candidates(tuple(sorted(possible, key=lambda pair: -pair[1]))) if possible else None


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
