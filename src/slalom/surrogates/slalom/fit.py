"""SLALOM as a surrogate: from counts and scores to a model, its read-outs and their errors."""

from dataclasses import dataclass, replace

import numpy as np

from slalom.document import BoolArray, FloatArray
from slalom.surrogates.base import Fit
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.certainty import certainty
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.problem import Problem, Solution
from slalom.surrogates.slalom.readouts import read_outs, standard_errors
from slalom.surrogates.slalom.solvers import LevenbergMarquardt, Solver

DEFAULT_SOLVER = LevenbergMarquardt()
UNSURE = "too few different answers to say how sure the scores are: ask more, if there are more"


@dataclass(frozen=True, eq=False)
class Prior:
    """What is believed of each feature before asking; NaN: nothing."""

    values: FloatArray  # (n_features,)
    importances: FloatArray  # (n_features,)
    anchor: float = 0.0  # its importance beside theirs: it is not pulled there, it begins there


@dataclass(frozen=True)
class SlalomSurrogate:
    """Fits by least squares; `anchored` adds what is always present, the paper's model has none."""

    anchored: bool = True
    solver: Solver = DEFAULT_SOLVER
    prior: Prior | None = None  # None: every value shrinks to one score, every importance to 0

    def fit(
        self,
        counts: FloatArray,
        scores: FloatArray,
        *,
        weights: FloatArray,
        document_counts: FloatArray,
    ) -> Fit:
        columns = scores.reshape(len(scores), -1)
        unit, contrasts = _unit(columns), _contrasts(columns)
        prior = self.prior and replace(self.prior, values=self.prior.values / unit)
        columns = columns @ contrasts / unit
        problem = replace(self, prior=prior).problem(
            counts, columns, weights=weights, document_counts=document_counts
        )
        solution = self.solver.solve(problem)
        values = solution.state.values @ contrasts.T * unit
        model = _model(problem, solution, values[:, 0] if scores.ndim == 1 else values)
        sure = certainty(problem, solution, contrasts * unit)
        return Fit(
            model=model,
            scores=read_outs(model, document_counts),
            errors={}
            if sure.r2 is None
            else standard_errors(model, document_counts, sure.covariances),
            identified=np.ones(len(document_counts), dtype=bool),
            r2=sure.r2,
            rmse=None if sure.rmse is None else sure.rmse * unit,
            notes=(UNSURE,) if sure.r2 is None else (),
        )

    def problem(
        self,
        counts: FloatArray,
        scores: FloatArray,
        *,
        weights: FloatArray,
        document_counts: FloatArray,
    ) -> Problem:
        """Only rows that are fitted; without an anchor an empty query says nothing."""
        used, empty = weights > 0, counts.sum(axis=1) == 0
        if not self.anchored:
            used &= ~empty
        columns = scores.reshape(len(scores), -1)
        common = self._common(counts, columns, weights, document_counts)
        counts, columns, weights = counts[used], columns[used], weights[used]
        values, importance_prior = self._believed(common, counts)
        parts = np.hstack([counts, np.ones((len(counts), 1))]) if self.anchored else counts
        return Problem(
            Rows.of(parts),
            columns,
            weights / weights.mean(),
            values,
            importance_prior,
            self.anchored,
            grounded=bool(empty[used].any()),
            complete=_are_all(counts, document_counts),
        )

    def _believed(self, common: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The priors of values and importances, the anchor's included.

        It begins as loud as the units of a typical query together: from a silent one, texts of
        mixed opinions do not find their way to the loud one they need.
        """
        n_features = counts.shape[1]
        k = n_features + self.anchored
        values, importance_prior = np.tile(common, (k, 1)), np.zeros(k)
        importance_prior[n_features:] = np.log(max(1.0, float(counts.sum(axis=1).mean())))
        if self.prior is not None:
            told = self.prior.values.reshape(n_features, -1)
            values[:n_features] = np.where(np.isfinite(told), told, common)
            heard = np.isfinite(self.prior.importances)
            if heard.any():
                mean = self.prior.importances[heard].mean()
                importance_prior[:n_features] = np.where(heard, self.prior.importances - mean, 0.0)
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


def _unit(columns: FloatArray) -> float:
    """The spread of the scores: fitted in it, a ridge means the same for log-odds and prices."""
    largest = float(np.abs(columns).max(initial=0.0)) or 1.0
    spread = largest * float((columns / largest).std())
    return spread if spread > 1e-9 * largest else 1.0


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


def _model(problem: Problem, solution: Solution, values: FloatArray) -> SlalomModel:
    importances = solution.state.importances
    if not problem.anchored:
        return SlalomModel(values, importances, None)
    value = float(values[-1]) if values.ndim == 1 else tuple(map(float, values[-1]))
    return SlalomModel(values[:-1], importances[:-1], Anchor(value, float(importances[-1])))
