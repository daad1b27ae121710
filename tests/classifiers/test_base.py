"""The least a classifier needs, and what a wrapper passes on of everything else."""

import pickle
from dataclasses import dataclass, field

import numpy as np
import pytest

import slalom
from slalom.classifiers.base import text_logits
from slalom.classifiers.cached import CachedClassifier
from slalom.document import Document, features_of

TEXT = "a truly great film although the end is dull and rather long for what it says"


@dataclass
class ByHand:
    """Counts "great" against "dull": split, seen and logits, its labels and its name."""

    labels: tuple[str, ...] = ("bad", "good")
    name: str = "a class of my own"
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def split(self, text, units=None, *, too_long="error"):
        words = text.split()
        ends = np.cumsum([len(word) + 1 for word in words])
        spans = tuple(
            (int(end) - len(word) - 1, int(end) - 1) for word, end in zip(words, ends, strict=True)
        )
        return Document(
            text=text,
            units=tuple(words),
            spans=spans,
            keys=tuple(words),
            features=features_of(words),
            sizes=np.ones(len(words), dtype=np.int32),
            overhead=0,
            has_empty_query=True,
            frame=None,
        )

    def seen(self, document, queries):
        return [
            tuple(document.units[unit] for unit in query if unit < document.n_units)
            for query in queries
        ]

    def logits(self, asked):
        answers = []
        for document, queries in asked:
            shown = self.seen(document, queries)
            self.asked += shown
            scores = [2.0 * row.count("great") - 3.0 * row.count("dull") for row in shown]
            answers.append(np.column_stack([np.zeros(len(shown)), scores]))
        return answers


def test_a_class_with_three_methods_labels_and_a_name_is_a_classifier():
    classifier = ByHand()
    found = slalom.explain(classifier, TEXT, target="good", n_queries=300)
    scores = dict(zip(found.units, found.scores["shapley"], strict=True))
    assert scores["great"] == pytest.approx(2.0, abs=0.05)
    assert scores["dull"] == pytest.approx(-3.0, abs=0.05)
    assert found.quality.n_queries == len(classifier.asked)
    assert len(set(classifier.asked)) == found.quality.n_queries - found.quality.n_repeats
    assert not found.independent
    assert found.classifier == "a class of my own"


@pytest.mark.parametrize("method", ["lime", "kernel-shap", "leave-one-out", "random"])
def test_every_black_box_method_explains_it(method):
    assert slalom.explain(ByHand(), TEXT, method, n_queries=200).classifier == "a class of my own"


def test_it_is_asked_for_whole_texts_without_a_call_of_its_own():
    classifier = ByHand()
    assert text_logits(classifier, ["great", "dull dull"])[:, 1].tolist() == [2.0, -6.0]
    assert text_logits(classifier, []).shape == (0, 2)
    assert CachedClassifier(classifier)(["great"])[:, 1].tolist() == [2.0]


def test_what_it_lacks_is_named():
    class Nameless:
        labels = ("a", "b")
        split, seen, logits = ByHand.split, ByHand.seen, ByHand.logits

    with pytest.raises(slalom.SlalomError, match="Nameless has split, seen and logits but no name"):
        slalom.explain(Nameless(), TEXT)


def test_answers_of_the_wrong_shape_or_size_are_told():
    class Narrow(ByHand):
        def logits(self, asked):
            return [answers[:, :1] for answers in super().logits(asked)]

    class Huge(ByHand):
        def logits(self, asked):
            return [1e31 * answers for answers in super().logits(asked)]

    with pytest.raises(slalom.SlalomError, match=r"expected \(\d+, 2\)"):
        slalom.explain(Narrow(), TEXT)
    with pytest.raises(slalom.SlalomError, match="divide them by a constant"):
        slalom.explain(Huge(), TEXT)


def test_a_wrapper_passes_on_every_ability_and_invents_none():
    bundled = slalom.load()
    wrapped = CachedClassifier(bundled)
    assert wrapped.independent == bundled.independent
    assert type(wrapped.internals()) is type(bundled.internals())
    assert not hasattr(CachedClassifier(ByHand()), "internals")
    assert not hasattr(CachedClassifier(ByHand()), "unpaid")
    found = slalom.explain(wrapped, "A wonderful film.", "gradient-l2")
    np.testing.assert_allclose(
        found.scores["score"],
        slalom.explain(bundled, "A wonderful film.", "gradient-l2").scores["score"],
        rtol=1e-5,
    )
    assert pickle.loads(pickle.dumps(CachedClassifier(ByHand()))).labels == ("bad", "good")


def test_labels_that_cost_a_query_do_not_cost_one_through_a_wrapper():
    asked = []

    def f(texts):
        asked.extend(texts)
        return np.array([0.9 if "great" in text else 0.2 for text in texts])

    classifier = CachedClassifier(slalom.FunctionClassifier(f))
    slalom.explain(classifier, TEXT, target="1", n_queries=16)
    assert len(asked) <= 16
