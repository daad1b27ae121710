"""Whole methods in worker processes: the same numbers, errors in their places, nobody waits."""

import os
import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from operator import methodcaller
from time import sleep

import numpy as np
import pytest

import slalom
from slalom.classifiers.base import Delegating
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.errors import BudgetError, ClassifierError
from slalom.explainers import methods
from slalom.explainers.execution import driver, pool, workers

pytestmark = pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")
TEXTS = [
    "A slow start, but a truly wonderful film about two brothers and a boat.",
    "What a terrible waste of an evening, and of the money it cost us as well.",
    "The plot is thin, the acting is wooden, yet somehow I laughed all the way.",
]


class OnDevice(Delegating):
    """The bundled classifier, as if cores were free while it answers."""

    runs_elsewhere = True

    def __init__(self, classifier):
        self.classifier = classifier
        self.calls = []

    def logits(self, asked):
        self.calls.append(len(asked))
        return self.classifier.logits(asked)


class Refusing(OnDevice):
    """Says nothing about texts that hold a word."""

    def logits(self, asked):
        if any("waste" in document.text for document, _ in asked):
            raise ClassifierError("not this one")
        return super().logits(asked)


class Reading(OnDevice):
    """Reads more than what it wraps."""

    def seen(self, document, queries):
        return [("more", entry) for entry in self.classifier.seen(document, queries)]


def asked_about(document):
    """One query, as a worker would ask it."""
    pair = (document, document.full())
    return workers.Asked(methodcaller("logits", [pair]), n_queries=1)


@pytest.fixture(scope="module")
def bundled():
    return slalom.load()


@pytest.fixture(autouse=True)
def by_workers(monkeypatch):
    """However small the work is, and however few cores there are; how many tasks went there."""
    monkeypatch.setattr(workers, "WORTHWHILE", 0)
    monkeypatch.setattr(workers, "PER_WORKER", 1)
    monkeypatch.setattr(workers, "cores", lambda: 2)
    monkeypatch.setattr(pool, "cores", lambda: 2)
    sent = []
    plain = workers.submit

    def submit(work, item, answer):
        sent.append(item)
        return plain(work, item, answer)

    monkeypatch.setattr(workers, "submit", submit)
    return sent


@pytest.mark.parametrize("method", ["slalom", "kernel-shap", "slalom-fast"])
def test_workers_say_what_one_process_says(bundled, by_workers, method):
    here = [slalom.explain(bundled, text, method, n_queries=120) for text in TEXTS]
    assert not by_workers
    there = slalom.explain_many(OnDevice(bundled), TEXTS, method, n_queries=120, progress=False)
    assert len(by_workers) == len(TEXTS)
    for one, other in zip(here, there, strict=True):
        assert one.scores.keys() == other.scores.keys()
        for name, scores in one.scores.items():
            np.testing.assert_allclose(other.scores[name], scores, rtol=1e-5, atol=1e-5)
        assert other.classifier == one.classifier
        assert other.quality.n_queries == one.quality.n_queries
        assert other.quality.n_tokens == one.quality.n_tokens


def test_a_worker_sends_no_call_without_a_query(bundled):
    """What is asked once more to see whether answers repeat is a call of its own."""

    class Measuring(OnDevice):
        def logits(self, asked):
            self.calls += [len(queries) for _, queries in asked]
            return self.classifier.logits(asked)

    elsewhere = Measuring(bundled)
    slalom.explain_many(elsewhere, TEXTS, "slalom-fast", n_queries=120, progress=False)
    assert sorted(elsewhere.calls) == [7] * len(TEXTS) + [113] * len(TEXTS)


def test_asking_on_until_sure_goes_there_too_and_the_inside_of_a_model_does_not(
    bundled, by_workers
):
    elsewhere = OnDevice(bundled)
    sure = slalom.explain_many(elsewhere, TEXTS[:2], max_error=0.3, progress=False)
    assert len(by_workers) == 2
    assert all("a standard error of at most" in e.quality.notes[-1] for e in sure)
    slalom.explain_many(elsewhere, TEXTS[:2], "integrated-gradients", progress=False)
    assert len(by_workers) == 2


def test_a_wrapper_that_reads_otherwise_is_asked_here(bundled, by_workers):
    slalom.explain_many(Reading(bundled), TEXTS[:2], "lime", n_queries=60, progress=False)
    assert not by_workers


def test_progress_counts_what_workers_asked(bundled):
    told = []
    found = slalom.explain_many(
        OnDevice(bundled), TEXTS, n_queries=100, progress=lambda *now: told.append(now)
    )
    assert told[0][1] == 300
    assert told[-1] == (sum(e.quality.n_queries for e in found),) * 2
    assert [done for done, _ in told] == sorted(done for done, _ in told)


def test_what_progress_raises_ends_the_work_and_workers_take_up_the_next(bundled):
    class StoppedError(Exception):
        pass

    def stop(done, total):
        raise StoppedError

    elsewhere = OnDevice(bundled)
    with pytest.raises(StoppedError):
        slalom.explain_many(elsewhere, TEXTS, n_queries=100, progress=stop)
    found = slalom.explain_many(elsewhere, TEXTS, n_queries=100, progress=False)
    assert [e.text for e in found] == TEXTS


def test_an_error_is_raised_or_stands_in_the_place_of_the_text_it_belongs_to(bundled, by_workers):
    with pytest.raises(ClassifierError, match="not this one"):
        slalom.explain_many(Refusing(bundled), TEXTS, n_queries=100, progress=False)
    kept = slalom.explain_many(
        Refusing(bundled), TEXTS, n_queries=100, progress=False, on_error="keep"
    )
    assert len(by_workers) == 6
    assert isinstance(kept[1], ClassifierError)
    assert [e.text for e in (kept[0], kept[2])] == [TEXTS[0], TEXTS[2]]


def test_an_error_of_a_class_that_cannot_be_sent_says_the_same(bundled):
    class TheirError(ClassifierError):
        def __init__(self, reason, code):
            super().__init__(f"{reason}: {code}")

    class Broken(OnDevice):
        def logits(self, asked):
            raise TheirError("out of order", 7)

    kept = slalom.explain_many(
        Broken(bundled), TEXTS, n_queries=100, progress=False, on_error="keep"
    )
    assert [str(one) for one in kept] == ["out of order: 7"] * 3


def test_a_method_that_refuses_a_text_says_so_from_a_worker(bundled):
    with pytest.raises(BudgetError, match="3 queries are too few"):
        slalom.explain_many(OnDevice(bundled), TEXTS, n_queries=3, progress=False)


def test_a_killed_worker_is_an_error_and_not_a_wait_without_end(bundled):
    class Killing(OnDevice):
        def logits(self, asked):
            for worker in list(pool.shared.pids):
                with suppress(ProcessLookupError):  # it may be dead already
                    os.kill(worker, signal.SIGKILL)
            return super().logits(asked)

    with pytest.raises(Exception, match="worker"):
        slalom.explain_many(Killing(bundled), TEXTS, n_queries=100, progress=False)
    assert len(slalom.explain_many(OnDevice(bundled), TEXTS[:2], n_queries=60, progress=False)) == 2


def test_who_calls_after_the_end_is_told(bundled):
    """A worker that asks for a run nobody waits for gets an answer, not silence."""
    with workers.call_queue(OnDevice(bundled)) as queue:
        pass
    document = bundled.split(TEXTS[0])
    said = queue._reply(None, asked_about(document))
    assert "nobody waits" in str(said)


def test_who_waits_when_it_ends_is_told(bundled):
    """On a CPU nobody answers but who waits for results, and nobody does."""
    document = bundled.split(TEXTS[0])
    asked = asked_about(document)
    with ThreadPoolExecutor(1) as threads:
        with workers.call_queue(bundled) as queue:
            waiting = threads.submit(queue._reply, None, asked)
            while queue.events.empty():
                sleep(0.001)
        assert "nobody waits" in str(waiting.result(10))


def test_what_is_dropped_halfway_is_given_up(bundled, monkeypatch):
    """Chunks of ten texts; eight of them are at work when the first is finished."""
    monkeypatch.setattr(methods, "QUERIES_PER_CHUNK", 600)
    elsewhere = OnDevice(bundled)
    found = slalom.explain_each(elsewhere, TEXTS * 40, "slalom-fast", n_queries=60)
    next(found)
    n_asked = sum(elsewhere.calls)
    found.close()
    assert sum(elsewhere.calls) - n_asked < 60  # of 140 or so: two for each text


def test_an_outline_reads_what_the_classifier_reads_and_cannot_answer(bundled):
    document = bundled.split(TEXTS[0])
    outline = bundled.outline
    assert outline.seen(document, document.full()) == bundled.seen(document, document.full())
    assert (outline.name, outline.labels) == (bundled.name, bundled.labels)
    with pytest.raises(slalom.SlalomError, match="without its tokenizer"):
        outline.split(TEXTS[0])
    with pytest.raises(slalom.SlalomError, match="without its model"):
        outline.logits([(document, document.full())])


def test_a_worker_takes_a_few_documents_and_keeps_their_order(bundled, by_workers, monkeypatch):
    monkeypatch.setattr(workers, "PER_WORKER", 2)
    monkeypatch.setattr(workers, "TASKS_PER_CHUNK", 1)
    elsewhere = OnDevice(bundled)
    found = slalom.explain_many(elsewhere, TEXTS, "slalom-fast", n_queries=60, progress=False)
    assert [len(documents) for *_, documents in by_workers] == [2, 1]
    assert [e.text for e in found] == TEXTS
    assert max(elsewhere.calls) > 1  # asked together


def test_those_that_take_long_go_first_and_results_stay_in_place(bundled, by_workers):
    texts = ["Dull.", *TEXTS, "Not bad at all"]
    found = slalom.explain_many(
        OnDevice(bundled), texts, "slalom-fast", n_queries=20, progress=False
    )
    sizes = [documents[0].n_features for *_, documents in by_workers]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] > sizes[-1]
    assert [one.text for one in found] == texts


def test_few_documents_are_shared_among_more_workers(bundled, by_workers, monkeypatch):
    monkeypatch.setattr(workers, "PER_WORKER", 4)
    many = {"method": "lime", "n_queries": 100, "progress": False}
    slalom.explain_many(OnDevice(bundled), TEXTS * 20, **many)
    sizes = [len(documents) for *_, documents in by_workers]
    assert sizes == [4] * 15  # chunks of 20: a tenth of the queries would be fewer than a step
    by_workers.clear()
    monkeypatch.setattr(driver, "QUERIES_PER_STEP", 100)
    slalom.explain_many(OnDevice(bundled), TEXTS * 32, **many)
    sizes = [len(documents) for *_, documents in by_workers]
    assert set(sizes) == {2}  # ten chunks
    assert sum(sizes) == 96


def test_an_error_of_one_document_is_not_that_of_its_neighbours(bundled, monkeypatch):
    monkeypatch.setattr(workers, "PER_WORKER", 3)
    monkeypatch.setattr(workers, "TASKS_PER_CHUNK", 1)
    kept = slalom.explain_many(
        Refusing(bundled), TEXTS, "slalom-fast", n_queries=60, progress=False, on_error="keep"
    )
    assert [isinstance(one, ClassifierError) for one in kept] == [False, True, False]


@pytest.fixture
def on_device(bundled, monkeypatch):
    """The bundled classifier itself, as if it ran on a device."""
    monkeypatch.setattr(HuggingFaceClassifier, "runs_elsewhere", True)


@pytest.mark.usefixtures("on_device")
def test_windows_of_long_texts_and_pairs_go_there_too(bundled, by_workers):
    texts = [f"{TEXTS[0]} " * 60, (TEXTS[1], TEXTS[2])]
    asked = {"n_queries": 60, "units": "sentence", "too_long": "windows", "progress": False}
    there = slalom.explain_many(bundled, texts, "lime", **asked)
    assert len(by_workers) == 2
    here = [slalom.explain(bundled, text, "lime", **asked) for text in texts]
    for one, other in zip(here, there, strict=True):
        for name, scores in one.scores.items():
            np.testing.assert_allclose(other.scores[name], scores, rtol=1e-5, atol=1e-5)


@pytest.mark.usefixtures("on_device")
def test_progress_counts_queries_and_not_windows(bundled):
    told = []
    texts = [f"{text} " * 60 for text in TEXTS[:2]]
    found = slalom.explain_many(
        bundled,
        texts,
        "lime",
        n_queries=60,
        units="sentence",
        too_long="windows",
        progress=lambda *now: told.append(now),
    )
    assert told[-1] == (sum(e.quality.n_queries for e in found),) * 2


def test_what_breaks_is_told_where_it_belongs(bundled):
    """Calls of three workers; one of them cannot be answered."""
    told, said = [], []
    with workers.call_queue(Refusing(bundled)) as queue:
        for text in TEXTS:
            said.append(queue._reply(told.append, asked_about(bundled.split(text))))
    assert [isinstance(one, ClassifierError) for one in said] == [False, True, False]
    assert told == [1, 1]


@pytest.mark.parametrize("gives", ["logits", "probabilities"])
def test_functions_are_explained_by_workers_too(by_workers, gives):
    """What they note is found out here: probabilities of 1 were clipped."""

    def f(texts):
        good = np.array([float("good" in text) for text in texts])
        return np.stack([1 - good, good], axis=1)

    classifier = slalom.FunctionClassifier(f, labels=["no", "yes"], gives=gives)
    texts = [f"a good film about {n} bad good things" for n in range(4)]
    wanted = {"n_queries": 60, "progress": False}
    there = slalom.explain_many(classifier, texts, "lime", **wanted)
    assert by_workers
    for one, text in zip(there, texts, strict=True):
        assert one == slalom.explain(classifier, text, "lime", n_queries=60)
        assert any("clipped" in note for note in one.quality.notes) == (gives == "probabilities")


def test_phrases_are_split_here_and_explained_there(bundled, by_workers):
    wanted = {"n_queries": 90, "progress": False, "units": "phrase"}
    there = slalom.explain_many(OnDevice(bundled), TEXTS, **wanted)
    assert len(by_workers) == len(TEXTS)
    for one, text in zip(there, TEXTS, strict=True):
        here = slalom.explain(bundled, text, **wanted)
        assert one.units == here.units
        assert one.quality.n_queries == here.quality.n_queries
        np.testing.assert_allclose(one.scores["removal"], here.scores["removal"], atol=1e-5)
