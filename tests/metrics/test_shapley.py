"""The error of Shapley values, where these are known."""

from dataclasses import replace

import numpy as np
import pytest

import slalom
from oracles import TEXT, NeverEmpty, linear_oracle, slalom_oracle
from slalom.metrics.shapley import shapley_error, true_shapley
from slalom.metrics.subject import subject_of
from slalom.metrics.table import METRICS


def test_exact_values_have_no_error_and_zeros_have_all_of_it():
    classifier = linear_oracle()[0].classifier
    found = slalom.explain(classifier, TEXT, "leave-one-out", target="pos")
    assert shapley_error(subject_of(classifier, found))[0] == pytest.approx(0, abs=1e-9)
    nothing = replace(found, scores={"score": np.zeros(len(found.units))})
    error, weight = shapley_error(subject_of(classifier, nothing))
    assert error == pytest.approx(1.0)
    assert weight == pytest.approx(float((found.scores["score"] ** 2).sum()))
    halved = replace(found, scores={"score": found.scores["score"] / 2})
    assert METRICS["shapley-error"].measure(classifier, halved) == pytest.approx(0.25)


def test_short_texts_are_asked_in_full():
    classifier = slalom_oracle().classifier
    text = " ".join(TEXT.split()[:6])
    found = slalom.explain(classifier, text, "exact-shapley", target="pos")
    subject = subject_of(classifier, found)
    one, other = true_shapley(subject)
    np.testing.assert_array_equal(one, other)
    np.testing.assert_allclose(one, found.scores["score"], atol=1e-6)
    assert subject.n_queries == 2**6


def test_the_noise_of_the_truth_is_not_held_against_the_scores():
    """Over many seeds the error of the exact values is 0 on average, not the truth's variance."""
    oracle = slalom_oracle()
    found = slalom.explain(oracle.classifier, TEXT, target="pos", n_queries=600)
    subject = subject_of(oracle.classifier, found)
    errors = [shapley_error(subject, n_orders=8, seed=seed)[0] for seed in range(20)]
    one, other = true_shapley(subject, n_orders=8)
    assert ((one - other) ** 2).sum() / (one @ other) > 0.01
    assert abs(np.mean(errors)) < 0.006


def test_a_text_that_cannot_be_empty_is_measured_from_the_explanations_own_base():
    classifier = NeverEmpty(
        lambda texts: np.array([[0.0, t.count("o")] for t in texts]), ["n", "p"]
    )
    found = slalom.explain(classifier, TEXT, target="p", n_queries=400)
    one, _ = true_shapley(subject_of(classifier, found))
    assert one.sum() == pytest.approx(found.logits[1] - found.logits[0] - found.base)
    joint = subject_of(classifier, slalom.explain(classifier, TEXT, target="all", n_queries=100))
    with pytest.raises(slalom.SlalomError, match="one class"):
        shapley_error(joint)
