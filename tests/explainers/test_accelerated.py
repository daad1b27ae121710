"""Posteriors on the device that answers: several threads, one batch."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import pytest

import slalom
from slalom.classifiers.base import Delegating
from slalom.explainers import accelerated, workers
from slalom.explainers.accelerated import Combined, posteriors_by
from slalom.surrogates import pool
from slalom.surrogates.slalom import posterior_on_device

TEXTS = [
    "A slow start, but a truly wonderful film about two brothers and a boat.",
    "What a terrible waste of an evening, and of the money it cost us as well.",
    "The plot is thin, the acting is wooden, yet somehow I laughed all the way.",
]


def test_those_who_wait_are_served_together():
    begun, go_on, batches = Event(), Event(), []

    def compute(given):
        batches.append(list(given))
        begun.set()
        assert go_on.wait(10)
        return [f"of {one}" for one in given]

    combined = Combined(compute)
    with ThreadPoolExecutor(3) as threads:
        first = threads.submit(combined, ["a"])
        assert begun.wait(10)
        others = [threads.submit(combined, names) for names in (["b", "c"], ["d"])]
        while len(combined.waiting) < 2:
            pass
        go_on.set()
        assert first.result() == ["of a"]
        assert [other.result() for other in others] == [["of b", "of c"], ["of d"]]
    assert sorted(map(sorted, batches)) == [["a"], ["b", "c", "d"]]


def test_who_is_patient_waits_for_others_unless_there_are_enough(monkeypatch):
    naps = []
    monkeypatch.setattr(accelerated, "sleep", naps.append)
    combined = Combined(lambda given: [f"of {one}" for one in given])
    assert combined(["a"], patient=True) == ["of a"]
    assert naps == [accelerated.PATIENCE]
    assert len(combined(list("abcdefghijkl"), patient=True)) == accelerated.ENOUGH_DOCUMENTS
    assert combined(["a"]) == ["of a"]
    assert len(naps) == 1


def test_a_failure_is_everybodys_and_soon_forgotten():
    outcomes = [None, ["of b"]]
    combined = Combined(lambda given: outcomes.pop(0))
    assert combined(["a"]) is None
    assert combined(["b"]) == ["of b"]


def test_a_classifier_without_a_device_has_no_posteriors():
    assert posteriors_by(object()) is None


class Accelerated(Delegating):
    """As if the model ran on a GPU that can do other work; here that is torch on the CPU."""

    runs_elsewhere = True
    accelerator = "cpu"

    def __init__(self, classifier):
        self.classifier = classifier

    def logits(self, asked):
        return self.classifier.logits(asked)


@pytest.fixture(scope="module")
def bundled():
    return slalom.load()


@pytest.fixture
def by_workers(monkeypatch):
    """However small the work is, and however few cores there are."""
    monkeypatch.setattr(workers, "worthwhile", lambda shapes: True)
    monkeypatch.setattr(workers, "PER_WORKER", 1)
    monkeypatch.setattr(pool, "_cores", lambda: 2)


@pytest.fixture
def posterior_batches(monkeypatch):
    """How many documents each batch of posteriors was made for."""
    sizes = []
    plain = posterior_on_device.posteriors_on

    def noted(device, given):
        sizes.append(len(given))
        return plain(device, given)

    monkeypatch.setattr(posterior_on_device, "posteriors_on", noted)
    return sizes


@pytest.mark.parametrize("target", [None, "all"])
def test_posteriors_come_from_the_device_that_answers(
    bundled, by_workers, posterior_batches, target
):
    wanted = {"n_queries": 150, "target": target, "progress": False}
    there = slalom.explain_many(Accelerated(bundled), TEXTS, **wanted)
    assert sum(posterior_batches) == len(TEXTS)
    for one, text in zip(there, TEXTS, strict=True):
        other = slalom.explain(bundled, text, **wanted)
        shown = np.random.default_rng(0).random((20, len(one.units))) < 0.5
        np.testing.assert_allclose(one.predict(shown), other.predict(shown), atol=1e-6)
        for name in ("shapley", "removal"):
            np.testing.assert_allclose(one.scores[name], other.scores[name], atol=1e-6)
            np.testing.assert_allclose(one.errors[name], other.errors[name], atol=1e-6)
        assert one.quality.r2 == pytest.approx(other.quality.r2, abs=1e-6)


def test_one_text_uses_the_device_too(bundled, posterior_batches):
    slalom.explain(Accelerated(bundled), TEXTS[0], n_queries=150, progress=False)
    assert posterior_batches == [1]


@pytest.mark.parametrize("problem", [RuntimeError("CUDA out of memory"), ValueError("odd")])
def test_a_device_that_cannot_compute_costs_time_and_nothing_else(
    bundled, by_workers, monkeypatch, problem
):
    def refuse(device, given):
        raise problem

    monkeypatch.setattr(posterior_on_device, "posteriors_on", refuse)
    accelerated = Accelerated(bundled)
    for one in slalom.explain_many(accelerated, TEXTS, n_queries=150, progress=False):
        other = slalom.explain(bundled, one.text, n_queries=150, progress=False)
        np.testing.assert_allclose(one.scores["shapley"], other.scores["shapley"], atol=1e-6)
