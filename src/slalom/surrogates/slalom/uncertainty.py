"""How far the same fit would be with all queries asked, and what it says of rows left out.

With H half the second derivatives of the objective (newton.py) and J_k those of row k's prediction:

    leave-one-out residual   (1 − π_k J_kᵀ H⁻¹ J_k)⁻¹ r_k          a matrix for several classes
    row k moves parameters   H⁻¹ J_kᵀ π_k r_k                      of which the squares add up

as if the model were linear where it ended.
"""

from dataclasses import dataclass
from math import comb

import numpy as np

from slalom.document import FloatArray
from slalom.surrogates.linalg import solve_lower
from slalom.surrogates.slalom.newton import Factors, Point, Problem


@dataclass(frozen=True, eq=False)
class Influence:
    """How far single rows move the parameters; the squares of all add up to a variance."""

    values: FloatArray  # (n_classes, k, r)
    importances: FloatArray  # (k, r) less what all words have in common

    def of_classes(self, contrasts: FloatArray) -> "Influence":
        """`contrasts` (n_classes, n_columns) take columns to classes."""
        values = np.einsum("cd,dkr->ckr", contrasts, self.values)
        return Influence(values, self.importances)

    def beside(self, point: Point, other: Point, chance: float = 1.0) -> "Influence":
        """And where the optimum is if something else were a standard error off, or by chance."""
        share = np.sqrt(chance)
        values = share * (other.values - point.values).T[:, :, None]
        importances = share * (other.importances - point.importances)[:, None]
        return self.and_of(Influence(values, importances))

    def and_of(self, others: "Influence") -> "Influence":
        return Influence(
            np.concatenate([self.values, others.values], axis=2),
            np.hstack([self.importances, others.importances]),
        )


def derivatives(problem: Problem, point: Point) -> tuple[FloatArray, FloatArray]:
    """Of predictions by u and e, (n_classes, k + q, n), and by s, (n_classes, k, n)."""
    slopes, n = problem.slopes(point), len(problem.scores)
    own = np.empty((slopes.shape[1], len(slopes) + problem.fixed.shape[1], n))
    own[:, : len(slopes)] = slopes.T[:, :, None] * point.attention.transposed()
    own[:, len(slopes) :] = problem.fixed.T
    shared = np.stack(
        [
            point.attention.times_difference(values, attended).transposed()
            for values, attended in zip(point.values.T, point.attended.T, strict=True)
        ]
    )
    return own, shared


def left_out(problem: Problem, point: Point, factors: Factors) -> FloatArray:
    """(n, n_classes) residuals of rows that were not fitted."""
    own, shared = derivatives(problem, point)
    by_value = [solve_lower(lower, part) for lower, part in zip(factors.lowers, own, strict=True)]
    rest = zip(factors.halves, by_value, shared, strict=True)
    by_importance = np.stack([solve_lower(factors.root, s - half.T @ v) for half, v, s in rest])
    across = np.einsum("ckn,dkn->ncd", by_importance, by_importance, optimize=True)
    one = np.eye(len(own))
    alone = np.stack([(part**2).sum(axis=0) for part in by_value], axis=1)
    leverages = problem.weights[:, None, None] * (across + alone[:, :, None] * one)
    return np.asarray(np.linalg.solve(one - leverages, point.residuals[:, :, None])[:, :, 0])


def influence_of(
    problem: Problem, point: Point, factors: Factors, residuals: FloatArray
) -> Influence:
    """How each row, missed by so much (n, n_classes), moves the parameters."""
    own, shared = derivatives(problem, point)
    pulls = (problem.weights * residuals.T)[:, None]  # (n_classes, 1, n)
    solved = factors.solve(own * pulls, (shared * pulls).sum(axis=0))
    return moved_by(problem, point, *solved)


def joint_influence(
    problem: Problem, point: Point, factors: Factors, errors: FloatArray
) -> Influence:
    """How errors of several rows at once, (n, n_classes, r), move the parameters."""
    own, shared = derivatives(problem, point)
    pulls = np.moveaxis(problem.weights[:, None, None] * errors, 1, 0)  # (n_classes, n, r)
    return moved_by(problem, point, *factors.solve(own @ pulls, (shared @ pulls).sum(axis=0)))


def moved_by(
    problem: Problem, point: Point, linear: FloatArray, importances: FloatArray
) -> Influence:
    """Steps of u (and e) and of s as steps of values and of importances."""
    values = problem.slopes(point).T[:, :, None] * linear[:, : len(point.values)]
    return Influence(values, importances - importances[: problem.n_features].mean(axis=0))


def unasked(counts: FloatArray, document_counts: FloatArray) -> FloatArray:
    """(n,) share of the subsets of each row's size that were not asked."""
    sizes = counts.sum(axis=1).astype(int)
    n_units, longest = int(document_counts.sum()), int(sizes.max())
    many = 10**12  # of which next to none were asked
    possible = np.array([min(comb(n_units, size), many) for size in range(longest + 1)], float)
    possible[1:2] = len(document_counts)
    if (counts > document_counts).any():  # sequences may repeat words
        possible[2:] = many
    asked = np.bincount(sizes)
    return np.asarray((1 - asked / possible).clip(0, 1)[sizes])
