"""Training and measuring."""

import numpy as np
import pytest
import torch
from torch import nn
from training.loop import (
    Recipe,
    Record,
    accuracy,
    best_temperature,
    calibration_error,
    fit,
    length_batches,
    log_odds,
    read_record,
    warm_cosine,
)


def test_batches_cover_all_rows_within_their_budget():
    documents = [[1] * length for length in (3, 50, 7, 7, 20, 1)]
    for rng in (None, np.random.default_rng(0)):
        batches = list(length_batches(documents, 60, n_texts=3, rng=rng))
        assert sorted(np.concatenate(batches)) == list(range(6))
        widest = [max(len(documents[row]) for row in rows) * len(rows) for rows in batches]
        assert max(widest) <= 60


def test_rate_rises_then_falls():
    assert warm_cosine(0.05, 0.1) == pytest.approx(0.5)
    assert warm_cosine(0.1, 0.1) == pytest.approx(1.0)
    assert warm_cosine(1.0, 0.1) == pytest.approx(0.01)


def test_calibrated_scores_have_no_calibration_error_and_temperature_one():
    rng = np.random.default_rng(0)
    scores = rng.normal(0, 2, 20_000)
    labels = (rng.random(20_000) < 1 / (1 + np.exp(-scores))).astype(int).tolist()
    assert calibration_error(scores, labels) < 0.012
    assert best_temperature(scores, labels) == pytest.approx(1, abs=0.04)
    assert best_temperature(3 * scores, labels) == pytest.approx(3, abs=0.12)
    assert calibration_error(3 * scores, labels) > 0.08


def test_certain_and_wrong_is_the_largest_calibration_error():
    assert calibration_error(np.array([50.0, -50.0]), [0, 1]) == pytest.approx(1)


class Bag(nn.Module):
    """The mean of embeddings."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(6, 2)

    def forward(self, ids, mask):
        return (self.embed(ids) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


def test_fit_learns_which_token_decides_and_scores_keep_their_order():
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=200).tolist()
    documents = [[4 + label, *rng.integers(1, 4, size=rng.integers(1, 5))] for label in labels]
    torch.manual_seed(0)
    model = Bag()
    fit(model, model, documents, labels, Recipe(20, 0.05, n_tokens=64))
    scores = log_odds(model, documents, torch.device("cpu"), 32)
    assert accuracy(scores, labels) == 1
    alone = log_odds(model, documents[7:8], torch.device("cpu"))
    assert alone[0] == pytest.approx(scores[7], abs=1e-6)


def test_long_training_says_how_far_it_is(monkeypatch, capsys):
    monkeypatch.setattr("training.loop.SECONDS_BETWEEN_REPORTS", -1.0)
    model = Bag()
    fit(model, model, [[4, 1], [5, 2]], [0, 1], Recipe(3, 0.05))
    assert "step 3 of 3, loss " in capsys.readouterr().err


def test_record_reads_back(tmp_path):
    record = Record("m", 0.5, 10, 4, 0, 1.5, "CPU", "notes")
    record.write(tmp_path / "m")
    assert read_record(tmp_path / "m") == record
