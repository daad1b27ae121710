"""Fits and posteriors on the device that answers, in this process or in one of their own."""

import os
import time
from multiprocessing.connection import Listener
from threading import Thread

import numpy as np
import pytest

import slalom
from slalom.classifiers.base import Delegating
from slalom.explainers import device_process as module
from slalom.explainers import workers
from slalom.explainers.accelerated import fits_together, posteriors_together
from slalom.explainers.device_process import DeviceClient, DeviceProcess, LastCall, accept_callers
from slalom.surrogates import pool
from slalom.surrogates.slalom.on_device import posteriors

TEXTS = [
    "a wonderful little film with a terrible ending",
    "not bad at all , though far too long for what it has to say",
    "boring",
]


@pytest.fixture(scope="module")
def bundled():
    return slalom.load()


class Accelerated(Delegating):
    """As if the model ran on a GPU that has time to spare; here that is torch on the CPU."""

    runs_elsewhere = True
    accelerator = spare_accelerator = "cpu"

    def __init__(self, classifier):
        self.classifier = classifier

    def logits(self, asked):
        return self.classifier.logits(asked)


@pytest.fixture
def asked(monkeypatch):
    """What is asked of a process that is this one: (name, number of documents)."""
    calls = []
    listener = Listener(authkey=b"key")

    def noted(name, compute):
        def computed(given, *, patient):
            calls.append((name, len(given)))
            return compute(given, patient=patient)

        return computed

    computing = {
        "fits": noted("fits", fits_together("cpu")),
        "posteriors": noted("posteriors", posteriors_together("cpu")),
    }
    served = (listener, computing, LastCall())
    Thread(target=accept_callers, args=served, daemon=True).start()
    there = DeviceProcess("cpu")
    monkeypatch.setattr(there, "ready", lambda: DeviceClient(listener.address, b"key"))
    monkeypatch.setattr(workers, "device_process", lambda device: there)
    monkeypatch.setattr(workers, "PER_WORKER", 2)
    monkeypatch.setattr(workers, "worthwhile", lambda shapes: True)
    monkeypatch.setattr(pool, "_cores", lambda: 2)
    return calls


def assert_same(one, other):
    shown = np.random.default_rng(0).random((20, len(one.units))) < 0.5
    np.testing.assert_allclose(one.predict(shown), other.predict(shown), atol=1e-6)
    for name, scores in other.scores.items():
        np.testing.assert_allclose(one.scores[name], scores, atol=1e-6)
    for name, errors in other.errors.items():
        np.testing.assert_allclose(one.errors[name], errors, atol=1e-6)
    assert one.quality.r2 == pytest.approx(other.quality.r2, abs=1e-6)


@pytest.mark.parametrize("target", [None, "all"])
@pytest.mark.parametrize("method", ["slalom", "slalom-fast"])
def test_workers_ask_for_fits_and_posteriors(bundled, asked, target, method):
    wanted = {"n_queries": 150, "target": target, "progress": False}
    there = slalom.explain_many(Accelerated(bundled), TEXTS, method, **wanted)
    fitted = sum(size for name, size in asked if name == "fits")
    assert fitted == 2  # of the shortest every part is asked: there is nothing to search
    assert ("posteriors", 2) in asked or method == "slalom-fast"
    for one, text in zip(there, TEXTS, strict=True):
        assert_same(one, slalom.explain(bundled, text, method, **wanted))


def test_methods_without_a_search_are_fitted_by_workers(bundled, asked):
    wanted = {"method": "permutation-shapley", "n_queries": 150, "progress": False}
    there = slalom.explain_many(Accelerated(bundled), TEXTS[:2], **wanted)
    assert asked == []
    other = slalom.explain(bundled, TEXTS[0], **wanted)
    for name, scores in other.scores.items():
        np.testing.assert_allclose(there[0].scores[name], scores, atol=1e-6)


def test_one_text_uses_the_device_for_its_posterior(bundled, monkeypatch):
    sizes, plain = [], posteriors.posteriors_on

    def noted(device, given):
        sizes.append(len(given))
        return plain(device, given)

    monkeypatch.setattr(posteriors, "posteriors_on", noted)
    slalom.explain(Accelerated(bundled), TEXTS[0], n_queries=150, progress=False)
    assert sizes == [1]


@pytest.mark.parametrize("problem", [RuntimeError("CUDA out of memory"), ValueError("odd")])
def test_a_device_that_cannot_compute_costs_time_and_nothing_else(
    bundled, asked, monkeypatch, problem
):
    from slalom.surrogates.slalom.on_device import fits

    def refuse(device, given):
        raise problem

    monkeypatch.setattr(posteriors, "posteriors_on", refuse)
    monkeypatch.setattr(fits, "fits_on", refuse)
    wanted = {"n_queries": 150, "progress": False}
    for one in slalom.explain_many(Accelerated(bundled), TEXTS, **wanted):
        assert_same(one, slalom.explain(bundled, one.text, **wanted))
    assert asked


def test_nobody_there_is_no_error():
    listener = Listener(authkey=b"key")
    address = listener.address
    listener.close()
    assert DeviceClient(address, b"key").fits([]) is None
    assert DeviceClient(address, b"key").posteriors([]) is None


def ready(process):
    end = time.monotonic() + 60
    while (client := process.ready()) is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    return client


def test_the_process_itself():
    process = DeviceProcess("cpu")
    assert process.ready() is None  # it takes a second or more
    client = ready(process)
    assert client.fits([]) == []
    assert client.posteriors([]) == []
    assert process.ready() is client  # the same one, as long as it lives
    number = process.process.pid
    process.process.stdin.close()  # as when whoever started it ends
    assert process.process.wait(timeout=30) == 0
    assert client.fits([]) is None
    again = ready(process)
    assert process.process.pid != number
    assert again.fits([]) == []
    process.close()
    assert again.fits([]) is None
    process.close()  # twice is not too often


def test_it_ends_when_nobody_calls(monkeypatch):
    ended = []
    monkeypatch.setattr(os, "_exit", ended.append)
    naps = []
    monkeypatch.setattr(module, "sleep", naps.append)
    last = LastCall()
    monkeypatch.setattr(module, "monotonic", iter([last.seconds + 2, last.seconds + 9]).__next__)
    last.end_after(5.0)
    assert naps == [pytest.approx(3.0)]
    assert ended == [0]
