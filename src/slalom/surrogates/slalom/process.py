"""A SLALOM and the process around it: the fit of one text to everything that was asked.

The SLALOM is fitted to the rows that were drawn, features shared by equal units; the process
(gp.py) takes these rows and all that was asked since, units by position. From its one posterior
come predictions (a subset that was asked is its answer), held-out residuals and R², removal,
alone, Shapley values, and their errors. Where every subset was asked, all of them are exact.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.surrogates.base import UNKNOWN, Fit, HeldOutQuality, Model
from slalom.surrogates.gp import Asked, Mean, Process
from slalom.surrogates.kernel import variance_of_own
from slalom.surrogates.quality import loo_quality
from slalom.surrogates.shapley_estimates import shapley_of_all
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.slalom.readouts import read_outs

FEW_ROWS = 120  # drawn at most: what is built on a fit is held out by folds of all of it


@dataclass(frozen=True, eq=False)
class ProcessModel:
    """The posterior mean around a SLALOM, over units."""

    fitted: SlalomModel
    mean: Mean
    kind: ClassVar[str] = "slalom-process"

    def predict(self, counts: FloatArray) -> FloatArray:
        """Of subsets: how often a unit is shown does not count."""
        predicted = self.fitted.predict(counts)
        found = self.mean(counts > 0, _columns(predicted))
        return found.reshape(predicted.shape)

    @property
    def empty_score(self) -> FloatArray:
        n_units = self.mean.rows.present.shape[1]
        return np.asarray(self.predict(np.zeros((1, n_units)))[0])

    def smooth(self, counts: FloatArray) -> FloatArray:
        """What all subsets say of these: nothing that belongs to one, or to how few are gone."""
        predicted = self.fitted.predict(counts)
        mean = replace(self.mean, scales=replace(self.mean.scales, missing=0.0))
        subsets = mean.subsets(counts > 0, _columns(predicted))
        return mean.estimated(subsets).reshape(predicted.shape)

    def expand(self, features: IntArray) -> "ProcessModel":
        """Over units already: there is nothing to spread."""
        assert len(features) == self.mean.rows.present.shape[1]
        return self


@dataclass(frozen=True, eq=False)
class AllAsked:
    """What was asked about one text, all subsets different, and the SLALOM fitted to some of it."""

    fit: Fit
    features: IntArray  # (n_units,) of each unit
    present: BoolArray  # (N, n_units)
    scores: FloatArray  # (N,) or (N, n_classes)
    row: IntArray  # (N,) the row of the fit that each is; −1: it was not fitted
    weights: FloatArray  # (N,) by which rows that were fitted judge
    exact: bool  # every subset was asked
    noise: float = 0.0  # variance of a score, were it asked again

    @property
    def columns(self) -> FloatArray:
        return _columns(self.scores)

    @property
    def fold(self) -> IntArray:
        """(N,) in which fold a row was left out; −1: it never was."""
        if self.fit.folds is None:
            return np.full(len(self.row), -1, np.int32)
        return np.where(self.row < 0, -1, self.fit.folds[self.row])

    def asked(self, slalom: SlalomModel) -> Asked:
        """With what the SLALOM says of each row without having seen it, but for both ends.

        No other row is like these; and new subsets of their kind enter as they do.
        """
        held_out = slalom.predict(self.present.astype(np.float64)).reshape(self.columns.shape)
        sizes = self.present.sum(axis=1)
        fitted = (self.row >= 0) & (sizes > 0) & (sizes < len(self.features))
        if self.fit.held_out is not None and (self.noise or not self.exact):
            by_fit = _columns(self.fit.held_out)
            held_out[fitted] = by_fit[self.row[fitted]]
        return Asked(self.present, self.columns, held_out, np.full(len(self.present), self.noise))


@dataclass(frozen=True, eq=False)
class ProcessFit:
    """The scores of one text's units, their errors, and how well the model predicts."""

    model: ProcessModel
    scores: dict[str, FloatArray]  # name → (n_units,) or (n_units, n_classes)
    errors: dict[str, FloatArray]  # {} where nothing tells
    quality: HeldOutQuality
    parts: dict[str, float]  # share of the variation, by part
    exact: bool  # every subset was asked
    process: Process
    without: tuple[SlalomModel, ...]  # the SLALOM without each fold of its rows


def fit_process(given: AllAsked) -> ProcessFit:
    fit, n_units, shape = given.fit, len(given.features), given.scores.shape[1:]
    slalom, *without = (_over_units(model, given) for model in (fit.model, *fit.without))
    shares = fit.scores["shapley"][given.features].reshape(n_units, -1)
    asked = given.asked(slalom)
    process = Process.of(asked, _strengths(shares))
    held_out, ratio = held_out_of(given, asked, process)
    process = replace(process, honesty=process.honesty / ratio)
    scores, variances = _differences(process, slalom)
    if given.exact:
        own = shapley_of_all(given.present, given.columns)
        known = variance_of_own(np.full(n_units + 1, given.noise))
        scores["shapley"], variances["shapley"] = own, np.full_like(own, known)
    else:
        scores["shapley"], variances["shapley"] = process.shapley(slalom, shares, without)
    quality, errors = _quality(given, held_out), dict[str, FloatArray]()
    if given.exact or quality.r2 is not None:
        errors = {name: error[given.features] for name, error in fit.errors.items()}
        errors |= {n: np.sqrt(each).reshape(n_units, *shape) for n, each in variances.items()}
    by_fit = {name: score[given.features] for name, score in fit.scores.items()}
    return ProcessFit(
        ProcessModel(slalom, process.mean),
        by_fit | {name: each.reshape(n_units, *shape) for name, each in scores.items()},
        errors,
        quality,
        _parts(given, slalom, held_out, r2=quality.r2),
        given.exact,
        process,
        tuple(without),
    )


def _over_units(model: Model, given: AllAsked) -> SlalomModel:
    expanded = model.expand(given.features)
    assert isinstance(expanded, SlalomModel)
    return expanded


def held_out_of(given: AllAsked, asked: Asked, process: Process) -> tuple[FloatArray, float]:
    """Each row as predicted by what has not seen it, and how much more that misses than expected.

    Few rows choose so much (A, its strengths and R², the scales) that leave-one-out under these
    is too hopeful: all of it is found again without each fold. What A says of a row without its
    own fold nor that one is taken to be linear in what it has seen.
    """
    held_out, fit, fold = process.held_out(), given.fit, given.fold
    drawn = np.flatnonzero(fold >= 0)
    if fit.folds is None or (fit.folds >= 0).sum() > FEW_ROWS or not len(drawn):
        return held_out, 1.0
    shown = given.present.astype(np.float64)
    by_all = _columns(_over_units(fit.model, given).predict(shown))
    for at, each in enumerate(fit.without):
        model = _over_units(each, given)
        said, kept = _columns(model.predict(shown)), fold != at
        held = asked.held_out + said - by_all
        rows = Asked(asked.present[kept], asked.scores[kept], held[kept], asked.noise[kept])
        shares = _columns(read_outs(model, np.ones(len(given.features)))["shapley"])
        found = Process.of(rows, _strengths(shares)).mean
        held_out[~kept] = found(asked.present[~kept], said[~kept])
    missed = ((held_out - asked.scores)[drawn] ** 2).sum(axis=1)
    return held_out, max(1.0, float(missed.sum() / process.left_one_out[drawn].sum()))


def _strengths(shares: FloatArray) -> FloatArray:
    """(n_units, n_classes) Shapley values of A → (n_units,)"""
    return np.asarray(np.sqrt((shares**2).sum(axis=1)))


def _differences(
    process: Process, slalom: SlalomModel
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """`removal` and `alone`: values and variances, (n_units, n_classes); 0 where measured."""
    n_units = process.mean.rows.present.shape[1]
    single, everything = np.eye(n_units, dtype=bool), np.ones(n_units, dtype=bool)
    values, variances = {}, {}
    for name, subsets, base in (("removal", ~single, everything), ("alone", single, ~everything)):
        both = np.vstack([subsets, base])
        predicted = _columns(slalom.predict(both.astype(np.float64)))
        means = process.mean(both, predicted)
        values[name] = (means[-1] - means[:-1]) * (1.0 if name == "removal" else -1.0)
        variances[name] = process.variances_of_differences(subsets, base, predicted)
        known = (process.mean.located(both) >= 0) & (process.mean.noise == 0).all()
        variances[name][known[:-1] & known[-1]] = 0.0  # but for rounding
    return values, variances


def _quality(given: AllAsked, held_out: FloatArray) -> HeldOutQuality:
    """R² on the rows by which the SLALOM is judged, each predicted from all others."""
    if given.fit.eval_mask is None or (given.exact and not given.noise):
        return UNKNOWN
    rows = np.flatnonzero(given.row >= 0)
    rows = rows[given.fit.eval_mask[given.row[rows]]]
    truth = given.columns[rows]
    return loo_quality(truth - held_out[rows], truth, weights=given.weights[rows], n_parameters=0)


def _parts(
    given: AllAsked, slalom: SlalomModel, held_out: FloatArray, *, r2: float | None
) -> dict[str, float]:
    """How much of the variation of the answers each part describes, by name; the sum is 1.

    With y the scores and p one part's contribution to every row that was fitted, its share is
    cov(p, y) / var y; they add up to that of the whole, and are scaled to its R². Parts that work
    against each other have shares of different signs. {} where R² is not known.
    """
    if r2 is None:
        return {}
    rows = np.flatnonzero((given.row >= 0) & (given.weights > 0))
    counts = given.present[rows].astype(np.float64)
    parts = {"attention": slalom.attended(counts)}
    if slalom.length is not None:
        parts["length"] = slalom.length(counts.sum(axis=1))
    parts["together"] = held_out[rows] - _columns(slalom.predict(counts))
    truth, weights = given.columns[rows], given.weights[rows]
    centred = truth - np.average(truth, axis=0, weights=weights)
    shares = {
        name: float(weights @ (_columns(p) * centred).sum(axis=1)) for name, p in parts.items()
    }
    total = sum(shares.values())
    scale = r2 / total if total > 0 else 0.0
    return {**{name: share * scale for name, share in shares.items()}, "unexplained": 1.0 - r2}


def _columns(scores: FloatArray) -> FloatArray:
    """(m,) or (m, n_classes) → (m, n_classes)"""
    return scores[:, None] if scores.ndim == 1 else scores
