"""Fits and posteriors on the device that answers, in this process or in one of their own."""

import os
import time
from multiprocessing.connection import Client, Listener
from threading import Event, Thread

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

    def noted(name, compute):
        def computed(given):
            calls.append((name, len(given)))
            return compute(given)

        return computed

    work = {
        "fits": noted("fits", lambda given: fits.fits_on("cpu", given)),
        "posteriors": noted("posteriors", lambda given: posteriors_or_none("cpu", given)),
    }
    listeners = [Listener(authkey=b"key") for _ in work]
    for listener, compute in zip(listeners, work.values(), strict=True):
        Thread(target=DeviceServer(listener, compute, 99).serve, daemon=True).start()
    client = DeviceClient(*((listener.address,) for listener in listeners), b"key")
    there = DeviceProcesses.on("cpu", 0, 0)
    monkeypatch.setattr(there, "ready", lambda: client)
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
    for client in (DeviceClient((address,), (address,), b"key"), DeviceClient((), (), b"key")):
        assert client.fits([]) is None
        assert client.posteriors([]) is None


def ready(processes):
    end = time.monotonic() + 60
    while not (client := processes.ready()).fitting:
        assert time.monotonic() < end
        time.sleep(0.05)
    return client


def test_a_process_itself():
    processes = DeviceProcesses.on("cpu", 1, 0)
    assert not processes.ready().fitting  # it takes a second or more
    client = ready(processes)
    assert client.fits([]) == []
    assert client.posteriors([]) is None  # there is none for them
    assert processes.ready() == client  # the same one, as long as it lives
    first = processes.fitting[0].process
    first.stdin.close()  # as when whoever started it ends
    assert first.wait(timeout=30) == 0
    assert client.fits([]) is None
    again = ready(processes)
    assert again.fitting != client.fitting
    assert again.fits([]) == []
    processes.close()
    assert again.fits([]) is None
    processes.close()  # twice is not too often


def test_several_processes_share_the_workers(monkeypatch):
    one, other = (DeviceProcess("fits", "cpu", b"key") for _ in range(2))
    processes = DeviceProcesses([one, other], [], b"key")
    monkeypatch.setattr(one, "ready", lambda: "here")
    monkeypatch.setattr(other, "ready", lambda: None)
    assert processes.ready().fitting == ("here",)  # until the other one is there, too
    monkeypatch.setattr(other, "ready", lambda: "there")
    asked = []
    monkeypatch.setattr(module, "_connected", lambda address, key: asked.append(address))
    for number in (4, 5):
        monkeypatch.setattr(os, "getpid", lambda number=number: number)
        with pytest.raises(AttributeError):  # nobody is there
            processes.ready().fits([])
    assert asked == ["here", "there"]


@pytest.fixture
def server(monkeypatch):
    """One that says what it computed, and whose computing can be held up."""
    monkeypatch.setattr(module, "IDLE_SECONDS", 1.0)
    begun, go_on, batches = Event(), Event(), []

    def compute(given):
        begun.set()
        assert go_on.wait(10)
        batches.append(sorted(given))
        if "bad" in given:
            raise ValueError("odd")
        return [f"of {one}" for one in given]

    listener = Listener(authkey=b"key")
    made = DeviceServer(listener, compute, 3)
    made.begun, made.go_on, made.batches = begun, go_on, batches
    made.thread = Thread(target=made.serve, daemon=True)
    made.thread.start()
    yield made
    go_on.set()
    listener.close()


def asking(server, given):
    """A caller that has been told whether there is time, and has sent what it wants then."""
    end = Client(server.listener.address, authkey=b"key")
    end.send(len(given))
    has_time = end.recv()
    if has_time:
        end.send(given)
    return end, has_time


def test_calls_are_computed_together_while_others_do_it_themselves(server):
    first, _ = asking(server, ["a"])
    assert server.begun.wait(10)
    ends = [asking(server, given) for given in (["b", "c"], ["d"], ["e"])]
    assert [has_time for _, has_time in ends] == [True, True, False]  # three may wait
    server.go_on.set()
    assert first.recv() == ["of a"]
    assert [end.recv() for end, _ in ends[:2]] == [["of b", "of c"], ["of d"]]
    assert server.batches == [["a"], ["b", "c", "d"]]
    large, has_time = asking(server, list("fghijk"))
    assert has_time  # nobody waits: it may be as large as it is
    assert len(large.recv()) == 6
    for end in (first, large, *(end for end, _ in ends)):
        end.close()


def test_failures_and_workers_that_are_gone(server):
    server.go_on.set()
    end, _ = asking(server, ["bad"])
    assert end.recv() is None  # who called can do without
    gone = Client(server.listener.address, authkey=b"key")
    gone.send(3)
    assert gone.recv()
    gone.close()  # and never says what it wanted
    stop = time.monotonic() + 10
    while server.n_waiting and time.monotonic() < stop:
        time.sleep(0.01)
    assert server.n_waiting == 0
    end.send(1)
    assert end.recv()
    end.send(["a"])
    assert end.recv() == ["of a"]
    end.close()
    server.thread.join(timeout=30)  # nobody calls any more
    assert not server.thread.is_alive()
