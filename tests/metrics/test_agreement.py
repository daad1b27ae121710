"""Agreement measures against scikit-learn, scipy and counting by hand."""

import numpy as np
import pytest
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score

import slalom
from oracles import TEXT, linear_oracle, slalom_oracle
from slalom.metrics import agreement
from slalom.metrics.subject import subject_of


@pytest.fixture
def ranked():
    rng = np.random.default_rng(0)
    return rng.integers(0, 8, size=50).astype(float), rng.random(50) < 0.3


def test_areas_equal_scikit_learn_ties_included(ranked):
    scores, marks = ranked
    assert agreement.auroc(scores, marks) == pytest.approx(roc_auc_score(marks, scores))
    assert agreement.auprc(scores, marks) == pytest.approx(average_precision_score(marks, scores))


def test_token_f1_takes_as_many_as_were_marked():
    marks = np.array([True, False, True, False])
    assert agreement.token_f1(np.array([4.0, 3.0, 2.0, 1.0]), marks) == 0.5
    assert agreement.token_f1(marks.astype(float), marks) == 1.0
    for shifted in (marks, marks[::-1]):  # ties: wherever they stand
        assert agreement.token_f1(np.zeros(len(marks)), shifted) == pytest.approx(marks.mean())
    level = np.array([3.0, 2.0, 2.0, 1.0])  # one place is left for two
    assert agreement.token_f1(level, np.array([True, True, False, False])) == 0.75


def test_nothing_marked_has_no_number():
    none = np.zeros(3, dtype=bool)
    for measure in (agreement.auroc, agreement.auprc, agreement.token_f1):
        assert np.isnan(measure(np.arange(3.0), none))
    assert np.isnan(agreement.auroc(np.arange(3.0), ~none))


def test_spearman_equals_scipy(ranked):
    scores, _ = ranked
    other = np.random.default_rng(1).integers(0, 5, size=50).astype(float)
    assert agreement.spearman(scores, other) == pytest.approx(spearmanr(scores, other)[0])
    assert np.isnan(agreement.spearman(scores, np.ones(50)))


def test_words_are_mapped_to_tokens():
    classifier = slalom.load()
    found = slalom.explain(classifier, "An unforgettable film", method="constant", units="token")
    marks = agreement.rationale_marks(found, [(3, 16)])
    inside = [span[0] >= 3 and span[1] <= 16 for span in found.spans]
    assert list(marks) == inside
    assert marks.any()
    with pytest.raises(slalom.SlalomError, match="form"):
        agreement.rationale_marks(found, [(0, 3, 16)])


def test_naive_bayes_counts_words():
    classifier = linear_oracle()[0].classifier
    texts, labels = ["film scenes", "film film joke"], [1, 0]
    table = agreement.naive_bayes(classifier, texts, labels, target=1, smoothing=1.0)
    assert table["film"] == pytest.approx(np.log((2 / 5) / (3 / 6)))
    assert table["scenes"] == pytest.approx(np.log((2 / 5) / (1 / 6)))
    with pytest.raises(slalom.SlalomError, match="one label per text"):
        agreement.naive_bayes(classifier, texts, [1], target=1)


def test_agreement_with_what_a_bag_of_words_says():
    oracle, _ = linear_oracle()
    found = slalom.explain(oracle.classifier, TEXT, method="leave-one-out", target="pos")
    table = dict(zip(found.units, found.scores["score"], strict=True))
    score = agreement.naive_bayes_spearman(subject_of(oracle.classifier, found), table)
    assert score == pytest.approx(1.0)


def test_stability_of_the_sure_and_the_random():
    classifier = linear_oracle()[0].classifier

    def runs(method):
        return [
            slalom.explain(classifier, TEXT, method=method, target="pos", seed=seed)
            for seed in range(4)
        ]

    assert agreement.stability(runs("leave-one-out")) == pytest.approx(1.0)
    assert abs(agreement.stability(runs("random"))) < 0.3
    with pytest.raises(slalom.SlalomError, match="two or more"):
        agreement.stability(runs("random")[:1])


def test_a_unit_counts_as_marked_where_the_mark_touches_it():
    """People mark half a word, or half a sentence: the unit is meant all the same."""
    classifier = linear_oracle()[0].classifier
    found = slalom.explain(classifier, "a film that dares", method="constant")
    touched = [
        list(agreement.rationale_marks(found, [span]))
        for span in ((3, 5), (0, 3), (6, 7), (5, 11), (12, 40))
    ]
    assert touched == [
        [False, True, False, False],
        [True, True, False, False],
        [False, False, False, False],  # the space between two
        [False, True, True, False],
        [False, False, False, True],
    ]


def test_naive_bayes_smooths_by_forty_unless_told_otherwise():
    classifier = linear_oracle()[0].classifier
    table = agreement.naive_bayes(classifier, ["film scenes", "film joke"], [1, 0], target=1)
    assert table["scenes"] == pytest.approx(np.log(41 / 40))
    assert table["film"] == pytest.approx(0.0)


def test_importances_are_held_against_the_size_of_what_naive_bayes_says():
    classifier = slalom_oracle().classifier
    found = slalom.explain(classifier, TEXT, target="pos", n_queries=200)
    loud = found.scores["importance"]
    signs = np.where(np.arange(len(loud)) % 2, 1.0, -1.0)
    table = dict(zip(found.units, signs * np.exp(loud), strict=True))
    subject = subject_of(classifier, found)
    assert agreement.naive_bayes_spearman(subject, table, score="importance") == pytest.approx(1.0)
    assert abs(agreement.naive_bayes_spearman(subject, table, score="value")) < 0.9
