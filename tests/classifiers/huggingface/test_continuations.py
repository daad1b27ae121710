"""How likely an answer is after many beginnings: shared or not, batched or not, the same."""

import numpy as np
import pytest
import torch

from slalom.classifiers.huggingface import continuations
from slalom.classifiers.huggingface.calls import borrowed
from slalom.classifiers.huggingface.continuations import likelihoods, looks_ahead, written
from tokenizers_made_here import LANGUAGE_MODELS, tiny_language_model

ANSWER = [7, 300, 12, 9]
WITHOUT_TRIE = ("Mamba", "Mistral")  # recurrent; a window that slides


def rows(n_rows: int = 12) -> list[list[int]]:
    """Subsets of a text of 20 tokens, as they come."""
    rng = np.random.default_rng(0)
    text = rng.integers(5, 390, size=20)
    return [[3, *text[rng.random(20) < 0.6].tolist(), 4] for _ in range(n_rows)]


def one_by_one(model, row: list[int]) -> np.ndarray:
    """From the start, without keys and values of others."""
    ids = torch.tensor([[*row, *ANSWER[:-1]]])
    with torch.no_grad():
        logits = model(ids).logits[0, -len(ANSWER) :].double()
    own = logits[torch.arange(len(ANSWER)), ANSWER]
    p = torch.softmax(logits, dim=-1)[torch.arange(len(ANSWER)), ANSWER]
    assert torch.allclose(own - logits.logsumexp(-1), p.log())
    return (p.log() - torch.log1p(-p)).numpy()


def n_in_trie(rows: list[list[int]]) -> int:
    """Different beginnings of the rows, each one token; a row's last belongs to itself."""
    shared = {tuple(row[: n + 1]) for row in rows for n in range(len(row) - 1)}
    return len(shared) + len(rows) * len(ANSWER)


@pytest.mark.parametrize("architecture", LANGUAGE_MODELS)
def test_sharing_changes_no_number(architecture) -> None:
    model, _ = tiny_language_model(architecture)
    given = rows()
    told: list[int] = []
    found, n_computed = likelihoods(model, given, ANSWER, told.append)
    expected = [one_by_one(model, row) for row in given]
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)
    assert sum(told) == len(given)
    in_full = sum(len(row) + len(ANSWER) - 1 for row in given)
    assert n_computed <= in_full
    if architecture not in WITHOUT_TRIE:
        assert n_computed == n_in_trie(given) < 0.9 * in_full


@pytest.mark.parametrize("architecture", LANGUAGE_MODELS)
def test_batches_give_the_same(architecture) -> None:
    model, _ = tiny_language_model(architecture)
    given = sorted(rows())
    with borrowed(model, None):
        found, _ = continuations._in_batches(model, given, ANSWER, lambda n: None)
    expected = [one_by_one(model, row) for row in given]
    np.testing.assert_allclose(found, expected, atol=1e-4, rtol=0)


def test_what_is_certain_keeps_its_digits() -> None:
    scores = torch.zeros(1, 1, 10)
    scores[0, 0, 3] = 60.0
    found = continuations._log_odds(scores, [3])
    assert float(found[0, 0]) == pytest.approx(60.0 - np.log(9))


@pytest.mark.parametrize("architecture", LANGUAGE_MODELS)
def test_the_likeliest_token_each_time(architecture) -> None:
    model, _ = tiny_language_model(architecture)
    row, said = rows(1)[0], []
    for _ in range(6):
        with torch.no_grad():
            said.append(int(model(torch.tensor([[*row, *said]])).logits[0, -1].argmax()))
    assert written(model, row, frozenset(), 6) == said
    assert written(model, row, frozenset({said[2]}), 6) == said[: said.index(said[2])]


def test_a_model_is_given_back_as_it_was() -> None:
    model, _ = tiny_language_model("Llama")
    model.train()
    state = torch.random.get_rng_state()
    likelihoods(model, rows(3), ANSWER, lambda n: None)
    assert model.training
    assert torch.equal(state, torch.random.get_rng_state())


@pytest.mark.parametrize("architecture", LANGUAGE_MODELS)
def test_a_decoder_does_not_look_ahead(architecture) -> None:
    model, _ = tiny_language_model(architecture)
    assert not looks_ahead(model, (40, 90))
