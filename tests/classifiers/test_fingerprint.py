"""What tells a model from another of the same name."""

import copy

import pytest
import torch

import slalom
from slalom.classifiers.base import fingerprint_of
from slalom.classifiers.cached import CachedClassifier
from slalom.classifiers.huggingface.causal import CausalClassifier
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from tokenizers_made_here import tiny, tiny_language_model

LABELS = {"negative": " bad", "positive": " great"}


def test_other_weights_are_another_model_and_the_same_are_not():
    model, tokenizer = tiny("BERT")
    mine = fingerprint_of(HuggingFaceClassifier(model, tokenizer))
    again = HuggingFaceClassifier(copy.deepcopy(model), tokenizer, name="called otherwise")
    assert fingerprint_of(CachedClassifier(again)) == mine
    with torch.no_grad():
        model.classifier.bias += 1e-3
    assert fingerprint_of(HuggingFaceClassifier(model, tokenizer)) != mine
    assert fingerprint_of(HuggingFaceClassifier(model, tokenizer, precision="bf16")) != mine


def test_another_prompt_or_answer_is_another_model():
    model, tokenizer = tiny_language_model("GPT-2")
    ways = [
        (LABELS, "Review: {text}\nVerdict:"),
        (LABELS, "{text}\nIt was"),
        ({**LABELS, "positive": " fine"}, "{text}\nIt was"),
    ]
    made = [CausalClassifier(model, tokenizer, labels, prompt) for labels, prompt in ways]
    assert len({fingerprint_of(classifier) for classifier in made}) == 3


@pytest.mark.parametrize("change", [{"prompt": "Rate {text}"}, {"n_samples": 3}, {"labels": "AB"}])
def test_a_chat_model_is_another_if_it_is_asked_in_another_way(change):
    given = {"model": "m", "labels": {"bad": "0", "good": "1"}, "base_url": "http://h/v1"}
    if "labels" in change:
        change = {"labels": {"bad": "A", "good": "B"}}
    mine = fingerprint_of(slalom.ChatClassifier(**given))
    assert fingerprint_of(slalom.ChatClassifier(**given | {"base_url": "http://i/v1"})) == mine
    assert fingerprint_of(slalom.ChatClassifier(**given | change)) != mine
