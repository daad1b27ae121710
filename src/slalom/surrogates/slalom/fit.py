"""SLALOM as a surrogate: from counts and scores to a model, its read-outs and their errors."""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.surrogates.base import Fit, Observations, no_quality_reason
from slalom.surrogates.quality import sampled_rows
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.certainty import certainty
from slalom.surrogates.slalom.described import described
from slalom.surrogates.slalom.folds import folds_of, said_of_all, without_folds
from slalom.surrogates.slalom.left_out import judge, left_out
from slalom.surrogates.slalom.length import LengthCurve, knots_of, ramps
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.path import ByLeaveOneOut
from slalom.surrogates.slalom.problem import Parts, Problem, Solution, State
from slalom.surrogates.slalom.readouts import length_errors, read_outs, standard_errors
from slalom.surrogates.slalom.solvers import Solver

DEFAULT_SOLVER = ByLeaveOneOut()
FEW_ROWS = 120  # at most: what is built on the fit is held out by folds of all of it
ANCHOR_PRIOR = 2.0  # what is always present is expected to outweigh seven units


@dataclass(frozen=True, eq=False)
class Prior:
    """What is believed of each feature before asking; NaN: nothing."""

    values: FloatArray  # (n_features,)
    importances: FloatArray  # (n_features,)
    anchor: float = 0.0  # its importance beside theirs: it is not pulled there, it begins there


@dataclass(frozen=True, eq=False)
class Solved:
    """A problem and its solution, and the way back to scores."""

    problem: Problem
    solution: Solution
    back: FloatArray  # (n_classes, n_columns) takes the problem's columns to the classes
    used: BoolArray  # (n_queries,) the rows of the problem

    @property
    def unit(self) -> float:
        """The spread of the scores, in which the problem is posed."""
        return float(np.linalg.norm(self.back[:, 0]))


@dataclass(frozen=True)
class SlalomSurrogate:
    """Fits by least squares; `anchored` adds what is always present, the paper's model has none.

    `parts` adds direct effects and the length curve, which need an anchor to stand beside.
    `by_folds` holds rows out in folds, by refitting: leave-one-out from one factorisation
    (left_out.py) is too hopeful for what is built on it.
    """

    anchored: bool = True
    parts: bool = True
    solver: Solver = DEFAULT_SOLVER
    by_folds: bool = False
    prior: Prior | None = None  # None: every value shrinks to one score, every importance to 0
    has_shapley_errors: ClassVar[bool] = True

    def fit(self, observed: Observations) -> Fit:
        return self.finished(self.solve(observed), observed)

    def solve(self, observed: Observations) -> "Solved":
        """The first half of a fit: where the search ended."""
        counts, weights = observed.counts, observed.weights
        columns = observed.scores.reshape(len(counts), -1)
        judged = _judged(counts, observed.document_counts) & (weights > 0)
        contrasts = _contrasts(columns)
        unit = _unit(columns @ contrasts, judged)
        in_units = replace(observed, scores=columns @ contrasts / unit)
        scaled = self.prior and replace(self.prior, values=self.prior.values / unit)
        problem, solution = self._solved(
            [
                replace(self, prior=prior).problem(in_units)
                for prior in dict.fromkeys((scaled, None))
            ]
        )
        used = self._used(counts, weights)
        return Solved(problem, solution, contrasts * unit, used)

    def finished(self, solved: "Solved", observed: Observations) -> Fit:
        """The second half: the model, what is read off it, and how sure it is."""
        counts, scores, document_counts = observed.counts, observed.scores, observed.document_counts
        problem, solution, back = solved.problem, solved.solution, solved.back
        columns = scores.reshape(len(scores), -1)
        model = _model(solved, solution.state, observed)
        used, unused = solved.used, ~solved.used
        shown = counts[used]
        by = sampled_rows(shown)
        sure = certainty(problem, solution, back, by)
        judged = sure.judged
        held_out = np.empty(columns.shape)
        held_out[used] = columns[used] - sure.residuals
        held_out[unused] = model.predict(counts[unused]).reshape(-1, columns.shape[1])
        of_rows, states = folds_of(problem), list[State]()
        drawn = np.flatnonzero(of_rows >= 0)
        if self.by_folds and len(drawn) and not problem.complete:
            states = without_folds(problem, solution, of_rows)
            said = np.stack([said_of_all(problem, state) for state in states])
            held_out[np.flatnonzero(used)[drawn]] = said[of_rows[drawn], drawn] @ back.T
        few = states if len(of_rows) <= FEW_ROWS else []
        folds = np.full(len(counts), -1, np.int32)
        folds[used] = of_rows
        return Fit(
            model=model,
            scores=read_outs(model, document_counts),
            errors={} if judged.r2 is None else standard_errors(model, document_counts, sure),
            identified=np.ones(len(document_counts), dtype=bool),
            r2=judged.r2,
            r2_error=judged.r2_error,
            rmse=None if judged.rmse is None else judged.rmse * solved.unit,
            notes=(no_quality_reason(counts, columns, document_counts),)
            if judged.r2 is None
            else (),
            held_out=held_out.reshape(scores.shape),
            length_errors=None
            if judged.r2 is None
            else length_errors(model, np.arange(document_counts.sum() + 1.0), sure),
            judged=_placed(solved, by),
            folds=folds,
            without=tuple(_model(solved, state, observed) for state in few),
            parts=described(model, shown, scores[used], weights=problem.weights, r2=judged.r2),
        )

    def _solved(self, problems: list[Problem]) -> tuple[Problem, Solution]:
        """With the prior and without it, which may be wrong: what predicts left-out rows best."""
        solved = [(problem, self.solver.solve(problem)) for problem in problems]
        if len(solved) == 1:
            return solved[0]
        errors = [judge(p, left_out(p, s.state, s.ridges).residuals) for p, s in solved]
        return solved[int(np.argmin(errors))]

    def problem(self, observed: Observations) -> Problem:
        """Only rows that are fitted; without an anchor an empty query says nothing."""
        counts, weights = observed.counts, observed.weights
        document_counts = observed.document_counts
        used = self._used(counts, weights)
        columns = observed.scores.reshape(len(counts), -1)
        common = self._common(counts, columns, weights, document_counts)
        counts, columns, weights = counts[used], columns[used], weights[used]
        values, importance_prior = self._prior_means(common, counts)
        if self.anchored:
            values[-1] = _empty_score(counts, columns, common)
        shown = np.hstack([counts, np.ones((len(counts), 1))]) if self.anchored else counts
        return Problem(
            Rows.of(shown),
            columns,
            weights / weights.mean(),
            values,
            importance_prior,
            self.anchored,
            grounded=bool((counts.sum(axis=1) == 0).any()),
            complete=_are_all(counts, document_counts),
            parts=_parts(counts, document_counts) if self.anchored and self.parts else None,
            judged=_judged(counts, document_counts),
            anchor_prior=ANCHOR_PRIOR if self.anchored and self.prior is None else 0.0,
        )

    def _used(self, counts: FloatArray, weights: FloatArray) -> BoolArray:
        used = weights > 0
        return used if self.anchored else used & (counts.sum(axis=1) > 0)

    def _prior_means(self, common: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The priors of values and importances, the anchor's included."""
        n_features = counts.shape[1]
        k = n_features + self.anchored
        values, importance_prior = np.tile(common, (k, 1)), np.zeros(k)
        if self.prior is not None:
            known = self.prior.values.reshape(n_features, -1)
            values[:n_features] = np.where(np.isfinite(known), known, common)
            has_importance = np.isfinite(self.prior.importances)
            if has_importance.any():
                mean = self.prior.importances[has_importance].mean()
                importance_prior[:n_features] = np.where(
                    has_importance, self.prior.importances - mean, 0.0
                )
                importance_prior[n_features:] = self.prior.anchor - mean
        return values, importance_prior

    def _common(
        self,
        counts: FloatArray,
        scores: FloatArray,
        weights: FloatArray,
        document_counts: FloatArray,
    ) -> FloatArray:
        """Where values shrink to: the empty query's score, or the document's without an anchor."""
        reference = np.zeros_like(document_counts) if self.anchored else document_counts
        rows: BoolArray = (counts == reference).all(axis=1)
        if rows.any():
            return np.asarray(scores[rows].mean(axis=0))
        return np.asarray(weights @ scores / weights.sum())


def _empty_score(counts: FloatArray, columns: FloatArray, common: FloatArray) -> FloatArray:
    """(n_columns,) what nothing would say: not asked, it is guessed to be what one unit says."""
    sizes = counts.sum(axis=1)
    alone = columns[sizes == 1]
    return common if (sizes == 0).any() or not len(alone) else np.asarray(alone.mean(axis=0))


def _placed(solved: Solved, by: BoolArray) -> BoolArray:
    """(n_queries,) the rows that judge the fit, among all that were asked."""
    rows = np.zeros(len(solved.used), dtype=bool)
    rows[solved.used] = by if solved.problem.judged is None else by & solved.problem.judged
    return rows


def _judged(counts: FloatArray, document_counts: FloatArray) -> BoolArray:
    """All rows but the empty and the whole text, of which there is one each.

    No other row is like them, and a fit that passes through them is not the better for it:
    an unusual score of the empty text would otherwise be most of the spread there is.
    """
    whole = (counts == document_counts).all(axis=1)
    return np.asarray((counts.sum(axis=1) > 0) & ~whole)


def _unit(columns: FloatArray, judged: BoolArray) -> float:
    """The spread of the scores: fitted in it, a ridge means the same for log-odds and prices."""
    largest = float(np.abs(columns).max(initial=0.0)) or 1.0
    for rows in (columns[judged], columns):
        spread = largest * _deviation(rows / largest) if len(rows) else 0.0
        if spread > 1e-9 * largest:
            return spread
    return 1.0


def _deviation(rows: FloatArray) -> float:
    return float(np.sqrt(rows.var(axis=0).mean()))


def _parts(counts: FloatArray, document_counts: FloatArray) -> Parts:
    """A part that all direct effects share is a straight length curve: they sum to 0."""
    sizes = counts.sum(axis=1)
    direct = counts - sizes[:, None] / counts.shape[1]
    length = ramps(sizes, knots_of(float(document_counts.sum())))
    if (sizes > 0).all():  # without the empty text the first step is the anchor's value
        length[:, 0] = 0.0
    return Parts(direct, length)


def _contrasts(columns: FloatArray) -> FloatArray:
    """(n_classes, n_columns) what of the scores to fit.

    Scores of all classes that sum to 0 say one thing less than there are classes; fitted as
    they are, every answer would count for more than it tells.
    """
    n_classes = columns.shape[1]
    if n_classes == 1 or np.abs(columns.sum(axis=1)).max() > 1e-9 * np.abs(columns).max():
        return np.eye(n_classes)
    steps = np.eye(n_classes)[:, 1:] - 1 / n_classes
    return np.asarray(np.linalg.qr(steps)[0])


def _are_all(counts: FloatArray, document_counts: FloatArray) -> bool:
    """Whether the rows hold every part of the document, the empty one perhaps left out."""
    if np.log2(document_counts + 1).sum() > np.log2(len(counts) + 1):
        return False
    parts = counts[
        (counts <= document_counts).all(axis=1)
    ]  # sequences may repeat what the document has once
    return bool(len(np.unique(parts, axis=0)) >= np.prod(document_counts + 1) - 1)


def _model(solved: Solved, state: State, observed: Observations) -> SlalomModel:
    """The model of all classes, or of the one; `back` takes the problem's columns to them."""
    problem, back, m = solved.problem, solved.back, solved.problem.n_features
    values, importances = state.values @ back.T, state.importances.astype(np.float64)
    model = SlalomModel(values[:m], importances[:m], None)
    if problem.anchored:
        anchor = Anchor(tuple(map(float, values[m])), float(importances[m]))
        model = replace(model, anchor=anchor)
    if problem.anchored and problem.parts is not None:
        effects = state.effects @ back.T
        direct, rises = effects[:m], effects[m:]
        curve = LengthCurve(knots_of(float(observed.document_counts.sum())), rises.cumsum(axis=0))
        model = replace(model, direct=direct - direct.mean(axis=0), length=curve)
    return model.column(0) if observed.scores.ndim == 1 else model
