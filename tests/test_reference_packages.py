"""The rivals against the packages they are known by: same model, same queries, same numbers.

Where a package does something else by default the difference is named here:

- lime explains probabilities and keeps ten words chosen by forward selection, and draws from
  numpy's global generator unless given a state; here: log-odds, all units, its own weights.
- shap's KernelExplainer shrinks with an L1 penalty unless told not to; here: without.
- captum takes the caller's word for baseline and outcome; here: masked units, log-odds.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

import slalom
from oracles import WORDS, observed, slalom_oracle
from slalom.classifiers.internals import internals_of
from slalom.document import queries_from_masks
from slalom.samplers.rivals import LimeMasks
from slalom.surrogates.additive import LinearSurrogate

TEXT = " ".join(WORDS[:8])
REVIEW = "A slow start, but a truly wonderful film."


@pytest.fixture(scope="module")
def game():
    """A classifier over eight words as a function of coalitions."""
    classifier = slalom_oracle().classifier
    document = classifier.split(TEXT)

    def log_odds(coalitions):
        masks = np.asarray(coalitions).astype(bool).reshape(-1, document.n_units)
        logits = classifier.logits([(document, queries_from_masks(masks))])[0]
        return logits[:, 1] - logits[:, 0]

    return SimpleNamespace(classifier=classifier, document=document, log_odds=log_odds)


@pytest.mark.filterwarnings("ignore")  # what other packages warn about is theirs
def test_shapley_values_are_those_of_shap(game):
    import shap

    explainer = shap.KernelExplainer(game.log_odds, np.zeros((1, 8)))
    reference = explainer.shap_values(np.ones((1, 8)), nsamples=300, l1_reg=0, silent=True)[0]
    for method in ("kernel-shap", "exact-shapley"):
        found = slalom.explain(game.classifier, TEXT, method, target="pos", n_queries=300)
        np.testing.assert_allclose(found.scores["score"], reference, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_shapley_values_are_those_of_shapiq(game):
    import shapiq

    exact = shapiq.ExactComputer(game=lambda c: game.log_odds(c), n_players=8)
    reference = exact("SV").get_n_order_values(1)
    found = slalom.explain(game.classifier, TEXT, "exact-shapley", target="pos")
    np.testing.assert_allclose(found.scores["score"], reference, atol=1e-6)


@pytest.mark.filterwarnings("ignore")
def test_lime_is_lime(game):
    """Lime's own regression on our masks, repeats and all, and our regression on its distances."""
    from lime.lime_base import LimeBase
    from sklearn.metrics import pairwise_distances

    samples = LimeMasks().sample(game.document, 150, np.random.default_rng(0))
    counts = game.document.untied().count(samples.queries)
    distances = pairwise_distances(counts, counts[:1], metric="cosine").ravel() * 100

    def kernel(distance):
        return np.sqrt(np.exp(-(distance**2) / 25**2))

    times = np.rint(samples.weights / kernel(distances)).astype(int)
    np.testing.assert_allclose(times * kernel(distances), samples.weights, atol=1e-12)
    assert times.sum() == 150
    scores = game.log_odds(counts)
    _, pairs, _, _ = LimeBase(kernel, random_state=0).explain_instance_with_data(
        *(np.repeat(part, times, axis=0) for part in (counts, scores[:, None], distances)),
        0,
        num_features=8,
        feature_selection="none",
    )
    fit = LinearSurrogate(ridges=(1.0,)).fit(observed(counts, scores, weights=samples.weights))
    reference = [weight for _, weight in sorted(pairs)]
    np.testing.assert_allclose(fit.scores["score"], reference, atol=1e-8)


@pytest.fixture(scope="module")
def inside():
    classifier = slalom.load()
    document = classifier.split(REVIEW)
    view = internals_of(classifier)

    def log_odds(embeddings):
        logits = view.logits_from_embeddings(document, embeddings)
        return logits[:, 1] - logits[:, 0]

    units = view.unit_of_token(document)
    return SimpleNamespace(
        classifier=classifier,
        log_odds=log_odds,
        embeddings=view.embeddings(document)[None],
        blank=view.blank(document)[None],
        by_unit=lambda tokens: tokens[0].double().numpy()[units >= 0],
    )


@pytest.mark.filterwarnings("ignore")
def test_gradients_are_those_of_captum(inside):
    from captum.attr import InputXGradient, IntegratedGradients, Saliency

    slope = Saliency(inside.log_odds).attribute(inside.embeddings.requires_grad_(), abs=False)
    product = InputXGradient(inside.log_odds).attribute(inside.embeddings)
    integral = IntegratedGradients(inside.log_odds).attribute(
        inside.embeddings, inside.blank, n_steps=32, method="gausslegendre"
    )
    expected = {
        "gradient-mean": slope.mean(dim=-1),
        "gradient-l1": slope.abs().sum(dim=-1),
        "gradient-l2": slope.norm(dim=-1),
        "gradient-input": product.sum(dim=-1),
        "integrated-gradients": integral.sum(dim=-1),
    }
    for method, tokens in expected.items():
        found = slalom.explain(inside.classifier, REVIEW, method, target="positive")
        reference = inside.by_unit(tokens.detach())
        np.testing.assert_allclose(found.scores["score"], reference, atol=1e-5, err_msg=method)


@pytest.mark.filterwarnings("ignore")
def test_leaving_one_out_is_captums_ablation(game):
    from captum.attr import FeatureAblation

    def outcome(present):
        return torch.from_numpy(game.log_odds(present.numpy()))

    reference = FeatureAblation(outcome).attribute(torch.ones(1, 8))[0]
    found = slalom.explain(game.classifier, TEXT, "leave-one-out", target="pos")
    np.testing.assert_allclose(found.scores["score"], reference.numpy(), atol=1e-5)
