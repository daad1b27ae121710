"""Pairs of words that act together, on classifiers whose pairs are known."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest

import slalom
from oracles import (
    OWN,
    REVIEW,
    TEXT,
    NeverEmpty,
    added,
    classifier_of,
    linear_oracle,
    negated,
    slalom_oracle,
)
from slalom.metrics.interactions import _Search

pytestmark = pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")


def one_pair(words):
    return added(words) + 1.7 * ("rare" in words and "script" in words)


def exclusive(words):
    return added(words) + 1.3 * (("plot" in words) != ("end" in words))


def product(words):
    return added(words) + (1 + ("weak" in words)) * (1 + 2 * ("long" in words))


@pytest.mark.parametrize("method", ["slalom", "linear", "boosted", "leave-one-out"])
@pytest.mark.parametrize(
    ("score", "pair", "size"),
    [
        (one_pair, ("rare", "script"), 1.7),
        (exclusive, ("plot", "end"), -2.6),
        (negated, ("not", "bad"), 3.0),
        (product, ("weak", "long"), 2.0),
    ],
)
def test_the_one_pair_is_found_and_measured(method, score, pair, size):
    classifier, asked = classifier_of(score)
    e = slalom.explain(classifier, REVIEW, method, target="pos", n_queries=400)
    asked.clear()
    found = e.interactions(5, classifier)
    assert found.n_queries == len(asked) == len(set(asked)) <= 200
    assert found[0].words == pair
    assert found[0].size == pytest.approx(size, abs=1e-2)
    assert len(found) == 1
    assert found.measured
    assert str(found).endswith(f"(measured with {len(asked)} more queries)")
    assert repr(found) == f"Interactions:\n{found}"


def test_together_and_apart_are_what_the_words_say():
    classifier, _ = classifier_of(negated)
    found = slalom.explain(classifier, REVIEW, "linear", target="pos").interactions(1, classifier)
    both, no, bad = OWN["not"] + OWN["bad"], OWN["not"], OWN["bad"]
    pair = found[0]
    assert pair.together == pytest.approx(both + 1.5)
    assert pair.apart == pytest.approx(no + bad - 1.5)
    alone = (pair.alone.together, pair.alone.apart)
    assert alone == pytest.approx((pair.together, pair.apart))
    nothing = replace(pair, together=-0.001, apart=-0.004)
    assert nothing.in_words == "+0.00 (together +0.00, separately +0.00)"
    line = f"“not” × “bad”: +3.00 (together {both + 1.5:+.2f}, separately {both - 1.5:+.2f})"
    assert str(found).splitlines()[0] == line.replace("-", "−")
    assert found.to_json()["pairs"][0]["units"] == [3, 4]


@pytest.mark.parametrize("method", ["slalom", "linear", "boosted"])
def test_what_only_adds_up_has_no_pairs(method):
    oracle, _ = linear_oracle()
    e = slalom.explain(oracle.classifier, TEXT, method, target="pos", n_queries=600)
    assert not len(e.interactions(10, oracle.classifier))


def test_what_attention_does_is_no_pair():
    oracle = slalom_oracle()
    e = slalom.explain(oracle.classifier, TEXT, target="pos", n_queries=800)
    found = e.interactions(10, oracle.classifier)
    assert not len(found)
    assert str(found).splitlines()[0] == "no two words act together"


def test_pairs_that_nobody_measured_are_marked_as_estimated():
    classifier, _ = classifier_of(negated)
    found = slalom.explain(classifier, REVIEW, "linear", target="pos").with_pairs(2).pairs
    assert "(estimated by the fit" in str(found)
    assert "(estimated by the fit" in repr(found)


def test_trees_say_which_pairs_without_being_asked():
    classifier, asked = classifier_of(one_pair)
    e = slalom.explain(classifier, REVIEW, "boosted", target="pos", n_queries=800)
    asked.clear()
    found = e.interactions(1)
    assert not asked
    assert not found.measured
    assert found[0].words == ("rare", "script")
    assert found[0].size == pytest.approx(1.7, abs=0.25)


def test_what_was_measured_makes_no_pairs_of_what_is_left_to_one_subset():
    """Single removals are answers, pairs of them are not: the difference is no pair."""
    classifier, _ = classifier_of(one_pair)
    e = slalom.explain(classifier, REVIEW, target="pos", n_queries=300)
    found = e.interactions(5)
    assert found[0].words == ("rare", "script")
    assert max((abs(pair.size) for pair in found[1:]), default=0.0) < 0.5 * abs(found[0].size)


def test_phrases_become_units():
    classifier, _ = classifier_of(negated)
    e = slalom.explain(classifier, REVIEW, "linear", target="pos")
    phrases = e.interactions(3, classifier).phrases()
    again = slalom.explain(classifier, REVIEW, "linear", target="pos", units=phrases)
    assert len(again.units) == len(e.units) - 1
    assert again.units[3].strip() == "not bad"
    assert again.scores["score"][3] == pytest.approx(OWN["not"] + OWN["bad"] + 1.5, abs=1e-3)


def test_a_budget_is_kept_in_a_long_text():
    classifier, asked = classifier_of(lambda words: 0.1 * len(words) + ("w7" in words))
    text = " ".join(f"w{place}" for place in range(150))
    e = slalom.explain(classifier, text, "linear", target="pos", n_queries=300)
    asked.clear()
    assert e.interactions(10, classifier, n_queries=80).n_queries == len(set(asked)) <= 80


@pytest.mark.parametrize("k", [20, 66, 500])
def test_a_wish_for_many_pairs_leaves_queries_to_find_them(k):
    classifier, asked = classifier_of(one_pair)
    e = slalom.explain(classifier, REVIEW, "linear", target="pos", n_queries=300)
    asked.clear()
    found = e.interactions(k, classifier)
    assert [pair.words for pair in found] == [("rare", "script")]
    assert found.n_queries == len(set(asked)) <= 200
    assert [pair.words for pair in e.interactions(k)] == []  # a linear model has no pairs


def test_seventeen_words_are_asked_about_all_of_their_pairs():
    classifier, asked = classifier_of(lambda words: float("w3" in words and "w16" in words))
    words = [f"w{place}" for place in range(17)]
    e = slalom.explain(classifier, " ".join(words), "leave-one-out", target="pos")
    asked.clear()
    assert e.interactions(classifier=classifier)[0].words == ("w3", "w16")
    pairs = {frozenset(words) - frozenset(text.split()) for text in asked}
    assert pairs >= {frozenset(pair) for pair in itertools.combinations(words, 2)}
    assert len(set(asked)) <= 200


def test_words_that_say_other_things_alone_are_looked_at_first():
    classifier, _ = classifier_of(lambda words: float(len(words)))
    e = slalom.explain(classifier, "a b c d e f", "leave-one-out", target="pos")
    alone = np.array([0.0, 2.0, 0.1, 0.0, 3.0, 0.2])
    changed = replace(e, scores={"removal": np.zeros(6), "alone": alone}, errors={})
    search = _Search(changed, lambda masks: np.zeros(len(masks)), has_empty=True)
    assert search._changed()[0] == (1, 4)


def test_who_was_found_to_interact_is_asked_about_everyone():
    """w10 acts on its neighbour, where one looks first, and far away, where one does not."""

    def score(words):
        own = sum(
            (-1.0) ** int(word[1:]) * 5 for word in words if word not in ("w10", "w11", "w35")
        )
        return own + ("w10" in words) * (("w11" in words) + ("w35" in words) - 2)

    classifier, _ = classifier_of(score)
    text = " ".join(f"w{place}" for place in range(40))
    e = slalom.explain(classifier, text, "leave-one-out", target="pos")
    found = e.interactions(3, classifier, n_queries=300)
    assert {pair.words for pair in found} == {("w10", "w11"), ("w10", "w35")}


def test_short_texts_and_empty_texts():
    classifier, _ = classifier_of(added)
    assert not len(slalom.explain(classifier, "plot", "linear").interactions(3, classifier))
    never = NeverEmpty(
        lambda texts: np.array([[0.0, one_pair(text.split())] for text in texts]), ["neg", "pos"]
    )
    e = slalom.explain(never, "a rare script", "linear", target="pos")
    pair = e.interactions(3, never)[0]
    assert pair.words[0].strip() == "rare"
    assert pair.alone is None


@pytest.mark.parametrize("text", ["not bad", "don't watch", "never again", "not so bad", "never"])
def test_texts_shorter_than_the_reach_of_a_negation(text):
    classifier, _ = classifier_of(lambda words: 2.0 * ({"not", "bad"} <= {*words}) - len(words))
    e = slalom.explain(classifier, text, "linear", target="pos")
    for found in (e.interactions(3, classifier), e.interactions(3)):
        assert all(unit < len(e.units) for pair in found for unit in pair.units)
    assert len(e.interactions(3, classifier)) == ("bad" in text)


def test_pairs_of_a_long_text_take_no_longer_than_its_queries():
    classifier, asked = classifier_of(
        lambda words: 3.0 * ({"w7", "w9"} <= {*words}) - ("w7" in words) - ("w9" in words)
    )
    text = " ".join(f"w{place}" for place in range(1500))
    e = slalom.explain(classifier, text, "leave-one-out", units="word", target="pos")
    asked.clear()
    began = time.process_time()
    assert [pair.words for pair in e.interactions(3, classifier)] == [("w7", "w9")]
    assert time.process_time() - began < 10
    assert len(set(asked)) <= 200


def test_what_cannot_be_asked_is_said():
    classifier, _ = classifier_of(added)
    e = slalom.explain(classifier, "rare script", "linear", target="all")
    with pytest.raises(slalom.SlalomError, match="one target"):
        e.interactions(3, classifier)
    e = slalom.explain(classifier, "rare script", "linear")
    with pytest.raises(slalom.SlalomError, match="k must be a whole number of at least 1"):
        e.interactions(0, classifier)
