"""SLALOM with its remainder: off where there is none, right where there is one."""

import json

import numpy as np
import pytest

import slalom
from oracles import TEXT, linear_oracle, slalom_oracle
from slalom.explanation import Explanation
from slalom.metrics.interactions import asked_together
from slalom.surrogates.slalom.completed import BY_FOLDS, CompletedModel, CompletedSurrogate
from slalom.surrogates.slalom.model import SlalomModel

pytestmark = pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")
WORDS = tuple(dict.fromkeys(TEXT.split()))
EFFECTS = dict(zip(WORDS, np.random.default_rng(7).normal(size=len(WORDS)), strict=True))


def bent(words):
    """Saturated at both ends, and one pair that counts only together."""
    plain = sum(EFFECTS[word] for word in words)
    return 3 * np.tanh(plain / 2) + 2.5 * ("slow" in words and "beauty" in words)


@pytest.fixture(scope="module")
def explained():
    classifier = slalom.FunctionClassifier(
        lambda texts: np.array([[0.0, bent(text.split())] for text in texts]),
        labels=["neg", "pos"],
        gives="logits",
    )
    methods = ("slalom-boosted", "slalom")
    return [slalom.explain(classifier, TEXT, m, target="pos", n_queries=700) for m in methods]


@pytest.mark.parametrize("oracle", [slalom_oracle(), linear_oracle()[0]])
def test_exact_data_leave_nothing_over(oracle):
    e = slalom.explain(oracle.classifier, TEXT, "slalom-boosted", target="pos", n_queries=600)
    assert isinstance(e.model, SlalomModel)
    assert e.quality.r2 > 0.999


def test_it_describes_more_and_says_how_much(explained):
    boosted, plain = explained
    assert isinstance(boosted.model, CompletedModel)
    masks = np.random.default_rng(1).random((500, len(plain.units))) < 0.5
    truth = np.array(
        [bent([w for w, m in zip(TEXT.split(), row, strict=True) if m]) for row in masks]
    )
    errors = [((e.predict(masks) - truth) ** 2).mean() / truth.var() for e in explained]
    assert errors[0] < 0.85 * errors[1]
    assert 1 - boosted.quality.r2 == pytest.approx(errors[0], abs=0.12)


def test_it_survives_files(explained):
    boosted = explained[0]
    record = json.loads(json.dumps(boosted.to_json()))
    again = Explanation.from_json(record)
    masks = np.eye(len(boosted.units))
    assert again == boosted
    np.testing.assert_array_equal(again.predict(masks), boosted.predict(masks))


def test_shapley_values_share_out_what_the_model_says():
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 2, size=(500, 14)).astype(float)
    scores = 3 * np.tanh(counts @ rng.normal(size=14)) + 2 * counts[:, 0] * counts[:, 1]
    document = np.ones(14)
    fit = CompletedSurrogate(growth=BY_FOLDS).fit(
        counts, scores, weights=np.ones(500), document_counts=document
    )
    assert isinstance(fit.model, CompletedModel)
    ends = fit.model.predict(np.stack([document, 0 * document]))
    assert fit.scores["shapley"].sum() == pytest.approx(ends[0] - ends[1])
    without = fit.model.predict(document - np.eye(14))
    np.testing.assert_allclose(fit.scores["removal"], ends[0] - without)
    parts = fit.model.parts
    np.testing.assert_array_equal(fit.scores["value"], parts.values)
    np.testing.assert_array_equal(fit.scores["importance"], parts.importances)


def test_its_trees_know_the_pair(explained):
    model, units = explained[0].model, explained[0].units
    pairs = [(units[i], units[j]) for i, j in asked_together(model)]
    assert ("slow", "beauty") in pairs


def test_the_parts_say_how_much_each_describes(explained):
    boosted, plain = explained
    for e in explained:
        assert sum(e.quality.parts.values()) == pytest.approx(1.0)
        assert e.quality.parts["unexplained"] == pytest.approx(1 - e.quality.r2)
    assert {"attention", "length", "direct", "unexplained"} <= set(plain.quality.parts)
    assert boosted.quality.parts["together"] > 0
