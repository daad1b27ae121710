"""How a model is trained on synthetic data; apart, since it loads no heavy library."""

from dataclasses import dataclass


@dataclass(frozen=True)
class TrainingConfig:
    """Samples, optimiser and size of a transformer; the defaults are the paper's.

    Labels drawn from the true probabilities are noisy: n of them determine p parameters to a mean
    squared error of about 4 p / n in log-odds, at best. `regress` trains on the true log-odds
    instead, without dropout and with a learning rate that rises and falls, to see whether a model
    can represent the truth at all. `rmsprop` is the optimiser of the paper's published code; else
    AdamW.
    """

    n_samples: int = 5 * 5000
    batch: int = 20
    learning_rate: float = 5e-5
    width: int = 768
    n_heads: int = 12
    regress: bool = False
    rmsprop: bool = False
