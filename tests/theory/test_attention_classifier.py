"""The attention model under every method, and what its queries show."""

import numpy as np
import pytest

import slalom
from slalom.document import END
from slalom.theory.attention_classifier import AttentionClassifier
from slalom.theory.attention_model import (
    attention_scores,
    gradient_scores,
    input_ids,
    random_attention_model,
)

WORDS = "attention based explanations are popular but questionable".split()
TEXT = " ".join(WORDS)

pytestmark = pytest.mark.filterwarnings("ignore::slalom.SlalomWarning")


@pytest.fixture(scope="module")
def classifier():
    rng = np.random.default_rng(0)
    return AttentionClassifier(random_attention_model(WORDS, rng, n_positions=12, n_heads=2))


@pytest.mark.parametrize("method", slalom.METHODS)
@pytest.mark.parametrize("target", ["positive", "all"])
def test_every_method_explains_it(classifier, method, target):
    found = slalom.explain(classifier, TEXT, method, target=target, n_queries=150)
    assert found.units == tuple(WORDS)
    for score in found.scores.values():
        assert np.isfinite(score).all()


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("gradient-mean", "G-avg"),
        ("gradient-l1", "G-L1"),
        ("gradient-l2", "G-L2"),
        ("gradient-input", "G×I"),
        ("attention-mean", "α-avg"),
        ("attention-max", "α-max"),
    ],
)
def test_methods_equal_the_closed_forms(classifier, method, name):
    ids = classifier.model.ids(WORDS)
    closed = gradient_scores(classifier.model, ids) | attention_scores(classifier.model, ids)
    found = slalom.explain(classifier, TEXT, method, target="positive").scores["score"]
    np.testing.assert_allclose(found, closed[name][: len(WORDS)], atol=1e-10)


def test_the_attention_gradient_is_attention_times_the_deviation_from_the_mean(classifier):
    ids = classifier.model.ids(WORDS)
    attention = classifier.model.attention(ids)  # (K, n_positions)
    outputs = classifier.model.token_outputs(ids)  # (K, n_positions)
    mean = (attention * outputs).sum(axis=1, keepdims=True)
    found = slalom.explain(classifier, TEXT, "attention-gradient", target="positive")
    closed = (attention * (outputs - mean)).mean(axis=0)
    np.testing.assert_allclose(found.scores["score"], closed[: len(WORDS)], atol=1e-10)


def test_integrated_gradients_add_up(classifier):
    found = slalom.explain(classifier, TEXT, "integrated-gradients", target="positive")
    model = classifier.model
    assert found.scores["score"].sum() == pytest.approx(
        model(model.ids(WORDS)) - model(model.ids([])), abs=1e-8
    )


def test_rollout_halves_the_one_layer(classifier):
    rolled, mean = (
        slalom.explain(classifier, TEXT, method).scores["score"]
        for method in ("attention-rollout", "attention-mean")
    )
    np.testing.assert_allclose(rolled, mean / 2, atol=1e-12)


def test_what_is_not_shown_is_replaced(classifier):
    document = classifier.split(TEXT)
    queries = np.array([[1, 3, END], [3, 1, END], [1, 1, 3], [END, END, END]], dtype=np.int32)
    ids = input_ids(classifier.model, document, queries)
    h = classifier.model.unknown
    assert ids[0].tolist() == [h, 1, h, 3, *[h] * 8]
    assert ids[1].tolist() == ids[0].tolist()
    assert ids[2].tolist() == [1, 1, h, 3, *[h] * 8]  # the repeat is in the first free position
    assert (ids[3] == h).all()
    logits = classifier.logits([(document, queries)])[0]
    np.testing.assert_allclose(logits[:, 1] - logits[:, 0], classifier.model(ids))


def test_sentences_spans_and_long_texts(classifier):
    text = "attention based explanations! questionable popular never seen"
    document = classifier.split(text, "sentence")
    assert document.units == ("attention based explanations!", "questionable popular never seen")
    only = input_ids(classifier.model, document, np.array([[1]], dtype=np.int32))[0]
    assert only[:8].tolist() == [7, 7, 7, 7, 6, 4, 7, 7]
    spans = classifier.split(text, [(0, 9)])  # everything else is always shown
    assert (input_ids(classifier.model, spans, spans.full()[:, :0])[0, 1:3] == [1, 2]).all()
    assert "unknown to the model" in document.notes[0]
    assert (document.n_unknown, classifier.split("never seen popular").n_unknown) == (0, 2)
    with pytest.raises(slalom.SlalomError, match="13 words and the model 12 positions"):
        classifier.split("but " * 13)
    cut = classifier.split("but " * 13, too_long="truncate")
    assert (cut.n_units, cut.notes) == (12, ("the text was cut after 12 of 13 words",))
    with pytest.raises(slalom.SlalomError, match="not a pair"):
        classifier.split(("but", "are"))
    with pytest.raises(slalom.SlalomError, match="no word of its own"):
        classifier.split("attention", [(0, 3), (3, 9)])


def test_no_position_for_a_repeated_word_is_an_error():
    model = random_attention_model(["one"], np.random.default_rng(0), n_positions=1)
    classifier = AttentionClassifier(model)
    document = classifier.split("one")
    with pytest.raises(slalom.SlalomError, match="positions are free"):
        classifier.logits([(document, np.zeros((1, 2), dtype=np.int32))])
