"""The paper's Adam, step by step, and how far a Newton step may go."""

import numpy as np

from slalom.surrogates.slalom.descent import _step
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.problem import Ridges, project
from slalom.surrogates.slalom.solvers import Adam


def problem_of(model, n_rows=300, *, anchored=True):
    rng = np.random.default_rng(0)
    n_units = len(model.values)
    counts = (rng.random((n_rows, n_units)) < rng.random((n_rows, 1))).astype(float)
    counts = counts[counts.any(axis=1)]
    return SlalomSurrogate(anchored=anchored, parts=False).problem(
        counts,
        model.predict(counts),
        weights=np.ones(len(counts)),
        document_counts=np.ones(n_units),
    )


def test_adams_first_step_is_its_learning_rate():
    """Bias-corrected moments make the first step ±η; without, it would be about 3 η."""
    rng = np.random.default_rng(1)
    model = SlalomModel(rng.normal(size=20), rng.normal(size=20), None)
    solver = Adam(learning_rate=1e-2, batch_size=10_000, n_epochs=1)
    state = solver.solve(problem_of(model, anchored=False)).state
    np.testing.assert_allclose(np.abs(state.values), 1e-2, rtol=1e-2)


def test_no_importance_moves_further_than_the_bound_in_one_step():
    """A loud word among quiet ones: from afar the quadratic model promises too much."""
    values, importances = np.linspace(-1, 1, 25), np.zeros(25)
    importances[3], importances[7] = 8.0, -8.0
    problem = problem_of(SlalomModel(values, importances, Anchor(0.2, 0.0)))
    ridges = Ridges.of(problem, 1e-8, 1e-8)
    state, damping = project(problem, problem.importance_prior, ridges), 1e-3
    moves = []
    for _ in range(30):
        new, damping = _step(problem, state, ridges, damping)
        apart = np.subtract.outer(new.importances, new.importances)
        moves.append(np.abs(apart - np.subtract.outer(state.importances, state.importances)).max())
        state = new
    assert max(moves) <= 4.0 + 1e-9  # 2 each way
    assert max(moves) > 2.0  # it would go further
