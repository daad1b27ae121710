"""Known answers: an exact SLALOM comes back; leave-one-out equals leaving one out."""

from dataclasses import replace

import numpy as np
import pytest

import slalom
from oracles import observed
from slalom.surrogates.base import Observations
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.closed_form import ClosedForm
from slalom.surrogates.slalom.fit import PlainSlalom, SlalomSurrogate
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.newton import Free, Problem, Ridges
from slalom.surrogates.slalom.optimizers import Adam, _loss_gradient
from slalom.surrogates.slalom.readouts import read_outs


def subsets(n_queries, n_units, rng):
    sizes = rng.integers(1, n_units + 1, size=n_queries)
    ranks = rng.random((n_queries, n_units)).argsort(axis=1).argsort(axis=1)
    masks = (ranks < sizes[:, None]).astype(float)
    return np.vstack([np.ones(n_units), np.zeros(n_units), masks])


def truth(n_units, anchored, rng):
    importances = rng.normal(size=n_units)
    anchor = Anchor(0.5, 1.0) if anchored else None
    return SlalomModel(2 * rng.normal(size=n_units), importances - importances.mean(), anchor)


@pytest.mark.parametrize("surrogate", [SlalomSurrogate(), PlainSlalom()])
def test_an_exact_slalom_comes_back(surrogate):
    rng = np.random.default_rng(0)
    anchored = isinstance(surrogate, SlalomSurrogate)
    model, counts = truth(36, anchored, rng), subsets(498, 36, rng)
    fit = surrogate.fit(observed(counts, model.predict(counts)))
    np.testing.assert_allclose(fit.scores["value"], model.values, atol=1e-8)
    np.testing.assert_allclose(fit.scores["importance"], model.importances, atol=1e-8)
    assert fit.quality.r2 == 1.0
    assert not any(error.any() for error in fit.errors.values())


def test_the_papers_model_comes_close_where_answers_are_nearly_exact():
    rng = np.random.default_rng(0)
    model, counts = truth(36, False, rng), subsets(498, 36, rng)
    scores = model.predict(counts) + 1e-4 * rng.normal(size=500)
    fit = PlainSlalom().fit(observed(counts, scores))
    np.testing.assert_allclose(fit.scores["value"], model.values, atol=1e-2)
    np.testing.assert_allclose(fit.scores["importance"], model.importances, atol=1e-2)


@pytest.mark.parametrize("importance", [-1.0, 0.0, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_exact_models_come_back_whatever_the_anchor(seed, importance):
    rng = np.random.default_rng(seed)
    model = replace(truth(36, True, rng), anchor=Anchor(-0.7, importance))
    counts = subsets(498, 36, rng)
    fit = SlalomSurrogate().fit(observed(counts, model.predict(counts)))
    np.testing.assert_allclose(fit.scores["value"], model.values, atol=1e-2)
    np.testing.assert_allclose(fit.scores["importance"], model.importances, atol=1e-2)


def test_several_classes_share_their_importances():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(12, 3))
    values -= values.mean(axis=1, keepdims=True)
    importances = rng.normal(size=12)
    model = SlalomModel(values, importances - importances.mean(), Anchor((0.2, 0.3, -0.5), 0.7))
    counts = subsets(300, 12, rng)
    fit = SlalomSurrogate().fit(observed(counts, model.predict(counts)))
    np.testing.assert_allclose(fit.scores["value"], model.values, atol=1e-2)
    np.testing.assert_allclose(fit.scores["value"].sum(axis=1), 0, atol=1e-8)
    np.testing.assert_allclose(fit.scores["importance"], model.importances, atol=1e-2)


def two_heads(n_rows, n_features, rng, surrogate=None):
    """Counts and scores that no SLALOM describes exactly, and a fit of such scores."""
    counts = subsets(n_rows, n_features, rng)
    scores = sum(truth(n_features, True, rng).predict(counts) for _ in range(2))

    def fit(scores):
        options = {"weights": np.ones(len(counts)), "document_counts": np.ones(n_features)}
        return (surrogate or SlalomSurrogate()).fit(Observations(counts, scores, **options))

    return scores, fit


def test_two_classes_say_what_one_target_says():
    rng = np.random.default_rng(7)
    scores, fit = two_heads(60, 8, rng, PlainSlalom())
    one, both = fit(scores), fit(np.column_stack([-scores, scores]) / 2)
    assert both.quality.r2 == pytest.approx(one.quality.r2, abs=1e-6)
    for name in ("value", "shapley"):
        np.testing.assert_allclose(both.scores[name][:, 1], one.scores[name] / 2, atol=1e-5)
        np.testing.assert_allclose(both.errors[name][:, 1], one.errors[name] / 2, rtol=1e-4)
    np.testing.assert_allclose(both.errors["importance"], one.errors["importance"], rtol=1e-4)


def test_the_last_digits_of_the_answers_do_not_move_the_scores():
    rng = np.random.default_rng(8)
    scores, fit = two_heads(200, 20, rng)
    quiet = fit(scores).scores
    for _ in range(5):
        noisy = fit(scores + 1e-7 * rng.normal(size=len(scores))).scores
        for name, score in quiet.items():
            np.testing.assert_allclose(noisy[name], score, atol=1e-5, rtol=1e-5)


def test_prices_are_described_like_log_odds():
    rng = np.random.default_rng(9)
    scores, fit = two_heads(200, 20, rng, PlainSlalom())
    plain = fit(scores)
    for unit in (1e-6, 1e5):
        scaled = fit(scores * unit)
        assert scaled.quality.r2 == pytest.approx(plain.quality.r2, abs=1e-6)
        assert scaled.quality.rmse == pytest.approx(plain.quality.rmse * unit, rel=1e-4)
        for name in ("value", "shapley"):
            np.testing.assert_allclose(scaled.scores[name] / unit, plain.scores[name], atol=1e-4)
            np.testing.assert_allclose(scaled.errors[name] / unit, plain.errors[name], rtol=1e-3)
        for found, expected in ((scaled.scores, plain.scores), (scaled.errors, plain.errors)):
            np.testing.assert_allclose(found["importance"], expected["importance"], atol=1e-4)


def test_an_anchor_that_was_never_asked_for_stays_near_the_scores():
    counts = np.array(
        [[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1], [1, 1, 1]]
    )
    scores = np.array([0.06, 0.4, -0.7, 0.5, -0.6, -0.1, -0.2])
    fit = SlalomSurrogate().fit(observed(counts, scores))
    assert np.abs(fit.scores["shapley"]).max() < 2 * np.abs(scores).max()


def test_leave_one_out_r2_holds_on_fresh_queries():
    """Also where SLALOM is wrong: the truth here has two heads."""
    rng = np.random.default_rng(3)
    heads = truth(30, True, rng), truth(30, True, rng)
    counts, fresh = subsets(300, 30, rng), subsets(3000, 30, rng)
    scores, later = (sum(head.predict(rows) for head in heads) for rows in (counts, fresh))
    fit = SlalomSurrogate().fit(observed(counts, scores))
    r2 = 1 - np.mean((fit.model.predict(fresh) - later) ** 2) / later.var()
    assert fit.quality.r2 == pytest.approx(r2, abs=0.05)


def test_intervals_cover_the_truth():
    """Nominal 90 % intervals on noisy SLALOM data, over all units of ten fits."""
    rng = np.random.default_rng(4)
    inside = {"value": [], "importance": [], "removal": [], "shapley": []}
    for _ in range(10):
        model, counts = truth(25, False, rng), subsets(400, 25, rng)
        scores = model.predict(counts) + 0.1 * rng.normal(size=402)
        fit = PlainSlalom().fit(observed(counts, scores))
        true = read_outs(model, np.ones(25))
        for name, hits in inside.items():
            hits += list(np.abs(fit.scores[name] - true[name]) < 1.645 * fit.errors[name])
    for name, hits in inside.items():
        assert 0.84 <= np.mean(hits) <= 0.98, (name, np.mean(hits))


def test_misfit_buys_no_huge_values():
    """On a sentence that is described nearly exactly, parts must not grow to cancel each other."""
    sentence = "A slow start and one awful song, but a wonderful film that I will see again."
    found = slalom.explain(slalom.load(), sentence, n_queries=400, target="positive")
    assert found.quality.r2 > 0.9
    assert np.abs(found.scores["value"]).max() < 15  # −146 once, for a classifier within ±3
    assert np.abs(found.length_curve).max() < 3


def test_permuting_units_permutes_scores():
    rng = np.random.default_rng(5)
    model, counts = truth(10, True, rng), subsets(100, 10, rng)
    scores = model.predict(counts) + 0.1 * rng.normal(size=102)
    order = rng.permutation(10)
    kept = {"weights": np.ones(102), "document_counts": np.ones(10)}
    plain = SlalomSurrogate().fit(Observations(counts, scores, **kept))
    mixed = SlalomSurrogate().fit(Observations(counts[:, order], scores, **kept))
    for name, score in plain.scores.items():
        np.testing.assert_allclose(mixed.scores[name], score[order], atol=1e-6, err_msg=name)


def test_constant_scores_and_too_few_rows_judge_nothing():
    rng = np.random.default_rng(6)
    counts = subsets(50, 8, rng)
    constant = SlalomSurrogate().fit(observed(counts, np.full(52, 3.0)))
    assert constant.quality.r2 is None
    np.testing.assert_allclose(constant.scores["removal"], 0, atol=1e-6)
    few = SlalomSurrogate().fit(observed(counts[:6], rng.normal(size=6)))
    assert few.quality.r2 is None
    assert all(np.isfinite(score).all() for score in few.scores.values())


@pytest.mark.parametrize("anchored", [True, False])
def test_closed_forms_are_exact_on_exact_data(anchored):
    rng = np.random.default_rng(8)
    model, eye = truth(36, anchored, rng), np.eye(36)
    if anchored:
        counts = np.vstack([np.zeros(36), eye, 2 * eye])
    else:
        counts = np.vstack([eye, eye[1:] + eye[0], eye[2:] + eye[1]])
    fit = ClosedForm(anchored).fit(observed(counts, model.predict(counts)))
    assert fit.identified.all()
    np.testing.assert_allclose(fit.scores["value"], model.values, atol=1e-6)
    np.testing.assert_allclose(fit.scores["importance"], model.importances, atol=1e-6)


def test_units_without_an_answer_are_marked_and_left_out():
    """A pair outside the range of its two singletons cannot come from a SLALOM."""
    counts = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [1, 0, 1], [0, 1, 1]])
    scores = np.array([0.0, 1.0, 2.0, 0.5, 7.0, 9.0])
    fit = ClosedForm(anchored=False).fit(observed(counts, scores))
    assert fit.identified.tolist() == [True, True, False]
    assert fit.scores["value"].tolist() == [0.0, 1.0, 0.0]
    assert fit.scores["importance"].tolist() == pytest.approx([0.0, 0.0, 0.0])
    assert "1 of 3" in fit.notes[-1]


def test_a_level_added_to_all_answers_is_added_to_all_values():
    """Values shrink towards the empty text, not towards 0, which means nothing."""
    scores, fit = two_heads(200, 20, np.random.default_rng(10))
    plain, raised = fit(scores), fit(scores + 5.0)
    np.testing.assert_allclose(raised.scores["value"], plain.scores["value"] + 5.0, atol=1e-3)
    for name in ("importance", "removal", "shapley", "alone"):
        np.testing.assert_allclose(raised.scores[name], plain.scores[name], atol=1e-3)


def test_rows_that_weigh_nothing_move_nothing():
    rng = np.random.default_rng(11)
    counts, weights = subsets(398, 24, rng), np.ones(400)
    scores = sum(truth(24, True, rng).predict(counts) for _ in range(2))
    weights[5:25] = 1e-9
    plain = SlalomSurrogate().fit(observed(counts, scores, weights=weights))
    scores[5:25] += rng.normal(size=20)
    odd = SlalomSurrogate().fit(observed(counts, scores, weights=weights))
    np.testing.assert_allclose(odd.scores["value"], plain.scores["value"], atol=0.1)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("level", "effect"), [(0.0, 0.0), (10.0, 0.3)])
def test_what_the_empty_text_would_say_stays_within_what_was_said(level, effect, seed):
    """Sixty words, mostly noise, and no empty text asked: its score is a guess, no bold one."""
    rng = np.random.default_rng(seed)
    masks = rng.random((200, 60)) < rng.uniform(0.7, 1, (200, 1))
    counts = masks.astype(float)
    noise = rng.normal(size=200)
    scores = level + effect * (counts @ rng.normal(size=60)) + noise * (1.0 - effect)
    fit = SlalomSurrogate().fit(observed(counts, scores))
    guess = fit.model.predict(np.zeros((1, 60)))[0]
    assert scores.min() < guess < scores.max()


def test_a_unit_may_be_told_by_a_reference_that_is_told_later():
    """b has no answer beside a, c only beside b: once d has told of b, b tells of c."""
    a, b, c, d = np.eye(4)
    counts = np.array([a, b, c, d, a + b, a + c, a + d, b + c, b + d])
    scores = np.array([0.0, 1.0, 2.0, 3.0, 5.0, -3.0, 1.5, 1.5, 2.0])
    fit = ClosedForm(anchored=False).fit(observed(counts, scores))
    assert fit.identified.all()
    np.testing.assert_allclose(np.diff(fit.scores["importance"]), 0.0, atol=1e-12)


def test_adams_first_step_is_its_learning_rate():
    """Bias-corrected moments make the first step ±η; without, it would be about 3 η."""
    rng = np.random.default_rng(1)
    problem = problem_of(SlalomModel(rng.normal(size=20), rng.normal(size=20), None))
    place = Adam(learning_rate=1e-2, batch_size=10_000, n_steps=1)(problem)[1]
    np.testing.assert_allclose(np.abs(place.values), 1e-2, rtol=1e-2)


def test_adams_slope_is_that_of_the_loss_for_every_class():
    rng = np.random.default_rng(3)
    model = SlalomModel(rng.normal(size=(6, 3)), rng.normal(size=6), None)
    problem, parameters = problem_of(model, 40), rng.normal(size=(6, 4))
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


def problem_of(model, n_rows=300):
    rng = np.random.default_rng(0)
    m = len(model.values)
    counts = (rng.random((n_rows, m)) < rng.random((n_rows, 1))).astype(float)
    counts = counts[counts.any(axis=1)]
    scores = model.predict(counts).reshape(len(counts), -1)
    none = Ridges(np.zeros(m), np.zeros(m), np.zeros(0))
    centre, fixed = np.zeros((m, scores.shape[1])), np.zeros((len(counts), 0))
    weights = np.ones(len(counts))
    return Problem(
        Rows.of(counts), scores, weights, Free(), centre, np.zeros(m), none, fixed, anchored=False
    )


@pytest.mark.parametrize("optimizer", [Adam(), Adam(5.0, n_steps=20_000, moments=False)])
def test_algorithm_1_comes_to_rest_at_an_exact_slalom(optimizer):
    """With Adam's moments, as in the published code, and as it is printed."""
    rng = np.random.default_rng(0)
    importances = rng.normal(size=10)
    model = SlalomModel(2 * rng.normal(size=10), importances - importances.mean(), None)
    counts = rng.multinomial(3, np.full(10, 0.1), size=500).astype(float)
    scores = model.predict(counts)
    scores[0] += 1e-5  # else it is read off
    found = PlainSlalom(optimizer).fit(observed(counts, scores))
    np.testing.assert_allclose(found.scores["value"], model.values, atol=1e-4)
    np.testing.assert_allclose(found.scores["importance"], model.importances, atol=1e-4)
