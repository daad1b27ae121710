"""Words that act together: pairs whose joint effect differs from the sum of their own effects.

With N the full text and B the text without two units i and j:

    together  F(N) − F(B)                               what both add to the rest of the text
    apart     F(B ∪ i) − F(B)  +  F(B ∪ j) − F(B)       what each adds without the other
    size      together − apart                          the second difference

The same with nothing else shown (B = ∅) measures the pair by itself. The measured pairs are those
that interact in the explanation's model, neighbours, words after a negation, units whose effect in
the text differs from that alone, and then further pairs with units that were found to interact. In
short texts these are all pairs. Attention makes every word depend a little on every other; a pair
whose size the explanation's SLALOM predicts is not listed, unless the two have most of the
attention: then one switches the other on or off.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import Any

import numpy as np

from slalom.classifiers.load import as_classifier
from slalom.document import BoolArray, FloatArray, IntArray, masks_without
from slalom.errors import InputError
from slalom.explainers.base import checked_whole
from slalom.explanation import Explanation
from slalom.metrics.subject import subject_of, unit_scores
from slalom.pairs import Effects, Interactions, Pair
from slalom.surrogates.base import Model
from slalom.surrogates.boosted import TreesModel
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.slalom.process import ProcessModel

N_QUERIES = 200  # enough for all pairs of a text of up to 17 units
FIRST_SHARE = 0.6  # of the queries are spent before it is known which units interact
ALONE_SHARE = 0.5  # of the queries, at most, measure the listed pairs by themselves
MIN_SIZE = 0.02  # relative to the largest effect of a single unit; smaller pairs are not listed
MIN_UNEXPLAINED = 0.1  # of a pair's size must not be predicted by the explanation's SLALOM
DOMINANT_SHARE = 0.5  # of the attention: two units with so much are listed in any case
NEGATION_REACH = 4
MANY_UNITS = 200  # of a longer text, pairs of units far apart are looked for among the strongest
NEGATIONS = frozenset(
    "not no never none nothing nobody neither nor without hardly barely scarcely cannot can't "
    "don't doesn't didn't isn't wasn't aren't weren't won't wouldn't couldn't shouldn't n't t "
    "nicht kein keine nie pas jamais sans non nunca".split()
)
UnitPair = tuple[int, int]  # positions of two units, the earlier first
Scores = Callable[[BoolArray], FloatArray]  # (k, n_units) → (k,)


def interactions(
    explanation: Explanation, k: int = 10, classifier: Any = None, *, n_queries: int = N_QUERIES
) -> Interactions:
    """The k strongest pairs found, or fewer if `n_queries` is too small to measure k.

    Without a classifier, the explanation's model is used instead.
    """
    k, n_queries = checked_whole("k", k, 1), checked_whole("n_queries", n_queries, 1)
    if explanation.target_index is None:
        raise InputError("pairs belong to one class: explain one target, not all of them")
    subject = None if classifier is None else subject_of(as_classifier(classifier), explanation)
    scores = _fitted_scores(explanation) if subject is None else subject.scores
    has_empty = subject is None or subject.document.has_empty_query
    reserved = 0
    if subject is not None and has_empty:  # the empty text; each pair, and its units, alone
        reserved = min(3 * k + 1, int(ALONE_SHARE * n_queries))
        k = min(k, max(1, (reserved - 1) // 3))
    search = _Search(explanation, scores, has_empty)
    found = search.strongest(k, n_queries - reserved)
    return Interactions(
        pairs=tuple(search.pair(at) for at in found),
        n_queries=0 if subject is None else subject.n_queries,
        measured=subject is not None,
        spans=explanation.spans,
    )


@dataclass(frozen=True, eq=False)
class _Search:
    """Second differences of the scores of one text's subsets."""

    explanation: Explanation
    scores: Scores
    has_empty: bool  # an empty text can be read

    @property
    def n_units(self) -> int:
        return len(self.explanation.units)

    def strongest(self, k: int, n_queries: int) -> list[UnitPair]:
        """Measure the likely pairs, then further pairs with units that interact."""
        if self.n_units < 2 + (not self.has_empty):
            return []
        first = _affordable(self._likely(), int(FIRST_SHARE * n_queries), [])
        sizes = self._sizes(first)
        others = [pair for pair in self._candidates() if pair not in sizes]
        more = _affordable(_partners(sizes, others, self.n_units), n_queries, first)
        sizes |= self._sizes(more)
        pairs = list(sizes)
        predicted = self._predicted_by_attention(pairs)
        least = MIN_SIZE * self._largest_effect(pairs)
        kept = [
            pair
            for pair, expected in zip(pairs, predicted, strict=True)
            if abs(sizes[pair]) > least
            and abs(sizes[pair] - expected) > max(least, MIN_UNEXPLAINED * abs(sizes[pair]))
        ]
        return sorted(kept, key=lambda pair: -abs(sizes[pair]))[:k]

    def pair(self, at: UnitPair) -> Pair:
        """Everything about one pair; queries made before cost nothing."""
        i, j = at
        whole, without, only_i, only_j = self.scores(
            masks_without([(), (i, j), (j,), (i,)], self.n_units)
        ).tolist()
        alone = None
        if self.has_empty:
            both, empty, first, second = self.scores(
                ~masks_without([(i, j), (), (i,), (j,)], self.n_units)
            ).tolist()
            alone = Effects(both - empty, first + second - 2 * empty)
        units = self.explanation.units
        return Pair(
            units=at,
            words=(units[i], units[j]),
            together=whole - without,
            apart=only_i + only_j - 2 * without,
            alone=alone,
        )

    def _sizes(self, pairs: list[UnitPair]) -> dict[UnitPair, float]:
        return dict(zip(pairs, _second_differences(self.scores, pairs, self.n_units), strict=True))

    def _largest_effect(self, pairs: list[UnitPair]) -> float:
        """The largest change when one unit of these pairs is removed."""
        singles = sorted({(unit,) for pair in pairs for unit in pair})
        scores = self.scores(masks_without([(), *singles], self.n_units))
        return float(np.abs(scores[0] - scores[1:]).max(initial=0.0))

    def _predicted_by_attention(self, pairs: list[UnitPair]) -> list[float]:
        """The sizes that the explanation's SLALOM predicts; 0 for two units that dominate it."""
        attention = self.explanation.model
        if isinstance(attention, ProcessModel):
            attention = attention.fitted
        if not isinstance(attention, SlalomModel):
            return [0.0] * len(pairs)
        weights, anchor_weight = attention.weights()
        shares = weights / (weights.sum() + anchor_weight)
        sizes = _second_differences(
            lambda masks: attention.predict(masks.astype(float)), pairs, self.n_units
        )
        return [
            size if shares[[*pair]].sum() < DOMINANT_SHARE else 0.0
            for pair, size in zip(pairs, sizes, strict=True)
        ]

    def _likely(self) -> list[UnitPair]:
        """All pairs, the most promising first: several rankings, interleaved."""
        rank = self._rank()
        by_strength = sorted(
            self._candidates(),
            key=lambda pair: (rank[[*pair]].min(), _distance(pair)),
        )
        by_distance = sorted(by_strength, key=lambda pair: (_distance(pair), rank[[*pair]].min()))
        rankings = [by_distance, self._modelled(), self._negated(), self._changed(), by_strength]
        turns = zip_longest(*rankings)
        return list(dict.fromkeys(pair for turn in turns for pair in turn if pair is not None))

    def _rank(self) -> IntArray:
        """(n_units,) 0 for the strongest unit."""
        order = np.argsort(-np.abs(unit_scores(self.explanation)), kind="stable")
        return np.argsort(order).astype(np.int32)

    def _candidates(self) -> list[UnitPair]:
        """All pairs; for a long text, those of near neighbours and of its strongest units."""
        if self.n_units <= MANY_UNITS:
            return list(combinations(range(self.n_units), 2))
        strong = sorted(np.argsort(self._rank())[:MANY_UNITS].tolist())
        near = [
            (at, at + step)
            for step in range(1, NEGATION_REACH + 1)
            for at in range(self.n_units - step)
        ]
        return list(dict.fromkeys([*combinations(strong, 2), *near]))

    def _modelled(self) -> list[UnitPair]:
        """Pairs that a tree of the model combines, the largest predicted interaction first."""
        model = self.explanation.model
        pairs = pairs_in_trees(model)
        sizes = _second_differences(_fitted_scores(self.explanation), pairs, self.n_units)
        order = np.argsort(-np.abs(np.asarray(sizes)), kind="stable")
        return [pairs[number] for number in order]

    def _changed(self) -> list[UnitPair]:
        """Pairs of units whose effect in the text differs from that alone, for both."""
        scores = self.explanation.scores
        if not {"removal", "alone"} <= set(scores):
            return []
        change = np.abs(scores["removal"] - scores["alone"])
        pairs = self._candidates()
        return sorted(pairs, key=lambda pair: (-change[[*pair]].min(), _distance(pair)))

    def _negated(self) -> list[UnitPair]:
        """A negation and the few words after it."""
        words = [unit.strip().lower() for unit in self.explanation.units]
        return [
            (at, at + step)
            for step in range(1, NEGATION_REACH + 1)
            for at, word in enumerate(words[: max(0, self.n_units - step)])
            if word in NEGATIONS
        ]


def _fitted_scores(explanation: Explanation) -> Scores:
    """The model without its corrections of single subsets, which would look like interactions."""
    model = explanation.model
    if not isinstance(model, ProcessModel):
        return explanation.predict
    return lambda masks: model.smooth((masks & explanation.identified).astype(np.float64))


def pairs_in_trees(model: Model | None) -> list[UnitPair]:
    """Pairs of units that one path from root to leaf of a tree of the model tests."""
    if not isinstance(model, TreesModel):
        return []
    groups = model.groups
    of_feature: dict[int, list[int]] = {}
    for unit, feature in enumerate(groups.tolist()):
        of_feature.setdefault(feature, []).append(unit)
    counts = np.bincount(groups, minlength=model.n_features).astype(float)
    found: dict[UnitPair, None] = {}
    for forest in model.forests:
        for conditions in forest.conjunctions(counts):
            features = [f for f, _, _ in conditions if f in of_feature]
            for one, other in combinations(features, 2):
                for i in of_feature[one]:
                    found.update({(min(i, j), max(i, j)): None for j in of_feature[other]})
    return list(found)


def _second_differences(scores: Scores, pairs: list[UnitPair], n_units: int) -> list[float]:
    """F(N) − F(N∖i) − F(N∖j) + F(N∖ij) of each pair."""
    if not pairs:
        return []
    singles = sorted({unit for pair in pairs for unit in pair})
    all_scores = scores(masks_without([(), *((unit,) for unit in singles), *pairs], n_units))
    full = float(all_scores[0])
    without = dict(zip(singles, all_scores[1 : 1 + len(singles)].tolist(), strict=True))
    without_both = all_scores[1 + len(singles) :].tolist()
    return [
        full - without[i] - without[j] + neither
        for (i, j), neither in zip(pairs, without_both, strict=True)
    ]


def _partners(sizes: dict[UnitPair, float], others: list[UnitPair], n_units: int) -> list[UnitPair]:
    """The pairs not measured yet, those of the units that interact most first."""
    largest = np.zeros(n_units)
    for pair, size in sizes.items():
        largest[[*pair]] = np.maximum(largest[[*pair]], abs(size))
    return sorted(others, key=lambda pair: (-largest[[*pair]].max(), _distance(pair)))


def _affordable(pairs: list[UnitPair], n_queries: int, asked: list[UnitPair]) -> list[UnitPair]:
    """As many pairs as the queries allow: each costs one, and one per unit not queried before."""
    units = {unit for pair in asked for unit in pair}
    spent, chosen = 1 + len(asked) + len(units), list[UnitPair]()
    for pair in pairs:
        new = set(pair) - units
        if spent + 1 + len(new) <= n_queries:
            spent += 1 + len(new)
            units |= new
            chosen.append(pair)
    return chosen


def _distance(pair: UnitPair) -> int:
    return pair[1] - pair[0]
