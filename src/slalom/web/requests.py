"""Requests: JSON in, checked dataclasses out, or a sentence about what is wrong."""

import json
from dataclasses import dataclass
from typing import Any

from slalom.classifiers.base import TOO_LONG, UNIT_KINDS, Units, checked_text
from slalom.document import Text
from slalom.explainers.base import Explainer
from slalom.explainers.methods import method_named
from slalom.explainers.phrases import PHRASE, by_phrases
from slalom.web.limits import Limits, Refusal
from slalom.web.models import Model, Models


@dataclass(frozen=True)
class ExplanationRequest:
    """One explanation, as a client wants it."""

    model: Model
    text: Text
    method: Explainer
    target: str | int | None
    units: Units
    n_queries: int | None
    seed: int
    too_long: str


FIELDS = ("text", "model", "method", "target", "units", "n_queries", "seed", "too_long")


def parsed(body: bytes) -> dict[str, Any]:
    """A JSON object; anything else is refused."""
    try:
        record = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise _wrong("the request is not JSON") from problem
    if not isinstance(record, dict):
        raise _wrong(f"the request must be a JSON object, not a {type(record).__name__}")
    return record


def explanation_request(
    record: dict[str, Any], models: Models, limits: Limits
) -> ExplanationRequest:
    """Every field checked; unknown ones are named, not ignored."""
    check_fields(record, FIELDS)
    units = one_of(record.get("units"), "units", (None, *UNIT_KINDS, PHRASE))
    too_long = one_of(record.get("too_long", "windows"), "too_long", TOO_LONG)
    target = record.get("target")
    if isinstance(target, bool) or not isinstance(target, str | int | None):
        raise _wrong(f"target must be a label, a number, 'all' or null, not {target!r}")
    method = record.get("method", "slalom")
    if not isinstance(method, str):
        raise _wrong(f"method must be a name, not {method!r}")
    chosen, cut = by_phrases(method_named(method), units, str(too_long))
    return ExplanationRequest(
        model=models.named(record.get("model")),
        text=text_of(record.get("text"), limits),
        method=chosen,
        target=target,
        units=cut,
        n_queries=whole(record.get("n_queries"), "n_queries", 1, limits.queries),
        seed=whole(record.get("seed", 0), "seed", 0, 2**31 - 1) or 0,
        too_long=str(too_long),
    )


def text_of(given: object, limits: Limits) -> Text:
    """One text, or a pair as a list of two."""
    text = tuple(given) if isinstance(given, list) else given
    if given is None:
        raise _wrong("the request has no text")
    length = sum(len(side) for side in text) if isinstance(text, tuple) else len(str(text))
    if length > limits.text:
        raise Refusal(
            413, "too-long", f"the text has {length} characters: at most {limits.text} are read"
        )
    return checked_text(text)


def check_fields(record: dict[str, Any], known: tuple[str, ...]) -> None:
    for name in record:
        if name not in known:
            raise _wrong(f"unknown field {name!r}: expected {', '.join(known)}")


def one_of(given: object, name: str, known: tuple[str | None, ...]) -> str | None:
    if given not in known:
        names = ", ".join("null" if one is None else one for one in known)
        raise _wrong(f"{name} must be one of {names}, not {given!r}")
    return given


def positions(given: object, name: str, n_units: int) -> list[int]:
    """Distinct positions of units."""
    if not isinstance(given, list) or not all(
        isinstance(unit, int) and not isinstance(unit, bool) and 0 <= unit < n_units
        for unit in given
    ):
        raise _wrong(f"{name} must be a list of positions from 0 to {n_units - 1}")
    return sorted(set(given))


def whole(given: object, name: str, least: int, most: int) -> int | None:
    """A whole number within bounds, or None where none is given."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not least <= given <= most:
        raise _wrong(f"{name} must be a whole number from {least} to {most}, not {given!r}")
    return given


def _wrong(sentence: str) -> Refusal:
    return Refusal(400, "wrong", sentence)
