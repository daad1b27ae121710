"""The process against what it is by definition: enumeration, differences, refits."""

import json
from dataclasses import dataclass, replace
from itertools import product
from typing import Annotated

import numpy as np
import pytest

from slalom.document import BoolArray, FloatArray, IntArray
from slalom.schema import plain, read_as
from slalom.surrogates import gp, kernel
from slalom.surrogates.gp import (
    Asked,
    Likelihood,
    Mean,
    Process,
    ScalePrior,
    jackknife,
    most_likely,
)
from slalom.surrogates.kernel import Scales, Subsets
from slalom.surrogates.shapley_estimates import shapley_of_all

RNG = np.random.default_rng(5)


@dataclass(frozen=True)
class Bent:
    """A parametric model with a known formula: a saturating sum."""

    effects: FloatArray  # (n_units, n_classes)

    def predict(self, counts: FloatArray) -> FloatArray:
        return np.asarray(np.tanh(counts @ self.effects))

    def joined(self, orders: IntArray) -> FloatArray:
        sums = np.cumsum(self.effects[orders], axis=1)
        return np.asarray(np.tanh(np.concatenate([np.zeros_like(sums[:, :1]), sums], axis=1)))

    def shapley(self) -> FloatArray:
        every = _every(len(self.effects))
        return shapley_of_all(every, self.predict(_shown(every)))


@dataclass(frozen=True)
class _Kept:
    """A mean in the company of what says how many units there are."""

    features: Annotated[IntArray, "units"]
    mean: Mean


def _every(n_units: int) -> BoolArray:
    return np.array(list(product([False, True], repeat=n_units)))


def _shown(subsets: BoolArray) -> FloatArray:
    return subsets.astype(np.float64)


def _case(n_units: int = 6, n_rows: int = 30, n_classes: int = 1) -> tuple[Bent, Asked]:
    """Answers of a game with pairs, around a model that knows a part of it."""
    model = Bent(RNG.normal(size=(n_units, n_classes)))
    every = _every(n_units)
    drawn = RNG.permutation(np.arange(1, len(every) - 1))[: n_rows - 2]
    present = every[np.concatenate([[0, len(every) - 1], drawn])]
    shown = _shown(present)
    pairs = RNG.normal(size=(n_units, n_units, n_classes))
    scores = 2 * model.predict(shown) + 0.3 * np.einsum("ri,rj,ijc->rc", shown, shown, pairs)
    return model, Asked(present, scores, model.predict(shown), np.zeros(len(shown)))


def _posterior(model: Bent, asked: Asked) -> Process:
    return Process.of(asked, np.abs(model.shapley()).sum(axis=1))


def _joint(process: Process, subsets: Subsets) -> tuple[FloatArray, FloatArray]:
    """The posterior mean and covariance of F at all subsets by the textbook, white part and all."""
    scales = process.mean.scales

    def prior(one: Subsets, other: Subsets) -> FloatArray:
        same = (one.present[:, None] == other.present).all(axis=2)
        mean, white = 1.0 + 0.09 * one.level @ other.level.T, scales.whites(other.log_ends)
        return np.asarray(kernel.covariance(one, other, scales) + mean + white * same)

    rows = process.mean.rows
    to_rows = prior(subsets, rows)
    within = np.linalg.inv(prior(rows, rows) + np.diag(process.mean.noise))
    mean = to_rows @ within @ process.mean.frame.columns(process.mean.answers)
    return mean, prior(subsets, subsets) - to_rows @ within @ to_rows.T


def test_the_gradient_is_that_of_the_likelihood() -> None:
    model, asked = _case()
    process = _posterior(model, asked)
    prior, columns = (
        ScalePrior.of(np.abs(model.shapley()[:, 0]), 0.5, 30),
        process.mean.frame.columns(asked.scores),
    )
    likelihood = Likelihood(prior, process.mean.rows, columns, np.full(len(columns), 0.01))
    theta = RNG.normal(size=2 * 6 + 9) * 0.5
    _, slope = likelihood(theta)
    for at in range(len(theta)):
        step = np.zeros_like(theta)
        step[at] = 1e-5
        rise = (likelihood(theta + step)[0] - likelihood(theta - step)[0]) / 2e-5
        assert slope[at] == pytest.approx(rise, rel=1e-5, abs=1e-6)


def test_the_search_makes_the_answers_more_likely() -> None:
    model, asked = _case()
    process = _posterior(model, asked)
    prior, columns = (
        ScalePrior.of(np.abs(model.shapley()[:, 0]), 0.5, 30),
        process.mean.frame.columns(asked.scores),
    )
    likelihood = Likelihood(prior, process.mean.rows, columns, process.mean.noise)
    assert likelihood(most_likely(likelihood))[0] < likelihood(np.zeros(21))[0]


def test_what_was_asked_is_answered() -> None:
    model, asked = _case()
    said = _posterior(model, asked).mean(asked.present, model.predict(_shown(asked.present)))
    assert np.allclose(said, asked.scores, rtol=0, atol=1e-9)


@pytest.mark.parametrize("n_classes", [1, 3])
def test_predictions_are_the_textbook_posterior(n_classes: int) -> None:
    model, asked = _case(n_classes=n_classes)
    process, every = _posterior(model, asked), _every(6)
    predicted = model.predict(_shown(every))
    mean, covariance = _joint(process, process.mean.subsets(every, predicted))
    said = process.mean.frame.columns(process.mean(every, predicted))
    assert np.allclose(said, mean, atol=1e-8)
    variances = process.variances_of_differences(every[1:], every[0], predicted[[*range(1, 64), 0]])
    apart = covariance.diagonal() + covariance[0, 0] - 2 * covariance[0]
    per_class = process.mean.frame.spread**2 * (process.mean.frame.contrasts**2).sum(axis=1)
    per_class /= process.honesty
    assert np.allclose(variances, apart[1:, None] * per_class, atol=1e-8)


def test_held_out_is_what_a_refit_says() -> None:
    model, asked = _case()
    process = _posterior(model, asked)
    left = process.held_out()
    for row in (0, 1, 7):
        rest = np.delete(np.arange(len(asked.present), dtype=np.int32), row)
        mean, _ = _joint(
            replace(
                process,
                mean=replace(
                    process.mean,
                    present=process.mean.present[rest],
                    level=process.mean.level[rest],
                    answers=process.mean.answers[rest],
                    noise=process.mean.noise[rest],
                ),
            ),
            process.mean.rows.some(np.array([row], np.int32)),
        )
        assert np.allclose(process.mean.frame.columns(left[[row]]), mean, atol=1e-8)


def test_shapley_values_are_those_of_the_posterior() -> None:
    """Without the response kernel, whose orders are drawn, they are exact."""
    model, asked = _case()
    fitted = _posterior(model, asked)
    found = fitted.mean
    plain = replace(found.scales, response=0.0)
    covariance = kernel.covariance(found.rows, found.rows, plain)
    covariance += (
        1.0
        + 0.09 * found.rows.level @ found.rows.level.T
        + np.diag(plain.whites(found.rows.log_ends))
    )
    root = np.asarray(np.linalg.cholesky(covariance), np.float64)
    weights = np.asarray(
        np.linalg.solve(covariance, found.frame.columns(found.answers)), np.float64
    )
    process = replace(fitted, mean=replace(found, scales=plain, weights=weights), root=root)
    values, variances = process.shapley(model, model.shapley())
    every = _every(6)
    mean, joint = _joint(process, process.mean.subsets(every, model.predict(_shown(every))))
    assert np.allclose(values, process.mean.frame.spread * shapley_of_all(every, mean), atol=1e-8)
    shares = shapley_of_all(every, np.eye(64))
    spread = (
        np.einsum("us,st,ut->u", shares, joint, shares)
        * process.mean.frame.spread**2
        / process.honesty
    )
    assert np.allclose(variances[:, 0], spread, rtol=1e-5, atol=1e-9)


def test_the_share_of_the_response_is_close() -> None:
    model, asked = _case()
    process = _posterior(model, asked)
    values, variances = process.shapley(model, model.shapley())
    every = _every(6)
    mean, joint = _joint(process, process.mean.subsets(every, model.predict(_shown(every))))
    exact = process.mean.frame.spread * shapley_of_all(every, mean)
    assert np.allclose(values, exact, atol=0.03 * np.abs(exact).max())
    shares = shapley_of_all(every, np.eye(64))
    spread = (
        np.einsum("us,st,ut->u", shares, joint, shares)
        * process.mean.frame.spread**2
        / process.honesty
    )
    assert np.allclose(variances[:, 0], spread, rtol=0.2)


@pytest.mark.parametrize("n_classes", [1, 2])
def test_shapley_values_share_out_the_difference_of_the_ends(n_classes: int) -> None:
    model, asked = _case(n_classes=n_classes)
    values, _ = _posterior(model, asked).shapley(model, model.shapley())
    assert np.allclose(values.sum(axis=0), asked.scores[1] - asked.scores[0], atol=1e-11)


def test_classes_that_sum_to_0_still_do() -> None:
    model, asked = _case(n_classes=3)
    centred = replace(asked, scores=asked.scores - asked.scores.mean(axis=1, keepdims=True))
    process, every = _posterior(model, centred), _every(6)
    said = process.mean(every, model.predict(_shown(every)))
    assert np.abs(said.sum(axis=1)).max() < 1e-9


def test_answers_that_vary_are_estimates() -> None:
    model, asked = _case()
    noisy = replace(asked, noise=np.full(len(asked.noise), 0.2))
    process = _posterior(model, noisy)
    predicted = model.predict(_shown(asked.present))
    said = process.mean(asked.present, predicted)
    assert np.abs(said - asked.scores).max() > 1e-3
    mean, _ = _joint(process, process.mean.rows)
    assert np.allclose(process.mean.frame.columns(said), mean, atol=1e-8)
    order = [*range(1, len(predicted)), 0]
    errors = process.variances_of_differences(asked.present[1:], asked.present[0], predicted[order])
    assert (errors > 0).all()


def test_permuted_units_permute_the_scores() -> None:
    model, asked = _case()
    at = RNG.permutation(6)
    other = Bent(model.effects[at])
    values, _ = _posterior(model, asked).shapley(model, model.shapley())
    moved = replace(asked, present=asked.present[:, at])
    permuted, _ = _posterior(other, moved).shapley(other, other.shapley())
    assert np.allclose(permuted, values[at], atol=0.05 * np.abs(values).max())


def test_four_rows_and_constant_answers_will_do() -> None:
    model, asked = _case(n_rows=4)
    assert np.isfinite(_posterior(model, asked).shapley(model, model.shapley())[0]).all()
    constant = replace(asked, scores=np.full_like(asked.scores, 2.0))
    process = _posterior(model, constant)
    said = process.mean(_every(6), model.predict(_shown(_every(6))))
    assert np.allclose(said, 2.0)


def test_of_too_many_rows_some_are_used_and_all_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gp, "MAX_ROWS", 40)
    model, asked = _case(n_rows=60)
    process = _posterior(model, asked)
    said = process.mean(asked.present, model.predict(_shown(asked.present)))
    assert np.allclose(said, asked.scores, atol=1e-9)
    assert len(process.used) == 40
    missed = (process.held_out() - asked.scores)[np.delete(np.arange(60), process.used)]
    assert 0 < (missed**2).mean() < asked.scores.var()
    values, _ = process.shapley(model, model.shapley())
    assert np.allclose(values.sum(axis=0), asked.scores[1] - asked.scores[0], atol=1e-11)


def test_more_rows_than_are_searched_are_all_used() -> None:
    model, asked = _case(n_units=10, n_rows=gp.N_SEARCHED + 40)
    process = _posterior(model, asked)
    assert len(process.mean.weights) == gp.N_SEARCHED + 40
    said = process.mean(asked.present, model.predict(_shown(asked.present)))
    assert np.allclose(said, asked.scores, atol=1e-8)


@pytest.mark.parametrize("n_units", [1, 2, 7])
def test_the_white_part_has_known_shapley_values(n_units: int) -> None:
    every = _every(n_units)
    exact = shapley_of_all(every, np.eye(2**n_units)).T
    assert np.allclose(kernel.shapley_of_own(every), exact)
    by_size = RNG.random(n_units + 1)
    variances = (exact**2 * by_size[every.sum(axis=1)][:, None]).sum(axis=0)
    assert kernel.variance_of_own(by_size) == pytest.approx(variances[0])


def test_the_kernel_of_units_together_has_known_shapley_values() -> None:
    rates, every = RNG.uniform(0.01, 0.8, 6), _every(6)
    rows = kernel.together_kernel(_shown(every), _shown(every), rates)
    exact = shapley_of_all(every, rows)
    assert np.allclose(kernel.shapley_of_together(_shown(every), rates), exact.T, atol=1e-8)
    variances = shapley_of_all(every, exact.T).diagonal()
    assert np.allclose(kernel.variances_of_together(rates), variances, atol=1e-8)


def test_features_stand_for_the_response_kernel() -> None:
    rows = Subsets(_shown(RNG.random((80, 12)) < 0.5), RNG.normal(size=(80, 1)))
    root, chosen = kernel.features_of(rows, 40, 1e-8)
    features = np.linalg.solve(root, kernel.response_kernel(chosen, rows))
    assert np.allclose(features.T @ features, kernel.response_kernel(rows, rows), atol=1e-4)


def test_the_diagonal_is_that_of_the_covariance() -> None:
    scales = Scales(RNG.random(5), RNG.random(5), 0.5, 0.1, 0.2, 0.3, 0.1, np.ones(2))
    rows = Subsets(_shown(RNG.random((9, 5)) < 0.5), RNG.normal(size=(9, 2)))
    assert np.allclose(
        kernel.variances(rows, scales), kernel.covariance(rows, rows, scales).diagonal()
    )


def test_the_mean_survives_files() -> None:
    model, asked = _case(n_classes=3)
    mean, every = _posterior(model, asked).mean, _every(6)
    kept = _Kept(np.arange(6, dtype=np.int32), mean)
    again = read_as(_Kept, json.loads(json.dumps(plain(kept)))).mean
    predicted = model.predict(_shown(every))
    assert (again(every, predicted) == mean(every, predicted)).all()


def test_rows_that_are_all_but_equal_have_a_root() -> None:
    """A kernel that tells nothing apart, and hardly any variance of a row's own."""
    shown = np.tile(_shown(_every(5)), (20, 1))
    rows = Subsets(shown, np.zeros((len(shown), 1)))
    scales = Scales(np.full(5, 1e-14), np.full(5, 1e-14), 1e6, 1e-9, 1e6, 1e-9, 1e-12, np.zeros(2))
    padded, root = gp._root(rows, np.zeros(len(shown)), scales)
    assert padded.white > scales.white
    assert np.isfinite(np.tril(root)).all()


def test_what_single_removals_have_in_common_is_theirs_alone() -> None:
    """Scores that rise by 2 when any one unit is gone say nothing of three that are."""
    effects, singles = RNG.normal(size=(12, 1)) / 4, ~np.eye(12, dtype=bool)
    drawn = np.unique(RNG.random((150, 12)) < RNG.random((150, 1)), axis=0)
    present = np.vstack([np.zeros(12, bool), np.ones(12, bool), singles, drawn])
    present = present[np.sort(np.unique(present, axis=0, return_index=True)[1])]
    scores = _shown(present) @ effects + 2.0 * (present.sum(axis=1) == 11)[:, None]
    asked = Asked(present, scores, np.zeros_like(scores), np.zeros(len(scores)))
    mean, every = Process.of(asked, np.zeros(12)).mean, _every(12)
    few_gone = every[every.sum(axis=1) == 9]
    said = mean(few_gone, np.zeros((len(few_gone), 1)))
    assert np.abs(said - _shown(few_gone) @ effects).mean() < 0.1


@pytest.mark.parametrize(("n_classes", "close"), [(1, 1e-4), (3, 1e-4), (40, 0.4)])
def test_errors_of_several_subsets_are_the_textbook_covariance(
    n_classes: int, close: float
) -> None:
    """Of many classes random ones stand for them: no more, whatever the number of classes."""
    model, asked = _case(n_classes=n_classes)
    process, others = _posterior(model, asked), _every(6)
    others = others[process.mean.located(others) < 0]
    predicted, frame = model.predict(_shown(others)), process.mean.frame
    errors, own = process.errors_together(others, predicted), process.own_variances(others)
    assert errors.shape[2] <= 600
    covariance = _joint(process, process.mean.subsets(others, predicted))[1]
    by_class = (frame.contrasts**2).sum(axis=1) * frame.spread**2 / process.honesty
    alone = (errors**2).sum(axis=2) + own
    np.testing.assert_allclose(alone, np.outer(covariance.diagonal(), by_class), rtol=close)
    together = (errors.sum(axis=0) ** 2).sum(axis=1) + own.sum(axis=0)
    np.testing.assert_allclose(together, covariance.sum() * by_class, rtol=close)


@pytest.mark.parametrize("n_classes", [1, 3])
def test_changes_are_those_of_what_is_estimated(n_classes: int) -> None:
    model, asked = _case(n_classes=n_classes)
    mean, every = _posterior(model, asked).mean, _every(6)
    predicted, changes = model.predict(_shown(every)), RNG.normal(size=(2, len(every), n_classes))
    sides = [
        [mean.estimated(mean.subsets(every, predicted + step * change)) for change in changes]
        for step in (1e-5, -1e-5)
    ]
    expected = np.subtract(*sides) / 2e-5
    moved = mean.changes(mean.subsets(every, predicted), changes)
    np.testing.assert_allclose(moved, expected, atol=1e-7)


@pytest.mark.parametrize("n_classes", [1, 3])
def test_errors_know_that_the_parametric_model_could_be_another(n_classes: int) -> None:
    """By as much as the Shapley values of what is estimated change with it."""
    model, asked = _case(n_classes=n_classes)
    process, every = _posterior(model, asked), _every(6)
    others = [Bent(model.effects + 0.2 * RNG.normal(size=model.effects.shape)) for _ in range(4)]
    found = [
        shapley_of_all(every, process.mean.estimated(process.mean.subsets(every, predicted)))
        for predicted in (other.predict(_shown(every)) for other in others)
    ]
    _, certain = process.shapley(model, model.shapley())
    _, unsure = process.shapley(model, model.shapley(), others)
    expected = (jackknife(np.stack(found)) ** 2).sum(axis=0)
    added = unsure - certain
    assert added.sum() == pytest.approx(expected.sum(), rel=0.25)  # by sixteen orders of 720
    assert np.corrcoef(added.ravel(), expected.ravel())[0, 1] > 0.9
    assert np.allclose(process.shapley(model, model.shapley(), [model] * 4)[1], certain)


def test_what_is_missing_has_known_variances() -> None:
    """A game of the number of units alone is shared equally."""
    every = _every(5)
    subsets = Subsets(_shown(every), np.zeros((32, 1)))
    rows = kernel.missing_kernel(subsets, subsets)
    shares = shapley_of_all(every, rows)  # (n_units, rows)
    assert np.allclose(shares, (rows[-1] - rows[0]) / 5)
    assert np.allclose(rows.diagonal(), 1.0)
    assert rows[-1, -2] == pytest.approx(np.exp(-2.0))  # none gone, one gone
