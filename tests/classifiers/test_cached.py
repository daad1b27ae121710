import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from slalom.classifiers.base import is_independent
from slalom.classifiers.cached import CachedClassifier
from slalom.classifiers.text.function import FunctionClassifier
from slalom.document import END, distinct

ASKED: list[str] = []


def lengths(texts: list[str]) -> np.ndarray:
    ASKED.extend(texts)
    return np.array([[0.0, len(text)] for text in texts])


def remembering() -> CachedClassifier:
    ASKED.clear()
    inner = FunctionClassifier(lengths, labels=["no", "yes"], gives="logits")
    return CachedClassifier(inner)


def test_distinct_says_where_and_which() -> None:
    first, inverse = distinct(["b", "a", "b", "c", "a"])
    assert first.tolist() == [0, 1, 3]
    assert inverse.tolist() == [0, 1, 0, 2, 1]
    first, inverse = distinct([])
    assert len(first) == len(inverse) == 0


def test_equal_queries_are_asked_once_within_across_documents_and_calls() -> None:
    classifier = remembering()
    one, two = classifier.split("bad bad film"), classifier.split("a bad idea")
    queries = np.array([[0, END], [1, END], [2, END], [0, END]], dtype=np.int32)
    first, second = classifier.logits([(one, queries), (two, queries[:3])])
    assert ASKED == ["bad", "film", "a", "idea"]
    assert first[:, 1].tolist() == [3, 3, 4, 3]
    assert second[:, 1].tolist() == [1, 3, 4]
    assert classifier.n_asked == 4
    (again,) = classifier.logits([(two, np.array([[1, END], [0, 1]], dtype=np.int32))])
    assert ASKED[4:] == ["a bad"]
    assert again[:, 1].tolist() == [3, 5]
    assert classifier.n_asked == 5


def test_it_is_the_classifier_it_wraps() -> None:
    classifier = remembering()
    assert (classifier.name, classifier.labels) == ("lengths", ("no", "yes"))
    assert not is_independent(classifier)
    document = classifier.split("a b")
    assert classifier.seen(document, document.full()) == ["a b"]
    assert classifier.remarks(document, document.full(), np.zeros((1, 2))) == ()
    assert classifier(["abc"]).tolist() == [[0, 3]]
    assert classifier.logits([]) == []
    assert classifier.logits([(document, np.zeros((0, 1), np.int32))])[0].shape == (0, 2)


def test_answers_cannot_be_changed_from_outside() -> None:
    classifier = remembering()
    document = classifier.split("a b")
    classifier.logits([(document, document.full())])[0][:] = 99
    assert classifier.logits([(document, document.full())])[0].tolist() == [[0, 3]]


def test_threads_ask_once() -> None:
    classifier = remembering()
    document = classifier.split("a bb ccc dddd")
    queries = np.array([[unit] for unit in range(4)], dtype=np.int32)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: classifier.logits([(document, queries)])[0], range(40)))
    assert all((answer[:, 1] == [1, 2, 3, 4]).all() for answer in answers)
    assert sorted(ASKED) == ["a", "bb", "ccc", "dddd"]


def test_it_pickles_with_its_memory() -> None:
    classifier = remembering()
    document = classifier.split("a b")
    classifier.logits([(document, document.full())])
    copied = pickle.loads(pickle.dumps(classifier))
    ASKED.clear()
    assert copied.logits([(document, document.full())])[0].tolist() == [[0, 3]]
    assert ASKED == []
