"""SLALOM with its remainder: off where there is none, right where there is one."""

import json

import numpy as np
import pytest

import slalom
from oracles import TEXT, linear_oracle, slalom_oracle
from slalom.explanation import Explanation
from slalom.metrics.interactions import pairs_in_trees
from slalom.surrogates.base import Observations
from slalom.surrogates.slalom.completed import CompletedModel, CompletedSurrogate
from slalom.surrogates.slalom.fit import SlalomSurrogate
from slalom.surrogates.slalom.folds import folds_of, without_folds
from slalom.surrogates.slalom.model import Anchor, SlalomModel

pytestmark = pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")
WORDS = tuple(dict.fromkeys(TEXT.split()))
EFFECTS = dict(zip(WORDS, np.random.default_rng(7).normal(size=len(WORDS)), strict=True))


def fitted(explanation):
    """The fit itself, without its corrections."""
    return getattr(explanation.model, "fitted", explanation.model)


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
    assert isinstance(fitted(e), SlalomModel)
    assert e.quality.r2 > 0.999


@pytest.mark.parametrize("n_rows", [52, 92])  # with fewer than 60 no remainder is looked for
def test_where_nothing_is_left_over_unseen_folds_judge_too(n_rows):
    """Leave-one-out from one factorisation takes a fit to be linear: too hopeful with few rows."""
    rng = np.random.default_rng(5)
    counts = (rng.random((n_rows, 16)) < rng.random((n_rows, 1))).astype(float)
    counts[0], counts[1] = 1.0, 0.0
    truth = SlalomModel(2 * rng.normal(size=16), 1.5 * rng.normal(size=16), Anchor(0.3, 0.5))
    scores = truth.predict(counts) + 0.5 * rng.normal(size=n_rows)
    given = {"weights": np.ones(n_rows), "document_counts": np.ones(16)}
    found, parts = (
        CompletedSurrogate().fit(Observations(counts, scores, **given)),
        SlalomSurrogate(),
    )
    solved = parts.solve(Observations(counts, scores, **given))
    folds = folds_of(solved.problem)
    without = without_folds(solved.problem, solved.solution, folds) @ solved.back.T
    out = folds >= 0
    unseen = without[folds[out], np.flatnonzero(out), 0]
    assert isinstance(found.model, SlalomModel)
    np.testing.assert_allclose(found.held_out[out], unseen, atol=1e-9)
    judging = found.judged[out]
    missed, spread = (scores[out] - unseen)[judging], scores[out][judging]
    alone = len(spread) / (len(spread) - 1)
    assert found.r2 == pytest.approx(1 - np.mean(missed**2) / (spread.var() * alone**2))
    assert found.r2 < parts.fit(Observations(counts, scores, **given)).r2
    assert sum(found.parts.values()) == pytest.approx(1)


def test_it_describes_more_and_says_how_much(explained):
    boosted, plain = explained
    assert isinstance(fitted(boosted), CompletedModel)
    masks = np.random.default_rng(1).random((500, len(plain.units))) < 0.5
    truth = np.array(
        [bent([w for w, m in zip(TEXT.split(), row, strict=True) if m]) for row in masks]
    )
    said = [fitted(e).predict(masks.astype(float)) for e in explained]
    errors = [((each - truth) ** 2).mean() / truth.var() for each in said]
    assert errors[0] < 0.85 * errors[1]
    assert 1 - boosted.quality.r2 == pytest.approx(errors[0], rel=0.35)


def test_of_no_subsets_it_says_nothing(explained):
    none = np.zeros((0, len(explained[0].units)))
    assert [e.predict(none).shape for e in explained] == [(0,), (0,)]


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
    fit = CompletedSurrogate(trees=True).fit(
        Observations(counts, scores, weights=np.ones(500), document_counts=document)
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
    pairs = [(units[i], units[j]) for i, j in pairs_in_trees(model)]
    assert ("slow", "beauty") in pairs


def test_the_parts_say_how_much_each_describes(explained):
    boosted, plain = explained
    for e in explained:
        assert sum(e.quality.parts.values()) == pytest.approx(1.0)
        assert e.quality.parts["unexplained"] == pytest.approx(1 - e.quality.r2)
    assert {"attention", "length", "direct", "unexplained"} <= set(plain.quality.parts)
    assert boosted.quality.parts["together"] > 0


def of_words(n_words, score, seed=0):
    """A classifier of texts in which a quarter of the words occur again, and such a text."""
    rng = np.random.default_rng(seed)
    names = [f"w{number}" for number in range(3 * n_words // 4)]
    words = [*names, *rng.choice(names, n_words - len(names))]
    rng.shuffle(words)
    columns = {name: column for column, name in enumerate(names)}

    def logits(texts):
        counts = np.zeros((len(texts), len(names)))
        for row, text in zip(counts, texts, strict=True):
            for word in text.split():
                row[columns[word]] += 1
        return np.column_stack([np.zeros(len(texts)), score(counts)])

    classifier = slalom.FunctionClassifier(logits, labels=["neg", "pos"], gives="logits")
    return classifier, " ".join(words)


def adding(counts):
    return 0.3 + counts @ np.random.default_rng(1).normal(size=counts.shape[1])


def attending(counts):
    rng = np.random.default_rng(2)
    values, importances = 2 * rng.normal(size=counts.shape[1]), rng.normal(size=counts.shape[1])
    return SlalomModel(values, importances - importances.mean(), Anchor(0.4, 1.0)).predict(counts)


@pytest.mark.parametrize("method", ["slalom", "slalom-boosted"])
@pytest.mark.parametrize("score", [adding, attending])
@pytest.mark.parametrize("n_words", [40, 120])
def test_sums_and_attention_have_no_remainder_and_no_pair_in_real_texts(method, score, n_words):
    """Sampled with the default budget, not every subset asked."""
    classifier, text = of_words(n_words, score)
    e = slalom.explain(classifier, text, method, target="pos")
    assert isinstance(fitted(e), SlalomModel)
    assert e.quality.r2 > 0.9999
    assert not len(e.interactions(10, classifier))


CLASSES = np.random.default_rng(11).normal(size=(len(WORDS), 4))


def four_classes(texts):
    """Each saturated, and a pair that speaks for the last one."""
    shown = [[WORDS.index(word) for word in text.split()] for text in texts]
    odds = np.array([3 * np.tanh(CLASSES[at].sum(axis=0) / 2) for at in shown])
    odds[:, 3] += [4.0 * ("slow" in text and "beauty" in text) for text in texts]
    return odds


@pytest.fixture(scope="module")
def of_all_classes():
    classifier = slalom.FunctionClassifier(four_classes, labels=list("abcd"), gives="logits")
    methods = ("slalom-boosted", "slalom")
    return [slalom.explain(classifier, TEXT, m, target="all", n_queries=700) for m in methods]


def test_all_classes_have_their_remainder(of_all_classes):
    rng = np.random.default_rng(3)
    masks = rng.random((400, len(TEXT.split()))) < rng.random((400, 1))
    texts = [" ".join(w for w, m in zip(TEXT.split(), row, strict=True) if m) for row in masks]
    truth = four_classes(texts)
    truth -= truth.mean(axis=1, keepdims=True)
    errors = []
    for e in of_all_classes:
        assert isinstance(fitted(e), CompletedModel)
        np.testing.assert_allclose(e.predict(masks).sum(axis=1), 0.0, atol=1e-9)
        said = fitted(e).predict(masks.astype(float))
        parts = ((fitted(e).parts.predict(masks.astype(float)) - truth) ** 2).mean()
        errors += [((said - truth) ** 2).mean() / parts]
    assert errors[0] < errors[1] < 1.0


def test_shapley_values_of_all_classes_add_up_to_them(of_all_classes):
    for e in of_all_classes:
        assert e.scores["shapley"].shape == (len(e.units), 4)
        said = e.logits - e.logits.mean()
        np.testing.assert_allclose(e.scores["shapley"].sum(axis=0), said - e.base, atol=1e-6)
        assert Explanation.from_json(json.loads(json.dumps(e.to_json()))) == e
