"""Generators of queries in step: what is asked and told, what it cost, whose error it is."""

import numpy as np
import pytest

import slalom
from oracles import added, classifier_of
from slalom.document import queries_from_masks
from slalom.errors import ClassifierError, InputError
from slalom.explainers.base import Ask, Look
from slalom.explainers.execution.steps import in_step

TEXT = "plot music of rare"
EVERY = np.array([[n >> at & 1 for at in range(4)] for n in range(15, -1, -1)], dtype=bool)


def asked_in_turn(document, *asks):
    """All that it is told."""
    told = []
    for queries, most in asks:
        told.append((yield Ask(document, queries, most)))
    return told


def test_nothing_is_asked_twice_and_answers_stand_by_their_queries():
    classifier, asked = classifier_of(added)
    document = classifier.split(TEXT)
    queries = queries_from_masks(EVERY)
    ((first, second),) = in_step(
        classifier, [asked_in_turn(document, (queries[:6], None), (queries[::-1], None))]
    )
    assert len(asked) == len(set(asked)) == 16
    (known,) = classifier.logits([(document, queries)])
    np.testing.assert_array_equal(first.logits, known[:6])
    np.testing.assert_array_equal(second.logits, known[::-1])
    assert (first.n_queries, second.n_queries) == (6, 16)
    assert first.empty is None
    np.testing.assert_array_equal(second.empty, known[-1])


def test_no_more_than_the_most_are_asked_and_the_first_come_first():
    classifier, asked = classifier_of(added)
    document = classifier.split(TEXT)
    queries = queries_from_masks(EVERY)
    asks = ((queries[:4], None), (queries[2:], 7), (queries, 3))
    (told,) = in_step(classifier, [asked_in_turn(document, *asks)])
    assert [one.rows.tolist() for one in told] == [
        [0, 1, 2, 3],
        [0, 1, 2, 3, 4],
        [0, 1, 2, 3, 4, 5, 6],
    ]
    assert [one.n_queries for one in told] == [4, 7, 7]
    assert len(asked) == 7


def test_equal_queries_are_one_row():
    classifier, asked = classifier_of(lambda words: float(len(words)))
    document = classifier.split("good good film")
    queries = queries_from_masks(np.array([[1, 1, 1], [1, 0, 1], [0, 1, 1], [0, 0, 1]], dtype=bool))
    ((told,),) = in_step(classifier, [asked_in_turn(document, (queries, None))])
    assert told.first.tolist() == [0, 1, 3]
    assert told.inverse.tolist() == [0, 1, 1, 2]
    assert len(asked) == 3


def test_another_split_of_the_text_shares_answers_and_has_an_account_of_its_own():
    classifier, asked = classifier_of(added)

    def plan(words):
        first = yield Ask(words, words.full())
        phrases = yield Look(lambda classifier: classifier.split(TEXT, [(0, 10), (11, 18)]))
        every = queries_from_masks(np.array([[1, 1], [1, 0], [0, 0]], dtype=bool))
        second = yield Ask(phrases, every)
        return phrases.units, first.n_queries, second.n_queries

    ((units, first, second),) = in_step(classifier, [plan(classifier.split(TEXT))])
    assert units == ("plot music", "of rare")
    assert (first, second) == (1, 3)
    assert asked == [TEXT, "plot music", ""]


def test_those_in_step_are_asked_together():
    calls = []

    class Counting(slalom.FunctionClassifier):
        def logits(self, asked):
            calls.append(len(asked))
            return super().logits(asked)

    classifier = Counting(lambda texts: [[0.0, len(t)] for t in texts], ["a", "b"], "logits")
    document = classifier.split(TEXT)
    rows = queries_from_masks(EVERY)
    plans = [
        asked_in_turn(document, (rows[:2], None)),
        asked_in_turn(document, (rows[:2], None), (rows[2:4], None)),
        asked_in_turn(document),
    ]
    found = in_step(classifier, plans)
    assert [len(told) for told in found] == [1, 2, 0]
    assert calls == [2, 1]


@pytest.mark.parametrize("keep", [True, False])
def test_an_error_is_that_of_its_own_document(keep):
    def f(texts):
        if any("odd" in text for text in texts):
            raise ValueError("not this one")
        return [[0.0, len(text)] for text in texts]

    classifier = slalom.FunctionClassifier(f, labels=["a", "b"], gives="logits")
    documents = [classifier.split(text) for text in ("good film", "odd film", "film")]

    def refusing(document):
        yield Ask(document, document.full())
        raise InputError("nothing to say")

    plans = [asked_in_turn(d, (d.full(), None)) for d in documents[:2]] + [refusing(documents[2])]
    if not keep:
        with pytest.raises(ClassifierError, match="not this one"):
            in_step(classifier, plans)
        return
    good, odd, silent = in_step(classifier, plans, keep_errors=True)
    assert good[0].logits[0, 1] == 9
    assert isinstance(odd, ClassifierError)
    assert isinstance(silent, InputError)
