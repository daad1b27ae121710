"""Rows are asked by a shortcut only where it gives the model's own scores."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from slalom.classifiers.huggingface import encoder
from slalom.classifiers.huggingface.batching import LongArray, TokenRows, assemble, frame_in
from slalom.classifiers.huggingface.classifier import HuggingFaceClassifier
from slalom.classifiers.huggingface.devices import on_device
from slalom.classifiers.huggingface.encoder import quickest
from slalom.document import END, Queries, queries_from_masks
from tokenizers_made_here import TEXTS, made, tiny

SHORT = [("BERT", True), ("DistilBERT", False), ("RoBERTa", False), ("Electra", True)]


@pytest.fixture(autouse=True)
def nothing_is_remembered() -> None:
    """Models are shared by tests."""
    encoder._agreed.clear()


def subsets(n_units: int, n: int = 90) -> Queries:
    rng = np.random.default_rng(0)
    return queries_from_masks(rng.random((n, n_units)) < rng.random((n, 1)))


def short_sequences(n_units: int, n: int = 90) -> Queries:
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, n_units, size=(n, 3)).astype(np.int32)
    drawn[::2, 2] = END
    return drawn


class Plain:
    """A model's own forward pass, row by row; remembers how many rows it was asked."""

    def __init__(self, model: Any, rows: TokenRows, typed: bool) -> None:
        self.model, self.rows, self.typed, self.n_asked = model, rows, typed, 0

    def __call__(self, chosen: LongArray) -> torch.Tensor:
        self.n_asked += len(chosen)
        return torch.cat([self._one(row) for row in chosen])

    def _one(self, row: int) -> torch.Tensor:
        shown = slice(self.rows.starts[row], self.rows.starts[row] + self.rows.lengths[row])
        ids, types = (
            torch.from_numpy(part[None, shown].astype(np.int64))
            for part in (self.rows.ids, self.rows.types)
        )
        named = {"token_type_ids": types} if self.typed else {}
        return self.model(input_ids=ids, **named).logits  # type: ignore[no-any-return]


def rows_of(architecture: str, queries: Any) -> TokenRows:
    document = made(architecture).split(TEXTS[1])
    return assemble(frame_in(document), queries(document.n_units))


def shortcut(model: Any, rows: TokenRows, plain: Plain) -> Any:
    if not plain.typed:
        rows = replace(rows, types=np.zeros_like(rows.types))
    ask, any_lengths = quickest(model, on_device(rows, torch.device("cpu")), plain)
    assert not any_lengths  # that is for GPUs
    return ask


@pytest.mark.parametrize("queries", [subsets, short_sequences])
@pytest.mark.parametrize(("architecture", "typed"), SHORT)
@torch.inference_mode()
def test_scores_are_the_models_own(architecture: str, typed: bool, queries: Any) -> None:
    model, rows = made(architecture).model, rows_of(architecture, queries)
    plain = Plain(model, rows, typed)
    ask = shortcut(model, rows, plain)
    compared = plain.n_asked
    assert 0 < compared < 5
    everything = np.arange(len(rows.lengths))[::-1].copy()
    found = ask(everything)
    assert plain.n_asked == compared  # the model itself was not asked again
    torch.testing.assert_close(found, plain(everything), atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_a_table_and_none_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows = made("BERT").model, rows_of("BERT", short_sequences)
    rows = replace(rows, types=(rows.ids % 2).astype(np.int32))  # a token here is of one type
    plain = Plain(model, rows, typed=True)
    chosen = np.arange(len(rows.lengths))
    with_table = shortcut(model, rows, plain)
    monkeypatch.setattr(encoder, "LARGEST_TABLE", 0)
    without = shortcut(model, rows, plain)
    assert plain not in (with_table, without)
    found = with_table(chosen)
    torch.testing.assert_close(found, without(chosen), atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(found, plain(chosen), atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_types_that_a_model_is_not_shown_do_not_count() -> None:
    model, rows = made("BERT").model, rows_of("BERT", short_sequences)
    rows = replace(rows, types=np.ones_like(rows.types))
    plain = Plain(model, rows, typed=False)
    ask = shortcut(model, rows, plain)
    assert ask is not plain
    chosen = np.arange(60)
    torch.testing.assert_close(ask(chosen), plain(chosen), atol=1e-5, rtol=1e-5)


class MeanOfAll(torch.nn.Module):
    """A head that reads every token."""

    def __init__(self) -> None:
        super().__init__()
        self.out = torch.nn.Linear(16, 2)

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        return self.out(hidden.mean(dim=1))  # type: ignore[no-any-return]


@torch.inference_mode()
def test_a_model_that_answers_otherwise_is_asked_itself() -> None:
    model, _ = tiny("RoBERTa")
    model.classifier = MeanOfAll()
    rows = rows_of("RoBERTa", subsets)
    plain = Plain(model, rows, typed=False)
    assert shortcut(model, rows, plain) is plain
    assert plain.n_asked > 0


def test_where_there_is_nothing_to_gain_nothing_is_compared() -> None:
    rows = rows_of("BERT", subsets)
    for model in (tiny("BERT")[0].bfloat16(), made("GPT-2").model):
        plain = Plain(model, rows, typed=True)
        assert shortcut(model, rows, plain) is plain
        assert plain.n_asked == 0


@torch.inference_mode()
def test_answers_are_compared_once_for_the_same_weights() -> None:
    model, rows = tiny("BERT")[0].eval(), rows_of("BERT", subsets)
    one = rows_of("BERT", lambda n_units: subsets(n_units, 1))
    compared = []
    for given in (one, one, rows, rows, one):
        plain = Plain(model, given, typed=True)
        assert shortcut(model, given, plain) is not plain
        compared.append(plain.n_asked)
    assert compared == [1, 1, 3, 0, 0]


def test_a_transformers_with_other_names_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    model, rows = made("BERT").model, rows_of("BERT", subsets)
    monkeypatch.delattr(type(model.bert.encoder.layer[0]), "feed_forward_chunk")
    plain = Plain(model, rows, typed=True)
    assert shortcut(model, rows, plain) is plain


def test_a_pad_inside_a_text_moves_positions_so_that_the_model_is_asked() -> None:
    """RoBERTa counts positions without pads."""
    rows = rows_of("RoBERTa", subsets)
    padded = replace(rows, ids=np.where(rows.ids == rows.ids[2], 1, rows.ids).astype(np.int32))
    model = made("RoBERTa").model
    plain = Plain(model, padded, False)
    assert shortcut(model, padded, plain) is plain


@pytest.mark.parametrize("architecture", ["BERT", "DistilBERT", "RoBERTa", "GPT-2"])
def test_many_queries_get_the_scores_that_few_get(architecture: str) -> None:
    """Train mode comes back."""
    model, tokenizer = tiny(architecture)
    model.train()
    classifier = HuggingFaceClassifier(model, tokenizer)
    document = classifier.split(TEXTS[3])
    queries = short_sequences(document.n_units, 200)
    (together,) = classifier.logits([(document, queries)])
    few = [classifier.logits([(document, part)])[0] for part in np.array_split(queries, 10)]
    np.testing.assert_allclose(together, np.concatenate(few), atol=1e-5)
    assert np.ptp(together, axis=0).min() > 0.01
    assert all(module.training for module in model.modules())


def test_a_model_is_another_once_its_weights_or_modules_are() -> None:
    """Then answers are compared anew."""
    model, _ = tiny("RoBERTa")
    before = encoder._state(model)
    assert encoder._state(model) == before
    with torch.no_grad():
        model.classifier.dense.weight.mul_(2)
    changed = encoder._state(model)
    assert changed != before
    model.classifier = MeanOfAll()
    assert encoder._state(model) not in (before, changed)


def test_a_model_is_another_once_its_settings_are() -> None:
    model, _ = tiny("BERT")
    states = [encoder._state(model)]
    model.set_attn_implementation("eager")
    states.append(encoder._state(model))
    model.bert.encoder.layer[0].attention.self.scaling *= 3
    states.append(encoder._state(model))
    model.classifier.weight.data = torch.ones(2, 16)
    states.append(encoder._state(model))
    model.config.is_decoder = True
    states.append(encoder._state(model))
    assert len(set(states)) == 5


@torch.inference_mode()
def test_attention_that_is_changed_between_two_calls_is_the_models_own() -> None:
    model, rows = tiny("BERT")[0].eval(), rows_of("BERT", subsets)
    plain = Plain(model, rows, typed=True)
    assert shortcut(model, rows, plain) is not plain
    model.bert.encoder.layer[0].attention.self.scaling *= 3
    assert shortcut(model, rows, plain) is plain


def test_a_model_that_takes_even_lengths_only_is_asked_itself() -> None:
    """Its layers cut rows into pairs of tokens, and the first token is none."""
    model, tokenizer = tiny("DistilBERT", chunk_size_feed_forward=2)
    classifier = HuggingFaceClassifier(model, tokenizer)
    inputs = tokenizer("great acting", return_tensors="pt", return_token_type_ids=False)
    assert inputs.input_ids.shape[1] % 2 == 0
    document = classifier.split("great acting")
    (found,) = classifier.logits([(document, document.full())])
    with torch.inference_mode():
        expected = model(**inputs).logits
    np.testing.assert_allclose(found, expected.numpy(), atol=1e-6)
