"""Several threads, one batch."""

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from slalom.explainers.accelerated import Combined, posteriors_by


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


def test_a_failure_is_everybodys_and_soon_forgotten():
    outcomes = [None, ["of b"]]
    combined = Combined(lambda given: outcomes.pop(0))
    assert combined(["a"]) is None
    assert combined(["b"]) == ["of b"]


def test_a_classifier_without_a_device_has_no_posteriors():
    assert posteriors_by(object()) is None
