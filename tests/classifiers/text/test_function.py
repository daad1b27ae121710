import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.naive_bayes import BernoulliNB

from slalom.classifiers.load import as_classifier
from slalom.classifiers.text.function import FunctionClassifier
from slalom.document import END, Document
from slalom.errors import ClassifierError, InputError, SlalomError, UnknownNameError
from texts import VISIBLE


def half(texts: list[str]) -> np.ndarray:
    return np.full((len(texts), 2), 0.5)


def shown(document: Document, *queries: list[int]) -> list[Any]:
    width = max(len(query) for query in queries)
    padded = [query + [int(END)] * (width - len(query)) for query in queries]
    return FunctionClassifier(half).seen(document, np.array(padded, dtype=np.int32))


# ── what is shown ────────────────────────────────────────────────────────────────────────────


@given(VISIBLE, st.sampled_from([None, "word", "sentence"]))
@settings(max_examples=150, deadline=None)
def test_the_full_query_is_the_original_text(text: str, units: str | None) -> None:
    classifier = FunctionClassifier(half)
    document = classifier.split(text, units)
    assert classifier.seen(document, document.full()) == [text]
    assert document.units == tuple(text[start:end] for start, end in document.spans)


@given(VISIBLE, st.data())
@settings(max_examples=100, deadline=None)
def test_every_query_shows_its_units_and_nothing_else(text: str, data: st.DataObject) -> None:
    document = FunctionClassifier(half).split(text)
    query = data.draw(st.lists(st.integers(0, document.n_units - 1), min_size=1, max_size=8))
    (seen,) = shown(document, query)
    assert "".join(seen.split()) == "".join("".join(document.units[u] for u in query).split())


def test_gaps_go_with_the_unit_that_follows() -> None:
    document = FunctionClassifier(half).split("  A slow start,\n\nbut (really) great!\n")
    assert document.units == ("A", "slow", "start", ",", "but", "(", "really", ")", "great", "!")
    assert shown(document, [1, 2], [2, 4], [0, 3, 9], [], [8, 9], [9, 8], [0, 0]) == [
        "slow start",
        "start\n\nbut",
        "  A , !\n",
        "",
        "great!\n",
        "! great",
        "  A  A",
    ]


def test_spans_are_units_and_the_rest_is_always_shown() -> None:
    document = FunctionClassifier(half).split("Hello there, general Kenobi.", [(6, 11), (13, 20)])
    assert document.units == ("there", "general")
    assert shown(document, [0, 1], [], [1], [0], [1, 0]) == [
        "Hello there, general Kenobi.",
        "Hello , Kenobi.",
        "Hello , general Kenobi.",
        "Hello there, Kenobi.",
        "Hello there, general Kenobi.",
    ]
    edges = FunctionClassifier(half).split(" good and bad ", [(1, 5), (10, 13)])
    assert shown(edges, [0, 1], []) == [" good and bad ", "and"]


def test_equal_words_are_one_feature() -> None:
    document = FunctionClassifier(half).split("bad bad Bad")
    assert document.features.tolist() == [0, 0, 1]
    assert document.keys == ("bad", "bad", "Bad")
    assert document.has_empty_query
    assert document.n_tokens(document.full()).tolist() == [3]


def test_one_unit_and_emoji_have_an_answer() -> None:
    assert FunctionClassifier(half).split("x").units == ("x",)
    assert FunctionClassifier(half).split("👨‍👩‍👧🇩🇪").units == ("👨‍👩‍👧", "🇩🇪")


# ── scores ───────────────────────────────────────────────────────────────────────────────────


def test_probabilities_become_logits() -> None:
    classifier = FunctionClassifier(lambda texts: np.tile([0.2, 0.3, 0.5], (len(texts), 1)))
    assert classifier.labels == ("0", "1", "2")
    np.testing.assert_allclose(classifier(["a", "b"]), np.log([[0.2, 0.3, 0.5]] * 2))


@pytest.mark.parametrize("shape", [(-1,), (-1, 1)])
def test_one_column_is_the_second_class(shape: tuple[int, ...]) -> None:
    column = FunctionClassifier(lambda texts: np.full(len(texts), 0.8).reshape(shape))
    np.testing.assert_allclose(np.exp(column(["a", "b"])), [[0.2, 0.8]] * 2)
    odds = FunctionClassifier(
        lambda texts: np.full(len(texts), -3.0).reshape(shape), gives="logits"
    )
    np.testing.assert_allclose(odds(["a", "b"]), [[0.0, -3.0]] * 2)
    assert odds.labels == ("0", "1")


def test_lists_and_tensors_will_do() -> None:
    for answer in ([[0.5, 0.5]], torch.tensor([[0.5, 0.5]], requires_grad=True)):
        np.testing.assert_allclose(
            FunctionClassifier(lambda _, a=answer: a)(["x"]), np.log([[0.5, 0.5]])
        )


def test_clipped_probabilities_are_remarked() -> None:
    classifier = FunctionClassifier(lambda texts: [0.0 if "bad" in text else 0.7 for text in texts])
    document = classifier.split("bad film")
    queries = np.array([[0], [1]], dtype=np.int32)
    (scores,) = classifier.logits([(document, queries)])
    np.testing.assert_allclose(scores[0], np.log([1 - 1e-6, 1e-6]))
    notes = classifier.remarks(document, queries, scores)
    assert notes == ("probabilities of 0 or 1 were clipped at 1e-6",)
    assert classifier.remarks(document, queries[1:], scores[1:]) == ()
    (of_labels,) = classifier.remarks(document, queries[:1], scores[:1])
    assert "there are no others; if these are labels, give probabilities instead" in of_labels
    logits = FunctionClassifier(half, gives="logits")
    assert logits.remarks(document, queries, np.full((2, 2), -99.0)) == ()


def test_what_people_pass_by_mistake_is_met_with_advice() -> None:
    words = FunctionClassifier(lambda texts: ["positive"] * len(texts))
    with pytest.raises(ClassifierError, match=r"if these are labels, .* predict_proba"):
        words(["a film"])
    numbers = FunctionClassifier(lambda texts: [None] * len(texts))
    with pytest.raises(ClassifierError, match=r"NaN|numbers") as caught:
        numbers(["a film"])
    assert "labels" not in str(caught.value)
    model = BernoulliNB().fit([[0, 1], [1, 0]], [0, 1])  # no vectorizer
    with pytest.raises(ClassifierError, match="a pipeline that begins with a vectorizer"):
        as_classifier(model)(["a film"])


def test_all_documents_are_asked_in_one_call() -> None:
    calls: list[list[str]] = []

    def f(texts: list[str]) -> np.ndarray:
        calls.append(texts)
        return half(texts)

    classifier = FunctionClassifier(f, labels=["no", "yes"])
    assert calls == []  # labels were given: nothing to find out
    documents = [classifier.split("a b"), classifier.split("c")]
    first, second = classifier.logits(
        [(documents[0], np.array([[0], [1], [END]], np.int32)), (documents[1], documents[1].full())]
    )
    assert first.shape == (3, 2)
    assert second.shape == (1, 2)
    assert calls == [["a", "b", "", "c"]]
    calls.clear()
    FunctionClassifier(f, labels=["no", "yes"], batch_size=3)(list("abcd"))
    assert [len(call) for call in calls] == [3, 1]


def test_the_number_of_classes_is_asked_once() -> None:
    calls: list[list[str]] = []

    def f(texts: list[str]) -> np.ndarray:
        calls.append(texts)
        return half(texts)

    classifier = FunctionClassifier(f)
    assert calls == []
    assert classifier.labels == classifier.labels == ("0", "1")
    assert len(calls) == 1


def test_nothing_asked_nothing_answered() -> None:
    classifier = FunctionClassifier(half)
    document = classifier.split("a")
    assert classifier.logits([]) == []
    assert classifier.logits([(document, np.zeros((0, 1), np.int32))])[0].shape == (0, 2)
    assert classifier([]).shape == (0, 2)


def test_it_pickles_and_has_a_name() -> None:
    classifier = FunctionClassifier(half)
    copied = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_array_equal(copied(["a"]), classifier(["a"]))
    assert classifier.name == "half"
    assert FunctionClassifier(half, name="mine").name == "mine"


# ── bad input ────────────────────────────────────────────────────────────────────────────────


class Elsewhere:
    """Numbers that cannot be had."""

    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise RuntimeError("it lives on another device")


class UnshownError(Exception):
    """An error whose own message fails."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


class Unmoved:
    """What looks like a tensor, and cannot be had either."""

    def detach(self) -> None:
        raise UnshownError


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ([[0.5, float("nan")]], "NaN or infinity"),
        ([[0.5, 0.5]] * 3, r"shape \(3, 2\) for 1 texts"),
        (0.5, r"shape \(\) for 1 texts"),
        ([[[0.5]]], r"shape \(1, 1, 1\) for 1 texts"),
        ([["a", "b"]], "an array of numbers"),
        ([{"label": "x"}], "an array of numbers"),
        (None, "."),
        ([[]], r"shape \(1, 0\) for 1 texts"),
        ([[0.5 + 1j, 0.5]], "an array of numbers: these are complex128"),
        (np.array([[1, 2]], "m8[s]"), "an array of numbers: these are timedelta"),
        (Elsewhere(), "an array of numbers: it lives on another device"),
        (torch.zeros(1, 2, device="meta"), "an array of numbers: Cannot copy out of meta tensor"),
        (Unmoved(), "an array of numbers: it cannot be shown, RuntimeError"),
        ([[2.0, -1.0]], r'not probabilities: .*FunctionClassifier\(f, gives="logits"\)'),
        ([[0.9, 0.9]], "sum to 1.8, not 1"),
        ([[0.2, 0.3, 0.5]], r"expected \(1, 2\)"),
    ],
)
def test_answers_that_are_no_scores(answer: object, message: str) -> None:
    with pytest.raises(ClassifierError, match=message):
        FunctionClassifier(lambda _: answer, labels=["a", "b"])(["x"])


def test_a_function_that_raises() -> None:
    def broken(texts: list[str]) -> np.ndarray:
        raise KeyError("vocabulary")

    with pytest.raises(ClassifierError, match="broken raised KeyError: 'vocabulary'") as caught:
        FunctionClassifier(broken)(["x"])
    assert isinstance(caught.value.__cause__, KeyError)


def test_labels_are_names_in_their_order() -> None:
    assert FunctionClassifier(half, labels=np.array(["bad", "good"])).labels == ("bad", "good")
    assert FunctionClassifier(half, labels=iter([0, 1])).labels == ("0", "1")
    for labels in ("ab", 5, {"a", "b"}, ["a"], np.array("a")):
        with pytest.raises(InputError, match="labels must be a list of two names or more, not"):
            FunctionClassifier(half, labels=labels)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="labels must differ from each other"):
        FunctionClassifier(half, labels=["a", "a"])
    for name in (5, b"x", "half \ud800"):
        with pytest.raises(InputError, match="the name"):
            FunctionClassifier(half, name=name)  # type: ignore[arg-type]


def test_a_function_whose_error_cannot_be_shown() -> None:
    def broken(texts: list[str]) -> np.ndarray:
        raise UnshownError

    with pytest.raises(
        ClassifierError, match="raised UnshownError: it cannot be shown, RuntimeError"
    ):
        FunctionClassifier(broken)(["x"])


def test_a_function_that_knows_nothing_of_the_empty_text() -> None:
    def mean_length(texts: list[str]) -> list[float]:
        return [1 / len(text.split()) for text in texts]

    def numpy_mean_length(texts: list[str]) -> list[float]:
        return [1 / len(text.split()) if text else float("nan") for text in texts]

    with pytest.raises(ClassifierError, match=r"division by zero \(for the empty text, which is"):
        FunctionClassifier(mean_length)(["x y", "", "z"])
    with pytest.raises(ClassifierError, match=r"for 1 of 3 texts, such as the empty one:"):
        FunctionClassifier(numpy_mean_length)(["x y", "", "z"])


def test_a_function_may_change_the_list_it_is_given() -> None:
    def emptying(texts: list[str]) -> list[list[float]]:
        return [[0.5, 0.5] for _ in range(len(texts)) if texts.pop() is not None]

    assert FunctionClassifier(emptying)(["x", "y"]).shape == (2, 2)


def test_a_function_of_one_text_is_told_that_it_gets_a_list() -> None:
    def one(text: str) -> list[float]:
        return [0.9, 0.1] if text.lower() else [0.5, 0.5]

    with pytest.raises(ClassifierError, match=r"no attribute 'lower' \(it was given a list of"):
        FunctionClassifier(one, labels=["a", "b"])(["x", ""])  # type: ignore[arg-type]


def test_a_function_that_complains_at_length() -> None:
    def wordy(texts: list[str]) -> np.ndarray:
        raise ValueError("expected 2D array" + ", got 'a text'" * 500)

    with pytest.raises(ClassifierError, match="wordy raised ValueError: expected 2D array") as told:
        FunctionClassifier(wordy)(["x"])
    assert len(str(told.value)) < 500


@pytest.mark.parametrize(
    ("text", "units", "message"),
    [
        ("", None, "empty"),
        (" \t", None, "empty"),
        (3, None, "must be a str, not int"),
        ("half \udc00", None, "half a character"),
        ("a b " * 250_001, None, "1000004 characters: at most 1000000 are read"),
        (("", " "), None, "both sides"),
        (("a", "b"), [(0, 1)], r"not of the form \(side, start, end\)"),
        (("a", "b"), [(2, 0, 1)], "sides 0 and 1"),
        ("a b", "token", "no tokens: its units are word, sentence or spans"),
        ("a b", "line", "unknown unit kind 'line'"),
        ("a b", [(0, 5)], "out of range"),
        ("a b", 5, "token, word, sentence or a list of spans, not 5"),
        (("a", "b", "c"), None, "not tuple: a pair is a tuple of two texts"),
    ],
)
def test_texts_and_units_that_cannot_be_used(text: Any, units: Any, message: str) -> None:
    with pytest.raises(SlalomError, match=message):
        FunctionClassifier(half).split(text, units)


def test_settings_that_cannot_be_used() -> None:
    with pytest.raises(InputError, match="not str"):
        FunctionClassifier("model")  # type: ignore[arg-type]
    with pytest.raises(UnknownNameError, match="probabilities, logits"):
        FunctionClassifier(half, gives="odds")
    with pytest.raises(InputError, match="at least 1"):
        FunctionClassifier(half, batch_size=0)
    with pytest.raises(InputError, match="list of two names"):
        FunctionClassifier(half, labels="ab")
    with pytest.raises(InputError, match="a label holds half a character"):
        FunctionClassifier(half, labels=["a", "\ud800"])
    with pytest.raises(InputError, match="not one str"):
        FunctionClassifier(half)("a text")
    with pytest.raises(UnknownNameError, match="error, truncate"):
        FunctionClassifier(half).split("a", too_long="cut")


def test_foreign_documents_are_refused() -> None:
    classifier = FunctionClassifier(half)
    document = classifier.split("a b")
    foreign = replace(document, frame=None)
    with pytest.raises(InputError, match="another classifier"):
        classifier.logits([(foreign, foreign.full())])
