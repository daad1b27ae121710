"""Words that act together: the pairs whose joint effect is not the sum of their own, asked.

With N the whole text and B the text without two units i and j:

    together  F(N) − F(B)                               what both add to the rest of the text
    apart     F(B ∪ i) − F(B)  +  F(B ∪ j) − F(B)       what each adds without the other
    size      together − apart                          the second difference

The same with nothing else shown (B = ∅) says what the pair is by itself. Which pairs are worth
a question: those the explanation's model says interact, neighbours, what follows a negation,
units that say other things in the text than alone, and, once some were asked, the partners of
units that were found to interact. In short texts that is every pair. Attention makes every
word depend a little on every other; a pair whose size the SLALOM of the explanation accounts
for is not listed, unless the two take most of the attention: then they are not two of many
that are averaged, but a switch.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import combinations, zip_longest
from typing import Any

import numpy as np

from slalom.classifiers.load import as_classifier
from slalom.document import BoolArray, FloatArray, IntArray
from slalom.errors import InputError, Setting
from slalom.explanation import Explanation
from slalom.metrics.subject import subject_of, unit_scores
from slalom.pairs import Interactions, Pair
from slalom.surrogates.slalom.model import SlalomModel

N_QUERIES = 200  # a text of up to 17 units is asked about all of its pairs
FIRST_SHARE = 0.6  # of them before it is known which units interact
LEAST = 0.02  # of the largest effect of a single unit: less is no pair
BEYOND_ATTENTION = 0.1  # of its size must be new to the SLALOM of the explanation
MOST = 0.5  # of the attention: two units with so much are not two of many
NEGATION_REACH = 4
NEGATIONS = frozenset(
    "not no never none nothing nobody neither nor without hardly barely scarcely cannot can't "
    "don't doesn't didn't isn't wasn't aren't weren't won't wouldn't couldn't shouldn't n't t "
    "nicht kein keine nie pas jamais sans non nunca".split()
)
Place = tuple[int, int]  # two units, the earlier first
Scores = Callable[[BoolArray], FloatArray]  # (k, n_units) → (k,)


def interactions(
    explanation: Explanation, k: int = 10, classifier: Any = None, *, n_queries: int = N_QUERIES
) -> Interactions:
    """The k strongest pairs that were found; without a classifier what the model says of them."""
    if k < 1:
        raise InputError(Setting("k"), f" must be at least 1, not {k}")
    if explanation.target_index is None:
        raise InputError("pairs are those of one class: explain one target, not target='all'")
    subject = None if classifier is None else subject_of(as_classifier(classifier), explanation)
    scores = _believed(explanation) if subject is None else subject.scores
    has_empty = subject is None or subject.document.has_empty_query
    search = _Search(explanation, scores, has_empty)
    reserved = (3 * k + 1) * has_empty  # for what the pairs found are alone
    found = search.strongest(k, n_queries - reserved)
    return Interactions(
        pairs=tuple(search.pair(at) for at in found),
        n_queries=0 if subject is None else subject.n_queries,
        measured=subject is not None,
        spans=explanation.spans,
    )


@dataclass(frozen=True, eq=False)
class _Search:
    """Second differences of one text, from whoever answers."""

    explanation: Explanation
    scores: Scores
    has_empty: bool  # an empty text can be read

    @property
    def n_units(self) -> int:
        return len(self.explanation.units)

    def strongest(self, k: int, n_queries: int) -> list[Place]:
        """Ask about the likely pairs, then about the partners of units that interact."""
        if self.n_units < 2 + (not self.has_empty):
            return []
        first = _within(self._likely(), int(FIRST_SHARE * n_queries), [])
        sizes = self._sizes(first)
        more = _within(_partners(sizes, self.n_units), n_queries, first)
        sizes |= self._sizes(more)
        places = list(sizes)
        known = self._accounted_for(places)
        least = LEAST * self._largest_effect(places)
        kept = [
            at
            for at, own in zip(places, known, strict=True)
            if abs(sizes[at]) > least
            and abs(sizes[at] - own) > max(least, BEYOND_ATTENTION * abs(sizes[at]))
        ]
        return sorted(kept, key=lambda at: -abs(sizes[at]))[:k]

    def pair(self, at: Place) -> Pair:
        """Everything about one pair; what was asked before costs nothing."""
        i, j = at
        whole, without, only_i, only_j = self.scores(
            _without([(), (i, j), (j,), (i,)], self.n_units)
        ).tolist()
        alone = (None, None)
        if self.has_empty:
            both, empty, first, second = self.scores(
                ~_without([(i, j), (), (i,), (j,)], self.n_units)
            ).tolist()
            alone = (both - empty, first + second - 2 * empty)
        units = self.explanation.units
        return Pair(
            units=at,
            words=(units[i], units[j]),
            together=whole - without,
            apart=only_i + only_j - 2 * without,
            alone_together=alone[0],
            alone_apart=alone[1],
        )

    def _sizes(self, pairs: list[Place]) -> dict[Place, float]:
        return dict(zip(pairs, _second(self.scores, pairs, self.n_units), strict=True))

    def _largest_effect(self, pairs: list[Place]) -> float:
        """What the removal of one unit changes at most, of those in the pairs."""
        singles = sorted({(unit,) for at in pairs for unit in at})
        said = self.scores(_without([(), *singles], self.n_units))
        return float(np.abs(said[0] - said[1:]).max(initial=0.0))

    def _accounted_for(self, pairs: list[Place]) -> list[float]:
        """What of their sizes the explanation's SLALOM has said, as an average of many words."""
        model = self.explanation.model
        attention = getattr(model, "parts", model)
        shares = self.explanation.scores.get("share")
        if not isinstance(attention, SlalomModel) or shares is None:
            return [0.0] * len(pairs)
        said = _second(lambda masks: attention.predict(masks.astype(float)), pairs, self.n_units)
        return [
            own if shares[[*at]].sum() < MOST else 0.0 for at, own in zip(pairs, said, strict=True)
        ]

    def _likely(self) -> list[Place]:
        """All pairs, the most promising first: several orders take turns."""
        strength = (-np.abs(unit_scores(self.explanation))).argsort(kind="stable").argsort()
        everyone = sorted(
            combinations(range(self.n_units), 2), key=lambda at: (strength[[*at]].min(), _far(at))
        )
        near = sorted(everyone, key=lambda at: (_far(at), strength[[*at]].min()))
        orders = [near, self._modelled(), self._negated(), self._changed(), everyone]
        turns = zip_longest(*orders)
        return list(dict.fromkeys(at for turn in turns for at in turn if at is not None))

    def _modelled(self) -> list[Place]:
        """Pairs by what a model with interactions of its own says of them."""
        model = self.explanation.model
        pairs = [] if model is None else asked_together(model)
        sizes = _second(_believed(self.explanation), pairs, self.n_units)
        order = np.argsort(-np.abs(np.asarray(sizes)), kind="stable")
        return [pairs[place] for place in order]

    def _changed(self) -> list[Place]:
        """Pairs of units that both say other things in the text than alone."""
        scores = self.explanation.scores
        if not {"removal", "alone"} <= set(scores):
            return []
        change = np.abs(scores["removal"] - scores["alone"])
        pairs = combinations(range(self.n_units), 2)
        return sorted(pairs, key=lambda at: (-change[[*at]].min(), _far(at)))

    def _negated(self) -> list[Place]:
        """A negation and the few words after it."""
        words = [unit.strip().lower() for unit in self.explanation.units]
        return [
            (at, at + step)
            for step in range(1, NEGATION_REACH + 1)
            for at, word in enumerate(words[: self.n_units - step])
            if word in NEGATIONS
        ]


def _believed(explanation: Explanation) -> Scores:
    """What the fit to subsets says: removals measured since would make pairs of what it misses."""
    fitted = getattr(explanation.model, "fitted", None)
    return explanation.predict if fitted is None else replace(explanation, model=fitted).predict


def asked_together(model: Any) -> list[Place]:
    """Pairs of units that one tree of the model asks about on the way to one leaf."""
    trees = getattr(model, "fitted", model)
    forests = getattr(trees, "forests", ())
    if not forests:
        return []
    groups: IntArray = trees.groups
    of_feature: dict[int, list[int]] = {}
    for unit, feature in enumerate(groups.tolist()):
        of_feature.setdefault(feature, []).append(unit)
    counts = np.bincount(groups, minlength=trees.n_features).astype(float)
    found: dict[Place, None] = {}
    for forest in forests:
        for conditions in forest.conjunctions(counts):
            features = [f for f, _, _ in conditions if f in of_feature]
            for one, other in combinations(features, 2):
                for i in of_feature[one]:
                    found.update({(min(i, j), max(i, j)): None for j in of_feature[other]})
    return list(found)


def _second(scores: Scores, pairs: list[Place], n_units: int) -> list[float]:
    """F(N) − F(N∖i) − F(N∖j) + F(N∖ij) of each pair."""
    if not pairs:
        return []
    singles = sorted({unit for at in pairs for unit in at})
    said = scores(_without([(), *((unit,) for unit in singles), *pairs], n_units))
    without = dict(zip(singles, said[1 : 1 + len(singles)].tolist(), strict=True))
    both = said[1 + len(singles) :].tolist()
    whole = float(said[0])
    return [
        whole - without[i] - without[j] + neither
        for (i, j), neither in zip(pairs, both, strict=True)
    ]


def _partners(sizes: dict[Place, float], n_units: int) -> list[Place]:
    """Every pair not asked yet, those of the units that interact most first."""
    reach = np.zeros(n_units)
    for at, size in sizes.items():
        reach[[*at]] = np.maximum(reach[[*at]], abs(size))
    others = [at for at in combinations(range(n_units), 2) if at not in sizes]
    return sorted(others, key=lambda at: (-reach[[*at]].max(), _far(at)))


def _within(pairs: list[Place], n_queries: int, asked: list[Place]) -> list[Place]:
    """As many pairs as can be asked: each costs one query, and one per unit not asked before."""
    units = {unit for at in asked for unit in at}
    spent, chosen = 1 + len(asked) + len(units), list[Place]()
    for at in pairs:
        new = set(at) - units
        if spent + 1 + len(new) <= n_queries:
            spent += 1 + len(new)
            units |= new
            chosen.append(at)
    return chosen


def _far(at: Place) -> int:
    return at[1] - at[0]


def _without(sets: Iterable[tuple[int, ...]], n_units: int) -> BoolArray:
    """(k, n_units) everything shown but these."""
    rows = list(sets)
    kept = np.ones((len(rows), n_units), dtype=bool)
    for row, gone in enumerate(rows):
        kept[row, list(gone)] = False
    return kept
