"""What can be asked is not estimated: single units, single removals, the empty text.

After a fit the classifier is asked what it says to the text less each of the units that matter
most. `removal` and `alone` are then its own answers, and belong to a position, also where equal
units share a feature; so do Shapley values where every subset was asked. Elsewhere Shapley
values are those of the fit plus their share of what the fit left (posterior.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slalom.classifiers.base import Classifier
from slalom.document import BoolArray, Document, FloatArray, IntArray, queries_from_masks
from slalom.explainers.base import Answers, ask
from slalom.explainers.case import Case
from slalom.samplers.base import Samples, are_all_subsets
from slalom.surrogates.base import Fit
from slalom.surrogates.shapley_estimates import shapley_of_all
from slalom.surrogates.slalom.nearby import NearFit
from slalom.surrogates.slalom.residual_shapley import Shares

ALL_ASKED = "all {} subsets of the units were asked: what they say is exact"


@dataclass(frozen=True)
class Facts:
    """How much is asked beside the fit."""

    max_removals: int = 100  # units, the strongest first
    share: float = 0.25  # of a given number of queries, at most
    rows_per_unit: int = 3  # random ones that come before removals beyond `min_removals`
    min_removals: int = 25
    shapley: bool = True  # whether the design bears Shapley values out, beyond their sum
    nearby: bool = True  # whether it says something of the text nearly whole

    def reserved(self, document: Document, n_queries: int | None) -> int:
        """How many of `n_queries` are kept back for what is asked after the fit."""
        n_subsets = 2 ** min(document.n_units, 30) - (not document.has_empty_query)
        if n_queries is None or n_queries >= n_subsets:
            return 0
        n_different = len(np.unique(document.features))  # each is asked alone
        spare = n_queries - n_different - self.rows_per_unit * n_different
        most = min(self.max_removals, max(self.min_removals, spare))
        return min(document.n_units, most, int(self.share * n_queries))

    def masks(self, document: Document, fit: Fit, room: int | None) -> BoolArray:
        """Nothing, the text less each of the strongest units, and every unit alone."""
        n_units = document.n_units
        wanted = min(n_units, self.max_removals, n_units if room is None else max(room, 0))
        strongest = np.argsort(-strength_of(fit)[document.features], kind="stable")[:wanted]
        single = np.eye(n_units, dtype=bool)
        nothing = np.zeros((1, n_units), dtype=bool)
        masks = np.vstack([nothing, ~single[np.sort(strongest)], single])
        return masks if document.has_empty_query else masks[masks.any(axis=1)]


@dataclass(frozen=True, eq=False)
class FollowUp:
    """What was asked after the fit of one document: subsets and their scores."""

    case: Case  # with the answers of both rounds
    present: BoolArray  # (k, n_units)
    scores: FloatArray  # (k,) or (k, n_classes)

    @property
    def empty(self) -> FloatArray | None:
        """The score of the empty text."""
        at = np.flatnonzero(~self.present.any(axis=1))
        return np.asarray(self.scores[at[0]]) if len(at) else None


def ask_facts(
    plan: Facts,
    classifier: Classifier,
    cases: Sequence[Case],
    fits: Sequence[Fit],
    *,
    n_queries: int | None,
) -> list[FollowUp]:
    """The second round, all documents together; never more than `n_queries` with the first."""
    masks = []
    for case, fit in zip(cases, fits, strict=True):
        room = None if n_queries is None else n_queries - case.answers.n_queries
        wanted = plan.masks(case.document, fit, room)
        masks.append(wanted[_affordable(classifier, case, wanted, room)])
    pairs = [
        (case.document, queries_from_masks(mask)) for case, mask in zip(cases, masks, strict=True)
    ]
    answered = ask(classifier, pairs, [case.answers for case in cases])
    return [
        FollowUp(_with(case, answers), mask, case.scores_of(answers.logits))
        for case, mask, answers in zip(cases, masks, answered, strict=True)
    ]


def _with(case: Case, answers: Answers) -> Case:
    """The full text stays the first of the rows that tell the target."""
    first = case.answers
    kept = replace(answers, logits=first.logits, first=first.first, inverse=first.inverse)
    return replace(case, answers=kept)


def _affordable(
    classifier: Classifier, case: Case, masks: BoolArray, room: int | None
) -> NDArray[np.intp]:
    """Rows that are known already, and as many others as there is room for."""
    seen = classifier.seen(case.document, queries_from_masks(masks))
    known, new = case.answers.known, dict.fromkeys(s for s in seen if s not in case.answers.known)
    allowed = set(list(new)[: len(new) if room is None else max(room, 0)])
    rows = [at for at, entry in enumerate(seen) if entry in known or entry in allowed]
    return np.array(rows, dtype=np.intp)


def strength_of(fit: Fit) -> FloatArray:
    """How much each feature matters, by the strongest of its classes."""
    names = [name for name in ("shapley", "removal", "score") if name in fit.scores]
    sizes = [np.abs(fit.scores[name]).reshape(len(fit.scores[name]), -1) for name in names]
    return np.asarray(np.max([size.max(axis=1) for size in sizes], axis=0))


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores per unit with their errors, and which of them are the classifier's own answers."""

    scores: dict[str, FloatArray]
    errors: dict[str, FloatArray]
    measured: dict[str, BoolArray]
    exact: bool = False

    def answered(self, name: str, values: FloatArray, known: BoolArray) -> "Scores":
        """The same with a score that was asked for, where it was."""
        before = self.scores.get(name, np.zeros_like(values))
        where = known.reshape(-1, *[1] * (values.ndim - 1))
        scores = {**self.scores, name: np.where(where, values, before)}
        errors = self.errors
        if name in errors or known.all():
            errors = {**errors, name: np.where(where, 0.0, errors.get(name, np.zeros_like(values)))}
        return replace(self, scores=scores, errors=errors, measured={**self.measured, name: known})


def as_fitted(fit: Fit, features: IntArray) -> Scores:
    """What the fit says of every unit."""
    return Scores(
        {name: score[features] for name, score in fit.scores.items()},
        {name: error[features] for name, error in fit.errors.items()},
        {},
    )


def scores_of(
    follow_up: FollowUp, fit: Fit, samples: Samples, *, shares: Shares | None, known: NearFit | None
) -> Scores:
    """What the fit says of the units, and in its place what the classifier says.

    `shares` and `known` are what came of what the fit left (residuals.py).
    """
    scored = as_fitted(fit, follow_up.case.document.features)
    if known is not None and known.error is not None:
        scored = _with_removals(scored, known.removals, known.error)
    scored = _with_single_units(scored, follow_up, fit)
    if follow_up.empty is not None and samples.complete:
        return _exact(scored, follow_up, samples)
    return scored if shares is None else _with_shares(scored, shares)


def _with_removals(scored: Scores, removals: FloatArray, error: FloatArray) -> Scores:
    """Removals near what was measured; as far off as measured ones are when left out."""
    shape = scored.scores["removal"].shape
    errors = {**scored.errors, "removal": np.tile(error, (len(removals), 1)).reshape(shape)}
    return replace(
        scored, scores={**scored.scores, "removal": removals.reshape(shape)}, errors=errors
    )


def _with_shares(scored: Scores, shares: Shares) -> Scores:
    """Shapley values with their share of what the fit left, and what is open about it."""
    scores, errors, shape = scored.scores, scored.errors, scored.scores["shapley"].shape
    values = scores["shapley"] + shares.values.reshape(shape)
    if "shapley" in errors:
        own = errors["shapley"].reshape(shares.variances.shape) ** 2 * shares.of_fit
        errors = {**errors, "shapley": np.sqrt(own + shares.variances).reshape(shape)}
    return replace(scored, scores={**scores, "shapley": values}, errors=errors)


def _with_single_units(scored: Scores, follow_up: FollowUp, fit: Fit) -> Scores:
    """`removal` and, where nothing can be shown too or nothing is always there, `alone`."""
    n_units, full = follow_up.case.document.n_units, follow_up.case.score
    sizes = follow_up.present.sum(axis=1)
    removed = sizes == n_units - 1
    if removed.any():
        units = np.argmin(follow_up.present[removed], axis=1)
        scored = scored.answered(
            "removal", *_placed(units, full - follow_up.scores[removed], n_units)
        )
    anchored = getattr(fit.model, "anchor", None) is not None
    base = follow_up.empty if anchored else np.zeros_like(full)
    alone = sizes == 1
    if base is None or not alone.any():
        return scored
    units = np.argmax(follow_up.present[alone], axis=1)
    return scored.answered("alone", *_placed(units, follow_up.scores[alone] - base, n_units))


def _placed(
    units: NDArray[np.intp], values: FloatArray, n_units: int
) -> tuple[FloatArray, BoolArray]:
    """Values of some units at their places, and which units these are."""
    placed, known = np.zeros((n_units, *values.shape[1:])), np.zeros(n_units, dtype=bool)
    placed[units], known[units] = values, True
    return placed, known


def _exact(scored: Scores, follow_up: FollowUp, samples: Samples) -> Scores:
    """Where every subset was asked the classifier's own Shapley values are known."""
    case = follow_up.case
    present = case.document.untied().count(samples.queries) > 0
    assert are_all_subsets(present, case.document)
    values = shapley_of_all(present, case.scores)
    known = np.ones(len(values), dtype=bool)
    return replace(scored.answered("shapley", values, known), exact=True)
