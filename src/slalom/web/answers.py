"""Answers of a language model on the live page: their sources, and how likely they are without
some of them."""

from dataclasses import dataclass, field
from threading import Lock
from typing import Annotated, Any, Literal

import numpy as np

from slalom.answer import scores_of
from slalom.document import masks_without
from slalom.language.attribute import attributed
from slalom.language.citations import lost_without, sentences_of
from slalom.language.scoring import AnswerScorer, Writer
from slalom.language.sources import sources_of
from slalom.schema import Within
from slalom.web.jobs import Check, Emit
from slalom.web.limits import Limits, Refusal, wrong
from slalom.web.models import Model, StoredExplanation


@dataclass(frozen=True)
class SourceBody:
    text: str
    title: str = ""


@dataclass(frozen=True)
class AttributeBody:
    """POST /api/attribute; one source alone is cut into sentences."""

    sources: tuple[SourceBody, ...]
    question: str = ""
    answer: str | None = None
    by: Literal["sentence", "paragraph", "word"] | None = None
    n_queries: Annotated[int | None, Within(10, 5000)] = None
    seed: Annotated[int, Within(0, 2**31 - 1)] = 0


@dataclass(frozen=True)
class AnswerWithoutBody:
    """POST /api/said."""

    explanation: str
    removed: tuple[int, ...]


@dataclass(frozen=True)
class Language:
    """The language model of a server, asked by one caller at a time."""

    writer: Writer
    lock: Lock = field(default_factory=Lock, compare=False)


def attributed_answer(
    wanted: AttributeBody, language: Language, limits: Limits, check: Check, emit: Emit
) -> StoredExplanation:
    """One answer explained; stops between two queries if nobody waits for it any more."""
    documents: list[Any] = [(one.title, one.text) for one in wanted.sources]
    shown = (wanted.question, wanted.answer or "", *(part for one in documents for part in one))
    if (length := sum(map(len, shown))) > (most := limits.sources):
        sentence = f"sources, question and answer have {length} characters: at most {most} are read"
        raise Refusal(413, "too-long", sentence)
    given = wanted.sources[0].text if len(documents) == 1 else documents
    sources = sources_of(given, wanted.by)
    if len(sources.spans) > (most := limits.answer_units):
        sentence = f"there are {len(sources.spans)} sources: at most {most} are allowed here"
        raise Refusal(413, "too-long", sentence)

    def progress(done: int, total: int) -> None:
        check()
        emit("progress", {"done": done, "total": total})

    while not language.lock.acquire(timeout=1.0):
        check()
    try:
        progress(0, 1)
        scorer = AnswerScorer(language.writer, sources, wanted.question, wanted.answer or None)
        found = attributed(scorer, n_queries=wanted.n_queries, seed=wanted.seed, progress=progress)
    finally:
        language.lock.release()
    model = Model(scorer.name, scorer, language.lock)
    return StoredExplanation(found, (model, scorer.split(scorer.text)))


def answer_without(stored: StoredExplanation, removed: list[int], check: Check) -> dict[str, Any]:
    """Nats that the answer and each of its sentences lose, measured, beside the prediction."""
    explanation, said = stored.explanation, stored.explanation.said
    model = None if stored.source is None else stored.source[0]
    scorer = None if model is None else model.classifier
    if said is None or model is None or not isinstance(scorer, AnswerScorer):
        raise wrong("this explains no answer of a language model")
    present = masks_without([[], removed], len(explanation.units))
    check()
    with model.lock:
        log_odds = scorer.log_odds(present)
    spans = [span for span, _ in sentences_of(explanation)]
    parts = [np.ones(said.n_tokens, dtype=bool)]
    parts += [said.tokens_of(span) for span in spans] if len(spans) > 1 else []
    scores = [scores_of(log_odds[:, part]) for part in parts]
    return {
        "lost": [float(whole - without) for whole, without in scores],
        "predicted": lost_without(explanation, [removed]),
    }
