"""Many documents through one method: together, watched, one at a time, errors kept."""

import subprocess
import sys
import warnings

import numpy as np
import pytest

import slalom
from oracles import TEXT, slalom_oracle
from slalom.classifiers.text.function import FunctionClassifier
from slalom.explainers.base import Request
from slalom.explainers.execution import driver
from slalom.explainers.execution.driver import CountedClassifier, chunks
from slalom.explainers.execution.progress import Meter
from slalom.explainers.execution.steps import Order
from slalom.samplers.subsets import SubsetSizes

WORDS = TEXT.split()
TEXTS = [" ".join(WORDS[start : start + 12]) for start in range(0, 24, 4)]


def classifier():
    return slalom_oracle().classifier


def test_progress_is_told_in_queries_and_ends_with_those_that_were_asked(monkeypatch):
    monkeypatch.setattr(driver, "TOKENS_PER_REPORT", 400)
    told = []
    found = slalom.explain_many(
        classifier(), TEXTS, n_queries=200, progress=lambda *now: told.append(now)
    )
    done, totals = zip(*told, strict=True)
    assert totals[0] == 200 * len(TEXTS)
    assert list(done) == sorted(done)
    assert done[-1] == totals[-1] == sum(e.quality.n_queries for e in found)
    assert len(told) > 2 * len(TEXTS)  # also while one document is asked


def test_a_short_text_takes_fewer_queries_than_planned_and_still_ends_at_the_end():
    told = []
    slalom.explain(classifier(), "slow joke", progress=lambda *now: told.append(now))
    assert told[-1] == (8, 8)  # four subsets, each asked once more


@pytest.mark.parametrize("wanted", [{}, {"method": "leave-one-out"}, {"max_error": 0.5}])
def test_progress_ends_with_what_was_asked_be_it_more_or_less_than_planned(wanted):
    told = []
    found = slalom.explain(classifier(), TEXTS[0], progress=lambda *now: told.append(now), **wanted)
    assert told[-1] == (found.quality.n_queries, found.quality.n_queries)
    assert all(done <= total for done, total in told)


def test_what_progress_raises_ends_the_work(monkeypatch):
    monkeypatch.setattr(driver, "TOKENS_PER_REPORT", 400)
    oracle = slalom_oracle()

    class StoppedError(Exception):
        pass

    def stop(done, total):
        if done > 100:
            raise StoppedError

    with pytest.raises(StoppedError):
        slalom.explain_many(oracle.classifier, TEXTS, n_queries=200, progress=stop)
    assert len(oracle.asked) < 300


def test_watching_changes_no_answer(monkeypatch):
    monkeypatch.setattr(driver, "TOKENS_PER_REPORT", 50)
    plain = classifier()
    documents = [plain.split(text) for text in TEXTS]
    asked = [
        (document, SubsetSizes().sample(document, 60, np.random.default_rng(n)).queries)
        for n, document in enumerate(documents)
    ]
    asked.insert(2, (documents[0], asked[0][1][:0]))
    meter = Meter(lambda done, total: None, 10**6).chunk(10**6)
    answers = CountedClassifier(plain, meter).logits(asked)
    for one, other in zip(answers, plain.logits(asked), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    assert meter.meter.done == sum(len(queries) for _, queries in asked)


def test_one_after_the_other_equals_all_at_once():
    many = slalom.explain_many(classifier(), TEXTS, n_queries=100, progress=False)
    assert list(slalom.explain_each(classifier(), TEXTS, n_queries=100)) == many


def test_each_is_there_before_the_next_texts_are_read():
    read = []

    def endless():
        while True:
            read.append(TEXTS[len(read) % len(TEXTS)])
            yield read[-1]

    results = slalom.explain_each(classifier(), endless(), n_queries=500)
    assert next(results).text == TEXTS[0]
    assert len(read) < 10
    results.close()


@pytest.mark.parametrize("explain", [slalom.explain_many, slalom.explain_each])
def test_errors_keep_their_place(explain):
    texts = [TEXTS[0], "", TEXTS[1], "a b c d", TEXTS[2]]
    results = list(explain(classifier(), texts, "exact-shapley", n_queries=100, on_error="keep"))
    kinds = [isinstance(result, slalom.SlalomError) for result in results]
    assert kinds == [True, True, True, True, True]  # "a b c d" has words the oracle lacks
    assert "text 1: the text is empty" in str(results[1])
    assert "12 units need 2^12" in str(results[0])


def test_one_bad_text_does_not_cost_its_neighbours():
    def ask(texts):
        if any("poison" in text for text in texts):
            raise ValueError("I will not read that")
        return np.array([[len(text) % 7, 1.0] for text in texts])

    fragile = FunctionClassifier(ask, labels=["a", "b"], gives="logits")
    texts = ["one two three four", "poison in the well", "five six seven eight"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", slalom.SlalomWarning)
        results = slalom.explain_many(fragile, texts, on_error="keep")
        assert results[0] == slalom.explain(fragile, texts[0])
    assert "will not read that" in str(results[1])
    assert results[2].text == texts[2]
    with pytest.raises(slalom.SlalomError, match="will not read that"):
        slalom.explain_many(fragile, texts)
    with pytest.raises(slalom.SlalomError, match="unknown on_error 'skip'"):
        slalom.explain_many(fragile, texts, on_error="skip")


def test_chunks_hold_neighbours_until_there_is_enough_to_ask():
    plain, method = classifier(), slalom.METHODS["slalom"]
    documents = [plain.split(text) for text in TEXTS]
    order = Order(method, Request(n_queries=100))
    sizes = [len(c) for c in chunks(order, documents, n_queries=250)]
    assert sizes == [3, 3]
    assert Request().planned(method, plain.split("slow joke")) == 4


def test_a_windowed_text_says_so():
    bundled = slalom.load()
    long = "This film was rather slow but in the end it was a joy. " * 60
    found = slalom.explain(bundled, long, "leave-one-out", units="sentence", too_long="windows")
    assert found.windowed
    assert not slalom.explain(bundled, "A joy.", "leave-one-out").windowed


ENDING = """
import slalom
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.explainers import methods
from slalom.explainers.execution import pool, workers

pool.cores = workers.cores = lambda: 2
workers.WORTHWHILE = 0
HuggingFaceClassifier.runs_elsewhere = {elsewhere}
methods.QUERIES_PER_CHUNK = methods.QUERIES_PER_STEP = 20
found = slalom.explain_each(slalom.load(), ["a b c"] * 40, "slalom-fast", n_queries=8)
print(next(found).text)
"""


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_program_may_end_in_the_middle(elsewhere):
    """Nothing is said of what was left open."""
    ended = subprocess.run(
        [sys.executable, "-c", ENDING.format(elsewhere=elsewhere)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert (ended.stdout, ended.stderr) == ("a b c\n", "")
