"""An encoder in its parts answers as the model's own forward pass does."""

from typing import Any

import pytest
import torch
import transformers as hf

from slalom.classifiers.huggingface.encoder import Encoder, encoder_of
from tokenizers_made_here import ARCHITECTURES, tiny

ENCODERS = ["BERT", "DistilBERT", "Electra", "RoBERTa"]
N_LAYERS = {"DistilBERT": "n_layers"}


def parts_of(model: Any) -> Encoder:
    encoder = encoder_of(model)
    assert encoder is not None
    return encoder


@torch.inference_mode()
def by_parts(model: Any, ids: torch.Tensor, types: torch.Tensor, mask: Any) -> torch.Tensor:
    encoder = parts_of(model)
    places = torch.arange(ids.shape[1]).expand_as(ids)
    return encoder.scores(encoder.start(ids, places, types), mask)


@torch.inference_mode()
def by_model(model: Any, ids: torch.Tensor, types: torch.Tensor, mask: Any) -> torch.Tensor:
    typed = {"token_type_ids": types} if hasattr(model.config, "type_vocab_size") else {}
    logits: torch.Tensor = model(input_ids=ids, attention_mask=mask, **typed).logits
    return logits


@pytest.mark.parametrize("n_layers", [1, 2, 3])
@pytest.mark.parametrize("architecture", ENCODERS)
def test_padded_rows_of_two_types(architecture: str, n_layers: int) -> None:
    settings = {N_LAYERS.get(architecture, "num_hidden_layers"): n_layers}
    settings |= {"type_vocab_size": 2} if architecture == "RoBERTa" else {}
    model, tokenizer = tiny(architecture, **settings)
    ids = torch.randint(5, 300, (6, 9), generator=torch.Generator().manual_seed(0))
    types = (torch.arange(9) > 4).long().expand_as(ids)
    lengths = torch.tensor([9, 9, 7, 4, 2, 1])
    mask = torch.arange(9) < lengths[:, None]
    ids = torch.where(mask, ids, tokenizer.pad_token_id)
    expected = by_model(model, ids, types, mask)
    assert (expected[:, 1] - expected[:, 0]).std() > 0.01
    torch.testing.assert_close(by_parts(model, ids, types, mask), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("architecture", ENCODERS)
def test_rows_of_one_length_take_no_mask(architecture: str) -> None:
    model, _ = tiny(architecture)
    ids = torch.randint(5, 300, (6, 9), generator=torch.Generator().manual_seed(1))
    types = torch.zeros_like(ids)
    expected = by_model(model, ids, types, torch.ones_like(ids))
    torch.testing.assert_close(by_parts(model, ids, types, None), expected, atol=1e-5, rtol=1e-5)


def test_embeddings_narrower_than_the_layers() -> None:
    model, _ = tiny("Electra", embedding_size=8)
    ids, types = torch.arange(5, 11)[None], torch.zeros(1, 6, dtype=torch.long)
    expected = by_model(model, ids, types, torch.ones_like(ids))
    torch.testing.assert_close(by_parts(model, ids, types, None), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("architecture", sorted(set(ARCHITECTURES) - set(ENCODERS)))
def test_other_architectures_have_no_such_parts(architecture: str) -> None:
    assert encoder_of(tiny(architecture)[0]) is None


def test_other_heads_have_no_such_parts() -> None:
    config = tiny("BERT")[0].config
    assert encoder_of(hf.BertForMultipleChoice(config)) is None
    assert encoder_of(torch.nn.Linear(2, 2)) is None


class TheirLinear(torch.nn.Linear):
    """As an adapter would put it in place of a layer."""


class TheirClassifier(hf.BertForSequenceClassification):
    """May read its answer off wherever it likes."""


def test_models_that_somebody_changed_have_no_such_parts() -> None:
    hooked, _ = tiny("BERT")
    hook = hooked.bert.encoder.layer[0].attention.register_forward_hook(lambda *given: None)
    assert encoder_of(hooked) is None
    hook.remove()
    assert encoder_of(hooked) is not None
    hooked.bert.pooler.forward = lambda hidden: hidden[:, -1]
    assert encoder_of(hooked) is None

    hooked, _ = tiny("BERT")
    everywhere = torch.nn.modules.module.register_module_forward_hook(lambda *given: None)
    assert encoder_of(hooked) is None
    everywhere.remove()
    assert encoder_of(hooked) is not None

    adapted, _ = tiny("BERT")
    adapted.bert.encoder.layer[1].attention.self.value = TheirLinear(16, 16)
    assert encoder_of(adapted) is None
    assert encoder_of(TheirClassifier(adapted.config)) is None
