"""Phrases as units: neighbours that act as one, on classifiers where it is known who does."""

import numpy as np
import pytest

import slalom
from oracles import OWN, REVIEW, added, classifier_of, linear_oracle, negated, slalom_oracle
from oracles import TEXT as LONG_TEXT

WORDS = REVIEW.split()[:18]
TEXT = " ".join(WORDS)
pytestmark = pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")


def three_words(words):
    return added(words) + 2.0 * ("music of rare" in " ".join(words))


@pytest.mark.parametrize("method", ["slalom", "linear", "leave-one-out", "kernel-shap"])
def test_a_negation_and_its_word_become_one_unit(method):
    classifier, asked = classifier_of(negated)
    e = slalom.explain(classifier, TEXT, method, target="pos", units="phrase", n_queries=400)
    assert e.quality.n_queries == len(asked) <= 400
    assert len(set(asked)) == len(asked) - e.quality.n_repeats
    assert len(e.units) == len(WORDS) - 1
    at = [unit.strip() for unit in e.units].index("not bad")
    name = "score" if "score" in e.scores else "removal"
    assert e.scores[name][at] == pytest.approx(OWN["not"] + OWN["bad"] + 1.5, abs=1e-2)
    assert "17 words" not in e.quality.notes[-1]
    assert "18 words and signs became 17 units" in e.quality.notes[-1]


def test_chains_make_longer_phrases():
    classifier, _ = classifier_of(three_words)
    e = slalom.explain(classifier, TEXT, "linear", target="pos", units="phrase")
    assert "music of rare" in [unit.strip() for unit in e.units]


def test_what_hardly_matters_is_no_phrase():
    classifier, _ = classifier_of(
        lambda words: 2.0 * ("bad" in words) + 0.3 * ("of" in words and "rare" in words)
    )
    e = slalom.explain(classifier, TEXT, "linear", target="pos", units="phrase")
    assert len(e.units) == len(WORDS)


@pytest.mark.parametrize("oracle", [slalom_oracle(), linear_oracle()[0]])
def test_attention_and_sums_have_no_phrases(oracle):
    e = slalom.explain(oracle.classifier, LONG_TEXT, "linear", target="pos", units="phrase")
    assert len(e.units) == len(oracle.classifier.split(LONG_TEXT).units)
    assert "the units are words" in e.quality.notes[-1]


def test_many_texts_are_what_each_is_alone():
    classifier, _ = classifier_of(negated)
    texts = [TEXT, "the plot was not bad", "music"]
    together = slalom.explain_many(classifier, texts, "linear", units="phrase", progress=False)
    for text, e in zip(texts, together, strict=True):
        assert e == slalom.explain(classifier, text, "linear", units="phrase")
    each = list(slalom.explain_each(classifier, texts, "linear", units="phrase", n_queries=300))
    assert [len(e.units) for e in each] == [17, 4, 1]


def test_all_classes_and_pairs_of_texts():
    classifier, _ = classifier_of(negated)
    e = slalom.explain(classifier, TEXT, "linear", target="all", units="phrase")
    assert "not bad" in [unit.strip() for unit in e.units]

    def of_pairs(pairs):
        return np.array([[0.0, negated(f"{a} {b}".split())] for a, b in pairs])

    pairs = slalom.FunctionClassifier(of_pairs, labels=["neg", "pos"], gives="logits")
    e = slalom.explain(pairs, ("plot was not", "bad music"), "linear", units="phrase")
    assert [span[0] for span in e.spans] == [0, 0, 0, 1, 1]  # never across the two sides


def test_too_few_queries_say_what_it_takes():
    classifier, asked = classifier_of(negated)
    with pytest.raises(slalom.SlalomError, match="allow at least 46"):
        slalom.explain(classifier, TEXT, units="phrase", n_queries=40)
    assert not asked
