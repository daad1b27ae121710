"""Which sources made a language model say that: the function that people call."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from os import PathLike
from typing import Any

from slalom.classifiers.disk_cache import DiskCache
from slalom.explainers.base import Explainer
from slalom.explainers.execution.progress import Wait, bar
from slalom.explainers.methods import explain, method_named
from slalom.explainers.surrogate import LEAST_QUERIES
from slalom.explanation import Explanation
from slalom.language.by_tokens import by_tokens
from slalom.language.citations import per_token
from slalom.language.scoring import AnswerScorer
from slalom.language.sources import By, Given, sources_of
from slalom.language.writers import as_writer

METHOD = "slalom-sources"
Progress = Any  # bool, or a function of the numbers of answered and of planned queries


def attribute(
    model: Any,
    sources: Given,
    question: str = "",
    answer: str | None = None,
    *,
    by: By = None,
    n_queries: int | None = None,
    seed: int = 0,
    prompt: str | None = None,
    method: str | Explainer = METHOD,
    cache: str | PathLike[str] | None = None,
    device: str | None = None,
    revision: str | None = None,
    progress: Progress = True,
) -> Explanation:
    """Which of the sources made the model give this answer, and how much each of them did.

    :param model: a name or folder, (model, tokenizer), a text-generation pipeline, or a
        `slalom.CompletionServer`
    :param sources: one text, which is cut into sentences, or a list of documents: texts,
        (title, text) or {"title": …, "text": …}, each one source
    :param question: what the model is asked; "" for a summary
    :param answer: what is to be explained; None: what the model says, the likeliest token each
        time, at most 256 of them
    :param by: "sentence", "paragraph" or "word" cuts every document, a list of spans one text
    :param n_queries: how many subsets of the sources are queried at most; None: by their number
    :param seed: of the random subsets; the same seed gives the same numbers
    :param prompt: a template with {sources} and {question}; the model's own chat template, where
        it has one, goes around it
    :param method: a name of `slalom.METHODS`, or an explainer of your own
    :param cache: a file that keeps answers, so that no query is made twice
    :param device: where a model given by name runs; None: a GPU, in half precision, if there is one
    :param revision: a branch, tag or commit of a model of the hub
    :param progress: True shows a bar; a function is called with the numbers of answered and of
        planned queries
    """
    chosen = method_named(method)
    found = sources_of(sources, by)
    writer = as_writer(model, device=device, revision=revision)
    scorer = AnswerScorer(
        writer,
        found,
        question,
        answer,
        prompt=prompt,
        cache=None if cache is None else DiskCache(cache),
    )
    return attributed(scorer, chosen, n_queries=n_queries, seed=seed, progress=progress)


def attributed(
    scorer: AnswerScorer,
    method: Explainer | str = METHOD,
    *,
    n_queries: int | None = None,
    seed: int = 0,
    progress: Progress = False,
) -> Explanation:
    """The same for a scorer that is there already."""
    scorer = scorer.unrecorded()
    chosen = per_token(method_named(method), len(scorer.spans))
    if n_queries is None:
        document = scorer.split(scorer.text)
        n_queries = max(LEAST_QUERIES, chosen.budget(document))
        n_queries = min(n_queries, 2 ** min(document.n_units, 30))
    before = scorer.n_computed
    with _shown(progress, n_queries) as show, scorer.told(show, n_queries):
        spans = scorer.sources.spans
        found = explain(scorer, scorer.text, chosen, n_queries=n_queries, units=spans, seed=seed)
    n_computed = scorer.n_computed - before
    notes = found.quality.notes
    if 0 < n_computed < found.quality.n_tokens:
        share = round(100 * n_computed / found.quality.n_tokens)
        read = f"shared beginnings are read once, which left {share} % of the tokens to compute"
        notes = (*notes, read)
    said = replace(scorer.recorded(), allowed=n_queries)
    return by_tokens(replace(found, said=said, quality=replace(found.quality, notes=notes)))


def _shown(progress: Progress, planned: int) -> AbstractContextManager[Any]:
    """What is told of the numbers of answered and planned queries: a function, a bar, or nobody."""
    if callable(progress) or not progress:
        return nullcontext(progress or None)
    return bar(planned, Wait("asking", "queries", after="fitting"))
