"""Metrics on classifiers whose answers are known."""

from dataclasses import replace

import numpy as np
import pytest

import slalom
from oracles import TEXT, WORDS, linear_oracle, slalom_oracle
from slalom.classifiers.cached import CachedClassifier
from slalom.metrics import faithfulness
from slalom.metrics.subject import subject_of, unit_scores
from slalom.metrics.table import METRICS
from slalom.surrogates.slalom.orders import insertion_order, removal_order


@pytest.fixture(scope="module")
def linear():
    oracle, _ = linear_oracle()
    found = slalom.explain(oracle.classifier, TEXT, method="linear", target="pos", n_queries=300)
    return oracle.classifier, found


def test_a_perfect_model_makes_no_error(linear):
    assert faithfulness.subset_error(subject_of(*linear)) < 1e-6
    assert faithfulness.subset_error(subject_of(*linear), log_uniform=True) < 1e-6
    errors = faithfulness.removal_error(subject_of(*linear))
    assert errors.relative < 1e-6
    assert list(errors.n_removed) == list(range(1, 11))
    assert faithfulness.removal_spearman(subject_of(*linear)) > 0.999  # equal words tie


def test_saying_nothing_has_error_one():
    oracle, _ = linear_oracle()
    nothing = slalom.explain(oracle.classifier, TEXT, method="constant", target="pos")
    assert faithfulness.removal_error(
        subject_of(oracle.classifier, nothing)
    ).relative == pytest.approx(1.0)
    level = replace(nothing.model, intercept=np.asarray(0.0))
    masks = np.random.default_rng(0).random((5, len(WORDS))) < 0.5
    assert level.predict(masks) == pytest.approx(np.zeros(5))


def test_infidelity_is_of_the_scores_whatever_their_scale(linear):
    classifier, found = linear
    assert faithfulness.infidelity(subject_of(*linear)) < 1e-6
    scaled = replace(found, scores={"score": 7.0 * found.scores["score"]}, model=None)
    assert faithfulness.infidelity(subject_of(classifier, scaled)) < 1e-6
    turned = replace(found, scores={"score": -found.scores["score"]}, model=None)
    assert faithfulness.infidelity(subject_of(classifier, turned)) == 1.0
    local = slalom.explain(classifier, TEXT, method="slalom-local", target="pos", n_queries=300)
    assert local.primary_score == "removal"
    shown = faithfulness.infidelity(subject_of(classifier, local), score="removal")
    assert faithfulness.infidelity(subject_of(classifier, local)) == shown
    lost = slalom.explain(classifier, TEXT, method="random", target="pos")
    assert 0.5 < faithfulness.infidelity(subject_of(classifier, lost)) <= 1.0


def test_deletion_follows_the_bag_of_words(linear):
    classifier, found = linear
    subject = subject_of(classifier, found)
    curve = faithfulness.deletion(subject)
    order = np.argsort(-found.scores["score"], kind="stable")
    left = found.scores["score"].sum() + 0.3 - np.cumsum(found.scores["score"][order])
    np.testing.assert_allclose(curve.probabilities, 1 / (1 + np.exp(-left)), atol=1e-5)
    np.testing.assert_allclose(curve.shares, np.arange(1, 37) / 36)
    assert curve.aopc == pytest.approx(1 - curve.probabilities.mean())
    assert subject.n_queries == 1 + len(set(curve.shares))  # the whole text is the start


def test_insertion_is_deletion_backwards(linear):
    classifier, found = linear
    up = faithfulness.insertion(subject_of(classifier, found))
    assert up.probabilities[-1] == pytest.approx(
        1 / (1 + np.exp(-found.predict(np.ones((1, 36)))[0])), abs=1e-6
    )
    assert up.aopc < faithfulness.deletion(subject_of(classifier, found)).aopc


def test_good_orders_beat_random_ones():
    classifier = slalom_oracle().classifier
    found = slalom.explain(classifier, TEXT, target="pos", n_queries=400)
    lost = slalom.explain(classifier, TEXT, method="random", target="pos")
    for name in ("deletion", "insertion", "comprehensiveness", "sufficiency"):
        metric = METRICS[name]
        sign = 1 if metric.better == "higher" else -1
        assert sign * metric.measure(classifier, found) > sign * metric.measure(classifier, lost)
    best = faithfulness.deletion(subject_of(classifier, found)).aopc
    for score in ("value", "linearised", "gradient", "shapley"):
        assert best >= faithfulness.deletion(subject_of(classifier, found), score=score).aopc - 1e-3


def test_steps_are_as_even_as_they_can_be():
    for most in range(1, 400):
        sizes = faithfulness._sizes(most, 100)
        assert (len(sizes), sizes[-1]) == (min(most, 100), most)
        assert set(np.diff(sizes, prepend=0)) <= {most // len(sizes), -(-most // len(sizes))}


def test_steps_of_a_long_text(linear):
    curve = faithfulness.deletion(subject_of(*linear), n_steps=5)
    np.testing.assert_allclose(curve.shares * 36, [8, 15, 22, 29, 36])


def test_metrics_share_what_was_asked(linear):
    asked = CachedClassifier(linear[0])
    first = subject_of(asked, linear[1])
    error = faithfulness.subset_error(first)
    assert 150 < first.n_queries <= 200
    again = subject_of(asked, linear[1])
    assert faithfulness.subset_error(again) == error
    assert again.n_queries == 0


def test_scores_without_a_model_predict_nothing(linear):
    lost = slalom.explain(linear[0], TEXT, method="random", target="pos")
    with pytest.raises(slalom.SlalomError, match="has no model"):
        faithfulness.subset_error(subject_of(linear[0], lost))
    assert abs(faithfulness.removal_spearman(subject_of(linear[0], lost))) < 0.5


def test_all_classes_have_errors_but_no_order():
    classifier = slalom_oracle().classifier
    found = slalom.explain(classifier, TEXT, target="all", n_queries=400)
    assert faithfulness.subset_error(subject_of(classifier, found)) < 0.05
    with pytest.raises(slalom.SlalomError, match="one"):
        faithfulness.deletion(subject_of(classifier, found))


@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")
@pytest.mark.parametrize("text", ["good", "good good", "👍🏽 great"])
@pytest.mark.parametrize("method", ["slalom", "lime", "leave-one-out"])
def test_short_texts_have_a_number_or_none(text, method):
    classifier = slalom.load()
    found = slalom.explain(classifier, text, method=method, n_queries=50)
    for metric in METRICS.values():
        value = metric.measure(classifier, found)
        assert isinstance(value, float)


def test_tokens_words_and_truncated_texts_are_cut_again_alike():
    classifier = slalom.load()
    text = "A great, great film \u2014 not awful."
    for units in ("token", "word", "sentence", [(2, 7), (9, 14)]):
        found = slalom.explain(classifier, text, method="leave-one-out", units=units)
        assert subject_of(classifier, found).document.units == found.units
    for too_long in ("truncate", "windows"):
        long = slalom.explain(classifier, "good " * 600, method="constant", too_long=too_long)
        assert subject_of(classifier, long).document.units == long.units


def test_another_classifier_is_refused(linear):
    other = slalom.FunctionClassifier(
        lambda texts: np.full((len(texts), 2), 0.5), labels=["a", "b"]
    )
    with pytest.raises(slalom.SlalomError, match="that was explained"):
        subject_of(other, linear[1])


def test_unknown_scores_list_the_known_ones(linear):
    with pytest.raises(slalom.SlalomError, match="expected score"):
        unit_scores(linear[1], "value")


def test_predicting_the_mean_has_subset_error_one():
    """Of a constant c the error is 1 + (c − mean)² / variance: 1 at best, whatever the level."""
    oracle, _ = linear_oracle()
    nothing = slalom.explain(oracle.classifier, TEXT, method="constant", target="pos")
    for log_uniform in (False, True):
        below, level, above = (
            faithfulness.subset_error(
                subject_of(
                    oracle.classifier,
                    replace(nothing, model=replace(nothing.model, intercept=np.asarray(c))),
                ),
                log_uniform=log_uniform,
            )
            for c in (-1.0, 0.0, 1.0)
        )
        bend, slope = (above + below) / 2 - level, (above - below) / 2
        assert level - slope**2 / (4 * bend) == pytest.approx(1.0)


def test_sizes_are_uniform_or_log_uniform():
    oracle, _ = linear_oracle()
    found = slalom.explain(oracle.classifier, TEXT, method="constant", target="pos")
    means = []
    for log_uniform in (False, True):
        before = len(oracle.asked)
        faithfulness.subset_error(
            subject_of(oracle.classifier, found), log_uniform=log_uniform, n_subsets=1000
        )
        means.append(np.mean([len(text.split()) for text in oracle.asked[before:]]))
    assert means[0] == pytest.approx(18.5, abs=1.5)
    assert means[1] == pytest.approx(36 / np.log(37), abs=2.0)


@pytest.mark.parametrize(("name", "log_uniform"), [("UNI", False), ("WIDE", True)])
def test_one_error_is_of_uniform_sizes_and_the_other_of_log_uniform_ones(name, log_uniform):
    classifier = slalom_oracle().classifier
    found = slalom.explain(classifier, TEXT, method="lime", target="pos", n_queries=200)
    own, other = (
        faithfulness.subset_error(subject_of(classifier, found), log_uniform=sizes)
        for sizes in (log_uniform, not log_uniform)
    )
    assert METRICS[name].measure(classifier, found) == pytest.approx(own)
    assert abs(own - other) > 0.01


@pytest.mark.parametrize("name", ["UNI", "WIDE", "REM", "infidelity"])
def test_another_seed_asks_other_subsets(name):
    classifier = slalom_oracle().classifier
    found = slalom.explain(classifier, TEXT, method="lime", target="pos", n_queries=200)
    first, other = (METRICS[name].measure(classifier, found, seed=seed) for seed in (0, 1))
    assert first == METRICS[name].measure(classifier, found, seed=0)
    assert abs(first - other) > 1e-6


def test_words_come_in_the_best_order_for_coming_and_go_in_the_best_for_going():
    oracle = slalom_oracle()
    found = slalom.explain(oracle.classifier, TEXT, target="pos", n_queries=400)
    model = getattr(found.model, "fitted", found.model)
    orders = insertion_order(model), removal_order(model)
    assert list(orders[0]) != list(orders[1])
    before = len(oracle.asked)
    faithfulness.insertion(subject_of(oracle.classifier, found))
    first = {text for text in oracle.asked[before:] if 0 < len(text.split()) <= 3}
    shown = {" ".join(WORDS[unit] for unit in sorted(orders[0][:size])) for size in (1, 2, 3)}
    assert first == shown
    before = len(oracle.asked)
    faithfulness.deletion(subject_of(oracle.classifier, found))
    left = {text for text in oracle.asked[before:] if 33 <= len(text.split()) < 36}
    kept = {" ".join(WORDS[unit] for unit in sorted(orders[1][size:])) for size in (1, 2, 3)}
    assert left == kept


def test_the_order_of_deletion_is_the_best_by_all_that_is_predicted():
    """A pair that counts only together: the SLALOM in it knows nothing of it, predictions do."""
    words = [f"w{word}" for word in range(14)]
    worth = dict(zip(words, np.linspace(0.1, 0.9, 14), strict=True))

    def pair(texts):
        shown = [set(text.split()) for text in texts]
        said = [sum(map(worth.get, s)) + 3 * ({"w0", "w1"} <= s) - 5 for s in shown]
        return np.array([[0.0, score] for score in said])

    classifier = slalom.FunctionClassifier(pair, labels=["no", "yes"], gives="logits")
    found = slalom.explain(classifier, " ".join(words), target="yes", n_queries=600)
    subject = subject_of(classifier, found)
    best = faithfulness.deletion(subject).aopc
    by_score = [faithfulness.deletion(subject, score=name).aopc for name in faithfulness.RANKED]
    assert best >= max(by_score) - 1e-9


def test_the_datamodel_score_of_a_perfect_model_is_one(linear):
    classifier, found = linear
    assert faithfulness.datamodel_score(subject_of(classifier, found)) > 0.999
    model = replace(found.model, coefficients=-found.model.coefficients)
    turned = subject_of(classifier, replace(found, model=model))
    assert faithfulness.datamodel_score(turned) < -0.999


def test_the_drop_is_what_the_top_units_bring(linear):
    strongest = np.sort(linear[1].scores["score"])[::-1]
    for k in (1, 3):
        drop = faithfulness.top_drop(subject_of(*linear), k=k)
        assert drop == pytest.approx(strongest[:k].sum(), abs=1e-4)
