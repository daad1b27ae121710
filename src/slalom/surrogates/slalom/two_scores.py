"""Value and importance: the plain SLALOM with anchor that describes the answers best.

It is a fit of its own, only read: predictions are those of the whole model. With A what attention
says, m words, and the range of the answers, its middle `mid` and half width `half`:

    minimise  mean π (A(c) − y)² / var y  +  .1 mean_j (u_j − u_0)²  +  .02 mean_j (s_j − s̄)²
    v_j = mid + 4 half tanh u_j              v_0 = F(∅)

A word that could say anything would need no weight: no value lies further from the middle than
twice the width of the range. Where ∅ cannot be asked, v_0 is the mean answer to the shortest tenth
of the queries. Strengths of the ridges do not depend on the number of queries, so they belong to
the definition. Classes share importances; every class has its own range.

Answers of an exact SLALOM come back as it is, whatever its values (recovery.py).

Standard errors say how far the same fit with every query asked may be: with H half the true second
derivatives and r_k left-one-out residuals, row k moves the parameters by H⁻¹ J_kᵀ π_k r_k, and the
squares add up, less for sizes of which much was asked: nothing where all subsets of it were. With
fewer answers than parameters (one word; few queries) each may be one off, in u and in s, besides;
so it may where a few answers make nearly all of the difference.

Steps are Newton's over u and s, classes eliminated one by one: with K₀ = AᵀΠA, K₁ = Aᵀ diag(Πa) A,
K₂ = Aᵀ diag(Πa²) A of the attention A and what it says, a, three products give all second
derivatives; Π less the residuals' pull in the last two makes them the true ones.
"""

from dataclasses import dataclass, replace
from math import comb

import numpy as np
from numpy.typing import NDArray

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.surrogates.base import Observations
from slalom.surrogates.quality import Judged, loo_quality, sampled_rows
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.cholesky import (
    cholesky,
    diagonal_of,
    solve_lower,
    solve_lower_transposed,
)
from slalom.surrogates.slalom.fit import Prior
from slalom.surrogates.slalom.model import Anchor
from slalom.surrogates.slalom.recovery import recovered

VALUE_RIDGE, IMPORTANCE_RIDGE = 0.1, 0.02
REACH = 4.0  # half ranges that a value may lie from the middle
SHORTEST = 0.1  # share of the queries that stand for the empty text where it cannot be asked
TAILS = (0.01, 0.99)  # quantiles of the random subsets' answers that make the range
ANCHOR_START = 1.1  # importance of the anchor to begin with
MAX_STEPS, STEP_BOUND = 100, 2.0
NEAR = 0.03  # relative fall of the objective below which second derivatives are true ones
TOLERANCE = 1e-9  # relative fall that ends the descent
CENTRED = 0.9  # |tanh u| that v_0 may have at most
TINY = 1e-12
MANY = 10**12  # subsets of one size, of which next to none were asked
WIDER = 1.1  # standard errors than linear ones: what bends, and the range, is estimated too


@dataclass(frozen=True, eq=False)
class Known:
    """What was asked beside the design: the empty text, single words, single removals."""

    counts: FloatArray  # (q, n_features)
    scores: FloatArray  # (q,) or (q, n_classes)


@dataclass(frozen=True, eq=False)
class TwoScores:
    """What is read off the description, per feature, with standard errors."""

    scores: dict[str, FloatArray]  # value, importance, share, linearised, gradient
    errors: dict[str, FloatArray]  # the same shapes
    anchor: Anchor
    judged: Judged  # of the description alone, on rows that were not fitted

    def expand(self, features: IntArray) -> "TwoScores":
        """The same per unit, given the feature of each."""
        scores = {name: score[features] for name, score in self.scores.items()}
        return replace(
            self, scores=scores, errors={name: e[features] for name, e in self.errors.items()}
        )


def two_scores(seen: Observations, known: Known, prior: Prior | None = None) -> TwoScores:
    """The two scores of every feature, and what follows from them; ridges pull to the prior."""
    counts = np.vstack([seen.counts, known.counts])
    columns = seen.scores.reshape(len(seen.scores), -1)
    scores = np.vstack([columns, known.scores.reshape(-1, columns.shape[1])])
    nothing = np.flatnonzero(~counts.any(axis=1))
    empty = scores[nothing[0]] if len(nothing) else None
    exact = recovered(counts, scores, empty)
    if exact is not None:
        k, n_classes = exact.values.shape
        still = Shift(np.zeros((n_classes, k, 1)), np.zeros((k, 1)))
        judged = Judged(1.0, 0.0, 0.0)
        return _read(exact.values, exact.importances, still, seen, judged)
    fitted = seen.weights > 0
    rows = Observations(
        seen.counts[fitted], columns[fitted], seen.weights[fitted], seen.document_counts
    )
    sizes = counts.sum(axis=1)
    ends = (sizes <= 1) | (sizes == seen.document_counts.sum())
    shown = Rows.of(np.hstack([rows.counts, np.ones((len(rows.counts), 1))]))
    problem = Description.of(shown, rows.scores, rows.weights, Range.of(scores, ends), empty)
    if prior is not None:
        problem = problem.towards(prior)
    place = descend(problem, problem.start())
    moves, judged = judge(problem, place, rows)
    if _sums_to_zero(columns):
        values = place.values - place.values.mean(axis=1, keepdims=True)
        moves = replace(moves, values=moves.values - moves.values.mean(axis=0))
        return _read(values, place.importances, moves, seen, judged)
    return _read(place.values, place.importances, moves, seen, judged)


def _sums_to_zero(scores: FloatArray) -> bool:
    """Whether classes compete: their centred scores say nothing together, nor may values."""
    total = np.abs(scores.sum(axis=1)).max()
    return scores.shape[1] > 1 and bool(total <= 1e-6 * np.abs(scores).max())


@dataclass(frozen=True, eq=False)
class Range:
    """Where the values of each class may lie."""

    middle: FloatArray  # (n_classes,)
    reach: FloatArray  # (n_classes,)

    @classmethod
    def of(cls, scores: FloatArray, ends: BoolArray) -> "Range":
        """Quantiles of random subsets, widened to hold single words and both ends."""
        drawn = scores if ends.all() else scores[~ends]
        held = np.vstack([np.quantile(drawn, TAILS, axis=0), scores[ends]])
        low, high = held.min(axis=0), held.max(axis=0)
        return cls((low + high) / 2, REACH * (high - low) / 2 + TINY)

    def values(self, bent: FloatArray) -> FloatArray:
        return np.asarray(self.middle + self.reach * np.tanh(bent))

    def slopes(self, bent: FloatArray) -> FloatArray:
        return np.asarray(self.reach / np.cosh(bent) ** 2)

    def bent(self, values: FloatArray) -> FloatArray:
        """The inverse of `values`."""
        return np.asarray(np.arctanh(((values - self.middle) / self.reach).clip(-CENTRED, CENTRED)))


@dataclass(frozen=True, eq=False)
class Description:
    """What is minimised. The anchor is the last of k = m + 1 columns."""

    counts: Rows  # (n, k)
    scores: FloatArray  # (n, n_classes)
    weights: FloatArray  # (n,) π / (n var y)
    range: Range
    centre: FloatArray  # (k, n_classes) u_0, or what a prior says; the anchor's is v_0
    believed: FloatArray  # (k,) s̄ = 0, or what a prior says; the anchor's is where it begins

    @property
    def n_features(self) -> int:
        return self.counts.shape[1] - 1

    @classmethod
    def of(
        cls,
        counts: Rows,
        scores: FloatArray,
        weights: FloatArray,
        values: Range,
        empty: FloatArray | None,
    ) -> "Description":
        """Where the empty text cannot be asked, the shortest queries speak for it."""
        k = counts.shape[1]
        if empty is None:
            sizes = counts.sums()
            empty = scores[sizes <= np.quantile(sizes, SHORTEST)].mean(axis=0)
        shares = weights / weights.sum()
        mean = shares @ scores
        spread = float((shares @ (scores - mean) ** 2).sum())
        constant = spread <= (1e-9 * float(np.abs(scores).max())) ** 2
        return cls(
            counts,
            scores,
            np.zeros(len(scores)) if constant else shares / spread,
            values,
            np.tile(values.bent(empty), (k, 1)),
            np.append(np.zeros(k - 1), ANCHOR_START),
        )

    def towards(self, prior: Prior) -> "Description":
        """The same with ridges that pull to the prior, where it says anything."""
        told, m = np.isfinite(prior.values), self.n_features
        if not told.any():
            return self
        centre, level = self.centre.copy(), prior.importances[told].mean()
        centre[:m][told] = self.range.bent(prior.values[told].reshape(told.sum(), -1))
        believed = np.append(np.where(told, prior.importances - level, 0.0), prior.anchor - level)
        return replace(self, centre=centre, believed=believed)

    def slopes(self, place: "Place") -> FloatArray:
        """(k, n_classes) of values by u; v_0 is given."""
        slopes = self.range.slopes(place.bent)
        slopes[-1] = 0.0
        return slopes

    def start(self) -> "Place":
        """All words alike, or as the prior has them."""
        return self.at(self.centre, self.believed)

    def at(self, bent: FloatArray, importances: FloatArray) -> "Place":
        m = self.n_features
        importances = importances - importances[:m].mean()
        mass = self.counts.times(1.0, np.exp(importances - importances.max()))
        attention = mass.times(1.0 / mass.sums(), 1.0)
        values = self.range.values(bent)
        attended = attention.apply(values)
        residuals = self.scores - attended
        objective = (
            float(self.weights @ (residuals**2).sum(axis=1))
            + VALUE_RIDGE * float(((bent - self.centre) ** 2).sum()) / (m * bent.shape[1])
            + IMPORTANCE_RIDGE * float(((importances - self.believed)[:m] ** 2).mean())
        )
        return Place(bent, importances, values, attention, attended, residuals, objective)


@dataclass(frozen=True, eq=False)
class Place:
    """Parameters, and what they say of the rows."""

    bent: FloatArray  # (k, n_classes) u
    importances: FloatArray  # (k,) those of the features have mean 0
    values: FloatArray  # (k, n_classes)
    attention: Rows  # (n, k)
    attended: FloatArray  # (n, n_classes)
    residuals: FloatArray  # (n, n_classes)
    objective: float


@dataclass(frozen=True, eq=False)
class System:
    """Half the second derivatives of the objective, by class and for the importances."""

    own: list[FloatArray]  # (k, k) each, of u
    crossed: list[FloatArray]  # (k, k) each, of u by s
    shared: FloatArray  # (k, k) of s
    downhill: FloatArray  # (k, n_classes) minus half the gradient, by u
    pull: FloatArray  # (k,) by s

    def factored(self, damping: float) -> "Factors | None":
        """None where it is not positive."""
        lowers, halves, shared = [], [], _raised(self.shared, damping)
        for own, crossed in zip(self.own, self.crossed, strict=True):
            lower = cholesky(_raised(own, damping))
            if lower is None:
                return None
            lowers.append(lower)
            halves.append(solve_lower(lower, crossed))
            shared -= halves[-1].T @ halves[-1]
        root = cholesky(shared)
        return None if root is None else Factors(lowers, halves, root)


@dataclass(frozen=True, eq=False)
class Factors:
    """Cholesky's, classes eliminated first."""

    lowers: list[FloatArray]
    halves: list[FloatArray]  # L⁻¹ times `crossed`
    root: FloatArray

    def solve(self, own: FloatArray, shared: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n_classes, k, q) and (k, q) of right-hand sides → the same of solutions."""
        parts = [solve_lower(lower, right) for lower, right in zip(self.lowers, own, strict=True)]
        through = sum(half.T @ part for half, part in zip(self.halves, parts, strict=True))
        importances = solve_lower_transposed(self.root, solve_lower(self.root, shared - through))
        solved = [
            solve_lower_transposed(lower, part - half @ importances)
            for lower, half, part in zip(self.lowers, self.halves, parts, strict=True)
        ]
        return np.stack(solved), importances


def _raised(matrix: FloatArray, damping: float) -> FloatArray:
    raised = matrix.copy()
    diagonal = diagonal_of(raised)
    diagonal += damping * np.abs(diagonal) + 1e-12
    return raised


def system_at(problem: Description, place: Place, *, full: bool) -> System:
    """Gauss–Newton's, or with `full` the true second derivatives."""
    m, k, n_classes = problem.n_features, len(place.values), place.values.shape[1]
    attention, strength = place.attention, VALUE_RIDGE / (m * n_classes)
    slopes = problem.slopes(place)
    prior_deviation = place.bent - problem.centre
    gram = attention.gram(attention.times(problem.weights, 1.0))
    own, crossed, shared = [], [], np.zeros((k, k))
    downhill, pull = -strength * prior_deviation, np.zeros(k)
    for c in range(n_classes):
        level = place.values[:, c].mean()  # of which importances know nothing
        values, attended = place.values[:, c] - level, place.attended[:, c] - level
        left = problem.weights * place.residuals[:, c]
        once = problem.weights * attended
        twice = once * attended
        if full:
            once, twice = once - left, twice - 2 * left * attended
        first = attention.gram(attention.times(once, 1.0))
        cross = gram * values - first
        shared += attention.gram(attention.times(twice, 1.0))
        shared += values[:, None] * cross - first * values
        by_value = attention.apply_transposed(left)
        by_importance = values * by_value - attention.apply_transposed(left * attended)
        bend = gram * slopes[:, c] * slopes[:, c, None]
        diagonal_of(bend)[:] += strength
        if full:
            diagonal_of(shared)[:] -= by_importance
            diagonal_of(cross)[:] -= by_value
            tanh = (place.values[:, c] - problem.range.middle[c]) / problem.range.reach[c]
            diagonal_of(bend)[:] += 2 * tanh * slopes[:, c] * by_value
        own.append(bend)
        crossed.append(slopes[:, c, None] * cross)
        downhill[:, c] += slopes[:, c] * by_value
        pull += by_importance
    importances = IMPORTANCE_RIDGE / m
    pull[:m] -= importances * (place.importances - problem.believed)[:m]
    diagonal_of(shared)[:m] += importances  # their mean is the gauge: any pull on it will do
    return System(own, crossed, shared, downhill, pull)


def descend(problem: Description, place: Place, tolerance: float = TOLERANCE) -> Place:
    """Damped Newton steps, downhill only."""
    damping, full = 1e-3, False
    for _ in range(MAX_STEPS):
        system = system_at(problem, place, full=full)
        moved = None
        while moved is None and damping < 1e10:
            moved = _moved(problem, place, system, damping)
            damping = damping * 10 if moved is None else max(damping / 10, 1e-9)
        if moved is None:
            break
        fall = place.objective - moved.objective
        place = moved
        if fall <= tolerance * place.objective:
            break
        full = full or fall <= NEAR * place.objective
    return place


def _moved(problem: Description, place: Place, system: System, damping: float) -> Place | None:
    """Where a step leads; None: nowhere, or not down."""
    factors = system.factored(damping)
    if factors is None:
        return None
    bent, importances = factors.solve(system.downhill.T[:, :, None], system.pull[:, None])
    moved = problem.at(
        place.bent + bent[:, :, 0].T.clip(-STEP_BOUND, STEP_BOUND),
        place.importances + importances[:, 0].clip(-STEP_BOUND, STEP_BOUND),
    )
    return moved if moved.objective < place.objective else None


@dataclass(frozen=True, eq=False)
class Shift:
    """How far single rows move the parameters; the squares of all add up to a variance."""

    values: FloatArray  # (n_classes, k, q)
    importances: FloatArray  # (k, q) in the gauge


def judge(problem: Description, place: Place, rows: Observations) -> tuple[Shift, Judged]:
    """Standard errors, and how well the description holds for rows it has not seen."""
    unseen = _unasked(rows)
    slopes = problem.slopes(place)
    own = slopes.T[:, :, None] * place.attention.transposed()  # (n_classes, k, n)
    shared = np.stack(
        [
            place.attention.times_difference(values, attended).transposed()
            for values, attended in zip(place.values.T, place.attended.T, strict=True)
        ]
    )
    gauss = system_at(problem, place, full=False).factored(0.0)
    assert gauss is not None  # sums of squares and ridges
    left = _left_out(gauss, own, shared, problem, place)
    factors = system_at(problem, place, full=True).factored(0.0) or gauss
    pulls = problem.weights * np.sqrt(unseen) * left.T  # (n_classes, n)
    judged = loo_quality(
        left if unseen.any() else place.residuals,
        rows.scores,
        weights=rows.weights,
        n_parameters=0,
        by=sampled_rows(rows.counts),
    )
    bent, importances = factors.solve(own * pulls[:, None], (shared * pulls[:, None]).sum(axis=0))
    m = problem.n_features
    unknown = 1.0 if judged.r2 is None and unseen.any() else np.sqrt(_open_share(problem))
    free = unknown * np.eye(m + 1)  # each parameter one off, as if nothing spoke of it
    bent = np.concatenate([WIDER * bent, np.tile(free, (len(bent), 1, 1))], axis=2)
    importances = WIDER * (importances - importances[:m].mean(axis=0))
    moves = Shift(slopes.T[:, :, None] * bent, np.hstack([importances, free]))
    return moves, judged


def grouped_errors(
    problem: Description, place: Place, groups: NDArray[np.intp]
) -> tuple[FloatArray, FloatArray]:
    """(k,) of values and of importances, one class, where rows come in groups that err together.

    What a description leaves of one query of a document it leaves of its others. Of most tokens
    few documents tell anything, so what the ridges hold in place is as unsure as a residual.
    """
    noise = problem.weights * place.residuals[:, 0]
    slopes = problem.slopes(place)
    differing = place.attention.times_difference(place.values[:, 0], place.attended[:, 0])
    own = slopes * _summed(place.attention.times(noise, 1.0), groups)
    shared = _summed(differing.times(noise, 1.0), groups)
    factors = system_at(problem, place, full=False).factored(0.0)
    assert factors is not None  # sums of squares and ridges
    m = problem.n_features
    misfit = np.sqrt(float(problem.weights @ place.residuals[:, 0] ** 2) / len(noise))
    pulls = misfit * np.sqrt(
        np.append(np.full(m + 1, VALUE_RIDGE), np.full(m, IMPORTANCE_RIDGE)) / m
    )
    beside = np.zeros((2, m + 1, len(pulls)))
    beside[0, :, : m + 1], beside[1, :m, m + 1 :] = np.diag(pulls[: m + 1]), np.diag(pulls[m + 1 :])
    bent, importances = factors.solve(
        np.hstack([own, beside[0]])[None], np.hstack([shared, beside[1]])
    )
    moved = slopes * bent[0], importances - importances[:m].mean(axis=0)
    values, loudness = (np.sqrt((part**2).sum(axis=1)) for part in moved)
    return np.asarray(values), np.asarray(loudness)


def _summed(rows: Rows, groups: NDArray[np.intp]) -> FloatArray:
    """The rows of each group added up, as columns: (k, n_groups)."""
    sums = np.zeros((rows.shape[1], int(groups.max()) + 1))
    if rows.cells is None:
        np.add.at(sums.T, groups, rows.data)
    else:
        np.add.at(sums, (rows.cells.column, groups[rows.cells.row]), rows.data)
    return sums


def _left_out(
    factors: Factors, own: FloatArray, shared: FloatArray, problem: Description, place: Place
) -> FloatArray:
    """(n, n_classes) residuals of rows that were not fitted, were the model linear."""
    by_value = [solve_lower(lower, part) for lower, part in zip(factors.lowers, own, strict=True)]
    rest = zip(factors.halves, by_value, shared, strict=True)
    by_importance = np.stack([solve_lower(factors.root, s - half.T @ v) for half, v, s in rest])
    across = np.einsum("ckn,dkn->ncd", by_importance, by_importance, optimize=True)
    one = np.eye(len(own))
    alone = np.stack([(part**2).sum(axis=0) for part in by_value], axis=1)
    leverages = problem.weights[:, None, None] * (across + alone[:, :, None] * one)
    return np.asarray(np.linalg.solve(one - leverages, place.residuals[:, :, None])[:, :, 0])


def _unasked(rows: Observations) -> FloatArray:
    """(n,) share of the subsets of each row's size that were not asked."""
    sizes = rows.counts.sum(axis=1).astype(int)
    n_units, longest = int(rows.document_counts.sum()), int(sizes.max())
    possible = np.array([min(comb(n_units, size), MANY) for size in range(longest + 1)], float)
    possible[1:2] = len(rows.document_counts)
    if (rows.counts > rows.document_counts).any():  # sequences may repeat words
        possible[2:] = MANY
    asked = np.bincount(sizes)
    return np.asarray((1 - asked / possible).clip(0, 1)[sizes])


def _open_share(problem: Description) -> float:
    """Of all there is to know, no answer for it; classes that sum to 0 say one thing less."""
    (n, n_classes), m = problem.scores.shape, problem.n_features
    free = max(1, n_classes - 1)
    answers = (n - 1) * free if problem.weights.any() else 0
    return float(max(0.0, 1.0 - answers / (m * (free + 1))))


def _read(
    values: FloatArray, importances: FloatArray, moves: Shift, seen: Observations, judged: Judged
) -> TwoScores:
    """Scores of a feature's single occurrence, and how they answer to the parameters."""
    one_column = seen.scores.ndim == 1
    occurs = np.append(seen.document_counts, 1.0)
    share = np.exp(importances - importances.max())
    share /= occurs @ share
    attention, scale = occurs * share, np.exp(importances)[:, None]
    of_total = attention @ moves.importances  # (q,)
    turned = moves.importances - of_total
    scores: dict[str, list[FloatArray]] = {"value": [], "linearised": [], "gradient": []}
    errors: dict[str, list[FloatArray]] = {name: [] for name in scores}
    for value, move in zip(values.T, moves.values, strict=True):
        away = (value - attention @ value)[:, None]
        attended = attention @ (move + away * moves.importances)
        found = {
            "value": (value, move),
            "linearised": (
                scale[:, 0] * value,
                scale * (move + value[:, None] * moves.importances),
            ),
            "gradient": (share * away[:, 0], share[:, None] * (move - attended + away * turned)),
        }
        for name, (score, moved) in found.items():
            scores[name].append(score[:-1])
            errors[name].append(_size(moved))
    by_class = [
        {name: _shaped(part, one_column) for name, part in of.items()} for of in (scores, errors)
    ]
    shared = {"importance": importances[:-1], "share": share[:-1]}
    unsure = {"importance": _size(moves.importances), "share": _size(share[:, None] * turned)}
    anchor = float(values[-1, 0]) if one_column else tuple(map(float, values[-1]))
    return TwoScores(
        {**by_class[0], **shared},
        {**by_class[1], **unsure},
        Anchor(anchor, float(importances[-1])),
        judged,
    )


def _size(moved: FloatArray) -> FloatArray:
    """(k, q) → (m,) of the features."""
    return np.asarray(np.sqrt((moved[:-1] ** 2).sum(axis=1)))


def _shaped(columns: list[FloatArray], one_column: bool) -> FloatArray:
    return columns[0] if one_column else np.stack(columns, axis=1)
