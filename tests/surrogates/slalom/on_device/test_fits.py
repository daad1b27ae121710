"""Fits of many documents at once are those of each alone."""

from dataclasses import replace

import numpy as np
import pytest

from oracles import observed
from slalom.surrogates.slalom import folds, trials
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.folds import folds_of, without_folds
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.on_device import fits as module
from slalom.surrogates.slalom.on_device.fits import fits_on
from slalom.surrogates.slalom.on_device.posed import Posed
from slalom.surrogates.slalom.problem import Problem
from slalom.surrogates.slalom.trials import ByLeaveOneOut, Trials, answered


@pytest.fixture(autouse=True)
def in_double_precision(monkeypatch):
    """As a device computes: numpy's searches and folds would take a shorter way."""
    monkeypatch.setattr(trials, "SINGLE_PRECISION_RANGE", 0.0)


def problem_of(seed, n_rows=120, n_units=9, *, noise=0.2, empty=True, **surrogate):
    rng = np.random.default_rng(seed)
    counts = (rng.random((n_rows, n_units)) < rng.random((n_rows, 1))).astype(float)
    counts[0], counts[1] = 1.0, 0.0
    counts = counts if empty else counts[counts.sum(axis=1) > 0]
    model = SlalomModel(rng.normal(size=n_units), rng.normal(size=n_units), Anchor(0.2, 1.0))
    scores = model.predict(counts) + noise * rng.normal(size=len(counts))
    seen = observed(counts, scores / scores.std(), weights=0.5 + rng.random(len(counts)))
    return SlalomSurrogate(**surrogate).problem(seen)


def assert_same(problem, found):
    best = answered(ByLeaveOneOut().search(problem), Trials(problem))
    solution = ByLeaveOneOut().solve(problem)
    assert found.strengths == best.strengths
    assert found.error == pytest.approx(best.error, rel=1e-6, abs=1e-12)
    np.testing.assert_allclose(found.importances, solution.state.importances, atol=1e-6)
    return solution


KINDS = {
    "noise": {},
    "much noise": {"noise": 3.0},
    "no noise": {"noise": 0.0},
    "hardly any": {"noise": 0.02},
    "no empty text": {"empty": False},
    "no parts": {"parts": False},
    "the paper's": {"anchored": False},
}


@pytest.mark.parametrize("kind", KINDS)
def test_one_document(kind):
    problem = problem_of(1, **KINDS[kind])
    (found,) = fits_on("cpu", [Posed.of(problem)])
    solution = assert_same(problem, found)
    without = without_folds(problem, solution, folds_of(problem))[:, :, 0]
    np.testing.assert_allclose(found.without, without, atol=1e-5)


def test_documents_of_all_sizes_and_kinds_do_not_know_of_each_other():
    sizes = [(60, 8), (150, 12), (90, 10), (100, 9), (130, 11), (80, 8), (110, 14)]
    problems = [
        problem_of(seed, n_rows, n_units, **kind)
        for seed, ((n_rows, n_units), kind) in enumerate(zip(sizes, KINDS.values(), strict=True))
    ]
    found = fits_on("cpu", [Posed.of(problem) for problem in problems])
    for problem, one in zip(problems, found, strict=True):
        solution = assert_same(problem, one)
        without = without_folds(problem, solution, folds_of(problem))[:, :, 0]
        assert one.without.shape == without.shape
        np.testing.assert_allclose(one.without, without, atol=1e-5)


def test_folds_of_large_problems_end_where_refits_do(monkeypatch):
    """They begin where a linear fit would go, and two steps are enough."""
    problem = problem_of(3, 400, 30)
    assert problem.is_large
    (found,) = fits_on("cpu", [Posed.of(problem)])
    solution = assert_same(problem, found)
    refits = without_folds(replace_single(problem), solution, folds_of(problem))[:, :, 0]
    spread = refits.std()
    assert np.abs(found.without - refits).max() < 0.02 * spread
    # half of what single precision's own steps are off, or as much
    quick = without_folds(problem, solution, folds_of(problem))[:, :, 0]
    np.testing.assert_allclose(found.without, quick, atol=0.02 * spread)


def replace_single(problem):
    """The same problem, too small in name for the shorter way."""

    class Small(Problem):
        is_large = False

    return Small(**{name: getattr(problem, name) for name in Problem.__dataclass_fields__})


def test_little_memory_means_smaller_batches(monkeypatch):
    posed = [Posed.of(problem_of(seed)) for seed in range(3)]
    plain = fits_on("cpu", posed)
    monkeypatch.setattr(module, "MAX_NUMBERS", 1)
    assert module._batches(posed, "cpu") == [[0], [1], [2]]
    for one, other in zip(fits_on("cpu", posed), plain, strict=True):
        np.testing.assert_allclose(one.importances, other.importances, atol=1e-7)


def test_what_a_device_does_not_solve():
    problem = problem_of(0)
    assert Posed.of(replace(problem, complete=True)) is None
    both = replace(problem, scores=np.hstack([problem.scores, -problem.scores]))
    assert Posed.of(both) is None


def test_counts_travel_as_bytes_where_they_fit():
    problem = problem_of(0)
    assert Posed.of(problem).counts.dtype == np.uint8
    many = problem.counts.dense()
    many[2, 0] = 300.0
    large = replace(problem, counts=type(problem.counts).of(many))
    assert Posed.of(large).counts[2, 0] == 300.0
    assert folds.in_turn(Posed.of(problem).judged).tolist() == folds_of(problem).tolist()
