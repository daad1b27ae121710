"""Closed forms of the single-layer attention model against autograd."""

import numpy as np
import pytest
import torch

import slalom
from slalom.theory.attention_model import (
    attention_scores,
    gradient_scores,
    random_attention_model,
    sinusoids,
)
from slalom.theory.attention_torch import AttentionModule, fit

WORDS = "a film that dares to be slow and then rewards every patient viewer".split()


@pytest.fixture(params=[1, 3], ids=["one head", "three heads"])
def model(request):
    rng = np.random.default_rng(request.param)
    return random_attention_model(WORDS, rng, n_positions=20, n_heads=request.param, key_scale=2.0)


def test_the_model_by_hand():
    """Two positions, one head of width one: f is a mean of two numbers with known weights."""
    model = random_attention_model(["yes"], np.random.default_rng(0), n_positions=2, width=1)
    ids = model.ids(["yes"])
    e = [model.W_e[i, 0] + np.sin((t + 1) / 2**2) for t, i in enumerate(ids)]
    q, k, v, w = (
        model.W_q[0, 0, 0] * model.cls[0],
        *(part.item() for part in (model.W_k, model.W_v, model.W_l)),
    )
    weights = np.exp([q * k * part for part in e])
    assert model(ids) == pytest.approx(weights @ [w * v * part for part in e] / weights.sum())


def test_positions_are_as_printed():
    table = sinusoids(50, 6)
    assert table.shape == (50, 6)
    assert table[6, 2] == pytest.approx(np.sin(7 / 50 ** (4 / 6)))  # coordinate 2i − 1, i = 2
    assert table[6, 3] == pytest.approx(np.cos(7 / 50 ** (4 / 6)))
    assert sinusoids(50, 5).shape == (50, 5)


def test_torch_computes_the_same(model):
    ids = np.stack([model.ids(WORDS), model.ids(WORDS[3:7]), model.ids([])])
    module = AttentionModule(model)
    embeddings = module.embed(torch.from_numpy(ids))
    np.testing.assert_allclose(module(embeddings).detach().numpy(), model(ids), atol=1e-12)
    np.testing.assert_allclose(
        module.attention(embeddings).detach().numpy(), model.attention(ids), atol=1e-12
    )


def test_the_gradient_is_autograds_to_1e_10(model):
    ids = model.ids(WORDS)
    module = AttentionModule(model)
    embeddings = module.embed(torch.from_numpy(ids[None])).detach().requires_grad_()
    module(embeddings).sum().backward()
    np.testing.assert_allclose(model.gradient(ids), embeddings.grad[0, 1:].numpy(), atol=1e-10)


def test_token_scores_are_read_off_the_gradient(model):
    ids = model.ids(WORDS)
    slopes, scores = model.gradient(ids), gradient_scores(model, ids)
    assert list(scores) == ["G-avg", "G-L1", "G-L2", "G×I"]
    np.testing.assert_allclose(scores["G-L2"], np.linalg.norm(slopes, axis=1))
    np.testing.assert_allclose(scores["G×I"], np.sum(slopes * model.embed(ids), axis=1))
    assert (scores["G-L1"] >= np.abs(scores["G-avg"]) * slopes.shape[1] - 1e-12).all()


def test_attention_scores_average_and_maximum(model):
    scores = attention_scores(model, model.ids(WORDS))
    assert scores["α-avg"].sum() == pytest.approx(1.0)
    assert (scores["α-max"] >= scores["α-avg"] - 1e-12).all()


def test_words_that_are_not_known_are_h(model):
    np.testing.assert_array_equal(model.ids(["never", "seen"]), model.ids([]))
    with pytest.raises(slalom.SlalomError, match="20 positions and was given 21 words"):
        model.ids(["a"] * 21)


def test_it_learns():
    """The sign of a text is the sign of its one telling word."""
    rng = np.random.default_rng(0)
    fillers = WORDS[:6]
    classes = rng.integers(0, 2, size=200)
    telling = np.where(classes == 1, "good", "bad")
    start = random_attention_model([*fillers, "good", "bad"], rng, n_positions=8, width=8)
    ids = np.stack([start.ids([*rng.permutation(fillers)[:5], word]) for word in telling])
    trained = fit(start, ids, classes.astype(float), n_epochs=20)
    assert ((trained(ids) > 0) == classes).mean() > 0.95
    assert not np.array_equal(start.W_k, trained.W_k)
