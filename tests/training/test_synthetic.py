"""The data sets with a known truth."""

import json

import numpy as np
import pytest
import torch
from training.config import TrainingConfig
from training.models import Bench, load
from training.synthetic import (
    END,
    LINEAR,
    Linear,
    Slalom,
    draw_labelled,
    relu_net,
    slalom_truth,
    transformer,
    word_counts,
    word_tokenizer,
)

TINY = TrainingConfig(n_samples=200, batch=20, learning_rate=1e-3, width=16, n_heads=2)


def test_linear_words_are_as_frequent_as_the_paper_says():
    assert sum(p for _, p in LINEAR.values()) == pytest.approx(1)
    sequences, _ = draw_labelled(Linear(), 4000, np.random.default_rng(0))
    counts = word_counts(sequences, 10)
    assert counts.sum(axis=1).mean() == pytest.approx(15, abs=0.2)
    share = counts.sum(axis=0) / counts.sum()
    np.testing.assert_allclose(share, [p for _, p in LINEAR.values()], atol=0.006)


@pytest.mark.parametrize(
    "truth",
    [Linear(), Slalom(("a", "b", "c"), np.array([2.0, -1.0, 0.3]), np.array([1.0, 0.0, -1.0]))],
)
def test_labels_follow_the_log_odds(truth):
    sequences, labels = draw_labelled(truth, 20_000, np.random.default_rng(1))
    odds = truth.log_odds(sequences)
    for low, high in ((-1.2, -0.4), (-0.4, 0.4), (0.4, 1.2)):
        inside = (odds >= low) & (odds < high)
        share = labels[inside].mean()
        assert np.log(share / (1 - share)) == pytest.approx(odds[inside].mean(), abs=0.15)


def test_linear_log_odds_add_up_and_slalom_averages():
    perfect, bad = Linear().words.index("perfect"), Linear().words.index("bad")
    assert Linear().log_odds(np.array([[perfect, perfect, bad, END]])) == pytest.approx([2.0])
    truth = Slalom(("a", "b"), np.array([1.0, -1.0]), np.array([np.log(3), 0.0]))
    found = truth.log_odds(np.array([[0, END], [0, 0], [0, 1]]))
    assert found == pytest.approx([1, 1, 0.5])


def test_slalom_truth_comes_from_naive_bayes_and_is_kept(tmp_path):
    (tmp_path / "imdb").mkdir()
    rows = [{"text": f"word{i} film", "label": i % 2} for i in range(300)]
    lines = "\n".join(json.dumps(row) for row in rows)
    (tmp_path / "imdb" / "train.jsonl").write_text(lines)
    truth = slalom_truth(Bench(tmp_path, tmp_path / "cache"))
    assert len(truth.words) == 200
    noise = truth.importances - 5 * np.abs(truth.values) ** 1.5
    assert np.std(noise) == pytest.approx(0.5, abs=0.08)
    again = slalom_truth(Bench(None, tmp_path / "cache"))
    np.testing.assert_array_equal(again.values, truth.values)


@pytest.mark.parametrize("kind", ["bert", "distilbert", "gpt2"])
def test_a_transformer_is_trained_once_and_reads_words(kind, tmp_path):
    folder = transformer(Bench(None, tmp_path), Linear(), kind, 1, TINY)
    written = (folder / "record.json").stat().st_mtime_ns
    assert transformer(Bench(None, tmp_path), Linear(), kind, 1, TINY) == folder
    assert (folder / "record.json").stat().st_mtime_ns == written
    model, tokenizer = load(folder)
    ids = tokenizer("perfect perfect", return_tensors="pt")["input_ids"]
    assert ids.shape[1] == (2 if kind == "gpt2" else 3)
    assert model(input_ids=ids).logits.shape == (1, 2)


def test_unknown_words_are_known_to_be_unknown():
    tokenizer = word_tokenizer(Linear().words, with_cls=True)
    assert tokenizer.convert_ids_to_tokens(tokenizer("good what")["input_ids"]) == [
        "[CLS]",
        "good",
        "[UNK]",
    ]


def test_a_relu_net_follows_the_line():
    model = relu_net(400)
    place = Linear().words.index("perfect")
    with torch.no_grad():
        counts = torch.tensor([[1.0], [2.0], [4.0]]) * torch.eye(len(LINEAR))[place]
        scores = model(counts)[:, 0]
    np.testing.assert_allclose(scores, [1.5, 3.0, 6.0], rtol=0.2)
