"""A SLALOM with the process around it: what is told of one text."""

import itertools

import numpy as np
import pytest

import slalom
from slalom.document import BoolArray, FloatArray
from slalom.surrogates.base import Observations
from slalom.surrogates.gp import Process
from slalom.surrogates.shapley_estimates import shapley_of_all
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.model import SlalomModel
from slalom.surrogates.slalom.process import AllAsked, fit_process, held_out_of

WORDS = [f"w{number}" for number in range(30)]


def of_words(score):
    """A classifier of "no" and "yes" by a function of which words are shown."""

    def logits(texts):
        return np.array([[0.0, score({int(w[1:]) for w in t.split()})] for t in texts])

    return slalom.FunctionClassifier(logits, labels=["no", "yes"], gives="logits")


def subsets(n: int) -> BoolArray:
    return np.array(list(itertools.product([False, True], repeat=n)))


def bent(words: set[int]) -> float:
    """Adds up, saturates, and two words act together."""
    total = sum(np.sin(1.7 * word + 0.3) for word in words)
    return float(2.0 * np.tanh(total / 2) + 1.5 * ({1, 4} <= words) + 0.1 * len(words) ** 0.5)


def scores_at(masks: BoolArray) -> FloatArray:
    return np.array([bent(set(np.flatnonzero(mask).tolist())) for mask in masks])


def test_where_all_subsets_were_asked_predict_answers():
    """Parity has no fit at all; what was asked is known nevertheless."""
    parity = of_words(lambda words: 2.0 * (len(words) % 2))
    found = slalom.explain(parity, " ".join(WORDS[:5]), target="yes")
    masks = subsets(5)
    assert found.quality.trust == "exact"
    assert np.allclose(found.predict(masks), 2.0 * (masks.sum(axis=1) % 2), rtol=0, atol=1e-12)
    assert not any(found.errors[name].any() for name in ("removal", "alone", "shapley"))


@pytest.mark.parametrize("method", ["slalom", "slalom-local", "slalom-fast"])
@pytest.mark.parametrize("target", ["yes", "all"])
def test_shapley_values_add_up(method, target):
    found = slalom.explain(of_words(bent), " ".join(WORDS[:20]), method, target=target)
    ends = found.predict(np.stack([np.zeros(20), np.ones(20)]))
    assert np.allclose(found.scores["shapley"].sum(axis=0), ends[1] - ends[0], atol=1e-11)


def test_what_was_asked_is_answered_and_removals_are_exact():
    found = slalom.explain(of_words(bent), " ".join(WORDS[:20]), target="yes", n_queries=200)
    masks = np.vstack([np.ones((1, 20)), 1 - np.eye(20), np.eye(20), np.zeros((1, 20))]) > 0
    answers, said = scores_at(masks), found.predict(masks)
    known = np.concatenate([[True], found.measured["removal"], found.measured["alone"], [True]])
    assert known.sum() > 30
    assert np.allclose(said[known], answers[known], rtol=0, atol=1e-12)
    assert np.allclose(found.scores["removal"], said[0] - said[1:21], atol=1e-12)
    assert not found.errors["removal"][found.measured["removal"]].any()


def test_words_that_act_together_are_learnt():
    """The SLALOM alone cannot know them; held-out R² sees it, and fresh subsets agree."""
    found = slalom.explain(of_words(bent), " ".join(WORDS[:12]), target="yes", n_queries=400)
    rng = np.random.default_rng(1)
    masks = rng.random((400, 12)) < rng.random((400, 1))
    truth = scores_at(masks)
    missed = ((found.predict(masks) - truth) ** 2).mean() / truth.var()
    by_slalom = ((found.model.fitted.predict(masks * 1.0) - truth) ** 2).mean() / truth.var()
    assert missed < 0.5 * by_slalom
    assert abs(found.quality.r2 - (1 - missed)) < 0.05


def test_errors_hold_the_truth():
    """Of removals that were not measured and of Shapley values, nine in ten."""
    n_held = n_all = 0
    for seed in range(12):
        found = slalom.explain(
            of_words(bent), " ".join(WORDS[:10]), target="yes", n_queries=90, seed=seed
        )
        masks = subsets(10)
        truth = shapley_of_all(masks, scores_at(masks))
        held = np.abs(found.scores["shapley"] - truth) <= 1.645 * found.errors["shapley"]
        n_held, n_all = n_held + held.sum(), n_all + len(held)
    assert n_held / n_all > 0.75


def test_few_answers_still_make_a_model():
    found = slalom.explain(of_words(bent), " ".join(WORDS[:12]), target="yes", n_queries=16)
    assert np.isfinite(found.scores["shapley"]).all()
    assert found.quality.trust == "low"


def test_equal_words_belong_to_their_places():
    text = "w1 w2 w1 w3 w5 w6"
    by_place = of_words(lambda words: float(len(words)))  # sets: a word twice counts once
    found = slalom.explain(by_place, text, target="yes", n_queries=40)
    assert found.features[0] == found.features[2]
    assert found.scores["removal"][0] == pytest.approx(0.0, abs=1e-9)
    assert found.scores["removal"][1] == pytest.approx(1.0, abs=1e-9)


def test_no_subsets_have_no_predictions():
    found = slalom.explain(of_words(bent), " ".join(WORDS[:12]), target="yes", n_queries=60)
    assert found.predict(np.zeros((0, 12))).shape == (0,)


@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")
def test_few_rows_are_judged_without_having_been_seen():
    """Noise that is the same when asked again is described by nothing, however freely it fits."""
    rng, words = np.random.default_rng(0), " ".join(WORDS)
    answers: dict[frozenset[int], float] = {}
    noise = of_words(lambda shown: answers.setdefault(frozenset(shown), rng.normal()))
    for seed in range(4):
        found = slalom.explain(noise, words, target="yes", n_queries=100, seed=seed)
        assert found.quality.r2 is None or found.quality.r2 < 0.1


def test_what_says_of_few_rows_was_searched_without_them():
    rng = np.random.default_rng(0)
    masks = rng.random((80, 12)) < 0.5
    masks = np.unique(masks[(masks.sum(axis=1) > 1) & (masks.sum(axis=1) < 12)], axis=0)
    rows, ones = np.arange(len(masks), dtype=np.int32), np.ones(len(masks))
    observed = Observations(masks * 1.0, scores_at(masks), ones, np.ones(12))
    fit = SlalomSurrogate().fit(observed)
    assert isinstance(fit.model, SlalomModel)
    assert fit.folds is not None
    assert fit.held_out is not None
    for fold, model in enumerate(fit.without):
        at = fit.folds == fold
        np.testing.assert_allclose(model.predict(masks[at] * 1.0), fit.held_out[at], atol=1e-6)
    given = AllAsked(fit, np.arange(12), masks, scores_at(masks), rows, ones, exact=False)
    asked = given.asked(fit.model)
    process = Process.of(asked, np.ones(12))
    held_out, ratio = held_out_of(given, asked, process)
    missed, by_one = (
        ((each - asked.scores) ** 2).mean() for each in (held_out, process.held_out())
    )
    assert by_one < missed < 2.0 * by_one + 0.1
    assert ratio == max(1.0, ((held_out - asked.scores) ** 2).sum() / process.left_one_out.sum())


@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")
def test_few_answers_that_differ_are_seldom_trusted_wrongly():
    """Any of three words will do: few of 60 subsets miss all of them."""
    any_of_three = of_words(lambda words: 3.0 * bool({2, 9, 15} & words))
    n, rng = 22, np.random.default_rng(5)
    log_uniform, uniform = np.exp(rng.uniform(0, np.log(n + 1), 1000)), rng.uniform(1, n + 1, 1000)
    sizes = np.append(log_uniform, uniform).astype(int)  # as the design draws them
    masks = rng.random((2000, n)).argsort(axis=1) < sizes[:, None]
    texts = [" ".join(np.array(WORDS[:n])[mask]) for mask in masks]
    truth = any_of_three(texts) @ [-1.0, 1.0]
    wrong, gaps = 0, []
    for seed in range(24):
        e = slalom.explain(any_of_three, " ".join(WORDS[:n]), target="yes", n_queries=60, seed=seed)
        fresh = 1.0 - ((e.predict(masks * 1.0) - truth) ** 2).mean() / truth.var()
        wrong += e.quality.trust == "high" and fresh < 0.8
        gaps.append((e.quality.r2 or 0.0) - fresh)
    assert wrong <= 2  # where no query tells the third word from the others
    assert np.mean(gaps) <= 0.0


def test_either_of_two_is_learnt_from_few_answers():
    """One of them is as loud as both: only importances that differ a lot say so."""
    rng = np.random.default_rng(0)
    masks = np.unique(rng.random((17, 12)) < 0.5, axis=0)
    either = of_words(lambda words: 20.0 * bool({2, 9} & words) + 0.2 * bent(words))
    fresh = rng.random((200, 12)) < 0.5
    texts = [[" ".join(np.array(WORDS[:12])[mask]) for mask in each] for each in (masks, fresh)]
    scores, truth = (either(each)[:, 1] - either(each)[:, 0] for each in texts)
    rows, ones = np.arange(len(masks), dtype=np.int32), np.ones(len(masks))
    fit = SlalomSurrogate(length=None).fit(Observations(masks * 1.0, scores, ones, np.ones(12)))
    told = fit_process(AllAsked(fit, np.arange(12), masks, scores, rows, ones, exact=False))
    missed = ((told.model.predict(fresh * 1.0) - truth) ** 2).mean()
    assert missed < 0.1 * truth.var()
