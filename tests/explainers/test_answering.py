"""Questions of several chunks, answered together; each call once, whatever breaks."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import Pipe
from pathlib import Path
from time import sleep

import numpy as np
import pytest

import slalom
from slalom.classifiers.base import Delegating
from slalom.errors import ClassifierError
from slalom.explainers import answering as module
from slalom.explainers.answering import (
    Call,
    CallArrived,
    ChunkQueue,
    QueriesAnswered,
    answer_server,
)
from slalom.temporary import LOCK, PREFIX


def test_what_it_leaves_when_it_is_killed_is_found_by_the_next():
    place = Path(answer_server().listener.address).parent
    assert place.name.startswith(PREFIX)
    assert (place / LOCK).exists()


def test_nothing_is_left_and_nothing_is_said_at_the_end(tmp_path):
    script = "from slalom.explainers.answering import answer_server\nanswer_server()"
    line, environment = [sys.executable, "-c", script], {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        line, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(tmp_path.iterdir())


def lengths(texts):
    return [[0.0, len(text)] for text in texts]


class Asked(Delegating):
    """Notes how many documents each question is about; says nothing of texts with "odd"."""

    def __init__(self):
        self.classifier = slalom.FunctionClassifier(lengths, labels=["a", "b"], gives="logits")
        self.n_documents = []

    def logits(self, asked):
        self.n_documents.append(len(asked))
        if any("odd" in document.text for document, _ in asked):
            raise ClassifierError("not this one")
        return self.classifier.logits(asked)


def called(waiter, text):
    """A worker's end of a call about the whole of a text."""
    worker, here = Pipe()
    document = waiter.classifier.split(text)
    waiter.calls.append(Call(here, [(document, document.full())], waiter))
    return worker


def came(waiter):
    found = []
    while not waiter.events.empty():
        found.append(waiter.events.get())
    return found


def test_there_is_one_server_whichever_thread_is_first(monkeypatch):
    opened = module._opened
    opened.cache_clear()
    monkeypatch.setattr(module.os, "urandom", lambda n: sleep(0.05) or bytes(n))
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda _: answer_server(), range(4)))
    assert len({id(one) for one in found}) == 1


def test_who_asks_the_same_classifier_is_answered_in_one_go():
    classifier, other = Asked(), Asked()
    first, second, apart = (ChunkQueue(one, False) for one in (classifier, classifier, other))
    with (
        answer_server().channel(first),
        answer_server().channel(second),
        answer_server().channel(apart),
    ):
        ends = [called(first, "good film"), called(second, "bad film"), called(second, "a film")]
        left = called(apart, "good film")
        answer_server().answer(first)
        assert classifier.n_documents == [3]
        alone = Asked()
        for end, text in zip(ends, ("good film", "bad film", "a film"), strict=True):
            document = alone.split(text)
            (said,) = end.recv()
            np.testing.assert_array_equal(said, alone.logits([(document, document.full())])[0])
        assert came(first) == [QueriesAnswered(1)]
        assert came(second) == [QueriesAnswered(1), QueriesAnswered(1)]
        assert not left.poll()
    assert "nobody waits" in str(left.recv())


@pytest.mark.parametrize("keep_errors", [True, False])
def test_what_breaks_is_told_where_it_belongs(keep_errors):
    classifier = Asked()
    sound, broken = ChunkQueue(classifier, keep_errors), ChunkQueue(classifier, keep_errors)
    with answer_server().channel(sound), answer_server().channel(broken):
        good, odd, fine = called(sound, "a film"), called(broken, "odd film"), called(broken, "a")
        calls = [*sound.calls, *broken.calls]  # who is forgotten hangs up
        answer_server().answer(sound)
        assert not good.poll()  # nobody knows yet whose fault it was
        assert (came(sound), came(broken)) == ([CallArrived()], [CallArrived(), CallArrived()])
        answer_server().answer(sound)
        assert isinstance(good.recv(), list)
        if keep_errors:
            answer_server().answer(broken)
            assert "not this one" in str(odd.recv())
            assert isinstance(fine.recv(), list)
        else:
            with pytest.raises(ClassifierError, match="not this one"):
                answer_server().answer(broken)
            assert all("nobody waits" in str(end.recv()) for end in (odd, fine))
    assert not any(end.poll() for end in (good, odd, fine)), calls


def test_a_turn_has_room_for_some_calls_and_its_own_come_first(monkeypatch):
    classifier = Asked()
    first, second = (ChunkQueue(classifier, False) for _ in range(2))
    with answer_server().channel(first), answer_server().channel(second):
        ends = [called(first, "good film"), called(second, "bad film"), called(second, "a film")]
        monkeypatch.setattr(module, "UNITS_PER_TURN", 4)
        answer_server().answer(second)
        assert classifier.n_documents == [2]
        assert [end.poll() for end in ends] == [False, True, True]
        monkeypatch.setattr(module, "UNITS_PER_TURN", 1)
        called(second, "no film")
        answer_server().answer(first)
        assert classifier.n_documents == [2, 1]
        assert ends[0].poll()
        assert len(second.calls) == 1
        answer_server().answer(second)
