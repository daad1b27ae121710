"""Scores of the units of one text: what the fit says, and in its place what is known since.

`removal`, `alone` and Shapley values come from the process around the fit (process.py), if it has
one, and belong to a position, also where equal units share a feature of the fit. `removal` and
`alone` are the classifier's own answers where it was asked.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, FloatArray, Queries, row_keys
from slalom.explainers.follow_up import Fitted
from slalom.surrogates.slalom.process import Answers, whole_of


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores per unit with their errors, and which of them are the classifier's own answers."""

    scores: dict[str, FloatArray]
    errors: dict[str, FloatArray]
    measured: dict[str, BoolArray]

    def answered(
        self, name: str, values: FloatArray, known: BoolArray, *, error: FloatArray
    ) -> "Scores":
        """The same with a score that was asked for, where it was; its error is that of answers."""
        before = self.scores.get(name, np.zeros_like(values))
        where = known.reshape(-1, *[1] * (values.ndim - 1))
        scores = {**self.scores, name: np.where(where, values, before)}
        errors = self.errors
        if name in errors or known.all():
            errors = {
                **errors,
                name: np.where(where, error, errors.get(name, np.zeros_like(values))),
            }
        return replace(self, scores=scores, errors=errors, measured={**self.measured, name: known})


def with_process(one: Fitted) -> Fitted:
    """The text with the process around its fit, which takes all that was asked.

    Only a fit with an anchor says anything of an empty text.
    """
    return replace(one, whole=whole_of(_answers(one))) if one.anchored else one


def _answers(one: Fitted) -> Answers:
    """The subsets that were drawn, each with the row of the fit it became, and all others.

    A sequence in another order stands for the subset, if that was not asked in its own.
    """
    document, queries, follow_up = one.case.document, one.samples.queries, one.follow_up
    drawn = np.flatnonzero(_shows_each_once(queries, document.n_units))
    in_order = _in_order(queries[drawn], document.n_units)
    merged = len(one.rows) < len(queries)
    rows = one.case.answers.inverse if merged else np.arange(len(queries))
    beside = np.full(len(follow_up.present), -1)
    present = np.vstack([document.untied().count(queries[drawn]) > 0, follow_up.present])
    ordered = np.append(in_order, np.ones(len(beside), dtype=bool))
    preferred = np.argsort(~ordered, kind="stable")
    first = np.unique(np.array(row_keys(present[preferred])), return_index=True)[1]
    kept = np.sort(preferred[first])
    return Answers(
        one.fit,
        document.features,
        present[kept],
        np.concatenate([one.case.scores[drawn], follow_up.scores])[kept],
        np.append(rows[drawn], beside)[kept].astype(np.int32),
        np.append(one.samples.weights[drawn], np.zeros(len(beside)))[kept],
        exact=bool(ordered[kept].sum() == 2 ** min(document.n_units, 62)),
        noise=float(one.case.noise.mean()),
    )


def _shows_each_once(queries: Queries, n_units: int) -> BoolArray:
    """(n,) whether a query shows no unit twice."""
    apart = np.where(queries < n_units, queries, -1 - np.arange(queries.shape[1]))
    return np.asarray((np.diff(np.sort(apart, axis=1), axis=1) > 0).all(axis=1))


def _in_order(queries: Queries, n_units: int) -> BoolArray:
    """(n,) whether a query shows units as the text does."""
    shown = np.where(queries < n_units, queries, -1)
    before = np.maximum.accumulate(shown, axis=1)[:, :-1]
    return np.asarray(((shown[:, 1:] < 0) | (shown[:, 1:] > before)).all(axis=1))


def scores_of(one: Fitted) -> Scores:
    """What is said of the units, and in its place what the classifier says."""
    features, whole = one.case.document.features, one.whole
    scored = Scores(
        {name: score[features] for name, score in one.fit.scores.items()},
        {name: error[features] for name, error in one.fit.errors.items()},
        measured={},
    )
    if whole is not None:
        errors = {**scored.errors, **whole.errors} if whole.errors else {}
        scored = replace(scored, scores={**scored.scores, **whole.scores}, errors=errors)
        if whole.exact:
            scored = replace(scored, measured={"shapley": np.ones(len(features), dtype=bool)})
    return _with_single_units(scored, one)


def _with_single_units(scored: Scores, one: Fitted) -> Scores:
    """`removal` and, where nothing can be shown too or nothing is always there, `alone`."""
    follow_up, n_units, full = one.follow_up, one.case.document.n_units, one.case.score
    sizes, error = follow_up.present.sum(axis=1), np.sqrt(2.0 * one.case.noise)
    removed = sizes == n_units - 1
    if removed.any():
        units = np.argmin(follow_up.present[removed], axis=1)
        placed = _placed(units, full - follow_up.scores[removed], n_units)
        scored = scored.answered("removal", *placed, error=error)
    base = follow_up.empty if one.anchored else np.zeros_like(full)
    alone = sizes == 1
    if base is None or not alone.any():
        return scored
    units = np.argmax(follow_up.present[alone], axis=1)
    placed = _placed(units, follow_up.scores[alone] - base, n_units)
    return scored.answered("alone", *placed, error=error)


def _placed(
    units: NDArray[np.intp], values: FloatArray, n_units: int
) -> tuple[FloatArray, BoolArray]:
    """Values of some units at their places, and which units these are."""
    placed, known = np.zeros((n_units, *values.shape[1:])), np.zeros(n_units, dtype=bool)
    placed[units], known[units] = values, True
    return placed, known
