"""Gradients against finite differences, integrals against their ends, attention against itself."""

import copy

import numpy as np
import pytest
import torch

import slalom
from slalom.classifiers.cached import CachedClassifier
from slalom.classifiers.internals import internals_of
from slalom.surrogates.slalom.model import Anchor, SlalomModel
from slalom.surrogates.slalom.readouts import read_outs
from slalom.theory.construction import bert_of
from tokenizers_made_here import ARCHITECTURES, made, tiny

TEXT = "A great film, not bad."
ENCODER_DECODERS = {"T5", "BART"}
LOOKED_INTO = [name for name in ARCHITECTURES if name not in ENCODER_DECODERS]
ATTENTIVE = [name for name in LOOKED_INTO if name != "FNet"]
WHITE = [
    name for name in slalom.METHODS if name.startswith(("gradient", "integrated", "attention"))
]


def log_odds(classifier, document, embeddings):
    with torch.no_grad():
        logits = internals_of(classifier).logits_from_embeddings(document, embeddings)
    return (logits[:, 1] - logits[:, 0]).double().numpy()


@pytest.mark.parametrize("architecture", LOOKED_INTO)
def test_embeddings_give_the_classifiers_own_answer(architecture):
    classifier = made(architecture)
    document = classifier.split(TEXT)
    embeddings = internals_of(classifier).embeddings(document)
    logits = classifier.logits([(document, document.full())])[0][0]
    found = log_odds(classifier, document, embeddings[None].repeat(3, 1, 1))
    np.testing.assert_allclose(found, logits[1] - logits[0], atol=1e-5)


@pytest.mark.parametrize("architecture", LOOKED_INTO)
def test_gradient_times_input_is_the_slope_of_fading_a_unit(architecture):
    """Steps so small that they hardly ever cross the kink of a ReLU, and not smaller: inside a
    model of double precision there are norms that compute in single."""
    model, tokenizer = tiny(architecture)
    classifier = slalom.HuggingFaceClassifier(model.double(), tokenizer)
    document = classifier.split(TEXT)
    scores = slalom.explain(classifier, TEXT, "gradient-input", target=1).scores["score"]
    inside = internals_of(classifier)
    embeddings, units = inside.embeddings(document), inside.unit_of_token(document)
    for unit in (0, int(np.abs(scores).argmax())):
        fade = torch.from_numpy(units == unit)[:, None] * 2e-3
        pair = torch.stack([embeddings * (1 + fade), embeddings * (1 - fade)])
        up, down = log_odds(classifier, document, pair)
        assert scores[unit] == pytest.approx((up - down) / 4e-3, rel=0.02, abs=2e-5)


@pytest.mark.parametrize("architecture", LOOKED_INTO)
def test_integrated_gradients_add_up_to_what_masking_takes_away(architecture):
    classifier = made(architecture)
    document = classifier.split(TEXT)
    found = slalom.explain(classifier, TEXT, "integrated-gradients", target=1)
    inside = internals_of(classifier)
    ends = torch.stack([inside.embeddings(document), inside.blank(document)])
    full, blank = log_odds(classifier, document, ends)
    # random ReLUs bend sharply: the quadrature is off by a part of what is shared out
    part = 0.04 if architecture in ("DistilBERT", "OPT") else 1e-3
    tolerance = part * np.abs(found.scores["score"]).sum()
    assert found.scores["score"].sum() == pytest.approx(full - blank, abs=tolerance)
    assert found.predict(np.zeros((1, document.n_units)))[0] == pytest.approx(blank, abs=tolerance)


@pytest.mark.parametrize("architecture", ATTENTIVE)
def test_attention_is_a_share(architecture):
    classifier = made(architecture)
    document = classifier.split(TEXT)
    weights, readers = internals_of(classifier).attentions(document)
    np.testing.assert_allclose(weights.sum(dim=-1).numpy(), 1, atol=1e-5)
    assert readers.sum() == pytest.approx(1.0)
    for method in ("attention-mean", "attention-rollout"):
        scores = slalom.explain(classifier, TEXT, method).scores["score"]
        assert (scores >= 0).all()
        assert scores.sum() <= 1 + 1e-6
    largest = slalom.explain(classifier, TEXT, "attention-max").scores["score"]
    mean = slalom.explain(classifier, TEXT, "attention-mean").scores["score"]
    assert (largest >= mean - 1e-9).all()


def test_rollout_of_one_layer_is_half_of_its_mean():
    model, tokenizer = tiny("BERT", num_hidden_layers=1)
    classifier = slalom.HuggingFaceClassifier(model, tokenizer)
    mean = slalom.explain(classifier, TEXT, "attention-mean").scores["score"]
    rolled = slalom.explain(classifier, TEXT, "attention-rollout").scores["score"]
    np.testing.assert_allclose(rolled, mean / 2)


def test_rollout_goes_from_the_answer_down_to_the_tokens():
    """Layer by layer as in the paper, Π_l (½ A_l + ½ I), the layer nearest to the answer first."""
    model, tokenizer = tiny("BERT", num_hidden_layers=3)
    classifier = slalom.HuggingFaceClassifier(model, tokenizer)
    document, inside = classifier.split(TEXT), internals_of(classifier)
    weights, readers = (part.double().numpy() for part in inside.attentions(document))
    flow = np.eye(weights.shape[-1])
    for layer in weights.mean(axis=1):  # from the tokens up
        flow = (layer + np.eye(len(layer))) / 2 @ flow
    units = np.asarray(inside.unit_of_token(document))
    expected = [(readers @ flow)[units == unit].max() for unit in range(document.n_units)]
    rolled = slalom.explain(classifier, TEXT, "attention-rollout").scores["score"]
    np.testing.assert_allclose(rolled, expected, rtol=1e-4)


def test_decoders_answer_at_the_last_token_and_encoders_at_the_first():
    for architecture, at in (("GPT-2", -1), ("Llama", -1), ("BERT", 0), ("XLNet", -1)):
        classifier = made(architecture)
        document = classifier.split(TEXT)
        assert internals_of(classifier).attentions(document)[1][at] == 1


@pytest.mark.parametrize("architecture", LOOKED_INTO)
def test_relevance_is_finite_everywhere(architecture):
    scores = slalom.explain(made(architecture), TEXT, "attention-lrp").scores["score"]
    assert np.isfinite(scores).all()
    assert np.abs(scores).max() > 0


@pytest.mark.parametrize("method", WHITE)
def test_several_tokens_in_a_unit(method):
    classifier = made("BERT")
    text = "unbelievably dull"
    tokens = slalom.explain(classifier, text, method, target=1, units="token").scores["score"]
    words = slalom.explain(classifier, text, method, target=1, units="word").scores["score"]
    owner = [span[0] >= 13 for span in classifier.split(text, "token").spans]
    pool = np.max if method in ("attention-mean", "attention-max", "attention-rollout") else np.sum
    expected = [pool(tokens[np.equal(owner, side)]) for side in (False, True)]
    np.testing.assert_allclose(words, expected, atol=1e-6)


@pytest.mark.parametrize("architecture", ["BERT", "GPT-2", "Llama"])
@pytest.mark.parametrize("method", WHITE)
def test_the_model_comes_back_as_it_was(method, architecture):
    model, tokenizer = tiny(architecture)
    model.train()
    before = copy.deepcopy(model.state_dict())
    settings = copy.deepcopy(model.config.to_dict())
    implementation = model.config._attn_implementation
    state = torch.random.get_rng_state()
    slalom.explain(slalom.HuggingFaceClassifier(model, tokenizer), TEXT, method)
    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    assert model.config.to_dict() == settings
    assert model.config._attn_implementation == implementation
    assert torch.equal(state, torch.random.get_rng_state())
    assert all(module.training for module in model.modules())
    assert all(weight.grad is None for weight in model.parameters())
    hooks = [hook for module in model.modules() for hook in module._forward_hooks.values()]
    assert not any(hook.__module__.startswith("slalom") for hook in hooks)


@pytest.mark.parametrize("method", WHITE)
def test_all_classes_and_no_gradients_allowed(method):
    classifier = slalom.HuggingFaceClassifier(*tiny("BERT", num_labels=3))
    with torch.no_grad():
        together = slalom.explain(classifier, TEXT, method, target="all").scores["score"]
    assert together.shape == (len(classifier.split(TEXT).units), 3)
    if method in ("gradient-mean", "gradient-input", "integrated-gradients", "attention-lrp"):
        np.testing.assert_allclose(together.sum(axis=1), 0, atol=1e-5)


@pytest.mark.parametrize("method", WHITE)
def test_a_black_box_is_refused_in_one_sentence(method):
    black = slalom.FunctionClassifier(lambda texts: np.full((len(texts), 2), 0.5))
    for classifier in (black, CachedClassifier(black)):
        with pytest.raises(slalom.SlalomError, match="gives no access to its inside"):
            slalom.explain(classifier, TEXT, method)


@pytest.mark.parametrize("architecture", sorted(ENCODER_DECODERS))
def test_models_that_read_twice_are_refused(architecture):
    with pytest.raises(slalom.SlalomError, match="reads its text twice"):
        slalom.explain(made(architecture), TEXT, "gradient-l1")


def test_a_model_without_attention_is_refused_by_attention_only():
    with pytest.raises(slalom.SlalomError, match="shows no attention"):
        slalom.explain(made("FNet"), TEXT, "attention-mean")


def test_a_remembering_classifier_can_be_looked_into():
    classifier = made("BERT")
    plain = slalom.explain(classifier, TEXT, "gradient-l2")
    assert slalom.explain(CachedClassifier(classifier), TEXT, "gradient-l2") == plain


def test_a_single_output_is_a_log_odds():
    classifier = slalom.HuggingFaceClassifier(*tiny("BERT", num_labels=1))
    up, down = (
        slalom.explain(classifier, TEXT, "gradient-input", target=t).scores["score"] for t in (1, 0)
    )
    np.testing.assert_allclose(up, -down, atol=1e-7)


def test_scores_that_are_rounding_errors_say_so() -> None:
    text = "A slow start, but a great film."
    classifier = slalom.load()
    mean = slalom.explain(classifier, text, "gradient-mean")
    assert any("rounding errors" in note for note in mean.quality.notes)
    norm = slalom.explain(classifier, text, "gradient-l2")
    assert not any("rounding errors" in note for note in norm.quality.notes)


def test_attention_gradients_of_a_slalom_are_its_gradient_read_out():
    """A BERT that is a SLALOM: ∂F/∂b_t = α_t (v_t − F), from one backward pass."""
    words = ("good", "bad", "film", "plot", "dull")
    rng = np.random.default_rng(0)
    importances = rng.normal(size=5)
    model = SlalomModel(rng.normal(size=5), importances - importances.mean(), Anchor(0.3, 0.5))
    classifier = slalom.HuggingFaceClassifier(*bert_of(words, model))
    text = "good film bad plot good"
    found = slalom.explain(classifier, text, "attention-gradient", target=1)
    features = [words.index(word) for word in text.split()]
    counts = np.bincount(features, minlength=5).astype(float)
    expected = read_outs(model, counts)["gradient"][features]
    np.testing.assert_allclose(found.scores["score"], expected, atol=1e-5)


@pytest.mark.parametrize("architecture", ["BERT", "GPT-2", "Llama"])
def test_attention_gradients_are_slopes_of_the_log_odds(architecture):
    classifier = made(architecture)
    document = classifier.split("A great film, and the acting is great too.")
    inside = internals_of(classifier)
    slopes = inside.mask_gradients(document, lambda logits: logits[:, 1] - logits[:, 0])
    assert slopes.shape == (int(document.n_tokens(document.full())[0]),)
    assert slopes.abs().max() > 1e-6
    assert slopes.sum().abs() < 1e-4 * slopes.abs().sum().clamp(min=1.0)  # a common b changes none


def test_a_model_without_attention_says_so():
    with pytest.raises(slalom.SlalomError, match="attention"):
        slalom.explain(made("FNet"), "A great film", "attention-gradient")
