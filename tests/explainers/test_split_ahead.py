"""Texts split by workers are the same documents, in their order, with errors in their places."""

import tempfile
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from time import sleep
from typing import Any

import pytest

import slalom
from slalom.classifiers.base import Delegating
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.document import Document
from slalom.errors import InputError, UnknownNameError
from slalom.explainers import splitting
from slalom.explainers.execution import pool, workers
from slalom.explainers.splitting import Splitting, _alike
from tokenizers_made_here import ARCHITECTURES, TEXTS, made

MANY = [f"{text} And {number} more." for number in range(6) for text in TEXTS]


@pytest.fixture(scope="module")
def bundled() -> Any:
    return slalom.load()


@pytest.fixture(autouse=True)
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Small groups; what went to workers: two texts on trial, then all but the first four."""
    monkeypatch.setattr(splitting, "SPLIT_HERE", 2)
    monkeypatch.setattr(splitting, "TEXTS_PER_TASK", 3)
    monkeypatch.setattr(splitting, "AHEAD", 2)
    monkeypatch.setattr(splitting, "SLOW_SECONDS", 10.0)
    monkeypatch.setattr(pool, "cores", lambda: 2)
    given: list[Any] = []
    plain = splitting.submit

    def submit(work: Any, item: Any) -> Any:
        given.append(item[1])
        future = plain(work, item)
        if len(given) == 1:  # the trial ends while the next text is split here
            future.exception()
        return future

    monkeypatch.setattr(splitting, "submit", submit)
    return given


def split_by(classifier: Any, texts: Any, units: Any = None, too_long: str = "error") -> list[Any]:
    return list(Splitting(classifier, units, too_long, lambda documents: True).each(texts))


@pytest.mark.parametrize("units", [None, "token", "sentence"])
def test_documents_and_errors_are_those_that_are_made_here(
    bundled: Any, sent: list[Any], units: Any
) -> None:
    texts = [*MANY[:7], "  ", *MANY[7:12], "word " * 600, ("one side", "and another"), MANY[13]]
    found = split_by(bundled, texts, units)
    assert sent[0] == texts[:2]
    assert [one for group in sent[1:] for one in group] == texts[4:]
    for text, one in zip(texts, found, strict=True):
        if isinstance(one, Document):
            assert _alike(one, bundled.split(text, units))
        else:
            with pytest.raises(InputError) as expected:
                bundled.split(text, units)
            assert str(one) == str(expected.value)
    assert [isinstance(one, InputError) for one in found].count(True) == 2


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_a_tokenizer_in_a_file_splits_as_its_owner_does(architecture: str, tmp_path: Path) -> None:
    classifier = made(architecture)
    classifier.tokenizer.backend_tokenizer.enable_truncation(4)
    try:
        splitter = classifier.splitter(tmp_path)
        assert classifier.tokenizer.backend_tokenizer.truncation["max_length"] == 4
    finally:
        classifier.tokenizer.backend_tokenizer.no_truncation()
    for text in (*MANY, ("A great film", "bad"), "caf\u00e9\n\n  \u6f22\u5b57 \U0001f642"):
        for units in (None, "token"):
            assert _alike(splitter.split(text, units), classifier.split(text, units))


@pytest.mark.parametrize("too_long", ["truncate", "windows"])
def test_long_texts_are_cut_or_read_in_windows_there_too(
    bundled: Any, sent: list[Any], too_long: str
) -> None:
    texts = [*MANY[:4], "a good film " * 400, *MANY[4:6]]
    found = split_by(bundled, texts, "word", too_long)
    assert sent
    assert _alike(found[4], bundled.split(texts[4], "word", too_long=too_long))
    assert found[4].notes


def test_a_wrong_setting_is_the_error_that_it_is_here(bundled: Any, sent: list[Any]) -> None:
    for units, too_long in (("letter", "error"), (None, "anyhow")):
        with pytest.raises(UnknownNameError):
            split_by(bundled, MANY, units, too_long)


class Shouting(Delegating):
    """Splits otherwise than what it wraps."""

    def __init__(self, classifier: Any) -> None:
        self.classifier = classifier

    def split(self, text: Any, units: Any = None, *, too_long: str = "error") -> Document:
        return self.classifier.split(text.upper(), units, too_long=too_long)


class Above(HuggingFaceClassifier):
    """Of a class that can split in workers."""

    def split(self, text: Any, units: Any = None, *, too_long: str = "error") -> Document:
        return super().split(text.upper(), units, too_long=too_long)


def test_whoever_splits_otherwise_does_it_here(bundled: Any, sent: list[Any]) -> None:
    for classifier in (Shouting(bundled), Above(bundled.model, bundled.tokenizer)):
        found = split_by(classifier, MANY)
        assert [one.text for one in found] == [text.upper() for text in MANY]
    assert not sent


class Odd(HuggingFaceClassifier):
    """Writes a tokenizer that is not quite its own."""

    def split(self, text: Any, units: Any = None, *, too_long: str = "error") -> Document:
        return super().split(text.upper(), units, too_long=too_long)

    def splitter(self, folder: Path) -> Any:
        return super().splitter(folder)


def test_who_splits_otherwise_on_trial_is_not_asked_again(bundled: Any, sent: list[Any]) -> None:
    found = split_by(Odd(bundled.model, bundled.tokenizer), MANY)
    assert [one.text for one in found] == [text.upper() for text in MANY]
    assert sent == [MANY[:2]]


def test_what_a_worker_cannot_do_is_done_here(
    bundled: Any, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = splitting.submit

    def failing(work: Any, item: Any) -> Any:
        return plain(_broken if sent else work, item)

    monkeypatch.setattr(splitting, "submit", failing)
    found = split_by(bundled, MANY)
    assert len(sent) > 3
    assert [one.text for one in found] == MANY


def test_a_trial_that_fails_or_takes_long_changes_nothing(
    bundled: Any, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = splitting.submit
    monkeypatch.setattr(splitting, "submit", lambda work, item: plain(_broken, item))
    assert [one.text for one in split_by(bundled, MANY)] == MANY
    monkeypatch.setattr(splitting, "submit", lambda work, item: pool.submit(_sleep, 0.5))
    assert [one.text for one in split_by(bundled, MANY)] == MANY
    assert len(sent) == 1


def _sleep(seconds: float, ask: Any) -> None:
    sleep(seconds)


def _broken(given: Any, ask: Any) -> None:
    raise OSError("no such file")


def test_nobody_waits_for_texts_that_come_slowly(
    bundled: Any, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(splitting, "SLOW_SECONDS", 0.01)
    read: list[int] = []

    def slowly() -> Iterator[str]:
        for number in count():
            sleep(0.02 if number > 7 else 0)
            read.append(number)
            yield f"text number {number}"

    found = Splitting(bundled, None, "error", lambda documents: True).each(slowly())
    for number in range(20):
        document = next(found)
        assert isinstance(document, Document)
        assert document.text == f"text number {number}"
        assert len(read) <= max(9, number + 2)  # one group was at work when they became slow
    assert len(sent) <= 4


def test_an_endless_source_may_be_left(bundled: Any, sent: list[Any]) -> None:
    before = set(Path(tempfile.gettempdir()).glob("slalom-*"))
    documents = Splitting(bundled, None, "error", lambda found: True).each(
        f"text number {number}" for number in count()
    )
    assert len(list(islice(documents, 12))) == 12
    assert set(Path(tempfile.gettempdir()).glob("slalom-*")) != before
    documents.close()  # type: ignore[attr-defined]
    assert set(Path(tempfile.gettempdir()).glob("slalom-*")) == before
    assert 3 <= len(sent) <= 7


@pytest.mark.parametrize("method", ["slalom-fast", "slalom"])
def test_explanations_are_the_same(
    bundled: Any, sent: list[Any], monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    here = slalom.explain_many(bundled, MANY[:8], method, n_queries=120, progress=False)
    assert not sent
    monkeypatch.setattr(workers, "WORTHWHILE", 0)
    monkeypatch.setattr(workers, "cores", lambda: 2)
    monkeypatch.setattr(HuggingFaceClassifier, "runs_elsewhere", True)
    texts: list[Any] = [*MANY[:5], "", *MANY[5:8]]
    there = slalom.explain_many(
        bundled, texts, method, n_queries=120, progress=False, on_error="keep"
    )
    assert len(sent) == 3  # a trial, and five texts in two groups
    assert str(there.pop(5)).startswith("text 5: the text is empty")
    for one, other in zip(here, there, strict=True):
        assert one.units == other.units
        for name, scores in one.scores.items():
            assert scores == pytest.approx(other.scores[name], rel=1e-5, abs=1e-5)
    with pytest.raises(InputError, match="text 5: the text is empty"):
        slalom.explain_many(bundled, texts, method, n_queries=120, progress=False)


def test_a_method_that_runs_here_starts_no_worker(
    bundled: Any, sent: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers, "WORTHWHILE", 0)
    monkeypatch.setattr(workers, "cores", lambda: 2)
    monkeypatch.setattr(HuggingFaceClassifier, "runs_elsewhere", True)
    slalom.explain_many(bundled, MANY[:6], "integrated-gradients", progress=False)
    assert not sent
