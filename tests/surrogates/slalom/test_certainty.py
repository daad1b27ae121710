"""What the answers determine, and what only the prior says."""

from dataclasses import replace

import numpy as np
import pytest

from oracles import observed
from slalom.surrogates.slalom.certainty import certainty
from slalom.surrogates.slalom.curvature import slope_of
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.left_out import left_out, positive_root
from slalom.surrogates.slalom.length import LengthCurve, knots_of
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.readouts import read_outs


def subsets(n_queries, n_units, rng):
    sizes = rng.integers(1, n_units + 1, size=n_queries)
    ranks = rng.random((n_queries, n_units)).argsort(axis=1).argsort(axis=1)
    masks = (ranks < sizes[:, None]).astype(float)
    return np.vstack([np.ones(n_units), np.zeros(n_units), masks])


def fitted(counts, scores):
    return SlalomSurrogate().fit(observed(counts, scores))


def test_what_the_ridges_pull_away_is_part_of_the_error():
    """Few rows and much misfit: without it 47 % of the importances lay within, not nearly 90."""
    inside = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        counts, importances = subsets(118, 30, rng), 0.5 * rng.normal(size=30)
        model = SlalomModel(rng.normal(size=30), importances, Anchor(0.4, 1.0))
        fit = fitted(counts, model.predict(counts) + 0.4 * rng.normal(size=120))
        missed = np.abs(fit.scores["importance"] - (importances - importances.mean()))
        inside += (missed < 1.645 * fit.errors["importance"]).tolist()
    assert np.mean(inside) > 0.75


def test_a_root_is_found_where_rounding_left_none():
    """Singular but for rounding: two parameters that only ever act together."""
    schur = np.array([[4.0, 4.0, 0.0], [4.0, 4.0 - 1e-14, 0.0], [0.0, 0.0, 9.0]])
    root = np.tril(positive_root(schur))  # above it are leftovers
    np.testing.assert_allclose(root @ root.T, schur, atol=1e-9)


def test_values_shrink_to_what_the_empty_text_says_of_each_class():
    """Noise around three levels: nothing is known of any word but those levels."""
    rng = np.random.default_rng(11)
    levels = np.array([2.0, 0.5, -2.5])
    counts = subsets(98, 12, rng)
    scores = levels + 0.1 * rng.normal(size=(100, 3))
    scores -= scores.mean(axis=1, keepdims=True)
    values = fitted(counts, scores).scores["value"]
    np.testing.assert_allclose(values.mean(axis=0), levels, atol=0.2)


def test_the_empty_text_predicted_without_itself_is_no_noise():
    """No other row could stand in for it: it would come out anywhere, and errors twice too wide."""
    missed, told = [], []
    for seed in (3, 5, 6):
        rng = np.random.default_rng(seed)
        counts = subsets(298, 30, rng)
        model = SlalomModel(rng.normal(size=30), 0.5 * rng.normal(size=30), Anchor(0.4, 1.0))
        fit = fitted(counts, model.predict(counts) + rng.normal(size=300))
        truth = read_outs(model, np.ones(30))["shapley"]
        off = fit.scores["shapley"] - truth
        missed.append(off - off.mean())
        told.append(fit.errors["shapley"])
    ratio = np.sqrt(np.mean(np.square(told)) / np.mean(np.square(missed)))
    assert 0.7 < ratio < 1.5


def drifting(seed, offset):
    """A known curve beside attention whose values have `offset` in common, and noisy answers."""
    rng = np.random.default_rng(seed)
    knots = knots_of(30)
    curve = LengthCurve(knots, 0.5 * rng.normal(size=len(knots)).cumsum())
    values = 1.5 * (rng.normal(size=30) + offset)
    model = SlalomModel(
        values, 0.7 * rng.normal(size=30), Anchor(0.3, 1.5), direct=np.zeros(30), length=curve
    )
    counts = np.vstack([subsets(400, 30, rng), np.eye(30)])
    noise = 0.2 * rng.normal(size=len(counts)) * (counts.sum(axis=1) > 0)
    return model, fitted(counts, model.predict(counts) + noise)


@pytest.mark.parametrize("common", [0.0, 0.5, 1.0])
def test_the_length_curve_lies_within_its_errors(common):
    """Known curves, fitted again and again; values have in common what they vary by, or half."""
    held, sizes = [], np.arange(31.0)
    for seed in range(14):
        model, fit = drifting(seed, common * np.random.default_rng(seed + 50).normal())
        missed = fit.model.length(sizes) - model.length(sizes)
        assert fit.length_errors.shape == (31,)
        assert fit.length_errors[0] == 0
        assert fit.length_errors.max() < 2 * np.ptp(model.predict(np.eye(30)))
        held.append(np.abs(missed[1:]) <= 1.645 * fit.length_errors[1:])
    assert np.mean(held) > 0.85


@pytest.mark.parametrize(("n_rows", "noise"), [(118, 0.4), (118, 0.1), (448, 0.4)])
def test_values_lie_within_their_errors(n_rows, noise):
    """Without what all may be off by in common half of them did; errors still say something."""
    held, wide = [], []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        counts, values = subsets(n_rows, 30, rng), 1.5 * rng.normal(size=30)
        model = SlalomModel(values, 0.8 * rng.normal(size=30), Anchor(0.4, 1.0))
        fit = fitted(counts, model.predict(counts) + noise * rng.normal(size=len(counts)))
        held += (np.abs(fit.scores["value"] - values) <= 1.645 * fit.errors["value"]).tolist()
        wide.append(fit.errors["value"].mean() / values.std())
    assert 0.82 < np.mean(held) < 0.98
    assert np.mean(wide) < 1.4


@pytest.mark.parametrize("n_classes", [1, 3])
def test_covariances_are_those_of_the_whole_system(n_classes):
    """H⁻¹ (JᵀΠ² diag(r²) J + R²T) H⁻¹ with nothing eliminated, and T of each kind of parameter."""
    rng = np.random.default_rng(7)
    counts = subsets(80, 8, rng)
    anchor = Anchor(tuple(rng.normal(size=n_classes)), 0.5)
    model = SlalomModel(2 * rng.normal(size=(8, n_classes)), rng.normal(size=8), anchor)
    scores = model.predict(counts) + 0.3 * rng.normal(size=(len(counts), n_classes))
    weights = rng.uniform(0.5, 2.0, size=len(counts))
    solved = SlalomSurrogate().solve(observed(counts, scores, weights=weights))
    problem, solution = replace(solved.problem, judged=None), solved.solution
    found = certainty(problem, solution, solved.back).covariances
    for one, told in zip(dense_covariances(problem, solution, solved.back), found, strict=True):
        np.testing.assert_allclose(told, one, rtol=1e-6, atol=1e-9 * np.abs(one).max())


def dense_covariances(problem, solution, back):
    state, ridges, n_columns = solution.state, solution.ridges, problem.scores.shape[1]
    left = left_out(problem, state, ridges)
    design = np.hstack([state.attention.dense(), problem.fixed])
    slopes = np.stack([slope_of(state, column).dense() for column in range(n_columns)])
    n_linear, k, m = design.shape[1], len(state.importances), problem.n_features
    size = n_columns * n_linear + k
    jacobian = np.zeros((n_columns, len(design), size))
    for column in range(n_columns):
        jacobian[column, :, column * n_linear : (column + 1) * n_linear] = design
        jacobian[column, :, -k:] = slopes[column]
    bent = np.einsum("cni,n,cnj->ij", jacobian, problem.weights, jacobian)
    system = bent + np.diag(np.append(np.tile(ridges.linear, n_columns), np.zeros(k)))
    # what the ridges add for the importances, gauge included, is what the solver's own S lacks
    across, within = system[:-k, -k:], system[:-k, :-k]
    system[-k:, -k:] = left.system.schur + across.T @ np.linalg.solve(within, across)
    inverse = np.linalg.inv(system)
    noise = (problem.weights[:, None] * left.residuals).T
    noisy = np.einsum("cni,cn->ni", jacobian, noise)
    spread = np.diag(inverse)
    linear = spread[:-k].reshape(n_columns, -1).mean(axis=0)
    moved = np.vstack([state.values - problem.prior, state.effects])
    sigma = np.average((left.residuals**2).mean(axis=1), weights=problem.weights)
    pull = np.sqrt(sigma * np.append(ridges.linear, ridges.importances))
    kinds = [slice(0, m), slice(k, k + m), slice(k + m + 1, n_linear)]
    for kind in kinds:
        free = (1 - ridges.linear[kind] * linear[kind]).sum()
        far = np.sqrt((moved[kind] ** 2).mean(axis=1).sum() / free)
        pull[kind] = np.maximum(pull[kind], ridges.linear[kind] * far)
    prior_deviation = state.importances[:m] - problem.importance_prior[:m]
    free = (1 - ridges.importances[:m] * spread[-k:][:m]).sum()
    far = np.sqrt((prior_deviation**2).sum() / free)
    pull[n_linear:] = np.maximum(pull[n_linear:], ridges.importances * far)
    pulls = np.append(np.tile(pull[:n_linear], n_columns), pull[n_linear:])
    covariance = inverse @ (noisy.T @ noisy + np.diag(pulls**2)) @ inverse
    for weights in back:
        chosen = np.zeros((n_linear + k, size))
        for column, weight in enumerate(weights):
            chosen[:n_linear, column * n_linear : (column + 1) * n_linear] = weight * np.eye(
                n_linear
            )
        chosen[k : k + m] -= chosen[k : k + m].mean(axis=0)  # direct effects sum to 0
        chosen[n_linear:, -k:] = np.eye(k)
        yield chosen @ covariance @ chosen.T


def test_without_the_empty_text_the_first_step_of_the_curve_is_no_news():
    rng = np.random.default_rng(3)
    counts = subsets(300, 30, rng)
    counts = counts[counts.sum(axis=1) > 0]
    fit = fitted(counts, counts @ rng.normal(size=30) + rng.normal(size=len(counts)))
    assert fit.length_errors[1] == 0
    assert (fit.length_errors[2:] > 0).all()


def test_curves_of_all_classes_have_errors_of_their_own():
    rng = np.random.default_rng(4)
    counts = subsets(300, 12, rng)
    one = np.log1p(counts.sum(axis=1)) + 0.1 * rng.normal(size=len(counts))
    scores = np.column_stack([-one, one]) / 2
    both = fitted(counts, scores)
    single = fitted(counts, one)
    assert both.length_errors.shape == (13, 2)
    np.testing.assert_allclose(2 * both.length_errors[:, 1], single.length_errors, rtol=1e-3)
