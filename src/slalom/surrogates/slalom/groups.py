"""Standard errors of a SLALOM whose rows come in groups: the queries of one document.

What a model leaves unexplained in one query of a document it leaves in its others too, so
documents are what is drawn at random, not queries. With U_d the sum of the scores' influence
over the rows of document d (see certainty.py for the single terms):

    covariance = Σ_d U_d U_dᵀ + σ² H⁻¹ R H⁻¹

the last term being the pull of the ridges, in full: most tokens are in few documents, and
shrinking is most of what is known of them. Only the diagonal is computed, so that thousands
of features are no trouble.
"""

import numpy as np
from numpy.typing import NDArray

from slalom.document import FloatArray
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.cholesky import inverse_of, solved
from slalom.surrogates.slalom.curvature import curvature, slope_of
from slalom.surrogates.slalom.problem import Problem, Solution


def grouped_errors(
    problem: Problem, solution: Solution, groups: NDArray[np.intp]
) -> tuple[FloatArray, FloatArray]:
    """(k,) of the values of the first class, (k,) of the importances."""
    state, ridges = solution.state, solution.ridges
    system = curvature(problem, state, ridges)
    inverse: FloatArray = np.asarray(np.linalg.inv(system.schur), np.float64)
    noise = problem.weights * state.residuals[:, 0]
    coupling = system.coupling[0]  # G⁻¹C
    by_value = _summed(state.attention.times(noise, 1.0), groups)  # (k, n_groups)
    by_slope = _summed(slope_of(state, 0).times(noise, 1.0), groups)
    moved = inverse @ (by_slope - coupling.T @ by_value)
    own = solved(state.lower, by_value) - coupling @ moved
    sigma = np.sqrt(float(problem.weights @ state.residuals[:, 0] ** 2) / len(noise))
    gram = inverse_of(state.lower)
    through = inverse @ coupling.T  # how a pull on a value moves the importances
    pulls = [inverse * np.sqrt(ridges.importances), through * np.sqrt(ridges.values)]
    answers = [-coupling @ pulls[0], gram * np.sqrt(ridges.values) + coupling @ pulls[1]]
    spread = [(part**2).sum(axis=1) for part in (own, moved)]
    pulled = [sigma**2 * sum((part**2).sum(axis=1) for part in row) for row in (answers, pulls)]
    return np.sqrt(spread[0] + pulled[0]), np.sqrt(spread[1] + pulled[1])


def _summed(rows: Rows, groups: NDArray[np.intp]) -> FloatArray:
    """The rows of each group added up, as columns: (k, n_groups)."""
    sums = np.zeros((rows.shape[1], int(groups.max()) + 1))
    if rows.cells is None:
        np.add.at(sums.T, groups, rows.data)
    else:
        np.add.at(sums, (rows.cells.column, groups[rows.cells.row]), rows.data)
    return sums
