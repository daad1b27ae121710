"""The histogram task and its two minima, in one of which attention is uninformative.

Every letter of a text of length L is to be labelled with how often it occurs. One layer of
attention with tied weights (queries are keys) does it, as in Cui et al. (2024), whom Lopardo et
al. quote:

    x_i = (letter, position) one-hot,  A = softmax(XQ (XQ)ᵀ),  count_i = net(x_i + Σ_j A_ij x_j)

Initialised so that Q projects on letters, attention rests on equal letters, and its amount tells
the count. Initialised so that Q projects on positions, attention stays the same for every text; the
mixture Σ_j A_ij x_j holds the whole histogram, and the net picks the entry of its own letter. Both
solve the task: attention need not show what a model looks for.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from slalom.document import FloatArray
from slalom.errors import InputError

LETTERS = "ADINST"
LENGTH = 10
RANK, HIDDEN, BATCH = 16, 64, 64
NOISE = 0.02  # on every weight of Q: breaks the symmetry of both initialisations


@dataclass(frozen=True)
class Start:
    """The initial Q: how strongly it projects on letters and on positions."""

    name: str
    letters: float
    positions: float


SEMANTIC = Start("semantic", letters=1.5, positions=0.0)
POSITIONAL = Start("positional", letters=0.0, positions=1.0)


@dataclass(frozen=True, eq=False)
class Minimum:
    """What training from one start arrived at, evaluated on held-out texts."""

    model: "HistogramModel"
    error: float  # mean squared error of the counts
    accuracy: float  # share of letters whose count is right when rounded
    slope: float  # norm of the gradient of the error with respect to all weights: 0 at a minimum
    dependence: float  # standard deviation of A over texts · L: how much it depends on the text
    preference: float  # mean attention to an equal letter elsewhere / to a different letter

    def attention(self, text: str) -> FloatArray:
        """A, (L, L)."""
        with torch.no_grad():
            return self.model.attention(encoded(text)[None])[0].double().numpy()

    def counts(self, text: str) -> FloatArray:
        """The predicted count of each letter: (L,)."""
        with torch.no_grad():
            return self.model(encoded(text)[None])[0].double().numpy()  # type: ignore[no-any-return]


class HistogramModel(nn.Module):
    """(n, L) letter ids → (n, L) predicted counts."""

    def __init__(self, start: Start) -> None:
        super().__init__()
        n_letters, width = len(LETTERS), len(LETTERS) + LENGTH
        q = NOISE * torch.randn(width, RANK)
        q[:n_letters, :n_letters] += start.letters * torch.eye(n_letters)
        q[n_letters:, :LENGTH] += start.positions * torch.eye(LENGTH)
        self.q = nn.Parameter(q)
        self.net = nn.Sequential(nn.Linear(width, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))

    def attention(self, texts: Tensor) -> Tensor:
        projected = _one_hot(texts) @ self.q
        return torch.softmax(projected @ projected.transpose(1, 2), dim=-1)

    def forward(self, texts: Tensor) -> Tensor:
        x = _one_hot(texts)
        counts: Tensor = self.net(x + self.attention(texts) @ x)
        return counts[..., 0]


def train(start: Start, *, n_steps: int = 1000, seed: int = 0) -> Minimum:
    """The net alone for n_steps / 2, so that Q need not compensate for it; then everything."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = HistogramModel(start)
    for trained, rate, steps in ((model.net, 0.02, n_steps // 2), (model, 0.01, n_steps)):
        optimiser = torch.optim.Adam(trained.parameters(), lr=rate)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, steps)
        for _ in range(steps):
            texts = _random_texts(BATCH, generator)
            optimiser.zero_grad()
            torch.autograd.backward(_error(model, texts))
            optimiser.step()
            schedule.step()
    return _evaluated(model, _random_texts(2000, generator))


def occurrences(texts: Tensor) -> Tensor:
    """How often the letter at each position occurs in its text: (n, L)."""
    return (texts[:, :, None] == texts[:, None, :]).sum(dim=-1)


def encoded(text: str) -> Tensor:
    """(L,) letter ids."""
    if len(text) != LENGTH or not set(text) <= set(LETTERS):
        raise InputError(f"{text!r} is not a text of {LENGTH} letters out of {LETTERS}")
    return torch.tensor([LETTERS.index(letter) for letter in text])


def _random_texts(n_texts: int, generator: torch.Generator) -> Tensor:
    return torch.randint(0, len(LETTERS), (n_texts, LENGTH), generator=generator)


def _one_hot(texts: Tensor) -> Tensor:
    letters = nn.functional.one_hot(texts, len(LETTERS)).float()
    positions = torch.eye(LENGTH).expand(len(texts), LENGTH, LENGTH)
    return torch.cat([letters, positions], dim=-1)


def _error(model: HistogramModel, texts: Tensor) -> Tensor:
    counts: Tensor = model(texts)
    return (counts - occurrences(texts)).square().mean()


def _evaluated(model: HistogramModel, texts: Tensor) -> Minimum:
    error = _error(model, texts)
    gradients = torch.autograd.grad(error, list(model.parameters()))
    with torch.no_grad():
        right = model(texts).round() == occurrences(texts)
        attention = model.attention(texts)  # (n, L, L)
    other = ~torch.eye(LENGTH, dtype=torch.bool)
    equal = (texts[:, :, None] == texts[:, None, :]) & other
    return Minimum(
        model=model,
        error=float(error.detach()),
        accuracy=float(right.double().mean()),
        slope=float(np.sqrt(sum(float(part.square().sum()) for part in gradients))),
        dependence=float(attention.std(dim=0).mean() * LENGTH),
        preference=float(attention[equal].mean() / attention[~equal & other].mean()),
    )
