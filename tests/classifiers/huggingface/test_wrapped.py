"""Modules that people wrote themselves around a backbone, narrow models, other devices."""

import warnings
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf

import slalom
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.document import END, queries_from_masks
from slalom.errors import ClassifierError, InputError
from tokenizers_made_here import TEXTS, byte_level, tiny, wordpiece


class MambaWithHead(torch.nn.Module):
    """transformers has no classification class for Mamba: a backbone and a linear head."""

    def __init__(self, n_outputs: int = 3, with_config: bool = False) -> None:
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            config = hf.MambaConfig(
                vocab_size=400,
                hidden_size=16,
                num_hidden_layers=2,
                state_size=4,
                bos_token_id=0,
                eos_token_id=0,
            )
            self.backbone = hf.MambaModel(config)
            self.head = torch.nn.Linear(16, n_outputs)
            for weight in self.parameters():
                if weight.ndim == 2:
                    torch.nn.init.normal_(weight, std=0.5)
        if with_config:
            self.config = config

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        states = self.backbone(input_ids).last_hidden_state
        return self.head(states[:, -1])  # type: ignore[no-any-return]


@pytest.mark.parametrize("with_config", [False, True])
def test_mamba_behind_a_head(with_config: bool) -> None:
    """The backbone's config says two labels, the head three: the head is right."""
    classifier = HuggingFaceClassifier(MambaWithHead(3, with_config).eval(), byte_level())
    assert classifier.labels == ("0", "1", "2")
    document = classifier.split(TEXTS[0])
    rng = np.random.default_rng(0)
    masks = rng.random((30, document.n_units)) < rng.random((30, 1))
    masks[:, 0] |= ~masks.any(axis=1)
    queries = queries_from_masks(masks)
    (together,) = classifier.logits([(document, queries)])
    alone = [classifier.logits([(document, query[None, query != END])])[0] for query in queries]
    assert np.ptp(together, axis=0).min() > 1e-3
    np.testing.assert_allclose(together, np.concatenate(alone), atol=1e-5)
    assert not document.has_empty_query


def test_mamba_is_explained_like_any_other() -> None:
    classifier = HuggingFaceClassifier(
        MambaWithHead(2).eval(), byte_level(), labels=["bad", "good"]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", slalom.SlalomWarning)  # a random model says nothing
        e = slalom.explain(classifier, TEXTS[0], target="good", n_queries=100)
    assert e.labels == ("bad", "good")
    assert e.classifier == "MambaWithHead"
    assert np.isfinite(e.scores["value"]).all()


class OtherNames(torch.nn.Module):
    """Ids and mask under names of the author's own, scores under another."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, tokens: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"scores": self.inner(tokens).logits}


class PassedOn(torch.nn.Module):
    """A wrapper that takes whatever comes, as those for several devices do."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, *inputs: Any, **named: Any) -> Any:
        return self.inner(*inputs, **named)


@pytest.mark.parametrize("wrapper", [OtherNames, PassedOn])
def test_wrappers_with_names_of_their_own(wrapper: Any) -> None:
    model, tokenizer = tiny("BERT", num_labels=3)
    classifier = HuggingFaceClassifier(wrapper(model), tokenizer)
    assert classifier.labels == ("0", "1", "2")
    np.testing.assert_allclose(
        classifier(TEXTS), HuggingFaceClassifier(model, tokenizer)(TEXTS), atol=1e-5
    )


def test_labels_of_the_callers_own() -> None:
    model, tokenizer = tiny("BERT", num_labels=3)
    classifier = HuggingFaceClassifier(PassedOn(model), tokenizer, labels=["a", "b", "c"])
    assert classifier.labels == ("a", "b", "c")
    one = HuggingFaceClassifier(*tiny("BERT", num_labels=1), labels=["no", "yes"])
    assert one(TEXTS).shape == (4, 2)
    assert one.labels == ("no", "yes")
    with pytest.raises(InputError, match=r"2 labels \(a, b\) and PassedOn has 3 classes"):
        _ = HuggingFaceClassifier(PassedOn(model), tokenizer, labels=["a", "b"]).labels


def test_independent_outputs_of_a_module_without_a_config() -> None:
    model, tokenizer = tiny("BERT", num_labels=3)
    many = HuggingFaceClassifier(PassedOn(model), tokenizer, independent=True)
    assert many.independent
    one = HuggingFaceClassifier(
        PassedOn(tiny("BERT", num_labels=1)[0]), tokenizer, independent=True
    )
    assert one.labels == ("0",)
    assert one(TEXTS).shape == (4, 1)


def test_a_model_loaded_in_16_bits() -> None:
    model, tokenizer = tiny("BERT")
    exact = HuggingFaceClassifier(model, tokenizer)(TEXTS)
    rough = HuggingFaceClassifier(tiny("BERT")[0].to(torch.bfloat16), tokenizer)(TEXTS)
    assert rough.dtype == np.float64
    assert 0 < np.abs(rough - exact).max() < 0.1


def test_a_model_loaded_in_8_bits() -> None:
    model, tokenizer = tiny("BERT")
    exact = HuggingFaceClassifier(model, tokenizer)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch moves this to another package
        small = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, torch.qint8)
        classifier = HuggingFaceClassifier(small, tokenizer)
        rough = classifier(TEXTS)
    assert classifier.labels == exact.labels
    assert 0 < np.abs(rough - exact(TEXTS)).max() < 0.2


def test_a_model_whose_weights_were_never_loaded() -> None:
    with torch.device("meta"):
        model = hf.BertForSequenceClassification(hf.BertConfig(num_hidden_layers=1))
    with pytest.raises(ClassifierError, match=r"never loaded .* load the model onto cpu or cuda"):
        HuggingFaceClassifier(model, wordpiece())(["A film"])


class TwoDevices(torch.nn.Module):
    """A part of the model was left on another device."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(400, 4)
        self.head = torch.nn.Linear(4, 2, device="meta")

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(input_ids).mean(dim=1))  # type: ignore[no-any-return]


def test_a_model_on_two_devices_is_one_sentence() -> None:
    classifier = HuggingFaceClassifier(TwoDevices(), wordpiece())
    with pytest.raises(ClassifierError, match="device"):
        classifier(["A film"])


def test_a_dict_without_scores() -> None:
    class Chatty(torch.nn.Module):
        def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"a": torch.zeros(len(input_ids), 2), "b": torch.zeros(len(input_ids), 2)}

    with pytest.raises(ClassifierError, match="does not return one row of scores"):
        HuggingFaceClassifier(Chatty(), wordpiece())(["A film"])
