"""The API described in OpenAPI 3.1, for programs that read such descriptions.

The schemas of requests come from the dataclasses that read them (requests.py).
"""

from dataclasses import MISSING, fields, is_dataclass
from importlib.metadata import version
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from slalom.explainers.table import METHODS
from slalom.pairs import Interactions
from slalom.schema import Within
from slalom.web.answers import AnswerWithoutBody, AttributeBody
from slalom.web.limits import Limits
from slalom.web.requests import ExplainBody, OrderBody, PairsBody, PredictBody, WhatIfBody

Schema = dict[str, Any]
NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
ANY: Schema = {"type": "object"}


def description(limits: Limits) -> Schema:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "SLALOM",
            "version": version("slalom-xai"),
            "description": "Explain what a text classifier predicts, word by word. "
            'Errors are JSON: {"error": a sentence, "kind": a word}; 503 means busy, try again.',
        },
        "paths": {
            "/api/explain": _post(
                "Explain a text; with Accept: text/event-stream, its progress as events "
                "(waiting, progress, rough, done, failed). The answer is what `save` writes",
                _explain(limits),
            ),
            "/api/predict": _post("What the classifier says", described(PredictBody)),
            "/api/whatif": _post(
                "The answer without some units, beside what explanations predicted",
                described(WhatIfBody),
            ),
            "/api/order": _post("The best order of removal, with its curve", _order()),
            "/api/pairs": _post(
                "Words that act together, measured: at most 200 queries",
                described(PairsBody),
                _pairs(),
            ),
            "/api/open": _post("Show an explanation file", ANY),
            "/api/attribute": _post(
                "Find the sources behind a language model's answer; as events, if wanted "
                "(a server with --language-model)",
                described(AttributeBody),
            ),
            "/api/said": _post(
                "How likely an answer and its sentences are without some sources",
                described(AnswerWithoutBody),
            ),
            "/api/methods": _get("The methods, each with a line about it"),
            "/api/models": _get("The models of this server, with their labels"),
            "/api/health": _get("Whether the server runs, and how busy it is"),
        },
    }


def described(annotation: Any, bounds: Within | None = None) -> Schema:
    """A JSON Schema of what `read_as` takes for an annotation."""
    origin = get_origin(annotation) or annotation
    if origin is Annotated:
        bare, *said = get_args(annotation)
        return described(bare, next((note for note in said if isinstance(note, Within)), bounds))
    if origin in (Union, UnionType):
        return {"anyOf": [described(arm, bounds) for arm in get_args(annotation)]}
    if origin is Literal:
        return {"enum": [*get_args(annotation)]}
    if origin is tuple:
        return _tuple(get_args(annotation))
    if is_dataclass(origin):
        return _dataclass(origin)
    found: Schema = {"type": NAMES[origin]}
    if bounds and origin in (int, float):
        found |= {"minimum": bounds.least, "maximum": bounds.most}
    return found


def _tuple(parts: tuple[Any, ...]) -> Schema:
    if parts[-1] is Ellipsis:
        return {"type": "array", "items": described(parts[0])}
    each = [described(part) for part in parts]
    return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}


def _dataclass(kind: Any) -> Schema:
    hints = get_type_hints(kind, include_extras=True)
    needed = [f.name for f in fields(kind) if f.default is f.default_factory is MISSING]
    return {
        "type": "object",
        "properties": {field.name: described(hints[field.name]) for field in fields(kind)},
        "required": needed,
        "additionalProperties": False,
    }


def _explain(limits: Limits) -> Schema:
    found = described(ExplainBody)
    found["properties"]["method"] = {"enum": [*METHODS], "default": "slalom"}
    found["properties"]["n_queries"]["anyOf"][0]["maximum"] = limits.queries
    return found


def _order() -> Schema:
    found = described(OrderBody)
    found["properties"]["class"] = found["properties"].pop("of_class")
    return found


def _pairs() -> Schema:
    found = described(Interactions)
    del found["properties"]["spans"]
    found["required"].remove("spans")
    return found


def _post(summary: str, body: Schema, answer: Schema = ANY) -> Schema:
    given = {"required": True, "content": {"application/json": {"schema": body}}}
    return {"post": {"summary": summary, "requestBody": given, "responses": _responses(answer)}}


def _get(summary: str) -> Schema:
    return {"get": {"summary": summary, "responses": _responses(ANY)}}


def _responses(answer: Schema) -> Schema:
    words = {"type": "string"}
    error = {"type": "object", "properties": {"error": words, "kind": words}}
    return {
        "200": {"description": "as asked", "content": {"application/json": {"schema": answer}}},
        "default": {
            "description": "a sentence about what is wrong",
            "content": {"application/json": {"schema": error}},
        },
    }
