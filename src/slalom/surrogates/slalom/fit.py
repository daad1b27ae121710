"""SLALOM as a surrogate: from counts and scores to a model and its read-outs.

`SlalomSurrogate` is what a process is built around: attention with an anchor, and a length curve.
What words add in any company is left to the process. Scores enter in units of their spread, n rows
weigh n together, and the ridges are those of a prior, so that more queries count for more:

    values, length curve      strength × the summed variance of the part's columns
    importances               strength

`PlainSlalom` is the paper's: no anchor, and an optimizer that chooses its own ridges.
Answers of an exact SLALOM come back as it is.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.surrogates.base import (
    UNKNOWN,
    Fit,
    HeldOutQuality,
    Observations,
    contrasts_of,
    no_quality_reason,
    spread_of,
)
from slalom.surrogates.quality import loo_quality, sampled_rows
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.model import LengthCurve, Prior, SlalomModel, knots_of, ramps
from slalom.surrogates.slalom.newton import (
    Free,
    Point,
    Problem,
    Ridges,
    attention_of,
    descend,
    gauss_newton,
)
from slalom.surrogates.slalom.optimizers import by_evidence
from slalom.surrogates.slalom.process import FEW_ROWS, AllAsked, ProcessFit, fit_process
from slalom.surrogates.slalom.readouts import read_outs, standard_errors
from slalom.surrogates.slalom.recovery import Recovered, recovered
from slalom.surrogates.slalom.two_scores import Known, TwoScores, Unasked, predicted, two_scores
from slalom.surrogates.slalom.uncertainty import influence_of, left_out, unasked

N_FOLDS, N_FOLDS_OF_FEW = 4, 8
FEW = 600  # rows at most: a fit without a quarter of them would be too poor to judge by

Optimizer = Callable[[Problem], tuple[Problem, Point]]


@dataclass(frozen=True, eq=False)
class FittedRows:
    """The rows that are fitted, in units of the scores' spread.

    So a ridge means the same for log-odds and prices.
    """

    observed: Observations
    used: BoolArray  # (n_queries,) the rows that are fitted
    inner: BoolArray  # (n,) of them: those that show neither nothing nor everything
    contrasts: FloatArray  # (n_classes, n_columns)
    unit: float

    @classmethod
    def of(cls, observed: Observations, used: BoolArray) -> "FittedRows":
        counts, columns = observed.counts[used], observed.scores.reshape(len(used), -1)[used]
        whole = (counts == observed.document_counts).all(axis=1)
        inner: BoolArray = counts.any(axis=1) & ~whole
        contrasts = contrasts_of(columns)
        fitted = columns @ contrasts
        unit = spread_of(fitted[inner]) or spread_of(fitted) or 1.0  # both ends may be unusual
        return cls(observed, used, inner, contrasts, unit)

    @property
    def counts(self) -> FloatArray:
        return self.observed.counts[self.used]

    @property
    def scores(self) -> FloatArray:
        """(n, n_classes)"""
        return self.observed.scores[self.used].reshape(len(self.inner), -1)

    @property
    def weights(self) -> FloatArray:
        weights = self.observed.weights[self.used]
        return np.asarray(weights / weights.mean())

    @property
    def n_units(self) -> float:
        return float(self.observed.document_counts.sum())

    def columns(self, scores: FloatArray) -> FloatArray:
        return np.asarray(scores @ self.contrasts / self.unit)

    def classes(self, columns: FloatArray) -> FloatArray:
        return np.asarray(columns @ self.contrasts.T * self.unit)

    def model(self, values: FloatArray, importances: FloatArray) -> SlalomModel:
        """Of (k, n_classes) values and (k,) importances, the anchor's last."""
        one, m = self.observed.scores.ndim == 1, len(self.observed.document_counts)
        return SlalomModel.of(values, importances, m, one=one)


@dataclass(frozen=True)
class SlalomSurrogate:
    """Held-out rows and R² are those of refits without a fold of the rows."""

    length: float | None = 10.0  # strength; None: no length curve
    prior: Prior | None = None  # None: every value shrinks to one score, every importance to 0
    value: float = 0.25  # strength
    importance: float = 0.4  # strength
    anchor: float = 2.0  # prior importance: what is always present outweighs seven units

    def fit(self, observed: Observations) -> Fit:
        frame = FittedRows.of(observed, observed.weights > 0)
        exact = recovered(frame.counts, frame.scores, anchored=True)
        if exact is not None:
            return _exact_fit(exact, frame)
        frame = FittedRows.of(observed, frame.used & observed.counts.any(axis=1))
        priors = dict.fromkeys((self.prior, None))
        fits = [Folded.of(frame, self._problem(frame, prior)) for prior in priors]
        best = min(fits, key=attrgetter("held_out_error"))
        if frame.inner.sum() > FEW_ROWS or not best.can_be_compared:
            return best.fit()  # many rows outweigh any strength
        freer = replace(self, importance=0.01 * self.importance)  # one unit of few may suffice
        most = 0.25 * best.held_out_error  # else it decides nothing
        fits = [Folded.of(frame, freer._problem(frame, prior), most) for prior in priors]
        return min(best, *fits, key=attrgetter("held_out_error")).fit()

    def with_follow_up(
        self, asked: AllAsked, seen: Observations, known: Known, unasked: Unasked | None
    ) -> tuple[ProcessFit, TwoScores]:
        """The process fitted to all that was asked, and the two scores."""
        fit = fit_process(asked)
        beyond = None if unasked is None else predicted(unasked, fit)
        return fit, two_scores(seen, known, beyond, prior=self.prior).expand(asked.features)

    def _problem(self, frame: FittedRows, prior: Prior | None) -> Problem:
        counts, columns = frame.counts, frame.columns(frame.scores)
        n, m = counts.shape
        sizes = counts.sum(axis=1)
        rows = Rows.of(np.hstack([counts, np.ones((n, 1))]))
        centre = np.tile(np.average(columns, axis=0, weights=frame.weights), (m + 1, 1))
        if (sizes == 1).any():  # nothing is guessed to say what one unit says
            centre[m] = columns[sizes == 1].mean(axis=0)
        means = np.append(np.zeros(m), self.anchor)  # of importances
        if prior is not None and prior.known.any():
            values = frame.columns(prior.values.reshape(m, -1))
            centre[:m] = np.where(np.isfinite(values), values, centre[:m])
            means = prior.relative_importances
        of_anchor, of_first_step = 0.03, 1e-3  # ridges of what all texts share
        value = self.value * _variance(attention_of(rows, np.zeros(m + 1)).dense(), frame.weights)
        fixed, curve = np.zeros((n, 0)), np.zeros(0)
        if self.length is not None:
            fixed = ramps(sizes, knots_of(frame.n_units))
            fixed[:, 0] = 0.0  # the first step is the anchor's value
            curve = np.full(fixed.shape[1], self.length * _variance(fixed, frame.weights))
            curve[0] = of_first_step
        importances = np.full(m + 1, self.importance)
        ridges = Ridges(np.append(np.full(m, value), of_anchor), importances, curve)
        return Problem(
            rows, columns, frame.weights, Free(), centre, means, ridges, fixed, anchored=True
        )


@dataclass(frozen=True)
class PlainSlalom:
    """Leave-one-out as if the model were linear where it ended; so are its errors."""

    optimizer: Optimizer = by_evidence

    def fit(self, observed: Observations) -> Fit:
        used = (observed.weights > 0) & observed.counts.any(axis=1)  # nothing present says nothing
        frame = FittedRows.of(observed, used)
        exact = recovered(frame.counts, frame.scores, anchored=False)
        if exact is not None:
            return _exact_fit(exact, frame)
        counts, columns = frame.counts, frame.columns(frame.scores)
        zeros, rows = np.zeros(counts.shape[1]), Rows.of(counts)
        centre = np.tile(np.average(columns, axis=0, weights=frame.weights), (len(zeros), 1))
        none, fixed = Ridges(zeros, zeros, zeros[:0]), np.zeros((len(counts), 0))
        problem, point = self.optimizer(
            Problem(rows, columns, frame.weights, Free(), centre, zeros, none, fixed)
        )
        factors = gauss_newton(problem, point)
        left = left_out(problem, point, factors)
        quality = _quality(frame, frame.classes(columns - left), 2 * len(zeros) - 1)
        model = _model(frame, point)
        open_share = np.sqrt(unasked(counts, observed.document_counts))
        influence = influence_of(problem, point, factors, left * open_share[:, None])
        influence = influence.of_classes(frame.contrasts * frame.unit)
        errors = standard_errors(model, observed.document_counts, influence)
        return _fit(frame, model, quality, {} if quality.r2 is None else errors)


@dataclass(frozen=True, eq=False)
class Folded:
    """A fit, and what it would have been without each fold of its rows.

    Rows of which there is only one of a kind (the whole and the empty text) are never left out: no
    other row could stand in for them.
    """

    frame: FittedRows
    point: Point
    folds: IntArray  # (n,) of each row; −1: never left out
    without: tuple[Point, ...]
    held_out: FloatArray  # (n, n_columns)
    held_out_error: float

    @classmethod
    def of(cls, frame: FittedRows, problem: Problem, most: float = np.inf) -> "Folded":
        """`most` is how much it may miss to be of interest: beyond that it counts as infinite."""
        point = descend(problem, problem.start())
        folds, n_inner = np.full(len(frame.inner), -1, np.int32), int(frame.inner.sum())
        folds[frame.inner] = np.arange(n_inner) % (N_FOLDS if n_inner > FEW else N_FOLDS_OF_FEW)
        held_out, without = problem.scores - point.residuals, []
        for fold in range(int(folds.max(initial=-1)) + 1):
            if _error(problem, held_out) > most:
                held_out[:] = np.inf
                break
            some, out = problem.rows(folds != fold), folds == fold
            without.append(descend(some, some.at_point(point), tolerance=1e-4))
            held_out[out] = (problem.scores - problem.at_point(without[-1]).residuals)[out]
        return cls(frame, point, folds, tuple(without), held_out, _error(problem, held_out))

    @property
    def can_be_compared(self) -> bool:
        """Whether held-out rows differ enough to compare by."""
        return _quality(self.frame, self.frame.classes(self.held_out), 0).r2 is not None

    def fit(self) -> Fit:
        frame = self.frame
        model, m = _model(frame, self.point), len(self.point.importances)
        by_folds = frame.classes(self.held_out)
        held_out = model.predict(frame.observed.counts)
        held_out[frame.used] = by_folds.reshape(held_out[frame.used].shape)
        folds = np.full(len(frame.used), -1, np.int32)
        folds[frame.used] = self.folds
        return replace(
            _fit(frame, model, _quality(frame, by_folds, 2 * m - 1), {}),
            held_out=held_out,
            folds=folds,
            without=tuple(_model(frame, point) for point in self.without),
            length_errors=self._length_errors(model),
        )

    def _length_errors(self, model: SlalomModel) -> FloatArray | None:
        """The jackknife over folds."""
        if model.length is None or len(self.without) < 2:
            return None
        sizes, n = np.arange(self.frame.n_units + 1.0), len(self.without)
        curves = [_model(self.frame, point).length for point in self.without]
        drawn = np.stack([curve(sizes) for curve in curves if curve is not None])
        return np.asarray(np.sqrt((n - 1) * drawn.var(axis=0)))


def _fit(
    frame: FittedRows, model: SlalomModel, quality: HeldOutQuality, errors: dict[str, FloatArray]
) -> Fit:
    observed = frame.observed
    columns = observed.scores.reshape(len(frame.used), -1)
    eval_mask = frame.used.copy()
    eval_mask[frame.used] = frame.inner & sampled_rows(frame.counts)
    why_not = no_quality_reason(observed.counts, columns, observed.document_counts)
    return Fit(
        model=model,
        scores=read_outs(model, observed.document_counts),
        errors=errors,
        quality=quality,
        notes=(why_not,) if quality.r2 is None else (),
        anchor=model.anchor,
        length_curve=None
        if model.length is None
        else np.asarray(model.length(np.arange(frame.n_units + 1.0))),
        eval_mask=eval_mask,
    )


def _exact_fit(exact: Recovered, frame: FittedRows) -> Fit:
    """A SLALOM that gives all answers: no error is left."""
    model = frame.model(exact.values, exact.importances)
    quality = HeldOutQuality(1.0, 0.0, 0.0)
    if np.ptp(frame.scores, axis=0).max(initial=0.0) == 0.0:
        quality = UNKNOWN
    found = _fit(frame, model, quality, {})
    return replace(found, errors={name: np.zeros_like(s) for name, s in found.scores.items()})


def _quality(frame: FittedRows, held_out: FloatArray, n_parameters: float) -> HeldOutQuality:
    inner = frame.inner
    return loo_quality(
        (frame.scores - held_out)[inner],
        frame.scores[inner],
        weights=frame.weights[inner],
        n_parameters=n_parameters,
        by=sampled_rows(frame.counts)[inner],
    )


def _error(problem: Problem, held_out: FloatArray) -> float:
    return float(problem.weights @ ((problem.scores - held_out) ** 2).sum(axis=1))


def _variance(columns: FloatArray, weights: FloatArray) -> float:
    """Summed over columns."""
    shares = weights / weights.sum()
    return float((shares @ columns**2 - (shares @ columns) ** 2).sum())


def _model(frame: FittedRows, point: Point) -> SlalomModel:
    model = frame.model(frame.classes(point.values), point.importances)
    if not point.effects.size:
        return model
    heights = frame.classes(point.effects).cumsum(axis=0)
    one = frame.observed.scores.ndim == 1
    curve = LengthCurve(knots_of(frame.n_units), heights[:, 0] if one else heights)
    return replace(model, length=curve)
