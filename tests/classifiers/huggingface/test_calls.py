import threading
from typing import Any

import numpy as np
import pytest
import torch

from slalom.classifiers.huggingface import calls
from slalom.classifiers.huggingface.calls import context_length, forward_accepts, preserve_settings
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.classifiers.huggingface.devices import PendingScores
from slalom.errors import ClassifierError, SlalomWarning
from tokenizers_made_here import TEXTS, tiny


class Cramped(torch.nn.Module):
    """A model on a device with memory for a few tokens only."""

    def __init__(self, n_tokens: int) -> None:
        super().__init__()
        self.inner, self.n_tokens = tiny("BERT")[0], n_tokens
        self.sizes: list[int] = []

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> Any:
        if input_ids.numel() > self.n_tokens:
            raise torch.OutOfMemoryError
        self.sizes.append(len(input_ids))
        return self.inner(input_ids, attention_mask=attention_mask)


def test_a_device_that_runs_out_of_memory_gets_smaller_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "MIN_ROWS", 1)  # texts are counted, not their copies
    model, tokenizer = tiny("BERT")
    expected = HuggingFaceClassifier(model, tokenizer)(TEXTS * 4)
    cramped = Cramped(100)
    classifier = HuggingFaceClassifier(cramped, tokenizer)
    before = calls.tokens_per_batch(cramped)
    with pytest.warns(SlalomWarning, match="batches half as large"):  # once, however often
        found = classifier(TEXTS * 4)
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert sum(cramped.sizes) == 16 + 1  # and one to learn the number of classes
    assert max(cramped.sizes) > 1
    assert calls.tokens_per_batch(cramped) < before  # the next call begins where this one ended


def test_a_device_too_small_for_one_text_is_an_error() -> None:
    classifier = HuggingFaceClassifier(Cramped(5), tiny("BERT")[1])
    with (
        pytest.warns(SlalomWarning, match="out of memory"),
        pytest.raises(ClassifierError, match="too little memory for a single text"),
    ):
        classifier(TEXTS)


@pytest.mark.parametrize("budget", [1, 50, 2**20])
def test_the_budget_changes_no_score(budget: int, monkeypatch: pytest.MonkeyPatch) -> None:
    classifier = HuggingFaceClassifier(*tiny("GPT-2"))
    expected = classifier(TEXTS)
    monkeypatch.setitem(calls.TOKENS, "cpu", budget)
    np.testing.assert_allclose(classifier(TEXTS), expected, atol=1e-5)


def test_threads_do_not_put_back_each_others_changes() -> None:
    model, tokenizer = tiny("GPT-2")
    model.train()
    classifier = HuggingFaceClassifier(model, tokenizer)
    expected = classifier(TEXTS)
    answers: list[Any] = []

    def ask() -> None:
        for _ in range(5):
            classifier.split(TEXTS[0])
            answers.append(classifier(TEXTS))

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 20
    assert all(np.abs(answer - expected).max() < 1e-5 for answer in answers)
    assert model.training
    assert model.config.pad_token_id is None


def test_a_model_is_free_while_its_answers_are_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next batch can be begun, and the caller may train: what was begun is not touched."""
    model, tokenizer = tiny("BERT")
    model.train()
    classifier = HuggingFaceClassifier(model, tokenizer)
    expected = classifier(TEXTS)
    plain, found = PendingScores.answers, []

    def waiting(self: PendingScores) -> Any:
        monkeypatch.setattr(PendingScores, "answers", plain)
        assert model.training
        thread = threading.Thread(target=lambda: found.append(classifier(TEXTS)))
        thread.start()
        thread.join(20)
        return plain(self)

    monkeypatch.setattr(PendingScores, "answers", waiting)
    np.testing.assert_array_equal(classifier(TEXTS), expected)
    np.testing.assert_array_equal(found[0], expected)


def test_a_borrowed_model_is_in_eval_mode_with_a_pad_id() -> None:
    model, _ = tiny("GPT-2")
    model.train()
    with preserve_settings(model, 7):
        assert not any(module.training for module in model.modules())
        assert model.config.pad_token_id == 7
    assert all(module.training for module in model.modules())
    assert model.config.pad_token_id is None


def test_what_forward_takes_is_read_off_the_model() -> None:
    assert forward_accepts(tiny("BERT")[0], "token_type_ids")
    assert not forward_accepts(tiny("DistilBERT")[0], "token_type_ids")
    assert not forward_accepts(tiny("FNet")[0], "attention_mask")


def test_the_context_is_the_smaller_of_models_and_tokenizers() -> None:
    model, tokenizer = tiny("BERT")
    assert context_length(model, tokenizer) == 64
    assert context_length(torch.nn.Linear(1, 1), tokenizer) == calls.LONGEST
    tokenizer.model_max_length, unlimited = 20, tokenizer.model_max_length
    try:
        assert context_length(model, tokenizer) == 20
    finally:
        tokenizer.model_max_length = unlimited


@pytest.mark.parametrize("architecture", ["BERT", "RoBERTa", "GPT-2"])
def test_a_short_text_gets_the_same_answer_alone_and_among_others(architecture: str) -> None:
    """But for last digits, where only others make a table worth while."""
    classifier = HuggingFaceClassifier(*tiny(architecture))
    short, *others = ["Not bad", *TEXTS, "Dull.", "A film"]
    alone = classifier([short])
    np.testing.assert_allclose(classifier([*others, short])[-1:], alone, atol=5e-7, rtol=0)
    np.testing.assert_allclose(classifier([short, *others])[:1], alone, atol=5e-7, rtol=0)


def test_a_model_that_cannot_read_a_word_alone_says_which_method_does_not_ask() -> None:
    class Long(torch.nn.Module):
        def forward(self, input_ids: torch.Tensor) -> None:
            raise RuntimeError("too short to pool")

    with pytest.raises(ClassifierError, match=r"given 3 tokens: if it cannot.*leave-one-out"):
        calls.forward(Long(), {"input_ids": torch.zeros((2, 3), dtype=torch.long)})
    with pytest.raises(ClassifierError, match=r"too short to pool$"):
        calls.forward(Long(), {"input_ids": torch.zeros((2, 30), dtype=torch.long)})
