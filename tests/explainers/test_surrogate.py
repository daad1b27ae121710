"""From queries to rows of a fit: what the classifier cannot tell apart is one row."""

from dataclasses import replace

import numpy as np
import pytest

import slalom
from oracles import TEXT as WORDS
from oracles import slalom_oracle
from slalom.explainers.base import Request
from slalom.explainers.execution.steps import in_step
from slalom.explainers.surrogate import SurrogateExplainer

TEXT = "good good film and a good good cast in a film that is good"


def test_equal_queries_are_one_row_that_weighs_as_much_as_all():
    """Of five times “good” most subsets differ for nobody but us."""
    bag = slalom.FunctionClassifier(
        lambda texts: np.array([[0.0, t.count("good") - 0.2 * t.count("a")] for t in texts]),
        labels=["no", "yes"],
        gives="logits",
    )
    document = bag.split(TEXT)
    method = slalom.METHODS["slalom"]
    (sampled,) = in_step(bag, [method.sampled(document, Request(1, 300))])
    seen = sampled.seen
    assert len(seen.weights) < len(sampled.samples.weights)
    assert seen.weights.sum() == pytest.approx(sampled.samples.weights.sum())
    queries, inverse = sampled.samples.queries, sampled.case.answers.inverse
    for row in (0, len(seen.weights) // 2, len(seen.weights) - 1):
        own = np.flatnonzero(inverse == row)
        assert seen.weights[row] == pytest.approx(sampled.samples.weights[own].sum())
        assert (document.count(queries[own]) == seen.counts[row]).all()


def test_what_was_asked_weighs_as_much_as_what_was_not():
    """Also where many of the subsets that were asked are one row."""
    bag = slalom.FunctionClassifier(
        lambda texts: np.array([[0.0, t.count("good") - 0.2 * t.count("a")] for t in texts]),
        labels=["no", "yes"],
        gives="logits",
    )
    method = slalom.METHODS["slalom"]
    assert isinstance(method, SurrogateExplainer)
    (sampled,) = in_step(bag, [method.sampled(bag.split(TEXT), Request(1, 300))])
    nothing = np.zeros((0, sampled.case.document.n_units), dtype=bool)
    other_seed = replace(sampled, case=replace(sampled.case, seed=1))
    seen, unasked = method._design(other_seed, nothing)
    assert unasked is not None
    drawn = sampled.case.document.count(sampled.samples.queries).sum(axis=1)
    for size in (4, 7, 10):
        asked = seen.weights[seen.counts.sum(axis=1) == size].sum() / (drawn == size).sum()
        np.testing.assert_allclose(unasked.weights[unasked.counts.sum(axis=1) == size], asked)


def test_lime_is_a_ridge_regression_of_strength_one():
    """Far texts weigh next to nothing, so the ridge is felt: known answer, solved by hand."""
    oracle = slalom_oracle()
    found = slalom.explain(oracle.classifier, WORDS, "lime", target="pos", n_queries=300)
    method, document = slalom.METHODS["lime"], oracle.classifier.split(WORDS).untied()
    samples = method.sampler.sample(document, 292, np.random.default_rng(0))  # 8 are repeated
    shown, weights = document.count(samples.queries), samples.weights[:, None]
    logits = oracle.classifier.logits([(document, samples.queries)])[0]
    scores = logits[:, 1] - logits[:, 0]
    design = np.hstack([shown, np.ones((len(shown), 1))])
    ridge = np.diag(np.append(np.ones(shown.shape[1]), 0.0))  # none on the intercept
    solved = np.linalg.solve(
        design.T @ (weights * design) + ridge, design.T @ (weights[:, 0] * scores)
    )
    np.testing.assert_allclose(found.scores["score"], solved[:-1], atol=1e-8)


@pytest.mark.parametrize(("n_unknown", "trust"), [(30, "low"), (18, "high")])
def test_what_was_not_read_is_not_trusted_however_well_it_is_fitted(n_unknown, trust):
    """A close fit to a text of which 30 of 36 words are unknown describes the unknown word."""
    oracle = slalom_oracle()
    document = replace(oracle.classifier.split(WORDS), n_unknown=n_unknown)
    plan = slalom.METHODS["slalom"].plan(document, Request(1, 400))
    (found,) = in_step(oracle.classifier, [plan])
    assert (found.quality.r2 is None) == (trust == "low")
    assert found.quality.trust == trust


def test_a_text_of_unknown_words_alone_says_all():
    oracle = slalom_oracle()
    split = oracle.classifier.split(WORDS)
    plan = slalom.METHODS["slalom"].plan(replace(split, n_unknown=split.n_units), Request(1, 400))
    (found,) = in_step(oracle.classifier, [plan])
    assert any(note.startswith("all units are unknown") for note in found.quality.notes)


WITH_ERRORS = {
    *("slalom", "slalom-local", "slalom-fast", "slalom-eff"),
    *("linear", "lime", "kernel-shap", "permutation-shapley"),
}
WITHOUT = {"gam", "boosted", "slalom-analytic", "slalom-analytic-anchor"}


@pytest.mark.parametrize("method", sorted(WITH_ERRORS | WITHOUT))
@pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")
def test_every_score_has_an_error_or_none_of_the_method_has(method):
    """As the README says."""
    classifier = slalom_oracle().classifier
    found = slalom.explain(classifier, WORDS, method, target="pos", n_queries=400)
    assert set(found.errors) == (set(found.scores) if method in WITH_ERRORS else set())
