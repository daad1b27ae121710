"""Shapley values from every answer there is: the fit is one voice among three.

With P(S) what the fit says of a part S of the text without having seen it, an answer is taken as

    F(S) = β P(S) + Σ_{i in S} ψ_i + q(S) + noise

β is free. A unit, and words that act together, are as free to differ from the fit as they matter
in it: with u_i = |φ_i| of the fit over its mean, and variances in units of the noise's,

    ψ_i ~ N(0, a (u_i + .3)²)      q Gaussian, cov(q(S), q(T)) = c Π_{i in S Δ T} exp(−λ_i)
                                   λ_i = 3/n √(u_i + .1)

a and c are unknown: each pair of a grid counts as much as it makes the answers likely. The whole
and the empty text are known. Of every voice the line between the two, along shares in proportion
to (u_i + .3)², is taken out; q and the sum of the ψ are then 0 at both, and the values share out
F(N) − F(∅) exactly. Shapley values are linear, and those of each voice are known in closed form
(owen.py), so their mean and variance given the answers are exact. The fit's own error stays open
as far as its misses stay noise.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.owen import alikeness, shapley_of_alikeness, variances_of_shapley
from slalom.surrogates.slalom.residual_shapley import NOTHING, Shares, independent

MOST = 1500  # rows: the time grows with their cube
ALONE_AT_LEAST, TOGETHER_AT_LEAST = 0.3, 0.1  # u of a unit that does not matter in the fit
REACH = 3.0  # Σ λ of units that matter alike
TOGETHER = 10.0 ** np.arange(-3.0, 4.0)  # c
ALONE = np.append(0.0, 10.0 ** np.arange(-3.0, 3.0, 0.5))  # a
FREE = 1e4  # the variance that β leaves the fit, in units of the noise's
UNLIKELY = 0.01  # the chance of a pair that is passed over


@dataclass(frozen=True, eq=False)
class Answered:
    """What a classifier said of parts of a text, and what a fit says of them."""

    present: FloatArray  # (n_rows, n_units) 0 or 1, neither all nor none
    residuals: FloatArray  # (n_rows, n_columns) answers less `said`
    said: FloatArray  # (n_rows, n_columns) by the fit without that row
    ends: FloatArray  # (2, n_columns) what the fit says of the empty and of the whole text
    missed: FloatArray  # (2, n_columns) the answers to both, less that
    fitted: FloatArray  # (n_units, n_columns) the fit's Shapley values


def kriged_shares(answered: Answered) -> Shares:
    """What to add to the fit's Shapley values, how far it is open, and how far the fit is."""
    voices = _Voices.of(answered)
    rows = voices.misses
    if (rows**2).sum(axis=0).max(initial=0.0) <= NOTHING * len(rows):
        open_ = np.zeros_like(answered.fitted)
        return Shares(voices.shared, open_, np.ones(rows.shape[1]))
    points = _likely(voices)
    chances = np.array([chance for chance, _, _ in points])
    chances /= chances.sum()
    told = [point.told(at) for _, point, at in points]
    means = np.stack([mean for mean, _ in told])  # (n_points, n_units, n_columns)
    mean = np.tensordot(chances, means, axes=1)
    within = np.stack([variance for _, variance in told])
    variance = np.tensordot(chances, within + (means - mean) ** 2, axes=1)
    noise = chances @ np.stack([point.noise[at] for _, point, at in points])
    left = noise / np.maximum((rows**2).mean(axis=0), NOTHING)
    return Shares(voices.shared + mean, variance, np.minimum(left, 1.0))


@dataclass(frozen=True, eq=False)
class _Voices:
    """Rows less the line between the empty and the whole text, and what may be at work in them.

    For each voice: how rows vary by it, and Shapley values; roots where these are of few columns.
    """

    misses: FloatArray  # (n_rows, n_columns)
    shared: FloatArray  # (n_units, n_columns) what was missed at the ends, shared out
    fit: tuple[FloatArray, FloatArray]  # roots (n_rows, n_columns), (n_units, n_columns)
    alone: tuple[FloatArray, FloatArray]  # roots (n_rows, n_units), (n_units, n_units)
    together: FloatArray  # (n_rows, n_rows)
    with_values: FloatArray  # (n_rows, n_units) of together
    of_values: FloatArray  # (n_units,) of together

    @classmethod
    def of(cls, answered: Answered) -> "_Voices":
        strength = np.sqrt((answered.fitted**2).sum(axis=1))
        mean = float(strength.mean())
        matter = strength / mean if mean > 0 else np.ones_like(strength)
        spread = (matter + ALONE_AT_LEAST) ** 2
        share = spread / spread.sum()
        line = (answered.present @ share)[:, None]
        missed, said = answered.missed[1] - answered.missed[0], answered.ends[1] - answered.ends[0]
        misses = answered.residuals - answered.missed[0] - line * missed
        rows = answered.said - answered.ends[0] - line * said
        root = np.sqrt(FREE * len(rows) / max(float((rows**2).sum()), NOTHING))
        fit = root * rows, root * (answered.fitted - np.outer(share, said))
        alone = _alone(answered.present, spread)
        together = _together(answered.present, matter)
        return cls(misses, np.outer(share, missed), fit, alone, *together)


def _alone(present: FloatArray, spread: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Roots of independent effects whose sum is known to be 0; rows vary by 1 on average."""
    root = np.diag(np.sqrt(spread)) - np.outer(spread, np.sqrt(spread)) / spread.sum()
    rows = present @ root
    size = np.sqrt(max(float((rows**2).sum(axis=1).mean()), NOTHING))
    return rows / size, root / size


def _together(present: FloatArray, matter: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Of q: covariances of rows, with Shapley values, variances of these; given its ends are 0."""
    n_units = present.shape[1]
    rates = REACH / n_units * np.sqrt(matter + TOGETHER_AT_LEAST)
    ends = np.stack([np.zeros(n_units), np.ones(n_units)])
    known, values = alikeness(ends, ends, rates), shapley_of_alikeness(ends, rates)
    towards = alikeness(present, ends, rates) @ np.linalg.inv(known)  # (n_rows, 2)
    rows = alikeness(present, present, rates) - towards @ known @ towards.T
    with_values = shapley_of_alikeness(present, rates) - towards @ values
    of_values = variances_of_shapley(rates) - (values * np.linalg.solve(known, values)).sum(axis=0)
    size = max(float(rows.diagonal().mean()), NOTHING)
    return rows / size, with_values / size, of_values / size


@dataclass(frozen=True, eq=False)
class _Point:
    """The answers under one c and every a, in terms of what is independent under them."""

    voices: _Voices
    together: float  # c
    root: FloatArray  # (n_rows, n_rows) Cholesky, lower
    misses: FloatArray  # (n_rows, n_columns) whitened
    alone: FloatArray  # (n_rows, n_units) whitened, turned to the axes
    axes: FloatArray  # (n_units, n_units)
    values: FloatArray  # (n_units,) squares of `alone` along the axes

    @classmethod
    def of(cls, voices: _Voices, together: float) -> "_Point":
        from scipy.linalg import cholesky

        rows = together * voices.together + voices.fit[0] @ voices.fit[0].T
        rows[np.diag_indices_from(rows)] += 1.0
        root = cholesky(rows, lower=True, overwrite_a=True, check_finite=False)
        alone = _whitened(root, voices.alone[0])
        values, axes = np.linalg.eigh(alone.T @ alone)
        misses = _whitened(root, voices.misses)
        return cls(voices, together, root, misses, alone @ axes, axes, np.maximum(values, 0.0))

    @cached_property
    def shrunk(self) -> FloatArray:
        """(n_a, n_units) a / (1 + a d)."""
        return np.asarray(ALONE[:, None] / (1.0 + ALONE[:, None] * self.values))

    @cached_property
    def squares(self) -> FloatArray:
        """(n_a, n_columns) of the misses, in terms of the noise."""
        left = (self.misses**2).sum(axis=0) - self.shrunk @ (self.alone.T @ self.misses) ** 2
        return np.asarray(np.maximum(left, NOTHING))

    @property
    def noise(self) -> FloatArray:
        """(n_a, n_columns) its variance, had any log σ been as likely."""
        return self.squares / max(len(self.misses) - 2, 1)

    @cached_property
    def log_chances(self) -> FloatArray:
        """(n_a,)"""
        volume = 2 * np.log(self.root.diagonal()).sum()
        volume = volume + np.log1p(ALONE[:, None] * self.values).sum(axis=1)
        fit = len(self.misses) * np.log(self.squares).mean(axis=1)
        return np.asarray(-0.5 * (volume + fit) * independent(self.voices.misses))

    @cached_property
    def with_values(self) -> FloatArray:
        """(n_rows, n_units) whitened covariances of rows with Shapley values, ψ aside."""
        voices = self.voices
        together = self.together * voices.with_values
        return _whitened(self.root, together + voices.fit[0] @ voices.fit[1].T)

    @cached_property
    def along(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Along the axes: effects on Shapley values, misses, and `with_values`."""
        effects = self.voices.alone[1] @ self.axes  # (n_units, n_units)
        return effects, self.alone.T @ self.misses, self.alone.T @ self.with_values

    @cached_property
    def squares_of_rows(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(n_units,) each: of `with_values`, of what ψ adds for a = 1, and twice their product."""
        effects, _, turned = self.along
        mixed = 2.0 * (effects * turned.T).sum(axis=1)
        return (self.with_values**2).sum(axis=0), effects**2 @ self.values, mixed

    def told(self, at: int) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the Shapley values under the a of this number.

        Rows vary with Shapley values by W + a A Eᵀ, where AᵀA is diagonal: products over rows
        are the same for every a.
        """
        voices, a, shrunk = self.voices, float(ALONE[at]), self.shrunk[at][:, None]
        effects, misses, turned = self.along
        turned = turned + a * self.values[:, None] * effects.T  # (n_units, n_units)
        mean = (
            self.with_values.T @ self.misses + a * effects @ misses - turned.T @ (shrunk * misses)
        )
        before = self.together * voices.of_values + (voices.fit[1] ** 2).sum(axis=1)
        before = before + a * (effects**2).sum(axis=1)
        own, added, mixed = self.squares_of_rows
        known = own + a * mixed + a**2 * added - (shrunk * turned**2).sum(axis=0)
        return mean, np.outer(np.maximum(before - known, 0.0), self.noise[at])


def _whitened(root: FloatArray, rows: FloatArray) -> FloatArray:
    from scipy.linalg import solve_triangular

    return np.asarray(solve_triangular(root, rows, lower=True, check_finite=False))


def _likely(voices: _Voices) -> list[tuple[float, _Point, int]]:
    """Chances of pairs of c and a: uphill from the middle, and what lies beside the way."""
    points: dict[int, _Point] = {}

    def height(at: int) -> float:
        if at not in points:
            points[at] = _Point.of(voices, float(TOGETHER[at]))
        return float(points[at].log_chances.max())

    best, top = -1, len(TOGETHER) // 2
    while top != best:
        best = top
        top = max((at for at in (best, best - 1, best + 1) if 0 <= at < len(TOGETHER)), key=height)
    most = height(best)
    pairs = [
        (float(np.exp(chance - most)), point, at)
        for point in points.values()
        for at, chance in enumerate(point.log_chances)
    ]
    total = sum(chance for chance, _, _ in pairs)
    return [pair for pair in pairs if pair[0] > UNLIKELY * total]
