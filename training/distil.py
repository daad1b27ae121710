"""A teacher fine-tuned on pieces of reviews, and students that learn its log-odds on fresh ones.

Knows models and streams of own ids, nothing of files. A teacher reads own ids through an
`Expansion`; a student starts as a fine-tuned BERT of few layers with the own vocabulary put in,
and learns with its word embeddings rounded as they will be stored.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, huber_loss
from torch.nn.utils import parametrize
from torch.utils.data import DataLoader
from transformers import BertForSequenceClassification

from training.loop import adam, descend, half_on_gpu, warm_cosine
from training.packing import quantise
from training.spans import UNLABELLED, Batch, SpanStream
from training.vocabulary import PAD, Expansion

Bert = BertForSequenceClassification
Loss = Callable[[Bert, Tensor, Tensor], Tensor]  # model, ids, labels


@dataclass(frozen=True)
class Schedule:
    """How many steps, and the rate that rises and falls over them."""

    n_steps: int
    learning_rate: float
    warmup: float = 0.05
    averaging: float = 0.998  # of the exponential mean of weights
    watch_every: int = 200


def stream_batches(stream: SpanStream, n_workers: int) -> Iterator[Batch]:
    ahead = 16 if n_workers else None
    return iter(DataLoader(stream, batch_size=None, num_workers=n_workers, prefetch_factor=ahead))


def learn(
    models: Sequence[Bert],
    losses: Callable[[Tensor, Tensor], Loss],
    stream: Iterator[Batch],
    schedule: Schedule,
    watch: Callable[[int, float], None],
) -> list[Bert]:
    """Trains all models on the same batches; the running means of their weights.

    `losses` makes the loss of a batch from its ids and labels, so that what the models share (a
    teacher's answer) is worked out once.
    """
    device = models[0].device
    means = [copy.deepcopy(model).eval() for model in models]
    optimisers = [adam(model.train(), schedule.learning_rate) for model in models]
    for step, batch in enumerate(islice(stream, schedule.n_steps)):
        rate = schedule.learning_rate * warm_cosine(step / schedule.n_steps, schedule.warmup)
        ids, labels = batch.on(device)
        loss_of = losses(ids, labels)
        for model, mean, optimiser in zip(models, means, optimisers, strict=True):
            for group in optimiser.param_groups:
                group["lr"] = rate
            with half_on_gpu(device):
                loss = loss_of(model, ids, labels)
            descend(model, optimiser, loss)
            update_average(mean, model, min(schedule.averaging, (step + 1) / (step + 10)))
        if step % schedule.watch_every == 0:
            watch(step, loss.item())
    return means


@torch.no_grad()
def update_average(mean: nn.Module, model: nn.Module, kept: float) -> None:
    for slow, fast in zip(mean.parameters(), model.parameters(), strict=True):
        slow.lerp_(fast, 1 - kept)


def log_odds_of(model: Bert, ids: Tensor) -> Tensor:
    logits = model(input_ids=ids, attention_mask=ids != PAD).logits.float()
    return logits[:, 1] - logits[:, 0]  # (n,)


def from_labels(bridge: Expansion) -> Callable[[Tensor, Tensor], Loss]:
    """Cross-entropy against the label of the review that a piece is from."""

    def losses(ids: Tensor, labels: Tensor) -> Loss:
        expanded = bridge(ids)
        return lambda model, _, __: binary_cross_entropy_with_logits(
            log_odds_of(model, expanded), labels.clamp(min=0).float()
        )

    return losses


def from_teacher(teacher: Bert, bridge: Expansion) -> Callable[[Tensor, Tensor], Loss]:
    """Softened cross-entropy against the teacher and distance from its log-odds; whole reviews
    bring their labels."""

    def losses(ids: Tensor, labels: Tensor) -> Loss:
        with torch.no_grad():
            wanted = log_odds_of(teacher, bridge(ids))
        known = (labels != UNLABELLED).float()

        def loss(model: Bert, ids: Tensor, labels: Tensor) -> Tensor:
            scores = log_odds_of(model, ids)
            soft = binary_cross_entropy_with_logits(scores / 2, torch.sigmoid(wanted / 2))
            hard = binary_cross_entropy_with_logits(scores, labels.float(), weight=known)
            return 4 * soft + 0.1 * huber_loss(scores, wanted, delta=2.0) + 0.2 * hard

        return loss

    return losses


def with_vocabulary(source: Bert, bridge: Expansion) -> Bert:
    """A copy that reads own ids: each own piece starts as the mean of its pieces in the source."""
    model = copy.deepcopy(source).cpu()
    pieces, lengths = bridge.pieces.cpu(), bridge.lengths.cpu()
    table = model.bert.embeddings.word_embeddings.weight.detach()
    inside = torch.arange(pieces.shape[1]) < lengths[:, None]
    rows = (table[pieces] * inside[..., None]).sum(dim=1) / lengths.clamp(min=1)[:, None]
    model.set_input_embeddings(nn.Embedding.from_pretrained(rows, freeze=False, padding_idx=PAD))
    model.config.vocab_size = len(rows)
    return model.to(source.device)


class Rounded(nn.Module):
    """A matrix as it comes out of 4 bits; gradients pass through."""

    def forward(self, weight: Tensor) -> Tensor:
        steps, scale = quantise(weight, n_steps=7)
        return weight + (steps * scale.float()[:, None] - weight).detach()


def round_embeddings(model: Bert) -> None:
    parametrize.register_parametrization(model.get_input_embeddings(), "weight", Rounded())


def unround_embeddings(model: Bert) -> None:
    parametrize.remove_parametrizations(
        model.get_input_embeddings(), "weight", leave_parametrized=False
    )
