"""What the default method says of each word in two scores, from end to end."""

import numpy as np
import pytest

import slalom

RIGHT = 1e-4


def exact(words, n_classes, seed):
    """A classifier that is a SLALOM over these words, and its importances and values."""
    rng = np.random.default_rng(seed)
    different = list(dict.fromkeys(words))
    importances, values = (
        rng.normal(size=len(different)),
        rng.normal(size=(len(different), n_classes)),
    )
    empty = rng.normal(size=n_classes)

    def logits(texts):
        counts = np.array([[text.split().count(word) for word in different] for text in texts])
        weights = np.append(counts * np.exp(importances), np.full((len(texts), 1), np.e), axis=1)
        return weights @ np.vstack([values, empty]) / weights.sum(axis=1, keepdims=True)

    labels = [str(label) for label in range(n_classes)]
    classifier = slalom.FunctionClassifier(logits, labels=labels, gives="logits")
    at = [different.index(word) for word in words]
    return classifier, importances[at] - importances.mean(), values[at]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("text", ["a b c", "a b a c d e a", "a b c d e f g h"])
def test_an_exact_slalom_comes_back(text, seed):
    classifier, importances, values = exact(text.split(), 2, seed)
    found = slalom.explain(classifier, text, target=1)
    np.testing.assert_allclose(found.scores["value"], values[:, 1] - values[:, 0], atol=RIGHT)
    np.testing.assert_allclose(found.scores["importance"], importances, atol=RIGHT)
    assert found.quality.two_scores == 1.0
    assert not found.errors["value"].any()


def test_classes_share_importances_in_long_texts_too():
    words = [f"w{number}" for number in range(36)]
    classifier, importances, values = exact(words, 4, 0)
    found = slalom.explain(classifier, " ".join(words), target="all")
    centred = values - values.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(found.scores["value"], centred, atol=RIGHT)
    np.testing.assert_allclose(found.scores["importance"], importances, atol=RIGHT)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("A slow start, but a truly wonderful film about two brothers, not a boat.", "wonderful"),
        ("Great screen but terrible battery.", "terrible"),
        ("The food was awful and the waiter was rude.", "awful"),
    ],
)
def test_the_word_that_is_missed_most_is_heard_most(text, word):
    found = slalom.explain(slalom.load(), text, target="positive")
    at = found.units.index(word)
    assert np.argmax(np.abs(found.scores["removal"])) == at
    assert np.argmax(found.scores["share"]) == at
    side = found.scores["value"][at] - found.anchor.value
    assert side * found.scores["shapley"][at] > 0


def test_the_same_holds_for_values_of_another_seed():
    text = "The plot is thin and the jokes are old, but the cast is brilliant and I laughed a lot."
    one, other = (slalom.explain(slalom.load(), text, seed=seed) for seed in (0, 1))
    for name in ("value", "importance"):
        off = np.abs(one.scores[name] - other.scores[name])
        both = np.hypot(one.errors[name], other.errors[name])
        assert np.mean(off <= 1.645 * both) > 0.8


@pytest.mark.parametrize("spread", [0.0, 1e-15])
def test_answers_that_never_change_have_no_two_scores(spread):
    """Neither the queries nor what the whole model predicts of others has anything to describe."""

    def logits(texts):
        return np.array([[1.0, 2.0 + spread * (len(text) % 3)] for text in texts])

    classifier = slalom.FunctionClassifier(logits, labels=["a", "b"], gives="logits")
    found = slalom.explain(classifier, "one two three four five six seven", n_queries=40)
    assert found.quality.two_scores is None
    assert np.isfinite(found.scores["value"]).all()


def test_other_queries_give_nearly_the_same_two_scores():
    """What two scores leave of 200 queries would move them; of 3000 predicted ones, little."""
    rng = np.random.default_rng(3)
    words = [f"w{number}" for number in range(20)]
    effects, values, importances = rng.normal(size=(3, len(words)))

    def logits(texts):
        shown = np.array([[word in text.split() for word in words] for text in texts])
        weights = np.append(shown * np.exp(importances), np.ones((len(texts), 1)), axis=1)
        attended = (weights[:, :-1] @ values) / weights.sum(axis=1)
        score = 3.0 * attended + shown @ effects / 3.0
        return np.stack([np.zeros_like(score), score], axis=1)

    classifier = slalom.FunctionClassifier(logits, labels=["a", "b"], gives="logits")
    one, other = (
        slalom.explain(classifier, " ".join(words), target=1, n_queries=200, seed=seed)
        for seed in (0, 1)
    )
    for name in ("value", "importance"):  # of queries alone, importances agree to .81
        assert np.corrcoef(one.scores[name], other.scores[name])[0, 1] > 0.88, name
