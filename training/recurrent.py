"""An LSTM on own word pieces, as a peer that reads in order without attention."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from training.data import Reviews
from training.loop import Recipe, best_device, fit, log_odds
from training.vocabulary import write_tokenizer

CONTEXT = 256


class Lstm(nn.Module):
    """Both directions, the largest output over the text, a linear head."""

    def __init__(self, n_tokens: int, width: int = 128) -> None:
        super().__init__()
        self.embed = nn.Embedding(n_tokens, width, padding_idx=0)
        self.read = nn.LSTM(width, width, batch_first=True, bidirectional=True)
        self.drop = nn.Dropout(0.3)
        self.score = nn.Linear(2 * width, 2)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        lengths = mask.sum(dim=1).clamp(min=1).cpu()
        packed = nn.utils.rnn.pack_padded_sequence(
            self.drop(self.embed(ids)), lengths, batch_first=True, enforce_sorted=False
        )
        states, _ = nn.utils.rnn.pad_packed_sequence(
            self.read(packed)[0], batch_first=True, padding_value=-1e4, total_length=ids.shape[1]
        )
        return self.score(self.drop(states.amax(dim=1)))  # (n, 2)


@dataclass(frozen=True)
class LstmClassifier:
    """`texts → (n, 2) probabilities`."""

    model: Lstm
    tokenizer: PreTrainedTokenizerFast

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float64]:
        device = next(self.model.parameters()).device
        scores = log_odds(self.model, encoded(self.tokenizer, texts), device, 16_384)
        positive = 1 / (1 + np.exp(-scores))
        return np.stack([1 - positive, positive], axis=1)


def encoded(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> list[list[int]]:
    ids: list[list[int]] = tokenizer(list(texts), truncation=True, max_length=CONTEXT)["input_ids"]
    return ids


def lstm(reviews: Reviews, tokenizer: PreTrainedTokenizerFast, recipe: Recipe) -> LstmClassifier:
    torch.manual_seed(recipe.seed)
    model = Lstm(len(tokenizer)).to(best_device())
    fit(model, model, encoded(tokenizer, reviews.texts), reviews.labels, recipe)
    return LstmClassifier(model.cpu().eval(), tokenizer)


def write_lstm(classifier: LstmClassifier, folder: Path) -> None:
    write_tokenizer(classifier.tokenizer, folder)
    save_file(classifier.model.state_dict(), folder / "model.safetensors")


def read_lstm(folder: Path) -> LstmClassifier:
    stored = load_file(folder / "model.safetensors")
    model = Lstm(*stored["embed.weight"].shape)
    model.load_state_dict(stored)
    return LstmClassifier(model.eval(), PreTrainedTokenizerFast.from_pretrained(folder))
