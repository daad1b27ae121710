"""What turns a prediction, where the smallest set is known from trying them all."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import slalom
from oracles import NeverEmpty
from slalom.metrics.counterfactual import _Case

WEIGHTS = {"great": 2.5, "fine": 1.0, "warm": 1.4, "slow": -1.0, "dull": -2.0, "song": 0.3}
TEXT = "a great and warm film with fine songs and a slow start , great end , fine song , dull"


def log_odds(text: str) -> float:
    return -0.2 + sum(WEIGHTS.get(word, 0.0) for word in text.split())


def counted():
    asked: list[str] = []

    def logits(texts: list[str]) -> np.ndarray:
        asked.extend(texts)
        return np.array([[0.0, log_odds(text)] for text in texts])

    return slalom.FunctionClassifier(logits, labels=["neg", "pos"], gives="logits"), asked


def smallest(text: str) -> int:
    words = text.split()
    for size in range(1, len(words) + 1):
        for gone in combinations(range(len(words)), size):
            left = " ".join(word for at, word in enumerate(words) if at not in gone)
            if (log_odds(left) < 0) != (log_odds(text) < 0):
                return size
    return 0


@pytest.mark.parametrize("text", [TEXT, "great", "dull and slow but fine", "great warm fine song"])
@pytest.mark.parametrize("target", ["pos", "neg"])
@pytest.mark.parametrize("method", ["linear", "leave-one-out"])
def test_the_smallest_set_of_a_bag_of_words_is_found(text, target, method):
    classifier, asked = counted()
    e = slalom.explain(classifier, text, method, target=target)
    asked.clear()
    found = e.counterfactual(classifier)
    assert len(found.removed) == smallest(text)
    assert found.words == tuple(e.units[unit] for unit in found.removed)
    assert found.n_queries == len(asked) == len(set(asked))
    assert (log_odds(str(found.text)) < 0) != (log_odds(text) < 0)
    assert found.logits[1] == pytest.approx(log_odds(found.text))
    before, after = ("pos", "neg") if log_odds(text) > 0 else ("neg", "pos")
    assert (found.before, found.after) == (before, after)
    assert f"the prediction is “{after}” instead of “{before}” (verified, {found.n_queries}" in str(
        found
    )


def test_without_a_classifier_it_is_called_a_guess():
    classifier, asked = counted()
    e = slalom.explain(classifier, TEXT, "linear", target="pos")
    asked.clear()
    guess = e.counterfactual()
    assert guess.removed == e.counterfactual(classifier).removed
    assert guess.logits is None
    assert not guess.verified
    assert guess.n_queries == 0
    assert "according to the fitted model" in guess.sentence
    assert repr(guess) == f"Counterfactual: {guess}"


def test_nothing_turns_a_classifier_that_always_says_the_same():
    asked = slalom.FunctionClassifier(lambda texts: [[0.1, 0.9]] * len(texts), labels=["no", "yes"])
    found = slalom.explain(asked, "one two three", "leave-one-out").counterfactual(asked)
    assert found.removed == ()
    assert found.after is None
    assert found.text == "one two three"
    assert (
        str(found)
        == "No removal that was tried changes the prediction “yes” (verified, 5 queries)."
    )


def test_a_text_that_cannot_be_empty_keeps_a_word():
    asked = NeverEmpty(lambda texts: [[0.0, log_odds(text)] for text in texts], ["neg", "pos"])
    found = slalom.explain(asked, "great great", "linear", target="pos").counterfactual(asked)
    assert found.after is None


def test_of_three_classes_the_predicted_one_has_to_fall():
    def logits(texts):
        return [[text.count("a"), text.count("b"), text.count("c")] for text in texts]

    classifier = slalom.FunctionClassifier(logits, labels=["A", "B", "C"], gives="logits")
    e = slalom.explain(classifier, "a a a a b b c", "linear", target="A")
    found = e.counterfactual(classifier)
    assert (found.words, found.before, found.after) == (("a",) * 3, "A", "B")
    rare = slalom.explain(classifier, "a a a a b b c", "linear", target="B")
    assert rare.counterfactual(classifier).words == ("a",) * 3
    both = slalom.explain(classifier, "a a a a b b c", "slalom", target="all")
    assert both.counterfactual(classifier).after == "B"


def test_many_words_are_counted_and_a_single_output_is_refused():
    classifier, _ = counted()
    e = slalom.explain(classifier, " ".join(["fine"] * 30), "linear", target="pos")
    assert str(e.counterfactual(classifier)).startswith("Without “fine”, “fine”")
    assert "and 21 more words the prediction is" in str(e.counterfactual(classifier))

    with pytest.raises(slalom.SlalomError, match="no prediction to change"):
        replace(e, labels=("stars",), logits=np.zeros(1), independent=True).counterfactual()


def test_what_can_stay_is_put_back():
    """The order by single scores begins with words that stand in for each other: not all go."""
    words = [f"w{number}" for number in range(24)]

    def logits(texts):
        shown = [set(text.split()) for text in texts]
        either = [1.0 if {"w3", "w4", "w5"} & part else -2.0 for part in shown]
        added = [0.01 * len(part) for part in shown]
        return np.array([[0.0, e + a] for e, a in zip(either, added, strict=True)])

    classifier = slalom.FunctionClassifier(logits, labels=["neg", "pos"], gives="logits")
    e = slalom.explain(classifier, " ".join(words), "leave-one-out", target="pos")
    scores = np.zeros(24)
    scores[[1, 3, 8, 4, 9, 5]] = [6, 5, 4, 3, 2, 1]  # as a method might rank them
    e = replace(e, scores={"score": scores}, model=None)
    found = e.counterfactual(classifier)
    assert sorted(found.words) == ["w3", "w4", "w5"]
    assert found.after == "neg"


def test_without_a_model_the_strongest_words_go_first():
    def ask(texts):
        return [[0.0, 3 * ("great" in t) + 2 * ("good" in t) - ("bad" in t)] for t in texts]

    bag = slalom.FunctionClassifier(ask, labels=["no", "yes"], gives="logits")
    e = replace(slalom.explain(bag, "bad a good great film", "leave-one-out"), model=None)
    assert _Case.of(e).order(2) == [3, 2]
