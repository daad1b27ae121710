"""The API described in OpenAPI 3.1, for programs that read such descriptions."""

from importlib.metadata import version
from typing import Any

from slalom.classifiers.base import TOO_LONG, UNIT_KINDS
from slalom.explainers.phrases import PHRASE
from slalom.explainers.table import METHODS
from slalom.web.limits import Limits

Schema = dict[str, Any]


def description(limits: Limits) -> Schema:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "SLALOM",
            "version": version("slalom-xai"),
            "description": "What every word says to a text classifier. Errors are JSON: "
            '{"error": a sentence, "kind": a word}; 503 means busy, try again.',
        },
        "paths": {
            "/api/explain": _post(
                "Explain a text; with Accept: text/event-stream, its making as events "
                "(waiting, progress, rough, done, failed)",
                _explain(limits),
                {"type": "object", "description": "the explanation, as `save` writes it"},
            ),
            "/api/predict": _post("What the classifier says", _predict(limits), _predicted()),
            "/api/whatif": _post(
                "The answer without some units, beside what explanations predicted",
                _object({"explanations": _list("string"), "removed": _list("integer")}, 2),
                {"type": "object"},
            ),
            "/api/order": _post(
                "The best order of removal, with its curve",
                _object({"explanation": {"type": "string"}, "class": {"type": "integer"}}, 1),
                {"type": "object"},
            ),
            "/api/pairs": _post(
                "Words that act together, asked: at most 200 questions",
                _object({"explanation": {"type": "string"}, "k": {"type": "integer"}}, 1),
                _pairs(),
            ),
            "/api/open": _post("Show an explanation file", {"type": "object"}, {"type": "object"}),
            "/api/methods": _get("The methods, each with a line about it"),
            "/api/models": _get("The models of this server, with their labels"),
            "/api/health": _get("Whether it runs, and how much it has to do"),
        },
    }


def _explain(limits: Limits) -> Schema:
    fields: Schema = {
        "text": _text(limits),
        "model": {"type": ["string", "null"], "description": "one of /api/models"},
        "method": {"type": "string", "enum": list(METHODS), "default": "slalom"},
        "target": {
            "type": ["string", "integer", "null"],
            "description": "a label, its number, or all; null: the predicted class",
        },
        "units": {"type": ["string", "null"], "enum": [*UNIT_KINDS, PHRASE, None]},
        "n_queries": {"type": ["integer", "null"], "minimum": 1, "maximum": limits.queries},
        "seed": {"type": "integer", "minimum": 0, "default": 0},
        "too_long": {"type": "string", "enum": list(TOO_LONG), "default": "windows"},
    }
    return _object(fields, 1)


def _predict(limits: Limits) -> Schema:
    texts = {"type": "array", "items": _text(limits), "minItems": 1, "maxItems": limits.texts}
    return _object(
        {"text": _text(limits), "texts": texts, "model": {"type": ["string", "null"]}}, 0
    )


def _predicted() -> Schema:
    rows = {"type": "array", "items": _list("number")}
    fields = {"labels": _list("string"), "logits": rows, "probabilities": rows}
    return _object({"model": {"type": "string"}, **fields}, 4)


def _pairs() -> Schema:
    number: Schema = {"type": "number"}
    sums = {"together": number, "apart": number}
    alone = {"oneOf": [_object(sums, 2), {"type": "null"}]}
    fields = {"units": _list("integer"), "words": _list("string"), **sums, "alone": alone}
    pairs = {"type": "array", "items": _object(fields, 5)}
    asked = {"n_queries": {"type": "integer"}, "measured": {"type": "boolean"}}
    return _object({"pairs": pairs, **asked}, 3)


def _text(limits: Limits) -> Schema:
    side = {"type": "string", "maxLength": limits.text}
    return {"oneOf": [side, {"type": "array", "items": side, "minItems": 2, "maxItems": 2}]}


def _object(fields: Schema, n_required: int) -> Schema:
    required = list(fields)[:n_required]
    return {
        "type": "object",
        "properties": fields,
        "required": required,
        "additionalProperties": False,
    }


def _list(kind: str) -> Schema:
    return {"type": "array", "items": {"type": kind}}


def _post(summary: str, body: Schema, answer: Schema) -> Schema:
    given = {"required": True, "content": {"application/json": {"schema": body}}}
    return {"post": {"summary": summary, "requestBody": given, "responses": _responses(answer)}}


def _get(summary: str) -> Schema:
    return {"get": {"summary": summary, "responses": _responses({"type": "object"})}}


def _responses(answer: Schema) -> Schema:
    error = _object({"error": {"type": "string"}, "kind": {"type": "string"}}, 2)
    return {
        "200": {"description": "as asked", "content": {"application/json": {"schema": answer}}},
        "default": {
            "description": "a sentence about what is wrong",
            "content": {"application/json": {"schema": error}},
        },
    }
