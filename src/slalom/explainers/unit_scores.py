"""Scores of the units of one text: what the fit says, and in its place what was found out since.

`removal` and `alone` are the classifier's own answers where it was asked, and belong to a position,
also where equal units share a feature; so do Shapley values where every subset was asked.
Elsewhere Shapley values are those of the fit plus their share of what the fit left (posterior.py).
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, FloatArray
from slalom.explainers.stages import Fitted
from slalom.samplers.base import are_all_subsets
from slalom.surrogates.shapley_estimates import shapley_of_all
from slalom.surrogates.slalom.nearby import NearFit
from slalom.surrogates.slalom.residual_shapley import Shares


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


def scores_of(one: Fitted) -> Scores:
    """What the fit says of the units, and in its place what the classifier says."""
    features, added = one.case.document.features, one.residuals
    scored = Scores(
        {name: score[features] for name, score in one.fit.scores.items()},
        {name: error[features] for name, error in one.fit.errors.items()},
        measured={},
    )
    if added.corrected is not None:
        scored = _with_removals(scored, added.corrected.near)
    scored = _with_single_units(scored, one)
    if one.all_asked:
        return _exact(scored, one)
    return scored if added.shares is None else _with_shares(scored, added.shares)


def _with_removals(scored: Scores, near: NearFit) -> Scores:
    """Removals near what was measured; as far off as measured ones are when left out."""
    if near.error is None:
        return scored
    shape = scored.scores["removal"].shape
    error = np.tile(near.error, (len(near.removals), 1)).reshape(shape)
    return replace(
        scored,
        scores={**scored.scores, "removal": near.removals.reshape(shape)},
        errors={**scored.errors, "removal": error},
    )


def _with_shares(scored: Scores, shares: Shares) -> Scores:
    """Shapley values with their share of what the fit left, and what is open about it."""
    scores, errors, shape = scored.scores, scored.errors, scored.scores["shapley"].shape
    values = scores["shapley"] + shares.values.reshape(shape)
    if "shapley" in errors:
        own = errors["shapley"].reshape(shares.variances.shape) ** 2 * shares.of_fit
        errors = {**errors, "shapley": np.sqrt(own + shares.variances).reshape(shape)}
    return replace(scored, scores={**scores, "shapley": values}, errors=errors)


def _with_single_units(scored: Scores, one: Fitted) -> Scores:
    """`removal` and, where nothing can be shown too or nothing is always there, `alone`."""
    follow_up, n_units, full = one.follow_up, one.case.document.n_units, one.case.score
    sizes = follow_up.present.sum(axis=1)
    removed = sizes == n_units - 1
    if removed.any():
        units = np.argmin(follow_up.present[removed], axis=1)
        scored = scored.answered(
            "removal", *_placed(units, full - follow_up.scores[removed], n_units)
        )
    base = follow_up.empty if one.anchored else np.zeros_like(full)
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


def _exact(scored: Scores, one: Fitted) -> Scores:
    """Where every subset was asked the classifier's own Shapley values are known."""
    document = one.case.document
    present = document.untied().count(one.samples.queries) > 0
    assert are_all_subsets(present, document)
    values = shapley_of_all(present, one.case.scores)
    known = np.ones(len(values), dtype=bool)
    return replace(scored.answered("shapley", values, known), exact=True)
