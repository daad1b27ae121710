"""Gradients of a model that is not from Hugging Face: four methods are enough."""

import numpy as np
import pytest
import torch

import slalom
from slalom.classifiers.cached import CachedClassifier
from slalom.classifiers.internals import internals_of

WEIGHTS = {"a": 0.1, "great": 2.0, "dull": -1.5, "film": 0.3}
TEXT = "a great dull film"


class BagOfVectors(slalom.FunctionClassifier):
    """Words are vectors (weight, 1), and the log-odds add up their first coordinates."""

    def __init__(self):
        super().__init__(self.log_odds, labels=["neg", "pos"], gives="logits", name="a bag")

    def log_odds(self, texts):
        return np.array([sum(WEIGHTS[word] for word in text.split()) for text in texts])

    def internals(self):
        return self

    def unit_of_token(self, document):
        return np.arange(document.n_units, dtype=np.int32)

    def embeddings(self, document):
        return torch.tensor([[WEIGHTS[unit], 1.0] for unit in document.units])

    def blank(self, document):
        return torch.zeros(document.n_units, 2)

    def logits_from_embeddings(self, document, embeddings):
        scores = embeddings[:, :, 0].sum(dim=1)
        return torch.stack([torch.zeros_like(scores), scores], dim=1)


@pytest.mark.parametrize("method", ["gradient-input", "integrated-gradients"])
def test_a_model_of_ones_own_is_explained_by_gradients(method):
    for classifier in (BagOfVectors(), CachedClassifier(BagOfVectors())):
        found = slalom.explain(classifier, TEXT, method, target="pos")
        np.testing.assert_allclose(found.scores["score"], [0.1, 2.0, -1.5, 0.3], atol=1e-6)


@pytest.mark.parametrize("method", ["attention-mean", "attention-lrp"])
def test_what_it_does_not_show_is_said(method):
    with pytest.raises(slalom.SlalomError, match="a bag does not show its"):
        slalom.explain(BagOfVectors(), TEXT, method)


def test_a_function_cannot_be_looked_into():
    with pytest.raises(slalom.SlalomError, match="with a method `internals`"):
        internals_of(slalom.FunctionClassifier(lambda texts: np.ones(len(texts)) / 2))
