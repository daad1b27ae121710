"""Known answers: an exact SLALOM comes back; leave-one-out equals leaving one out."""

from dataclasses import replace

import numpy as np
import pytest

import slalom
from oracles import observed
from slalom.surrogates.base import Observations
from slalom.surrogates.linear import LinearSurrogate
from slalom.surrogates.rows import Rows
from slalom.surrogates.slalom.certainty import certainty
from slalom.surrogates.slalom.closed_form import ClosedForm
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.problem import Parts
from slalom.surrogates.slalom.readouts import read_outs
from slalom.surrogates.slalom.solvers import LevenbergMarquardt


def subsets(n_queries, n_units, rng):
    sizes = rng.integers(1, n_units + 1, size=n_queries)
    ranks = rng.random((n_queries, n_units)).argsort(axis=1).argsort(axis=1)
    masks = (ranks < sizes[:, None]).astype(float)
    return np.vstack([np.ones(n_units), np.zeros(n_units), masks])


def truth(n_units, anchored, rng):
    importances = rng.normal(size=n_units)
    anchor = Anchor(0.5, 1.0) if anchored else None
    return SlalomModel(2 * rng.normal(size=n_units), importances - importances.mean(), anchor)


@pytest.mark.parametrize("anchored", [True, False])
def test_an_exact_slalom_comes_back(anchored):
    rng = np.random.default_rng(0)
    model, counts = truth(36, anchored, rng), subsets(498, 36, rng)
    fit = SlalomSurrogate(anchored).fit(observed(counts, model.predict(counts)))
    np.testing.assert_allclose(fit.scores["value"], model.values, atol=1e-2)
    np.testing.assert_allclose(fit.scores["importance"], model.importances, atol=1e-2)
    assert fit.r2 > 0.9999
    if anchored:
        np.testing.assert_allclose(fit.model.direct, 0, atol=1e-3)
        np.testing.assert_allclose(fit.model.length.heights, 0, atol=1e-3)


@pytest.mark.parametrize("importance", [-1.0, 0.0, 1.0, 3.0])
@pytest.mark.parametrize("seed", range(4))
def test_exact_models_come_back_whatever_the_anchor(seed, importance):
    """Quiet and loud anchors, quiet words included: the ridges must fall to nothing."""
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


def two_heads(n_rows, n_features, rng):
    """Counts and scores that no SLALOM describes exactly, and a fit of such scores."""
    counts = subsets(n_rows, n_features, rng)
    scores = sum(truth(n_features, True, rng).predict(counts) for _ in range(2))

    def fit(scores):
        options = {"weights": np.ones(len(counts)), "document_counts": np.ones(n_features)}
        return SlalomSurrogate().fit(Observations(counts, scores, **options))

    return scores, fit


def test_two_classes_say_what_one_target_says():
    rng = np.random.default_rng(7)
    scores, fit = two_heads(60, 8, rng)
    one, both = fit(scores), fit(np.column_stack([-scores, scores]) / 2)
    assert both.r2 == pytest.approx(one.r2, abs=1e-6)
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
    scores, fit = two_heads(200, 20, rng)
    plain = fit(scores)
    for unit in (1e-6, 1e5):
        scaled = fit(scores * unit)
        assert scaled.r2 == pytest.approx(plain.r2, abs=1e-6)
        assert scaled.rmse == pytest.approx(plain.rmse * unit, rel=1e-4)
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


def test_sequences_beside_the_document_are_not_parts_of_it():
    """Twice the same word is more than the document has, and does not make up for a part."""
    counts = np.array(
        [[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [0, 2, 0], [0, 0, 2], [1, 1, 0]]
    )
    scores = np.arange(7.0)
    at, weights = np.ones(3), np.ones(7)
    assert (
        not SlalomSurrogate()
        .problem(Observations(counts, scores, weights=weights, document_counts=at))
        .complete
    )
    many = np.eye(1100)  # 2 ** 1100 is more than a float holds
    problem = SlalomSurrogate().problem(observed(many, np.ones(1100)))
    assert not problem.complete


@pytest.mark.parametrize("parts", [True, False])
@pytest.mark.parametrize("n_classes", [1, 3])
def test_leave_one_out_is_what_leaving_one_out_gives(n_classes, parts):
    rng = np.random.default_rng(2)
    model = truth(8, True, rng)
    counts = subsets(118, 8, rng)
    scores = model.predict(counts)[:, None] + 0.3 * rng.normal(size=(120, n_classes))
    solver = LevenbergMarquardt(ridges=(0.1, 0.1))
    surrogate = SlalomSurrogate(parts=parts, solver=solver)
    problem = surrogate.problem(observed(counts, scores))
    quick = certainty(problem, solver.solve(problem), np.eye(n_classes)).residuals
    slow = np.zeros_like(quick)
    refitted = np.arange(0, 120, 3)
    for row in refitted:
        state = solver.solve(without(problem, row)).state
        mass = problem.counts.dense()[row] * np.exp(state.importances)
        said = mass @ state.values / mass.sum() + problem.fixed[row] @ state.effects
        slow[row] = scores[row] - said
    inner = refitted[problem.judged[refitted]]
    assert np.corrcoef(quick[inner].ravel(), slow[inner].ravel())[0, 1] > 0.99
    assert np.mean(quick[inner] ** 2) == pytest.approx(np.mean(slow[inner] ** 2), rel=0.05)


def without(problem, row):
    kept = np.arange(len(problem.scores)) != row
    parts = problem.parts
    return replace(
        problem,
        counts=Rows.of(problem.counts.dense()[kept]),
        scores=problem.scores[kept],
        weights=problem.weights[kept],
        parts=parts and Parts(parts.direct[kept], parts.length[kept]),
        judged=problem.judged[kept],
    )


def test_leave_one_out_r2_holds_on_fresh_queries():
    """Also where SLALOM is wrong: the truth here has two heads."""
    rng = np.random.default_rng(3)
    heads = truth(30, True, rng), truth(30, True, rng)
    counts, fresh = subsets(300, 30, rng), subsets(3000, 30, rng)
    scores, later = (sum(head.predict(rows) for head in heads) for rows in (counts, fresh))
    fit = SlalomSurrogate().fit(observed(counts, scores))
    r2 = 1 - np.mean((fit.model.predict(fresh) - later) ** 2) / later.var()
    assert fit.r2 == pytest.approx(r2, abs=0.05)


def test_intervals_cover_the_truth():
    """Nominal 90 % intervals on noisy SLALOM data, over all units of ten fits."""
    rng = np.random.default_rng(4)
    inside = {"alone": [], "removal": [], "shapley": []}
    for _ in range(10):
        model, counts = truth(25, True, rng), subsets(400, 25, rng)
        scores = model.predict(counts) + 0.1 * rng.normal(size=402)
        fit = SlalomSurrogate().fit(observed(counts, scores))
        true = read_outs(model, np.ones(25))
        for name, hits in inside.items():
            hits += list(np.abs(fit.scores[name] - true[name]) < 1.645 * fit.errors[name])
    for name, hits in inside.items():
        assert np.mean(hits) >= 0.84, (name, np.mean(hits))


@pytest.mark.parametrize("at", [[2], [1, 1], [2, 1], [1, 2, 1], [3, 1, 1]])
def test_short_texts_whose_words_add_up_are_described(at):
    at = np.array(at, dtype=float)
    counts = np.array(list(np.ndindex(*(at + 1).astype(int))), dtype=float)
    effects = np.arange(len(at), 0.0, -1.0)
    found = SlalomSurrogate().fit(
        Observations(counts, counts @ effects, weights=np.ones(len(counts)), document_counts=at)
    )
    np.testing.assert_allclose(found.scores["shapley"], effects, atol=0.05)
    np.testing.assert_allclose(found.model.predict(counts), counts @ effects, atol=0.2)


def test_what_nearly_adds_up_is_described_about_as_well_as_by_a_line():
    rng = np.random.default_rng(0)
    effects, strengths = 0.3 * rng.normal(size=80), 0.4 * rng.normal(size=40)
    pairs = rng.integers(0, 80, (40, 2))

    def scored(counts):
        together = counts[:, pairs[:, 0]] * counts[:, pairs[:, 1]]
        return counts @ (effects - effects.mean()) + together @ strengths

    def drawn(n_rows):
        sizes = np.exp(rng.uniform(0, np.log(81), n_rows)).astype(int)
        return (rng.random((n_rows, 80)).argsort(axis=1) < sizes[:, None]).astype(float)

    counts, fresh = np.vstack([np.zeros((1, 80)), drawn(499)]), drawn(1000)
    settings = {"weights": np.ones(500), "document_counts": np.ones(80)}
    found = SlalomSurrogate().fit(Observations(counts, scored(counts), **settings))
    line = LinearSurrogate().fit(Observations(counts, scored(counts), **settings))
    missed = [np.mean((f.model.predict(fresh) - scored(fresh)) ** 2) for f in (found, line)]
    assert missed[0] < 1.2 * missed[1]


def test_an_exact_line_comes_back_as_direct_effects_and_a_straight_length_curve():
    rng = np.random.default_rng(0)
    effects, counts = rng.normal(size=36) + 0.3, subsets(498, 36, rng)
    fit = SlalomSurrogate().fit(observed(counts, 0.3 + counts @ effects))
    np.testing.assert_allclose(fit.model.direct, effects - effects.mean(), atol=1e-2)
    sizes = np.arange(37.0)
    np.testing.assert_allclose(fit.model.length(sizes), effects.mean() * sizes, atol=2e-2)
    for name in ("alone", "removal", "shapley"):
        np.testing.assert_allclose(fit.scores[name], effects, atol=1e-2)
    assert fit.r2 > 0.9999


def test_an_exact_count_of_words_comes_back_as_a_length_curve():
    counts = subsets(498, 36, np.random.default_rng(0))
    fit = SlalomSurrogate().fit(observed(counts, 0.2 * counts.sum(axis=1) - 1))
    np.testing.assert_allclose(fit.model.direct, 0, atol=1e-3)
    np.testing.assert_allclose(fit.model.length(np.arange(37.0)), 0.2 * np.arange(37), atol=1e-2)
    for name in ("alone", "removal", "shapley"):
        np.testing.assert_allclose(fit.scores[name], 0.2, atol=1e-2)


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
    assert constant.r2 is None
    np.testing.assert_allclose(constant.scores["removal"], 0, atol=1e-6)
    few = SlalomSurrogate().fit(observed(counts[:6], rng.normal(size=6)))
    assert few.r2 is None
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
    model, counts = truth(24, True, rng), subsets(398, 24, rng)
    scores, weights = model.predict(counts), np.ones(400)
    scores[5:25] += 10 * rng.normal(size=20)
    weights[5:25] = 1e-9
    fit = SlalomSurrogate().fit(observed(counts, scores, weights=weights))
    np.testing.assert_allclose(fit.scores["value"], model.values, atol=2e-2)
    assert fit.r2 > 0.999


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
