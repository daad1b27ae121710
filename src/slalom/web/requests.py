"""Requests: from JSON to checked dataclasses, or a sentence about what is wrong.

schema.py reads the dataclasses by their annotations; openapi.py describes them.
"""

import json
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

from slalom.classifiers.base import REMOVE, Units, checked_text
from slalom.classifiers.load import with_absent
from slalom.document import Text
from slalom.errors import DamageError
from slalom.explainers.base import Explainer, Request
from slalom.explainers.methods import by_phrases, checked_repeats, method_named
from slalom.schema import Within, read_as
from slalom.web.limits import Limits, Refusal, wrong
from slalom.web.models import Model, Models

MAX_PAIRS = 30
Body = TypeVar("Body")


@dataclass(frozen=True)
class ExplainBody:
    """POST /api/explain."""

    text: Text  # a pair is a list of two
    model: str | None = None  # one of /api/models
    method: str = "slalom"
    target: str | int | None = None  # a label, its number, or all; null: the predicted class
    units: Literal["token", "word", "sentence", "phrase"] | None = None
    n_queries: Annotated[int | None, Within(1, 10**6)] = None
    seed: Annotated[int, Within(0, 2**31 - 1)] = 0
    too_long: Literal["error", "truncate", "windows"] = "windows"
    absent: str = REMOVE  # what happens to absent words: remove, mask, or a text in their place
    repeats: Annotated[int, Within(1, 100)] = 1  # how often each query is asked


@dataclass(frozen=True)
class PredictBody:
    """POST /api/predict: a text, or several."""

    text: Text | None = None
    texts: tuple[Text, ...] | None = None
    model: str | None = None


@dataclass(frozen=True)
class WhatIfBody:
    """POST /api/whatif: units to remove, and up to four explanations that predict the answer."""

    explanations: tuple[str, ...]
    removed: tuple[int, ...]


@dataclass(frozen=True)
class OrderBody:
    """POST /api/order: the best order of removal for one of the explained classes."""

    explanation: str
    of_class: Annotated[int, Within(0, 10**6)] = 0


@dataclass(frozen=True)
class PairsBody:
    """POST /api/pairs: k pairs of words that act together."""

    explanation: str
    k: Annotated[int, Within(1, MAX_PAIRS)] = 8


@dataclass(frozen=True)
class ExplanationRequest:
    """A request for an explanation, with its model and method looked up."""

    asked: ExplainBody
    model: Model
    text: Text
    method: Explainer
    units: Units

    def request(self, n_queries: int | None) -> Request:
        asked = self.asked
        return Request(asked.target, n_queries, asked.seed, asked.repeats)


def parsed(body: bytes, most: int) -> dict[str, Any]:
    """A JSON object with at most so many entries; anything else is refused."""
    if sum(map(body.count, (b",", b"[", b"{"))) > most:
        raise Refusal(413, "too-large", f"the request has more than {most} entries")
    try:
        record = json.loads(body)
    except (ValueError, RecursionError) as problem:
        raise wrong("the request is not JSON") from problem
    if not isinstance(record, dict):
        raise wrong(f"the request must be a JSON object, not a {type(record).__name__}")
    return record


def read(kind: type[Body], record: dict[str, Any]) -> Body:
    """A body of this kind; unknown fields are errors."""
    try:
        return read_as(kind, record, strict=True)
    except DamageError as problem:
        raise wrong(str(problem)) from problem


def explanation_request(
    record: dict[str, Any], models: Models, limits: Limits
) -> ExplanationRequest:
    asked = read(ExplainBody, record)
    if asked.n_queries is not None and asked.n_queries > limits.queries:
        raise wrong(f"n_queries: expected a number from 1 to {limits.queries}")
    if len(asked.absent) > limits.absent:
        raise wrong(f"absent: expected at most {limits.absent} characters")
    model = models.named(asked.model)
    chosen, cut = by_phrases(method_named(asked.method), asked.units, asked.too_long)
    checked_repeats(asked.repeats, chosen)
    model = replace(model, classifier=with_absent(model.classifier, asked.absent))
    return ExplanationRequest(asked, model, text_of(asked.text, limits), chosen, cut)


def text_of(text: Text, limits: Limits) -> Text:
    """The text, if it is not too long."""
    length = len(text) if isinstance(text, str) else sum(map(len, text))
    if length > limits.text:
        raise Refusal(
            413, "too-long", f"the text has {length} characters: at most {limits.text} are read"
        )
    return checked_text(text)


def positions(given: tuple[int, ...], name: str, n_units: int) -> list[int]:
    """Distinct positions of units."""
    if not all(0 <= unit < n_units for unit in given):
        raise wrong(f"{name} must be a list of positions from 0 to {n_units - 1}")
    return sorted(set(given))
