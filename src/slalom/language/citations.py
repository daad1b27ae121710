"""What was said of a part of an answer, and which sources carry each of its sentences.

Both read what is stored: nothing is asked. Of two sources *either suffices* where the answer bears
the loss of each but not of both, of three any one where it bears that of each two: with f what the
explanation predicts and N all sources,

    loss(T) = f(N) − f(N less T) ≥ LEAST nats        loss(T less i) ≤ SPARED · loss(T), i in T
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from slalom.answer import Answer
from slalom.classifiers.text.units import sentence_cuts
from slalom.document import Document, FloatArray, Queries
from slalom.errors import NoModelError
from slalom.explainers.base import Explainer, Request
from slalom.explainers.execution.steps import Order, explained_here
from slalom.explainers.surrogate import SurrogateExplainer
from slalom.explainers.table import METHODS
from slalom.explanation import Explanation
from slalom.language.scoring import NotRecordedError, RecordedScorer, queries_of, recorded_document
from slalom.samplers.base import Samples
from slalom.surrogates.lasso import LassoSurrogate

SPARED = 0.35  # of the loss of both, that of one alone at most
LEAST = 1.0  # nats that the loss of both costs
OF_ALL = 0.2  # of what all sources together bring, likewise
CANDIDATES = {2: 24, 3: 12}  # size → of so many sources, the strongest: copies share what they say
WORTH_CITING = 0.1  # of the strongest source's share,
FAINT = 0.1  # and nats
SURE = 1.645  # standard errors


@dataclass(frozen=True)
class Cited:
    """A source of a sentence."""

    source: int  # its number in the explanation's units
    name: str  # its document's title, or ""
    text: str
    nats: float  # its Shapley value: its fair share of what all sources bring
    lost: float  # nats that the sentence loses without it alone

    @property
    def in_words(self) -> str:
        return f"[{self.source + 1}] {self.name or self.text}"


@dataclass(frozen=True)
class Citation:
    """A sentence of an answer, with the sources that carry it, the strongest first."""

    text: str
    span: tuple[int, int]
    sources: tuple[Cited, ...]
    either: tuple[tuple[int, ...], ...]  # two or three sources of which one suffices

    def __str__(self) -> str:
        marks = "".join(f"[{one.source + 1}]" for one in self.sources)
        pairs = "; ".join(map(suffices, self.either))
        return f"{self.text} {marks or '(no source)'}" + (f" ({pairs})" if pairs else "")


def of_part(explanation: Explanation, part: str | Sequence[int]) -> Explanation:
    """The same explanation for a part of the answer, from what is stored."""
    said = said_by(explanation)
    span = said.span_of(part)
    tokens = said.tokens_of(span)
    method = per_token(METHODS[explanation.method], int(tokens.sum()))
    document = recorded_document(str(explanation.text), explanation.units, explanation.spans)
    scorer = RecordedScorer(explanation.classifier, document, said, tokens)
    n_queries = len(said.present) + explanation.quality.n_repeats
    request = Request(n_queries=n_queries, seed=explanation.seed)
    try:
        (found,) = explained_here(scorer, Order(method, request), [document])
    except NotRecordedError:  # of another part it would have asked otherwise
        replayed = _replayed(method, queries_of(said))
        (found,) = explained_here(scorer, Order(replayed, request), [document])
    assert isinstance(found, Explanation)  # errors are raised, not kept
    start = span[0]
    kept = [one for one, on in zip(said.spans, tokens, strict=True) if on]
    shifted = tuple((max(0, a - start), min(b, span[1]) - start) for a, b in kept)
    own = replace(
        said, text=said.text[slice(*span)], spans=shifted, log_odds=said.log_odds[:, tokens]
    )
    quality = replace(found.quality, n_tokens=explanation.quality.n_tokens)
    return replace(found, said=own, quality=quality)


def cite(explanation: Explanation, k: int = 3) -> tuple[Citation, ...]:
    """Each sentence of the answer, with at most k sources and those of which either suffices."""
    parts = sentences_of(explanation)
    return tuple(replace(citation_of(part, k), span=span) for span, part in parts)


def sentences_of(explanation: Explanation) -> list[tuple[tuple[int, int], Explanation]]:
    """Where each sentence of the answer stands, and the explanation of it."""
    cuts = sentence_cuts(said_by(explanation).text)
    if len(cuts) == 1:
        return [(cuts[0], explanation)]
    return [(cut, of_part(explanation, cut)) for cut in cuts]


def either_suffices(explanation: Explanation) -> list[tuple[int, ...]]:
    """Two or three sources of which the answer needs one, the most needed first."""
    n_units = len(explanation.units)
    strongest = np.argsort(-shares_of(explanation), kind="stable").tolist()
    sets: list[tuple[int, ...]] = [(unit,) for unit in range(n_units)]
    for size, n_candidates in CANDIDATES.items():
        sets += combinations(sorted(strongest[:n_candidates]), size)
    kept = np.ones((2 + len(sets), n_units))
    kept[1] = 0
    for row, one in enumerate(sets, start=2):
        kept[row, list(one)] = 0
    scores = explanation.predict(kept)
    lost = dict(zip(sets, (scores[0] - scores[2:]).tolist(), strict=True))
    needed = max(LEAST, OF_ALL * float(scores[0] - scores[1]))
    found: list[tuple[int, ...]] = []
    for one in sets[n_units:]:
        spared = max(lost[rest] for rest in combinations(one, len(one) - 1))
        holds = any(set(other) <= set(one) for other in found)
        if not holds and lost[one] >= needed and spared <= SPARED * lost[one]:
            found.append(one)
    return sorted(found, key=lambda one: -lost[one])


def suffices(sources: Sequence[int]) -> str:
    """ "either of [3] and [10] suffices", "any of [1], [3] and [10] suffices"."""
    *first, last = (f"[{unit + 1}]" for unit in sources)
    return f"{'either' if len(first) == 1 else 'any'} of {', '.join(first)} and {last} suffices"


def said_by(explanation: Explanation) -> Answer:
    if explanation.said is None:
        raise NoModelError(
            "this explains a classifier, which says no more than its labels: "
            "slalom.attribute explains the answer of a language model, and its parts"
        )
    return explanation.said


def shares_of(explanation: Explanation) -> FloatArray:
    """(n_units,) the fair share of each source, whatever the method calls it."""
    name = "shapley" if "shapley" in explanation.scores else next(iter(explanation.scores))
    return explanation.scores[name]


def per_token(method: Explainer, n_tokens: int) -> Explainer:
    """ContextCite's LASSO counts nats per token of the answer; other methods stay as they are."""
    surrogate = getattr(method, "surrogate", None)
    if not isinstance(method, SurrogateExplainer) or not isinstance(surrogate, LassoSurrogate):
        return method
    return replace(method, surrogate=replace(surrogate, n_tokens=n_tokens))


def citation_of(explanation: Explanation, k: int = 3) -> Citation:
    """All of an answer, or of a part of one, as if it were one sentence."""
    said = said_by(explanation)
    shares, n_units = shares_of(explanation), len(explanation.units)
    scores = explanation.predict(np.vstack([np.ones(n_units), 1 - np.eye(n_units)]))
    lost = scores[0] - scores[1:]
    either = either_suffices(explanation)
    error = explanation.errors.get("shapley", np.zeros(n_units))
    carries = (shares >= max(FAINT, WORTH_CITING * shares.max())) & (shares > SURE * error)
    carries[[unit for pair in either for unit in pair]] = True
    ranked = np.argsort(-shares.round(1), kind="stable")  # those alike in their own order
    order = [int(at) for at in ranked if carries[at]][:k]
    cited = tuple(
        Cited(at, said.names[at], explanation.units[at], float(shares[at]), float(lost[at]))
        for at in order
    )
    pairs = tuple(pair for pair in either if set(pair) <= set(order))
    return Citation(said.text, (0, len(said.text)), cited, pairs)


@dataclass(frozen=True, eq=False)
class Recorded:
    """A sampler that draws what was drawn before."""

    queries: Queries

    def sample(self, document: Document, n_queries: int, rng: np.random.Generator) -> Samples:
        n_shown = len(self.queries)
        complete = n_shown == 2 ** min(document.n_units, 30)
        return Samples(self.queries, np.ones(n_shown), complete=complete)


def _replayed(method: Explainer, queries: Queries) -> Explainer:
    """The method on the queries that were asked."""
    assert isinstance(method, SurrogateExplainer)  # others draw by the seed alone
    return replace(method, sampler=Recorded(queries))
