"""Fits that have not seen a fold, or two: rows left out say nothing, and refits agree."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.descent import descend
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.folds import N_FOLDS, folds_of, without_folds, without_two_folds
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
    problem = SlalomSurrogate().problem(
        counts, scores / scores.std(), weights=np.ones(300), document_counts=np.ones(n_units)
    )
    ridges = Strengths().ridges(problem)
    return problem, Solution(refitted(problem, np.ones(300, bool), ridges)[1], ridges)


def refitted(problem, kept, ridges):
    """What a fit of these rows, from the prior to its end, says of all rows."""
    parts = replace(
        problem.parts, direct=problem.parts.direct[kept], length=problem.parts.length[kept]
    )
    rows = replace(
        problem,
        counts=Rows.of(problem.counts.dense()[kept]),
        scores=problem.scores[kept],
        weights=problem.weights[kept],
        parts=parts,
        judged=None,
    )
    state = project(rows, problem.importance_prior, ridges)
    state = descend(rows, state, ridges, n_steps=60, tolerance=1e-13, near=False)
    attended = attention_of(problem.counts, state.importances).apply(state.values)
    return attended + problem.fixed @ state.effects, state


def test_the_whole_and_the_empty_text_are_never_left_out(fitted):
    folds = folds_of(fitted[0])
    assert list(folds[:2]) == [-1, -1]
    assert set(folds[2:]) == set(range(N_FOLDS))


def test_rows_left_out_say_nothing(fitted):
    problem, solution = fitted
    folds = folds_of(problem)
    before = without_folds(problem, solution, folds).said
    scores = np.where((folds == 1)[:, None], 5.0, problem.scores)
    after = without_folds(replace(problem, scores=scores), solution, folds).said
    np.testing.assert_array_equal(before[1], after[1])
    assert np.abs(before[0] - after[0]).max() > 0.1


def test_without_a_fold_is_a_refit(fitted):
    problem, solution = fitted
    folds = folds_of(problem)
    found = without_folds(problem, solution, folds)
    for fold in range(N_FOLDS):
        said, state = refitted(problem, folds != fold, solution.ridges)
        np.testing.assert_allclose(found.said[fold], said, atol=1e-5)
        np.testing.assert_allclose(found.importances[fold], state.importances, atol=1e-4)


def test_without_two_folds_is_nearly_a_refit(fitted):
    """Nearer to it by half than importances that stay where they were."""
    problem, solution = fitted
    folds = folds_of(problem)
    moved = without_folds(problem, solution, folds)
    stayed = replace(moved, importances=np.tile(solution.state.importances, (N_FOLDS, 1)))
    found = [without_two_folds(problem, solution, folds, one_less=each) for each in (moved, stayed)]
    missed = np.zeros(2)
    for one, other in permutations(range(N_FOLDS), 2):
        rows = folds == other
        said = refitted(problem, (folds != one) & ~rows, solution.ridges)[0]
        missed += [((each[one, rows] - said[rows]) ** 2).sum() for each in found]
    assert missed[0] < 0.5 * missed[1]


def test_of_folds_left_out_only_other_rows_are_told(fitted):
    problem, solution = fitted
    folds = folds_of(problem)
    one_less = without_folds(problem, solution, folds)
    found = without_two_folds(problem, solution, folds, one_less=one_less)
    told = (folds >= 0) & (folds != np.arange(N_FOLDS)[:, None])
    np.testing.assert_array_equal(found[:, :, 0] != 0, told)
