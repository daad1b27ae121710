"""Fits and posteriors on the device that answers, in this process or in one of their own."""

import os
import time
from multiprocessing.connection import Client, Listener
from threading import Thread

import numpy as np
import pytest

import slalom
from slalom.classifiers.base import Delegating
from slalom.explainers import device_process as module
from slalom.explainers import workers
from slalom.explainers.accelerated import posteriors_or_none
from slalom.explainers.device_process import (
    DeviceClient,
    DeviceProcess,
    DeviceProcesses,
    DeviceServer,
)
from slalom.surrogates import pool
from slalom.surrogates.slalom.on_device import fits, posteriors

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
        def computed(given):
            calls.append((name, len(given)))
            return compute(given)

        return computed

    computing = {
        "fits": noted("fits", lambda given: fits.fits_on("cpu", given)),
        "posteriors": noted("posteriors", lambda given: posteriors_or_none("cpu", given)),
    }
    server = DeviceServer(listener, computing)
    Thread(target=server.serve, daemon=True).start()
    there = DeviceProcesses.on("cpu", 1)
    monkeypatch.setattr(there, "ready", lambda: DeviceClient((listener.address,), b"key"))
    monkeypatch.setattr(workers, "device_processes", lambda device: there)
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
    assert DeviceClient((address,), b"key").fits([]) is None
    assert DeviceClient((address,), b"key").posteriors([]) is None


def ready(processes):
    end = time.monotonic() + 60
    while (client := processes.ready()) is None:
        assert time.monotonic() < end
        time.sleep(0.05)
    return client


def test_a_process_itself():
    processes = DeviceProcesses.on("cpu", 1)
    assert processes.ready() is None  # it takes a second or more
    client = ready(processes)
    assert client.fits([]) == []
    assert client.posteriors([]) == []
    assert processes.ready() == client  # the same one, as long as it lives
    first = processes.processes[0].process
    first.stdin.close()  # as when whoever started it ends
    assert first.wait(timeout=30) == 0
    assert client.fits([]) is None
    again = ready(processes)
    assert again.addresses != client.addresses
    assert again.fits([]) == []
    processes.close()
    assert again.fits([]) is None
    processes.close()  # twice is not too often


def test_several_processes_share_the_workers(monkeypatch):
    one, other = DeviceProcess("cpu", b"key"), DeviceProcess("cpu", b"key")
    processes = DeviceProcesses([one, other])
    monkeypatch.setattr(one, "ready", lambda: "here")
    monkeypatch.setattr(other, "ready", lambda: None)
    assert processes.ready() == DeviceClient(("here",), b"key")  # until the other one is there, too
    monkeypatch.setattr(other, "ready", lambda: "there")
    asked = []
    monkeypatch.setattr(module, "_connected", lambda address, key: asked.append(address))
    for number in (4, 5):
        monkeypatch.setattr(os, "getpid", lambda number=number: number)
        with pytest.raises(AttributeError):  # nobody is there
            processes.ready().fits([])
    assert asked == ["here", "there"]
    assert DeviceProcesses.on("cpu", 0).ready() is None


def called(server, address, name, given):
    """A call that has arrived, and the end at which its reply comes."""
    there = Client(address, authkey=b"key")
    there.send((name, given))
    return there


def test_calls_of_one_kind_are_computed_together_and_those_done_soon_come_first(monkeypatch):
    monkeypatch.setattr(module, "IDLE_SECONDS", 1.0)
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    batches = []

    def computing(name):
        def compute(given):
            batches.append((name, sorted(given)))
            if "bad" in given:
                raise ValueError("odd")
            return [f"{name} of {one}" for one in given]

        return compute

    listener = Listener(authkey=b"key")
    server = DeviceServer(listener, {name: computing(name) for name in ("soon", "late")})
    begun = time.monotonic()
    thread = Thread(target=server.serve, daemon=True)
    thread.start()
    ends = [
        called(server, listener.address, name, given)
        for name, given in (("late", ["a"]), ("soon", ["b", "c"]), ("late", ["d"]))
    ]
    assert [end.recv() for end in ends] == [
        ["late of a"],
        ["soon of b", "soon of c"],
        ["late of d"],
    ]
    assert batches == [("soon", ["b", "c"]), ("late", ["a", "d"])]
    ends[0].send(("late", ["bad"]))
    assert ends[0].recv() is None  # who called can do without
    ends[1].close()  # a worker that is gone is no error
    ends[0].send(("soon", ["e"]))
    assert ends[0].recv() == ["soon of e"]
    thread.join(timeout=30)  # nobody calls any more
    assert not thread.is_alive()
    assert time.monotonic() - begun > module.IDLE_SECONDS
    for end in (ends[0], ends[2]):
        end.close()
    listener.close()
