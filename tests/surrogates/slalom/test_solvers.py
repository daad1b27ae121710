"""The paper's Adam, step by step, and how far a Newton step may go."""

import numpy as np
import pytest

from oracles import observed
from slalom.surrogates.slalom.descent import step_down
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.problem import Ridges, project
from slalom.surrogates.slalom.solvers import Adam, _loss_gradient


def problem_of(model, n_rows=300, *, anchored=True):
    rng = np.random.default_rng(0)
    n_units = len(model.values)
    counts = (rng.random((n_rows, n_units)) < rng.random((n_rows, 1))).astype(float)
    counts = counts[counts.any(axis=1)]
    return SlalomSurrogate(anchored=anchored, parts=False).problem(
        observed(counts, model.predict(counts))
    )


def test_adams_first_step_is_its_learning_rate():
    """Bias-corrected moments make the first step ±η; without, it would be about 3 η."""
    rng = np.random.default_rng(1)
    model = SlalomModel(rng.normal(size=20), rng.normal(size=20), None)
    solver = Adam(learning_rate=1e-2, batch_size=10_000, n_steps=1)
    state = solver.solve(problem_of(model, anchored=False)).state
    np.testing.assert_allclose(np.abs(state.values), 1e-2, rtol=1e-2)


def test_adams_slope_is_that_of_the_loss_for_every_class():
    rng = np.random.default_rng(3)
    model = SlalomModel(rng.normal(size=(6, 3)), rng.normal(size=6), None)
    problem, parameters = problem_of(model, 40, anchored=False), rng.normal(size=(6, 4))
    counts, every = problem.counts.dense(), np.arange(len(problem.scores))

    def loss(at):
        mass = counts * np.exp(at[:, -1])
        said = mass @ at[:, :-1] / mass.sum(axis=1, keepdims=True)
        return float(problem.weights @ ((said - problem.scores) ** 2).sum(axis=1)) / len(counts)

    slope = np.zeros_like(parameters)
    for place in np.ndindex(parameters.shape):
        step = np.zeros_like(parameters)
        step[place] = 1e-5
        slope[place] = (loss(parameters + step) - loss(parameters - step)) / 2e-5
    found = _loss_gradient(problem, parameters, counts, every)
    np.testing.assert_allclose(found, slope, atol=1e-6 * np.abs(slope).max())


@pytest.mark.parametrize("solver", [Adam(), Adam(5.0, n_steps=20_000, moments=False)])
def test_algorithm_1_comes_to_rest_at_an_exact_slalom(solver):
    """With Adam's moments, as in the published code, and as it is printed."""
    rng = np.random.default_rng(0)
    importances = rng.normal(size=10)
    model = SlalomModel(2 * rng.normal(size=10), importances - importances.mean(), None)
    counts = rng.multinomial(3, np.full(10, 0.1), size=500).astype(float)
    surrogate = SlalomSurrogate(anchored=False, parts=False, solver=solver)
    found = surrogate.fit(observed(counts, model.predict(counts)))
    np.testing.assert_allclose(found.scores["value"], model.values, atol=1e-5)
    np.testing.assert_allclose(found.scores["importance"], model.importances, atol=1e-5)


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_no_importance_moves_further_than_the_bound_in_one_step(seed, full):
    """A loud word among quiet ones: from afar the quadratic model promises too much."""
    rng = np.random.default_rng(seed)
    values, importances = rng.normal(size=25), np.zeros(25)
    importances[rng.integers(25, size=2)] = 8.0, -8.0
    problem = problem_of(SlalomModel(values, importances, Anchor(0.2, 0.0)))
    ridges = Ridges.of(problem, 1e-3, 1e-3)
    state, damping = project(problem, problem.importance_prior, ridges), 1e-3
    moves = []
    for _ in range(25):
        new, damping = step_down(problem, state, ridges, damping=damping, full=full)
        apart = np.subtract.outer(new.importances, new.importances)
        moves.append(np.abs(apart - np.subtract.outer(state.importances, state.importances)).max())
        state = new
    assert max(moves) <= 4.0 + 1e-9  # 2 each way
    assert max(moves) > 2.0  # it would go further
