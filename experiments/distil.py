"""A teacher fine-tuned on pieces of reviews, and students that learn its log-odds on fresh ones.

Knows models and streams of own ids, nothing of files. Teacher: MiniLM read through `Expansion`.
Student: an ELECTRA encoder with narrow embeddings, started from the teacher's.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cosine_similarity, huber_loss
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.data import DataLoader
from transformers import BertForSequenceClassification, ElectraForSequenceClassification

from experiments.spans import UNLABELLED, Batch, SpanStream
from experiments.training import adam, half_on_gpu, warm_cosine
from experiments.vocabulary import PAD, Expansion

Watch = Callable[[int, float], None]  # step, mean loss


@dataclass(frozen=True)
class Schedule:
    """Ends after so many steps or seconds, whichever comes first; the rate falls accordingly."""

    n_steps: int
    n_seconds: float
    learning_rate: float = 5e-4  # students: each shape has its own
    warmup: float = 0.05
    averaging: float = 0.999  # of the exponential mean of weights
    watch_every: int = 250

    def progress(self, step: int, started: float) -> float:
        return max(step / self.n_steps, (time.monotonic() - started) / self.n_seconds)


def steps(stream: SpanStream, n_workers: int) -> Iterator[list[Batch]]:
    ahead = 16 if n_workers else None
    return iter(DataLoader(stream, batch_size=None, num_workers=n_workers, prefetch_factor=ahead))


def train_teacher(
    teacher: BertForSequenceClassification,
    expansion: Expansion,
    stream: Iterator[list[Batch]],
    schedule: Schedule,
    watch: Watch,
) -> BertForSequenceClassification:
    """Cross-entropy against the label of the review a piece is from; the mean of the weights."""
    device, started = teacher.device, time.monotonic()
    average = mean_of(teacher, schedule)
    optimiser = adam(teacher, schedule.learning_rate)
    teacher.train()
    for step, batches in enumerate(stream):
        progress = schedule.progress(step, started)
        if progress >= 1:
            break
        set_rate(optimiser, schedule.learning_rate * warm_cosine(progress, schedule.warmup))
        n_samples = sum(len(batch.labels) for batch in batches)
        optimiser.zero_grad(set_to_none=True)
        total = torch.zeros((), device=device)
        for batch in batches:
            ids, labels, _ = batch.on(device)
            with half_on_gpu(device):
                scores, _ = teacher_scores(teacher, expansion(ids)[0])
            loss = binary_cross_entropy_with_logits(scores, labels.float())
            loss = loss * len(labels) / n_samples
            loss.backward()
            total += loss.detach()
        update(teacher, optimiser, average)
        if step % schedule.watch_every == 0:
            watch(step, float(total))
    return average.module.eval()


def teacher_scores(teacher: BertForSequenceClassification, ids: Tensor) -> tuple[Tensor, Tensor]:
    """Log-odds (n,) and last hidden states (n, width, d)."""
    output = teacher(input_ids=ids, attention_mask=ids != PAD, output_hidden_states=True)
    return log_odds_of(output.logits), output.hidden_states[-1]


def log_odds_of(logits: Tensor) -> Tensor:
    return logits[:, 1].float() - logits[:, 0].float()


@dataclass(frozen=True)
class Learner:
    """A student in training, with all that changes beside it."""

    model: ElectraForSequenceClassification
    match: nn.Linear  # student states → teacher states; dropped after training
    average: AveragedModel
    optimiser: torch.optim.Optimizer
    learning_rate: float


def learner(
    model: ElectraForSequenceClassification,
    teacher_width: int,
    schedule: Schedule,
    learning_rate: float,
) -> Learner:
    match = nn.Linear(model.config.hidden_size, teacher_width).to(model.device)
    optimiser = adam(nn.ModuleList([model, match]), learning_rate)
    return Learner(model.train(), match, mean_of(model, schedule), optimiser, learning_rate)


def distil(
    teachers: Sequence[BertForSequenceClassification],
    expansion: Expansion,
    learners: Sequence[Learner],
    stream: Iterator[list[Batch]],
    schedule: Schedule,
    watch: Watch,
) -> None:
    """Every learner sees the same batches, labelled once by the mean of the teachers."""
    device, started = teachers[0].device, time.monotonic()
    for step, batches in enumerate(stream):
        progress = schedule.progress(step, started)
        if progress >= 1:
            break
        n_samples = sum(len(batch.labels) for batch in batches)
        totals = torch.zeros(len(learners), device=device)
        for one in learners:
            set_rate(one.optimiser, one.learning_rate * warm_cosine(progress, schedule.warmup))
            one.optimiser.zero_grad(set_to_none=True)
        for batch in batches:
            ids, labels, is_whole = batch.on(device)
            labels = labels.where(is_whole, UNLABELLED)  # a part need not say what the whole says
            wanted = lesson(teachers, expansion, ids)
            for place, one in enumerate(learners):
                with half_on_gpu(device):
                    loss = student_loss(
                        one, ids, wanted, labels=labels, state_weight=max(0.0, 1 - 2 * progress)
                    )
                loss = loss * len(ids) / n_samples
                loss.backward()
                totals[place] += loss.detach()
        for one in learners:
            update(one.model, one.optimiser, one.average)
        if step % schedule.watch_every == 0:
            watch(step, float(totals.mean()))


@torch.no_grad()
def lesson(
    teachers: Sequence[BertForSequenceClassification], expansion: Expansion, ids: Tensor
) -> tuple[Tensor, Tensor]:
    """Mean log-odds (n,), and the first teacher's states at the own tokens (n, width, d)."""
    expanded, ends = expansion(ids)
    with half_on_gpu(ids.device):
        answers = [teacher_scores(teacher, expanded) for teacher in teachers]
    scores = torch.stack([scores for scores, _ in answers]).mean(dim=0)
    states = answers[0][1]
    return scores, states.gather(1, ends[..., None].expand(-1, -1, states.shape[2]))


def student_loss(
    one: Learner, ids: Tensor, wanted: tuple[Tensor, Tensor], *, labels: Tensor, state_weight: float
) -> Tensor:
    """Softened cross-entropy and distance of the log-odds, labels of whole reviews, states."""
    target, states = wanted
    output = one.model(input_ids=ids, attention_mask=ids != PAD, output_hidden_states=True)
    scores = log_odds_of(output.logits)
    loss = 4 * binary_cross_entropy_with_logits(scores / 2, torch.sigmoid(target / 2))
    loss = loss + 0.1 * huber_loss(scores, target, delta=2.0)
    known = (labels != UNLABELLED).float()
    hard = binary_cross_entropy_with_logits(scores, labels.float(), weight=known, reduction="sum")
    loss = loss + 0.2 * hard / len(ids)
    if state_weight > 0:
        alike = cosine_similarity(one.match(output.hidden_states[-1]).float(), states.float(), -1)
        loss = loss + state_weight * (1 - alike)[ids != PAD].mean()
    return loss


def mean_of(model: nn.Module, schedule: Schedule) -> AveragedModel:
    return AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(schedule.averaging))


def set_rate(optimiser: torch.optim.Optimizer, learning_rate: float) -> None:
    for group in optimiser.param_groups:
        group["lr"] = learning_rate


def update(model: nn.Module, optimiser: torch.optim.Optimizer, average: AveragedModel) -> None:
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimiser.step()
    average.update_parameters(model)
