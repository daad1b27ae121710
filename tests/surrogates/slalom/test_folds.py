"""Fits that have not seen a fold: rows left out say nothing, and refits agree."""

from dataclasses import replace

import numpy as np
import pytest

from oracles import observed
from slalom.surrogates.slalom.descent import descend
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.folds import (
    FEW,
    N_FOLDS,
    N_FOLDS_OF_FEW,
    _rows,
    folds_of,
    said_of_all,
    without_folds,
)
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.path import Strengths
from slalom.surrogates.slalom.problem import Solution, attention_of, project


@pytest.fixture(scope="module")
def fitted():
    """A SLALOM with noise, and where its fit ended."""
    rng, n_units = np.random.default_rng(0), 20
    places = rng.random((300, n_units)).argsort(axis=1)
    counts = (places < rng.integers(1, n_units, size=(300, 1))).astype(float)
    counts[0], counts[1] = 1.0, 0.0
    model = SlalomModel(rng.normal(size=n_units), rng.normal(size=n_units), Anchor(0.2, 1.0))
    scores = model.predict(counts) + 0.2 * rng.normal(size=300)
    problem = SlalomSurrogate().problem(observed(counts, scores / scores.std()))
    ridges = Strengths().ridges(problem)
    return problem, Solution(refitted(problem, np.ones(300, bool), ridges)[1], ridges)


def refitted(problem, kept, ridges):
    """What a fit of these rows, from the prior to its end, says of all rows."""
    rows = _rows(problem, kept)
    state = project(rows, problem.importance_prior, ridges)
    state = descend(rows, state, ridges, n_steps=60, tolerance=1e-13, near=False)
    attended = attention_of(problem.counts, state.importances).apply(state.values)
    return attended + problem.fixed @ state.effects, state


def test_the_whole_and_the_empty_text_are_never_left_out(fitted):
    folds = folds_of(fitted[0])
    assert list(folds[:2]) == [-1, -1]
    assert set(folds[2:]) == set(range(N_FOLDS_OF_FEW))


@pytest.mark.parametrize(("n_drawn", "n_folds"), [(FEW, N_FOLDS_OF_FEW), (FEW + 1, N_FOLDS)])
def test_few_rows_are_left_out_fewer_at_a_time(fitted, n_drawn, n_folds):
    judged = np.arange(n_drawn + 5) < n_drawn
    folds = folds_of(replace(fitted[0], scores=np.zeros((n_drawn + 5, 1)), judged=judged))
    np.testing.assert_array_equal(np.unique(folds[judged]), np.arange(n_folds))
    assert np.ptp(np.bincount(folds[judged])) <= 1
    assert (folds[~judged] == -1).all()


def said_without(problem, solution, folds):
    return [said_of_all(problem, state) for state in without_folds(problem, solution, folds)]


def test_rows_left_out_say_nothing(fitted):
    problem, solution = fitted
    folds = folds_of(problem)
    before = said_without(problem, solution, folds)
    scores = np.where((folds == 1)[:, None], 5.0, problem.scores)
    after = said_without(replace(problem, scores=scores), solution, folds)
    np.testing.assert_array_equal(before[1], after[1])
    assert np.abs(before[0] - after[0]).max() > 0.1


def test_without_a_fold_is_a_refit(fitted):
    problem, solution = fitted
    folds = folds_of(problem)
    found = said_without(problem, solution, folds)
    for fold in range(N_FOLDS_OF_FEW):
        said, _ = refitted(problem, folds != fold, solution.ridges)
        np.testing.assert_allclose(found[fold], said, atol=1e-5)
