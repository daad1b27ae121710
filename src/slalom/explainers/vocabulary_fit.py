"""From a corpus to a Vocabulary: a few queries per document, one SLALOM fitted to all of them.

Tokens in fewer than `least_documents` documents share one entry; a Newton step costs the cube
of the number of entries, so that threshold is raised until at most MAX_ENTRIES are left. The fit is
that of the two scores of a text (two_scores.py): values within twice the range of all answers, the
same ridges, exact SLALOMs read off. How well the table describes unseen texts is measured on
held-out documents, a fifth of all.
"""

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slalom.classifiers.base import Classifier, Target, checked_text, is_independent, one_target
from slalom.classifiers.cached import CachedClassifier
from slalom.classifiers.load import as_classifier
from slalom.document import Document, FloatArray, Queries, Text
from slalom.errors import InputError
from slalom.explainers.base import Answers, Ask, Asking, TargetName, checked_many, checked_whole
from slalom.explainers.execution.driver import QUERIES_PER_CHUNK
from slalom.explainers.execution.steps import in_step
from slalom.explainers.vocabulary import Vocabulary
from slalom.explanation import Quality, trust_of
from slalom.samplers.subsets import SubsetSizes
from slalom.surrogates.base import UNKNOWN, HeldOutQuality
from slalom.surrogates.quality import held_out_quality
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.model import Anchor
from slalom.surrogates.slalom.newton import Point, Problem, attention_of, descend
from slalom.surrogates.slalom.recovery import recovered
from slalom.surrogates.slalom.two_scores import description, grouped_errors, range_of

MAX_ENTRIES = 2000  # tokens with an entry of their own
HELD_OUT = 5  # one document in five


def explain_vocabulary(
    classifier: Any,
    texts: Sequence[Text],
    target: TargetName = None,
    n_queries: int = 20,
    units: str | None = None,
    too_long: str = "error",
    least_documents: int = 2,
    seed: int = 0,
) -> Vocabulary:
    """What every token of a corpus says to the classifier, as one table.

    `target` is a label or an index, by default the last class. `n_queries` are asked per document:
    few queries of many documents tell more than many of few. Tokens in fewer than
    `least_documents` documents share one entry.
    """
    start = perf_counter()
    wrapped = as_classifier(classifier)
    chosen = one_target(target, wrapped.labels, "a vocabulary")
    documents = _documents(wrapped, texts, units, too_long)
    n_queries = checked_whole("n_queries", n_queries, 2)
    least_documents = checked_whole("least_documents", least_documents, 1)
    seed = checked_whole("seed", seed, 0)
    data = _collected(wrapped, documents, chosen, n_queries, seed)
    columns, notes = _columns(documents, least_documents)
    held_out = _held_out(documents, data, least_documents, seed)
    fitted = data.fit(columns)
    values, importances = fitted.values, fitted.importances
    errors = fitted.errors(data.owners)
    n = len(columns)
    frequency = _document_frequency(documents)
    names = {
        key: unit for d in reversed(documents) for key, unit in zip(d.keys, d.units, strict=True)
    }
    anchors = [Anchor(float(values[at]), float(importances[at])) for at in (n, n + 1)]
    return Vocabulary(
        tokens=tuple(names[key] for key in columns),
        keys=tuple(columns),
        scores={"value": values[:n], "importance": importances[:n]},
        errors={"value": errors[0][:n], "importance": errors[1][:n]},
        counts=np.array([frequency[key] for key in columns], dtype=np.int32),
        rare=anchors[0] if n < len(frequency) else None,
        anchor=anchors[1],
        quality=Quality(
            r2=held_out.r2,
            r2_error=held_out.r2_error,
            rmse=held_out.rmse,
            n_queries=data.n_asked,
            n_tokens=data.n_tokens,
            seconds=perf_counter() - start,
            trust=trust_of(held_out.r2, held_out.r2_error),
            notes=notes,
        ),
        n_documents=len(documents),
        labels=tuple(wrapped.labels),
        target=chosen.label,
        target_index=int(chosen.index or 0),
        classifier=wrapped.name,
        units=units,
        seed=seed,
    )


@dataclass(frozen=True, eq=False)
class Fitted:
    """Of all columns, then of all other tokens together, then of the anchor."""

    values: FloatArray  # (k,)
    importances: FloatArray  # (k,)
    described: tuple[Problem, Point] | None  # None: the answers are exactly these

    def predict(self, rows: Rows) -> FloatArray:
        return attention_of(rows, self.importances).apply(self.values)

    def errors(self, owners: NDArray[np.intp]) -> tuple[FloatArray, FloatArray]:
        """Of values and importances: how another corpus would differ."""
        if self.described is None:
            return np.zeros_like(self.values), np.zeros_like(self.values)
        return grouped_errors(*self.described, owners)


@dataclass(frozen=True, eq=False)
class CorpusAnswers:
    """Answers of all documents, each distinct query once."""

    keys: tuple[Hashable, ...]  # every token of the corpus
    counts: Any  # (n_rows, n_keys) scipy's sparse rows
    scores: FloatArray  # (n_rows,)
    owners: NDArray[np.intp]  # (n_rows,) the document of each row
    n_asked: int
    n_tokens: int

    def fit(self, columns: Mapping[Hashable, int], left_out: Sequence[int] = ()) -> Fitted:
        """One SLALOM over the rows of all documents but those left out."""
        used = ~np.isin(self.owners, left_out)
        rows = self.rows(columns, used)
        scores, sizes = self.scores[used, None], rows.sums() - 1  # the anchor is always there
        empty = scores[sizes < 1].mean(axis=0) if (sizes < 1).any() else None
        exact = _exact(rows, scores, empty)
        if exact is not None:
            return exact
        values = range_of(scores, sizes <= 1)
        problem = description(rows, scores, np.ones(len(scores)), values, empty)
        point = descend(problem, problem.start(), tolerance=1e-5)
        return Fitted(point.values[:, 0], point.importances, (problem, point))

    def rows(self, columns: Mapping[Hashable, int], used: NDArray[np.bool_]) -> Rows:
        """Counts over the columns, then over all other tokens together, then the anchor."""
        from scipy.sparse import csr_array, hstack

        n, every = len(columns), np.arange(len(self.keys))
        column = [columns.get(key, n) for key in self.keys]
        added_up = csr_array((np.ones(len(column)), (every, column)), shape=(len(column), n + 1))
        counts = self.counts[used] @ added_up
        rows = hstack([counts, np.ones((counts.shape[0], 1))], format="csr")
        rows.sort_indices()
        return Rows.of(rows)


def _exact(rows: Rows, scores: FloatArray, empty: FloatArray | None) -> Fitted | None:
    """The SLALOM that gives these answers, if the corpus is small and there is one."""
    k = rows.shape[1]
    if k > 300:
        return None
    counts = rows.dense()[:, :-1]
    there = np.append(counts.any(axis=0), True)  # there may be no other tokens
    found = recovered(counts[:, there[:-1]], scores, anchored=True, empty=empty)
    if found is None:
        return None
    values, importances = np.full(k, scores.mean()), np.zeros(k)
    values[there], importances[there] = found.values[:, 0], found.importances
    return Fitted(values, importances, None)


def _documents(
    classifier: Classifier, texts: Sequence[Text], units: str | None, too_long: str
) -> list[Document]:
    checked_many(texts, "explain_vocabulary")
    if units is not None and not isinstance(units, str):
        raise InputError(
            "a vocabulary needs one kind of units for all texts: token, word, sentence"
        )
    documents = []
    for number, text in enumerate(texts):
        try:
            documents.append(classifier.split(checked_text(text), units, too_long=too_long))
        except InputError as problem:
            raise InputError(f"text {number}: {problem}") from problem
    if len(documents) < 2:
        raise InputError(
            f"a vocabulary takes two texts or more, not {len(documents)}: "
            "give more, or use slalom.explain"
        )
    return documents


def _collected(
    classifier: Classifier, documents: Sequence[Document], target: Target, n_queries: int, seed: int
) -> CorpusAnswers:
    """Ask random subsets of every document; a query that an earlier document asked is not kept."""
    from scipy.sparse import csr_array

    keys: dict[Hashable, int] = {}
    rows, columns, counts, scores, owners = [], [], [], [], []
    known: set[Hashable] = set()
    n_rows = n_tokens = 0
    independent = is_independent(classifier)
    asked = _answered(classifier, documents, n_queries, seed)
    for owner, (document, queries, answers) in enumerate(asked):
        seen = classifier.seen(document, queries)
        new = np.array([at for at in answers.first.tolist() if seen[at] not in known], np.intp)
        known.update(seen[at] for at in new.tolist())
        first = np.unique(document.features, return_index=True)[1]
        numbers = np.array([keys.setdefault(document.keys[u], len(keys)) for u in first])
        occurrences = document.count(queries[new])
        at_row, at_feature = np.nonzero(occurrences)
        rows.append(at_row + n_rows)
        columns.append(numbers[at_feature])
        counts.append(occurrences[at_row, at_feature])
        scores.append(target.scores(answers.logits[new], independent=independent))
        owners.append(np.full(len(new), owner))
        n_rows += len(new)
        n_tokens += int(document.n_tokens(queries[new]).sum())
    cells = np.concatenate(rows), np.concatenate(columns)
    return CorpusAnswers(
        keys=tuple(keys),
        counts=csr_array((np.concatenate(counts), cells), shape=(n_rows, len(keys))),
        scores=np.concatenate(scores),
        owners=np.concatenate(owners),
        n_asked=n_rows,
        n_tokens=n_tokens,
    )


def _answered(
    classifier: Classifier, documents: Sequence[Document], n_queries: int, seed: int
) -> Iterator[tuple[Document, Queries, Answers]]:
    """Random subsets of every document, those of many documents asked together."""
    cached = CachedClassifier(classifier)
    sampler = SubsetSizes(singles=0.2)  # few: a token alone is the same query in every document
    together = max(1, QUERIES_PER_CHUNK // n_queries)
    for begin in range(0, len(documents), together):
        chunk = documents[begin : begin + together]
        queries = [sampler.sample(d, n_queries, np.random.default_rng(seed)).queries for d in chunk]
        plans = list(map(_asking, chunk, queries))
        yield from zip(chunk, queries, in_step(cached, plans), strict=True)


def _asking(document: Document, queries: Queries) -> Asking[Answers]:
    answers: Answers = yield Ask(document, queries)
    return answers


def _document_frequency(documents: Sequence[Document]) -> Counter[Hashable]:
    return Counter(key for document in documents for key in dict.fromkeys(document.keys))


def _columns(
    documents: Sequence[Document], least: int
) -> tuple[dict[Hashable, int], tuple[str, ...]]:
    """A column for every token in enough documents, the most frequent first."""
    ranked = _document_frequency(documents).most_common()
    threshold = least
    if len(ranked) > MAX_ENTRIES:
        threshold = max(least, ranked[MAX_ENTRIES][1] + 1)
    kept = [key for key, n in ranked if n >= threshold]
    if not kept:
        raise InputError(
            f"no token is in {least} of the {len(documents)} texts: "
            "give more texts, or least_documents=1"
        )
    shared = len(ranked) - len(kept)
    note = f"{shared} tokens in fewer than {threshold} documents share one entry"
    return {key: column for column, key in enumerate(kept)}, (note,) if shared else ()


def _held_out(
    documents: Sequence[Document], data: CorpusAnswers, least: int, seed: int
) -> HeldOutQuality:
    """The error of a fit to four fifths of the documents on the queries of the others."""
    order = np.random.default_rng(seed).permutation(len(documents)).tolist()
    held = order[: len(documents) // HELD_OUT]
    others = [documents[number] for number in order[len(held) :]]
    tested = np.isin(data.owners, held)
    try:
        columns, _ = _columns(others, least)
    except InputError:  # too few documents are left to share a token
        return UNKNOWN
    if not tested.any():
        return UNKNOWN
    predicted = data.fit(columns, held).predict(data.rows(columns, tested))
    truth = data.scores[tested]
    squared = (truth - predicted) ** 2
    spread = (truth - data.scores[~tested].mean()) ** 2
    document = np.unique(data.owners[tested], return_inverse=True)[1]
    return held_out_quality(
        squared / len(truth),
        spread / len(truth),
        largest=float(np.abs(truth).max()),
        rmse=float(np.sqrt(squared.mean())),
        groups=document.astype(np.int32),
    )
