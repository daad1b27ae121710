"""Transformers that are SLALOMs: their log-odds, and their tables read back."""

import numpy as np
import pytest
import torch

import slalom
from slalom.theory.construction import (
    Anchor,
    SlalomModel,
    bert_of,
    save_bert,
    transformer_of,
)

WORDS = "a film that dares to be slow and then rewards every patient viewer".split()
SIZES = [(1, 1), (3, 1), (1, 3), (2, 2)]  # heads, layers


def table(*, anchored=False, seed=0):
    rng = np.random.default_rng(seed)
    importances = rng.normal(size=len(WORDS))
    anchor = Anchor(0.4, 0.5) if anchored else None
    return SlalomModel(2 * rng.normal(size=len(WORDS)), importances - importances.mean(), anchor)


def drawn(n, rng):
    """Sequences of word numbers, repeats included."""
    return [rng.integers(0, len(WORDS), size=rng.integers(1, 30)) for _ in range(n)]


def counts(sequences):
    return np.array([np.bincount(row, minlength=len(WORDS)) for row in sequences])


def log_odds(classifier, texts):
    logits = classifier(texts)
    return logits[:, 1] - logits[:, 0]


@pytest.mark.parametrize(("n_heads", "n_layers"), SIZES)
@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "decoder"])
def test_the_papers_transformer_is_the_slalom(n_heads, n_layers, causal):
    model = table()
    made = transformer_of(model, n_heads=n_heads, n_layers=n_layers, causal=causal)
    sequences = drawn(20, np.random.default_rng(1))
    with torch.no_grad():
        found = [made.log_odds(torch.from_numpy(row)[None]).item() for row in sequences]
    np.testing.assert_allclose(found, model.predict(counts(sequences)), atol=1e-13)


@pytest.mark.parametrize("anchored", [False, True], ids=["no anchor", "anchor"])
@pytest.mark.parametrize(("n_heads", "n_layers"), SIZES)
def test_a_bert_from_a_folder_is_the_slalom(tmp_path, anchored, n_heads, n_layers):
    model = table(anchored=anchored)
    save_bert(tmp_path, WORDS, model, n_heads=n_heads, n_layers=n_layers)
    classifier = slalom.load(tmp_path)
    assert classifier.labels == ("negative", "positive")
    sequences = drawn(20, np.random.default_rng(1))
    texts = [" ".join(WORDS[number] for number in row) for row in sequences]
    found = log_odds(classifier, texts)
    np.testing.assert_allclose(found, model.predict(counts(sequences)), atol=1e-12)
    empty = log_odds(classifier, [""])
    np.testing.assert_allclose(empty, 0.4 if anchored else 0.0, atol=1e-12)
    unknown = log_odds(classifier, ["film nobody-knows", "film"])
    assert unknown[0] == pytest.approx(unknown[1], abs=1e-12)


def test_single_precision_is_enough():
    model = table()
    bert, tokenizer = bert_of(WORDS, model)
    classifier = slalom.HuggingFaceClassifier(bert.float(), tokenizer)
    found = log_odds(classifier, [" ".join(WORDS)])
    np.testing.assert_allclose(found, model.predict(np.ones((1, len(WORDS)))), atol=1e-5)


@pytest.mark.parametrize(("n_heads", "n_layers"), [(1, 1), (2, 2)])
@pytest.mark.parametrize(
    ("method", "n_queries", "anchored", "tolerance"),
    [
        ("slalom-analytic", None, False, 1e-6),
        ("slalom-analytic-anchor", None, True, 1e-6),
        ("slalom-eff", 500, False, 1e-3),
        ("slalom", 500, True, 1e-3),
    ],
)
def test_methods_give_the_table_back(n_heads, n_layers, method, n_queries, anchored, tolerance):
    model = table(anchored=anchored)
    bert, tokenizer = bert_of(WORDS, model, n_heads=n_heads, n_layers=n_layers)
    classifier = slalom.HuggingFaceClassifier(bert, tokenizer)
    found = slalom.explain(
        classifier, " ".join(WORDS), method, target="positive", n_queries=n_queries, units="word"
    )
    assert found.units == tuple(WORDS)
    np.testing.assert_allclose(found.scores["value"], model.values, atol=tolerance)
    np.testing.assert_allclose(found.scores["importance"], model.importances, atol=tolerance)
    if anchored:
        assert found.anchor.value == pytest.approx(0.4, abs=tolerance)
        assert found.anchor.importance == pytest.approx(0.5, abs=tolerance)


def test_attention_is_the_share_of_the_importances():
    """The attention of the one working head is the SLALOM's."""
    model = table()
    bert, tokenizer = bert_of(WORDS, model)
    classifier = slalom.HuggingFaceClassifier(bert, tokenizer)
    found = slalom.explain(classifier, " ".join(WORDS), "attention-mean", units="word")
    weights = np.exp(model.importances)
    np.testing.assert_allclose(found.scores["score"], weights / weights.sum(), atol=1e-10)


def test_the_callers_random_numbers_are_left_alone():
    before = torch.random.get_rng_state()
    bert_of(WORDS, table())
    transformer_of(table())
    assert torch.equal(before, torch.random.get_rng_state())


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (WORDS[:-1], "one value and importance"),
        (["two words", *WORDS[1:]], "between spaces"),
        (["[CLS]", *WORDS[1:]], "cannot be a word"),
    ],
)
def test_a_table_that_does_not_fit_is_said(words, says):
    with pytest.raises(slalom.SlalomError, match=says):
        bert_of(words, table())


def test_an_anchor_needs_a_cls_token():
    with pytest.raises(slalom.SlalomError, match="use bert_of"):
        transformer_of(table(anchored=True))
