"""An exact SLALOM is read off its answers; anything else is not taken for one."""

import itertools

import numpy as np
import pytest

from slalom.surrogates.slalom.recovery import recovered

RIGHT = 1e-4


def truth(n_features, n_classes, seed):
    """Weights, values and the anchor's value, its weight last."""
    rng = np.random.default_rng(seed)
    importances = rng.normal(size=n_features + 1)
    values = 2 * rng.normal(size=(n_features + 1, n_classes))
    if n_classes > 1:
        values -= values.mean(axis=1, keepdims=True)
    return importances - importances[:-1].mean(), values


def answers(counts, importances, values):
    mass = np.hstack([counts, np.ones((len(counts), 1))]) * np.exp(importances)
    return mass / mass.sum(axis=1, keepdims=True) @ values


def asked(n_units, features, seed):
    """All subsets of few units, else 5 random ones per unit and nothing."""
    rng = np.random.default_rng(seed)
    if n_units <= 9:
        shown = np.array(list(itertools.product([0.0, 1.0], repeat=n_units)))
    else:
        n_rows = max(300, 5 * n_units)
        shown = rng.random((n_rows, n_units)) < rng.random((n_rows, 1))
        shown[0] = False
    return shown @ np.eye(features.max() + 1)[features]


def features_of(n_units, *, tied, seed):
    n_features = max(2, 2 * n_units // 3) if tied else n_units
    again = np.random.default_rng(seed).integers(0, n_features, n_units - n_features)
    return np.append(np.arange(n_features), again)


def found(n_units, n_classes, seed, *, tied=False, single=False, empty=True):
    """How far values and importances come back from the truth; None: they do not."""
    features = features_of(n_units, tied=tied, seed=seed)
    importances, values = truth(features.max() + 1, n_classes, seed)
    counts = asked(n_units, features, seed)
    scores = answers(counts, importances, values)
    scores = scores.astype(np.float32).astype(float) if single else scores
    nothing = ~counts.any(axis=1)
    back = recovered(
        counts[~nothing],
        scores[~nothing],
        anchored=True,
        empty=scores[nothing][0] if empty else None,
    )
    if back is None:
        return None
    off_by = np.abs(back.values - values).max(), np.abs(back.importances - importances).max()
    return max(off_by)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("n_classes", [1, 3])
@pytest.mark.parametrize("tied", [False, True])
def test_exact_models_of_3_to_36_words_come_back(tied, n_classes, seed):
    for n_units in (*range(4 if tied else 3, 13), 17, 24, 36):
        assert found(n_units, n_classes, seed, tied=tied) < RIGHT


@pytest.mark.parametrize("seed", range(4))
def test_two_words_take_more_than_two_classes(seed):
    assert found(2, 3, seed) < RIGHT
    assert found(2, 1, seed) is None  # three answers, four unknowns


@pytest.mark.parametrize("seed", range(4))
def test_answers_in_single_precision_and_without_the_empty_text(seed):
    for n_units in (6, 12, 30):
        assert found(n_units, 1, seed, single=True) < 1e-3
        assert found(n_units, 1, seed, empty=False) < RIGHT


def test_values_far_beyond_the_answers_come_back():
    """A quiet word that would say 20: answers reach .8."""
    importances = np.append(np.zeros(5), np.log(30.0))
    values = np.array([[20.0], [-3.0], [1.0], [2.0], [-1.0], [0.0]])
    counts = asked(5, np.arange(5), 0)
    back = recovered(counts, answers(counts, importances, values), anchored=True, empty=np.zeros(1))
    np.testing.assert_allclose(back.values, values, atol=1e-9)


def test_what_is_no_slalom_is_not_taken_for_one():
    rng = np.random.default_rng(0)
    counts = asked(12, np.arange(12), 0)
    exact = answers(counts, *truth(12, 1, 0))
    nothing = exact[~counts.any(axis=1)][0]
    for wrong in (
        exact + 1e-5 * rng.normal(size=exact.shape) * counts.any(axis=1)[:, None],
        counts @ rng.normal(size=(12, 1)) + nothing,  # adds up
        np.tanh(exact - nothing) + nothing,
        np.zeros_like(exact) + nothing,  # nothing to be told
    ):
        assert recovered(counts, wrong, anchored=True, empty=nothing) is None
