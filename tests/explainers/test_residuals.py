"""What a fit left, end to end: every answer tells of Shapley values, and the errors are honest."""

import numpy as np
import pytest
from benchmarks.trust import classifier_of

import slalom
from slalom.document import FloatArray
from slalom.explainers import residuals
from slalom.surrogates.slalom import correcting
from slalom.surrogates.slalom.posterior import Residuals

N = 20
TEXT = " ".join(f"w{word}" for word in range(N))


class Pairs:
    """Words that add up and neighbours that act together; its Shapley values are known."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.alone, self.joint = rng.normal(size=N), 0.7 * rng.normal(size=N - 1)

    def __call__(self, shown: FloatArray) -> FloatArray:
        return np.asarray(shown @ self.alone + (shown[:, 1:] * shown[:, :-1]) @ self.joint)

    def shapley(self) -> FloatArray:
        halves = self.joint / 2
        return self.alone + np.append(halves, 0.0) + np.append(0.0, halves)


def test_single_units_and_removals_are_rows_and_the_ends_are_not(monkeypatch):
    kept = []

    def residual_task(*given):
        kept.append(original(*given))
        return kept[-1]

    original = residuals.residual_task
    monkeypatch.setattr(residuals, "residual_task", residual_task)
    slalom.explain(classifier_of(Pairs(0), N), TEXT, target="yes", n_queries=150)
    (found,) = kept
    assert isinstance(found.left, Residuals)
    rows, times = np.unique(found.left.present, axis=0, return_counts=True)
    assert (times == 1).all()
    sizes = rows.sum(axis=1)
    assert (sizes == 1).sum() == (sizes == N - 1).sum() == N
    assert sizes.min() == 1
    assert sizes.max() == N - 1


def test_shapley_values_are_near_the_true_ones_and_held_by_their_intervals():
    held, missed = [], []
    for seed in range(4):
        game = Pairs(seed)
        found = slalom.explain(classifier_of(game, N), TEXT, target="yes", n_queries=150)
        off = found.scores["shapley"] - game.shapley()
        assert found.scores["shapley"].sum() == pytest.approx(game.shapley().sum())
        held.append(np.abs(off) <= 1.645 * found.errors["shapley"])
        missed.append((off**2).sum() / (game.shapley() ** 2).sum())
    assert 0.8 <= np.mean(held) <= 1.0
    assert np.mean(missed) < 0.01


def test_more_rows_than_a_posterior_takes_are_shared_out_too():
    game = Pairs(1)
    found = slalom.explain(classifier_of(game, N), TEXT, target="yes", n_queries=1800)
    assert found.scores["shapley"].sum() == pytest.approx(game.shapley().sum())
    np.testing.assert_allclose(found.scores["shapley"], game.shapley(), atol=0.1)


def test_predictions_say_how_words_act_together_and_r2_knows():
    """A fit of words one by one cannot; the posterior can, and is judged on unseen subsets."""
    game = Pairs(2)
    found = slalom.explain(classifier_of(game, N), TEXT, target="yes", n_queries=300)
    shown = (np.random.default_rng(0).random((500, N)) < 0.5).astype(float)
    assert found.model is not None
    true, fitted = game(shown), found.model.fitted.predict(shown)  # type: ignore[attr-defined]
    missed = ((found.predict(shown) - true) ** 2).mean()
    assert missed < 0.6 * ((fitted - true) ** 2).mean()
    assert found.quality.r2 == pytest.approx(1 - missed / true.var(), abs=0.05)


def test_a_correction_that_spoils_single_removals_is_left_out(monkeypatch):
    """By the error that removals would have: here it would grow whatever the posterior says."""
    text, game = TEXT, Pairs(2)

    def corrected() -> bool:
        found = slalom.explain(classifier_of(game, N), text, target="yes", n_queries=300)
        return found.model.correction is not None  # type: ignore[union-attr]

    assert corrected()
    monkeypatch.setattr(correcting, "MAX_HARM", 0.0)
    assert not corrected()
