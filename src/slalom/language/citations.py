"""What was said of a part of an answer, and which sources carry each of its sentences.

Both read what is stored: nothing is asked. Sources are ranked by Shapley values: two that say the
same have half of it each, though the answer bears the loss of one. So that this is no riddle, what
is told besides is the loss of all cited sources at once, and who stands in for whom. With f what
the explanation predicts, N all sources, and T two of them, or three:

    loss(T) = f(N) − f(N less T)
    either of T suffices       loss(T less i) ≤ SPARED · loss(T) for i in T,  LEAST ≤ loss(T)
    j stands in for i          loss(i) ≤ REPLACED · m, m − LEAST    with m = loss({i, j}) − loss(j)
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from slalom.answer import Answer
from slalom.classifiers.text.units import sentence_cuts
from slalom.document import BoolArray, Document, FloatArray, IntArray, masks_without, visible
from slalom.errors import NoModelError
from slalom.explainers.base import Explainer, Request, checked_whole
from slalom.explainers.execution.steps import Order, run_local
from slalom.explainers.methods import method_named
from slalom.explainers.surrogate import FollowUps, SurrogateExplainer
from slalom.explanation import Explanation
from slalom.language.by_tokens import by_tokens
from slalom.language.scoring import RecordedScorer, recorded_document
from slalom.surrogates.additive import LassoSurrogate
from slalom.surrogates.base import Fit

SPARED = 0.25  # of the loss of both, that of one alone at most,
MOST = 5.0  # and nats: what is 150 times less likely does not suffice
LEAST = 1.0  # nats that are worth telling
REPLACED = 0.75  # of the loss without the other, that with it at most
OF_ALL = 0.2  # of what all sources together bring, likewise
CANDIDATES = {
    2: 24,
    3: 12,
    4: 10,
}  # size → of so many sources, the strongest
CITED = 0.25  # of the strongest source's share: what a sentence's other sources bring or lose
LISTED = 0.1  # likewise, for what speaks for or against the answer at all,
FAINT = 0.1  # and nats
SURE = 1.645  # standard errors

Set = tuple[int, ...]  # of sources, by their numbers


@dataclass(frozen=True)
class Cited:
    """A source, and what it does for an answer or a sentence of it."""

    source: int  # its number in the explanation's units
    name: str  # its document's title, or ""
    text: str
    nats: float  # its Shapley value: its part of what all sources bring
    lost: float  # nats that the sentence loses without it alone
    stand_ins: tuple[int, ...]  # sources that make up for its loss
    side: int  # 1: carries what is said, −1: speaks against it, 0: makes little difference


@dataclass(frozen=True)
class Citation:
    """A sentence of an answer, with the sources that carry it, the strongest first."""

    text: str
    span: tuple[int, int]
    sources: tuple[Cited, ...]
    lost: float  # nats that the sentence loses without all of these
    either: tuple[tuple[int, ...], ...]  # two to four sources of which one suffices

    def __str__(self) -> str:
        marks = "".join(f"[{one.source + 1}]" for one in self.sources)
        pairs = "; ".join(map(suffices, self.either))
        return f"{visible(self.text)} {marks or '(no source)'}" + (f" ({pairs})" if pairs else "")


def of_part(explanation: Explanation, part: str | Sequence[int]) -> Explanation:
    """The same explanation for a part of the answer, from what is stored."""
    said = said_by(explanation)
    span = said.span_of(part)
    tokens = said.tokens_of(span)
    document = recorded_document(str(explanation.text), explanation.units, explanation.spans)
    scorer = RecordedScorer(explanation.classifier, document, said, tokens)
    method = per_token(method_named(explanation.method), int(tokens.sum()))
    if isinstance(method, SurrogateExplainer) and method.follow_up is not None:
        method = replace(method, follow_up=RecordedFollowUps(method.follow_up, said.present))
    n_queries = said.allowed or len(said.present) + explanation.quality.n_repeats
    request = Request(n_queries=n_queries, seed=explanation.seed)
    (found,) = run_local(scorer, Order(method, request), [document])
    assert isinstance(found, Explanation)  # errors are raised, not kept
    start = span[0]
    kept = [one for one, on in zip(said.spans, tokens, strict=True) if on]
    shifted = tuple((max(0, a - start), min(b, span[1]) - start) for a, b in kept)
    own = replace(
        said, text=said.text[slice(*span)], spans=shifted, log_odds=said.log_odds[:, tokens]
    )
    quality = replace(found.quality, n_tokens=explanation.quality.n_tokens)
    return by_tokens(replace(found, said=own, quality=quality))


def cite(explanation: Explanation, k: int = 3) -> tuple[Citation, ...]:
    """Each sentence of the answer, with its k strongest sources and those that suffice for them."""
    k = checked_whole("k", k, 1)
    parts = sentences_of(explanation)
    return tuple(replace(citation_of(part, k), span=span) for span, part in parts)


def sentences_of(explanation: Explanation) -> list[tuple[tuple[int, int], Explanation]]:
    """Where each sentence of the answer stands, and the explanation of it."""
    cuts = sentence_cuts(said_by(explanation).text)
    if len(cuts) == 1:
        return [(cuts[0], explanation)]
    return [(cut, of_part(explanation, cut)) for cut in cuts]


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
    if isinstance(method, SurrogateExplainer) and isinstance(method.surrogate, LassoSurrogate):
        return replace(method, surrogate=replace(method.surrogate, n_tokens=n_tokens))
    return method


def citation_of(explanation: Explanation, k: int = 3) -> Citation:
    """All of an answer, or of a part of one, as if it were one sentence."""
    text = said_by(explanation).text
    told, either = weighed(explanation)
    carrying = [one for one in told if one.side > 0]
    enough = CITED * max((one.nats for one in carrying), default=0.0)
    carrying = [one for one in carrying if max(one.nats, one.lost) >= enough]
    named = {one.source for one in carrying[:k]}
    pairs = tuple(one for one in either if named & set(one))
    named |= {unit for one in pairs for unit in one}
    (lost,) = lost_without(explanation, [sorted(named)])
    cited = tuple(one for one in told if one.source in named)
    return Citation(text, (0, len(text)), cited, lost, pairs)


def weighed(explanation: Explanation) -> tuple[list[Cited], list[Set]]:
    """Every source, the strongest first, and sets of which one suffices, the most needed first."""
    said, shares = said_by(explanation), shares_of(explanation)
    lost = _losses(explanation, shares)
    either = _either(lost, len(shares))
    stand_ins = [
        _stand_ins(unit, lost, either) if share > 0 else () for unit, share in enumerate(shares)
    ]
    backed = np.array([bool(others) for others in stand_ins])
    sides = _sides(explanation, np.array([lost[unit,] for unit in range(len(shares))]), backed)
    sides[[unit for one in either for unit in one]] = 1
    order = np.argsort(-shares.round(1), kind="stable").tolist()  # those alike in their own order
    told = [
        Cited(
            source=unit,
            name=said.names[unit],
            text=explanation.units[unit],
            nats=float(shares[unit]),
            lost=lost[unit,],
            stand_ins=stand_ins[unit],
            side=int(sides[unit]),
        )
        for unit in order
    ]
    return told, either


def lost_without(explanation: Explanation, sets: Sequence[Sequence[int]]) -> list[float]:
    """Nats that the answer loses without each set of sources, measured where it was asked."""
    scores = explanation.predict(masks_without([(), *sets], len(explanation.units)))
    return [float(lost) for lost in scores[0] - scores[1:]]


def _losses(explanation: Explanation, shares: FloatArray) -> dict[Set, float]:
    """What is lost without each source, all of them, and small sets of the strongest."""
    n_units = len(shares)
    strongest = np.argsort(-shares, kind="stable").tolist()
    sets: list[Set] = [(unit,) for unit in range(n_units)]
    for size, n_candidates in CANDIDATES.items():
        sets += combinations(sorted(strongest[:n_candidates]), size)
    sets.append(tuple(range(n_units)))
    return dict(zip(sets, lost_without(explanation, sets), strict=True))


def _either(lost: dict[Set, float], n_units: int) -> list[Set]:
    """Sets of sources of which the answer needs one, the most needed first."""
    needed = max(LEAST, OF_ALL * lost[tuple(range(n_units))])
    found: list[Set] = []
    for one in lost:
        if len(one) not in CANDIDATES or any(set(other) <= set(one) for other in found):
            continue
        spared = max(lost[rest] for rest in combinations(one, len(one) - 1))
        if lost[one] >= needed and spared <= min(MOST, SPARED * lost[one]):
            found.append(one)
    return sorted(found, key=lambda one: -lost[one])


def _stand_ins(unit: int, lost: dict[Set, float], either: Sequence[Set]) -> Set:
    """The others of a set of which one suffices, or the one without which it is missed most."""
    for one in either:
        if unit in one:
            return tuple(other for other in one if other != unit)
    pairs = [one for one in lost if len(one) == 2 and unit in one]
    missed = {other: lost[one] - lost[other,] for one in pairs for other in one if other != unit}
    best = max(missed, key=lambda other: missed[other], default=None)
    if best is None or lost[unit,] > min(REPLACED * missed[best], missed[best] - LEAST):
        return ()
    return (best,)


def _sides(explanation: Explanation, lost: FloatArray, backed: BoolArray) -> IntArray:
    """(n_units,) of 1, −1 and 0: by a fair share that the loss does not contradict, or by the loss
    where it is plain. Of many that say the same none is missed, and a plain share counts."""
    shares, none = shares_of(explanation), np.zeros(len(lost))
    worth = max(FAINT, LISTED * float(shares.max()))
    sure = np.maximum(worth, SURE * explanation.errors.get("shapley", none))
    plain = np.maximum(max(LEAST, worth), SURE * explanation.errors.get("removal", none))
    backed |= (shares >= LEAST) & (lost > -FAINT)
    carries = (shares >= sure) & ((lost >= FAINT) | backed) | (lost >= plain) & (shares > -sure)
    against = (shares <= -sure) & (lost <= -FAINT) | (lost <= -plain) & (shares < sure)
    return carries.astype(np.int32) - against.astype(np.int32)


@dataclass(frozen=True, eq=False)
class RecordedFollowUps:
    """Asks on what was asked on before; of a part it might have been other sources."""

    plan: FollowUps
    present: BoolArray  # (k, n_units) all that was asked

    def reserved(self, document: Document, n_queries: int | None) -> int:
        return self.plan.reserved(document, n_queries)

    def masks(self, document: Document, fit: Fit, room: int | None) -> BoolArray:
        sizes = self.present.sum(axis=1)
        return self.present[np.isin(sizes, (0, 1, document.n_units - 1))]
